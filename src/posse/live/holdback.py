"""A control group that plays by a policy of its own, which learns from nothing but that group."""

from __future__ import annotations

from collections import deque

import numpy as np

from posse.core.archive import in_a_line
from posse.core.learner import Learner
from posse.core.learner_changes import amend, erase
from posse.core.learner_state import LearnerState
from posse.core.protocols import Policy
from posse.core.rows import Choice
from posse.live.starts import new_learner, numbers_of
from posse.numerics.checks import Array, BoolArray


class Holdback:
    """The learner of a control group: it knows all tasks of an agent, by numbers of its own.

    What its tasks share is learned anew in the call that finds it due, so that a replay leads to equal
    beliefs without a further kind of event.

    Parameters
    ----------
    policy : Policy
        That remembers all rows.
    rng : Generator
        That it draws from.

    Attributes
    ----------
    failure : str
        Why its last refit failed; "" if it did not.
    """

    def __init__(self, policy: Policy, rng: np.random.Generator) -> None:
        self._policy, self._rng = policy, rng
        self._learner: Learner | None = None
        self._numbers: dict[str, int] = {}
        self._unused: deque[int] = deque()
        self._held, self.failure = False, ""

    def join(self, task: str, dim: int) -> None:
        """Add a task, unless it is known."""
        if self._learner is None:
            self._learner = new_learner(self._policy, dim, self._rng)
            self._numbers, self._unused = numbers_of(self._learner)
            if self._held:
                self._learner.prompt = False
        if task in self._numbers:
            return
        if self._unused:
            number = self._unused.popleft()
            self._learner.rename(number, task)
        else:
            number = int(self._learner.add([task])[0])
        self._numbers[task] = number

    def select(self, task: str, features: Array, mask: BoolArray | None) -> Choice:
        """Choose among arms with features (1, K, d) for a task that has joined; mask (1, K) says which."""
        assert self._learner is not None
        return self._learner.select(np.array([self._numbers[task]]), features, mask)

    def learn(self, task: str, features: Array, old: float | None, new: float) -> None:
        """Count a reward of a row (d,) as `new`, in the place of `old` if that was counted."""
        learner = self._learner
        assert learner is not None
        number = self._numbers[task]
        if old is None:
            learner.observe(np.array([number]), features[None], np.array([new]))
        elif new != old:
            amend(learner, number, features, old, new)
        if learner.due and not self._held:
            try:
                learner.update()
            except (
                Exception
            ) as error:  # whatever a fit may raise: no row is lost, and the next one tries again
                self.failure = f"{type(error).__name__}: {in_a_line(error)}"
            else:
                self.failure = ""

    def hold(self, on: bool) -> None:
        """Stop learning, or learn from what came meanwhile and go on."""
        self._held = on
        if self._learner is not None:
            self._learner.hold(not on and getattr(self._policy, "prompt", None) is not False)

    def erase(self, task: str) -> None:
        """Forget a task."""
        if self._learner is not None:
            erase(self._learner, self._numbers.pop(task))

    def state(self) -> LearnerState | None:
        """Return all that was learned, as data."""
        return None if self._learner is None else self._learner.snapshot()

    def resume(self, saved: LearnerState | None, held: bool) -> None:
        """Go on from what `state` returned."""
        self._held = held
        if saved is not None:
            self._learner = Learner.restore(saved, seed=self._rng)
            self._numbers, self._unused = numbers_of(self._learner)
            if held:
                self._learner.prompt = False
