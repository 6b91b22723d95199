"""Policies that learn: an estimator, a rule, a schedule and a memory, put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions
from posse.core.estimate import WITH_COVARIANCE, Estimate
from posse.core.protocols import Estimator, Refits, Rule, Schedule
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, check_choice, check_number
from posse.policies.rules import Greedy
from posse.policies.schedules import Geometric


@dataclass(frozen=True, eq=False)
class LearningState:
    """What a learning policy knows: the data it remembers and the estimate it plays by."""

    statistics: GramStatistics
    estimate: Estimate


class Learning:
    """Play by an estimate, and make a new one at the end of every block.

    `LearningPolicy` is told its four parts; the named algorithms, such as `MLinGreedy`, bring theirs.

    Attributes
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
    """

    estimator: Any
    rule: Any
    schedule: Any
    memory: Any
    statistics: ClassVar = GramStatistics

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if isinstance(self.memory, str):
            check_choice(f"`memory` of {owner}, if not a number,", self.memory, ["all", "epoch"])
        else:
            check_number(f"`memory` of {owner}", self.memory, 0.0, 1.0, open_low=True)
        estimator, needed = self.estimator, getattr(self.rule, "needs_covariance", False)
        if needed and not getattr(estimator, "gives_covariance", False):
            raise ValueError(
                f"{self.rule} needs the covariance of estimates, which {estimator} does not give. "
                f"These do: {WITH_COVARIANCE}."
            )

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return the schedule's blocks."""
        blocks: tuple[int, ...] = self.schedule.blocks(horizon)
        return blocks

    def init(self, n_tasks: int, dim: int) -> LearningState:
        """Return the state before the first round: the estimate from no data."""
        nothing = GramStatistics.zeros(n_tasks, dim)
        return LearningState(nothing, self.estimator.fit(nothing))

    def select(self, state: LearningState, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Apply the rule to the current estimate."""
        choice: NDArray[Any] = self.rule.choose(state.estimate, actions, rng)
        return choice

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


@dataclass(frozen=True, kw_only=True)
class LearningPolicy(Learning):
    """A learning policy of your own: an estimator, and what else is not to be as usual.

    Parameters
    ----------
    estimator : Estimator
        What is learned from statistics.
    rule : Rule
        How the estimate becomes a choice; `Greedy` by default.
    schedule : Schedule
        When to re-estimate; `Geometric` by default.
    memory : "all", "epoch" or float
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.

    Examples
    --------
    >>> from posse import Ridge
    >>> policy = LearningPolicy(estimator=Ridge(penalty=1.0), schedule=Geometric(first=5, ratio=2))
    >>> policy.blocks(20, n_tasks=3, dim=2)
    (5, 5, 10)
    """

    estimator: Estimator
    rule: Rule = field(default_factory=Greedy)
    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float = "all"
