"""Columns of a table, and the features that each becomes: numbers, categories and dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.numerics.checks import Array, IntArray, check_choice, check_number
from posse.numerics.compiled import compiled

# A number beyond this is no measurement; its square, summed, would not be one either.
LARGEST = 1e75
DAY, YEAR = 86_400.0, 365.25 * 86_400.0
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# What is taken from a date, and the names of its features.
DATE_PARTS = {
    "trend": ("trend",),
    "hour": ("hour sin", "hour cos"),
    "weekday": WEEKDAYS,
    "season": ("season sin", "season cos"),
}


@dataclass(frozen=True, kw_only=True)
class NumberColumn:
    """A column of numbers, one feature: (x - mean) / scale.

    Attributes
    ----------
    name : str
    mean, scale : float
        Of the log that the encoder was learned from.
    missing : bool
        Whether a further feature is 1 where the number is missing. The number itself is then the mean.
    """

    name: str
    mean: float = 0.0
    scale: float = 1.0
    missing: bool = False

    def __post_init__(self) -> None:
        check_number(f"`mean` of column {self.name!r}", self.mean, -LARGEST, LARGEST)
        check_number(f"`scale` of column {self.name!r}", self.scale, 0.0, LARGEST, open_low=True)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return (self.name, *_indicator(self.name, self.missing))

    def raw(self, values: Any) -> Array:
        """Return values as numbers (n,), NaN where one is missing."""
        try:
            return np.array(values, dtype=np.float64, ndmin=1)
        except (TypeError, ValueError):
            wrong = next((value for value in values if not _is_number(value)), values)
            raise ValueError(f"column {self.name!r} must be numbers. Got {wrong!r}.") from None

    def fill(self, raw: Array, out: Array) -> None:
        """Write the features of numbers (n,) to `out` (n, 1 or 2)."""
        fill_numbers(raw, self.mean, self.scale, out)


@dataclass(frozen=True, kw_only=True)
class CategoryColumn:
    """A column of categories: a feature for every level, so that none is special.

    With one level left out the effects of all others would be contrasts with it, and have it in common: tasks
    that share nothing would seem to. Only where there are two cases in all, as true and false, one feature,
    that of the second, tells them apart.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Levels with parameters of their own, the most common first.
    other : bool
        Whether a feature is 1 for all other levels together. Without it they have no feature.
    missing : bool
        Whether a feature is 1 where the level is missing.
    """

    name: str
    levels: tuple[str, ...]
    other: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"`levels` of column {self.name!r} must differ. Got {self.levels!r:.200}.")

    @property
    def _first(self) -> int:
        """The number of the first level that has a feature."""
        return 0 if len(self.levels) + self.other + self.missing > 2 else 1

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        named = tuple(f"{self.name}={level}" for level in self.levels[self._first :])
        return (
            *named,
            *((f"{self.name}=(other)",) if self.other else ()),
            *_indicator(self.name, self.missing),
        )

    @property
    def fallback(self) -> str:
        """What is done with a level that has no feature, in words: all features are then 0."""
        return f"taken for {self.levels[0]!r}" if self._first else "taken for an average of the levels"

    def raw(self, values: Any) -> IntArray:
        """Return the numbers of levels (n,): -1 if missing, len(levels) for one that is not in `levels`."""
        known = {level: number for number, level in enumerate(self.levels)}
        found = np.atleast_1d(np.asarray(values, dtype=object))
        texts = [level_of(value) for value in found.tolist()]
        codes = [-1 if text is None else known.get(text, len(known)) for text in texts]
        return np.array(codes, dtype=np.intp)

    def fill(self, raw: IntArray, out: Array) -> None:
        """Write the features of level numbers (n,) to `out` (n, number of features)."""
        out[:] = 0.0
        (named,) = np.nonzero((raw >= self._first) & (raw < len(self.levels) + self.other))
        out[named, raw[named] - self._first] = 1.0
        if self.missing:
            out[raw < 0, -1] = 1.0


@dataclass(frozen=True, kw_only=True)
class DateColumn:
    """A column of dates or times, in parts.

    Attributes
    ----------
    name : str
    parts : tuple of str
        Of "trend" (time itself, standardised), "hour" (of the day, as a point of a circle), "weekday"
        and "season" (of the year, as a point of a circle).
    mean, scale : float
        Of the trend, in seconds since 1970-01-01.
    missing : bool
        Whether a feature is 1 where the date is missing; all others are then 0.
    """

    name: str
    parts: tuple[str, ...]
    mean: float = 0.0
    scale: float = 1.0
    missing: bool = False

    def __post_init__(self) -> None:
        for part in self.parts:
            check_choice(f"parts of column {self.name!r}", part, DATE_PARTS)
        check_number(f"`scale` of column {self.name!r}", self.scale, 0.0, open_low=True)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        named = [f"{self.name} {feature}" for part in self.parts for feature in DATE_PARTS[part]]
        return (*named, *_indicator(self.name, self.missing))

    def raw(self, values: Any) -> Array:
        """Return times (n,) in seconds since 1970-01-01, UTC where they have a zone; NaN where missing."""
        found = np.atleast_1d(np.asarray(values))
        if found.dtype.kind == "M":
            return seconds_of(found)
        try:
            return np.array([_seconds(value) for value in found.tolist()], dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"column {self.name!r} must be dates. Got {values!r:.100}.") from None

    def fill(self, raw: Array, out: Array) -> None:
        """Write the features of times (n,), in seconds since 1970-01-01, to `out`."""
        known = np.isfinite(raw)
        seconds = np.where(known, raw, self.mean)
        place = 0
        for part in self.parts:
            width = len(DATE_PARTS[part])
            out[:, place : place + width] = self._part(part, seconds)
            place += width
        out[~known, :place] = 0.0
        if self.missing:
            out[:, -1] = ~known

    def _part(self, part: str, seconds: Array) -> Array:
        if part == "trend":
            return np.asarray((seconds - self.mean) / self.scale)[:, None]
        if part == "weekday":  # 1970-01-01 was a Thursday, the fourth day of a week
            days = (np.floor(seconds / DAY).astype(np.int64) + 3) % 7
            return np.asarray(days[:, None] == np.arange(7), dtype=np.float64)
        angle = 2 * np.pi * seconds / (DAY if part == "hour" else YEAR)
        return np.stack([np.sin(angle), np.cos(angle)], axis=1)


Column = NumberColumn | CategoryColumn | DateColumn


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, NaN, or what frames have for it.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing(0)
    (True, True, False)
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def level_of(value: Any) -> str | None:
    """Return what a level is called in an encoder: text, true or false; None if it is missing.

    Examples
    --------
    >>> level_of("red"), level_of(True), level_of(3), level_of(None), level_of(float("nan"))
    ('red', 'true', '3', None, None)
    """
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value)


def seconds_of(times: NDArray[Any]) -> Array:
    """Return datetime64 (n,) in seconds since 1970-01-01, NaN where there is none."""
    return np.where(np.isnat(times), np.nan, times.astype("datetime64[us]").astype(np.int64) / 1e6)


def _seconds(value: Any) -> float:
    if is_missing(value):
        return float("nan")
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return float((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())


def _is_number(value: Any) -> bool:
    try:
        float("nan" if value is None else value)
    except (TypeError, ValueError):
        return False
    return True


def _indicator(name: str, missing: bool) -> Sequence[str]:
    return (f"{name} missing",) if missing else ()


@compiled
def fill_numbers(values: Array, mean: float, scale: float, out: Array) -> int:
    """Write standardised numbers to the first column of `out` (n, 1 or 2), and gaps to the second.

    A number that is missing, infinite or beyond 1e75 counts as missing: it becomes 0, the mean. Returns how
    many there are.
    """
    n_missing = 0
    gaps = out.shape[1] > 1
    for n in range(len(values)):
        value = values[n]
        known = abs(value) <= 1e75
        out[n, 0] = (value - mean) / scale if known else 0.0
        if not known:
            n_missing += 1
        if gaps:
            out[n, 1] = 0.0 if known else 1.0
    return n_missing
