"""What was read of a table, what was dropped or filled in, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something in a table that a reader should know of.

    Attributes
    ----------
    column : str
        Where it was found.
    what : str
        What was found, as "missing values".
    count : int
        In how many rows.
    done : str
        What was done about it, as "rows dropped".
    first : int or None
        The first such row, counted from 1; None where a row has no place.
    """

    column: str
    what: str
    count: int
    done: str
    first: int | None = None

    @property
    def found(self) -> str:
        """What was found and where, without what was done about it."""
        where = "" if self.first is None else f", first in row {self.first:,}"
        return f"{self.column}: {self.count:,} {self.what}{where}"

    def __str__(self) -> str:
        return f"{self.found}: {self.done}"


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was read of a table: nothing is dropped without being counted here.

    Attributes
    ----------
    source : str
        What was read.
    rows : int
        Rows in it.
    used : int
        Rows that count.
    findings : tuple of Finding

    Examples
    --------
    >>> gap = Finding(column="price", what="missing values", count=12, done="filled with the mean", first=3)
    >>> print(Account(source="log.csv", rows=1000, used=998, findings=(gap,)))
    log.csv: 1,000 rows read, 998 used, 2 dropped.
    - price: 12 missing values, first in row 3: filled with the mean
    """

    source: str
    rows: int
    used: int
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        head = (
            f"{self.source}: {self.rows:,} rows read, {self.used:,} used, {self.rows - self.used:,} dropped."
        )
        return "\n".join([head, *(f"- {finding}" for finding in self.findings)])
