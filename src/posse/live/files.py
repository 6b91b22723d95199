"""Agents in files: made, opened again, read by others, and freed of old events."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from posse.core.learner_changes import without
from posse.core.model import Model
from posse.core.protocols import Policy
from posse.live.desk import Desk
from posse.live.export import write_log
from posse.live.journal import Journal, JournalError, LastingJournal, MemoryJournal
from posse.live.packing import from_bytes, to_bytes
from posse.live.records import Asked
from posse.live.refits import InlineFitter, fitter_of
from posse.live.settings import LASTING, Settings, known_options
from posse.live.sqlite import LEVELS, SqliteJournal
from posse.numerics.checks import check_choice, check_integer

# So many events of other processes are taken in one transaction.
LEARN_AT_ONCE = 1000

MakeSettings = Callable[[Policy | None, Model | None, Mapping[str, Any], int | None], Settings]


def open_desk(
    path: str | os.PathLike[str],
    given: Mapping[str, Any],
    model: Model | None,
    durability: str,
    snapshot_every: int,
    seed: int | None,
    clock: Callable[[], float],
    make: MakeSettings,
) -> Desk:
    """Open the agent of a file, or make one; `Agent.open` says what each argument is.

    Parameters
    ----------
    given : mapping
        Settings by name, all others being as they were.
    make : callable
        Makes the settings of a new agent.
    """
    check_choice("`durability` of open", durability, LEVELS)
    check_integer("`snapshot_every` of open", snapshot_every, 1)
    journal, name = journal_of(path, durability), name_of(path)
    try:
        stored = journal.meta("settings")
        if stored is None:
            settings = make(None, model, given, seed)
            journal.set_meta("model", to_bytes(model))
            journal.set_meta("model made of", digest_of(model))
        else:
            settings = changed(from_bytes(stored), given, f" in {name!r}")
            model = same_model(journal, model, name)
        if stored is None or given:
            journal.set_meta("settings", to_bytes(settings))
        desk = Desk(settings, journal, fitter_of(settings), model, seed, clock, snapshot_every)
    except BaseException:
        journal.close()
        raise
    if desk.engine.job is not None:  # a refit was under way when the process ended
        desk.start()
    desk.publish()
    return desk


def journal_of(
    path: str | os.PathLike[str], durability: str = "process", *, read_only: bool = False
) -> LastingJournal:
    """Return the journal of a file, or that of a PostgreSQL database by its address."""
    if is_address(path):
        from posse.live.postgres import PostgresJournal

        return PostgresJournal(str(path), durability, read_only=read_only)
    if not Path(path).name or Path(path).is_dir():
        raise JournalError(f"{os.fspath(path)!r} must be a file. Got a folder.")
    if read_only and not Path(path).is_file():
        raise JournalError(f"{os.fspath(path)!r} must be a journal. Got no such file.")
    return SqliteJournal(Path(path), durability, read_only=read_only)


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether this is the address of a database, and not a file."""
    return str(path).startswith(("postgresql://", "postgres://"))


def name_of(path: str | os.PathLike[str]) -> str:
    """Return what a journal may be called in messages: the path, or an address without user and password.

    Examples
    --------
    >>> name_of("agent.db"), name_of("postgresql://me:secret@host/shops?sslmode=require")
    ('agent.db', 'postgresql://host/shops')
    """
    if not is_address(path):
        return os.fspath(path)
    kind, rest = str(path).split("://", 1)
    return f"{kind}://{rest.rsplit('@', 1)[-1].split('?', 1)[0]}"


def changed(settings: Settings, given: Mapping[str, Any], where: str) -> Settings:
    """Return settings with those changed that may change, or say which must not.

    Parameters
    ----------
    settings : Settings
    given : mapping
        Settings by name.
    where : str
        What tells the agent from others in a message: nothing, or " in " and its file.
    """
    known_options(given)
    for name in LASTING:
        if name in given and to_bytes(given[name]) != to_bytes(getattr(settings, name)):
            raise ValueError(
                f"`{name}` of the agent{where} must be {getattr(settings, name)!r}, as it was made. "
                f"Got {given[name]!r}."
            )
    return replace(settings, **{name: value for name, value in given.items() if name not in LASTING})


def keep_settings(journal: Journal, settings: Settings) -> None:
    """Write settings to a journal, if that is not one in memory."""
    if not isinstance(journal, MemoryJournal):
        cast("LastingJournal", journal).set_meta("settings", to_bytes(settings))


def same_model(journal: LastingJournal, model: Model | None, path: str) -> Model | None:
    """Return the model that an agent began with, or say that another was given."""
    if model is not None and digest_of(model) != journal.meta("model made of"):
        raise ValueError(
            f"`model` of the agent in {path!r} must be that which it was made with. Got another."
        )
    known: Model | None = from_bytes(journal.meta("model") or b"")
    return known


def digest_of(model: Model | None) -> bytes:
    """Return what tells a model from all others, also once a task of it was forgotten."""
    return sha256(to_bytes(model)).digest()


def in_model(journal: Journal, task: str) -> bool:
    """Return whether a journal keeps a model that has a task."""
    model = (
        None if isinstance(journal, MemoryJournal) else same_model(cast("LastingJournal", journal), None, "")
    )
    return model is not None and task in model.tasks


def forget_in_model(journal: Journal, task: str) -> None:
    """Remove a task's name and rows from the model that an agent began with, if it has them."""
    if in_model(journal, task):
        lasting = cast("LastingJournal", journal)
        model: Model = from_bytes(lasting.meta("model") or b"")
        number = model.tasks.index(task)
        tasks = (*model.tasks[:number], f"(erased {number})", *model.tasks[number + 1 :])
        left = replace(model, tasks=tasks, statistics=without(model.statistics, number))
        lasting.set_meta("model", to_bytes(left))


def read_desk(path: str | os.PathLike[str]) -> Desk:
    """Return the agent of a journal as it stands, to look at; another process may have it open."""
    journal, name = journal_of(path, read_only=True), name_of(path)
    try:
        stored = journal.meta("settings")
        if stored is None:
            raise JournalError(f"{name!r} must be a journal with an agent. Got an empty one.")
        model = same_model(journal, None, name)
        return Desk(from_bytes(stored), journal, InlineFitter(), model, 0, time.time)
    except BaseException:
        journal.close()
        raise


def export(path: str | os.PathLike[str], out: str | os.PathLike[str], *, every_arm: bool = False) -> int:
    """Write all decisions of a journal to a Parquet file, and return how many there are.

    Parameters
    ----------
    path : path
        The file that `Agent.open` has made, or the address of a PostgreSQL database; another process may
        have it open.
    out : path
        Of the new file: a row for each decision, with its task, arm, propensities, features and the reward
        that it counts with, which is missing where there is none.
    every_arm : bool
        Whether to write a row for every arm on offer, as evaluating other policies needs. The journal has
        what it takes if the agent was opened with `features="all"`.
    """
    desk = read_desk(path)
    try:
        settled = _settled(desk, math.inf, desk.engine.waiting)
        return write_log(settled, desk.settings, out, every_arm=every_arm)
    finally:
        desk.journal.close()


def archive(desk: Desk, out: str | os.PathLike[str], before: float) -> int:
    """Move decisions that wait for nothing, made before a time, to a Parquet file; return how many."""
    journal = desk.journal
    if isinstance(journal, MemoryJournal):
        raise ValueError("an agent must be in a file to archive its events. Got one in memory.")
    if Path(out).exists():
        raise ValueError(f"the file to archive to must be new. Got {os.fspath(out)!r}.")
    while desk.learn(LEARN_AT_ONCE):  # a reward that waits for its turn is not to be removed
        pass
    if desk.engine.job is not None:
        raise ValueError("no refit must be under way to archive events. Got one: try again when it is there.")
    desk.acknowledge()
    desk.snapshot_alone()
    ids: list[str] = []

    def noted() -> Iterator[Asked]:
        for asked in _settled(desk, before, {}):
            if asked.id not in desk.engine.waiting:
                ids.append(asked.id)
                yield asked

    written = write_log(noted(), desk.settings, out)
    _lasting(desk).remove(ids)
    return written


def _settled(desk: Desk, before: float, waiting: Mapping[str, Asked]) -> Iterator[Asked]:
    """Go through decisions made before a time; those that wait for nothing are marked as expired."""
    for asked in _lasting(desk).decisions(before):
        asked.expired = asked.id not in waiting
        yield asked


def _lasting(desk: Desk) -> LastingJournal:
    """Return the journal of an agent that is not in memory."""
    return cast("LastingJournal", desk.journal)
