"""What an estimator returns, and what it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from posse.core.posterior import KnownPosterior, Posterior
from posse.numerics.checks import Array
from posse.numerics.linalg import triangular_root

# The estimators that say how uncertain they are, for messages.
WITH_COVARIANCE = (
    "FactorPrior, GaussianPrior, MixturePrior, HierarchicalPrior, EmpiricalPrior, Clubs, and Ridge and "
    "OracleBasis with a penalty"
)


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
    posterior : Posterior, optional
        What the tasks' covariances are made from, for estimators that know how uncertain they are.
    """

    theta: Array
    basis: Array | None = None
    weights: Array | None = None
    certificate: Certificate | None = None
    posterior: Posterior | None = field(default=None, repr=False)

    @cached_property
    def root(self) -> Array:
        """Roots L_t of the tasks' covariances V_t = L_t L_t', (T, d, d), made when asked for.

        They are Cholesky factors, unless the posterior knows square roots already.
        """
        if self.posterior is None:
            raise ValueError(
                "an estimate has a covariance if its estimator gives one. Got an estimate without. "
                f"These give one: {WITH_COVARIANCE}."
            )
        roots = self.posterior.roots()
        known = isinstance(self.posterior, KnownPosterior) and roots.shape[-2] == roots.shape[-1]
        return roots if known else triangular_root(roots)

    @property
    def covariance(self) -> Array:
        """V_t, how uncertain theta_t is given the data, (T, d, d)."""
        return np.asarray(self.root @ self.root.mT)
