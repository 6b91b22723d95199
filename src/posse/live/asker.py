"""Processes that ask and tell beside the one that learns, through a PostgreSQL journal."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.core.learner import Learner
from posse.live.desk import check_played, check_reward
from posse.live.engine import EngineState
from posse.live.events import Told
from posse.live.guards import Guard
from posse.live.ids import Ids, check_text
from posse.live.journal import REMEMBERED, JournalError
from posse.live.offers import Offers
from posse.live.packing import from_bytes
from posse.live.postgres import connect, find, insert_of, load_state
from posse.live.records import Asked, Decision
from posse.live.rows import row_of
from posse.live.settings import Settings
from posse.live.starts import UNUSED, new_learner
from posse.numerics.checks import check_integer, check_number

with extra("postgres"):
    import psycopg

# What the loss of a database looks like.
LOST = (psycopg.OperationalError, psycopg.InterfaceError)


class Asker:
    """Asks and tells for an agent that learns in another process: `Agent.open` on the same database.

    It decides by the last state that the other process has published. While the database cannot be reached,
    decisions go on by that state, and decisions and rewards are queued, up to a bound; queued ones are lost
    if this process dies.

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
        self._address, self._durability, self._clock = address, durability, clock
        self._every = check_number("`refresh_every` of Asker", refresh_every, 0.0)
        self._most = check_integer("`most_queued` of Asker", most_queued, 0)
        self._rng = np.random.default_rng(seed)
        self._lock, self._ids = threading.RLock(), Ids()
        self._queue: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._own: OrderedDict[str, Asked] = OrderedDict()
        self._learner: Learner | None = None
        self._numbers: dict[str, int] = {}
        self._forbidden: dict[str, frozenset[str]] = {}
        self.version, self._turn, self._looked, self.conflicts = 0, -1, -np.inf, 0
        self._db: psycopg.Connection[Any] | None = None
        self._retry_at = -np.inf
        db = self._connected()
        stored = None
        if db is not None:
            try:
                stored = db.execute("SELECT value FROM posse_meta WHERE key = 'settings'").fetchone()
            except psycopg.errors.UndefinedTable:
                stored = None
        if stored is None:
            self.close()
            raise JournalError(
                "the database must be there, with an agent that `Agent.open` has made. Got none."
            )
        settings: Settings = from_bytes(bytes(stored[0]))
        self._settings, self._guard, self._offers = settings, Guard(settings), Offers(settings.encoder)
        self._refresh()

    @property
    def queued(self) -> int:
        """How many decisions and rewards wait for the database."""
        return len(self._queue)

    def _connected(self) -> psycopg.Connection[Any] | None:
        """Return a connection, tried again once a second; None if the database cannot be reached."""
        if self._db is not None and not self._db.closed and not self._db.broken:
            return self._db
        if time.monotonic() < self._retry_at:
            return None
        try:
            self._db = connect(self._address, self._durability)
        except LOST:
            self._db, self._retry_at = None, time.monotonic() + 1.0
        return self._db

    def _refresh(self) -> None:
        """Send what is queued, and decide by the last state that was published, if there is another one."""
        db = self._connected()
        self._looked = time.monotonic()
        if db is None:
            return
        try:
            self._flush(db)
            state = load_state(db, self._turn)
        except LOST:
            return
        if state is not None:
            self._adopt(state)

    def _adopt(self, state: EngineState) -> None:
        self._turn, self.version = state.last, state.live
        self._forbidden = {task: frozenset(arms) for task, arms in state.forbidden.items()}
        if state.learner is not None:
            self._learner = Learner.restore(state.learner, seed=self._rng)
            gone = set(self._learner.retired.tolist())
            self._numbers = {
                name: number
                for number, name in enumerate(self._learner.names or ())
                if number not in gone and not name.startswith(UNUSED)
            }

    def _flush(self, db: psycopg.Connection[Any]) -> None:
        while self._queue:
            table, values = self._queue[0]
            if db.execute(insert_of(table), values).rowcount == 0 and table == "rewards":
                row = db.execute(
                    "SELECT value FROM posse_rewards WHERE id = %s AND event = %s", (values[1], values[2])
                ).fetchone()
                self.conflicts += row is not None and row[0] != values[4]
            self._queue.popleft()

    def _send(self, table: str, values: tuple[Any, ...]) -> bool:
        """Write a row, or queue it; return whether it was new, as far as is known."""
        db = self._connected()
        if db is not None:
            try:
                self._flush(db)
                return db.execute(insert_of(table), values).rowcount == 1
            except LOST:
                pass
        if len(self._queue) >= self._most:
            raise JournalError(
                f"the database must be reached, or at most {self._most} rows be queued. Got no connection."
            )
        self._queue.append((table, values))
        return True

    def _find(self, id: str) -> Asked | None:
        """Return a decision from the database or, where that cannot be reached, one of this process."""
        db = self._connected()
        if db is not None:
            try:
                self._flush(db)
                return find(db, id)
            except LOST:
                pass
        return self._own.get(id)

    def _number_of(self, task: str, dim: int) -> tuple[Learner, int]:
        """Return the learner and a task's number; one that was not published yet is new here, too."""
        if self._learner is None:
            self._learner = new_learner(self._settings.policy, dim, self._rng)
        number = self._numbers.get(task)
        if number is None:
            number = self._numbers[task] = int(self._learner.add([task])[0])
        return self._learner, number

    def _remember(self, asked: Asked) -> None:
        self._own[asked.id] = asked
        if len(self._own) > REMEMBERED:
            self._own.popitem(last=False)

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
            now = self._clock()
            known = None if id is None else self._find(check_text("`id` of ask", id))
            if known is not None:
                return known.decision
            id = self._ids.next(now) if id is None else str(id)
            task = check_text("`task` of ask", task)
            learner = self._learner
            offer = self._offers.read(arms, context, None if learner is None else learner.dim)
            learner, number = self._number_of(task, offer.features.shape[1])
            forbidden = self._forbidden.get(task)
            chosen = self._guard.choose(learner, number, offer, unit or task, forbidden, self._rng)
            asked = self._guard.record(id, now, task, offer, chosen, self.version, shown)
            table, values = row_of(asked, 0)
            if not self._send(table, (None, *values[1:])):  # another process was first with this id
                known = self._find(id)
                assert known is not None
                return known.decision
            self._remember(asked)
            return asked.decision

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
        with self._lock:
            asked = self._find(id)
            if asked is None:
                raise ValueError(f"`id` of tell must be that of a decision. Got {id!r}, which is unknown.")
            name = "" if event is None else check_text("`event` of tell", event)
            place = check_played(asked, played)
            before = asked.told(name)
            told = Told(asked.id, name, self._clock() if at is None else float(at), value, place)
            if before is None and not self._send("rewards", (None, *told)):
                again = self._find(id)
                before = None if again is None else again.told(name)
            if before is not None and before.value != value:
                raise ValueError(
                    f"`reward` of decision {id!r} must be {before.value}, as told before. Got {value}."
                )

    def activate(self, id: str) -> None:
        """Say that a decision was shown which was asked for with `shown=False`."""
        with self._lock:
            asked = self._find(id)
            if asked is None:
                raise ValueError(
                    f"`id` of activate must be that of a decision. Got {id!r}, which is unknown."
                )
            if not asked.shown:
                self._send("shown", (None, asked.id, self._clock()))

    def close(self) -> None:
        """Send what is queued, if the database can be reached, and give up the connection."""
        with self._lock:
            if self._db is not None and not self._db.closed:
                with suppress(*LOST):
                    self._flush(self._db)
                self._db.close()
