"""The store of a service as others see it, whether or not the service runs."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from posse.live.files import export, is_address
from posse.live.journal import JournalError
from posse.serve.spaces import DEFAULT
from posse.serve.stores import MARK, FileStore, Store, path_of
from posse.serve.summary import summary_of


def is_service(address: str) -> bool:
    """Return whether there is the store of a service at an address, and not that of one agent.

    Parameters
    ----------
    address : str
        `sqlite:PATH`, or the path alone.

    Examples
    --------
    >>> is_service("sqlite:nowhere.db")
    False
    """
    if is_address(address):
        from posse.serve import database  # which an extra brings

        return database.is_service(address)
    path = path_of(address)
    if not path.is_file():
        return False
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return bool(db.execute("PRAGMA application_id").fetchone() == (MARK,))
    except sqlite3.Error:
        return False
    finally:
        db.close()


def look_at(address: str, *, making: bool = False) -> Store:
    """Open the store of a service without serving from it: another process may do that.

    Parameters
    ----------
    address : str
    making : bool
        Whether it is made, if it is not there.
    """
    if is_address(address):
        from posse.serve.database import DatabaseStore

        return DatabaseStore(address, making=making)
    path = path_of(address)
    if not making and not path.is_file():
        raise JournalError(f"{str(path)!r} must be the store of a service. Got no such file.")
    return FileStore(path, serving=False)


def summary_at(address: str) -> dict[str, Any]:
    """Return how a service is doing: totals, and `spaces` beneath."""
    store = look_at(address)
    try:
        return summary_of(store.statuses())
    finally:
        store.close()


def export_space(address: str, out: str | os.PathLike[str], name: str | None = None) -> int:
    """Write all decisions of a version of a space to a Parquet file; return how many there are.

    Parameters
    ----------
    address : str
    out : path
    name : str, optional
        Of the space, for its newest version; NAME.VERSION for an earlier one, which may have had other
        features. By default the only space, or `default`.
    """
    store = look_at(address)
    try:
        known = [(space.name, number) for number, space in store.spaces() if space.fixed]
        names = sorted({one for one, _ in known})
        wanted, _, number = (name or (names[0] if len(names) == 1 else DEFAULT)).partition(".")
        found = [version for one, version in known if one == wanted and number in ("", str(version))]
        if not found:
            raise ValueError(f"`space` must be one of {names} that was asked. Got {name or wanted!r}.")
        return export(store.journal(wanted, found[-1]), out)
    finally:
        store.close()
