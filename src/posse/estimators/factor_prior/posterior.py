"""How uncertain the tasks' parameters are under a factor prior that is itself an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv, gammaln

from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.alone import BEFORE, STRENGTHS, Standing
from posse.estimators.factor_prior.evidence import FactorModel
from posse.estimators.factor_prior.information import information
from posse.estimators.factor_prior.learning import Learned
from posse.estimators.factor_prior.sampling import Moments
from posse.estimators.factor_prior.units import Units
from posse.estimators.gaussian_prior import semi_root
from posse.estimators.mixture_prior import MixturePrior
from posse.numerics.checks import Array
from posse.numerics.linalg import chunks, identity_plus_root, inverse_root, triangular_root

# With more tasks than this their roots are made small at once, not side by side.
MOST_SIDE_BY_SIDE = 4096
# A new task is tried with so many scales, and with every so many of the strengths that tasks alone may have.
N_SCALES, SPARSER = 5, 4
# It may be as loud as one of so many tasks that were seen.
N_LEVELS = 7
# How many times the usual strength a task alone has that was never seen, by its mean root.
UNSEEN = float(BEFORE @ np.sqrt(STRENGTHS)) ** 2
# A task that stands alone with less than this probability does not.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class FactorPosterior:
    """What the roots of all posterior covariances are made from, when somebody asks for them.

    It holds on to the statistics, and otherwise to little.

    Attributes
    ----------
    along : (d,)
        What the data tell about F along `axes`, in units of the noise.
    between : (k, k)
        What they tell between columns of F: the information about F is their product.
    pooled : (d,)
        Eigenvalues of the mean of all G_t.
    axes : (d, d)
        Its eigenvectors.
    weights : (T, k)
        The tasks' coordinates in F.
    units : Units
        Those of the statistics and the model.
    noises : (T,), optional
        v_t, the noise variance of each task in units of that of most; 1 for all if it is not known.
    standing : Standing, optional
        Which tasks stand alone; none if it is not known.
    averaged : Moments, optional
        Those of tasks that share the prior, averaged over priors, in place of those under the likeliest one.
    task_units : (T,), optional
        What the rewards of each task are counted in, beside the units of all.
    offset : (d,), optional
        Parameters whose rewards were taken away before all this, in the units of the log.
    """

    statistics: GramStatistics
    model: FactorModel
    noise: float
    weights: Array
    along: Array
    between: Array
    pooled: Array
    axes: Array
    units: Units
    noises: Array | None = None
    standing: Standing | None = None
    averaged: Moments | None = None
    task_units: Array | None = None
    offset: Array | None = None

    @classmethod
    def of(cls, learned: Learned, units: Units, averaged: Moments | None = None) -> FactorPosterior:
        """Return the posterior under what was learned, in some units."""
        evidence, model, solved = learned.evidence, learned.found.model, learned.solved
        told = information(evidence, model, solved)
        noise, pooled = evidence.noise(solved), evidence.pooled
        statistics, noises = evidence.statistics, evidence.noises
        return cls(
            statistics,
            model,
            noise,
            solved.weights,
            *told,
            *pooled,
            units,
            noises,
            learned.standing,
            averaged,
            learned.units,
        )

    @cached_property
    def variances(self) -> Array:
        """The noise variance of each task's rewards, (T,)."""
        noises = np.ones(self.statistics.n_tasks) if self.noises is None else self.noises
        return np.ldexp(self.noise * noises * self._task_units**2, 2 * self.units.rewards)

    @property
    def _task_units(self) -> Array:
        """What the rewards of each task are counted in, (T,)."""
        return np.ones(self.statistics.n_tasks) if self.task_units is None else self.task_units

    @property
    def _size(self) -> Array:
        """The units of theta, in a column of one or d numbers."""
        return np.reshape(self.units.size, (-1, 1))

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        return Beliefs.of(theta, self.roots() / np.sqrt(self.variances)[:, None, None], self.variances)

    def newcomer(self) -> Beliefs:
        """Return the prior of a task that was never seen, as one Gaussian as wide as the mixture's are."""
        share, usual, dim = self._alone_share, self._usual, len(self.model.mean)
        wide = share * usual * UNSEEN * np.eye(dim)
        covariance = (
            self._size * (wide + (1.0 - share) * _tails(self._degrees) * self._shared()) * self._size.T
        )
        root = semi_root("the covariance of a newcomer", covariance / np.ldexp(1.0, 2 * self.units.rewards))
        noise = np.full(1, self.noise * self._unit**2)
        return Beliefs.of(self._mean[None], root[None], noise)

    def prior(self) -> MixturePrior:
        """Return the prior of a task that was never seen: shared, of several scales; or alone, of several."""
        share, dim = self._alone_share, len(self.model.mean)
        scales = _tail_scales(self._degrees)
        shared, alone = scales[:, None, None] * self._shared(), np.zeros((0, dim, dim))
        weights = np.full(len(scales), (1.0 - share) / len(scales))
        if share > 0.0:
            strengths, chances = STRENGTHS[::SPARSER], BEFORE[::SPARSER]
            alone = (self._usual * strengths)[:, None, None] * np.eye(dim)
            weights = np.append(weights, share * chances / chances.sum())
        units, noises = self._typical()
        covariances = self.noise * self._size * np.concatenate([shared, alone]) * self._size.T
        n_levels, n_parts = len(units), len(weights)
        return MixturePrior(
            weights=np.repeat(weights / weights.sum(), n_levels) / n_levels,
            means=self._offset + np.tile(np.outer(units, self.units.size * self.model.mean), (n_parts, 1)),
            covariances=(covariances[:, None] * units[:, None, None] ** 2).reshape(-1, dim, dim),
            noises=np.tile(noises, n_parts),
            n_alone=len(alone) * n_levels,
        )

    def _typical(self) -> tuple[Array, Array]:
        """Return units and noise variances of tasks that were seen, (m,) each: some, from quiet to loud."""
        seen = np.flatnonzero(self.statistics.count > 0)
        order = seen[np.argsort(self.variances[seen], kind="stable")]
        if np.ptp(self.variances[seen]) == 0.0:
            order = order[:1]
        places = np.unique(np.linspace(0, len(order) - 1, N_LEVELS).round().astype(np.intp))
        return self._task_units[order[places]], self.variances[order[places]]

    @property
    def _unit(self) -> float:
        """What the rewards of a new task are expected to be counted in."""
        return float(np.ldexp(np.sqrt(np.mean(self._task_units**2)), self.units.rewards))

    @property
    def _mean(self) -> Array:
        """The mean of a new task, (d,)."""
        unit = self._unit / np.ldexp(1.0, self.units.rewards)
        return np.asarray(self._offset + unit * self.units.size * self.model.mean)

    @property
    def _offset(self) -> Array:
        return np.zeros(len(self.model.mean)) if self.offset is None else self.offset

    @property
    def _alone_share(self) -> float:
        return 0.0 if self.standing is None else self.standing.share

    @property
    def _usual(self) -> float:
        return 1.0 if self.standing is None else self.standing.usual

    @property
    def _degrees(self) -> float:
        return self.model.degrees if self.averaged is None else self.averaged.degrees

    def _shared(self) -> Array:
        """Return the covariance of a task that shares the prior, (d, d), in units of the noise.

        It is F F' + a I, and what is not known of F.
        """
        if self.averaged is not None:
            return np.asarray(self.averaged.prior / self.noise)
        model, dim = self.model, len(self.model.mean)
        covariance = model.factors @ model.factors.T + np.exp(model.log_ratio) * np.eye(dim)
        if model.rank:
            basis, strengths, turn = np.linalg.svd(model.factors, full_matrices=False)
            units = strengths / np.sqrt(dim)
            amounts, mix = np.linalg.eigh(units[:, None] * (turn @ self.between @ turn.T) * units)
            variances = units**2 @ mix**2 @ (1.0 / (1.0 + np.outer(np.maximum(amounts, 0.0), self.along)))
            leaving = self.axes - basis @ (basis.T @ self.axes)
            covariance += (leaving * variances) @ leaving.T
        return np.asarray(covariance)

    def roots(self) -> Array:
        """Return a root of each task's posterior covariance, (T, d, m): independent parts, side by side.

        Equations (11) and (12) of the page "The learned prior".

        - What the task's own data leave open, given F. With S = F F' + a I = L L' and H = I + q L'G L it is
          sqrt(q s2) L H^-1/2.
        - F itself, which is estimated: as far as `information` and a prior leave it open, that its columns
          point anywhere with the strength they have. Only what leaves the span of F counts.
        """
        n_tasks, dim = self.statistics.n_tasks, self.statistics.dim
        many, hard = n_tasks > MOST_SIDE_BY_SIDE, np.isinf(self.model.log_ratio)
        alone = self.standing is not None and bool((self.standing.alone > NEGLIGIBLE).any())
        small = many or alone or self.averaged is not None
        roots = np.empty((n_tasks, dim, dim if small else dim + (self.model.rank if hard else dim)))
        for tasks in chunks(n_tasks, dim):
            parts = self._shared_roots(tasks)
            if alone:
                parts = self._mixed(tasks, parts)
            roots[tasks] = triangular_root(parts) if small else parts
        roots = self._task_units[:, None, None] * self._size * roots
        unseen = self.statistics.count == 0
        if unseen.any():
            _, root, deviation = self.newcomer().parts
            roots[unseen] = 0.0
            roots[unseen, :, :dim] = deviation[0] * root[0]
        return np.asarray(roots)

    def _shared_roots(self, tasks: slice) -> Array:
        """Return roots of the covariances of tasks that share the prior."""
        if self.averaged is None:
            return np.concatenate([self._own_roots(tasks), self._factor_roots(tasks)], axis=2)
        values, vectors = np.linalg.eigh(self.averaged.covariances[tasks])
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

    def _mixed(self, tasks: slice, shared: Array) -> Array:
        """Return roots of the covariances of mixtures: under the shared prior, alone, and between the two."""
        assert self.standing is not None
        alone = self.standing.alone[tasks, None, None]
        strengths = self.standing.strengths[tasks, None, None]
        precision = strengths * self._gram(tasks)
        own = np.sqrt(strengths * self.noise) * identity_plus_root(precision)
        between = self.standing.shift[tasks][:, :, None]
        return np.concatenate(
            [np.sqrt(1.0 - alone) * shared, np.sqrt(alone) * own, np.sqrt(alone * (1.0 - alone)) * between],
            axis=2,
        )

    def _gram(self, tasks: slice) -> Array:
        """Return X'X of some tasks in units of their noises."""
        gram = self.statistics.gram[tasks]
        return gram if self.noises is None else np.asarray(gram / self.noises[tasks, None, None])

    def _own_roots(self, tasks: slice) -> Array:
        gram, scales = self._gram(tasks), np.exp(self.model.log_scales[tasks])[:, None, None]
        ratio = np.exp(self.model.log_ratio)
        basis, strengths, _ = np.linalg.svd(self.model.factors, full_matrices=False)
        if ratio == 0.0:
            inside = basis * strengths
            precision = scales * (inside.T @ gram @ inside)
            _add_identity(precision)
            return np.asarray(np.sqrt(scales * self.noise) * (inside @ inverse_root(precision)))
        # L = sqrt(a) I + U diag(l) U', so that products with it cost k d instead of d^2
        lift = basis * (np.sqrt(strengths**2 + ratio) - np.sqrt(ratio))
        half = np.sqrt(ratio) * (gram @ basis) + 0.5 * (basis @ (lift.T @ gram @ basis))
        cross = half @ lift.T
        precision = scales * (ratio * gram + cross + cross.mT)
        _add_identity(precision)
        roots = inverse_root(precision)
        roots = np.sqrt(ratio) * roots + lift @ (basis.T @ roots)
        return np.asarray(np.sqrt(scales * self.noise) * roots)

    def _factor_roots(self, tasks: slice) -> Array:
        model = self.model
        basis, strengths, turn = np.linalg.svd(model.factors, full_matrices=False)
        units = strengths / np.sqrt(len(self.pooled))
        amounts, mix = np.linalg.eigh(units[:, None] * (turn @ self.between @ turn.T) * units)
        scales = np.exp(model.log_scales[tasks])[:, None]
        loads = (scales * self.weights[tasks]) @ turn.T * units @ mix
        variances = loads**2 @ (1.0 / (1.0 + np.outer(np.maximum(amounts, 0.0), self.along)))
        damping = 1.0 / (1.0 + np.exp(model.log_ratio) * scales * self.pooled)
        leaving = self.axes - basis @ (basis.T @ self.axes)
        return np.asarray(leaving * (damping * np.sqrt(variances))[:, None, :])


def _tails(degrees: float) -> float:
    """Return the square of the mean root of q, 1/q ~ Gamma(nu/2, nu/2): how much wider tails make a prior."""
    half = 0.5 * max(degrees, 2.0)
    return float(half * np.exp(2.0 * (gammaln(half - 0.5) - gammaln(half)))) if np.isfinite(half) else 1.0


def _tail_scales(degrees: float) -> Array:
    """Return q at evenly spaced quantiles, of its inverse ~ Gamma(nu/2, nu/2); 1 where tails are Gaussian."""
    if not np.isfinite(degrees):
        return np.ones(1)
    half = 0.5 * max(degrees, 2.0)
    return np.asarray(half / gammaincinv(half, (np.arange(N_SCALES) + 0.5) / N_SCALES))


def _add_identity(matrices: Array) -> None:
    np.einsum("tii->ti", matrices)[...] += 1.0
