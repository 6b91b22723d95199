"""What an estimator returns, and what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from posse.linalg import triangular_root
from posse.statistics import GramStatistics
from posse.validation import Array

# The noise variance is learned as if this many further rewards had been pure noise of the rewards' mean
# square: a few rewards that are fitted exactly do not make it vanish, and among many it does not count.
PSEUDO_REWARDS = 1.0


class ConvergenceWarning(UserWarning):
    """A solver stopped before its gradient vanished."""


@dataclass(frozen=True)
class Certificate:
    """How far an iterative solution can be trusted.

    Attributes
    ----------
    objective : float
        The minimised function at the solution.
    gradient_norm : float
        Its gradient there, in units that do not depend on the scale of features or rewards.
    n_iter : int
        Iterations that were spent.
    converged : bool
        Whether the gradient vanished to the solver's tolerance.
    """

    objective: float
    gradient_norm: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters of all tasks, and what the estimator learned on the way.

    Attributes
    ----------
    theta : (T, d)
        One parameter per task.
    basis : (d, k), optional
        Orthonormal columns of a shared representation.
    weights : (T, k), optional
        Each task's coordinates in it: theta = weights @ basis.T.
    certificate : Certificate, optional
        For estimators that iterate.
    find_root : callable, optional
        Makes any root (T, d, m) of the tasks' covariances, for estimators that know how uncertain they are.
    """

    theta: Array
    basis: Array | None = None
    weights: Array | None = None
    certificate: Certificate | None = None
    find_root: Callable[[], Array] | None = field(default=None, repr=False)

    @cached_property
    def root(self) -> Array:
        """Cholesky factors L_t of the tasks' covariances V_t = L_t L_t', (T, d, d); made when asked for."""
        if self.find_root is None:
            raise ValueError(
                "an estimate has a covariance if its estimator gives one, as Ridge, OracleBasis, FactorPrior "
                "and GaussianPrior do. Got an estimate without."
            )
        return triangular_root(self.find_root())

    @property
    def covariance(self) -> Array:
        """V_t, how uncertain theta_t is given the data, (T, d, d)."""
        return np.asarray(self.root @ self.root.mT)


class Estimator(Protocol):
    """A rule that turns statistics into an estimate; it keeps no state of its own."""

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task. A task without data gets what is best with no data."""


@runtime_checkable
class Refits(Estimator, Protocol):
    """An estimator that gets to its next estimate faster from its last one."""

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> Estimate:
        """Estimate from statistics, starting where an estimate from earlier ones ended.

        `added` is given where the statistics are the earlier ones and these, and nothing was forgotten.
        """


def noise_variance(misfit: Array, square: Array, count: Array) -> Array:
    """Return the noise variance from sums of squares, left over and in all, and numbers of rewards.

    Examples
    --------
    >>> noise_variance(np.array([0.0, 90.0]), np.array([4.0, 300.0]), np.array([1.0, 100.0])).round(2)
    array([2.  , 0.92])
    """
    pseudo = PSEUDO_REWARDS * np.divide(square, count, out=np.zeros_like(square), where=count > 0)
    return np.asarray((np.maximum(misfit, 0.0) + pseudo) / (count + PSEUDO_REWARDS))
