"""Processes that ask and tell beside the one that learns, through a PostgreSQL journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.core.learner import Learner
from posse.live.batches import check_lengths
from posse.live.database import LEVELS, LOST, known_dim, load_state, plainly
from posse.live.desk import check_played, check_reward, check_time
from posse.live.engine import EngineState
from posse.live.events import Told
from posse.live.guards import Guard
from posse.live.holdback import Holdback
from posse.live.ids import Ids, check_text
from posse.live.journal import JournalError
from posse.live.offers import Offers
from posse.live.outbox import Outbox
from posse.live.packing import from_bytes
from posse.live.records import DECIDED, Asked, Decision, Reward
from posse.live.rows import row_of
from posse.live.settings import Settings
from posse.live.starts import new_learner, numbers_of
from posse.numerics.checks import check_choice, check_integer, check_number

with extra("postgres"):
    import psycopg


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
    refresh_every : float, optional
        Seconds after which a new state is looked for; None if the caller does that, by `refresh`.
    most_queued : int
        Decisions and rewards that are queued at most while the database cannot be reached.
    queue_rewards : bool
        Whether rewards are queued. Else `tell` raises an error while the database cannot be reached, so that
        no reward it has taken is lost with this process.
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
        refresh_every: float | None = 1.0,
        most_queued: int = 10_000,
        queue_rewards: bool = True,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_choice("`durability` of Asker", durability, LEVELS)
        self._every = np.inf
        if refresh_every is not None:
            self._every = check_number("`refresh_every` of Asker", refresh_every, 0.0)
        most = check_integer("`most_queued` of Asker", most_queued, 0)
        self._clock, self._rng, self._queues = clock, np.random.default_rng(seed), queue_rewards
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
        self._go_by(stored)
        self._refresh()

    def _go_by(self, stored: bytes) -> None:
        settings: Settings = from_bytes(stored)
        self._stored, self._settings = stored, settings
        self._guard, self._offers = Guard(settings), Offers(settings.encoder, settings.check_offer)
        policy = settings.control_policy
        self._holdback = None if policy is None else Holdback(policy, self._rng)

    @property
    def queued(self) -> int:
        """How many decisions and rewards wait for the database."""
        return len(self._outbox)

    @property
    def full(self) -> bool:
        """Whether no more can be queued, so that nothing is decided until the database is back."""
        return self._outbox.full

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
                self._adopt(state, self._learner_of(state))

    def _refresh_if_due(self) -> None:
        if time.monotonic() - self._looked >= self._every:
            self._refresh()

    def refresh(self, db: psycopg.Connection[Any]) -> None:
        """Decide by the last state and the settings that were published; others ask while these are read.

        Parameters
        ----------
        db : Connection
            To the schema of the agent, of the caller's own.
        """
        with plainly():
            stored = db.execute("SELECT value FROM posse_meta WHERE key = 'settings'").fetchone()
            settings = self._stored if stored is None else bytes(stored[0])
            changed = settings != self._stored
            state, dim = load_state(db, -1 if changed else self._turn), known_dim(db)
        learner = None if state is None else self._learner_of(state)
        with self._lock:
            if changed:
                self._go_by(settings)
            self._dim = dim
            if state is not None:
                self._adopt(state, learner)

    def _learner_of(self, state: EngineState) -> Learner | None:
        return None if state.learner is None else Learner.restore(state.learner, seed=self._rng)

    def _adopt(self, state: EngineState, learner: Learner | None) -> None:
        self._turn, self.version = state.last, state.live
        self._forbidden = {task: frozenset(arms) for task, arms in state.forbidden.items()}
        if learner is not None:
            self._learner, self._dim = learner, learner.dim
            self._numbers, _ = numbers_of(learner)
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
            self._refresh_if_due()
            known = None if id is None else self._outbox.own(check_text("`id` of ask", id))
            if known is None:
                made = self._decide(task, arms, context, id, unit, shown)
                (known,) = self._sent([made])
            return known.decision

    def ask_many(
        self,
        tasks: Sequence[str],
        arms: Sequence[Any],
        contexts: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Decide for many rows in one transaction; arguments are those of `Agent.ask_many`."""
        n_rows, none = len(tasks), [None] * len(tasks)
        check_lengths("ask_many", n_rows, arms=arms, contexts=contexts, ids=ids)
        if len({check_text("`ids` of ask_many", id) for id in ids or ()}) < len(ids or ()):
            raise ValueError("`ids` of ask_many must be different from each other. Got one twice.")
        rows = list(zip(tasks, arms, contexts or none, ids or none, strict=True))
        with self._lock:
            self._refresh_if_due()
            return self._decide_all(rows)

    def _decide_all(self, rows: Sequence[tuple[Any, ...]]) -> list[Decision]:
        """Decide for rows (task, arms, context, id), unless this process knows the decision of an id."""
        known = [None if row[3] is None else self._outbox.own(row[3]) for row in rows]
        made = [
            self._decide(task, arms, context, id, None, True)
            for (task, arms, context, id), one in zip(rows, known, strict=True)
            if one is None
        ]
        sent = iter(self._sent(made))
        return [(one or next(sent)).decision for one in known]

    def _decide(
        self,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None,
        id: str | None,
        unit: str | None,
        shown: bool,
    ) -> Asked:
        """Make a decision."""
        now = self._clock()
        task = check_text("`task` of ask", task)
        whole = task if unit is None else check_text("`unit` of ask", unit)
        offer = self._offers.read(arms, context, self._dim)
        learner, number = self._number_of(task, offer.features.shape[1])
        forbidden = self._forbidden.get(task)
        chosen = self._guard.choose(learner, self._holdback, task, number, offer, whole, forbidden, self._rng)
        named = self._ids.next(now) if id is None else str(id)
        return self._guard.record(named, now, task, offer, chosen, self.version, shown)

    def _sent(self, made: list[Asked]) -> list[Asked]:
        """Send decisions, and return them; where another process was first with an id, its decision."""
        if not made:
            return []
        rows = [row_of(asked, 0) for asked in made]
        new = self._outbox.send([(table, (None, *values[1:])) for table, values in rows])
        found = []
        for asked, first in zip(made, new, strict=True):
            known = asked if first else self._outbox.find(asked.id)
            if known is None:
                raise JournalError(
                    f"the database must be reached for decision {asked.id!r}. Got no connection."
                )
            if first:
                self._outbox.remember(asked)
            found.append(known)
        return found

    def find(self, id: str) -> Asked | None:
        """Return the record of a decision with its rewards so far; None if the id is unknown."""
        with self._lock:
            found = self._outbox.find(check_text("`id` of find", id))
            if found is None and self._outbox.away:
                raise JournalError(f"the database must be reached to find {id!r:.200}. Got no connection.")
            return found

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
        self.tell_many([id], [reward], [event], [at], [played])

    def tell_many(
        self,
        ids: Sequence[str],
        rewards: Sequence[float],
        events: Sequence[str | None] | None = None,
        ats: Sequence[float | None] | None = None,
        played: Sequence[int | str | None] | None = None,
    ) -> None:
        """Tell many rewards in one transaction, all or none; arguments are those of `Agent.tell_many`."""
        n_rows = len(ids)
        check_lengths("tell_many", n_rows, rewards=rewards, events=events, ats=ats, played=played)
        none = [None] * n_rows
        given = zip(ids, rewards, events or none, ats or none, played or none, strict=True)
        with self._lock:
            told: dict[tuple[str, str], Told] = {}
            for one in given:
                found = self._check_told(*one)
                if found is not None:
                    check_same(told.setdefault((found.id, found.event), found).value, found)
            if told:
                self._send_told(list(told.values()))

    def _check_told(
        self, id: str, reward: float, event: str | None, at: float | None, played: int | str | None
    ) -> Told | None:
        """Return what to send of a reward; None if that was told before."""
        value = check_reward(reward)
        name = "" if event is None else check_text("`event` of tell", event)
        when = self._clock() if at is None else check_time(at)
        asked = self._outbox.find(check_text("`id` of tell", id))
        told = Told(id, name, when, value, self._place(id, asked, played))
        before = None if asked is None else asked.told(name)
        if before is None:
            return told
        check_same(before.value, told)
        return None

    def _send_told(self, told: list[Told]) -> None:
        new = self._outbox.send([("rewards", (None, *one)) for one in told], queue=self._queues)
        for one, first in zip(told, new, strict=True):
            if not first:
                asked = self._outbox.find(one.id)
                before = None if asked is None else asked.told(one.event)
                if before is not None:
                    check_same(before.value, one)
            elif own := self._outbox.own(one.id):
                own.play(one.played)
                own.rewards.append(Reward(one.at, one.event, one.value))

    def _place(self, id: str, asked: Asked | None, played: int | str | None) -> int:
        """Return the place of the arm that was played, or say what is wrong with the id or the arm.

        Whether a decision of another process exists is found out when the database is back.
        """
        if asked is not None:
            return check_played(asked, played)
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
                self._outbox.send([("shown", (None, id, self._clock()))], queue=self._queues)

    def close(self) -> None:
        """Send what is queued, if the database can be reached, and give up the connection."""
        with self._lock:
            self._outbox.close()


def check_same(value: float, told: Told) -> None:
    """Raise if a reward has another value than one that was told before."""
    if value != told.value:
        raise ValueError(
            f"`reward` of decision {told.id!r} must be {value}, as told before. Got {told.value}."
        )
