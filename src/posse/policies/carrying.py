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
from posse.estimators.factor_prior.estimator import FactorEstimate
from posse.policies.learning import Learning, LearningPolicy, LearningState
from posse.policies.mixture_thompson import MixtureThompson
from posse.policies.rules import ByActions, Thompson

# The prior is learned anew when so many times as many tasks have ended, or after so many at the most.
RATIO, MOST_BETWEEN = 1.2, 1000
# And as soon as more tasks did not fit it than this times the root of their number.
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
    estimate : FactorEstimate, optional
        What was made of them last, from which the next fit starts.
    prior : MixturePrior, optional
        What it says of a newcomer.
    learned_at : int
        How many tasks had ended when it was learned.
    misfits : int
        How many have ended since that did not fit it.
    """

    course: Course
    finished: Reservoir
    estimate: FactorEstimate | None = None
    prior: MixturePrior | None = None
    learned_at: int = 0
    misfits: int = 0

    @property
    def due(self) -> bool:
        """Whether the prior is to be learned anew."""
        seen, last = self.finished.n_seen, self.learned_at
        later = min(math.ceil(RATIO * last), last + MOST_BETWEEN)
        return seen >= max(last + 1, later) or self.misfits > MISFITS * math.sqrt(seen)


class CarriesPrior(Learning):
    """A learning policy that, on a stream, learns its prior from finished tasks and plays newcomers by it.

    A newcomer may be like those before it or stand alone; its own rewards decide. How uncertain the prior is
    counts: with few tasks so far newcomers explore more. The first group, about which nothing is known, is
    played as if it were all there is, and so is the next if it is larger than all before it together.
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
        """Return the policy of a group: by the prior of finished tasks, if enough have ended."""
        if memory.prior is None or memory.finished.n_seen < memory.course.group_size:
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
            misfits += int((memory.prior.chance_alone(finished) > APART).sum())
        memory = replace(memory, finished=memory.finished.added(finished, rng), misfits=misfits)
        return self._learned(memory) if memory.due else memory

    def _learned(self, memory: Carried) -> Carried:
        seen = memory.finished.statistics
        assert seen is not None
        estimate = self.estimator.fit(seen)
        return replace(
            memory,
            estimate=estimate,
            prior=estimate.prior,
            learned_at=memory.finished.n_seen,
            misfits=0,
        )
