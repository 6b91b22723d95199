"""Tasks around a mean that is itself uncertain: the exact posterior of both, for a prior that is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_number
from posse.numerics.linalg import identity_plus_root, triangular_root


@dataclass(frozen=True, kw_only=True)
class HierarchicalPrior:
    """theta_t ~ N(mu, b^2 I / d) around mu ~ N(0, a^2 I / d), noise of known variance: the exact posterior.

    Tasks share a point, not a subspace. All three numbers are taken as known.

    Parameters
    ----------
    centre : float
        a, the length that mu is expected to have, above 0.
    spread : float
        b, the distance from mu that tasks are expected to have, not negative. At 0 all tasks are one.
    noise : float
        Variance of the rewards' noise, above 0.

    Examples
    --------
    >>> x, y = np.ones((3, 2, 1)), np.array([[4.0, 0.0]] * 3)
    >>> HierarchicalPrior().fit(GramStatistics.of(x, y)).theta.round(2)
    array([[3.3],
           [0.3]])
    >>> HierarchicalPrior(spread=0.0).fit(GramStatistics.of(x, y)).theta.round(2)
    array([[1.71],
           [1.71]])

    References
    ----------
    Hong, Kveton, Zaheer and Ghavamzadeh, Hierarchical Bayesian bandits, AISTATS 2022.
    """

    centre: float = 1.0
    spread: float = 1.0
    noise: float = 1.0

    gives_covariance = True

    def __post_init__(self) -> None:
        check_number("`centre` of HierarchicalPrior", self.centre, 0.0, open_low=True)
        check_number("`spread` of HierarchicalPrior", self.spread, 0.0)
        check_number("`noise` of HierarchicalPrior", self.noise, 0.0, open_low=True)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate mu and theta of every task; a task without data gets mu, which without any data is 0."""
        check_statistics(statistics)
        dim = statistics.dim
        root = self.spread / np.sqrt(dim) * np.eye(dim)
        found = Hierarchy.given(statistics, root, self.noise, dim / self.centre**2 * np.eye(dim))
        return Estimate(found.theta, posterior=found.posterior)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """What is known of mu and all theta_t, given the data and the prior covariance L L' of theta_t - mu.

    Attributes
    ----------
    mean : (d,)
        The posterior mean of mu.
    mean_root : (d, d)
        A root of its covariance.
    theta : (T, d)
        The posterior means of theta_t.
    own : (T, d, r)
        Roots of the covariances of theta_t, were mu known.
    pull : (T, d, d)
        By how much theta_t moves towards the data as mu moves away: theta_t has the slope I - pull in mu.
    prior_root : (d, r)
        L.
    noise : float
        The variance of the rewards' noise.
    """

    mean: Array
    mean_root: Array
    theta: Array
    own: Array
    pull: Array
    prior_root: Array
    noise: float

    @classmethod
    def given(cls, statistics: GramStatistics, root: Array, noise: float, precision: Array) -> Hierarchy:
        """Return the posterior.

        With H_t = I + L'G_t L / s2 and K_t = L H_t^-1 L' / s2, the rewards of a task add the precision
        G_t (I - K_t G_t) / s2 to that of mu, and theta_t has the mean mu + K_t (b_t - G_t mu) if mu is known.

        Parameters
        ----------
        statistics : GramStatistics
        root : (d, r)
            L.
        noise : float
            s2.
        precision : (d, d)
            That of mu before the data, around 0; it may be zero where the data say enough.
        """
        gram, moment = statistics.gram, statistics.moment
        narrowed = identity_plus_root(root.T @ gram @ root / noise)
        own = root @ narrowed
        pull = own @ (own.mT @ gram) / noise
        told = (gram - gram @ pull) / noise
        information = precision + told.sum(axis=0)
        values, vectors = np.linalg.eigh(0.5 * (information + information.T))
        kept = values > 1e-12 * values[-1]
        mean_root = vectors / np.sqrt(np.where(kept, values, np.inf))
        slope = np.sum(moment - np.vecmat(moment, pull), axis=0) / noise
        mean = mean_root @ (mean_root.T @ slope)
        shift = np.matvec(own, np.vecmat(moment - gram @ mean, own)) / noise
        return cls(mean, mean_root, mean + shift, own, pull, root, noise)

    @property
    def roots(self) -> Array:
        """Roots (T, d, d) of the covariances of theta_t: its own, and what it owes to mu."""
        return triangular_root(np.concatenate([self.own, self.mean_root - self.pull @ self.mean_root], 2))

    @property
    def posterior(self) -> HierarchicalPosterior:
        """The covariances as data."""
        return HierarchicalPosterior(self.roots, self.noise, self.mean, self.mean_root, self.prior_root)


@dataclass(frozen=True, eq=False)
class HierarchicalPosterior:
    """The covariances of tasks around an uncertain mean, and what a new one starts from.

    Attributes
    ----------
    known : (T, d, d)
        Roots of the covariances.
    noise : float
        The variance of the rewards' noise.
    mean : (d,)
        The posterior mean of mu.
    mean_root : (d, d)
        A root of its covariance.
    prior_root : (d, r)
        A root of the covariance of theta_t - mu.
    """

    known: Array
    noise: float
    mean: Array
    mean_root: Array
    prior_root: Array

    def roots(self) -> Array:
        """Return roots (T, d, d) of the covariances."""
        return self.known

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        return Beliefs.of(theta, self.known / np.sqrt(self.noise), np.full(len(theta), self.noise))

    def newcomer(self) -> Beliefs:
        """Return what is believed of a task that was never seen: mu, as uncertain as it is, and the prior."""
        root = np.concatenate([self.prior_root, self.mean_root], axis=1)[None] / np.sqrt(self.noise)
        return Beliefs.of(self.mean[None], root, np.full(1, self.noise))
