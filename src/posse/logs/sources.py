"""Where a log may come from: files, folders, frames, streams, queries; all become one relation of DuckDB."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posse.core.archive import in_a_line
from posse.core.extras import extra
from posse.logs.dsjson import read_dsjson
from posse.logs.reading import is_text, kind_of, quoted
from posse.numerics.checks import check_choice

with extra("logs"):
    import duckdb
    import pyarrow as pa

# Rows of a batch, such that a batch of features fits the processor's cache.
BATCH = 32_768
ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".dsjson": "dsjson",
    ".dsjson.gz": "dsjson",
}
# How Parquet files begin and end, the second kind if encrypted.
PARQUET = b"PAR1", b"PARE"
QUERIES = ("select ", "from ", "with ")


@dataclass(frozen=True, eq=False)
class Source:
    """A table that can be asked, more than once, by SQL.

    Attributes
    ----------
    relation : DuckDBPyRelation
    name : str
        What errors and accounts call it.
    typed : bool
        Whether its columns have types of their own; those of a CSV file are all text.
    connection : DuckDBPyConnection or None
        That posse made for it; None if the relation has one of its own.
    unended : int
        How many of its CSV files end in the middle of a line, as one does that was cut off.
    """

    relation: Any
    name: str
    typed: bool
    connection: Any = None
    unended: int = 0

    @property
    def columns(self) -> dict[str, str]:
        """The types of the columns, by name, in order."""
        return dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))

    def ask(self, select: str) -> Any:
        """Return a relation: the answer to SQL about the table, which is called `log` in it."""
        try:
            return self.relation.query("log", select)
        except duckdb.Error as error:
            raise self.unreadable(error) from error

    def rows(self, relation: Any) -> list[tuple[Any, ...]]:
        """Return the rows of an answer of `ask`."""
        try:
            return list(relation.fetchall())
        except duckdb.Error as error:
            raise self.unreadable(error) from error

    def batches(self, select: str, size: int) -> Iterator[Any]:
        """Yield the answer to SQL about the table, `log`, as Arrow batches of at most so many rows."""
        try:
            yield from self.ask(select).to_arrow_reader(size)
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # DuckDB's own, through Arrow's stream
            raise self.unreadable(error) from error

    def in_order(self) -> Source:
        """Return a source whose rows come in one and the same order whenever it is asked.

        Several threads may answer in any order, as where a query has a join. So posse's own connection is
        left with one, and the rows of somebody else's relation are copied first.
        """
        if self.connection is None:
            try:
                copied = self.relation.to_arrow_table()
            except duckdb.Error as error:
                raise self.unreadable(error) from error
            return replace(_frame(copied), name=self.name).in_order()
        self.connection.execute("set threads = 1")
        return self

    def unreadable(self, error: Exception) -> ValueError:
        """Return the error that says why this source cannot be read."""
        return ValueError(f"{self.name} cannot be read: {in_a_line(error)[:400]}")

    @property
    def rejected(self) -> tuple[int, int]:
        """How many lines of CSV files were not rows, as far as they have been read, and the first of them."""
        if self.typed or self.connection is None:
            return 0, 0
        asked = "select count(distinct (file_path, line)), min(line) from reject_errors join reject_scans "
        count, first = self.connection.sql(f"{asked} using (scan_id, file_id)").fetchall()[0]
        return int(count), int(first or 0)


def open_source(source: Any) -> Source:
    """Return a log as one table, whatever it is given as.

    Parameters
    ----------
    source
        A Parquet, CSV or dsjson file, a pattern such as "logs/*.parquet", a folder or list of such files; a
        frame of pandas or polars, an Arrow table, anything else with `__arrow_c_stream__`; a DuckDB relation;
        or a SQL query about files, as "select * from 'log.parquet' where year = 2026".
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Source(source, "a DuckDB relation", True)
    if isinstance(source, str) and source.strip().lower().startswith(QUERIES):
        return _query(source)
    if isinstance(source, str | os.PathLike):
        return _files(_found(os.fspath(source)), os.fspath(source))
    if (
        isinstance(source, Sequence)
        and source
        and all(isinstance(item, str | os.PathLike) for item in source)
    ):
        files = [file for item in source for file in _found(os.fspath(item))]
        return _files(files, f"{len(files)} files")
    return _frame(source)


def _connect(threads: int = min(4, os.cpu_count() or 1)) -> Any:
    connection = duckdb.connect(config={"threads": threads})
    connection.execute("set enable_progress_bar = false")  # it would stand in what a command prints
    return connection


def _query(text: str) -> Source:
    connection = _connect()
    try:
        return Source(connection.sql(text), "the query", True, connection)
    except duckdb.Error as error:
        raise ValueError(f"the query cannot be run: {in_a_line(error)[:400]}") from error


def _frame(source: Any) -> Source:
    table = as_arrow(source)
    connection = _connect()
    name = f"{type(source).__name__} of {table.num_rows:,} rows"
    return Source(connection.from_arrow(table), name, True, connection)


def open_piece(table: pa.Table, name: str) -> Source:
    """Return rows of a larger table as a source that is read by one thread: others have other rows."""
    connection = _connect(1)
    return Source(connection.from_arrow(table), name, True, connection)


def as_arrow(source: Any) -> pa.Table:
    """Return a frame of pandas or polars, or anything else with `__arrow_c_stream__`, as an Arrow table.

    An index of pandas is a column if it has a name.
    """
    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        raise ValueError(
            "a log must be a file, pattern, folder or list of files, a frame or Arrow stream, a DuckDB "
            f"relation or a query. Got {source!r:.100}."
        )
    try:
        if hasattr(source, "columns") and hasattr(source, "reset_index"):
            return pa.Table.from_pandas(_without_mixtures(_without_index(source)), preserve_index=False)
        return pa.table(source)
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"a log must be a table of plain columns. Got: {in_a_line(error)[:300]}") from error


def _without_index(frame: Any) -> Any:
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def _without_mixtures(frame: Any) -> Any:
    """Return a pandas frame whose columns of unlike objects are text, as a CSV file would have them."""
    mixed = {
        name: values.map(lambda value: None if value is None or value != value else str(value))
        for name, values in frame.items()
        if values.dtype == object and len({type(value) for value in values.dropna()}) > 1
    }
    return frame.assign(**mixed) if mixed else frame


def _found(text: str) -> list[str]:
    """Return the files that a path, a folder or a pattern stands for, or say that there are none."""
    path = Path(text).expanduser()
    if path.is_dir():
        files = sorted(str(file) for file in path.rglob("*") if _kind(file.name) is not None)
        if not files:
            raise ValueError(
                f"a folder of logs must hold Parquet, CSV or dsjson files. Got {text!r}, which has none."
            )
        return files
    if path.exists():
        return [str(path)]
    files = sorted(glob.glob(str(path), recursive=True))
    if files:
        return files
    if glob.has_magic(text):
        raise ValueError(f"a pattern of logs must match files. Got {text!r}, which matches none.")
    nearby = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    if not nearby:
        raise ValueError(
            f"a log must be a file that exists. Got {text!r}, and its folder is empty or missing."
        )
    check_choice("a log's file", path.name, sorted(nearby)[:30])
    raise AssertionError  # a file that exists was found above


def _kind(name: str) -> str | None:
    """Return what a file is by its name: "parquet", "csv", "dsjson", or None."""
    return next((kind for ending, kind in ENDINGS.items() if name.lower().endswith(ending)), None)


def _files(files: list[str], name: str) -> Source:
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1 or None in kinds:
        raise ValueError(
            "logs must be Parquet (.parquet, .pq), CSV (.csv, .tsv) or dsjson files (.dsjson), of one kind. "
            f"Got {name!r}."
        )
    if kinds == {"dsjson"}:
        return replace(_frame(read_dsjson(files)), name=repr(name))
    typed = kinds == {"parquet"}
    empty = [file for file in files if os.path.getsize(file) == 0]
    if empty:
        raise ValueError(f"files of a log must hold a table. Got {empty[0]!r}, which is empty.")
    if typed:
        _check_whole(files)
    connection = _connect()
    try:
        _check_columns(connection, files, typed)
        relation = _reader(connection, files, typed)
    except duckdb.Error as error:
        raise ValueError(f"{name!r} cannot be read: {in_a_line(error)[:400]}") from error
    return Source(relation, repr(name), typed, connection, sum(map(_is_unended, files)))


def _is_unended(file: str) -> bool:
    """Return whether a file is plain text whose last line has no end."""
    if not file.lower().endswith((".csv", ".tsv")):
        return False
    with open(file, "rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read() not in (b"\n", b"\r")


def _check_whole(files: list[str]) -> None:
    """Say if a Parquet file does not end as one: what it holds is written last."""
    for file in files:
        with open(file, "rb") as stream:
            head = stream.read(4)
            stream.seek(-min(4, os.path.getsize(file)), os.SEEK_END)
            if stream.read() in PARQUET:
                continue
        why = "ends early, as one that was cut off" if head in PARQUET else "is none by its first bytes"
        raise ValueError(f"{file!r} cannot be read: a Parquet file that {why}.")


def _reader(connection: Any, files: list[str], typed: bool) -> Any:
    if typed:  # by name, so that types are those that hold the values of all files, not of the first
        return connection.read_parquet(files, union_by_name=True)
    return connection.read_csv(files, all_varchar=True, store_rejects=True, header=True)


def _check_columns(connection: Any, files: list[str], typed: bool) -> None:
    """Say if two files have different columns, or one of different kinds: which file, and which columns."""
    first: dict[str, tuple[str, str]] = {}
    for file in files:
        relation = _reader(connection, [file], typed)
        columns = {
            name: (str(kind), file) for name, kind in zip(relation.columns, relation.types, strict=True)
        }
        if first and set(columns) != set(first):
            missing, added = sorted(set(first) - set(columns)), sorted(set(columns) - set(first))
            raise ValueError(
                f"files of one log must have the same columns. Got {file!r}, which lacks {missing} and adds "
                f"{added} beside {files[0]!r}; a query with union_by_name can join them."
            )
        first = {name: _one_kind(connection, name, first.get(name), found) for name, found in columns.items()}


def _one_kind(
    connection: Any, name: str, first: tuple[str, str] | None, found: tuple[str, str]
) -> tuple[str, str]:
    """Return the type of a column in two files, and whose it is, or say that it is of two kinds.

    Numbers of different widths are of one kind, and a column that holds nothing is of any.
    """
    if first is None or _family(first[0]) == _family(found[0]) or _holds_nothing(connection, name, *found):
        return first or found
    if _holds_nothing(connection, name, *first):
        return found
    raise ValueError(
        f"files of one log must have columns of the same kinds. Got {name!r}, which is {found[0]} in "
        f"{found[1]!r} and {first[0]} in {first[1]!r}; a query with a cast can join them."
    )


def _family(type_name: str) -> str:
    """Return what types have in common that can stand in one column."""
    if is_text(type_name) or type_name == "BOOLEAN" or "WITH TIME ZONE" in type_name:
        return "text" if is_text(type_name) else type_name
    return kind_of(type_name) or "other"


def _holds_nothing(connection: Any, name: str, type_name: str, file: str) -> bool:
    """Return whether a column has no value: texts that are all missing may be of no type, or NaN."""
    if type_name not in ("DOUBLE", "FLOAT"):
        return type_name == '"NULL"'
    relation = _reader(connection, [file], True)
    return not relation.filter(f"not isnan({quoted(name)})").limit(1).fetchall()
