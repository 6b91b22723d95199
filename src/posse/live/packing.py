"""Values as bytes, for tables that have room for one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from posse.core.codec import load, save

MOST_BYTES = 2**40


def to_bytes(value: Any) -> bytes:
    """Return a value as `posse.save` would save it.

    Examples
    --------
    >>> from_bytes(to_bytes({"rank": 2}))
    {'rank': 2}
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "value.posse"
        save(value, path)
        return path.read_bytes()


def from_bytes(saved: bytes) -> Any:
    """Return the value that `to_bytes` made bytes of."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "value.posse"
        path.write_bytes(saved)
        return load(path, most_bytes=MOST_BYTES)
