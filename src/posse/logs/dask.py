"""Tables of Dask: each partition is looked at where it is, by the function that looks at local tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from posse.core.extras import extra
from posse.logs.reading import quoted
from posse.logs.sources import as_arrow, open_piece
from posse.logs.tables import Found, Join, Look

with extra("logs"):
    import pyarrow as pa
with extra("dask"):
    from dask.base import compute
    from dask.delayed import Delayed, delayed

# How many partial results are joined at a time.
JOINED = 8


class DaskTable:
    """A table that Dask reads: workers of a cluster, if a `distributed.Client` is active, else threads.

    Parameters
    ----------
    source : dask.dataframe.DataFrame or list of Delayed
        Of a list, each value is a frame: of pandas or polars, or an Arrow table.
    """

    typed = True

    def __init__(self, source: Any) -> None:
        self.frame, self.parts = None, []
        if isinstance(source, list | tuple) and source and all(isinstance(item, Delayed) for item in source):
            self.parts, self.name = list(source), f"{len(source)} frames of Dask"
        elif hasattr(source, "to_delayed") and hasattr(source, "_meta") and hasattr(source, "columns"):
            self.frame, self.name = source, "a Dask DataFrame"
        else:
            raise ValueError(
                "with engine 'dask' a log must be a Dask DataFrame or a list of delayed frames. "
                f"Got {source!r:.100}."
            )
        self.columns = _united(self._empties())

    def _empties(self) -> Sequence[pa.Table]:
        """Return tables without rows that have the types of the partitions, which are asked if need be."""
        if self.frame is not None and "object" not in map(str, self.frame.dtypes):
            return [as_arrow(self.frame._meta)]
        parts = self.parts if self.frame is None else self.frame.to_delayed()
        return _computed([_later(_without_rows, part) for part in parts])

    def gather(self, look: Look[Found], join: Join[Found], columns: Sequence[str]) -> Found:
        """Return what is found in all partitions.

        Parameters
        ----------
        look : callable
            Takes a partition, as one or more pieces of its rows, and returns what it finds in them.
        join : callable
            Returns what was found in several partitions as one; eight at a time, on the workers.
        columns : sequence of str
            The columns that `look` reads.
        """
        parts = self.parts
        if self.frame is not None:
            parts = self.frame[[name for name in columns if name in self.frame.columns]].to_delayed()
        types = {name: self.columns[name] for name in columns}
        found = [_later(_look, part, look, types, self.name) for part in parts]
        whole: Found
        (whole,) = _computed([_tree(join, found)])
        return whole


def _tree(join: Join[Any], found: list[Delayed]) -> Delayed:
    groups = [_later(join, found[place : place + JOINED]) for place in range(0, len(found), JOINED)]
    return groups[0] if len(groups) == 1 else _tree(join, groups)


def _later(function: Callable[..., Any], *arguments: Any) -> Delayed:
    value: Delayed = delayed(function, pure=False)(*arguments)
    return value


def _computed(values: Sequence[Delayed]) -> tuple[Any, ...]:
    """Compute values by whoever computes for Dask now; say it in one sentence if workers lack a package."""
    try:
        computed: tuple[Any, ...] = compute(*values)  # type: ignore[no-untyped-call]
        return computed
    except Exception as error:
        missing = _missing_module(error)
        if missing is None:
            raise
        raise ValueError(
            f"Dask's workers must have posse[dask,logs]. Got no module named {missing} there."
        ) from error


def _missing_module(error: BaseException | None) -> str | None:
    """Return the package that could not be imported, if that is what an error, or its cause, is about."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return error.name
        error = error.__cause__ or error.__context__
    return None


def _look(part: Any, look: Look[Any], types: Mapping[str, str], name: str) -> Any:
    """Look at a partition, on a worker, with columns of the types that hold for all partitions."""
    piece = open_piece(as_arrow(part), name)
    wanted = (f"cast({quoted(column)} as {kind}) as {quoted(column)}" for column, kind in types.items())
    return look([replace(piece, relation=piece.relation.project(", ".join(wanted)))])


def _without_rows(part: Any) -> pa.Table:
    return as_arrow(part).schema.empty_table()


def _united(empties: Sequence[pa.Table]) -> dict[str, str]:
    """Return the types that hold the values of all partitions: text, if one has numbers and another text."""
    names = empties[0].schema.names
    for table in empties:
        if set(table.schema.names) != set(names):
            raise ValueError(
                f"partitions of one log must have the same columns. Got {', '.join(names)} in one, and "
                f"{', '.join(table.schema.names)} in another."
            )
    pieces = [open_piece(table, "partitions") for table in {str(t.schema): t for t in empties}.values()]
    selects = [
        ", ".join(f"cast(null as {piece.columns[name]}) as {quoted(name)}" for name in names)
        for piece in pieces
    ]
    whole = pieces[0].connection.sql(" union all ".join(f"select {columns}" for columns in selects))
    return dict(zip(whole.columns, map(str, whole.types), strict=True))
