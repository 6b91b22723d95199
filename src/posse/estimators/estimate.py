"""What an estimator returns, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from posse.statistics import GramStatistics
from posse.validation import Array


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
    """

    theta: Array
    basis: Array | None = None
    weights: Array | None = None
    certificate: Certificate | None = None


class Estimator(Protocol):
    """A rule that turns statistics into an estimate; it keeps no state of its own."""

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task. A task without data gets what is best with no data."""
