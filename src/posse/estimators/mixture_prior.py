"""Every task on its own, from a prior of several Gaussians: which of them a task is like is learned, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.gaussian_prior import GaussianPrior, semi_root
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_array, check_number
from posse.numerics.linalg import triangular_root


@dataclass(frozen=True, kw_only=True, eq=False)
class MixturePrior:
    """theta_t ~ sum_j weights_j N(mean, covariances_j), noise of known variance: the posterior of every task.

    `FactorPrior` learns one from many tasks: a new task may lie in what they share, be larger than most of
    them, or have nothing in common with them. Its own rewards say which, task by task.

    Parameters
    ----------
    weights : (m,)
        How likely each component is before the data; they add up to 1.
    mean : (d,)
        The mean of all components.
    covariances : (m, d, d)
        Symmetric, with no negative eigenvalue.
    noise : float
        Variance of the rewards' noise.

    Examples
    --------
    >>> known, anything = np.diag([4.0, 0.0]), np.diag([4.0, 4.0])
    >>> prior = MixturePrior(
    ...     weights=np.array([0.9, 0.1]), mean=np.zeros(2), covariances=np.stack([known, anything]), noise=1.0
    ... )
    >>> twice = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    >>> prior.fit(GramStatistics.of(twice, np.full((2, 1), 0.1))).theta.round(2)
    array([[0., 0.]])
    >>> prior.fit(GramStatistics.of(twice, np.full((2, 1), 5.0))).theta.round(2)
    array([[0.  , 4.44]])

    Notes
    -----
    The covariance of an estimate is that of the whole mixture, between its components included.
    """

    weights: Array
    mean: Array
    covariances: Array
    noise: float

    gives_covariance = True

    def __post_init__(self) -> None:
        mean = check_array("`mean` of MixturePrior", self.mean, ("d",))
        weights = check_array("`weights` of MixturePrior", self.weights, ("m",))
        shape = (len(weights), len(mean), len(mean))
        covariances = check_array("`covariances` of MixturePrior", self.covariances, shape)
        check_number("`noise` of MixturePrior", self.noise, 0.0, open_low=True)
        if weights.size == 0 or weights.min() < 0.0 or abs(weights.sum() - 1.0) > 1e-8:
            raise ValueError(f"`weights` of MixturePrior must be shares that add up to 1. Got {weights}.")
        for name, value in (("mean", mean), ("weights", weights), ("covariances", covariances)):
            object.__setattr__(self, name, value)
        _ = self._components  # a bad covariance is an error now, not in the first fit

    @cached_property
    def _components(self) -> list[GaussianPrior]:
        return [
            GaussianPrior(mean=self.mean, covariance=covariance, noise=self.noise)
            for covariance in self.covariances
        ]

    @property
    def covariance(self) -> Array:
        """The covariance of the whole mixture, (d, d)."""
        return np.asarray(np.tensordot(self.weights, self.covariances, axes=1))

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is the mean."""
        if statistics.dim != len(self.mean):
            raise ValueError(f"`mean` of MixturePrior must have dim={statistics.dim}. Got {len(self.mean)}.")
        check_statistics(statistics)
        estimates = [component.fit(statistics) for component in self._components]
        logs = np.stack([self._log_evidences(component, statistics) for component in self._components])
        with np.errstate(divide="ignore"):
            logs += np.log(self.weights)[:, None]
        chances = np.exp(logs - logsumexp(logs, axis=0))
        means = np.stack([estimate.theta for estimate in estimates])
        theta = np.einsum("mt,mtd->td", chances, means)
        roots = [
            np.sqrt(chance)[:, None, None]
            * np.concatenate([estimate.root, (mean - theta)[:, :, None]], axis=2)
            for chance, estimate, mean in zip(chances, estimates, means, strict=True)
        ]
        posterior = MixturePosterior(triangular_root(np.concatenate(roots, axis=2)), self)
        return Estimate(theta, posterior=posterior)

    def _log_evidences(self, component: GaussianPrior, statistics: GramStatistics) -> Array:
        """Return log p(y_t) under a component, up to a constant, (T,).

        With S = L L' and z = y - X mu it is minus half of log det(I + L'G L / s2) less the square of what the
        prior explains of L'X'z.
        """
        root = semi_root("`covariances` of MixturePrior", component.covariance)
        matrices = np.eye(root.shape[1]) + root.T @ statistics.gram @ root / self.noise
        slope = (statistics.moment - statistics.gram @ self.mean) @ root / self.noise
        values, vectors = np.linalg.eigh(matrices)
        values = np.maximum(values, 1.0)
        explained = np.sum(np.vecmat(slope, vectors) ** 2 / values, axis=1)
        return np.asarray(0.5 * (explained - np.log(values).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """The covariances of tasks under a mixture, and the mixture itself for new ones.

    Attributes
    ----------
    known : (T, d, d)
        Roots of the covariances.
    prior : MixturePrior
    """

    known: Array
    prior: MixturePrior

    def roots(self) -> Array:
        """Return roots (T, d, d) of the covariances."""
        return self.known

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known, as one Gaussian each."""
        noise = self.prior.noise
        return Beliefs.of(theta, self.known / np.sqrt(noise), np.full(len(theta), noise))

    def newcomer(self) -> Beliefs:
        """Return the prior, as one Gaussian of the mixture's moments."""
        noise = self.prior.noise
        root = semi_root("the prior's covariance", self.prior.covariance) / np.sqrt(noise)
        return Beliefs.of(self.prior.mean[None], root[None], np.full(1, noise))
