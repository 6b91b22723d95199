"""Every task on its own, from a prior of several Gaussians: which of them a task is like is learned, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.gaussian_prior import GaussianPrior, semi_root
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_array, check_integer
from posse.numerics.linalg import triangular_root


class MixtureParts(NamedTuple):
    """What each of m components makes of T tasks.

    chances : (T, m)
        How likely a task is of each component, given its rewards.
    means : (T, m, d)
    roots : (T, m, d, d)
        Of the covariances of theta.
    """

    chances: Array
    means: Array
    roots: Array


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
    n_alone : int
        How many components, the last ones, are of tasks that have nothing in common with others.

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
    n_alone: int = 0

    gives_covariance = True

    def __post_init__(self) -> None:
        weights = check_array("`weights` of MixturePrior", self.weights, ("m",))
        check_integer("`n_alone` of MixturePrior", self.n_alone, 0, len(weights), high_name="components")
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

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.means.shape[1])

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is the mean."""
        parts = self.posteriors(statistics)
        theta = np.einsum("tm,tmd->td", parts.chances, parts.means)
        apart = (parts.means - theta[:, None])[..., None]
        wide = np.sqrt(parts.chances)[..., None, None] * np.concatenate([parts.roots, apart], axis=3)
        roots = np.concatenate(list(wide.transpose(1, 0, 2, 3)), axis=2)
        noises = np.asarray(parts.chances @ self.noises)
        return Estimate(theta, posterior=MixturePosterior(triangular_root(roots), noises, self))

    def posteriors(self, statistics: GramStatistics) -> MixtureParts:
        """Return what every component makes of the tasks, and how likely each is."""
        if statistics.dim != self.dim:
            raise ValueError(
                f"statistics for a MixturePrior must have its {self.dim} features. Got {statistics.dim}."
            )
        check_statistics(statistics)
        estimates = [component.fit(statistics) for component in self._components]
        return MixtureParts(
            self._chances(statistics),
            np.stack([estimate.theta for estimate in estimates], axis=1),
            np.stack([estimate.root for estimate in estimates], axis=1),
        )

    @cached_property
    def unseen(self) -> MixtureParts:
        """What every component makes of one task before its first reward."""
        return self.posteriors(GramStatistics.zeros(1, self.dim))

    @property
    def share_alone(self) -> float:
        """The chance of a new task to have nothing in common with others."""
        return float(self.weights[len(self.weights) - self.n_alone :].sum())

    def chance_alone(self, statistics: GramStatistics) -> Array:
        """Return how likely each task has nothing in common with others, given its rewards, (T,)."""
        return np.asarray(self._chances(statistics)[:, len(self.weights) - self.n_alone :].sum(axis=1))

    def _chances(self, statistics: GramStatistics) -> Array:
        """Return how likely every task is of each component, given its rewards, (T, m)."""
        logs = np.stack([self._log_evidences(component, statistics) for component in self._components])
        with np.errstate(divide="ignore"):
            logs += np.log(self.weights)[:, None]
        return np.asarray(np.exp(logs - logsumexp(logs, axis=0)).T)

    def _log_evidences(self, component: GaussianPrior, statistics: GramStatistics) -> Array:
        """Return log p(y_t) under a component, up to a constant, (T,).

        With S = L L' and z = y - X mu it is minus half of n log s2 + |z|^2 / s2 + log det(I + L'G L / s2),
        less the square of what the prior explains of L'X'z.
        """
        mean, noise, root = component.mean, component.noise, component.root
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
