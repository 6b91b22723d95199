"""How likely all rewards are under a factor prior, with every task's parameters integrated out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from posse.core.statistics import GramStatistics
from posse.estimators.noise import PSEUDO_REWARDS, noise_variance
from posse.numerics.checks import Array, BoolArray
from posse.numerics.linalg import RANK_TOLERANCE, chunks, inverse_and_log_determinant

# Eigenvalues of X'X that are negative by more than this share of the largest are not rounding.
NEGATIVE = 1e-6
# Noise of a perfect fit has this share of the mean square of all rewards at the least.
LEAST_SHARE = 1e-6
# The curvature along the scales is a difference of slopes this far apart, on either side.
SCALE_STEP = 1e-3


@dataclass(frozen=True, eq=False)
class FactorModel:
    """theta_t ~ N(mu, s2 q_t (F F' + a I)), noise of variance s2; s2 itself is always the likeliest.

    Equation (2) of the page "The learned prior", whose numbers are used throughout.

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
    strength : float
        The variance that entries of F have before the data. Infinity for no opinion.
    """

    factors: Array
    log_ratio: float
    log_scales: Array
    mean: Array
    degrees: float = np.inf
    strength: float = np.inf

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
    """What value, slope and posterior share: of each task, and sums over all of them.

    With g = 1 / (1 + a q D), h = D g, Y = Q'F, p = g Q'(b - G mu), in a task's eigenbasis:

    Attributes
    ----------
    weights : (T, k)
        w = M^-1 Y'p, the tasks' coordinates in F.
    residual : (T, d)
        Q r with r = p - q h Y w: the slope of the log likelihood along theta, times s2.
    inner, inverse : (T, k, k)
        Y'h Y, and M^-1 with M = I + q Y'h Y.
    spread : (T,)
        The sum of h.
    taken : (T,)
        How much of it the task's weights take up: q tr(M^-1 Y'h^2 Y).
    pull : (d, k)
        The sum of q Q h Y M^-1.
    misfits : (T,)
        R_t, the sums of squares that are left: s2 times the Mahalanobis length of a task's rewards.
    log_determinants : (T,)
        Of the covariance of a task's rewards, in units of its noise.
    """

    weights: Array
    residual: Array
    inner: Array
    inverse: Array
    spread: Array
    taken: Array
    pull: Array
    misfits: Array
    log_determinants: Array

    @property
    def misfit(self) -> float:
        """R, the sum of squares that is left of all tasks."""
        return max(float(self.misfits.sum()), 0.0)

    @property
    def log_determinant(self) -> float:
        """Of the covariance of all rewards, in units of their noise."""
        return float(self.log_determinants.sum())


class FactorEvidence:
    """Statistics of all tasks, prepared so that the evidence of a `FactorModel` costs T d^2 k.

    With G_t = Q_t diag(D) Q_t', decomposed once, everything that a model changes is diagonal or k x k:

        R_t = |y_t - X_t mu|^2 - a q |Q_t'(b_t - G_t mu)|^2_g - q v'M^-1 v,      v = Y'p,
        log det = sum log(1 + a q D) + log det M,
        -2 log p(y) = N log(2 pi s2) + sum_t R_t / s2 + sum_t log det.

    Directions in which no task has data drop out. Scales stand at their most likely values, and their
    density counts. Tasks are taken a chunk at a time, so that beside the eigenvectors memory is small.

    Parameters
    ----------
    statistics : GramStatistics
    noises : (T,), optional
        v_t, by which the noise variance of a task, s2 v_t, differs from that of most: 1 for all by default.
        G_t, b_t and y_t'y_t are divided by it, and are meant so throughout.
    """

    def __init__(self, statistics: GramStatistics, noises: Array | None = None) -> None:
        self.statistics = statistics
        self._decompose()
        self._settle(np.ones(statistics.n_tasks) if noises is None else noises)

    def _settle(self, noises: Array) -> None:
        """Divide everything by the noise of tasks, (T,)."""
        statistics, self.noises = self.statistics, noises
        self.n_tasks, self.dim = statistics.n_tasks, statistics.dim
        self.total = float(statistics.count.sum())
        self.squares = statistics.square / noises
        self.square = float(self.squares.sum())
        self.values, self.moment = self._plain_values / noises[:, None], self._plain_moment / noises[:, None]

    def with_noises(self, noises: Array) -> FactorEvidence:
        """Return the evidence for other noises v_t, (T,); eigenvectors are shared."""
        other = FactorEvidence.__new__(FactorEvidence)
        other.statistics, other.vectors = self.statistics, self.vectors
        other._plain_values, other._plain_moment = self._plain_values, self._plain_moment
        other._settle(noises)
        return other

    def in_units(self, units: Array) -> FactorEvidence:
        """Return the evidence of rewards that are counted in units of each task's own, (T,)."""
        seen = self.statistics
        other = FactorEvidence.__new__(FactorEvidence)
        other.statistics = GramStatistics(
            seen.gram, seen.moment / units[:, None], seen.square / units**2, seen.count
        )
        other.vectors, other._plain_values = self.vectors, self._plain_values
        other._plain_moment = self._plain_moment / units[:, None]
        other._settle(self.noises / units**2)
        return other

    def take(self, tasks: BoolArray) -> FactorEvidence:
        """Return the evidence of some of the tasks, those where a mask (T,) is True."""
        if tasks.all():
            return self
        other = FactorEvidence.__new__(FactorEvidence)
        other.statistics, other.vectors = self.statistics.take(tasks), self.vectors[tasks]
        other._plain_values, other._plain_moment = self._plain_values[tasks], self._plain_moment[tasks]
        other._settle(self.noises[tasks])
        return other

    def _decompose(self) -> None:
        statistics = self.statistics
        self.n_tasks, self.dim = statistics.n_tasks, statistics.dim
        values, vectors = np.zeros((self.n_tasks, self.dim)), np.zeros(statistics.gram.shape)
        for tasks in chunks(self.n_tasks, self.dim):
            gram = statistics.gram[tasks]
            (live,) = np.nonzero(np.einsum("tii->ti", gram).any(axis=0))
            last = slice(self.dim - len(live), self.dim)
            if len(live) == self.dim:
                values[tasks], vectors[tasks] = np.linalg.eigh(gram)
            else:
                values[tasks, last], vectors[tasks, live, last] = np.linalg.eigh(gram[:, live[:, None], live])
        if values.min() < -NEGATIVE * max(float(values.max()), np.finfo(float).tiny):
            raise ValueError(
                f"`gram` of GramStatistics must have no negative eigenvalue. Got {values.min():.6g}."
            )
        np.maximum(values, 0.0, out=values)
        seen = values > RANK_TOLERANCE * values.max(axis=1, keepdims=True)
        first = self.dim - max(1, int(seen.sum(axis=1).max()))
        self._plain_values, self.vectors = values[:, first:], vectors[:, :, first:]
        self._plain_moment = np.vecmat(statistics.moment, self.vectors)

    @cached_property
    def unit(self) -> float:
        """The mean eigenvalue of one round's x x': what features' size is measured by."""
        return float(self.values.sum() / (self.total * self.dim))

    @cached_property
    def resolution(self) -> float:
        """The error of a where it is 0: what is far below could as well be 0."""
        return float(np.sqrt(2.0 * self.n_tasks / self.dim) / (self.unit * self.total))

    @cached_property
    def pooled(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the mean of all G_t."""
        mean = np.tensordot(1.0 / self.noises, self.statistics.gram, axes=1) / self.n_tasks
        values, vectors = np.linalg.eigh(mean)
        return np.maximum(values, 0.0), vectors

    def start(self) -> FactorModel:
        """Return the model of no shared direction, of mean 0 and with the ratio that two moments ask for.

        E y'y = n s2 + a s2 tr G and E b'b = s2 tr G + a s2 tr G^2. Where these have no positive solution the
        signal is taken to be as strong as the noise.
        """
        trace, trace_square = float(self.values.sum()), float(np.vdot(self.values, self.values))
        length = float(np.vdot(self.moment, self.moment))
        signal = length * self.total - self.square * trace
        noise = self.square * trace_square - length * trace
        ratio = signal / noise if min(signal, noise) > 0.0 else 1.0 / self.unit
        return FactorModel(
            np.zeros((self.dim, 0)), float(np.log(ratio)), np.zeros(self.n_tasks), np.zeros(self.dim)
        )

    def solve(self, model: FactorModel) -> Solved:
        """Return the tasks' weights, residuals and determinants under a model, and their sums: (4) to (6)."""
        n_tasks, dim, rank = self.n_tasks, self.dim, model.rank
        weights, residual = np.empty((n_tasks, rank)), np.empty((n_tasks, dim))
        inner, inverse = np.empty((n_tasks, rank, rank)), np.empty((n_tasks, rank, rank))
        sums, taken, pull = np.empty(n_tasks), np.empty(n_tasks), np.zeros((rank, dim))
        misfits, log_determinants = self.squares.copy(), np.empty(n_tasks)
        turned, all_scales = np.ascontiguousarray(model.factors.T), np.exp(model.log_scales)
        shifted, identity = bool(model.mean.any()), np.eye(rank)
        for tasks in chunks(self.n_tasks, self.dim):
            values, vectors, moment = self.values[tasks], self.vectors[tasks], self.moment[tasks]
            scales = all_scales[tasks, None]
            if shifted:
                mean = np.vecmat(model.mean, vectors)
                misfits[tasks] -= np.vecdot(mean, 2.0 * moment - values * mean)
                moment = moment - values * mean
            ratio = np.exp(model.log_ratio) * scales
            gain = ratio * values
            damping = 1.0 / (1.0 + gain)
            spread, small = values * damping, moment * damping
            factors = turned @ vectors
            damped = spread[:, None] * factors
            np.matmul(factors, damped.mT, out=inner[tasks])
            inverse[tasks], log_inner = inverse_and_log_determinant(
                identity + scales[..., None] * inner[tasks]
            )
            projected = np.matvec(factors, small)
            weights[tasks] = np.matvec(inverse[tasks], projected)
            misfits[tasks] -= np.vecdot(ratio * moment, small) + np.vecdot(scales * projected, weights[tasks])
            log_determinants[tasks] = np.log1p(gain).sum(axis=1) + log_inner
            sums[tasks] = spread.sum(axis=1)
            parts = np.empty((len(values), rank + 1, values.shape[1]))
            np.matmul(inverse[tasks], damped, out=parts[:, :rank])
            taken[tasks] = scales[:, 0] * np.einsum("tki,tki->t", parts[:, :rank], damped)
            parts[:, rank] = small - scales * np.vecmat(weights[tasks], damped)
            parts = parts @ vectors.mT
            residual[tasks] = parts[:, rank]
            pull += (scales[:, 0] @ parts.reshape(len(parts), -1)).reshape(rank + 1, dim)[:rank]
        return Solved(weights, residual, inner, inverse, sums, taken, pull.T, misfits, log_determinants)

    def noise(self, solved: Solved) -> float:
        """Return the likeliest noise variance."""
        return self._least_noise + solved.misfit / (self.total + PSEUDO_REWARDS)

    @cached_property
    def _least_noise(self) -> float:
        """The noise variance of a perfect fit: as if one further reward had been pure noise.

        It is not above what tasks' own least squares leave over, where they have more rewards than numbers
        to fit: else noise below one part in all rewards would never be seen.
        """
        least = float(noise_variance(np.zeros(1), np.array([self.square]), np.array([self.total]))[0])
        seen = self.values > RANK_TOLERANCE * self.values.max(axis=1, keepdims=True)
        free = np.maximum(self.statistics.count - seen.sum(axis=1), 0.0)
        if not free.any():
            return least
        explained = np.divide(self.moment**2, self.values, out=np.zeros_like(self.values), where=seen)
        left = np.maximum(self.squares - explained.sum(axis=1), 0.0)
        told = float(left[free > 0].sum() / free.sum())
        return min(least, max(told, LEAST_SHARE * self.square / self.total))

    def log_likelihoods(self, solved: Solved, noise: float | None = None) -> Array:
        """Return log p(y_t | q_t) of every task, (T,), at a noise variance, by default the likeliest."""
        noise = self.noise(solved) if noise is None else noise
        constants = self.statistics.count * np.log(2 * np.pi * noise * self.noises)
        return np.asarray(-0.5 * (constants + solved.misfits / noise + solved.log_determinants))

    def log_scale_densities(self, model: FactorModel) -> Array:
        """Return the log density of every task's log q_t, (T,); 0 where tails are Gaussian."""
        if not model.heavy:
            return np.zeros(self.n_tasks)
        half = 0.5 * model.degrees
        exponents = half * (model.log_scales + np.exp(-model.log_scales))
        return np.asarray(half * np.log(half) - gammaln(half) - exponents)

    def log_evidences(self, model: FactorModel, solved: Solved) -> Array:
        """Return log p(y_t) of every task, (T,), with heavy tails integrated out by Laplace's method."""
        values = self.log_likelihoods(solved) + self.log_scale_densities(model)
        if model.heavy:
            above, below = (
                self.deviance(replace(model, log_scales=model.log_scales + step))[1].log_scales
                for step in (SCALE_STEP, -SCALE_STEP)
            )
            curvature = np.maximum((above - below) / (4.0 * SCALE_STEP), 1e-3)
            values += 0.5 * np.log(2.0 * np.pi / curvature)
        return values

    def log_evidence(self, model: FactorModel, solved: Solved | None = None) -> float:
        """Return log p(y) of all tasks together, with heavy tails integrated out by Laplace's method."""
        return float(self.log_evidences(model, self.solve(model) if solved is None else solved).sum())

    def deviance(self, model: FactorModel, solved: Solved | None = None) -> tuple[float, FactorModel]:
        """Return the function that fitting minimises, and its slope in the form of a model.

        It is -2 log p(y, q, F), up to a constant, with the noise variance at its best: equations (7) and (8).
        """
        solved = self.solve(model) if solved is None else solved
        scales = np.exp(model.log_scales)
        noise = self.noise(solved)
        value = (self.total + PSEUDO_REWARDS) * np.log(noise) + solved.log_determinant
        leaning = solved.residual.T @ (scales[:, None] * solved.weights)
        by_factor = 2.0 * (solved.pull - leaning / noise)
        outside, inside = self._freedoms(model, solved)
        ratio = np.exp(model.log_ratio) * scales
        by_ratio = outside - ratio * np.vecdot(solved.residual, solved.residual) / noise
        by_scale = by_ratio + inside - scales * np.vecdot(solved.weights, solved.weights) / noise
        if model.heavy:
            value -= 2.0 * float(self.log_scale_densities(model).sum())
            by_scale += model.degrees * (1.0 - np.exp(-model.log_scales))
        value += float(np.sum(model.factors**2)) / model.strength
        by_factor += 2.0 * model.factors / model.strength
        by_mean = -2.0 / noise * solved.residual.sum(axis=0)
        return float(value), FactorModel(by_factor, float(by_ratio.sum()), by_scale, by_mean)

    def freedom(self, model: FactorModel, solved: Solved) -> Array:
        """Return how many of its d parameters each task learns from its own data, (T,)."""
        outside, inside = self._freedoms(model, solved)
        return np.asarray(outside + inside)

    def _freedoms(self, model: FactorModel, solved: Solved) -> tuple[Array, Array]:
        """Return how many parameters each task learns outside of F and inside, (T,) each.

        That is how log det grows with log q.
        """
        ratio = np.exp(model.log_ratio + model.log_scales)
        return ratio * (solved.spread - solved.taken), model.rank - np.einsum("tii->t", solved.inverse)

    def curvatures(self, model: FactorModel, solved: Solved) -> tuple[Array, Array]:
        """Return how tasks' deviances curve along log a, and how the rest of them along log q, (T,) each.

        Both are expected over rewards. The first is the sum of (a q h)^2, less the weights' share of it.
        """
        gain = np.exp(model.log_ratio + model.log_scales)[:, None] * self.values
        free = 1.0 - np.divide(
            solved.taken, solved.spread, out=np.zeros_like(solved.taken), where=solved.spread > 0
        )
        _, inside = self._freedoms(model, solved)
        return free * np.sum((gain / (1.0 + gain)) ** 2, axis=1), model.degrees + inside

    def means(self, model: FactorModel, solved: Solved) -> Array:
        """Return each task's posterior mean, (T, d): equation (9)."""
        scales = np.exp(model.log_scales)[:, None]
        theta = np.exp(model.log_ratio) * scales * solved.residual
        theta += (scales * solved.weights) @ model.factors.T
        return np.asarray(model.mean + theta)
