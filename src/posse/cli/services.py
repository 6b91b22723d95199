"""Stores of services, for commands that take those of single agents, too, and need nothing more for these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posse.core.extras import MissingExtraError


def is_service(store: str) -> bool:
    """Return whether a store is that of a service, as far as what services need is installed.

    Examples
    --------
    >>> is_service("nowhere.db")
    False
    """
    try:
        from posse.serve import looking
    except MissingExtraError:
        return False
    return looking.is_service(store)


def summary_at(store: str) -> dict[str, Any]:
    """Return how the service of a store is doing: totals, and `spaces` beneath."""
    from posse.serve import looking

    return looking.summary_at(store)


def export_space(store: str, out: Path, space: str | None) -> int:
    """Write the decisions of a space to a Parquet file, and return how many there are."""
    from posse.serve import looking

    return looking.export_space(store, out, space)
