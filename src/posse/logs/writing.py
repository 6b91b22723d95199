"""Tables into files, as they come: batches of Arrow to CSV or Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from posse.core.extras import extra
from posse.core.files import write_atomically

with extra("logs"):
    import pyarrow as pa
    import pyarrow.parquet as pq

ENDINGS = (".csv", ".parquet", ".pq")


def check_ending(path: str | os.PathLike[str]) -> Path:
    """Return a path to write a table to, or say that its ending is of no known format."""
    found = Path(path)
    if found.suffix.lower() not in ENDINGS:
        raise ValueError(f"a table's file must end in {', '.join(ENDINGS)}. Got {os.fspath(path)!r}.")
    return found


def write_table(path: str | os.PathLike[str], schema: Any, batches: Iterable[Any]) -> None:
    """Write batches to a file, CSV or Parquet by its ending, whole or not at all.

    Parameters
    ----------
    path : path
        Ends in .csv, .parquet or .pq; folders on the way are made.
    schema : pyarrow.Schema
    batches : iterable of pyarrow.RecordBatch
        Of that schema.
    """
    found = check_ending(path)

    def write(temporary: Path) -> None:
        if found.suffix.lower() == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as file:
                write_csv(file, schema, batches)
            return
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)

    write_atomically(found, write)


def write_csv(file: TextIO, schema: Any, batches: Iterable[Any]) -> None:
    """Write batches as CSV text, with a line of names first. What is missing is empty."""
    flags = [pa.types.is_boolean(kind) for kind in schema.types]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(schema.names)
    for batch in batches:
        columns = [
            (column.cast(pa.string()) if flag else column).to_pylist()
            for column, flag in zip(batch.columns, flags, strict=True)
        ]
        writer.writerows(zip(*columns, strict=True))
