"""What the columns of a log hold, as numbers that add up, of a whole log or of parts on many machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import numpy as np

from posse.core.columns import DAY
from posse.core.shipped import register
from posse.logs.reading import Reading, is_text, kind_of, reading
from posse.logs.sources import BATCH, Source
from posse.logs.tables import Table
from posse.numerics.checks import Array
from posse.numerics.compiled import compiled

# Of a column with more levels than this only the most common ones are counted.
MOST_COUNTED = 10_000


@register
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


@register
@dataclass(frozen=True)
class Period:
    """How many dates there are, the first and last in seconds, if any has a time of day."""

    count: int = 0
    first: float = float("inf")
    last: float = float("-inf")
    timed: bool = False

    def joined(self, other: Period) -> Period:
        """Return the period of the dates of two parts."""
        ends = min(self.first, other.first), max(self.last, other.last)
        return Period(self.count + other.count, *ends, self.timed or other.timed)


@register
@dataclass(frozen=True)
class ColumnProfile:
    """What a column holds, read in each way that its type allows.

    Attributes
    ----------
    texts : int
        Values that might be numbers: they are there, and no sign of a gap, such as "none".
    named : int
        Values that might be levels, of which "none" is one.
    numbers : Spread
    dates : Period
    levels : dict of str to int
        Rows of each level, of the most common ones.
    exact : bool
        Whether all rows of those levels are counted. In a part of a log a level may be too rare to be listed.
    """

    texts: int = 0
    named: int = 0
    numbers: Spread = field(default_factory=Spread)
    dates: Period = field(default_factory=Period)
    levels: dict[str, int] = field(default_factory=dict)
    exact: bool = True

    def joined(self, other: ColumnProfile) -> ColumnProfile:
        """Return the profile of the column in two parts of a log."""
        levels = dict(self.levels)
        for level, count in other.levels.items():
            levels[level] = levels.get(level, 0) + count
        if len(levels) > MOST_COUNTED:
            levels = dict(_ranked(levels)[:MOST_COUNTED])
        numbers, dates = self.numbers.joined(other.numbers), self.dates.joined(other.dates)
        exact = self.exact and other.exact and max(len(self.levels), len(other.levels)) < MOST_COUNTED
        texts, named = self.texts + other.texts, self.named + other.named
        return ColumnProfile(texts, named, numbers, dates, levels, exact)

    @property
    def ranked(self) -> list[tuple[str, int]]:
        """Levels and their rows, the most common first."""
        return _ranked(self.levels)


def _ranked(levels: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(levels.items(), key=lambda item: (-item[1], item[0]))


@register
@dataclass(frozen=True)
class Profile:
    """What a log holds: the number of rows that count, and a profile of each column."""

    rows: int
    columns: dict[str, ColumnProfile]

    def joined(self, other: Profile) -> Profile:
        """Return the profile of two parts of a log with the same columns."""
        found = {name: column.joined(other.columns[name]) for name, column in self.columns.items()}
        return Profile(self.rows + other.rows, found)

    def pieces(self) -> Iterator[tuple[int, Profile]]:
        """Yield the profile, which is small, in one piece."""
        yield 0, self


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows that count: SQL that says which, and the columns that are named in it."""

    where: str
    columns: tuple[str, ...]


def learn_profile(table: Table, names: Sequence[str], categories: Sequence[str], rows: Rows) -> Profile:
    """Look at columns of a log: once for numbers and dates, and once for levels.

    Parameters
    ----------
    table : Table
    names : sequence of str
        The columns.
    categories : sequence of str
        Those of them that are categories, whatever their type.
    rows : Rows
        Those that count.
    """
    read = tuple(dict.fromkeys((*names, *rows.columns)))
    look = partial(_profile, names=names, categories=categories, where=rows.where)
    profile = table.gather(look, joined, read)
    doubtful = {name: list(column.levels) for name, column in profile.columns.items() if not column.exact}
    if not doubtful:
        return profile
    read = tuple(dict.fromkeys((*doubtful, *rows.columns)))
    counted = table.gather(partial(_recount, levels=doubtful, where=rows.where), joined, read).columns
    columns = {
        name: replace(column, levels=counted[name].levels, exact=True) if name in counted else column
        for name, column in profile.columns.items()
    }
    return Profile(profile.rows, columns)


def joined(parts: Iterable[Profile]) -> Profile:
    """Return the profile of a log from those of its parts, of which there must be one."""
    return reduce(Profile.joined, parts)


def _profile(
    pieces: Iterable[Source], names: Sequence[str], categories: Sequence[str], where: str
) -> Profile:
    return joined(_profile_of(piece, names, categories, where) for piece in pieces)


def _profile_of(source: Source, names: Sequence[str], categories: Sequence[str], where: str) -> Profile:
    types = source.columns
    ways = [item for name in names for item in _ways(name, types[name], name in categories)]
    levels = _levels(source, [item for item in ways if item.kind == "category"], where)
    rows, found = _measured(source, [item for item in ways if item.kind != "category"], where)
    for name in names:
        column = found.get(name, ColumnProfile())
        named, counted = levels.get(name, (0, {}))
        found[name] = replace(column, named=named, levels=counted)
    return Profile(rows, {name: found[name] for name in names})


def _recount(pieces: Iterable[Source], levels: Mapping[str, Sequence[str]], where: str) -> Profile:
    """Count the rows of given levels of columns, and nothing else."""
    return joined(_recount_of(piece, levels, where) for piece in pieces)


def _recount_of(source: Source, levels: Mapping[str, Sequence[str]], where: str) -> Profile:
    found = {}
    for name, wanted in levels.items():
        value = reading(name, source.columns[name], "category").value
        asked = f"select {value} as level, count(*) from log where {where} group by level"
        counts = dict(source.rows(source.ask(asked)))
        found[name] = ColumnProfile(levels={level: counts[level] for level in wanted if level in counts})
    return Profile(0, found)


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
    """Return the profile of values (m,), NaN where there is none; `seen` counts texts that are none, too."""
    if kind == "number":
        return ColumnProfile(texts=seen, numbers=Spread(*spread_of(values)))
    known = values[~np.isnan(values)]
    if not len(known):
        return ColumnProfile()
    timed = bool((known % DAY != 0).any())
    return ColumnProfile(dates=Period(len(known), float(known.min()), float(known.max()), timed))


def _ways(name: str, type_name: str, is_category: bool) -> list[Reading]:
    """Return the ways in which a column may be read: text may be anything."""
    if is_category:
        return [reading(name, type_name, "category")]
    if is_text(type_name):
        return [reading(name, type_name, kind) for kind in ("number", "date", "category")]
    kind = kind_of(type_name)
    return [] if kind is None else [reading(name, type_name, kind)]


def _levels(source: Source, readings: Sequence[Reading], where: str) -> dict[str, tuple[int, dict[str, int]]]:
    """Return how many values columns have, and how many rows each of the most common levels, in one look."""
    if not readings:
        return {}
    values = ", ".join(f"{item.value} as c{place}" for place, item in enumerate(readings))
    names = ", ".join(f"c{place}" for place in range(len(readings)))
    asked = (
        f"with chosen as (select {values} from log where {where}), "
        f"long as (unpivot chosen on {names} into name place value level), "
        "counted as (select place, level, count(*) as n from long group by place, level) "
        "select place, level, n, sum(n) over (partition by place) from counted qualify row_number() over "
        f"(partition by place order by n desc, level) <= {MOST_COUNTED}"
    )
    found: dict[str, tuple[int, dict[str, int]]] = {}
    for place, level, count, total in source.rows(source.ask(asked)):
        found.setdefault(readings[int(place[1:])].name, (int(total), {}))[1][level] = count
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
