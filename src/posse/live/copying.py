"""A journal copied into another place: events with their numbers, settings, and the states of versions."""

from __future__ import annotations

import os
import time
from itertools import islice, zip_longest
from typing import Any

from posse.live.events import Began
from posse.live.files import journal_of, name_of, open_desk, read_desk
from posse.live.journal import LAST, JournalError, LastingJournal
from posse.live.rows import row_of

# So many events are written in one transaction.
AT_ONCE = 1000


def copy_journal(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> tuple[int, int]:
    """Copy the journal of an agent to an empty one, and return how many decisions and rewards it has.

    Another process may have the source open: it is copied as of one time. Every event of the copy is then
    compared with its original.

    Parameters
    ----------
    source, target : path
        Of a SQLite file, or the address of a PostgreSQL database.
    """
    old = journal_of(source, read_only=True)
    try:
        new = journal_of(target, "power")
        try:
            _copy(old, new, name_of(target))
        finally:
            new.close()
        late = old.new(2**31)
    finally:
        old.close()
    if late:  # what other processes wrote and nobody has learned from yet
        desk = open_desk(target, {}, None, "power", 2**62, 0, time.time, _made_before)
        try:
            desk.take(late)
            desk.acknowledge()
        finally:
            desk.fitter.close()
            desk.journal.close()
    desk = read_desk(target)
    try:
        return desk.engine.counts["decisions"], desk.engine.counts["rewards"]
    finally:
        desk.journal.close()


def _copy(old: LastingJournal, new: LastingJournal, name: str) -> None:
    if any(True for _ in new.replay(0)):
        raise JournalError(f"{name!r} must be an empty journal to be copied to. Got one with events.")
    for key in ("settings", "model", "model made of", LAST):
        value = old.meta(key)
        if value is not None:
            new.set_meta(key, value)
    versions = {0}
    numbered = old.replay(0)
    while events := list(islice(numbered, AT_ONCE)):
        versions |= {event.number for _, event in events if isinstance(event, Began)}
        new.copy(events)
    new.acknowledge()
    _compare(old, new, name)
    for number in sorted(versions):
        state = old.load_version(number)
        if state is not None:
            new.save_version(number, state)
    saved = old.load_state()
    if saved is not None:
        new.save_state(saved, wait=True)


def _compare(old: LastingJournal, new: LastingJournal, name: str) -> None:
    """Raise if an event of a journal is another one in its copy."""
    for one, other in zip_longest(old.replay(0), new.replay(0)):
        if one is None or other is None or row_of(one[1], one[0]) != row_of(other[1], other[0]):
            raise JournalError(f"{name!r} must have every event of its original. Got {other!r:.200}.")


def _made_before(*_: Any) -> Any:
    raise JournalError("a journal that is copied must have its settings. Got none.")
