"""Tables of Spark: each partition is looked at where it is, by the function that looks at local tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from posse import __version__
from posse.core.archive import in_a_line
from posse.core.extras import extra
from posse.logs.sources import open_piece
from posse.logs.tables import Found, Join, Look
from posse.logs.wire import packed, unpacked

with extra("spark"):
    import pyarrow as pa
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.functions import col

# A worker holds so many rows of a partition at a time, or as many as take so many bytes.
PIECE_ROWS, PIECE_BYTES = 2**18, 2**28
# What travels: a piece of what was found, and a number that says which pieces to bring together.
SENT = "piece long, content binary"


class SparkTable:
    """A table that the workers of a Spark cluster read.

    Parameters
    ----------
    source : DataFrame, str or path
        A DataFrame of Spark; or the name of a table in the catalogue of the active session, or the path of
        Parquet files that its workers can read.
    """

    typed = True

    def __init__(self, source: Any) -> None:
        self.frame, self.name = _opened(source)
        empty = self.frame.limit(0).toArrow()
        self.empty = open_piece(empty, self.name)
        self.columns = self.empty.columns
        if list(self.columns) != empty.schema.names:
            raise ValueError(
                "columns of a Spark table must have different names, whatever their case. "
                f"Got {', '.join(empty.schema.names)}."
            )

    def gather(self, look: Look[Found], join: Join[Found], columns: Sequence[str]) -> Found:
        """Return what is found in all partitions.

        What workers find is joined on the cluster first, group by group of tasks, so that what comes here is
        not larger than the answer.

        Parameters
        ----------
        look : callable
            Takes a partition, as one or more pieces of its rows, and returns what it finds in them.
        join : callable
            Returns what was found in several partitions as one.
        columns : sequence of str
            The columns that `look` reads; the others are not sent to Python.
        """
        chosen = [col(f"`{name.replace('`', '``')}`").alias(f"c{i}") for i, name in enumerate(columns)]
        work = partial(_look, look, self.name, columns, __version__)
        found = self.frame.select(*chosen).mapInArrow(work, SENT)
        together = found.repartition("piece").mapInArrow(partial(_join, join), SENT)
        try:
            sent = (unpacked(row.content) for row in together.toLocalIterator(prefetchPartitions=True))
            return join(chain([look([self.empty])], sent))
        except (PySparkException, Py4JError) as error:
            raise ValueError(_reason(self.name, str(error))) from error


def _opened(source: Any) -> tuple[DataFrame, str]:
    """Return a DataFrame, and what errors and accounts call it."""
    if isinstance(source, DataFrame):
        return source, "a Spark DataFrame"
    if not isinstance(source, str | os.PathLike):
        raise ValueError(
            "with engine 'spark' a log must be a Spark DataFrame, or the name or path of a table. "
            f"Got {source!r:.100}."
        )
    text = os.fspath(source)
    try:
        session = SparkSession.active()
    except PySparkException:
        raise ValueError(
            f"to open {text!r} with engine 'spark' there must be a Spark session. Got none: "
            "SparkSession.builder.getOrCreate() makes one."
        ) from None
    try:
        return session.read.table(text), repr(text)
    except (AnalysisException, ParseException):  # no such name, or none that could be one
        pass
    try:
        return session.read.parquet(text), repr(text)
    except AnalysisException as error:
        raise ValueError(
            "a table of Spark must be a name in its catalogue or a path of Parquet files. "
            f"Got {text!r}: {in_a_line(error)[:300]}"
        ) from error


def _look(
    look: Look[Any], name: str, columns: Sequence[str], version: str, batches: Iterable[Any]
) -> Iterator[Any]:
    """Look at a partition, on a worker: Arrow batches of rows go in, and of what was found come out."""
    if version != __version__:
        raise RuntimeError(f"posse must be {version} on Spark's workers. Got {__version__}.")
    pieces = (open_piece(table.rename_columns(list(columns)), name) for table in _regrouped(batches))
    first = next(pieces, None)
    if first is not None:
        yield from _sent(look(chain([first], pieces)))


def _join(join: Join[Any], batches: Iterable[Any]) -> Iterator[Any]:
    """Join what was found elsewhere, on a worker."""
    found = (unpacked(content.as_py()) for batch in batches for content in batch.column(1))
    first = next(found, None)
    if first is not None:
        yield from _sent(join(chain([first], found)))


def _regrouped(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of Arrow batches as tables of moderate size; empty batches are left out."""
    held: list[Any] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= PIECE_ROWS or size >= PIECE_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _sent(found: Any) -> Iterator[Any]:
    for number, piece in found.pieces():
        columns = [pa.array([number], pa.int64()), pa.array([packed(piece)], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["piece", "content"])


def _reason(name: str, text: str) -> str:
    """Return in one line why a job failed, from what Spark says of it: mostly traces of two languages."""
    missing = re.search(r"No module named '?(\w+)", text)
    if missing:
        return (
            "Spark's workers must have posse[spark]: their Python is that of `spark.pyspark.python`. "
            f"Got no module named {missing[1]} there."
        )
    said = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)$", text, flags=re.MULTILINE)
    return f"{name} cannot be read by Spark: {(said or [text])[-1].strip()[:400]}"
