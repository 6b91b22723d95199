"""Intervals around means of terms, of each task and of all together, and what each of them assumes.

Terms of a task have its value as their mean, given all that came before them: that is so for logs of fixed
policies and, as long as models and policies were learned from the past alone, for those of adaptive ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from posse.logs.evaluation.groups import Groups, ratio
from posse.numerics.checks import Array, BoolArray

# What each kind of interval assumes, for pages and tables.
ASSUMPTIONS: Mapping[str, str] = {
    "asymptotic": "decisions are many, and no few of them have most of the weight",
    "bootstrap": "the tasks of the log are a sample of those that the answer is about",
    "bernstein": "no term lies outside the range that terms have in the whole log",
    "sequence": "decisions are in the order of time, and no term lies outside the range that terms have in "
    "the whole log; it holds at all times at once, so one may look and stop",
}
# Below this many rows of a task the normal law is no guide, and its interval is empirical Bernstein's.
FEW_ROWS = 200
RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class Interval:
    """Estimates and the ends of their intervals, of G groups.

    Attributes
    ----------
    value, low, high : (G,)
        NaN where there is none.
    chance : (G,)
        At most this is the chance of a value so far above 0 if what it estimates were 0 or less.
    """

    value: Array
    low: Array
    high: Array
    chance: Array

    def stretched(self, value: Array) -> Interval:
        """Return these intervals around other values (G,), made longer where a value lies outside."""
        return Interval(value, np.minimum(self.low, value), np.maximum(self.high, value), self.chance)


def asymptotic(terms: Array, groups: Groups, level: float, least: Array | float = 0.0) -> Interval:
    """Return intervals of the mean of terms (n,) in each group by the quantiles of Student's t.

    Rare heavy weights make variances uncertain, which is what degrees of freedom are for: there are
    2 n / (k - 1) of them, with k the kurtosis of terms, since a variance of that many is as uncertain as this
    one (Satterthwaite 1946); and n - 1 at most. With k = 3 these are the usual ones. Variances are taken for
    `least`, (G,) or one number, at the least.

    Examples
    --------
    >>> found = asymptotic(np.array([1.0, 3.0, 2.0, 2.0]), Groups.one(4), 0.95)
    >>> found.value, found.low.round(2), found.high.round(2)
    (array([2.]), array([0.7]), array([3.3]))
    """
    middle, counts = groups.means(terms), groups.counts
    squares = groups.deviations(terms) ** 2
    kurtosis = ratio(counts * groups.sums(squares**2), groups.sums(squares) ** 2)
    freedom = np.maximum(degrees(counts, np.nan_to_num(kurtosis)), 1.0)
    errors = np.sqrt(ratio(_at_least(groups.variances(terms), least), counts))
    return _by_t(middle, errors, freedom, level)


def _by_t(middle: Array, errors: Array, freedom: Array, level: float) -> Interval:
    """Return intervals by the quantiles of Student's t."""
    reach = stdtrit(freedom, 0.5 + level / 2) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = stdtr(freedom, -middle / errors)
    return Interval(middle, middle - reach, middle + reach, np.where(errors > 0, chance, middle <= 0))


def _at_least(variances: Array, least: Array | float) -> Array:
    """Return variances (G,) that are not below `least`; NaN stays, where there is none."""
    return np.maximum(variances, least)


def degrees(counts: Array, kurtosis: Array) -> Array:
    """Return how many degrees of freedom variances of terms of some kurtosis have, n - 1 at most.

    Examples
    --------
    >>> degrees(np.array([100.0, 100.0]), np.array([3.0, 21.0]))
    array([99., 10.])
    """
    free = np.divide(2.0 * counts, kurtosis - 1.0, out=np.full_like(counts, np.inf), where=kurtosis > 1.0)
    return np.minimum(free, counts - 1.0)


def pooled(terms: Array, tasks: Groups, level: float, least: float = 0.0) -> Interval:
    """Return the interval of the mean of terms (n,) of all tasks, for these tasks and their shares.

    How far tasks differ does not count, as it is the same tasks that the answer is about: the variance is
    that within tasks. That of tasks with one row is taken from the others. Degrees of freedom are as many as
    the kurtosis of terms leaves, as for `asymptotic`. The variance is taken for `least` at the least.
    """
    counts, variances = tasks.counts, tasks.variances(terms)
    known = counts > 1
    usual = float(np.sum((counts[known] - 1) * variances[known]) / max(1.0, np.sum(counts[known] - 1)))
    total = float(np.sum(counts * np.where(known, variances, usual)))
    squares = tasks.deviations(terms) ** 2
    kurtosis = ratio(np.array([len(terms) * np.sum(squares**2)]), np.array([np.sum(squares) ** 2]))
    (freedom,) = degrees(np.array([float(len(terms))]), np.nan_to_num(kurtosis))
    error = np.sqrt(max(total, least * len(terms))) / len(terms)
    return _by_t(np.array([terms.mean()]), np.array([error]), np.array([max(freedom, 1.0)]), level)


def bootstrap(terms: Array, tasks: Groups, level: float, rng: np.random.Generator) -> Interval:
    """Return the interval of the mean of terms (n,) where tasks are the unit, by drawing tasks anew.

    Tasks are drawn with replacement, and the ends are those of the studentised mean (Efron and Tibshirani
    1993, chapter 12).
    """
    counts, sums = tasks.counts[tasks.counts > 0], tasks.sums(terms)[tasks.counts > 0]
    n_tasks = len(counts)
    if n_tasks < 2:
        raise ValueError(
            f"`interval` must not be bootstrap where there is one task to draw from. Got {n_tasks} task."
        )
    middle = float(sums.sum() / counts.sum())
    error = _error_of_ratio(sums[None], counts[None])[0]
    drawn = rng.integers(n_tasks, size=(RESAMPLES, n_tasks))
    some, sizes = sums[drawn], counts[drawn]
    found = some.sum(axis=1) / sizes.sum(axis=1)
    errors = _error_of_ratio(some, sizes)
    distances = ratio(found - middle, errors)
    lower, upper = np.nanquantile(distances, [0.5 - level / 2, 0.5 + level / 2])
    ends = np.array([middle - upper * error]), np.array([middle - lower * error])
    beyond = np.sum(distances * error >= middle)
    return Interval(np.array([middle]), *ends, np.array([(1.0 + beyond) / (1.0 + RESAMPLES)]))


def _error_of_ratio(sums: Array, counts: Array) -> Array:
    """Return standard errors (m,) of ratios of sums (m, T) by counts (m, T), tasks being the unit."""
    left = sums - counts * (sums.sum(axis=1) / counts.sum(axis=1))[:, None]
    n_tasks = sums.shape[1]
    return np.asarray(np.sqrt(n_tasks / (n_tasks - 1) * np.sum(left**2, axis=1)) / counts.sum(axis=1))


def span_of(terms: Array) -> float:
    """Return how far terms (n,) lie apart; NaN, as in tasks without weights, does not count."""
    return float(np.nanmax(terms) - np.nanmin(terms))


def bernstein(
    terms: Array, groups: Groups, level: float, span: float, least: Array | float = 0.0
) -> Interval:
    """Return empirical Bernstein intervals of the mean of terms (n,) in each group (Maurer and Pontil 2009).

    They hold for any number of rows, if terms span no more than `span`. Variances are taken for `least`, (G,)
    or one number, at the least.

    Examples
    --------
    >>> found = bernstein(np.array([1.0, 0.0] * 50), Groups.one(100), 0.95, 1.0)
    >>> found.low.round(2), found.high.round(2)
    (array([0.25]), array([0.75]))
    """
    log = np.log(4.0 / (1.0 - level))  # each side, each with a bound on the mean and one on the variance
    counts, middle = groups.counts, groups.means(terms)
    root = np.sqrt(2.0 * ratio(_at_least(groups.variances(terms), least), counts))
    straight = 7.0 * span / 3.0 * ratio(np.ones_like(counts), counts - 1.0)
    reach = root * np.sqrt(log) + straight * log
    far = np.maximum(middle, 0.0)  # it is the reach at the level of the chance
    above = 2.0 * ratio(far, root + np.sqrt(root**2 + 4.0 * straight * far))
    chance = np.minimum(2.0 * np.exp(-(np.nan_to_num(above) ** 2)), 1.0)
    return Interval(middle, middle - reach, middle + reach, chance)


def by_task(
    terms: Array, tasks: Groups, level: float, doubtful: BoolArray, least: Array | float = 0.0
) -> Interval:
    """Return the interval of every task: normal from 200 rows on, below that empirical Bernstein's.

    Parameters
    ----------
    terms : (n,)
    tasks : Groups
    level : float
    doubtful : (T,)
        Tasks whose interval is to be empirical Bernstein's, whatever their rows.
    least : (T,) or float
        What variances are taken for at the least.
    """
    normal = asymptotic(terms, tasks, level, least)
    sure = bernstein(terms, tasks, level, span_of(terms), least)
    few = doubtful | (tasks.counts < FEW_ROWS)
    return Interval(
        normal.value,
        np.where(few, sure.low, normal.low),
        np.where(few, sure.high, normal.high),
        np.where(few, sure.chance, normal.chance),
    )
