"""When to re-estimate: a clock of rounds says when the next update is due.

A schedule whose updates depend on the last round cannot say it without a horizon; it says that, instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from posse.numerics.checks import check_integer, check_number


@dataclass(frozen=True)
class DoublyExponential:
    """The epochs of Algorithm 1: they end at G_m = N^(1 - 2^-m), m = 1, ..., M = ceil(log2 log2 N), G_M = N.

    Ends are rounded to whole rounds. Horizons too short for the formula are one epoch.

    Examples
    --------
    >>> DoublyExponential().blocks(10_000)
    (100, 900, 2162, 6838)
    """

    needs_horizon: ClassVar = True

    def blocks(self, horizon: int) -> tuple[int, ...]:
        """Return the epochs' lengths."""
        check_integer("`horizon`", horizon, 1)
        n_epochs = math.ceil(math.log2(math.log2(horizon))) if horizon > 2 else 1
        ends = {round(horizon ** (1 - 2.0**-m)) for m in range(1, n_epochs)} | {horizon}
        return _lengths(sorted(ends))


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """Re-estimate whenever the rounds played have grown by a factor.

    Parameters
    ----------
    first : int
        Rounds before the first estimate.
    ratio : float
        Each update comes when `ratio` times as many rounds are played as at the last one.

    Examples
    --------
    >>> Geometric(first=10, ratio=2).blocks(100)
    (10, 10, 20, 40, 20)
    """

    first: int = 5
    ratio: float = 1.2

    def __post_init__(self) -> None:
        check_integer("`first` of Geometric", self.first, 1)
        check_number("`ratio` of Geometric", self.ratio, 1.0, open_low=True)

    def next_after(self, clock: float) -> float:
        """Return the round after which the next update is due, the last one being made at `clock`."""
        return self.first if clock < self.first else max(clock + 1, math.ceil(clock * self.ratio))

    def blocks(self, horizon: int) -> tuple[int, ...]:
        """Return the blocks' lengths."""
        return _blocks(self.next_after, horizon)


@dataclass(frozen=True)
class Every:
    """Re-estimate after every `rounds` rounds.

    Examples
    --------
    >>> Every(4).blocks(10)
    (4, 4, 2)
    """

    rounds: int = 1

    def __post_init__(self) -> None:
        check_integer("`rounds` of Every", self.rounds, 1)

    def next_after(self, clock: float) -> float:
        """Return the round after which the next update is due, the last one being made at `clock`."""
        return (math.floor(clock / self.rounds) + 1) * self.rounds

    def blocks(self, horizon: int) -> tuple[int, ...]:
        """Return the blocks' lengths."""
        return _blocks(self.next_after, horizon)


@dataclass(frozen=True)
class At:
    """Re-estimate after the rounds that are listed, and never again.

    Examples
    --------
    >>> At((10, 30)).blocks(100)
    (10, 20, 70)
    """

    rounds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.rounds, tuple):
            raise ValueError(f"`rounds` of At must be a tuple of rounds. Got {self.rounds!r}.")
        for number in self.rounds:
            check_integer("`rounds` of At", number, 1)

    def next_after(self, clock: float) -> float:
        """Return the first of the listed rounds after `clock`; infinity if there is none."""
        return min((number for number in self.rounds if number > clock), default=math.inf)

    def blocks(self, horizon: int) -> tuple[int, ...]:
        """Return the blocks' lengths."""
        return _blocks(self.next_after, horizon)


def _blocks(next_after: Callable[[float], float], horizon: int) -> tuple[int, ...]:
    """Cut a horizon where updates are due."""
    check_integer("`horizon`", horizon, 1)
    ends: list[int] = []
    while (end := next_after(ends[-1] if ends else 0)) < horizon:
        ends.append(int(end))
    return _lengths([*ends, horizon])


def _lengths(ends: list[int]) -> tuple[int, ...]:
    return tuple(end - start for start, end in zip([0, *ends[:-1]], ends, strict=True))
