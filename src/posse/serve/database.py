"""A service in PostgreSQL: spaces and tokens in a schema, and one for each version of a space."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from posse.core.extras import extra
from posse.core.model import Model
from posse.live.agent import Agent
from posse.live.database import connect, in_schema
from posse.live.engine import Version
from posse.live.files import is_address, name_of, read_desk
from posse.live.journal import JournalError
from posse.live.packing import from_bytes, to_bytes
from posse.live.status import Status, status_of
from posse.serve.agents import SpaceAgent
from posse.serve.clock import DatabaseClock
from posse.serve.roles import Token
from posse.serve.spaces import Space, UnknownError, agent_options, policy_of
from posse.serve.stores import is_kept

with extra("serve"):
    import msgspec
with extra("postgres"):
    import psycopg
    from psycopg import sql

FORMAT = 1
SCHEMA = "posse_serve"
TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS spaces (
    name TEXT NOT NULL, version INTEGER NOT NULL, space TEXT NOT NULL, PRIMARY KEY (name, version));
CREATE TABLE IF NOT EXISTS tokens (digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, roles TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL,
    model BYTEA, answer TEXT, fault TEXT);
CREATE TABLE IF NOT EXISTS accounts (
    name TEXT NOT NULL, version INTEGER NOT NULL, at TIMESTAMPTZ NOT NULL, account TEXT NOT NULL,
    PRIMARY KEY (name, version));
CREATE TABLE IF NOT EXISTS traffic (
    at DOUBLE PRECISION PRIMARY KEY, step INTEGER NOT NULL, spaces TEXT NOT NULL);
"""
# Where it is said that spaces have changed.
SPACES = "posse_spaces"
# The lock of the process that learns, and the lock of one that makes tables.
LEARNING, MAKING = 0x70737276, 0x70737277
# Seconds in which a process that learns must have done what it was asked for.
PATIENCE = 15.0
FAULTS: Mapping[str, type[Exception]] = {"ValueError": ValueError, "UnknownError": UnknownError}


class Account(msgspec.Struct):
    """What the process that learns says of an agent."""

    status: Status
    versions: tuple[Version, ...]


class Order(NamedTuple):
    """Something that the process that learns is asked to do: its number, its kind, and what it is about."""

    number: int
    kind: str
    data: Any
    model: Model | None


class DatabaseStore:
    """The spaces, tokens and agents of a service in a PostgreSQL database, for the process that learns.

    Its connection comes back by itself with the next call, after a database that was away.

    Parameters
    ----------
    address : str
        As `postgresql://user@host/database`. One service has a database.
    durability : "process" or "power"
    making : bool
        Whether the tables are made, if they are not there.

    Attributes
    ----------
    clock : DatabaseClock
        Which all agents have.
    """

    def __init__(self, address: str, durability: str = "process", *, making: bool = False) -> None:
        self.address, self._durability, self.clock = address, durability, DatabaseClock()
        self._lock = threading.RLock()
        with self._plainly():
            self._db = connect(in_schema(address, SCHEMA))
        try:
            with self._plainly():
                self._check(making)
            self.read_clock()
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        try:
            yield
        except psycopg.Error as error:
            text = " ".join(str(error).split())
            raise JournalError(
                f"{name_of(self.address)!r} must be a database with a service: {text}."
            ) from error

    def _check(self, making: bool) -> None:
        db = self._db
        if making:
            with db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
                db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                db.execute(TABLES)
                db.execute("INSERT INTO meta VALUES ('format', %s) ON CONFLICT DO NOTHING", (str(FORMAT),))
        elif not has_service(db):
            raise JournalError(f"{name_of(self.address)!r} must be the store of a service. Got none there.")
        row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if row is None or int(row[0]) > FORMAT:
            found = "none" if row is None else f"{row[0]}: a later posse made it"
            raise JournalError(f"{name_of(self.address)!r} must be of format {FORMAT} at most. Got {found}.")

    def _execute(self, statement: Any, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        with self._lock, self._plainly():
            if self._db.closed or self._db.broken:
                self._db = connect(in_schema(self.address, SCHEMA))
            return self._db.execute(statement, values)

    def read_clock(self) -> None:
        """Put the clock right."""
        row = self._execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        if row is not None:
            self.clock.put_right(row[0])

    def journal(self, name: str, version: int) -> str:
        """Return where the journal of a version of a space is."""
        return in_schema(self.address, schema_of(name, version))

    def spaces(self) -> list[tuple[int, Space]]:
        """Return all versions of all spaces with their numbers, the oldest of each first."""
        rows = self._execute("SELECT version, space FROM spaces ORDER BY name, version").fetchall()
        return [(version, msgspec.json.decode(text, type=Space)) for version, text in rows]

    def save(self, space: Space, version: int) -> None:
        """Keep a version of a space, in the place of one with its number, and say so to all processes."""
        self._execute(
            "INSERT INTO spaces VALUES (%s, %s, %s) "
            "ON CONFLICT (name, version) DO UPDATE SET space = excluded.space",
            (space.name, version, msgspec.json.encode(space).decode()),
        )
        self._execute("SELECT pg_notify(%s, '')", (SPACES,))

    def open(self, space: Space, version: int, model: Model | None = None) -> SpaceAgent:
        """Return the agent of a version of a space; a new one begins with the model, if there is one."""
        if not is_kept(self, space.name, version):
            self.clear(space.name, version)
        return Agent.open(
            self.journal(space.name, version),
            policy_of(space.policy),
            model=model,
            durability=self._durability,
            clock=self.clock,
            **agent_options(space),
        )

    def clear(self, name: str, version: int) -> None:
        """Make room for a journal, in the place of one that was begun and never used."""
        schema = sql.Identifier(schema_of(name, version))
        self._execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(schema))
        self._execute(sql.SQL("CREATE SCHEMA {}").format(schema))

    def tokens(self) -> list[Token]:
        """Return all tokens."""
        rows = self._execute("SELECT digest, name, roles FROM tokens ORDER BY name").fetchall()
        return [Token(digest, name, tuple(roles.split(","))) for digest, name, roles in rows]

    def add_token(self, token: Token) -> None:
        """Keep a token."""
        row = (token.digest, token.name, ",".join(token.roles))
        if not self._execute("INSERT INTO tokens VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", row).rowcount:
            raise ValueError(f"the name of a token must be a new one. Got {token.name!r}.")

    def drop_token(self, name: str) -> bool:
        """Forget the token of that name; return whether there was one."""
        return self._execute("DELETE FROM tokens WHERE name = %s", (name,)).rowcount > 0

    def statuses(self) -> dict[tuple[str, int], Status]:
        """Return how all agents are doing, by the names and versions of their spaces, the oldest first."""
        found = {}
        for version, space in self.spaces():
            if space.fixed:
                desk = read_desk(self.journal(space.name, version))
                found[space.name, version] = status_of(desk)
                desk.journal.close()
        return found

    def order(self, kind: str, data: Any, model: Model | None = None) -> Any:
        """Let the process that learns do something, and return its answer once that is done.

        Parameters
        ----------
        kind : str
        data : object
            That JSON can write.
        model : Model, optional
            What a space is to begin with.
        """
        text = msgspec.json.encode(data).decode()
        packed = None if model is None else to_bytes(model)
        row = self._execute(
            "INSERT INTO orders (kind, data, model) VALUES (%s, %s, %s) RETURNING number",
            (kind, text, packed),
        ).fetchone()
        assert row is not None
        end = time.monotonic() + PATIENCE
        found: tuple[Any, ...] | None = None
        try:
            while found is None and time.monotonic() < end:
                time.sleep(0.02)
                found = self._execute(
                    "SELECT answer, fault FROM orders WHERE number = %s AND "
                    "(answer IS NOT NULL OR fault IS NOT NULL)",
                    row,
                ).fetchone()
        finally:
            with suppress(JournalError):
                self._execute("DELETE FROM orders WHERE number = %s", row)
        if found is None:
            raise JournalError(f"a process that learns must be at work. Got no answer in {PATIENCE:g} s.")
        if found[1] is not None:
            name, _, detail = found[1].partition(": ")
            raise FAULTS.get(name, JournalError)(detail)
        return msgspec.json.decode(found[0])

    def orders(self) -> list[Order]:
        """Return what the process that learns is asked to do, in order."""
        rows = self._execute(
            "SELECT number, kind, data, model FROM orders WHERE answer IS NULL AND fault IS NULL "
            "ORDER BY number"
        ).fetchall()
        return [
            Order(
                number, kind, msgspec.json.decode(data), None if model is None else from_bytes(bytes(model))
            )
            for number, kind, data, model in rows
        ]

    def answer(self, number: int, answer: Any) -> None:
        """Answer an order: by what it led to, or by the exception that it raised."""
        if isinstance(answer, Exception):
            name = type(answer).__name__
            self._execute("UPDATE orders SET fault = %s WHERE number = %s", (f"{name}: {answer}", number))
        else:
            text = msgspec.json.encode(answer).decode()
            self._execute("UPDATE orders SET answer = %s WHERE number = %s", (text, number))

    def save_account(self, name: str, version: int, account: Account) -> None:
        """Say how the agent of a version of a space is doing."""
        self._execute(
            "INSERT INTO accounts VALUES (%s, %s, now(), %s) "
            "ON CONFLICT (name, version) DO UPDATE SET at = now(), account = excluded.account",
            (name, version, msgspec.json.encode(account).decode()),
        )

    def account(self, name: str, version: int) -> tuple[float, Account]:
        """Return how the agent of a version of a space is doing, and how many seconds ago that was said."""
        row = self._execute(
            "SELECT extract(epoch FROM now() - at)::float8, account FROM accounts "
            "WHERE name = %s AND version = %s",
            (name, version),
        ).fetchone()
        if row is None:
            raise JournalError(f"a process that learns must have opened space {name!r}. Got none yet.")
        return row[0], msgspec.json.decode(row[1], type=Account)

    def note_traffic(self, at: float, step: float, spaces: Any, oldest: Mapping[float, float]) -> None:
        """Keep what a history takes note of, and forget rows of each step that are older than that.

        Parameters
        ----------
        at, step : float
        spaces : mapping
            Totals by the names of spaces.
        oldest : mapping of float to float
            Times by steps.
        """
        text = msgspec.json.encode(spaces).decode()
        self._execute("INSERT INTO traffic VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (at, step, text))
        for one, then in oldest.items():
            self._execute("DELETE FROM traffic WHERE step = %s AND at < %s", (one, then))

    def traffic(self) -> list[tuple[float, float, Any]]:
        """Return the time, the step and the totals of all rows that are kept, the oldest first."""
        rows = self._execute("SELECT at, step, spaces FROM traffic ORDER BY at").fetchall()
        return [(at, step, msgspec.json.decode(text)) for at, step, text in rows]

    @contextmanager
    def elected(self, stop: threading.Event) -> Iterator[bool]:
        """Wait until no other process learns, or this one is to stop; yield whether it may learn."""
        with self._plainly():
            db = connect(in_schema(self.address, SCHEMA))
        try:
            mine = False
            while not mine and not stop.is_set():
                with self._plainly():
                    row = db.execute("SELECT pg_try_advisory_lock(%s)", (LEARNING,)).fetchone()
                mine = row is not None and bool(row[0])
                if not mine:
                    stop.wait(0.2)
            yield mine
        finally:
            db.close()

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()


def schema_of(name: str, version: int) -> str:
    """Return the name of the schema of a version of a space.

    Examples
    --------
    >>> schema_of("shops", 2)
    'posse_shops_2'
    """
    return f"posse_{name}_{version}"


def has_service(db: psycopg.Connection[Any]) -> bool:
    """Return whether a database has the tables of a service."""
    row = db.execute(f"SELECT to_regclass('{SCHEMA}.meta') IS NOT NULL").fetchone()
    return row is not None and bool(row[0])


def is_service(address: str) -> bool:
    """Return whether there is the store of a service at an address of PostgreSQL.

    Examples
    --------
    >>> is_service("nowhere.db")
    False
    """
    if not is_address(address):
        return False
    try:
        with connect(address) as db:
            return has_service(db)
    except psycopg.Error:
        return False
