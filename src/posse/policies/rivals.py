"""Algorithms of other papers for tasks side by side, composed of an estimator, a rule and a schedule."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

from posse.core.fading import Fading
from posse.core.protocols import Schedule
from posse.estimators import (
    Armul,
    Clubs,
    EmpiricalPrior,
    HierarchicalPrior,
    SpectralShrinkage,
    TraceNorm,
)
from posse.policies.learning import Learning
from posse.policies.rules import UCB, Greedy, Thompson
from posse.policies.schedules import DoublyExponential, Geometric


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceNormGreedy(Learning):
    """Greedy play by least squares with a trace-norm penalty, which needs no rank (Cella et al., 2023).

    The paper estimates anew in every round; here by a schedule, since consecutive estimates hardly differ.

    Parameters
    ----------
    scale : float
        c in the penalty, above 0; see `TraceNorm`.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.

    References
    ----------
    Cella, Lounici, Pacreau and Pontil, Multi-task representation learning with stochastic linear bandits,
    AISTATS 2023.
    """

    scale: float = TraceNorm.scale
    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float | Fading = "all"

    rule = Greedy()

    @cached_property
    def estimator(self) -> TraceNorm:
        """Least squares with a penalty on the sum of singular values."""
        return TraceNorm(scale=self.scale)


@dataclass(frozen=True, repr=False)
class ArmulGreedy(Learning):
    """Greedy play by ARMUL's estimate, in the epochs of `MLinGreedy` (Duan and Wang, 2023).

    ARMUL is an estimator and has no bandit of its own. In place of low-rank least squares in `MLinGreedy` it
    makes an algorithm for tasks that are nearly of low rank, or of which some are outliers.

    Parameters
    ----------
    rank : int
        k, of the prototypes: it has to be told.
    scale : float
        C in the penalty, not negative; see `Armul`.
    schedule : Schedule
        When to re-estimate; the epochs of the ICLR paper by default.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: the last epoch alone by default, as in `MLinGreedy`.

    References
    ----------
    Duan and Wang, Adaptive and robust multi-task learning, Annals of Statistics 51(5), 2023.
    """

    rank: int
    _: KW_ONLY
    scale: float = Armul.scale
    schedule: Schedule = field(default_factory=DoublyExponential)
    memory: str | float | Fading = "epoch"

    rule = Greedy()

    @cached_property
    def estimator(self) -> Armul:
        """Tasks pulled towards prototypes of low rank."""
        return Armul(rank=self.rank, scale=self.scale)


@dataclass(frozen=True, repr=False)
class SpectralGreedy(Learning):
    """Greedy play by the spectral method of Tian, Gu and Feng (2025), in the epochs of `MLinGreedy`.

    The method is an estimator and has no bandit of its own; in place of low-rank least squares in
    `MLinGreedy` it makes an algorithm that is never much worse than each task alone.

    Parameters
    ----------
    rank : int or "auto"
        k; "auto" counts singular values that stand out of the noise.
    scale : float
        C in the penalty, not negative; see `SpectralShrinkage`.
    outliers : float
        The share of tasks, in [0, 0.5], that may have nothing to do with the others.
    schedule : Schedule
        When to re-estimate; the epochs of the ICLR paper by default.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: the last epoch alone by default, as in `MLinGreedy`.

    References
    ----------
    Tian, Gu and Feng, Learning from similar linear representations: adaptivity, minimaxity, and robustness,
    JMLR 26(187), 2025.
    """

    rank: int | str = "auto"
    _: KW_ONLY
    scale: float = SpectralShrinkage.scale
    outliers: float = 0.0
    schedule: Schedule = field(default_factory=DoublyExponential)
    memory: str | float | Fading = "epoch"

    rule = Greedy()

    @cached_property
    def estimator(self) -> SpectralShrinkage:
        """Tasks pulled towards the leading singular vectors of what they find alone."""
        return SpectralShrinkage(rank=self.rank, scale=self.scale, outliers=self.outliers)


@dataclass(frozen=True, kw_only=True, repr=False)
class HierThompson(Learning):
    """Thompson sampling from tasks around a common mean, a prior that is told (HierTS, Hong et al., 2022).

    HierTS draws the mean once and all tasks given that draw; here every task draws from its own posterior, in
    which the mean's uncertainty counts. For a task by itself both are the same law.

    Parameters
    ----------
    centre : float
        The length that the common mean is expected to have, above 0.
    spread : float
        The distance from it that tasks are expected to have, not negative.
    noise : float
        Variance of the rewards' noise, above 0.
    scale : float
        How many times the posterior's standard deviation the draws have.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.

    References
    ----------
    Hong, Kveton, Zaheer and Ghavamzadeh, Hierarchical Bayesian bandits, AISTATS 2022.
    """

    centre: float = 1.0
    spread: float = 1.0
    noise: float = 1.0
    scale: float = 1.0
    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float | Fading = "all"
    prompt: bool | None = None

    @cached_property
    def estimator(self) -> HierarchicalPrior:
        """The exact posterior under the prior."""
        return HierarchicalPrior(centre=self.centre, spread=self.spread, noise=self.noise)

    @cached_property
    def rule(self) -> Thompson:
        """Thompson sampling at the scale."""
        return Thompson(scale=self.scale)


@dataclass(frozen=True, kw_only=True, repr=False)
class _EmpiricalBayes(Learning):
    """What ebmTS and ebmUCB have in common: a prior whose covariance is learned whole."""

    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float | Fading = "all"
    prompt: bool | None = None

    estimator = EmpiricalPrior()


@dataclass(frozen=True, kw_only=True, repr=False)
class EbmThompson(_EmpiricalBayes):
    """Thompson sampling from a prior of learned mean and covariance (ebmTS, Jiang and Zhu, 2025).

    Parameters
    ----------
    scale : float
        How many times the posterior's standard deviation the draws have.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.

    References
    ----------
    Jiang and Zhu, Empirical Bayesian multi-bandit learning, arXiv 2510.26284, 2025.
    """

    scale: float = 1.0

    @cached_property
    def rule(self) -> Thompson:
        """Thompson sampling at the scale."""
        return Thompson(scale=self.scale)


@dataclass(frozen=True, kw_only=True, repr=False)
class EbmUCB(_EmpiricalBayes):
    """Optimism by a prior of learned mean and covariance (ebmUCB, Jiang and Zhu, 2025).

    Parameters
    ----------
    scale : float
        How many standard deviations to be optimistic by.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.

    References
    ----------
    Jiang and Zhu, Empirical Bayesian multi-bandit learning, arXiv 2510.26284, 2025.
    """

    scale: float = 2.0

    @cached_property
    def rule(self) -> UCB:
        """Upper confidence bounds at the scale."""
        return UCB(scale=self.scale)


@dataclass(frozen=True, kw_only=True, repr=False)
class Club(Learning):
    """Optimism in clusters of tasks, which are all one until they differ (CLUB, Gentile et al., 2014).

    The paper serves one task in each round and looks at its edges then; here all tasks play side by side, and
    edges and estimates are looked at by a schedule.

    Parameters
    ----------
    scale : float
        By how much to be optimistic: alpha in alpha sqrt(x'M^-1 x log(1 + n)).
    separation : float
        How many times their expected errors two tasks must be apart to be separated, above 0.
    schedule : Schedule
        When to look at edges and re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the estimate of its own task at once; None leaves it to the driver.

    References
    ----------
    Gentile, Li and Zappella, Online clustering of bandits, ICML 2014.
    """

    scale: float = 0.5
    separation: float = Clubs.separation
    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float | Fading = "all"
    prompt: bool | None = None

    @cached_property
    def estimator(self) -> Clubs:
        """Ridge regression in clusters."""
        return Clubs(separation=self.separation)

    @cached_property
    def rule(self) -> UCB:
        """Upper confidence bounds at the scale."""
        return UCB(scale=self.scale)
