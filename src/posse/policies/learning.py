"""Learning policies: an estimator, a rule, a schedule and a memory. The named algorithms are presets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posse.core.actions import Actions
from posse.core.estimate import Estimate
from posse.core.protocols import Estimator, Refits, Rule, Schedule
from posse.core.statistics import GramStatistics
from posse.estimators import FactorPrior, LowRank, OracleBasis, Ridge
from posse.numerics.checks import Array, check_choice, check_number
from posse.policies.rules import UCB, Greedy, Thompson
from posse.policies.schedules import DoublyExponential, Geometric


@dataclass(frozen=True, eq=False)
class LearningState:
    """What a learning policy knows: the data it remembers and the estimate it plays by."""

    statistics: GramStatistics
    estimate: Estimate


@dataclass(frozen=True, kw_only=True)
class LearningPolicy:
    """Play by an estimate, and make a new one at the end of every block.

    Parameters
    ----------
    estimator : Estimator
        What is learned from statistics.
    rule : Rule
        How the estimate becomes a choice.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch" or float
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted. A number g in ]0, 1] is the discount of a round: after a block in which
        the busiest task played n rounds, what was known before counts g^n. Rounds of one block count
        equally.

    Examples
    --------
    >>> policy = LearningPolicy(estimator=Ridge(penalty=1.0), schedule=Geometric(first=5, ratio=2))
    >>> policy.blocks(20, n_tasks=3, dim=2)
    (5, 5, 10)
    """

    estimator: Estimator
    rule: Rule = field(default_factory=Greedy)
    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float = "all"
    statistics: ClassVar = GramStatistics

    def __post_init__(self) -> None:
        if isinstance(self.memory, str):
            check_choice("`memory` of LearningPolicy, if not a number,", self.memory, ["all", "epoch"])
        else:
            check_number("`memory` of LearningPolicy", self.memory, 0.0, 1.0, open_low=True)

        needed = getattr(self.rule, "needs_covariance", False)
        if needed and not getattr(self.estimator, "gives_covariance", False):
            raise ValueError(
                f"{self.rule} needs the covariance of estimates, which {self.estimator} does not give. "
                "FactorPrior, OracleBasis and Ridge with a penalty do."
            )

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return the schedule's blocks."""
        return self.schedule.blocks(horizon)

    def init(self, n_tasks: int, dim: int) -> LearningState:
        """Return the state before the first round: the estimate from no data."""
        nothing = GramStatistics.zeros(n_tasks, dim)
        return LearningState(nothing, self.estimator.fit(nothing))

    def select(self, state: LearningState, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Apply the rule to the current estimate."""
        return self.rule.choose(state.estimate, actions, rng)

    def theta_of(self, state: LearningState) -> Array | None:
        """Return the estimate, if the rule is to play what looks best, and not one that derives from it."""
        return state.estimate.theta if type(self.rule) is Greedy else None

    def update(self, state: LearningState, statistics: GramStatistics) -> LearningState:
        """Remember a block and estimate anew, or bring the estimate up to date."""
        remembered = self._recall(state.statistics, statistics)
        if self._refits is None:
            return LearningState(remembered, self.estimator.fit(remembered))
        added = statistics if self.memory == "all" else None
        return LearningState(remembered, self._refits.refit(remembered, state.estimate, added))

    @cached_property
    def _refits(self) -> Refits | None:
        return self.estimator if isinstance(self.estimator, Refits) else None

    def _recall(self, old: GramStatistics, new: GramStatistics) -> GramStatistics:
        if self.memory == "epoch":
            return new
        if self.memory == "all":
            return old + new
        return old.discount(float(self.memory) ** float(new.count.max())) + new


def MLinGreedy(rank: int, *, penalty: float = 0.0) -> LearningPolicy:
    """Return Algorithm 1 of the paper: low-rank least squares, greedy, doubly exponential epochs.

    Each epoch is played by the estimate from the epoch before it alone. In the first, theta is zero
    and arms are chosen at random. The paper has no penalty; where an epoch is short for the number of
    features, a small one keeps the estimate stable.
    """
    estimator = LowRank(rank=rank, penalty=penalty)
    return LearningPolicy(estimator=estimator, schedule=DoublyExponential(), memory="epoch")


def NaiveGreedy(*, penalty: float = 0.0) -> LearningPolicy:
    """Return the paper's baseline: MLinGreedy with ordinary least squares, each task alone.

    The paper does not state the baseline's epochs; these are MLinGreedy's, and so is the rule that
    an epoch learns from the one before it alone.
    """
    return LearningPolicy(estimator=Ridge(penalty=penalty), schedule=DoublyExponential(), memory="epoch")


def IndependentGreedy(*, schedule: Schedule = Geometric()) -> LearningPolicy:  # noqa: B008
    """Return the baseline strengthened: ridge with a learned penalty, all data, frequent updates."""
    return LearningPolicy(estimator=Ridge(), schedule=schedule)


def OracleGreedy(basis: ArrayLike) -> LearningPolicy:
    """Return IndependentGreedy inside the true representation: what is left to gain."""
    return LearningPolicy(estimator=OracleBasis(basis=np.asarray(basis, dtype=np.float64)))


def SharedGreedy(
    rank: int | str = "auto",
    *,
    schedule: Schedule = Geometric(),  # noqa: B008
    memory: str | float = "all",
) -> LearningPolicy:
    """Return greedy play by the learned prior: every task learns from all others, as far as that helps.

    Enough where contexts are diverse. `SharedThompson` explores too.
    """
    return LearningPolicy(estimator=FactorPrior(rank=rank), schedule=schedule, memory=memory)


def SharedThompson(
    rank: int | str = "auto",
    *,
    scale: float = 1.0,
    schedule: Schedule = Geometric(),  # noqa: B008
    memory: str | float = "all",
) -> LearningPolicy:
    """Return Thompson sampling from the learned prior's posterior, on finite sets and ellipsoids alike."""
    rule = Thompson(scale=scale)
    return LearningPolicy(estimator=FactorPrior(rank=rank), rule=rule, schedule=schedule, memory=memory)


def SharedUCB(
    rank: int | str = "auto",
    *,
    scale: float = 2.0,
    schedule: Schedule = Geometric(),  # noqa: B008
    memory: str | float = "all",
) -> LearningPolicy:
    """Return optimistic play by the learned prior's posterior, on finite action sets."""
    rule = UCB(scale=scale)
    return LearningPolicy(estimator=FactorPrior(rank=rank), rule=rule, schedule=schedule, memory=memory)


def IndependentThompson(*, scale: float = 1.0) -> LearningPolicy:
    """Return Thompson sampling with each task alone: ridge with a learned penalty, all data."""
    return LearningPolicy(estimator=Ridge(), rule=Thompson(scale=scale))


def IndependentUCB(*, scale: float = 2.0) -> LearningPolicy:
    """Return optimistic play with each task alone: ridge with a learned penalty, all data."""
    return LearningPolicy(estimator=Ridge(), rule=UCB(scale=scale))


def OracleThompson(basis: ArrayLike, *, scale: float = 1.0) -> LearningPolicy:
    """Return Thompson sampling inside the true representation, on finite sets and ellipsoids alike."""
    estimator = OracleBasis(basis=np.asarray(basis, dtype=np.float64))
    return LearningPolicy(estimator=estimator, rule=Thompson(scale=scale))
