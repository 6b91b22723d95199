"""The learned prior: tasks that share as much as their rewards say they do."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from posse.core.estimate import Certificate, ConvergenceWarning, Estimate
from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.evidence import FactorModel
from posse.estimators.factor_prior.learning import Known, Learned, learn_prior
from posse.estimators.factor_prior.level import mean_level, statistics_around
from posse.estimators.factor_prior.posterior import FactorPosterior
from posse.estimators.factor_prior.sampling import averaged_moments
from posse.estimators.factor_prior.units import Units
from posse.estimators.gaussian_prior import GaussianPrior
from posse.estimators.mixture_prior import MixturePrior
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_choice, check_integer, check_number
from posse.numerics.linalg import WIDE

PLAIN = Units(0, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorEstimate(Estimate):
    """An estimate by `FactorPrior`, with the prior that it learned.

    `theta` and the covariance are averages over priors, where rewards are few; `basis`, `spectrum`,
    `outside`, `mean`, `noise`, `scales` and `evidence` are those of the likeliest prior.

    Attributes
    ----------
    theta : (T, d)
        Posterior means.
    basis : (d, k)
        U, orthonormal columns.
    root, covariance : (T, d, d)
        Of the posterior, which counts that U is an estimate too; made when asked for.
    certificate : Certificate
        Its objective is minus twice the evidence, up to a constant.
    spectrum : (k,)
        l, the prior variance along the columns of the basis, largest first.
    outside : float
        tau, the prior variance along all other directions; its mean, where features have units of their own.
    mean : (d,)
        mu, the prior mean.
    noise : float
        s2, the noise variance of rewards of most tasks. Where tasks have units of their own it is in these,
        as `spectrum`, `outside` and `mean` are.
    noises : (T,)
        The noise variance of each task's rewards.
    alone : (T,)
        The probability that a task has nothing in common with the others; so far its estimate is its own. To
        be read where the rank is above 0: else nobody shares a direction, and it only compares one strength
        for all with one of the task's own.
    scales : (T,)
        q_t, how many times the prior variance of most tasks a task has: far above 1 if it is unlike them.
    evidence : float
        log p(rewards) under the prior; the scales of heavy tails are integrated out by Laplace's method.
    """

    spectrum: Array
    outside: float
    mean: Array
    noise: float
    scales: Array
    evidence: float
    model: FactorModel | None = field(default=None, repr=False)
    noises: Array = field(default_factory=lambda: np.ones(0), repr=False)
    alone: Array = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def rank(self) -> int:
        """The number of shared directions, k."""
        return len(self.spectrum)

    @property
    def prior(self) -> MixturePrior:
        """What is known of a task that was never seen: itself an estimator, for new tasks.

        A new task may lie in what the others share, be larger than most of them, or stand alone, and be as
        loud as any of them: each has a component of the mixture. Without any data it is N(mean, I).
        """
        if isinstance(self.posterior, FactorPosterior):
            return self.posterior.prior()
        dim = len(self.mean)
        return MixturePrior(
            weights=np.ones(1),
            means=self.mean[None],
            covariances=np.eye(dim)[None],
            noises=np.ones(1),
        )


@dataclass(frozen=True, kw_only=True)
class FactorPrior:
    """Learn across tasks a prior theta_t ~ N(mu, q_t S), S = U diag(l) U' + tau (I - UU').

    All of it is learned from the rewards of all tasks: k shared directions U and the variances l along them,
    tau in all others, the noise of each task, and who shares nothing. Each task's estimate is then its
    posterior, under the likeliest prior or averaged over likely ones.
    tau says how far to trust the representation: at 0 tasks lie in it, as the paper assumes; with no shared
    direction (k = 0) each task is on its own, with a ridge that all tasks learn together.

    Parameters
    ----------
    rank : "auto" or int
        k. "auto" takes the rank with the largest evidence less a price for its parameters, below T or
        fewer (see `largest_rank`), and stands back to 0 where tasks have nothing in common. A number is
        taken as it is.
    mean : "zero", "learned" or "level"
        mu. A shared mean is also found as one of the shared directions; a mean of its own pays where
        tasks are much closer to it than it is to 0. With "level" it is 0 but for a constant feature, if
        there is one: there it is the mean of all rewards, as for rewards far from 0 in logs.
    degrees : float
        nu of Student's t, for tails: 1 / q_t ~ Gamma(nu/2, nu/2), so that a task unlike the others does not
        spoil the prior for them. Infinity makes tails Gaussian and all q_t 1. With few tasks tails are
        lighter, nu = 2 k d / (T - k) at least: else a prior could follow k tasks and call the rest outliers.
        Averages over priors also try lighter ones, and so does a fit to 2000 tasks or more.
    hard : bool
        Fix tau = 0 where there are shared directions: no task that shares them leaves them. "auto" may then
        find rank 0, where there are none.
    noise : "own" or "shared"
        Whether each task's rewards have a noise variance of their own, learned with a prior across tasks,
        or all have the same.
    alone : "auto" or bool
        Whether a task may have nothing in common with the others. Its prior is then a mixture of the shared
        one and one of its own, N(mu, c_t I), weighed by how likely both make its rewards; and who stands
        alone has no part in what the others share. "auto" is yes, unless the rank is told.
    sweeps : int
        How many draws of the prior to average over, by Gibbs sampling, where rewards are few; fewer where
        there are more rewards, and none where there are many, or very many tasks. At 0 the likeliest prior is
        taken for certain.
    seed : int
        Of the random numbers of these draws: two fits to the same data are equal.

    Examples
    --------
    >>> from posse import GaussianProblem
    >>> problem = GaussianProblem.draw(n_tasks=40, dim=8, rank=2, covariance="unit", seed=0)
    >>> offered = problem.actions(100, np.random.default_rng(0))
    >>> arms = offered.arms[:, :, 0]
    >>> rewards = np.vecdot(arms, problem.theta) + np.random.default_rng(1).standard_normal((100, 40))
    >>> estimate = FactorPrior().fit(GramStatistics.of(arms, rewards))
    >>> estimate.rank
    2
    >>> estimate.prior.covariance.shape, estimate.covariance.shape
    ((8, 8), (40, 8, 8))

    Notes
    -----
    The evidence is closed form in each task's eigenbasis, which is found once; L-BFGS climbs it, with the
    noise variance eliminated, in coordinates of equal curvature. See the page "The learned prior".
    With one task there is nothing to share: k = 0 whatever the rank. Beyond 4096 tasks so many of them choose
    the rank, and all refine what they found.
    """

    rank: int | str = "auto"
    mean: str = "zero"
    degrees: float = 3.0
    hard: bool = False
    noise: str = "own"
    alone: bool | str = "auto"
    sweeps: int = 120
    seed: int = 0

    gives_covariance = True

    def __post_init__(self) -> None:
        if isinstance(self.rank, str):
            check_choice("`rank` of FactorPrior, if not an integer,", self.rank, ["auto"])
        else:
            check_integer("`rank` of FactorPrior", self.rank, 0)
        check_choice("`mean` of FactorPrior", self.mean, ["zero", "learned", "level"])
        check_choice("`noise` of FactorPrior", self.noise, ["own", "shared"])
        if isinstance(self.alone, str):
            check_choice("`alone` of FactorPrior, if neither True nor False,", self.alone, ["auto"])
        check_integer("`sweeps` of FactorPrior", self.sweeps, 0)
        check_integer("`seed` of FactorPrior", self.seed, 0)
        if self.degrees != np.inf:
            check_number("`degrees` of FactorPrior", self.degrees, 0.0, open_low=True)

    @property
    def may_stand_alone(self) -> bool:
        """Whether a task may have nothing in common with the others."""
        return self.rank == "auto" if isinstance(self.alone, str) else self.alone

    def fit(self, statistics: GramStatistics) -> FactorEstimate:
        """Learn the prior and estimate theta of every task; without any data the prior is N(0, I).

        Warns
        -----
        NoDataWarning
            If there is not a single row.
        """
        return self._fit(statistics, None)

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> FactorEstimate:
        """Learn from new statistics, starting from what an earlier fit to the same tasks found.

        Tasks that were added since stand at the end of the statistics. With 256 features or more it takes
        a few steps and no more; the certificate says if they were enough.
        """
        if not isinstance(previous, FactorEstimate) or previous.model is None:
            return self._fit(statistics, None)
        model, n_new = previous.model, statistics.n_tasks - len(previous.model.log_scales)
        if len(model.mean) != statistics.dim or n_new < 0:
            raise ValueError(
                f"a refit must be to the same features, and tasks or more, {statistics.moment.shape}. "
                f"Got an estimate of {(len(model.log_scales), len(model.mean))}."
            )
        known = Known(
            replace(model, log_scales=np.append(model.log_scales, np.zeros(n_new))),
            np.append(previous.noises / previous.noise, np.ones(n_new)),
            np.append(previous.alone, np.zeros(n_new)),
        )
        assert isinstance(previous.posterior, FactorPosterior)
        return self._fit(statistics, known, previous.posterior.units)

    def _fit(self, statistics: GramStatistics, known: Known | None, before: Units = PLAIN) -> FactorEstimate:
        n_tasks, dim = statistics.n_tasks, statistics.dim
        if not isinstance(self.rank, str):
            most = f"min(dim={dim}, n_tasks={n_tasks})"
            check_integer("`rank` of FactorPrior", self.rank, 0, min(dim, n_tasks), high_name=most)
        check_statistics(statistics, "FactorPrior")
        offset, whole = mean_level(statistics) if self.mean == "level" else np.zeros(dim), statistics
        statistics = statistics_around(whole, offset)
        if not (statistics.square.any() and statistics.gram.any()):
            return _nothing_learned(whole, offset)
        units = Units.of(statistics)
        # with few features more threads than one only get in each other's way
        with _controller().limit(limits=1 if dim < WIDE else None):
            if known is not None:
                known = replace(known, model=units.model_in(known.model, before))
            learned = learn_prior(units.statistics_in(statistics), self, known)
            estimate = _estimate(learned, units, self, offset)
        found = learned.found
        if not found.converged and known is None:  # a refit is one step of many, and its certificate tells
            warnings.warn(
                f"FactorPrior did not converge: slope {found.slope:.1e} after {found.n_iter} steps.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return estimate


@cache
def _controller() -> ThreadpoolController:
    """Return what limits threads; to look for their libraries takes milliseconds."""
    return ThreadpoolController()


def _estimate(learned: Learned, units: Units, settings: FactorPrior, offset: Array) -> FactorEstimate:
    evidence, found, solved = learned.evidence, learned.found, learned.solved
    model, standing = found.model, learned.standing
    means, averaged = evidence.means(model, solved), averaged_moments(learned, settings)
    if averaged is not None:
        standing = replace(standing, shift=standing.shift + means - averaged.means)
        means, learned = averaged.means, replace(learned, standing=standing)
    noise, ratio = evidence.noise(solved), float(np.exp(model.log_ratio))
    size = np.broadcast_to(units.size, evidence.dim)
    basis, strengths, _ = np.linalg.svd(size[:, None] * model.factors, full_matrices=False)
    outside = noise * ratio * float(np.mean(size**2))
    posterior = replace(FactorPosterior.of(learned, units, averaged), offset=offset)
    theta = learned.units[:, None] * units.size * (means + standing.alone[:, None] * standing.shift)
    theta = offset + theta
    theta[evidence.statistics.count == 0] = posterior.newcomer().theta
    units_cost = float(evidence.statistics.count @ np.log(learned.units))
    units_cost += evidence.total * units.rewards * float(np.log(2.0))
    return FactorEstimate(
        theta=theta,
        basis=basis,
        certificate=Certificate(found.deviance, found.slope, found.n_iter, found.converged),
        posterior=posterior,
        spectrum=noise * strengths**2 + outside,
        outside=outside,
        mean=offset + units.size * model.mean,
        noise=float(np.ldexp(noise, 2 * units.rewards)),
        noises=posterior.variances,
        alone=standing.alone,
        scales=np.exp(model.log_scales),
        evidence=evidence.log_evidence(model, solved) - units_cost,
        model=model,
    )


def _nothing_learned(statistics: GramStatistics, offset: Array) -> FactorEstimate:
    """Return the posterior under N(offset, I): rewards, if there are any, or features tell nothing."""
    n_tasks, dim = statistics.n_tasks, statistics.dim
    estimate = GaussianPrior(mean=offset, covariance=np.eye(dim), noise=1.0).fit(statistics)
    return FactorEstimate(
        theta=estimate.theta,
        basis=np.zeros((dim, 0)),
        posterior=estimate.posterior,
        spectrum=np.zeros(0),
        outside=1.0,
        mean=offset,
        noise=1.0,
        noises=np.ones(n_tasks),
        alone=np.zeros(n_tasks),
        scales=np.ones(n_tasks),
        evidence=float(-0.5 * statistics.count.sum() * np.log(2 * np.pi)),
    )
