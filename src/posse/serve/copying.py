"""The store of a service copied into another one: to move it, to back it up, and to bring it back."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from posse.live.copying import copy_journal
from posse.live.files import name_of
from posse.live.journal import JournalError
from posse.serve.looking import look_at


class Copied(NamedTuple):
    """How much was copied."""

    spaces: int
    decisions: int
    rewards: int


def copy_store(source: str, target: str) -> Copied:
    """Copy spaces, tokens and journals to a new store, and return how much that was.

    The source may be served meanwhile: every journal is copied as of one time. Spaces and tokens come last,
    so that a copy that was interrupted is no service yet, and can be begun again.

    Parameters
    ----------
    source, target : str
        `sqlite:PATH`, or the address of a PostgreSQL database.
    """
    with closing(look_at(source)) as old, closing(look_at(target, making=True)) as new:
        if new.spaces() or new.tokens():
            raise JournalError(f"{name_of(target)!r} must be a new store to be copied to. Got one in use.")
        spaces, decisions, rewards = old.spaces(), 0, 0
        for number, space in spaces:
            if space.fixed:
                new.clear(space.name, number)
                found = copy_journal(old.journal(space.name, number), new.journal(space.name, number))
                decisions, rewards = decisions + found[0], rewards + found[1]
        for token in old.tokens():
            new.add_token(token)
        for number, space in spaces:
            new.save(space, number)
        return Copied(len({space.name for _, space in spaces}), decisions, rewards)
