"""A journal in a SQLite file: one writer, every event a row."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from posse.live.engine import EngineState
from posse.live.events import Event, Forbade, Joined
from posse.live.journal import LAST, JournalError
from posse.live.locks import FileLock
from posse.live.records import Asked, Reward
from posse.live.rows import decision_of, event_of, row_of
from posse.live.states import States

# What SQLite files of this kind are marked with ("poss"), and the format of their tables.
MARK, FORMAT = 0x706F7373, 1
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE decisions (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, task TEXT NOT NULL,
    arm INTEGER NOT NULL, names TEXT, chances BLOB NOT NULL, features BLOB NOT NULL,
    version INTEGER NOT NULL, flags INTEGER NOT NULL, unit INTEGER NOT NULL) STRICT;
CREATE TABLE rewards (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, event TEXT NOT NULL, at REAL NOT NULL,
    value REAL NOT NULL, played INTEGER NOT NULL, UNIQUE (id, event)) STRICT;
CREATE TABLE shown (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL) STRICT;
CREATE TABLE others (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL) STRICT;
"""
INSERT = {
    "decisions": "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "rewards": "INSERT INTO rewards VALUES (?, ?, ?, ?, ?, ?)",
    "shown": "INSERT INTO shown VALUES (?, ?, ?)",
    "others": "INSERT INTO others VALUES (?, ?, ?)",
}
LEVELS = {"process": "NORMAL", "power": "FULL"}


class SqliteJournal:
    """Events in a SQLite file, and states in a folder beside it.

    Parameters
    ----------
    path : Path
    durability : "process" or "power"
        Whether events are there after the process was killed, once they are appended; or after the power
        failed, once they are acknowledged.
    read_only : bool
        Whether another process may have the file open; nothing is written then.
    """

    shared: ClassVar[bool] = False
    backlog = 0

    def __init__(self, path: Path, durability: str = "process", *, read_only: bool = False) -> None:
        self.path, self._powered, self._read_only = path, durability == "power", read_only
        self._lock = None if read_only else FileLock(path)
        self.states = States(path.with_name(path.name + "-states"))
        self._mutex, self._turn, self._gate = threading.RLock(), threading.Lock(), threading.Lock()
        self._queue: list[tuple[str, tuple[Any, ...]]] = []
        self._written, self._failure = 0, ""
        try:
            with self._plainly():
                self._db = self._connect(read_only, LEVELS[durability])
                if read_only:
                    self._db.execute("BEGIN")  # all is read as of one time
                self._last = self._read_last()
                if not read_only:
                    self.states.drop_snapshots(self._last)
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise

    def _connect(self, read_only: bool, level: str) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        if read_only and not self._beside_writer():
            mode += "&immutable=1"  # else SQLite would make a file to share with a writer
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            self._check(db, new=not read_only and not self.path.stat().st_size)
            if not read_only:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(f"PRAGMA synchronous = {level}")
                db.execute("PRAGMA secure_delete = ON")
        except BaseException:
            db.close()
            raise
        return db

    def _beside_writer(self) -> bool:
        """Return whether somebody may write while this is read, or we may make what that takes."""
        can_write = os.access(self.path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
        return can_write or self.path.with_name(self.path.name + "-wal").exists()

    def _check(self, db: sqlite3.Connection, new: bool) -> None:
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        (number,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if new or (mark == 0 and number == 0 and tables == 0):
            db.executescript(
                f"BEGIN; {TABLES} PRAGMA application_id = {MARK}; PRAGMA user_version = {FORMAT}; COMMIT;"
            )
        elif mark != MARK:
            raise JournalError(f"{str(self.path)!r} must be a journal of posse. Got a SQLite file of others.")
        elif number > FORMAT:
            raise JournalError(
                f"{str(self.path)!r} must be of format {FORMAT} at most. Got {number}: a later posse made it."
            )

    def _plainly(self) -> _Plainly:
        return _Plainly(self.path)

    def _read_last(self) -> int:
        found = [self._db.execute(f"SELECT max(seq) FROM {table}").fetchone()[0] for table in INSERT]
        return max(int(self.meta(LAST) or 0), *(number or 0 for number in found))

    def meta(self, key: str) -> bytes | None:
        """Return what is kept under a key; None if nothing is."""
        with self._mutex, self._plainly():
            found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return None if found is None else bytes(found[0])

    def set_meta(self, key: str, value: bytes) -> None:
        """Keep something under a key."""
        with self._mutex, self._plainly():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def append(self, events: Sequence[Event]) -> int:
        """Write events, all or none, or queue them until somebody wants them acknowledged."""
        last = self._last
        rows = []
        for event in events:
            last += 1
            rows.append(row_of(event, last))
        if self._powered:
            with self._gate:
                self._queue += rows
                self._last = last
        else:
            with self._mutex, self._plainly():
                self._write(rows)
            self._last = last
        return last

    def copy(self, numbered: Sequence[tuple[int, Event]]) -> None:
        """Write events of another journal with the numbers that they have, which come after all others."""
        with self._mutex, self._plainly():
            self._write([row_of(event, number) for number, event in numbered])
        self._last = self._written = numbered[-1][0]

    def _write(self, rows: list[tuple[str, tuple[Any, ...]]]) -> None:
        db = self._db
        if len(rows) == 1:
            ((table, values),) = rows
            db.execute(INSERT[table], values)
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            for table, some in groupby(rows, key=itemgetter(0)):
                db.executemany(INSERT[table], map(itemgetter(1), some))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def new(self, most: int) -> list[Event]:
        """Return nothing: one process at a time has the file."""
        return []

    def acknowledge(self) -> None:
        """Write what is queued, one for all callers that wait, and return when it is on the disk."""
        if not self._powered:
            return
        wanted = self._last
        with self._turn:
            if self._failure:  # what was queued then is written nowhere
                raise JournalError(self._failure)
            if self._written >= wanted:
                return
            with self._gate:
                reached, rows, self._queue = self._last, self._queue, []
            if rows:
                try:
                    with self._mutex, self._plainly():
                        self._write(rows)
                except JournalError as error:
                    self._failure = str(error)
                    raise
            self._written = reached

    def find(self, id: str, before: int | None = None) -> Asked | None:
        """Return a decision with the rewards it had before the event of that number; None if unknown."""
        if self._written < self._last:
            self.acknowledge()
        upto = 2**62 if before is None else before
        with self._mutex, self._plainly():
            row = self._db.execute("SELECT * FROM decisions WHERE id = ? AND seq < ?", (id, upto)).fetchone()
            if row is None:
                return None
            asked = decision_of(row)
            told = self._db.execute(
                "SELECT at, event, value, played FROM rewards WHERE id = ? AND seq < ? ORDER BY seq",
                (id, upto),
            )
            for at, event, value, played in told:
                asked.rewards.append(Reward(at, event, value))
                asked.play(played)
            shown = self._db.execute("SELECT 1 FROM shown WHERE id = ? AND seq < ?", (id, upto)).fetchone()
            asked.shown = asked.shown or shown is not None
            return asked

    def settled(self, asked: Asked) -> None:
        """Do nothing: the file has all decisions."""

    def save_version(self, number: int, state: Any) -> None:
        """Save the state of a version beside the file."""
        if not self._read_only:
            with self._plainly():
                self.states.save_version(number, state)

    def load_version(self, number: int) -> Any:
        """Return the state of a version; None if it was not kept or is damaged."""
        return self.states.load_version(number)

    def drop_version(self, number: int) -> None:
        """Remove the state of a version."""
        self.states.drop_version(number)

    def save_state(self, state: EngineState, *, wait: bool = False, alone: bool = False) -> bool:
        """Save a snapshot, unless one is being written; alone: and remove all others."""
        return self.states.save_snapshot(state.last, state, wait=wait, alone=alone)

    def load_state(self) -> EngineState | None:
        """Return the last snapshot that the file knows all events of; None if there is none."""
        found: EngineState | None = self.states.load_snapshot(self._last)
        return found

    def replay(self, after: int) -> Iterator[tuple[int, Event]]:
        """Go through all events after a number, in order."""
        with self._plainly():
            tables = [self._rows_of(table, after) for table in INSERT]
            for number, table, row in merge(*tables, key=lambda item: item[0]):
                yield number, event_of(table, row)

    def _rows_of(self, table: str, after: int) -> Iterator[tuple[int, str, tuple[Any, ...]]]:
        for row in self._db.execute(f"SELECT * FROM {table} WHERE seq > ? ORDER BY seq", (after,)):
            yield row[0], table, row

    def knows(self, task: str) -> bool:
        """Return whether there are decisions of a task."""
        with self._mutex, self._plainly():
            return self._db.execute("SELECT 1 FROM decisions WHERE task = ?", (task,)).fetchone() is not None

    def erase(self, task: str, number: int) -> None:
        """Remove all decisions of a task, their rewards and its name."""
        self.acknowledge()
        own = "(SELECT id FROM decisions WHERE task = ?)"
        db = self._db
        with self._mutex, self._plainly():
            db.execute("BEGIN IMMEDIATE")
            for table in ("rewards", "shown"):
                db.execute(f"DELETE FROM {table} WHERE id IN {own}", (task,))
            db.execute("DELETE FROM decisions WHERE task = ?", (task,))
            for kind in (Joined, Forbade):
                name = kind.__name__.lower()
                rows = db.execute("SELECT * FROM others WHERE kind = ?", (name,)).fetchall()
                for row in rows:
                    event = event_of("others", row)
                    if isinstance(event, Joined | Forbade) and event.task == task:
                        _, values = row_of(event._replace(task=f"(erased {number})"), row[0])
                        db.execute("UPDATE others SET data = ? WHERE seq = ?", (values[2], row[0]))
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def remove(self, ids: Sequence[str]) -> None:
        """Remove decisions and their rewards."""
        db = self._db
        with self._mutex, self._plainly():
            db.execute("BEGIN IMMEDIATE")
            for table in ("rewards", "shown", "decisions"):
                db.executemany(f"DELETE FROM {table} WHERE id = ?", [(id,) for id in ids])
            self.set_meta(LAST, b"%d" % self._last)
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def decisions(self, before: float = float("inf")) -> Iterator[Asked]:
        """Go through all decisions made before a time, with their rewards, in the order they were made."""
        ids = self._db.execute("SELECT id FROM decisions WHERE at < ? ORDER BY seq", (before,))
        for (id,) in ids:
            asked = self.find(id)
            if asked is not None:
                yield asked

    def close(self) -> None:
        """Write what is left, and let others have the file."""
        try:
            self.states.wait()
            self.acknowledge()
        finally:
            self._db.close()
            if self._lock is not None:
                self._lock.release()


class _Plainly:
    """Turns errors of SQLite into one sentence that names the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            why = str(error).rstrip(".")
            raise JournalError(
                f"{str(self.path)!r} must be a journal that can be read and written: {why}."
            ) from error
