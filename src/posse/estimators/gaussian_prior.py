"""Every task on its own, from a prior that is known: what a new task starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_array, check_number
from posse.numerics.linalg import RANK_TOLERANCE, identity_plus_root


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
        _ = self.root  # a bad covariance is an error now, not in the first fit

    @cached_property
    def root(self) -> Array:
        """L (d, r) with L L' = S, of rank r."""
        return semi_root("`covariance` of GaussianPrior", self.covariance)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is the mean.

        With S = L L' and H = I + L'G L / s2, the posterior is N(mu + L H^-1 L'(b - G mu) / s2, L H^-1 L').
        """
        if statistics.dim != len(self.mean):
            raise ValueError(f"`mean` of GaussianPrior must have dim={statistics.dim}. Got {len(self.mean)}.")
        check_statistics(statistics)
        root = self.root
        information = root.T @ statistics.gram @ root / self.noise
        slope = (statistics.moment - statistics.gram @ self.mean) @ root / self.noise
        posterior = GaussianPosterior(root, information, self.mean, self.noise)
        narrowed = identity_plus_root(information)
        shift = np.matvec(narrowed, np.vecmat(slope, narrowed))
        return Estimate(self.mean + shift @ root.T, posterior=posterior)


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    """V_t = L H_t^-1 L', from a prior N(mu, L L') that is known.

    Attributes
    ----------
    prior_root : (d, r)
        L.
    information : (T, r, r)
        H_t - I.
    mean : (d,)
        mu.
    noise : float
        The variance of the rewards' noise.
    """

    prior_root: Array
    information: Array
    mean: Array
    noise: float

    def roots(self) -> Array:
        """Return roots (T, d, r) of V_t."""
        return np.asarray(self.prior_root @ identity_plus_root(self.information))

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        return Beliefs.of(theta, self.roots() / np.sqrt(self.noise), np.full(len(theta), self.noise))

    def newcomer(self) -> Beliefs:
        """Return the prior."""
        root = self.prior_root[None] / np.sqrt(self.noise)
        return Beliefs.of(self.mean[None], root, np.full(1, self.noise))


def semi_root(name: str, matrix: Array) -> Array:
    """Return L (d, r) with L L' equal to a positive semi-definite matrix of rank r, or say why it is none.

    Examples
    --------
    >>> semi_root("`covariance`", np.diag([0.0, 4.0])) ** 2
    array([[0.],
           [4.]])
    """
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > 1e-8 * np.abs(matrix).max():
        raise ValueError(f"{name} must be symmetric. Got entries that differ by {asymmetry:.3g}.")
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-8 * abs(values[-1]):
        raise ValueError(f"{name} must have no negative eigenvalue. Got {values[0]:.3g}.")
    kept = values > RANK_TOLERANCE * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
