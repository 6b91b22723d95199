"""Tables in one piece or in partitions: whoever holds them, each partition is looked at by one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from posse.logs.sources import Source, open_source
from posse.numerics.checks import check_choice

Result = TypeVar("Result")
ENGINES = ("local", "spark", "dask")


class Table(Protocol):
    """A table whose partitions can be looked at, here or elsewhere."""

    @property
    def name(self) -> str:
        """What errors and accounts call it."""

    @property
    def columns(self) -> Mapping[str, str]:
        """DuckDB's types of the columns, by name, in order."""

    @property
    def typed(self) -> bool:
        """Whether somebody chose the types; those of a CSV file are all text."""

    def map(self, function: Callable[[Source], Result]) -> list[Result]:
        """Return what a function makes of each partition."""


class LocalTable:
    """A table that this process reads, as one partition.

    Parameters
    ----------
    source
        Whatever `open_source` takes.
    """

    def __init__(self, source: Any) -> None:
        self.source = open_source(source)
        self.name, self.columns, self.typed = self.source.name, self.source.columns, self.source.typed

    def map(self, function: Callable[[Source], Result]) -> list[Result]:
        """Return what a function makes of the table, in a list of one."""
        return [function(self.source)]


def open_table(source: Any, engine: str) -> Table:
    """Return a table by the engine that is to read it: "local", "spark" or "dask"."""
    check_choice("`engine`", engine, ENGINES)
    if engine == "spark":
        from posse.logs.spark import SparkTable

        return SparkTable(source)
    if engine == "dask":
        from posse.logs.partitions import DaskTable

        return DaskTable(source)
    return LocalTable(source)
