"""Decisions as a table: the log that evaluation and other tools read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.live.records import DECIDED, UNKNOWN, Asked, counted
from posse.live.settings import Settings
from posse.live.states import sync

# Rows are written in groups of this many.
GROUP = 10_000


def write_log(decisions: Iterable[Asked], settings: Settings, out: str | os.PathLike[str]) -> int:
    """Write decisions to a Parquet file, whole or not at all, and return how many there are.

    Parameters
    ----------
    decisions : iterable of Asked
    settings : Settings
        Of the agent: how its rewards count, and what its features are called.
    out : path
    """
    with extra("logs"):
        import pyarrow as pa
        import pyarrow.parquet as parquet

    written = 0

    def write(temporary: Path) -> None:
        nonlocal written
        writer = None
        rows = iter(decisions)
        try:
            while group := list(islice(rows, GROUP)):
                table = pa.table(columns_of(group, settings))
                writer = parquet.ParquetWriter(temporary, table.schema) if writer is None else writer
                writer.write_table(table.cast(writer.schema))
                written += len(group)
            if writer is None:
                writer = parquet.ParquetWriter(temporary, pa.table(columns_of([], settings)).schema)
        finally:
            if writer is not None:
                writer.close()

    write_atomically(Path(out), write)
    sync(Path(out))  # events may be removed from the journal once this is there
    return written


def columns_of(group: list[Asked], settings: Settings) -> dict[str, Any]:
    """Return the columns of some decisions, by name: those of the features come last."""
    with extra("logs"):
        import pyarrow as pa

    text, number = pa.string(), pa.float64()
    kinds = {
        "id": text,
        "time": number,
        "task": text,
        "arm": text,
        "decided": text,
        "reward": number,
        "propensity": number,
        "propensities": pa.list_(number),
        "arms": pa.list_(text),
        "version": pa.int64(),
        "control": pa.bool_(),
    }
    rows = [row_of(asked, settings) for asked in group]
    found = {name: pa.array([row[name] for row in rows], type=kind) for name, kind in kinds.items()}
    features = np.array([asked.features for asked in group])
    named = None if settings.encoder is None else settings.encoder.features
    for place in range(features.shape[1] if group else 0):
        name = f"x{place}" if named is None else named[place]
        found[f"{name} (feature)" if name in kinds else name] = pa.array(features[:, place])
    return found


def row_of(asked: Asked, settings: Settings) -> dict[str, Any]:
    """Return a decision as a row of the table, but for its features.

    In shadow mode the arm is the one that the caller played, if that was told, and its propensity is not
    known; what the agent decided for is another column.
    """
    names, live = names_of(asked), asked.played == DECIDED
    return {
        "id": asked.id,
        "time": asked.at,
        "task": asked.task,
        "arm": None if asked.played == UNKNOWN else names[asked.arm if live else asked.played],
        "decided": names[asked.arm],
        "reward": counted(asked, settings),
        "propensity": float(asked.chances[asked.arm]) if live else None,
        "propensities": asked.chances.tolist(),
        "arms": names,
        "version": asked.version,
        "control": asked.control,
    }


def names_of(asked: Asked) -> list[str]:
    """Return the names of all arms on offer; numbers of rows, as text, where they had none."""
    return [str(row) for row in range(len(asked.chances))] if asked.names is None else list(asked.names)
