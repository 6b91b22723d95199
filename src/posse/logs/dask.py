"""Tables of Dask: each partition is looked at where it is, by the function that looks at local tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from posse.core.extras import extra
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
        self.schema = self._schema()
        self.empty = self.schema.empty_table()
        self.columns = open_piece(self.empty, self.name).columns

    def _schema(self) -> Any:
        """Return the Arrow types of columns; where a frame does not say them, all partitions are asked."""
        if self.frame is not None and "object" not in map(str, self.frame.dtypes):
            return _plain(as_arrow(self.frame._meta).schema)
        parts = self.parts if self.frame is None else self.frame.to_delayed()
        return _united(_computed([_later(_schema_of, part) for part in parts]))

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
        schema = pa.schema([self.schema.field(name) for name in columns])
        found = [_later(_look, part, look, schema, self.name) for part in [*parts, self.empty]]
        while len(found) > 1:
            found = [_later(join, found[place : place + JOINED]) for place in range(0, len(found), JOINED)]
        whole: Found
        (whole,) = _computed(found)
        return whole


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


def _look(part: Any, look: Look[Any], schema: Any, name: str) -> Any:
    """Look at a partition, on a worker."""
    return look([open_piece(as_arrow(part).select(schema.names).cast(schema), name)])


def _schema_of(part: Any) -> Any:
    return _plain(as_arrow(part).schema)


def _plain(schema: Any) -> Any:
    """Return a schema without dictionaries, which may differ between partitions."""
    kinds = {
        field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    }
    return pa.schema(list(kinds.items()))


def _united(schemas: Sequence[Any]) -> Any:
    """Return the types that hold the values of all partitions: text, if one has numbers and another text."""
    names = schemas[0].names
    for schema in schemas:
        if set(schema.names) != set(names):
            raise ValueError(
                f"partitions of one log must have the same columns. Got {', '.join(names)} in one, and "
                f"{', '.join(schema.names)} in another."
            )
    found = []
    for name in names:
        fields = [pa.schema([pa.field(name, schema.field(name).type)]) for schema in schemas]
        try:
            found.append(pa.unify_schemas(fields, promote_options="permissive").field(name))
        except pa.ArrowException:
            found.append(pa.field(name, pa.string()))
    return pa.schema(found)
