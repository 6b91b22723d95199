"""Forgetting that does not depend on how rounds are batched: the past fades as statistics are added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from posse.core.statistics import GramStatistics, check_rows, read_only
from posse.numerics.checks import Array, check_choice, check_number


@dataclass(frozen=True, eq=False)
class FadingStatistics(GramStatistics):
    """Statistics that know how much of what came before them is still to count.

    Their sum is associative: a + b is b and what `b.fade` leaves of a, however both were put together.

    Attributes
    ----------
    gram, moment, square, count
        As of `GramStatistics`, older rounds at less weight.
    fade : (T,)
        What is left of the weight of earlier rounds, of each task.
    """

    fade: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fade", read_only(self.fade))

    def __add__(self, other: GramStatistics) -> GramStatistics:
        if not isinstance(other, FadingStatistics):
            return super().__add__(other)
        old = self.discount(other.fade)
        return FadingStatistics(
            old.gram + other.gram,
            old.moment + other.moment,
            old.square + other.square,
            old.count + other.count,
            self.fade * other.fade,
        )

    def __radd__(self, older: GramStatistics) -> GramStatistics:
        return faded(older, np.ones(older.n_tasks)) + self

    def padded(self, n_tasks: int) -> FadingStatistics:
        """Return these statistics with further tasks at the end, up to `n_tasks`, that have no data."""
        fade = np.concatenate([self.fade, np.ones(n_tasks - self.n_tasks)])
        return faded(super().padded(n_tasks), fade)


def faded(statistics: GramStatistics, fade: Array) -> FadingStatistics:
    """Return statistics before which only the shares `fade` (T,) of earlier rounds count."""
    return FadingStatistics(statistics.gram, statistics.moment, statistics.square, statistics.count, fade)


@dataclass(frozen=True)
class Fading:
    """A memory in which older rounds count less: the way to summarise rounds for a policy that forgets.

    Parameters
    ----------
    factor : float
        The discount of one round, in ]0, 1]: about the last 1 / (1 - factor) rounds count.
    by : "rounds" or "clock"
        Whether a task forgets with every round of its own, or with every round of the clock, in which it
        may have sat out. A row moves the clock by 1 / tasks seen so far.

    Examples
    --------
    >>> x, y = np.ones((2, 1, 1)), np.array([[4.0], [8.0]])     # two rounds of one task
    >>> Fading(0.5).of(x, y).count
    array([1.5])
    >>> kind = Fading(0.5)
    >>> (kind.of(x[:1], y[:1]) + kind.of(x[1:], y[1:])).count
    array([1.5])
    """

    factor: float
    by: str = "rounds"

    def __post_init__(self) -> None:
        check_number("`factor` of Fading", self.factor, 0.0, 1.0, open_low=True)
        check_choice("`by` of Fading", self.by, ["rounds", "clock"])

    def zeros(self, n_tasks: int, dim: int) -> FadingStatistics:
        """Return the statistics of no data."""
        return faded(GramStatistics.zeros(n_tasks, dim), np.ones(n_tasks))

    def of(
        self, features: ArrayLike, rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> FadingStatistics:
        """Summarise n rounds of all tasks: features (n, T, d), rewards and, optionally, weights (n, T)."""
        shape = np.shape(rewards)
        given = np.ones(shape) if weights is None else np.asarray(weights, dtype=np.float64)
        ticks = np.ones(shape) if self.by == "clock" else np.where(given > 0, 1.0, 0.0)
        since = np.cumsum(ticks[::-1], axis=0)[::-1]  # ticks from each round on, its own included
        counted = given * self.factor ** (since - ticks)
        found = GramStatistics.of(features, rewards, counted)
        return faded(found, self.factor ** ticks.sum(axis=0))

    def taken(self, statistics: GramStatistics) -> FadingStatistics:
        """Return statistics of further rounds that were summarised without fading: those count alike.

        What came before them fades by as many rounds as each task has, or the busiest if by the clock.
        """
        if isinstance(statistics, FadingStatistics):
            return statistics
        rounds = (
            statistics.count
            if self.by == "rounds"
            else np.full_like(statistics.count, statistics.count.max())
        )
        return faded(statistics, self.factor**rounds)

    def from_rows(
        self,
        tasks: ArrayLike,
        features: ArrayLike,
        rewards: ArrayLike,
        n_tasks: int,
        weights: ArrayLike | None = None,
    ) -> FadingStatistics:
        """Summarise rows in the order in which they came.

        Parameters
        ----------
        tasks : (m,)
            The number of each row's task, from 0 to n_tasks - 1.
        features : (m, d)
        rewards : (m,)
        n_tasks : int
            T.
        weights : (m,), optional
            How much each row counts, not negative.
        """
        index, x, y, given = check_rows(tasks, features, rewards, weights)
        if self.by == "clock":
            first = np.zeros(len(index))
            first[np.unique(index, return_index=True)[1]] = 1.0
            clock = np.cumsum(1.0 / np.cumsum(first))  # each row moves it by 1 / tasks seen
            since = clock[-1:] - clock
            total = np.full(n_tasks, clock[-1] if len(clock) else 0.0)
        else:
            counts = given > 0
            index, x, y, given = index[counts], x[counts], y[counts], given[counts]
            order = np.argsort(index, kind="stable")
            total = np.bincount(index, minlength=n_tasks).astype(np.float64)
            places = np.arange(len(index)) - np.repeat(np.cumsum(total) - total, total.astype(np.intp))
            since = np.empty(len(index))
            since[order] = total[index[order]] - 1 - places
        found = GramStatistics.from_rows(index, x, y, n_tasks, given * self.factor**since)
        return faded(found, self.factor**total)
