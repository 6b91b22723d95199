"""The learned prior over a stream: learned from finished tasks, and doubted where newcomers differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posse.core.reservoir import Reservoir
from posse.core.statistics import GramStatistics
from posse.core.streams import Course
from posse.estimators import MixturePrior
from posse.policies.learning import Learning, LearningPolicy, LearningState
from posse.policies.mixture_thompson import MixtureThompson
from posse.policies.rules import ByActions, Thompson

# The prior is learned anew when so many times as many tasks have ended, or after so many at the most.
RATIO, MOST_BETWEEN = 1.2, 1000
# And as soon as more tasks than expected did not fit it than this times the root of their number.
MISFITS = 0.25
# A task does not fit if it stands alone with more than this probability.
APART = 0.5


@dataclass(frozen=True, eq=False)
class Carried:
    """What finished tasks have taught.

    Attributes
    ----------
    course : Course
    finished : Reservoir
        Statistics of finished tasks.
    prior : MixturePrior, optional
        What they say of a newcomer.
    learned_at : int
        How many tasks had ended when it was learned.
    misfits : float
        How many have ended since that did not fit it, beyond the share that it says; never below 0.
    """

    course: Course
    finished: Reservoir
    prior: MixturePrior | None = None
    learned_at: int = 0
    misfits: float = 0.0

    @property
    def due(self) -> bool:
        """Whether the prior is to be learned anew."""
        seen, last = self.finished.n_seen, self.learned_at
        later = min(math.ceil(RATIO * last), last + MOST_BETWEEN)
        return seen >= max(last + 1, later) or self.misfits > MISFITS * math.sqrt(seen)


class CarriesPrior(Learning):
    """A learning policy that, on a stream, learns its prior from finished tasks and plays newcomers by it.

    A newcomer may be like those before it or stand alone; its own rewards decide. How uncertain the prior is
    counts: with few tasks so far newcomers explore more. Groups that start before any has ended are played as
    if each were all there is; tasks of a later group learn from those that have ended, not from each other.
    """

    def begin(self, course: Course) -> Carried:
        """Return what is known before the first task: nothing."""
        first = self.blocks(course.rounds, course.group_size, course.dim)[0]
        if course.rounds <= first:
            raise ValueError(
                f"tasks of a stream must not end before the first update of {type(self).__name__}, after "
                f"{first} rounds. Got tasks of {course.rounds}."
            )
        return Carried(course, Reservoir.empty(course.dim))

    def next_policy(self, memory: Carried, number: int, rng: np.random.Generator) -> Any:
        """Return the policy of a group: by the prior of finished tasks, once there are some."""
        if memory.prior is None:
            return self
        rule = self.rule
        if not memory.course.finite and isinstance(rule, ByActions):
            rule = rule.other
        if not memory.course.finite and isinstance(rule, Thompson):
            return MixtureThompson(prior=memory.prior, scale=rule.scale)
        return LearningPolicy(
            estimator=memory.prior,
            rule=rule,
            schedule=self.schedule,
            memory=self.memory,
            prompt=self.prompt,
        )

    def finish(self, memory: Carried, policy: Any, state: Any, rng: np.random.Generator) -> Carried:
        """Keep what a group has told, and learn the prior anew where that is due."""
        finished: GramStatistics = state.statistics if isinstance(state, LearningState) else state
        misfits = memory.misfits
        if memory.prior is not None:
            alone = memory.prior.chance_alone(finished) > APART
            misfits = max(0.0, misfits + float(np.sum(alone - memory.prior.share_alone)))
        memory = replace(memory, finished=memory.finished.added(finished, rng), misfits=misfits)
        return self._learned(memory) if memory.due else memory

    def _learned(self, memory: Carried) -> Carried:
        seen = memory.finished.statistics
        assert seen is not None
        prior = self.estimator.fit(seen).prior
        return replace(memory, prior=prior, learned_at=memory.finished.n_seen, misfits=0.0)
