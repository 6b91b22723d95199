"""Where events are made: checked, kept in the journal, and only then allowed to happen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from posse.core.archive import in_a_line
from posse.core.episode import Job
from posse.core.model import Model
from posse.live import events as happened
from posse.live.dice import Dice
from posse.live.engine import Engine, EngineState, LostStateError
from posse.live.guards import Guard
from posse.live.ids import Ids
from posse.live.journal import Journal, JournalError
from posse.live.offers import Offers
from posse.live.records import DECIDED, Asked
from posse.live.refits import Fitter, Outcome
from posse.live.settings import Settings
from posse.live.starts import new_learner
from posse.numerics.checks import check_number

# So many decisions expire in one call at most, so that no call takes long.
EXPIRE_AT_ONCE = 64
# Rewards come about at most so many seconds after 1970, or before: others are no times.
LATEST = 1e15


class Desk:
    """An engine with its journal, clock, random numbers and refits; one caller at a time has the lock.

    Parameters
    ----------
    settings : Settings
    journal : Journal
    fitter : Fitter
        Makes refits.
    model : Model, optional
        What the agent begins with.
    seed : int, optional
    clock : callable
        Returns seconds since 1970.
    snapshot_every : int
        After so many events the journal is given a snapshot.
    """

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        fitter: Fitter,
        model: Model | None,
        seed: int | None,
        clock: Callable[[], float],
        snapshot_every: int = 2**62,
    ) -> None:
        if not callable(clock):
            raise ValueError(f"`clock` of Agent must be callable. Got {clock!r}.")
        self.settings, self.journal, self.fitter = settings, journal, fitter
        self.clock, self.seeded = clock, seed is not None
        self.lock = threading.RLock()
        self.dice = Dice(seed)
        self.engine = Engine(settings, journal, self.dice.rng)
        self.guard, self.ids = Guard(settings), Ids()
        self.offers = Offers(settings.encoder, settings.check_offer)
        self.backwards = 0.0
        self.broken = ""
        self._ended: tuple[int, Outcome] | None = None
        self._every = snapshot_every
        self._resume(model)
        self._snapshot_at = self.engine.last + snapshot_every

    def _resume(self, model: Model | None) -> None:
        """Go on from the last snapshot and all events since, if there are any."""
        saved = self.journal.load_state()
        try:
            self._replay(saved, model)
        except LostStateError:  # an earlier version was gone back to: learn it anew, from the first event on
            self.engine = Engine(self.settings, self.journal, self.dice.rng)
            self._replay(None, model)
        self.engine.remade.clear()

    def _replay(self, saved: EngineState | None, model: Model | None) -> None:
        engine = self.engine
        if saved is not None:
            engine.resume(saved)
        elif model is not None:
            engine.begin_with_model(model)
        for number, event in self.journal.replay(engine.last):
            engine.apply(event, number)

    def change(self, settings: Settings) -> None:
        """Go by other settings from now on: by such as leave what was learned as it is."""
        self.settings = self.engine.settings = settings
        self.guard = Guard(settings)

    def now(self) -> float:
        """Return the time; it stands still where the clock goes backwards."""
        now, last = self.clock(), self.engine.at
        if now < last:
            self.backwards = max(self.backwards, last - now)
            return last
        return now

    def check(self) -> None:
        """Raise if the journal has failed or is closed."""
        if self.broken:
            raise JournalError(self.broken)

    def record(self, *events: happened.Event) -> None:
        """Keep events in the journal, and let them happen."""
        self.check()
        last = self.journal.append(events)
        number, apply = last - len(events), self.engine.apply
        for event in events:
            number += 1
            apply(event, number)
        if number >= self._snapshot_at and self.engine.job is None:
            self.snapshot()

    def acknowledge(self) -> None:
        """Wait until all that was recorded is as durable as was promised."""
        try:
            self.journal.acknowledge()
        except JournalError as error:
            # what was recorded has happened here, and perhaps nowhere else
            self.broken = f"{error} The agent must be opened again: what was not acknowledged may be lost."
            raise JournalError(self.broken) from error

    def expire(self, now: float, most: int = EXPIRE_AT_ONCE) -> None:
        """Let decisions expire whose rewards nobody waits for any more."""
        engine = self.engine
        queue, waiting = engine.queue, engine.waiting
        due: list[str] = []
        while queue and queue[0][0] < now and len(due) < most:
            _, id = queue.popleft()
            if id in waiting:
                due.append(id)
        if due:
            try:
                self.record(happened.Expired(now, tuple(due)))
            except JournalError:
                wait = self.settings.reward_wait or 0.0
                queue.extendleft((waiting[id].at + wait, id) for id in reversed(due))
                raise

    def known(self, id: str) -> Asked | None:
        """Return a decision by its id, None if there is none."""
        return self.engine.find(id)

    def number_of(self, task: str, dim: int, now: float) -> int:
        """Return the number of a task; one that was never seen joins."""
        number = self.engine.numbers.get(task)
        if number is None:
            if self.engine.learner is None:
                new_learner(self.settings.policy, dim, self.dice.rng)  # raises if there cannot be one
            self.record(happened.Joined(now, task, dim))
            number = self.engine.numbers[task]
        return number

    def learn(self, most: int) -> int:
        """Take events that other processes wrote to the journal; return how many."""
        found = self.journal.new(most)
        if found:
            self.take(found)
            self.expire(self.now())
            self.refit_if_due()
        return len(found)

    def take(self, found: Sequence[happened.Event]) -> None:
        """Let events happen that other processes wrote, after the tasks joined that they are of."""
        joined: dict[str, happened.Joined] = {}
        for event in found:
            if isinstance(event, Asked) and event.task not in self.engine.numbers:
                joined.setdefault(event.task, happened.Joined(event.at, event.task, len(event.features)))
        self.record(*joined.values(), *found)

    def refit_if_due(self) -> None:
        """Begin a refit if it is time for one."""
        engine = self.engine
        learner = engine.learner
        if self._ended is not None:
            self._end_refit(*self._ended)
        if engine.job is not None or learner is None or engine.frozen or self.settings.refits == "never":
            return
        if learner.due and learner.clock >= engine.not_before:
            self.refit()

    def refit(self) -> None:
        """Begin a refit from all events so far, if there were any since the last one."""
        if self.engine.learner is None or not self.engine.learner.waiting:
            return
        number = max(self.engine.versions, default=0) + 1
        self.record(happened.Began(self.now(), number))
        self.start()

    def start(self) -> None:
        """Let the refit run that has begun."""
        job = self.engine.job
        assert job is not None
        self.fitter.run(job, self.engine.begun, self.finished)

    def finished(self, job: Job, number: int, outcome: Outcome) -> None:
        """Adopt what a refit led to, or take note of why it failed; called from any thread."""
        state, _, reason = outcome
        try:
            if not reason:
                self.journal.save_version(number, state)
        except Exception as error:  # a full disk, say: the agent goes on without it
            outcome = state, None, in_a_line(error)
        with self.lock:
            if self.engine.job is not job or self.broken:  # given up meanwhile
                return
            try:
                self._end_refit(number, outcome)
            except JournalError:  # tried again with the next reward
                self._ended = (number, outcome)

    def _end_refit(self, number: int, outcome: Outcome) -> None:
        state, beliefs, reason = outcome
        self._ended = None
        if reason or beliefs is None:
            self.record(happened.Failed(self.now(), number, reason))
            return
        self.engine.prepared = (number, state, beliefs)
        self.record(happened.Refitted(self.now(), number, self.engine.automatic))
        for old in sorted(self.engine.versions)[: -self.settings.keep]:
            if old not in (0, self.engine.live):
                self.journal.drop_version(old)
        self.publish()

    def give_up_refit(self) -> None:
        """Cancel the refit under way, if there is one."""
        if self.engine.job is not None:
            self.record(happened.Failed(self.now(), self.engine.begun, "given up"))
            self._ended = None

    def snapshot(self, *, wait: bool = False) -> None:
        """Let the journal save the state, unless a refit is under way."""
        if self.engine.job is None and self.journal.save_state(self.engine.state(), wait=wait):
            self._snapshot_at = self.engine.last + self._every

    def publish(self) -> None:
        """Let other processes decide by what has changed, if there can be any."""
        if self.journal.shared:
            self.snapshot(wait=True)

    def snapshot_alone(self) -> None:
        """Let the journal save the state and forget earlier ones, so that events may be removed."""
        if not self.journal.save_state(self.engine.state(), wait=True, alone=True):
            raise JournalError(
                "there must be room for a snapshot before events are removed. Got none, and removed nothing."
            )


def check_reward(value: Any) -> float:
    """Return a reward as a float, or say what was found."""
    if not isinstance(value, Real) or not -1e75 <= float(value) <= 1e75:
        raise ValueError(f"`reward` of tell must be a number of at most 1e75. Got {value!r}.")
    return float(value)


def check_time(at: Any) -> float:
    """Return when a reward came about as a float, or say what was found."""
    return check_number("`at` of tell", at, -LATEST, LATEST)


def check_played(asked: Asked, played: int | str | None) -> int:
    """Return the place of the arm that was played among those on offer; DECIDED outside shadow mode."""
    shadow = asked.played != DECIDED
    if shadow == (played is None):
        wanted = "say which arm was played in shadow mode" if shadow else "be None outside shadow mode"
        raise ValueError(f"`played` of tell must {wanted}. Got {played!r}.")
    if played is None:
        return DECIDED
    names: Sequence[int | str] = range(len(asked.chances)) if asked.names is None else asked.names
    if played not in names:
        raise ValueError(f"`played` of tell must be an arm that was on offer. Got {played!r}.")
    place = names.index(played)
    if asked.played >= 0 and asked.played != place:
        raise ValueError(f"`played` of tell must be {names[asked.played]!r}, as told before. Got {played!r}.")
    return place
