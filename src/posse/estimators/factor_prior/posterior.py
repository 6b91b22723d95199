"""How uncertain the tasks' parameters are under a factor prior that is itself an estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel, Solved
from posse.estimators.factor_prior.units import Units
from posse.numerics.checks import Array
from posse.numerics.linalg import chunks, inverse_root, triangular_root

# With more tasks than this their roots are made small at once, not side by side.
MOST_SIDE_BY_SIDE = 4096


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

    @classmethod
    def of(
        cls, evidence: FactorEvidence, model: FactorModel, solved: Solved, units: Units
    ) -> FactorPosterior:
        """Return the posterior under a model, both in some units."""
        noise, information = evidence.noise(solved), evidence.information(model, solved)
        return cls(evidence.statistics, model, noise, solved.weights, *information, *evidence.pooled, units)

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        noise = float(np.ldexp(self.noise, 2 * self.units.rewards))
        return Beliefs.of(theta, self.roots() / np.sqrt(noise), np.full(len(theta), noise))

    def newcomer(self) -> Beliefs:
        """Return the prior of a task like most: N(mu, s2 (F F' + a I))."""
        model, noise = self.units.model_out(self.model), float(np.ldexp(self.noise, 2 * self.units.rewards))
        outside = np.sqrt(np.exp(model.log_ratio)) * np.eye(len(model.mean))
        root = np.concatenate([model.factors, outside], axis=1)
        return Beliefs.of(self.units.size * self.model.mean[None], root[None], np.full(1, noise))

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
        roots = np.empty((n_tasks, dim, dim if many else dim + (self.model.rank if hard else dim)))
        for tasks in chunks(n_tasks, dim):
            parts = np.concatenate([self._own_roots(tasks), self._factor_roots(tasks)], axis=2)
            roots[tasks] = triangular_root(parts) if many else parts
        return self.units.size * roots

    def _own_roots(self, tasks: slice) -> Array:
        gram, scales = self.statistics.gram[tasks], np.exp(self.model.log_scales[tasks])[:, None, None]
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
