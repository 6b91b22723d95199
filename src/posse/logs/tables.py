"""Tables in one piece or in partitions: whoever holds them, one function looks at each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from posse.logs.sources import Source, open_source
from posse.numerics.checks import check_choice

ENGINES = ("local", "spark", "dask")


class Partial(Protocol):
    """What was found in a part of a table: such findings can be joined, and sent in pieces."""

    def pieces(self) -> Iterator[tuple[int, Self]]:
        """Yield pieces of moderate size, which joined are the whole; those of one number are joined first."""


Found = TypeVar("Found", bound=Partial)
Look = Callable[[Iterable[Source]], Found]
Join = Callable[[Iterable[Found]], Found]


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

    def gather(self, look: Look[Found], join: Join[Found], columns: Sequence[str]) -> Found:
        """Return what is found in all partitions.

        Parameters
        ----------
        look : callable
            Takes a partition, as one or more pieces of its rows, and returns what it finds in them.
        join : callable
            Returns what was found in several partitions as one.
        columns : sequence of str
            The columns that `look` reads.
        """


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

    def gather(self, look: Look[Found], join: Join[Found], columns: Sequence[str]) -> Found:
        """Return what `look` finds in the table, the one partition; nothing has to be joined."""
        return look([self.source])


def open_table(source: Any, engine: str) -> Table:
    """Return a table by the engine that is to read it: "local", "spark" or "dask"."""
    check_choice("`engine`", engine, ENGINES)
    if engine == "spark":
        from posse.logs.spark import SparkTable

        return SparkTable(source)
    if engine == "dask":
        from posse.logs.dask import DaskTable

        return DaskTable(source)
    return LocalTable(source)
