"""Rows on their way to a database that may be away: sent at once, or queued up to a bound."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from posse.core.archive import in_a_line
from posse.core.extras import extra
from posse.live.database import LOST, agree_on, connect, find, insert_of, known_dim, load_state
from posse.live.journal import REMEMBERED, JournalError
from posse.live.records import Asked

with extra("postgres"):
    import psycopg

# Seconds after which it is looked for again.
RETRY = 1.0


class Outbox:
    """A connection that comes back by itself, and a queue of what is to be sent when it does.

    A database that is away is looked for by a thread, so that nobody waits for it. When it is back, that
    thread sends what is queued. Whoever calls has the lock.

    Parameters
    ----------
    address : str
        As `postgresql://user@host/database`.
    durability : "process" or "power"
    most : int
        Rows that are queued at most.

    Attributes
    ----------
    lock : RLock
    conflicts : int
        Queued rows that were dropped: the database had others in their place, or no decision of their id.
    away : bool
        Whether the database could not be reached when it was needed last.
    """

    def __init__(self, address: str, durability: str, most: int) -> None:
        self._address, self._durability, self._most = address, durability, most
        self._queue: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._own: OrderedDict[str, Asked] = OrderedDict()
        self.lock, self.conflicts, self.away = threading.RLock(), 0, False
        self._closed, self._looking, self._why = False, False, "no connection"
        self._db: psycopg.Connection[Any] | None = connect(address, durability)

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Whether no more rows can be queued."""
        return len(self._queue) >= self._most

    def _connected(self) -> psycopg.Connection[Any] | None:
        """Return the connection; None if the database is away, and then a thread looks for it."""
        db = self._db
        if db is not None and not db.closed and not db.broken:
            return db
        if not self._looking and not self._closed:
            self._looking = True
            threading.Thread(target=self._look, daemon=True).start()
        return None

    def _look(self) -> None:
        while not self._closed:
            try:
                db = connect(self._address, self._durability)
            except LOST:
                time.sleep(RETRY)
                continue
            with self.lock:
                self._db, self._looking = db, False
                if self._closed:
                    db.close()
                    return
                with suppress(*LOST):
                    self._flush(db)
                return

    def meta(self, key: str) -> bytes | None:
        """Return what the journal keeps under a key; None if it has nothing, or there is no journal."""
        db = self._connected()
        if db is not None:
            with suppress(psycopg.errors.UndefinedTable, *LOST):
                row = db.execute("SELECT value FROM posse_meta WHERE key = %s", (key,)).fetchone()
                return None if row is None else bytes(row[0])
        return None

    def agree_on(self, dim: int) -> None:
        """Raise if others have asked with another number of features."""
        db = self._connected()
        try:
            if db is not None:
                agree_on(db, dim)
                return
        except LOST:
            pass
        raise JournalError("the database must be reached for the first decision of all. Got no connection.")

    def news(self, other_than: int) -> tuple[Any, int | None] | None:
        """Send what is queued; return the last state, if it is of another turn, and the number of features.

        None if the database is away.
        """
        db = self._connected()
        if db is None:
            return None
        try:
            self._flush(db)
            return load_state(db, other_than), known_dim(db)
        except LOST:
            return None

    def _flush(self, db: psycopg.Connection[Any]) -> None:
        while self._queue:
            table, values = self._queue[0]
            if table != "decisions" and not _known(db, values[1]):
                self.conflicts += 1
            elif db.execute(insert_of(table), values).rowcount == 0 and _differs(db, table, values):
                self.conflicts += 1
                if table == "decisions":
                    self._own.pop(values[1], None)
            self._queue.popleft()

    def send(self, rows: Sequence[tuple[str, tuple[Any, ...]]], *, queue: bool = True) -> list[bool]:
        """Write rows of tables, all or none, or queue them; return which were new, as far as is known.

        Parameters
        ----------
        rows : sequence of (table, values)
        queue : bool
            Whether they may be queued, and then be lost with this process, while the database is away.
        """
        db = self._connected()
        if db is not None:
            try:
                self._flush(db)
                new = _insert(db, rows)
            except LOST as error:
                self._why = in_a_line(error)
            else:
                self.away, self._why = False, "no connection"
                return new
        self.away = True
        if not queue or self._closed or len(self._queue) + len(rows) > self._most:
            bound = f", or at most {self._most} rows be queued" if queue else ""
            raise JournalError(f"the database must be reached{bound}. Got {self._why}.")
        self._queue.extend(rows)
        return [True] * len(rows)

    def find(self, id: str) -> Asked | None:
        """Return a decision from the database or, where that is away, one of this process."""
        db = self._connected()
        if db is not None:
            try:
                self._flush(db)
                found = find(db, id)
            except LOST:
                pass
            else:
                self.away = False
                return found
        self.away = True
        return self._own.get(id)

    def own(self, id: str) -> Asked | None:
        """Return a decision that this process has made lately."""
        return self._own.get(id)

    def remember(self, asked: Asked) -> None:
        """Keep a decision of this process in mind, for times when the database is away."""
        self._own[asked.id] = asked
        if len(self._own) > REMEMBERED:
            self._own.popitem(last=False)

    def close(self) -> None:
        """Send what is queued, if the database can be reached, and give up the connection."""
        db, self._closed = self._db, True
        if db is not None and not db.closed:
            with suppress(*LOST):
                self._flush(db)
            db.close()


def _insert(db: psycopg.Connection[Any], rows: Sequence[tuple[str, tuple[Any, ...]]]) -> list[bool]:
    """Write rows in one transaction and, if they are many, on one way there; return which were new."""
    if len(rows) == 1:
        ((table, values),) = rows
        return [db.execute(insert_of(table), values).rowcount == 1]
    with db.pipeline(), db.transaction():
        sent = [db.execute(insert_of(table), values) for table, values in rows]
    return [one.rowcount == 1 for one in sent]


def _known(db: psycopg.Connection[Any], id: str) -> bool:
    """Return whether the database has a decision of that id."""
    return db.execute("SELECT 1 FROM posse_decisions WHERE id = %s", (id,)).fetchone() is not None


def _differs(db: psycopg.Connection[Any], table: str, values: tuple[Any, ...]) -> bool:
    """Return whether the database has something else in the place of a row: another arm, another reward."""
    if table == "decisions":
        row = db.execute("SELECT arm, chances FROM posse_decisions WHERE id = %s", (values[1],)).fetchone()
        return row is not None and (row[0], bytes(row[1])) != (values[4], values[6])
    if table == "rewards":
        row = db.execute(
            "SELECT value FROM posse_rewards WHERE id = %s AND event = %s", (values[1], values[2])
        ).fetchone()
        return row is not None and row[0] != values[4]
    return False
