"""What learning is, whoever drives it: a policy, its state, what it has not learned from yet, and a clock."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import uuid4

from posse.core.protocols import Anytime, MovesAtOnce, Policy
from posse.numerics.checks import check_integer


@dataclass(frozen=True)
class Job:
    """An update that can be made anywhere: in a thread, in another process, later.

    Attributes
    ----------
    policy : Policy
    state : object
        What the policy knew when the job began.
    summary : Summary
        What it is to learn from.
    key : str
        By which its result is known.
    """

    policy: Policy
    state: Any
    summary: Any
    key: str

    def run(self) -> JobResult:
        """Make the update, and return what it led to, for `adopt`."""
        return JobResult(self.policy.update(self.state, self.summary), self.key)


@dataclass(frozen=True)
class JobResult:
    """What an update has led to.

    Attributes
    ----------
    state : object
        What the policy knows now.
    key : str
        Of the job, so that no other result is taken for it.
    """

    state: Any
    key: str


class Episode:
    """A policy that learns from summaries, as they come.

    A driver absorbs summaries and updates where that is due. Where an update takes long it is begun, run
    elsewhere and adopted; what is absorbed in between is kept for the next one.

    Parameters
    ----------
    policy : Policy
    n_tasks, dim : int
        T and d.
    horizon : int, optional
        N, the number of rounds, if it is known. Policies whose schedule depends on it cannot do without.
    prompt : bool
        Whether what is absorbed moves the state at once, for a policy that can; see `MovesAtOnce`.
    state : object, optional
        What the policy knows already; by default what it knows before the first round.

    Attributes
    ----------
    state : object
        What the policy plays by.
    pending : Summary or None
        What it has not learned from yet.
    clock : float
        Rounds so far.
    updated_at : float
        The reading of the clock at the last update, or the least since then.
    due_at : float
        The reading of the clock at which the next update is due; infinity for never.

    Examples
    --------
    >>> import numpy as np
    >>> from posse import GramStatistics, IndependentGreedy
    >>> episode = Episode(IndependentGreedy(), n_tasks=1, dim=1)
    >>> rounds = GramStatistics.of(np.ones((5, 1, 1)), np.full((5, 1), 2.0))
    >>> episode.absorb(rounds, clock=5)
    >>> episode.due
    True
    >>> episode.update()
    >>> episode.due, episode.due_at
    (False, 6)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        n_tasks: int,
        dim: int,
        horizon: int | None = None,
        prompt: bool = False,
        state: Any = None,
    ) -> None:
        self.policy = policy
        self._ends: Iterator[int] | None = None
        if horizon is not None:
            self._ends = accumulate(check_blocks(policy, horizon, n_tasks, dim))
        self.clock = self.updated_at = 0.0
        self.due_at = self._next_due(0.0)
        self.state = policy.init(n_tasks, dim) if state is None else state
        self.pending: Any = None
        self._begun: Job | None = None
        self.prompt = prompt

    def absorb(self, summary: Any, clock: float) -> None:
        """Keep a summary of further rounds, after which the clock stands at `clock`."""
        self.pending = summary if self.pending is None else self.pending + summary
        if self.prompt:
            self.state = self._mover.move(self.state, summary)
        self.read(clock)

    def read(self, clock: float) -> None:
        """Read the clock. Where it has fallen, because tasks are new, the next update is due earlier."""
        if clock < self.updated_at:
            self.updated_at = clock
            self.due_at = min(self.due_at, self._next_due(clock))
        self.clock = clock

    @property
    def due(self) -> bool:
        """Whether it is time to update, and no update is under way."""
        return self.clock >= self.due_at and self._begun is None

    def begin(self) -> Job:
        """Return the update from all that is pending; what is absorbed from now on is kept apart."""
        self._check_ready()
        self._begun, self.pending = Job(self.policy, self.state, self.pending, uuid4().hex), None
        return self._begun

    def _check_ready(self) -> None:
        self.check_idle()
        if self.pending is None:
            raise ValueError("an update must have something to learn from. Got nothing since the last one.")

    def check_idle(self) -> None:
        """Raise if an update is under way."""
        if self._begun is not None:
            raise ValueError(
                "an update must be adopted or cancelled before another begins. Got one under way."
            )

    def adopt(self, result: JobResult) -> None:
        """Play by the state that the update under way has led to, moved by what was absorbed meanwhile."""
        if not isinstance(result, JobResult):
            raise ValueError(f"`result` of adopt must be what Job.run returned. Got {type(result).__name__}.")
        if self._begun is None or self._begun.key != result.key:
            found = "none under way" if self._begun is None else "that of another"
            raise ValueError(f"`result` of adopt must be that of the update under way. Got {found}.")
        self.state = result.state
        if self.prompt and self.pending is not None:
            self.state = self._mover.move(result.state, self.pending)
        self._begun = None
        self._updated()

    def cancel(self) -> None:
        """Give up the update under way; what it was to learn from is pending again."""
        if self._begun is not None:
            summary, self._begun = self._begun.summary, None
            self.pending = summary if self.pending is None else summary + self.pending

    def update(self) -> None:
        """Learn from all that is pending, now; if that fails, all stays as it was."""
        self._check_ready()
        self.state = self.policy.update(self.state, self.pending)
        self.pending = None
        self._updated()

    @property
    def unlearned(self) -> list[Any]:
        """Summaries that the state has not learned from, the latest first."""
        begun = None if self._begun is None else self._begun.summary
        return [summary for summary in (self.pending, begun) if summary is not None]

    @property
    def _mover(self) -> MovesAtOnce:
        assert isinstance(self.policy, MovesAtOnce)
        return self.policy

    def _updated(self) -> None:
        self.updated_at = self.clock
        self.due_at = self._next_due(self.clock)

    def _next_due(self, clock: float) -> float:
        if self._ends is not None:
            return next((end for end in self._ends if end > clock), math.inf)
        return anytime(self.policy).next_after(clock)


def anytime(policy: Policy) -> Anytime:
    """Return what says when updates of a policy are due without a horizon, or why nothing does.

    That is its schedule, or the policy itself.
    """
    schedule = getattr(policy, "schedule", policy)
    if not isinstance(schedule, Anytime):
        raise ValueError(
            "a policy must say when to update next if nobody knows the last round. "
            f"Got {policy!r}, and {type(schedule).__name__} needs a horizon."
        )
    return schedule


def check_blocks(policy: Policy, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
    """Return the blocks of a policy, if they are positive and add up to the horizon."""
    check_integer("`horizon`", horizon, 1)
    blocks = policy.blocks(horizon, n_tasks, dim)
    if sum(blocks) != horizon or min(blocks) < 1:
        raise ValueError(f"blocks of {policy!r} must be positive and add up to {horizon}. Got {blocks}.")
    return blocks
