"""What an agent is, apart from its clock and its random numbers: a machine that events move.

Events that come from a journal move it as those that come from callers did, to the last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posse.core.episode import Job, JobResult, anytime
from posse.core.errors import PosseError
from posse.core.learner import Learner
from posse.core.learner_changes import amend, erase, rebase
from posse.core.learner_state import LearnerState
from posse.core.model import Model
from posse.core.posterior import Beliefs
from posse.core.shipped import register
from posse.live import events as happened
from posse.live.holdback import Holdback
from posse.live.journal import Journal
from posse.live.monitor import Monitor
from posse.live.records import Asked, Reward, counted, in_time
from posse.live.settings import Settings
from posse.live.starts import new_learner, numbers_of, warm_learner

# The queue of decisions that will expire is tidied up when it is longer than this, and half of it is idle.
LEAST_QUEUE = 1024
COUNTS = ("decisions", "rewards", "late", "expired", "defaults")


@dataclass(frozen=True, kw_only=True)
class Version:
    """What all tasks share, as it was learned at one time.

    Attributes
    ----------
    number : int
        0 is what the agent began with.
    at : float
        When it was there, in seconds since 1970.
    events : int
        It was learned from the events before the one of this number, all of them and no others.
    rows : int
        How many rewards that were.
    source : "prior", "model" or "refit"
    """

    number: int
    at: float
    events: int
    rows: int
    source: str


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineState:
    """An engine as data, when the event `last` had happened; ids of waiting decisions, one per line."""

    last: int
    learner: LearnerState | None
    waiting: Any
    counts: dict[str, int]
    monitor: Monitor
    versions: tuple[Version, ...]
    live: int
    automatic: bool
    frozen: bool
    forbidden: dict[str, tuple[str, ...]]
    not_before: float
    at: float
    failure: str
    control: LearnerState | None


register(Version, name="posse.live.Version")
register(EngineState, name="posse.live.EngineState")


class LostStateError(PosseError):
    """A state that is needed was not kept or is damaged; it may be learned anew from all events."""


class Engine:
    """A learner, the decisions that wait for rewards, versions and counts, moved by events.

    Parameters
    ----------
    settings : Settings
    journal : Journal
        Where settled decisions and states of versions are found.
    rng : Generator
        That the learner draws from.
    """

    def __init__(self, settings: Settings, journal: Journal, rng: np.random.Generator) -> None:
        self.settings, self.journal, self.rng = settings, journal, rng
        self.learner: Learner | None = None
        policy = settings.control_policy
        self.holdback = None if policy is None else Holdback(policy, rng)
        self.numbers: dict[str, int] = {}
        self.unused: deque[int] = deque()
        self.waiting: dict[str, Asked] = {}
        self.queue: deque[tuple[float, str]] = deque()
        self.counts = dict.fromkeys(COUNTS, 0)
        self.monitor = Monitor()
        self.versions: dict[int, Version] = {}
        self.live, self.automatic, self.frozen = 0, settings.publish == "auto", False
        self.forbidden: dict[str, frozenset[str]] = {}
        self.job: Job | None = None
        self.begun = 0
        self.not_before, self.at, self.last, self.failure = 0.0, 0.0, 0, ""
        self.prepared: tuple[int, Any, Beliefs] | None = None
        self.remade: dict[int, Any] = {}
        self._moves: dict[type, Callable[[Any], None]] = {
            Asked: self._asked,
            happened.Told: self._told,
            happened.Joined: self._joined,
            happened.Shown: self._shown,
            happened.Expired: self._expired,
            happened.Began: self._began,
            happened.Refitted: self._refitted,
            happened.Failed: self._failed,
            happened.Turned: self._turned,
            happened.Frozen: self._froze,
            happened.Forbade: self._forbade,
            happened.Erased: self._erased,
        }

    def begin_with_model(self, model: Model) -> None:
        """Begin with what a log has taught."""
        self._begin_with(warm_learner(self.settings.policy, model, self.rng), "model")

    def apply(self, event: happened.Event, number: int) -> None:
        """Let an event happen that has that number in the journal."""
        if event.at > self.at and not isinstance(event, happened.Told):  # whose time the caller says
            self.at = event.at
        self._moves[type(event)](event)
        self.last = number

    def find(self, id: str, before: int | None = None) -> Asked | None:
        """Return a decision, whether or not it waits for a reward, as it was before an event."""
        waits = self.waiting.get(id)
        if waits is not None:
            return waits
        asked = self.journal.find(id, before)
        if asked is not None and asked.task not in self.numbers:
            return None
        if asked is not None:
            asked.expired = True  # or it has counted rewards, and then this makes no difference
        return asked

    def _begin_with(self, learner: Learner, source: str) -> None:
        self.learner = learner
        self.numbers, self.unused = numbers_of(learner)
        if self.frozen:
            learner.prompt = False
        if self.holdback is not None:
            for task in self.numbers:
                self.holdback.join(task, learner.dim)
        self.versions[0] = Version(number=0, at=self.at, events=0, rows=learner.n_rows, source=source)
        self.journal.save_version(0, learner.state)

    def _joined(self, event: happened.Joined) -> None:
        if self.learner is None:
            self._begin_with(new_learner(self.settings.policy, event.dim, self.rng), "prior")
        learner = self.learner
        assert learner is not None
        if self.unused:
            number = self.unused.popleft()
            learner.rename(number, event.task)
            self.numbers[event.task] = number
        else:
            self.numbers[event.task] = int(learner.add([event.task])[0])
        if self.holdback is not None:
            self.holdback.join(event.task, learner.dim)

    def _asked(self, asked: Asked) -> None:
        self.waiting[asked.id] = asked
        if self.settings.reward_wait is not None:
            self.queue.append((asked.at + self.settings.reward_wait, asked.id))
        self.counts["decisions"] += 1
        self.monitor.decided(asked)

    def _told(self, event: happened.Told) -> None:
        # live, the decision is as it was before this event; in a replay the journal has later ones
        asked = self.find(event.id, self.last + 1)
        assert asked is not None
        old = counted(asked, self.settings)
        before = old is not None and self._has_reward(asked)
        asked.play(event.played)
        asked.rewards.append(Reward(event.at, event.event, event.value))
        wait = self.settings.reward_wait
        if wait is not None and event.at > asked.at + wait:
            self.counts["late"] += 1
        self._count(asked, old, before)
        if event.id in self.waiting and counted(asked, self.settings) is not None:
            self._settle(asked)

    def _has_reward(self, asked: Asked) -> bool:
        return bool(in_time(asked, self.settings.reward_wait))

    def _count(self, asked: Asked, old: float | None, before: bool) -> None:
        """Learn what has changed since a decision counted as `old`, told by its rewards or not."""
        new = counted(asked, self.settings)
        if new is None or (old is not None and not self.settings.amends):
            return
        assert self.learner is not None
        number = self.numbers[asked.task]
        if old is None:
            self.learner.observe(np.array([number]), asked.features[None], np.array([new]))
        elif new != old:
            amend(self.learner, number, asked.features, old, new)
        if self.holdback is not None and asked.control:
            self.holdback.learn(asked.task, asked.features, old, new)
        self.counts["rewards"] += self._has_reward(asked) and not before
        self.monitor.rewarded(asked, old, new)

    def _settle(self, asked: Asked) -> None:
        del self.waiting[asked.id]
        if len(self.queue) > 2 * len(self.waiting) + LEAST_QUEUE:  # most of it waits for nothing any more
            self.queue = deque(item for item in self.queue if item[1] in self.waiting)
        self.journal.settled(asked)

    def _shown(self, event: happened.Shown) -> None:
        asked = self.find(event.id, self.last + 1)
        assert asked is not None
        if event.id in self.waiting:
            asked.shown = True
            self._count(asked, None, False)
            if counted(asked, self.settings) is not None:
                self._settle(asked)

    def _expired(self, event: happened.Expired) -> None:
        for id in event.ids:
            asked = self.waiting[id]
            old = counted(asked, self.settings)
            asked.expired = True
            self._count(asked, old, False)
            self.counts["expired"] += 1
            if not self._has_reward(asked) and counted(asked, self.settings) is not None:
                self.counts["defaults"] += 1
            self._settle(asked)

    def _began(self, event: happened.Began) -> None:
        assert self.learner is not None
        self.job, self.begun = self.learner.begin(), event.number
        self.versions[event.number] = Version(
            number=event.number,
            at=event.at,
            events=self.last + 1,
            rows=self.learner.n_rows,
            source="refit",
        )

    def _refitted(self, event: happened.Refitted) -> None:
        learner, job = self.learner, self.job
        assert learner is not None
        assert job is not None
        if self.prepared is not None and self.prepared[0] == event.number:
            _, state, beliefs = self.prepared
        else:  # in a replay; where the state was not kept it is learned anew
            state, beliefs = self.journal.load_version(event.number), None
            if state is None:
                state = self.remade[event.number] = job.run().state
                self.journal.save_version(event.number, state)
        self.versions[event.number] = replace(self.versions[event.number], at=event.at)
        if event.adopted:
            learner.adopt(JobResult(state, job.key), beliefs)
            self.live = event.number
        else:
            learner.cancel()
            self.not_before = anytime(self.settings.policy).next_after(learner.clock)
        self.job = self.prepared = None
        self.failure = ""

    def _failed(self, event: happened.Failed) -> None:
        assert self.learner is not None
        self.learner.cancel()
        self.versions.pop(event.number, None)
        self.job, self.failure = None, event.reason
        self.not_before = anytime(self.settings.policy).next_after(self.learner.clock)

    def _turned(self, event: happened.Turned) -> None:
        assert self.learner is not None
        state = self.remade.get(event.number) or self.journal.load_version(event.number)
        if state is None:
            raise LostStateError(f"the state of version {event.number} must be kept. Got none.")
        rebase(self.learner, state)
        self.live, self.automatic = event.number, event.automatic

    def _froze(self, event: happened.Frozen) -> None:
        self.frozen = event.on
        if self.learner is not None:
            prompt = getattr(self.settings.policy, "prompt", None) is not False
            self.learner.hold(not event.on and prompt)
        if self.holdback is not None:
            self.holdback.hold(event.on)

    def _forbade(self, event: happened.Forbade) -> None:
        self.forbidden[event.task] = frozenset(event.arms)

    def _erased(self, event: happened.Erased) -> None:
        learner = self.learner
        assert learner is not None
        name = (learner.names or ())[event.number]
        if name in self.numbers:
            for id in [id for id, asked in self.waiting.items() if asked.task == name]:
                del self.waiting[id]
            self.forbidden.pop(name, None)
            del self.numbers[name]
            erase(learner, event.number)
            if self.holdback is not None:
                self.holdback.erase(name)

    def state(self) -> EngineState:
        """Return the engine as data; no refit may be under way."""
        ids = "\n".join(self.waiting).encode()
        monitor = self.monitor
        arrays = ("won", "stake", "held", "moving", "rewards", "lift_counts", "lift_totals", "shadow")
        copies: dict[str, Any] = {name: getattr(monitor, name).copy() for name in arrays}
        return EngineState(
            last=self.last,
            learner=None if self.learner is None else self.learner.snapshot(),
            waiting=np.frombuffer(ids, dtype=np.uint8).copy(),
            counts=dict(self.counts),
            monitor=Monitor(slots=dict(monitor.slots), **copies),
            versions=tuple(self.versions.values()),
            live=self.live,
            automatic=self.automatic,
            frozen=self.frozen,
            forbidden={task: tuple(sorted(arms)) for task, arms in self.forbidden.items()},
            not_before=self.not_before,
            at=self.at,
            failure=self.failure,
            control=None if self.holdback is None else self.holdback.state(),
        )

    def resume(self, saved: EngineState) -> None:
        """Go on from what `state` returned; the journal knows the decisions that wait."""
        if saved.learner is not None:
            self.learner = Learner.restore(saved.learner, seed=self.rng)
            self.numbers, self.unused = numbers_of(self.learner)
            if saved.frozen:
                self.learner.prompt = False
        if self.holdback is not None:
            self.holdback.resume(saved.control, saved.frozen)
        self.counts, self.monitor = dict(saved.counts), saved.monitor
        self.versions = {version.number: version for version in saved.versions}
        self.live, self.automatic, self.frozen = saved.live, saved.automatic, saved.frozen
        self.forbidden = {task: frozenset(arms) for task, arms in saved.forbidden.items()}
        self.not_before, self.at, self.failure = saved.not_before, saved.at, saved.failure
        self.last = saved.last
        for id in filter(None, saved.waiting.tobytes().decode().split("\n")):
            asked = self.journal.find(id, saved.last + 1)
            if asked is not None:
                self.waiting[id] = asked
                if self.settings.reward_wait is not None:
                    self.queue.append((asked.at + self.settings.reward_wait, id))
