"""What processes that learn and processes that ask have in common: connections to PostgreSQL, and rows."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from posse.core.extras import extra
from posse.live.engine import EngineState
from posse.live.journal import JournalError
from posse.live.packing import from_bytes
from posse.live.records import Asked, Reward
from posse.live.rows import decision_of

with extra("postgres"):
    import psycopg

COLUMNS = {
    "decisions": "turn, id, at, task, arm, names, chances, features, version, flags, unit",
    "rewards": "turn, id, event, at, value, played",
    "shown": "turn, id, at",
    "others": "turn, kind, data",
}
DECISION = ", ".join(f"d.{column}" for column in COLUMNS["decisions"].split(", "))
# Where it is said that a state was published; what is said is the name of its schema.
STATES = "posse_states"
LEVELS = {"process": "off", "power": "on"}
# Seconds after which a database that does not answer is one that cannot be reached, and after which the
# database has a machine that does not answer for a dead one, whose locks are free.
SILENCE = 5
# What it looks like if a database is lost, or cannot write.
LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)


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
    for name, value in {"idle": SILENCE, "interval": 1, "count": 2}.items():
        db.execute(f"SET tcp_keepalives_{name} = {value}")
    return db


def in_schema(address: str, schema: str) -> str:
    """Return the address of a schema of a database: what has no other schema in its name is there.

    Examples
    --------
    >>> in_schema("postgresql://host/shops", "one")
    'postgresql://host/shops?options=-csearch_path%3Done'
    """
    return f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{schema}"


def holder_of(db: psycopg.Connection[Any], lock: str) -> str:
    """Return which process has a lock, given as SQL; "another" if that cannot be found out."""
    row = db.execute(
        "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
        "JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND l.granted "
        f"AND (l.classid::bigint << 32) + l.objid::bigint = {lock} AND d.datname = current_database()"
    ).fetchone()
    return "another" if row is None else str(row[0])


def insert_of(table: str) -> str:
    """Return the statement that inserts a row into a table, unless it is there."""
    places = ", ".join(["%s"] * len(COLUMNS[table].split(", ")))
    return f"INSERT INTO posse_{table} ({COLUMNS[table]}) VALUES ({places}) ON CONFLICT DO NOTHING"


def find(db: psycopg.Connection[Any], id: str, before: int | None = None) -> Asked | None:
    """Return a decision with its rewards: all, or those that had a turn before the one of that number."""
    then = "" if before is None else "AND {}.turn < %(before)s"
    rows = db.execute(
        f"SELECT {DECISION}, r.at, r.event, r.value, r.played, EXISTS ("
        f"SELECT FROM posse_shown s WHERE s.id = d.id {then.format('s')}) "
        f"FROM posse_decisions d LEFT JOIN posse_rewards r ON r.id = d.id {then.format('r')} "
        f"WHERE d.id = %(id)s {then.format('d')} ORDER BY r.turn, r.seq",
        {"id": id, "before": before},
    ).fetchall()
    if not rows:
        return None
    asked = decision_of(rows[0][:-5])
    for *_, at, event, value, played, shown in rows:
        if at is not None:
            asked.rewards.append(Reward(at, event, value))
            asked.play(played)
        asked.shown = asked.shown or shown
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
