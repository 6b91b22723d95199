"""Decisions as a table: the log that evaluation and other tools read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.live.records import DECIDED, UNKNOWN, Asked, counted
from posse.live.settings import Settings
from posse.live.states import sync
from posse.numerics.checks import Array

# Rows are written in groups of this many.
GROUP = 10_000


def write_log(
    decisions: Iterable[Asked],
    settings: Settings,
    out: str | os.PathLike[str],
    *,
    every_arm: bool = False,
) -> int:
    """Write decisions to a Parquet file, whole or not at all, and return how many there are.

    Parameters
    ----------
    decisions : iterable of Asked
    settings : Settings
        Of the agent: how its rewards count, and what its features are called.
    out : path
    every_arm : bool
        Whether there is a row for every arm that was on offer, and not for that which was played alone.
    """
    with extra("logs"):
        import pyarrow as pa
        import pyarrow.parquet as parquet

    columns = columns_by_arm if every_arm else columns_of

    written = 0

    def write(temporary: Path) -> None:
        nonlocal written
        writer = None
        rows = iter(decisions)
        try:
            while group := list(islice(rows, GROUP)):
                table = pa.table(columns(group, settings))
                writer = parquet.ParquetWriter(temporary, table.schema) if writer is None else writer
                writer.write_table(table.cast(writer.schema))
                written += len(group)
            if writer is None:
                writer = parquet.ParquetWriter(temporary, pa.table(columns([], settings)).schema)
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
    return found | _feature_columns([asked.features for asked in group], settings, kinds)


def columns_by_arm(group: list[Asked], settings: Settings) -> dict[str, Any]:
    """Return the columns of decisions with a row for every arm on offer: `chosen` says which was played.

    All rows of a decision have its reward, so that a query can leave out decisions without one.
    """
    with extra("logs"):
        import pyarrow as pa

    text, number = pa.string(), pa.float64()
    kinds = {
        "id": text,
        "time": number,
        "task": text,
        "arm": text,
        "chosen": pa.bool_(),
        "reward": number,
        "propensity": number,
        "version": pa.int64(),
        "control": pa.bool_(),
    }
    rows = [row for asked in group for row in rows_by_arm(asked, settings)]
    found = {name: pa.array([row[name] for row in rows], type=kind) for name, kind in kinds.items()}
    features = [x for asked in group if asked.offered is not None for x in asked.offered]
    return found | _feature_columns(features, settings, kinds)


def _feature_columns(features: list[Array], settings: Settings, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column for each of the features (m of (d,)), by its name or place; names taken are marked."""
    with extra("logs"):
        import pyarrow as pa

    matrix = np.array(features)
    named = None if settings.encoder is None else settings.encoder.features
    found = {}
    for place in range(matrix.shape[1] if features else 0):
        name = f"x{place}" if named is None else named[place]
        found[f"{name} (feature)" if name in taken else name] = pa.array(matrix[:, place])
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


def rows_by_arm(asked: Asked, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield a row for every arm of a decision, or say that the journal does not have what it needs."""
    if asked.offered is None:
        raise ValueError(
            "a journal must keep the features of all arms to be written with a row for each: "
            "`features` = 'all' of Agent.open. Got one that keeps those of the chosen arm."
        )
    played = asked.arm if asked.played == DECIDED else asked.played
    for place, name in enumerate(names_of(asked)):
        yield {
            "id": asked.id,
            "time": asked.at,
            "task": asked.task,
            "arm": name,
            "chosen": place == played,
            "reward": counted(asked, settings),
            "propensity": float(asked.chances[place]) if asked.played == DECIDED else None,
            "version": asked.version,
            "control": asked.control,
        }


def names_of(asked: Asked) -> list[str]:
    """Return the names of all arms on offer; numbers of rows, as text, where they had none."""
    return [str(row) for row in range(len(asked.chances))] if asked.names is None else list(asked.names)
