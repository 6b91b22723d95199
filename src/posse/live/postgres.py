"""A journal in PostgreSQL: many processes write decisions and rewards, one puts them in order and learns.

Rows get a turn when the learner takes them. Sequence numbers of a database become visible out of order; turns
do not, as one process gives them, so that a version can name exactly the events that it was learned from.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any, ClassVar

from posse.core.extras import extra
from posse.live.database import (
    COLUMNS,
    STATES,
    agree_on,
    connect,
    find,
    holder_of,
    insert_of,
    load_state,
    plainly,
)
from posse.live.engine import EngineState
from posse.live.events import Event, Forbade, Joined, Told
from posse.live.journal import LAST, JournalError
from posse.live.packing import from_bytes, to_bytes
from posse.live.records import Asked
from posse.live.rows import event_of, row_of

with extra("postgres"):
    import psycopg

FORMAT = 1
# The lock of a process that was killed is free when the database has noticed: so long it is waited for.
PATIENCE = "2s"
# So many rows are read at once in a replay.
PAGE = 10_000
# The lock that the one process holds which learns; every schema of a database has a lock of its own.
SCHEMA = "(SELECT oid::bigint FROM pg_namespace WHERE nspname = current_schema())"
LOCK = f"({0x706F7373}::bigint << 32) + {SCHEMA}"
TABLES = """
CREATE TABLE IF NOT EXISTS posse_meta (key TEXT PRIMARY KEY, value BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS posse_decisions (
    turn BIGINT UNIQUE, id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, task TEXT NOT NULL,
    arm INTEGER NOT NULL, names TEXT, chances BYTEA NOT NULL, features BYTEA NOT NULL,
    version INTEGER NOT NULL, flags INTEGER NOT NULL, unit INTEGER NOT NULL,
    seq BIGINT GENERATED ALWAYS AS IDENTITY);
CREATE TABLE IF NOT EXISTS posse_rewards (
    turn BIGINT UNIQUE, id TEXT NOT NULL, event TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    value DOUBLE PRECISION NOT NULL, played INTEGER NOT NULL,
    seq BIGINT GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (id, event));
CREATE TABLE IF NOT EXISTS posse_shown (
    turn BIGINT UNIQUE, id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL,
    seq BIGINT GENERATED ALWAYS AS IDENTITY);
CREATE TABLE IF NOT EXISTS posse_others (turn BIGINT PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS posse_states (
    kind TEXT, number BIGINT, data BYTEA NOT NULL, PRIMARY KEY (kind, number));
CREATE INDEX IF NOT EXISTS posse_decisions_new ON posse_decisions (seq) WHERE turn IS NULL;
CREATE INDEX IF NOT EXISTS posse_rewards_new ON posse_rewards (seq) WHERE turn IS NULL;
CREATE INDEX IF NOT EXISTS posse_shown_new ON posse_shown (seq) WHERE turn IS NULL;
"""


class PostgresJournal:
    """The journal of the one process that learns.

    Parameters
    ----------
    address : str
        As `postgresql://user@host/database`.
    durability : "process" or "power"
        Whether an answer survives the death of a process, or that of the database's machine, too.
    read_only : bool
        Whether another process may learn; nothing is written then, and all is read as of one time.
    """

    shared: ClassVar[bool] = True

    def __init__(self, address: str, durability: str = "process", *, read_only: bool = False) -> None:
        self._read_only, self._mutex = read_only, threading.RLock()
        with plainly():
            self._db = connect(address, durability)
            try:
                self._begin(read_only)
                self._last = self._read_last()
                if not read_only:
                    self._db.execute(
                        "DELETE FROM posse_states WHERE kind = 'snapshot' AND number > %s", (self._last,)
                    )
            except BaseException:
                self._db.close()
                raise

    def _begin(self, read_only: bool) -> None:
        """Take the lock and make tables, unless they are only read; check who has made them."""
        if read_only:
            self._db.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        else:
            self._take_lock()
            self._db.execute(TABLES)
        found = self._db.execute("SELECT value FROM posse_meta WHERE key = 'format'").fetchone()
        if found is not None and int(bytes(found[0])) > FORMAT:
            raise JournalError(
                f"the journal must be of format {FORMAT} at most. Got {int(bytes(found[0]))}: a later posse "
                "made it."
            )
        if not read_only:
            self.set_meta("format", str(FORMAT).encode())

    def _take_lock(self) -> None:
        db = self._db
        db.execute(f"SET lock_timeout = '{PATIENCE}'")
        try:
            db.execute(f"SELECT pg_advisory_lock({LOCK})")
        except psycopg.errors.LockNotAvailable:
            raise JournalError(
                f"one process at a time must learn; others ask, by `Asker`. Got {holder_of(db, LOCK)}."
            ) from None
        db.execute("SET lock_timeout = 0")

    def _read_last(self) -> int:
        found = [self._db.execute(f"SELECT max(turn) FROM posse_{table}").fetchone() for table in COLUMNS]
        return max(int(self.meta(LAST) or 0), *(row[0] or 0 for row in found if row is not None))

    def meta(self, key: str) -> bytes | None:
        """Return what is kept under a key; None if nothing is."""
        with plainly():
            row = self._db.execute("SELECT value FROM posse_meta WHERE key = %s", (key,)).fetchone()
            return None if row is None else bytes(row[0])

    def set_meta(self, key: str, value: bytes) -> None:
        """Keep something under a key."""
        with plainly():
            self._db.execute(
                "INSERT INTO posse_meta VALUES (%s, %s) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, value),
            )

    def append(self, events: Sequence[Event]) -> int:
        """Write events with the turns that come next, all or none; those that others wrote get theirs."""
        last = self._last
        with self._mutex, plainly(), self._db.transaction():
            for event in events:
                last += 1
                if isinstance(event, Joined):
                    agree_on(self._db, event.dim)
                table, values = row_of(event, last)
                if self._db.execute(insert_of(table), values).rowcount == 0:
                    self._take(table, event, last)
        self._last = last
        return last

    def copy(self, numbered: Sequence[tuple[int, Event]]) -> None:
        """Write events of another journal with the numbers that they have, which come after all others."""
        with self._mutex, plainly(), self._db.pipeline(), self._db.transaction():
            for number, event in numbered:
                table, values = row_of(event, number)
                self._db.execute(insert_of(table), values)
        for dim in {event.dim for _, event in numbered if isinstance(event, Joined)}:
            with plainly():
                agree_on(self._db, dim)
        self._last = numbered[-1][0]

    def _take(self, table: str, event: Event, turn: int) -> None:
        """Give a turn to a row that an asker wrote."""
        key = "id = %s AND event = %s" if isinstance(event, Told) else "id = %s"
        named: Any = event
        values = (turn, named.id, named.event) if isinstance(event, Told) else (turn, named.id)
        taken = self._db.execute(f"UPDATE posse_{table} SET turn = %s WHERE {key} AND turn IS NULL", values)
        if taken.rowcount != 1:
            raise JournalError(f"an event must have one turn. Got {named.id!r} with one already.")

    def new(self, most: int) -> list[Event]:
        """Return events of others that have had no turn yet: decisions first, then what needs them."""
        found: list[Event] = []
        with self._mutex, plainly(), self._db.transaction():
            # all is read as of one time: a reward is never seen without its decision
            if not self._read_only:
                self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for table in ("decisions", "shown", "rewards"):
                known = (
                    ""
                    if table == "decisions"
                    else (f" AND EXISTS (SELECT 1 FROM posse_decisions d WHERE d.id = posse_{table}.id)")
                )
                rows = self._db.execute(
                    f"SELECT {COLUMNS[table]} FROM posse_{table} "
                    f"WHERE turn IS NULL{known} ORDER BY seq LIMIT %s",
                    (most,),
                ).fetchall()
                found += [event_of(table, row) for row in rows]
                if table == "decisions" and len(rows) == most:
                    break  # rewards may belong to decisions that were left for the next time
        return found

    def acknowledge(self) -> None:
        """Return at once: every transaction is as durable as was promised when it ends."""

    def find(self, id: str, before: int | None = None) -> Asked | None:
        """Return a decision with the rewards it had before the event of that number; None if unknown."""
        with plainly():
            return find(self._db, id, self._last + 1 if before is None else before)

    def settled(self, asked: Asked) -> None:
        """Do nothing: the database has all decisions."""

    def save_version(self, number: int, state: Any) -> None:
        """Keep the state of a version."""
        if not self._read_only:
            self._save("version", number, state)

    def load_version(self, number: int) -> Any:
        """Return the state of a version, None if it was not kept."""
        with plainly():
            row = self._db.execute(
                "SELECT data FROM posse_states WHERE kind = 'version' AND number = %s", (number,)
            ).fetchone()
            return None if row is None else from_bytes(bytes(row[0]))

    def drop_version(self, number: int) -> None:
        """Forget the state of a version."""
        with plainly():
            self._db.execute("DELETE FROM posse_states WHERE kind = 'version' AND number = %s", (number,))

    def _save(self, kind: str, number: int, state: Any) -> None:
        with self._mutex, plainly():  # a thread that brings a refit is not to be in another's transaction
            self._db.execute(
                "INSERT INTO posse_states VALUES (%s, %s, %s) "
                "ON CONFLICT (kind, number) DO UPDATE SET data = excluded.data",
                (kind, number, to_bytes(state)),
            )

    def save_state(self, state: EngineState, *, wait: bool = False, alone: bool = False) -> bool:
        """Publish a state, for those that ask and to go on from; two are kept, or one alone."""
        self._save("snapshot", state.last, state)
        with plainly():
            self._db.execute(
                "DELETE FROM posse_states WHERE kind = 'snapshot' AND number NOT IN (SELECT number FROM "
                "posse_states WHERE kind = 'snapshot' ORDER BY number DESC LIMIT %s)",
                (1 if alone else 2,),
            )
            self._db.execute("SELECT pg_notify(%s, current_schema())", (STATES,))
        return True

    def load_state(self) -> EngineState | None:
        """Return the last state that was published; None if there is none."""
        with plainly():
            return load_state(self._db)

    def knows(self, task: str) -> bool:
        """Return whether there are decisions of a task."""
        with plainly():
            found = self._db.execute("SELECT 1 FROM posse_decisions WHERE task = %s LIMIT 1", (task,))
            return found.fetchone() is not None

    def erase(self, task: str, number: int) -> None:
        """Remove all decisions of a task, their rewards and its name."""
        own = "(SELECT id FROM posse_decisions WHERE task = %s)"
        with self._mutex, plainly(), self._db.transaction():
            for table in ("rewards", "shown"):
                self._db.execute(f"DELETE FROM posse_{table} WHERE id IN {own}", (task,))
            self._db.execute("DELETE FROM posse_decisions WHERE task = %s", (task,))
            rows = self._db.execute(
                "SELECT turn, kind, data FROM posse_others WHERE kind IN ('joined', 'forbade')"
            )
            for row in rows.fetchall():
                event = event_of("others", row)
                if isinstance(event, Joined | Forbade) and event.task == task:
                    _, values = row_of(event._replace(task=f"(erased {number})"), row[0])
                    self._db.execute("UPDATE posse_others SET data = %s WHERE turn = %s", (values[2], row[0]))

    def replay(self, after: int) -> Iterator[tuple[int, Event]]:
        """Go through all events that have had a turn after a number, in order."""
        with plainly():
            tables = [self._rows_of(table, after) for table in COLUMNS]
            for turn, table, row in merge(*tables, key=lambda item: item[0]):
                yield turn, event_of(table, row)

    def _rows_of(self, table: str, after: int) -> Iterator[tuple[int, str, tuple[Any, ...]]]:
        page = f"SELECT {COLUMNS[table]} FROM posse_{table} WHERE turn > %s ORDER BY turn LIMIT {PAGE}"
        while rows := self._db.execute(page, (after,)).fetchall():
            after = rows[-1][0]
            for row in rows:
                yield row[0], table, row

    @property
    def backlog(self) -> int:
        """How many rows of other processes have had no turn yet."""
        tables = ("decisions", "rewards", "shown")
        counts = [f"(SELECT count(*) FROM posse_{table} WHERE turn IS NULL)" for table in tables]
        with plainly():
            row = self._db.execute(f"SELECT {' + '.join(counts)}").fetchone()
            assert row is not None
            return int(row[0])

    def decisions(self, before: float = float("inf")) -> Iterator[Asked]:
        """Go through all decisions made before a time that have had a turn, in the order of these."""
        with plainly():
            ids = self._db.execute(
                "SELECT id FROM posse_decisions WHERE at < %s AND turn IS NOT NULL ORDER BY turn", (before,)
            ).fetchall()
        for (id,) in ids:
            asked = self.find(id)
            if asked is not None:
                yield asked

    def remove(self, ids: Sequence[str]) -> None:
        """Remove decisions and their rewards, but for those with a reward that came meanwhile."""
        with self._mutex, plainly(), self._db.transaction():
            late = self._db.execute(
                "SELECT id FROM posse_rewards WHERE id = ANY(%s) AND turn IS NULL", (list(ids),)
            ).fetchall()
            gone = list(set(ids) - {id for (id,) in late})
            for table in ("rewards", "shown", "decisions"):
                self._db.execute(f"DELETE FROM posse_{table} WHERE id = ANY(%s)", (gone,))
            self.set_meta(LAST, b"%d" % self._last)

    def close(self) -> None:
        """Give up the connection, and with it the lock."""
        self._db.close()
