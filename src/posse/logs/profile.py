"""What the columns of a log hold, as numbers that add up, of a whole log or of parts on many machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from posse.core.columns import DAY
from posse.logs.reading import Reading, is_text, kind_of, reading
from posse.logs.sources import BATCH, Source
from posse.numerics.checks import Array
from posse.numerics.compiled import compiled

# Of a column with more levels than this only the most common ones are counted.
MOST_COUNTED = 10_000


@dataclass(frozen=True)
class Spread:
    """How many numbers there are, their mean, and the sum of squared deviations from it."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def joined(self, other: Spread) -> Spread:
        """Return the spread of the numbers of two parts."""
        total = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        gap = other.mean - self.mean
        squares = self.squares + other.squares + gap * gap * self.count * other.count / total
        return Spread(total, self.mean + gap * other.count / total, squares)

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return float((self.squares / self.count) ** 0.5) if self.count else 0.0


@dataclass(frozen=True)
class Period:
    """How many dates there are, the first and the last in seconds, and whether any has a time of day."""

    count: int = 0
    first: float = float("inf")
    last: float = float("-inf")
    timed: bool = False

    def joined(self, other: Period) -> Period:
        """Return the period of the dates of two parts."""
        ends = min(self.first, other.first), max(self.last, other.last)
        return Period(self.count + other.count, *ends, self.timed or other.timed)


@dataclass(frozen=True)
class ColumnProfile:
    """What a column holds, read in each way that its type allows.

    Attributes
    ----------
    texts : int
        Values that are there, whatever they are.
    numbers : Spread
    dates : Period
    levels : dict of str to int
        Rows of each level, of the most common ones.
    """

    texts: int = 0
    numbers: Spread = field(default_factory=Spread)
    dates: Period = field(default_factory=Period)
    levels: dict[str, int] = field(default_factory=dict)

    def joined(self, other: ColumnProfile) -> ColumnProfile:
        """Return the profile of the column in two parts of a log."""
        levels = dict(self.levels)
        for level, count in other.levels.items():
            levels[level] = levels.get(level, 0) + count
        numbers, dates = self.numbers.joined(other.numbers), self.dates.joined(other.dates)
        return ColumnProfile(self.texts + other.texts, numbers, dates, levels)

    @property
    def ranked(self) -> list[tuple[str, int]]:
        """Levels and their rows, the most common first."""
        return sorted(self.levels.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True)
class Profile:
    """What a log holds: the number of rows that count, and a profile of each column."""

    rows: int
    columns: dict[str, ColumnProfile]

    def joined(self, other: Profile) -> Profile:
        """Return the profile of two parts of a log with the same columns."""
        found = {name: column.joined(other.columns[name]) for name, column in self.columns.items()}
        return Profile(self.rows + other.rows, found)


def profile_of(source: Source, names: Sequence[str], categories: Sequence[str], where: str) -> Profile:
    """Look at columns of a log: once for numbers and dates, and once for levels.

    Parameters
    ----------
    source : Source
    names : sequence of str
        The columns.
    categories : sequence of str
        Those of them that are categories, whatever their type.
    where : str
        SQL for the rows that count.
    """
    types = source.columns
    ways = [item for name in names for item in _ways(name, types[name], name in categories)]
    levels = _levels(source, [item for item in ways if item.kind == "category"], where)
    rows, found = _measured(source, [item for item in ways if item.kind != "category"], where)
    for name in names:
        column = found.get(name, ColumnProfile())
        texts = column.texts or sum(levels.get(name, {}).values())
        found[name] = replace(column, texts=texts, levels=dict(levels.get(name, {})))
    return Profile(rows, {name: found[name] for name in names})


def _measured(
    source: Source, readings: Sequence[Reading], where: str
) -> tuple[int, dict[str, ColumnProfile]]:
    """Return the number of rows, and what numbers and dates columns hold, by name."""
    asked = [f"{item.value} as c{place}" for place, item in enumerate(readings)]
    asked += [f"{item.wrong} as w{place}" for place, item in enumerate(readings) if item.wrong]
    rows, found = 0, {item.name: ColumnProfile() for item in readings}
    for batch in source.batches(f"select {', '.join(asked) or '1 as one'} from log where {where}", BATCH):
        rows += batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for place, item in enumerate(readings):
            values = columns[f"c{place}"].to_numpy(zero_copy_only=False)
            seen = batch.num_rows - columns[f"c{place}"].null_count
            seen += columns[f"w{place}"].true_count if item.wrong else 0
            found[item.name] = found[item.name].joined(_part(item.kind, values, seen))
    return rows, found


def _part(kind: str, values: Array, seen: int) -> ColumnProfile:
    """Return the profile of values of a batch (m,), NaN where there is none; `seen` counts texts, too."""
    if kind == "number":
        return ColumnProfile(seen, Spread(*spread_of(values)))
    known = values[~np.isnan(values)]
    if not len(known):
        return ColumnProfile()
    timed = bool((known % DAY != 0).any())
    return ColumnProfile(0, Spread(), Period(len(known), float(known.min()), float(known.max()), timed))


def _ways(name: str, type_name: str, is_category: bool) -> list[Reading]:
    """Return the ways in which a column may be read: text may be anything."""
    if is_category:
        return [reading(name, type_name, "category")]
    if is_text(type_name):
        return [reading(name, type_name, kind) for kind in ("number", "date", "category")]
    kind = kind_of(type_name)
    return [] if kind is None else [reading(name, type_name, kind)]


def _levels(source: Source, readings: Sequence[Reading], where: str) -> dict[str, dict[str, int]]:
    """Return the rows of the most common levels of columns, by column and level, in one look."""
    if not readings:
        return {}
    values = ", ".join(f"{item.value} as c{place}" for place, item in enumerate(readings))
    names = ", ".join(f"c{place}" for place in range(len(readings)))
    asked = (
        f"with chosen as (select {values} from log where {where}), "
        f"long as (unpivot chosen on {names} into name place value level), "
        "counted as (select place, level, count(*) as n from long group by place, level) "
        "select place, level, n from counted qualify row_number() over "
        f"(partition by place order by n desc, level) <= {MOST_COUNTED}"
    )
    found: dict[str, dict[str, int]] = {}
    for place, level, count in source.rows(source.ask(asked)):
        found.setdefault(readings[int(place[1:])].name, {})[level] = count
    return found


@compiled
def spread_of(values: Array) -> tuple[int, float, float]:
    """Return how many of the values (m,) are numbers of at most 1e75, their mean, and squared deviations."""
    count, total = 0, 0.0
    for n in range(len(values)):
        if abs(values[n]) <= 1e75:
            count += 1
            total += values[n]
    mean, squares = total / max(count, 1), 0.0
    for n in range(len(values)):
        if abs(values[n]) <= 1e75:
            squares += (values[n] - mean) ** 2
    return count, mean, squares
