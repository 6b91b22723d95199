"""A journal in PostgreSQL: many processes write decisions and rewards, one puts them in order and learns.

Rows get a turn when the learner takes them. Sequence numbers of a database become visible out of order; turns
do not, as one process gives them, so that a version can name exactly the events that it was learned from.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import merge
from typing import Any, ClassVar

from posse.core.extras import extra
from posse.live.engine import EngineState
from posse.live.events import Event, Forbade, Joined, Told
from posse.live.journal import JournalError
from posse.live.packing import from_bytes, to_bytes
from posse.live.records import Asked, Reward
from posse.live.rows import decision_of, event_of, row_of

with extra("postgres"):
    import psycopg

FORMAT = 1
# The lock that the one process holds which learns.
LOCK = 0x706F7373
COLUMNS = {
    "decisions": "turn, id, at, task, arm, names, chances, features, version, flags, unit",
    "rewards": "turn, id, event, at, value, played",
    "shown": "turn, id, at",
    "others": "turn, kind, data",
}
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
LEVELS = {"process": "off", "power": "on"}
# The lock of a process that was killed is free when the database has noticed: so long it is waited for.
PATIENCE = "2s"
# Seconds after which a database that does not answer is one that cannot be reached.
SILENCE = 5


def insert_of(table: str) -> str:
    """Return the statement that inserts a row into a table, unless it is there."""
    places = ", ".join(["%s"] * len(COLUMNS[table].split(", ")))
    return f"INSERT INTO posse_{table} ({COLUMNS[table]}) VALUES ({places}) ON CONFLICT DO NOTHING"


@contextmanager
def plainly() -> Iterator[None]:
    """Turn errors of the database into one sentence."""
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        raise JournalError(f"the database must be there, and a journal of posse in it: {text}.") from error


def connect(address: str, durability: str = "process") -> psycopg.Connection[Any]:
    """Return a connection whose transactions are as durable as is asked for."""
    name = f"process {os.getpid()} of {socket.gethostname()}"
    db = psycopg.connect(
        address,
        autocommit=True,
        application_name=name,
        connect_timeout=SILENCE,
        tcp_user_timeout=1000 * SILENCE,
        keepalives_idle=SILENCE,
        keepalives_interval=1,
        keepalives_count=2,
    )
    db.execute(f"SET synchronous_commit = {LEVELS[durability]}")
    return db


def find(db: psycopg.Connection[Any], id: str, before: int | None = None) -> Asked | None:
    """Return a decision with its rewards: all, or those that had a turn before the one of that number."""
    then = "" if before is None else "AND turn < %s"
    known = (id,) if before is None else (id, before)
    row = db.execute(
        f"SELECT {COLUMNS['decisions']} FROM posse_decisions WHERE id = %s {then}", known
    ).fetchone()
    if row is None:
        return None
    asked = decision_of(row)
    rewards = db.execute(
        f"SELECT at, event, value, played FROM posse_rewards WHERE id = %s {then} ORDER BY turn, seq", known
    )
    for at, event, value, played in rewards:
        asked.rewards.append(Reward(at, event, value))
        asked.play(played)
    shown = db.execute(f"SELECT 1 FROM posse_shown WHERE id = %s {then}", known).fetchone()
    asked.shown = asked.shown or shown is not None
    return asked


def load_state(db: psycopg.Connection[Any], other_than: int = -1) -> EngineState | None:
    """Return the last state that was published, unless it is the one of that turn; None if there is none."""
    last = db.execute("SELECT max(number) FROM posse_states WHERE kind = 'snapshot'").fetchone()
    if last is None or last[0] is None or last[0] == other_than:
        return None
    row = db.execute(
        "SELECT data FROM posse_states WHERE kind = 'snapshot' AND number = %s", (last[0],)
    ).fetchone()
    found: EngineState | None = None if row is None else from_bytes(bytes(row[0]))
    return found


def agree_on(db: psycopg.Connection[Any], dim: int) -> None:
    """Raise if another process has asked with another number of features; the first one decides."""
    db.execute("INSERT INTO posse_meta VALUES ('dim', %s) ON CONFLICT DO NOTHING", (str(dim).encode(),))
    known = known_dim(db)
    if known != dim:
        raise ValueError(f"`arms` must have shape (K, d={known}), as in other processes. Got d={dim}.")


def known_dim(db: psycopg.Connection[Any]) -> int | None:
    """Return the number of features that processes have agreed on; None if nobody has asked yet."""
    row = db.execute("SELECT value FROM posse_meta WHERE key = 'dim'").fetchone()
    return None if row is None else int(bytes(row[0]))


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
            db.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        except psycopg.errors.LockNotAvailable:
            holder = db.execute(
                "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
                "JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND l.objid = %s "
                "AND l.granted AND d.datname = current_database()",
                (LOCK,),
            ).fetchone()
            name = "another" if holder is None else holder[0]
            raise JournalError(
                f"one process at a time must learn; others ask, by `Asker`. Got {name}."
            ) from None
        db.execute("SET lock_timeout = 0")

    def _read_last(self) -> int:
        found = [self._db.execute(f"SELECT max(turn) FROM posse_{table}").fetchone() for table in COLUMNS]
        return max((row[0] for row in found if row is not None and row[0] is not None), default=0)

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
        found = self._db.execute(
            f"SELECT {COLUMNS[table]} FROM posse_{table} WHERE turn > %s ORDER BY turn", (after,)
        )
        for row in found.fetchall():
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

    def close(self) -> None:
        """Give up the connection, and with it the lock."""
        self._db.close()
