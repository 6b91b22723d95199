"""Tasks around a mean, in a covariance that is learned whole: empirical Bayes without a structure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.core.estimate import Estimate
from posse.core.statistics import GramStatistics
from posse.estimators.gaussian_prior import semi_root
from posse.estimators.hierarchy import Hierarchy
from posse.estimators.noise import noise_variance
from posse.estimators.scaled import Scaled, scaled
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, BoolArray, check_integer

# Steps end when the covariance moves by less than this share of itself.
TOLERANCE = 1e-3
# mu has a prior of so little precision, beside that of one reward, that it does not count.
VAGUE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class EmpiricalEstimate(Estimate):
    """An estimate with the prior that was learned for it.

    Attributes
    ----------
    mean : (d,)
        mu.
    prior_covariance : (d, d)
        Sigma, of theta_t around mu.
    noise : float
        The variance of the rewards' noise.
    n_iter : int
        Steps that were taken; 0 where there was nothing to learn from.
    """

    mean: Array
    prior_covariance: Array
    noise: float
    n_iter: int


@dataclass(frozen=True, kw_only=True)
class EmpiricalPrior:
    """theta_t ~ N(mu, Sigma), with mu, all of Sigma and the noise variance learned from all tasks.

    Nothing is assumed of Sigma: it has d (d + 1) / 2 numbers to be learned, where `FactorPrior` has k d.

    Parameters
    ----------
    max_iter : int
        Steps of expectation-maximisation at the most; a refit goes on from the last one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = np.array([1.0, 2.0]) + rng.standard_normal((200, 2)) * [0.1, 1.0]
    >>> x = rng.standard_normal((30, 200, 2))
    >>> seen = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((30, 200)))
    >>> estimate = EmpiricalPrior().fit(seen)
    >>> estimate.mean.round(1), np.diag(estimate.prior_covariance).round(1)
    (array([1., 2.]), array([0., 1.]))

    Notes
    -----
    mu is unknown beforehand, so that its uncertainty counts in the posterior and in Sigma, as in restricted
    maximum likelihood.

    This is what ebmTS and ebmUCB of Jiang and Zhu are about: a prior covariance across bandits that is
    estimated. They estimate one for each arm, from contexts that all arms share; here arms have features, and
    one theta per task. Their way of estimating it was not at hand: here it is the likeliest one.

    References
    ----------
    Jiang and Zhu, Empirical Bayesian multi-bandit learning, arXiv 2510.26284, 2025.
    """

    max_iter: int = 50

    gives_covariance = True

    def __post_init__(self) -> None:
        check_integer("`max_iter` of EmpiricalPrior", self.max_iter, 1)

    def fit(self, statistics: GramStatistics) -> EmpiricalEstimate:
        """Learn the prior and estimate theta of every task; without any data the prior is N(0, I).

        Warns
        -----
        NoDataWarning
            If there is not a single row.
        """
        return self._fit(statistics, None)

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> EmpiricalEstimate:
        """Learn from new statistics, starting from the prior of an earlier fit."""
        known = previous if isinstance(previous, EmpiricalEstimate) and previous.n_iter else None
        return self._fit(statistics, known)

    def _fit(self, statistics: GramStatistics, known: EmpiricalEstimate | None) -> EmpiricalEstimate:
        check_statistics(statistics, "EmpiricalPrior")
        dim, units = statistics.dim, scaled(statistics)
        if units is None:
            found = Hierarchy.given(statistics, np.eye(dim), 1.0, np.eye(dim))
            return _estimate(found, Scaled(statistics, 1.0), np.eye(dim), 1.0, 0)
        seen = units.statistics
        rewards = float(np.sqrt(statistics.square.sum() / statistics.count.sum()))
        covariance, noise = np.eye(dim) / dim, 0.5
        if known is not None:
            covariance, noise = known.prior_covariance / units.size**2, known.noise / rewards**2
        precision = VAGUE * np.eye(dim)
        told = seen.count > 0
        for n_iter in range(1, self.max_iter + 1):  # noqa: B007 - reported below
            found = Hierarchy.given(seen, semi_root("the prior", covariance), noise, precision)
            before = covariance
            covariance, noise = _likelier(seen, found, told)
            if np.linalg.norm(covariance - before) < TOLERANCE * np.linalg.norm(before):
                break
        found = Hierarchy.given(seen, semi_root("the prior", covariance), noise, precision)
        return _estimate(found, units, covariance, rewards, n_iter)


def _likelier(statistics: GramStatistics, found: Hierarchy, told: BoolArray) -> tuple[Array, float]:
    """Return the covariance and the noise variance of one step of expectation-maximisation."""
    away, of_mean = found.theta - found.mean, found.pull @ found.mean_root
    spread = np.concatenate([found.own, of_mean, away[:, :, None]], axis=2)[told]
    covariance = np.einsum("tij,tkj->ik", spread, spread) / told.sum()
    roots = np.concatenate([found.own, found.mean_root - of_mean], axis=2)
    fitted = np.matvec(statistics.gram, found.theta)
    misfit = statistics.square - 2.0 * np.vecdot(found.theta, statistics.moment)
    misfit = misfit + np.vecdot(found.theta, fitted)
    unsure = np.einsum("tij,tij->t", roots, statistics.gram @ roots)
    total = (np.array([float(part.sum())]) for part in (misfit + unsure, statistics.square, statistics.count))
    return np.asarray(covariance), float(noise_variance(*total)[0])


def _estimate(
    found: Hierarchy, units: Scaled, covariance: Array, rewards: float, n_iter: int
) -> EmpiricalEstimate:
    """Return the estimate in the units of the data."""
    size = units.size
    whole = Hierarchy(
        found.mean * size,
        found.mean_root * size,
        found.theta * size,
        found.own * size,
        found.pull,
        found.prior_root * size,
        found.noise * rewards**2,
    )
    return EmpiricalEstimate(
        theta=whole.theta,
        posterior=whole.posterior,
        mean=whole.mean,
        prior_covariance=covariance * size**2,
        noise=whole.noise,
        n_iter=n_iter,
    )
