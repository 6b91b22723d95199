"""Where a service keeps its spaces, its tokens and its agents."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from posse.core.extras import extra
from posse.core.model import Model
from posse.live.agent import Agent
from posse.live.files import read_desk
from posse.live.journal import JournalError
from posse.live.locks import FileLock
from posse.live.status import Status, status_of
from posse.serve.agents import SpaceAgent
from posse.serve.roles import Token
from posse.serve.spaces import Space, agent_options, policy_of

with extra("serve"):
    import msgspec

# What SQLite files of this kind are marked with ("psrv"), and the format of their tables.
MARK, FORMAT = 0x70737276, 1
TABLES = """
CREATE TABLE spaces (name TEXT NOT NULL, version INTEGER NOT NULL, space TEXT NOT NULL,
    PRIMARY KEY (name, version)) STRICT;
CREATE TABLE tokens (digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, roles TEXT NOT NULL) STRICT;
"""


class Store(Protocol):
    """What a service asks of its store."""

    def spaces(self) -> list[tuple[int, Space]]:
        """Return all versions of all spaces with their numbers, the oldest of each first."""

    def save(self, space: Space, version: int) -> None:
        """Keep a version of a space, in the place of one with its number."""

    def open(self, space: Space, version: int, model: Model | None = None) -> SpaceAgent:
        """Return the agent of a version of a space; a new one begins with the model, if there is one."""

    def clear(self, name: str, version: int) -> None:
        """Make room for a journal, in the place of one that was begun and never used."""

    def journal(self, name: str, version: int) -> str | Path:
        """Return where the journal of a version of a space is."""

    def tokens(self) -> list[Token]:
        """Return all tokens."""

    def add_token(self, token: Token) -> None:
        """Keep a token."""

    def drop_token(self, name: str) -> bool:
        """Forget the token of that name; return whether there was one."""

    def statuses(self) -> dict[tuple[str, int], Status]:
        """Return how all agents are doing, by the names and versions of their spaces, the oldest first."""

    def close(self) -> None:
        """Give up the store."""


def path_of(address: str) -> Path:
    """Return the file that an address names: `sqlite:PATH`, or the path alone.

    Examples
    --------
    >>> path_of("sqlite:shop.db").name
    'shop.db'
    """
    return Path(address.removeprefix("sqlite:"))


def open_store(address: str, durability: str = "process") -> Store:
    """Open the store of a service, or make one, to be served from.

    Parameters
    ----------
    address : str
        `sqlite:PATH`, a file and a folder beside it.
    durability : "process" or "power"
        What an answer promises, as of `Agent.open`.
    """
    return FileStore(path_of(address), durability)


def is_kept(store: Store, name: str, version: int) -> bool:
    """Return whether a store has a version of a space whose journal was begun."""
    return any(space.fixed and (space.name, number) == (name, version) for number, space in store.spaces())


class FileStore:
    """A SQLite file for spaces and tokens, and beside it a folder with a journal for each version of a space.

    Parameters
    ----------
    path : Path
    durability : "process" or "power"
    serving : bool
        Whether agents are opened: one process at a time may do that. Others may look, and keep tokens.
    clock : callable
        Returns seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        durability: str = "process",
        *,
        serving: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self._durability, self._clock = path, durability, clock
        self.folder = path.with_name(path.name + "-spaces")
        self._lock = FileLock(path) if serving else None
        try:
            self._db = self._connect()
        except BaseException:
            self._release()
            raise

    def _connect(self) -> sqlite3.Connection:
        with self._plainly():
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10.0)
            try:
                self._check(db)
            except BaseException:
                db.close()
                raise
        return db

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn errors of SQLite and of the disk into one sentence."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise JournalError(f"{str(self.path)!r} must be the store of a service: {error}.") from error

    def _check(self, db: sqlite3.Connection) -> None:
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        (number,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if mark == 0 and number == 0 and tables == 0:
            db.executescript(
                f"BEGIN; {TABLES} PRAGMA application_id = {MARK}; PRAGMA user_version = {FORMAT}; COMMIT;"
            )
        elif mark != MARK:
            raise JournalError(f"{str(self.path)!r} must be the store of a service. Got another SQLite file.")
        elif number > FORMAT:
            raise JournalError(
                f"{str(self.path)!r} must be of format {FORMAT} at most. Got {number}: a later posse made it."
            )
        db.execute("PRAGMA synchronous = FULL")

    def journal(self, name: str, version: int) -> Path:
        """Return where the journal of a version of a space is."""
        return self.folder / f"{name}.{version}.db"

    def spaces(self) -> list[tuple[int, Space]]:
        """Return all versions of all spaces with their numbers, the oldest of each first."""
        with self._plainly():
            rows = self._db.execute("SELECT version, space FROM spaces ORDER BY name, version").fetchall()
        return [(version, msgspec.json.decode(text, type=Space)) for version, text in rows]

    def save(self, space: Space, version: int) -> None:
        """Keep a version of a space, in the place of one with its number."""
        text = msgspec.json.encode(space).decode()
        with self._plainly():
            self._db.execute("INSERT OR REPLACE INTO spaces VALUES (?, ?, ?)", (space.name, version, text))

    def open(self, space: Space, version: int, model: Model | None = None) -> Agent:
        """Return the agent of a version of a space; a new one begins with the model, if there is one."""
        with self._plainly():
            if not is_kept(self, space.name, version):
                self.clear(space.name, version)
        return Agent.open(
            self.journal(space.name, version),
            policy_of(space.policy),
            model=model,
            durability=self._durability,
            clock=self._clock,
            **agent_options(space),
        )

    def clear(self, name: str, version: int) -> None:
        """Make room for a journal, in the place of one that was begun and never used."""
        self.folder.mkdir(exist_ok=True)
        journal = self.journal(name, version)
        for path in journal.parent.glob(f"{journal.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def tokens(self) -> list[Token]:
        """Return all tokens."""
        with self._plainly():
            rows = self._db.execute("SELECT digest, name, roles FROM tokens ORDER BY name").fetchall()
        return [Token(digest, name, tuple(roles.split(","))) for digest, name, roles in rows]

    def add_token(self, token: Token) -> None:
        """Keep a token."""
        row = (token.digest, token.name, ",".join(token.roles))
        with self._plainly():
            if not self._db.execute("INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)", row).rowcount:
                raise ValueError(f"the name of a token must be a new one. Got {token.name!r}.")

    def drop_token(self, name: str) -> bool:
        """Forget the token of that name; return whether there was one."""
        with self._plainly():
            return self._db.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0

    def statuses(self) -> dict[tuple[str, int], Status]:
        """Return how all agents are doing, by the names and versions of their spaces, the oldest first."""
        found = {}
        for version, space in self.spaces():
            path = self.journal(space.name, version)
            if path.is_file():
                desk = read_desk(path)
                found[space.name, version] = status_of(desk)
                desk.journal.close()
        return found

    def close(self) -> None:
        """Give up the store."""
        self._db.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
