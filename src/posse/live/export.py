"""Decisions as a table: the log that evaluation and other tools read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.live.records import Asked, counted
from posse.live.settings import Settings

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
    return written


def columns_of(group: list[Asked], settings: Settings) -> dict[str, Any]:
    """Return the columns of some decisions, by name: those of the features come last."""
    with extra("logs"):
        import pyarrow as pa

    def column(kind: Any, values: Iterator[Any]) -> Any:
        return pa.array(list(values), type=kind)

    text, number = pa.string(), pa.float64()
    found = {
        "id": column(text, (asked.id for asked in group)),
        "time": column(number, (asked.at for asked in group)),
        "task": column(text, (asked.task for asked in group)),
        "arm": column(text, (arm_of(asked) for asked in group)),
        "reward": column(number, (counted(asked, settings) for asked in group)),
        "propensity": column(number, (float(asked.chances[asked.arm]) for asked in group)),
        "propensities": column(pa.list_(number), (asked.chances.tolist() for asked in group)),
        "arms": column(pa.list_(text), (names_of(asked) for asked in group)),
        "version": column(pa.int64(), (asked.version for asked in group)),
        "control": column(pa.bool_(), (asked.control for asked in group)),
    }
    n_features = len(group[0].features) if group else 0
    named = settings.encoder.features if settings.encoder is not None else None
    for place in range(n_features):
        name = f"x{place}" if named is None else named[place]
        found[name] = column(number, (float(asked.features[place]) for asked in group))
    return found


def names_of(asked: Asked) -> list[str]:
    """Return the names of all arms on offer; numbers of rows, as text, where they had none."""
    return [str(row) for row in range(len(asked.chances))] if asked.names is None else list(asked.names)


def arm_of(asked: Asked) -> str:
    """Return the name of the arm that was played: the one decided for, unless the caller played another."""
    return names_of(asked)[asked.played if asked.played >= 0 else asked.arm]
