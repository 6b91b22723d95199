"""Every task on its own, from a prior that is known: what a new task starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from posse.estimators.estimate import Estimate
from posse.linalg import semi_root
from posse.statistics import GramStatistics
from posse.validation import Array, check_array, check_number


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianPrior:
    """theta_t ~ N(mean, covariance), noise of known variance: the exact posterior of every task.

    `FactorPrior` learns one from many tasks. Here it is used as it stands, so that tasks which were not
    among them can be estimated one by one.

    Parameters
    ----------
    mean : (d,)
    covariance : (d, d)
        Symmetric, with no negative eigenvalue. Where it is zero theta is known.
    noise : float
        Variance of the rewards' noise.

    Examples
    --------
    >>> prior = GaussianPrior(mean=np.zeros(1), covariance=np.eye(1), noise=1.0)
    >>> estimate = prior.fit(GramStatistics.of(np.ones((3, 1, 1)), np.full((3, 1), 4.0)))
    >>> estimate.theta, estimate.covariance
    (array([[3.]]), array([[[0.25]]]))
    """

    mean: Array
    covariance: Array
    noise: float

    gives_covariance = True

    def __post_init__(self) -> None:
        mean = check_array("`mean` of GaussianPrior", self.mean, ("d",))
        covariance = check_array("`covariance` of GaussianPrior", self.covariance, (len(mean), len(mean)))
        check_number("`noise` of GaussianPrior", self.noise, 0.0, open_low=True)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)
        _ = self._root  # a bad covariance is an error now, not in the first fit

    @cached_property
    def _root(self) -> Array:
        """L with L L' = S."""
        return semi_root("`covariance` of GaussianPrior", self.covariance)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is the mean.

        With S = L L' and H = I + L'G L / s2, the posterior is N(mu + L H^-1 L'(b - G mu) / s2, L H^-1 L').
        """
        if statistics.dim != len(self.mean):
            raise ValueError(f"`mean` of GaussianPrior must have dim={statistics.dim}. Got {len(self.mean)}.")
        root = self._root
        precision = np.eye(root.shape[1]) + root.T @ statistics.gram @ root / self.noise
        slope = (statistics.moment - statistics.gram @ self.mean) @ root / self.noise
        shift = np.linalg.solve(precision, slope[..., None])[..., 0]
        return Estimate(self.mean + shift @ root.T, find_root=partial(_posterior_root, root, precision))


def _posterior_root(root: Array, precision: Array) -> Array:
    return np.asarray(root @ np.linalg.inv(np.linalg.cholesky(precision)).mT)
