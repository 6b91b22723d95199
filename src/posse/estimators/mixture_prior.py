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
from posse.numerics.checks import Array, check_array
from posse.numerics.linalg import triangular_root


@dataclass(frozen=True, kw_only=True, eq=False)
class MixturePrior:
    """With probability weights_j, theta_t ~ N(means_j, covariances_j) in noise of variance noises_j.

    `FactorPrior` learns one from many tasks: a new task may lie in what they share, be larger than most of
    them, have nothing in common with them, or be louder. Its own rewards say which, task by task.

    Parameters
    ----------
    weights : (m,)
        How likely each component is before the data; they add up to 1.
    means : (m, d)
    covariances : (m, d, d)
        Symmetric, with no negative eigenvalue.
    noises : (m,)
        Variances of the rewards' noise, above 0.

    Examples
    --------
    >>> known, anything = np.diag([4.0, 0.0]), np.diag([4.0, 4.0])
    >>> prior = MixturePrior(
    ...     weights=np.array([0.9, 0.1]),
    ...     means=np.zeros((2, 2)),
    ...     covariances=np.stack([known, anything]),
    ...     noises=np.ones(2),
    ... )
    >>> twice = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    >>> prior.fit(GramStatistics.of(twice, np.full((2, 1), 0.1))).theta.round(2)
    array([[0., 0.]])
    >>> prior.fit(GramStatistics.of(twice, np.full((2, 1), 5.0))).theta.round(2)
    array([[0.  , 4.44]])

    Notes
    -----
    The covariance of an estimate is that of the whole mixture, between its components included. A task's
    noise is the mean of those of its components.
    """

    weights: Array
    means: Array
    covariances: Array
    noises: Array

    gives_covariance = True

    def __post_init__(self) -> None:
        weights = check_array("`weights` of MixturePrior", self.weights, ("m",))
        means = check_array("`means` of MixturePrior", self.means, (len(weights), "d"))
        shape = (*means.shape, means.shape[1])
        covariances = check_array("`covariances` of MixturePrior", self.covariances, shape)
        noises = check_array("`noises` of MixturePrior", self.noises, (len(weights),))
        if weights.size == 0 or weights.min() < 0.0 or abs(weights.sum() - 1.0) > 1e-8:
            raise ValueError(f"`weights` of MixturePrior must be shares that add up to 1. Got {weights}.")
        checked = {"weights": weights, "means": means, "covariances": covariances, "noises": noises}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        _ = self._components  # a bad covariance is an error now, not in the first fit

    @cached_property
    def _components(self) -> list[GaussianPrior]:
        return [
            GaussianPrior(mean=mean, covariance=covariance, noise=float(noise))
            for mean, covariance, noise in zip(self.means, self.covariances, self.noises, strict=True)
        ]

    @property
    def mean(self) -> Array:
        """The mean of the whole mixture, (d,)."""
        return np.asarray(self.weights @ self.means)

    @property
    def covariance(self) -> Array:
        """The covariance of the whole mixture, (d, d)."""
        apart = self.means - self.mean
        spread = self.covariances + apart[:, :, None] * apart[:, None, :]
        return np.asarray(np.tensordot(self.weights, spread, axes=1))

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is the mean."""
        dim = self.means.shape[1]
        if statistics.dim != dim:
            raise ValueError(
                f"statistics for a MixturePrior must have its {dim} features. Got {statistics.dim}."
            )
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
        noises = np.asarray(self.noises @ chances)
        posterior = MixturePosterior(triangular_root(np.concatenate(roots, axis=2)), noises, self)
        return Estimate(theta, posterior=posterior)

    def _log_evidences(self, component: GaussianPrior, statistics: GramStatistics) -> Array:
        """Return log p(y_t) under a component, up to a constant, (T,).

        With S = L L' and z = y - X mu it is minus half of n log s2 + |z|^2 / s2 + log det(I + L'G L / s2),
        less the square of what the prior explains of L'X'z.
        """
        mean, noise = component.mean, component.noise
        root = semi_root("`covariances` of MixturePrior", component.covariance)
        matrices = np.eye(root.shape[1]) + root.T @ statistics.gram @ root / noise
        slope = (statistics.moment - statistics.gram @ mean) @ root / noise
        values, vectors = np.linalg.eigh(matrices)
        values = np.maximum(values, 1.0)
        explained = np.sum(np.vecmat(slope, vectors) ** 2 / values, axis=1)
        square = statistics.square - 2.0 * statistics.moment @ mean + (statistics.gram @ mean) @ mean
        noisy = statistics.count * np.log(noise) + square / noise
        return np.asarray(0.5 * (explained - noisy - np.log(values).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """The covariances of tasks under a mixture, and the mixture itself for new ones.

    Attributes
    ----------
    known : (T, d, d)
        Roots of the covariances.
    noises : (T,)
        The noise variance of each task.
    prior : MixturePrior
    """

    known: Array
    noises: Array
    prior: MixturePrior

    def roots(self) -> Array:
        """Return roots (T, d, d) of the covariances."""
        return self.known

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known, as one Gaussian each."""
        return Beliefs.of(theta, self.known / np.sqrt(self.noises)[:, None, None], self.noises)

    def newcomer(self) -> Beliefs:
        """Return the prior, as one Gaussian of the mixture's moments."""
        noise = np.array([self.prior.weights @ self.prior.noises])
        root = semi_root("the prior's covariance", self.prior.covariance) / np.sqrt(noise)
        return Beliefs.of(self.prior.mean[None], root[None], noise)
