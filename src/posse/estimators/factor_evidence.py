"""The evidence of the factor prior: how likely all rewards are under it, and the slope of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from posse.estimators.estimate import PSEUDO_REWARDS, noise_variance
from posse.linalg import RANK_TOLERANCE
from posse.statistics import GramStatistics
from posse.validation import Array

# Before the data, an entry of F has this many times the variance that a direction has in a model of none
# shared: wide enough not to matter, except along features that hardly ever vary.
STRENGTH = 10.0
# The curvature along the scales is a difference of slopes this far apart, on either side.
SCALE_STEP = 1e-3


@dataclass(frozen=True, eq=False)
class FactorModel:
    """theta_t ~ N(mu, s2 q_t (F F' + a I)), noise of variance s2; s2 itself is always the likeliest.

    Attributes
    ----------
    factors : (d, k)
        F, the shared directions with their strengths, in units of the noise.
    log_ratio : float
        log a: variance outside of the shared directions, in units of the noise. Minus infinity for none.
    log_scales : (T,)
        log q_t, by which a task is larger than most: 0 unless tails are heavy.
    mean : (d,)
        mu.
    degrees : float
        nu: 1/q_t ~ Gamma(nu/2, nu/2). With infinity all q_t are 1.
    """

    factors: Array
    log_ratio: float
    log_scales: Array
    mean: Array
    degrees: float = np.inf

    @property
    def heavy(self) -> bool:
        """Whether tasks have scales."""
        return bool(np.isfinite(self.degrees))

    @property
    def rank(self) -> int:
        """The number of shared directions, k."""
        return int(self.factors.shape[1])


@dataclass(frozen=True, eq=False)
class Solved:
    """Intermediate results that value, slope and posterior share, in each task's eigenbasis.

    Attributes
    ----------
    ratio : (T, 1)
        a q_t.
    spread : (T, d)
        h = D g with g = 1 / (1 + a q_t D).
    factors : (T, d, k)
        Y = Q_t'F.
    damped : (T, d, k)
        h Y.
    shrunk : (T, d, k)
        h Y M^-1.
    inverse : (T, k, k)
        M^-1 with M = I + q_t Y'h Y.
    weights : (T, k)
        M^-1 Y'p, the tasks' coordinates in F; p = g Q_t'(b_t - G_t mu).
    residual : (T, d)
        p - q_t h Y w.
    misfit : float
        R, the sum of squares that is left: s2 times the Mahalanobis length of all rewards.
    log_determinant : float
        Of the covariance of all rewards, in units of s2.
    """

    ratio: Array
    spread: Array
    factors: Array
    damped: Array
    shrunk: Array
    inverse: Array
    weights: Array
    residual: Array
    misfit: float
    log_determinant: float


class FactorEvidence:
    """Statistics of all tasks, prepared so that the evidence of a `FactorModel` costs T d^2 k.

    With G_t = Q_t diag(D) Q_t', decomposed once, everything that a model changes is diagonal or k x k:

        R_t = |y_t - X_t mu|^2 - a q |Q_t'(b_t - G_t mu)|^2_g - q v'M^-1 v,      v = Y'p,
        log det = sum log(1 + a q D) + log det M,
        -2 log p(y) = N log(2 pi s2) + sum_t R_t / s2 + sum_t log det.

    Directions in which no task has data drop out. Scales stand at their most likely values, and their
    density counts.
    """

    def __init__(self, statistics: GramStatistics) -> None:
        self.strength = np.inf
        values, vectors = np.linalg.eigh(statistics.gram)
        self.n_tasks, self.dim = statistics.n_tasks, statistics.dim
        self.values = np.maximum(values, 0.0)
        self.vectors = np.ascontiguousarray(vectors.mT)
        seen = self.values > RANK_TOLERANCE * self.values.max(axis=1, keepdims=True, initial=0.0)
        first = self.dim - max(1, int(seen.sum(axis=1).max()))
        self.used = self.values[:, first:]
        self.rows = self.vectors[:, first:].reshape(-1, self.dim)
        self.moment = self._into(statistics.moment)
        self.statistics = statistics
        self.total = float(statistics.count.sum())
        self.square = float(statistics.square.sum())

    @cached_property
    def unit(self) -> float:
        """The mean eigenvalue of one round's x x': what features' size is measured by."""
        return float(self.values.sum() / (self.total * self.dim))

    @cached_property
    def pooled(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the mean of all G_t."""
        values, vectors = np.linalg.eigh(self.statistics.gram.mean(axis=0))
        return np.maximum(values, 0.0), vectors

    def expect(self, unshared: FactorModel) -> None:
        """Set how strong shared directions may be, by the strength of a model that has none.

        The signal in a reward may at any rate be about as large as its noise.
        """
        self.strength = STRENGTH * max(float(np.exp(unshared.log_ratio)), 1.0 / (self.dim * self.unit))

    def start(self) -> FactorModel:
        """Return the model of no shared direction, of mean 0 and of a signal as strong as the noise."""
        return FactorModel(
            np.zeros((self.dim, 0)), -float(np.log(self.unit)), np.zeros(self.n_tasks), np.zeros(self.dim)
        )

    def solve(self, model: FactorModel) -> Solved:
        """Return what follows from a model."""
        scales = np.exp(model.log_scales)[:, None]
        ratio = np.exp(model.log_ratio) * scales
        moment, square = self.moment, self.square
        if model.mean.any():
            mean = (self.rows @ model.mean).reshape(self.used.shape)
            moment = moment - self.used * mean
            square = self.square - float(np.sum(mean * (self.moment + moment)))
        damping = 1.0 / (1.0 + ratio * self.used)
        spread = self.used * damping
        small = moment * damping
        factors = (self.rows @ model.factors).reshape(*self.used.shape, model.rank)
        damped = spread[..., None] * factors
        matrix = np.eye(model.rank) + scales[..., None] * (factors.mT @ damped)
        inverse = np.linalg.inv(matrix)
        projected = np.vecmat(small, factors)
        weights = np.matvec(inverse, projected)
        explained = np.sum(ratio * moment * small) + np.sum(scales * projected * weights)
        log_determinant = np.log1p(ratio * self.used).sum() + np.linalg.slogdet(matrix)[1].sum()
        residual = small - scales * np.matvec(damped, weights)
        misfit = max(square - float(explained), 0.0)
        return Solved(
            ratio,
            spread,
            factors,
            damped,
            damped @ inverse,
            inverse,
            weights,
            residual,
            misfit,
            float(log_determinant),
        )

    def noise(self, solved: Solved) -> float:
        """Return the likeliest noise variance."""
        sums = np.array([solved.misfit, self.square, self.total])
        return float(noise_variance(*sums[:, None])[0])

    def log_likelihood(self, solved: Solved) -> float:
        """Return log p(y | q) at the likeliest noise variance."""
        noise = self.noise(solved)
        constant = self.total * np.log(2 * np.pi * noise)
        return float(-0.5 * (constant + solved.misfit / noise + solved.log_determinant))

    def log_scale_density(self, model: FactorModel) -> float:
        """Return the log density of all log q_t; 0 where tails are Gaussian."""
        if not model.heavy:
            return 0.0
        half = 0.5 * model.degrees
        exponents = half * (model.log_scales + np.exp(-model.log_scales))
        return float(self.n_tasks * (half * np.log(half) - gammaln(half)) - exponents.sum())

    def log_evidence(self, model: FactorModel) -> float:
        """Return log p(y), with the scales integrated out by Laplace's method if tails are heavy."""
        value = self.log_likelihood(self.solve(model)) + self.log_scale_density(model)
        if model.heavy:
            above, below = (
                self.deviance(replace(model, log_scales=model.log_scales + step))[1].log_scales
                for step in (SCALE_STEP, -SCALE_STEP)
            )
            curvature = np.maximum((above - below) / (4.0 * SCALE_STEP), 1e-3)
            value += 0.5 * float(np.log(2.0 * np.pi / curvature).sum())
        return value

    def deviance(self, model: FactorModel, *, learn_mean: bool = False) -> tuple[float, FactorModel]:
        """Return the function that fitting minimises, and its slope in the form of a model.

        The slope along the mean is 0 unless it is asked for.
        It is -2 log p(y, q), up to a constant, with the noise variance at its best.
        """
        solved = self.solve(model)
        scales = np.exp(model.log_scales)[:, None]
        noise = self.noise(solved)
        value = (self.total + PSEUDO_REWARDS) * np.log(noise) + solved.log_determinant
        slopes = solved.shrunk - solved.residual[..., None] * (solved.weights / noise)[:, None, :]
        weighted = (scales[..., None] * slopes).reshape(len(self.rows), model.rank)
        by_factor = 2.0 * (weighted.T @ self.rows).T
        outside, inside = self._freedoms(model, solved)
        by_ratio = outside - solved.ratio[:, 0] * np.vecdot(solved.residual, solved.residual) / noise
        by_scale = by_ratio + inside - scales[:, 0] * np.vecdot(solved.weights, solved.weights) / noise
        if model.heavy:
            value -= 2.0 * self.log_scale_density(model)
            by_scale = by_scale + model.degrees * (1.0 - np.exp(-model.log_scales))
        value += float(np.sum(model.factors**2)) / self.strength
        by_factor += 2.0 * model.factors / self.strength
        by_mean = -2.0 / noise * (solved.residual.ravel() @ self.rows) if learn_mean else np.zeros(self.dim)
        return float(value), FactorModel(by_factor, float(by_ratio.sum()), by_scale, by_mean)

    def freedom(self, model: FactorModel, solved: Solved) -> Array:
        """Return how many of its d parameters each task learns from its own data, (T,)."""
        outside, inside = self._freedoms(model, solved)
        return np.asarray(outside + inside)

    def _freedoms(self, model: FactorModel, solved: Solved) -> tuple[Array, Array]:
        """Return the same outside of F and inside, (T,) each: how log det grows with log q."""
        outside = solved.ratio[:, 0] * (solved.spread.sum(axis=1) - self._taken(model, solved))
        return outside, model.rank - np.einsum("tii->t", solved.inverse)

    def _taken(self, model: FactorModel, solved: Solved) -> Array:
        """Return how much of the information in h each task's weights take up, (T,): q tr(M^-1 Y'h^2 Y)."""
        return np.asarray(np.exp(model.log_scales) * np.vecdot(solved.shrunk, solved.damped).sum(axis=1))

    def means(self, model: FactorModel, solved: Solved) -> Array:
        """Return each task's posterior mean, (T, d)."""
        scales = np.exp(model.log_scales)[:, None]
        outside = self._back(solved.ratio * solved.residual)
        return np.asarray(model.mean + outside + (scales * solved.weights) @ model.factors.T)

    def own_parts(self, model: FactorModel, solved: Solved) -> Array:
        """Return what the model leaves unexplained in each task, (T, d): X'(y - X mu), whitened."""
        return self._back(np.exp(0.5 * model.log_scales)[:, None] * solved.residual)

    def information(self, model: FactorModel, solved: Solved) -> tuple[Array, Array]:
        """Return what the data tell about F: along the pooled axes, (d,), times between columns, (k, k).

        Half of the deviance's expected curvature is sum_t q K_t kron (q w w' / s2), where K_t is Q h Q' less
        what the task's own weights take up, q Q h Y M^-1 Y'h Q'. Here Q h Q' stands at what the pooled
        statistics would make of it, times the share of its trace outside of F that the weights leave.
        """
        shares = np.exp(2.0 * model.log_scales) * self._left(model, solved) / self.noise(solved)
        between = (shares[:, None] * solved.weights).T @ solved.weights
        values, _ = self.pooled
        return values / (1.0 + np.exp(model.log_ratio) * values), np.asarray(between)

    def _left(self, model: FactorModel, solved: Solved) -> Array:
        """Return how much of each task's information outside of F its weights leave, from 0 to 1, (T,)."""
        inner = solved.factors.mT @ solved.damped
        per_length = np.linalg.pinv(model.factors.T @ model.factors)
        total = solved.spread.sum(axis=1)
        outside = total - np.sum(inner * per_length, axis=(1, 2))
        inside = np.sum((inner @ solved.inverse) * per_length, axis=(1, 2))
        left = total - self._taken(model, solved) - inside
        share = np.divide(left, outside, out=np.zeros_like(left), where=outside > 0)
        return np.asarray(np.clip(share, 0.0, 1.0))

    def roots(self, model: FactorModel) -> Array:
        """Return a root of each task's posterior covariance, (T, d, 2 d + k): three independent parts.

        - What lies outside of F, given the weights: sqrt(a q s2) Q g^1/2.
        - The weights, and what they move: sqrt(q s2) Q g Y M^-1/2.
        - F itself, which is estimated: as far as `information` and a prior leave it open, that its columns
          point anywhere with the strength they have. Only what leaves the span of F counts.
        """
        solved = self.solve(model)
        noise = self.noise(solved)
        scales = np.exp(model.log_scales)[:, None]
        damping = 1.0 / (1.0 + solved.ratio * self.values)
        outside = self.vectors.mT * np.sqrt(noise * solved.ratio * damping)[:, None, :]
        factors = damping[..., None] * (self.vectors @ model.factors)
        lower = np.linalg.cholesky(solved.inverse)
        inside = self.vectors.mT @ factors @ lower * np.sqrt(noise * scales)[..., None]
        return np.concatenate([outside, inside, self._factor_root(model, solved)], axis=2)

    def _factor_root(self, model: FactorModel, solved: Solved) -> Array:
        basis, strengths, turn = np.linalg.svd(model.factors, full_matrices=False)
        along, between = self.information(model, solved)
        units = strengths / np.sqrt(self.dim)
        amounts, mix = np.linalg.eigh(units[:, None] * (turn @ between @ turn.T) * units)
        loads = (np.exp(model.log_scales)[:, None] * solved.weights) @ turn.T * units @ mix
        variances = loads**2 @ (1.0 / (1.0 + np.outer(np.maximum(amounts, 0.0), along)))
        values, axes = self.pooled
        damping = 1.0 / (1.0 + solved.ratio * values)
        leaving = axes - basis @ (basis.T @ axes)
        return np.asarray(leaving * (damping * np.sqrt(variances))[:, None, :])

    def _into(self, vectors: Array) -> Array:
        """Return vectors (T, d) in each task's eigenbasis."""
        rows = self.rows.reshape(self.n_tasks, -1, self.dim)
        return np.asarray(np.matvec(rows, vectors))

    def _back(self, coordinates: Array) -> Array:
        """Return vectors in R^d from each task's eigenbasis."""
        rows = self.rows.reshape(self.n_tasks, -1, self.dim)
        return np.asarray(np.vecmat(coordinates, rows))
