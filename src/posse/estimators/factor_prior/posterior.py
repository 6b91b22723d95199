"""How uncertain the tasks' parameters are under a factor prior that is itself an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.alone import Standing
from posse.estimators.factor_prior.evidence import FactorModel
from posse.estimators.factor_prior.information import information
from posse.estimators.factor_prior.learning import Learned
from posse.estimators.factor_prior.units import Units
from posse.numerics.checks import Array
from posse.numerics.linalg import chunks, identity_plus_root, inverse_root, triangular_root

# With more tasks than this their roots are made small at once, not side by side.
MOST_SIDE_BY_SIDE = 4096
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

    @classmethod
    def of(cls, learned: Learned, units: Units) -> FactorPosterior:
        """Return the posterior under what was learned, in some units."""
        evidence, model, solved = learned.evidence, learned.found.model, learned.solved
        told = information(evidence, model, solved)
        noise, pooled = evidence.noise(solved), evidence.pooled
        statistics, noises = evidence.statistics, evidence.noises
        return cls(statistics, model, noise, solved.weights, *told, *pooled, units, noises, learned.standing)

    @cached_property
    def variances(self) -> Array:
        """The noise variance of each task's rewards, (T,)."""
        noises = np.ones(self.statistics.n_tasks) if self.noises is None else self.noises
        return np.ldexp(self.noise * noises, 2 * self.units.rewards)

    @property
    def _size(self) -> Array:
        """The units of theta, in a column of one or d numbers."""
        return np.reshape(self.units.size, (-1, 1))

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        return Beliefs.of(theta, self.roots() / np.sqrt(self.variances)[:, None, None], self.variances)

    def newcomer(self) -> Beliefs:
        """Return the prior of a task that was never seen, as one Gaussian of the mixture's moments.

        Its covariance is s2 times: F F' + a I, what is not known of F, and, for tasks that stand alone, c I.
        """
        model, dim = self.model, len(self.model.mean)
        parts = [model.factors, np.sqrt(np.exp(model.log_ratio)) * np.eye(dim)]
        if self.standing is not None and self.standing.share > 0.0:
            share = self.standing.share
            parts = [np.sqrt(1.0 - share) * part for part in parts]
            parts.append(np.sqrt(share * self.standing.usual) * np.eye(dim))
        noise = np.full(1, np.ldexp(self.noise, 2 * self.units.rewards))
        root = np.sqrt(self.noise / noise) * self._size * np.concatenate(parts, axis=1)[None]
        return Beliefs.of(self.units.size * model.mean[None], root, noise)

    def roots(self) -> Array:
        """Return a root of each task's posterior covariance, (T, d, m): independent parts, side by side.

        Equations (10) and (11) of the page "The learned prior".

        - What the task's own data leave open, given F. With S = F F' + a I = L L' and H = I + q L'G L it is
          sqrt(q s2) L H^-1/2.
        - F itself, which is estimated: as far as `information` and a prior leave it open, that its columns
          point anywhere with the strength they have. Only what leaves the span of F counts.
        """
        n_tasks, dim = self.statistics.n_tasks, self.statistics.dim
        many, hard = n_tasks > MOST_SIDE_BY_SIDE, np.isinf(self.model.log_ratio)
        alone = self.standing is not None and bool((self.standing.alone > NEGLIGIBLE).any())
        small = many or alone
        roots = np.empty((n_tasks, dim, dim if small else dim + (self.model.rank if hard else dim)))
        for tasks in chunks(n_tasks, dim):
            parts = np.concatenate([self._own_roots(tasks), self._factor_roots(tasks)], axis=2)
            if alone:
                parts = self._mixed(tasks, parts)
            roots[tasks] = triangular_root(parts) if small else parts
        return np.asarray(self._size * roots)

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


def _add_identity(matrices: Array) -> None:
    np.einsum("tii->ti", matrices)[...] += 1.0
