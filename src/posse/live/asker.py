"""Processes that ask and tell beside the one that learns, through a PostgreSQL journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posse.core.learner import Learner
from posse.live.desk import check_played, check_reward, check_time
from posse.live.engine import EngineState
from posse.live.events import Told
from posse.live.guards import Guard
from posse.live.holdback import Holdback
from posse.live.ids import Ids, check_text
from posse.live.journal import JournalError
from posse.live.offers import Offers
from posse.live.outbox import LOST, Outbox
from posse.live.packing import from_bytes
from posse.live.records import DECIDED, Asked, Decision, Reward
from posse.live.rows import row_of
from posse.live.settings import Settings
from posse.live.sqlite import LEVELS
from posse.live.starts import new_learner, numbers_of
from posse.numerics.checks import check_choice, check_integer, check_number


class Asker:
    """Asks and tells for an agent that learns in another process: `Agent.open` on the same database.

    It decides by the last state that the other process has published. While the database cannot be reached,
    decisions go on by that state, and decisions and rewards are queued, up to a bound; queued ones are lost
    if this process dies. It may be used by many threads.

    Parameters
    ----------
    address : str
        As `postgresql://user@host/database`.
    durability : "process" or "power"
        Whether an answer survives the death of a process, or that of the database's machine, too.
    refresh_every : float
        Seconds after which a new state is looked for.
    most_queued : int
        Decisions and rewards that are queued at most while the database cannot be reached.
    seed : int, optional
        For exploration; fresh by default.
    clock : callable
        Returns seconds since 1970.

    Attributes
    ----------
    version : int
        The version that decisions are made by.
    """

    def __init__(
        self,
        address: str,
        *,
        durability: str = "process",
        refresh_every: float = 1.0,
        most_queued: int = 10_000,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_choice("`durability` of Asker", durability, LEVELS)
        self._every = check_number("`refresh_every` of Asker", refresh_every, 0.0)
        most = check_integer("`most_queued` of Asker", most_queued, 0)
        self._clock, self._rng = clock, np.random.default_rng(seed)
        self._ids = Ids()
        self._learner: Learner | None = None
        self._dim: int | None = None
        self._numbers: dict[str, int] = {}
        self._forbidden: dict[str, frozenset[str]] = {}
        self.version, self._turn, self._looked = 0, -1, -np.inf
        try:
            self._outbox = Outbox(address, durability, most)
            self._lock = self._outbox.lock
        except LOST as error:
            raise JournalError(f"the database must be there: {' '.join(str(error).split())}.") from error
        stored = self._outbox.meta("settings")
        if stored is None:
            self.close()
            raise JournalError("the database must have an agent that `Agent.open` has made. Got none.")
        settings: Settings = from_bytes(stored)
        self._settings, self._guard, self._offers = settings, Guard(settings), Offers(settings.encoder)
        policy = settings.control_policy
        self._holdback = None if policy is None else Holdback(policy, self._rng)
        self._refresh()

    @property
    def queued(self) -> int:
        """How many decisions and rewards wait for the database."""
        return len(self._outbox)

    @property
    def conflicts(self) -> int:
        """How many queued rows were dropped, since the database had others or no decision of their id."""
        return self._outbox.conflicts

    def _refresh(self) -> None:
        """Send what is queued, and decide by the last state that was published, if there is another one."""
        self._looked = time.monotonic()
        news = self._outbox.news(self._turn)
        if news is not None:
            state, self._dim = news
            if state is not None:
                self._adopt(state)

    def _adopt(self, state: EngineState) -> None:
        self._turn, self.version = state.last, state.live
        self._forbidden = {task: frozenset(arms) for task, arms in state.forbidden.items()}
        if state.learner is not None:
            self._learner = Learner.restore(state.learner, seed=self._rng)
            self._dim = self._learner.dim
            self._numbers, _ = numbers_of(self._learner)
        if self._holdback is not None:
            self._holdback.resume(state.control, state.frozen)

    def _number_of(self, task: str, dim: int) -> tuple[Learner, int]:
        """Return the learner and a task's number; one that was not published yet is new here, too."""
        if self._dim is None:
            self._outbox.agree_on(dim)
            self._dim = dim
        if self._learner is None:
            self._learner = new_learner(self._settings.policy, dim, self._rng)
        number = self._numbers.get(task)
        if number is None:
            number = self._numbers[task] = int(self._learner.add([task])[0])
            if self._holdback is not None:
                self._holdback.join(task, dim)
        return self._learner, number

    def ask(
        self,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None = None,
        id: str | None = None,
        *,
        unit: str | None = None,
        shown: bool = True,
    ) -> Decision:
        """Decide for a task; arguments are those of `Agent.ask`."""
        with self._lock:
            if time.monotonic() - self._looked >= self._every:
                self._refresh()
            known = None if id is None else self._outbox.find(check_text("`id` of ask", id))
            return (known or self._decide(task, arms, context, id, unit, shown)).decision

    def _decide(
        self,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None,
        id: str | None,
        unit: str | None,
        shown: bool,
    ) -> Asked:
        """Make a decision and send it; where another process was first with its id, return that one."""
        now = self._clock()
        task = check_text("`task` of ask", task)
        whole = task if unit is None else check_text("`unit` of ask", unit)
        offer = self._offers.read(arms, context, self._dim)
        learner, number = self._number_of(task, offer.features.shape[1])
        forbidden = self._forbidden.get(task)
        chosen = self._guard.choose(learner, self._holdback, task, number, offer, whole, forbidden, self._rng)
        named = self._ids.next(now) if id is None else str(id)
        asked = self._guard.record(named, now, task, offer, chosen, self.version, shown)
        table, values = row_of(asked, 0)
        if not self._outbox.send(table, (None, *values[1:])):
            known = self._outbox.find(named)
            assert known is not None
            return known
        self._outbox.remember(asked)
        return asked

    def tell(
        self,
        id: str,
        reward: float,
        event: str | None = None,
        at: float | None = None,
        *,
        played: int | str | None = None,
    ) -> None:
        """Tell a reward of a decision that any process asked for; arguments are those of `Agent.tell`."""
        value = check_reward(reward)
        name = "" if event is None else check_text("`event` of tell", event)
        with self._lock:
            when = self._clock() if at is None else check_time(at)
            asked = self._outbox.find(id)
            before = None if asked is None else asked.told(name)
            if before is None:
                told = Told(id, name, when, value, self._place(id, asked, played))
                if not self._outbox.send("rewards", (None, *told)):
                    asked = self._outbox.find(id)
                    before = None if asked is None else asked.told(name)
                elif own := self._outbox.own(id):
                    own.play(told.played)
                    own.rewards.append(Reward(when, name, value))
            if before is not None and before.value != value:
                raise ValueError(
                    f"`reward` of decision {id!r} must be {before.value}, as told before. Got {value}."
                )

    def _place(self, id: str, asked: Asked | None, played: int | str | None) -> int:
        """Return the place of the arm that was played, or say what is wrong with the id or the arm.

        Whether a decision of another process exists is found out when the database is back.
        """
        if asked is not None:
            return check_played(asked, played)
        check_text("`id` of tell", id)
        if not self._outbox.away:
            raise ValueError(f"`id` of tell must be that of a decision. Got {id!r}, which is unknown.")
        if self._settings.mode == "shadow" or played is not None:
            raise JournalError("the database must be reached to find an arm by its name. Got no connection.")
        return DECIDED

    def activate(self, id: str) -> None:
        """Say that a decision was shown which was asked for with `shown=False`."""
        with self._lock:
            asked = self._outbox.find(id)
            if asked is None and not self._outbox.away:
                raise ValueError(
                    f"`id` of activate must be that of a decision. Got {id!r}, which is unknown."
                )
            if asked is None or not asked.shown:
                self._outbox.send("shown", (None, id, self._clock()))

    def close(self) -> None:
        """Send what is queued, if the database can be reached, and give up the connection."""
        with self._lock:
            self._outbox.close()
