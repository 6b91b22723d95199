"""Policies that learn: an estimator, a rule, a schedule and a memory, put together."""

from __future__ import annotations

import warnings
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions
from posse.core.errors import NoDataWarning
from posse.core.estimate import WITH_COVARIANCE, Estimate
from posse.core.fading import Fading
from posse.core.posterior import Beliefs, KnownPosterior, MovingPosterior
from posse.core.protocols import Estimator, GivesChances, Refits, Rule, Schedule, keeps_pace
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray, IntArray, check_choice, check_number
from posse.policies.rules import Greedy
from posse.policies.schedules import Geometric


@dataclass(frozen=True, eq=False)
class LearningState:
    """What a learning policy knows.

    Attributes
    ----------
    statistics : GramStatistics
        The data that it remembers.
    estimate : Estimate
        What it made of them.
    moved : Estimate, optional
        What rewards that came since have made of that, each for its own task.
    """

    statistics: GramStatistics
    estimate: Estimate
    moved: MovedEstimate | None = None

    @property
    def current(self) -> Estimate:
        """The estimate that is played by."""
        return self.estimate if self.moved is None else self.moved


@dataclass(frozen=True, eq=False, kw_only=True)
class MovedEstimate(Estimate):
    """An estimate that single rewards have moved.

    Attributes
    ----------
    beliefs : Beliefs
        The posteriors of all tasks, ready to be moved on.
    """

    beliefs: Beliefs

    @classmethod
    def of(cls, beliefs: Beliefs) -> MovedEstimate:
        """Return the estimate of given beliefs."""
        root = beliefs.deviation[:, None, None] * beliefs.root
        return cls(theta=beliefs.theta, posterior=KnownPosterior(root), beliefs=beliefs)


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
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted. A number g in ]0, 1] is the discount of a round, `Fading(g)`: with every round
        of its own a task forgets that share of what it knew, however rounds are cut into blocks.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once, while the prior and all other
        tasks wait for the next update. None leaves it to the driver: a `Learner` does, the simulator does
        not, since that takes the time of a call for every round.
    """

    estimator: Any
    rule: Any
    schedule: Any
    memory: Any
    prompt: Any = None

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if isinstance(self.memory, str):
            check_choice(f"`memory` of {owner}, if not a number,", self.memory, ["all", "epoch"])
        elif not isinstance(self.memory, Fading):
            check_number(f"`memory` of {owner}", self.memory, 0.0, 1.0, open_low=True)
        if self.prompt is not None and not isinstance(self.prompt, bool):
            raise ValueError(f"`prompt` of {owner} must be True, False or None. Got {self.prompt!r}.")
        if not callable(getattr(self.schedule, "blocks", None)) or isinstance(self.schedule, type):
            raise ValueError(f"`schedule` of {owner} must be one, such as Every(100). Got {self.schedule!r}.")
        estimator, needed = self.estimator, getattr(self.rule, "needs_covariance", False)
        if needed and not getattr(estimator, "gives_covariance", False):
            raise ValueError(
                f"{self.rule} needs the covariance of estimates, which {estimator} does not give. "
                f"These do: {WITH_COVARIANCE}."
            )
        if self.prompt and not getattr(estimator, "gives_covariance", False):
            raise ValueError(
                f"`prompt` of {owner} must be False without a posterior for each task, and {estimator} "
                f"gives none. Got True. These give one: {WITH_COVARIANCE}."
            )

    def __repr__(self) -> str:
        """Return the call that makes the policy: what is not as usual."""
        told = []
        for item in fields(self):  # type: ignore[arg-type]
            usual = item.default if item.default_factory is MISSING else item.default_factory()
            value = getattr(self, item.name)
            if usual is MISSING or value != usual:
                told.append(f"{item.name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"

    @cached_property
    def statistics(self) -> Any:
        """How blocks are summarised."""
        if isinstance(self.memory, Fading):
            return self.memory
        return GramStatistics if isinstance(self.memory, str) else Fading(float(self.memory))

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return the schedule's blocks."""
        blocks: tuple[int, ...] = self.schedule.blocks(horizon)
        return blocks

    def init(self, n_tasks: int, dim: int) -> LearningState:
        """Return the state before the first round: the estimate from no data."""
        return self._without_data(self.statistics.zeros(n_tasks, dim))

    def select(self, state: LearningState, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Apply the rule to the current estimate."""
        choice: NDArray[Any] = self.rule.choose(state.current, actions, rng)
        return choice

    def theta_of(self, state: LearningState) -> Array | None:
        """Return the estimate, if the rule is to play what looks best, and not one that derives from it."""
        return state.current.theta if type(self.rule) is Greedy else None

    def update(self, state: LearningState, statistics: GramStatistics) -> LearningState:
        """Remember a block and estimate anew, or bring the estimate up to date.

        Tasks that were added stand at the end of the statistics.
        """
        if isinstance(self.statistics, Fading):
            statistics = self.statistics.taken(statistics)
        known = state.statistics.padded(statistics.n_tasks)
        remembered = statistics if self.memory == "epoch" else known + statistics
        if not remembered.count.any():
            return self._without_data(remembered)
        if self._refits is None:
            return LearningState(remembered, self.estimator.fit(remembered))
        added = statistics if self.memory == "all" else None
        return LearningState(remembered, self._refits.refit(remembered, state.estimate, added))

    def move(self, state: LearningState, summary: GramStatistics) -> LearningState:
        """Condition the posterior of every task on further rounds of its own, the prior being as it is."""
        return replace(state, moved=MovedEstimate.of(self.beliefs(state).given(summary)))

    def beliefs(self, state: LearningState) -> Beliefs:
        """Return the posteriors of all tasks, as they stand."""
        if state.moved is not None:
            return state.moved.beliefs
        return self._posterior(state).beliefs(state.estimate.theta)

    def newcomer(self, state: LearningState) -> Beliefs:
        """Return what is believed of a task that was never seen."""
        return self._posterior(state).newcomer()

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return the probability with which the rule plays every arm, (m, K)."""
        return self._rule_with_chances.chances(beliefs, tasks, arms, available, rng)

    @cached_property
    def _rule_with_chances(self) -> GivesChances:
        if not (isinstance(self.rule, GivesChances) and keeps_pace(self.rule, "chances", "choose")):
            raise ValueError(
                "a policy must have a rule that knows its probabilities: Greedy, Thompson and UCB do. "
                f"Got {self.rule!r}."
            )
        return self.rule

    def _posterior(self, state: LearningState) -> MovingPosterior:
        posterior = state.estimate.posterior
        if not isinstance(posterior, MovingPosterior):
            raise ValueError(
                "a policy that learns from single rows must have a posterior for each task, as these give: "
                f"{WITH_COVARIANCE}. Got {self.estimator!r}."
            )
        return posterior

    def _without_data(self, nothing: GramStatistics) -> LearningState:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoDataWarning)
            return LearningState(nothing, self.estimator.fit(nothing))

    @cached_property
    def _refits(self) -> Refits | None:
        return self.estimator if isinstance(self.estimator, Refits) else None


@dataclass(frozen=True, kw_only=True, repr=False)
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
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.

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
    memory: str | float | Fading = "all"
    prompt: bool | None = None
