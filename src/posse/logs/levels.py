"""Every task's own level, unpenalised: taken out of statistics before a fit, and put back after it."""

from __future__ import annotations

import numpy as np

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array

# What is left of a sum of squares without the level is rounding, if it is below this share of it.
ROUNDING = 1e-12


def without_levels(statistics: GramStatistics, intercept: int | None) -> GramStatistics:
    """Return statistics of features and rewards less their means in each task.

    A fit to them has a level for each task that nothing shrinks and nobody shares (Frisch, Waugh and
    Lovell). The level takes one of a task's rows, so rows count one less.

    Parameters
    ----------
    statistics : GramStatistics
        Of T tasks and d features.
    intercept : int, optional
        Which feature is constant; without one the statistics are returned as they are.

    Returns
    -------
    GramStatistics
        Of T tasks and the d - 1 other features.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 0], [[1.0, 2.0], [1.0, 4.0]], [10.0, 14.0], n_tasks=1)
    >>> inside = without_levels(seen, 0)
    >>> inside.gram, inside.moment, inside.square, inside.count
    (array([[[2.]]]), array([[4.]]), array([8.]), array([1.]))
    """
    if intercept is None:
        return statistics
    others = np.delete(np.arange(statistics.dim), intercept)
    weight = statistics.gram[:, intercept, intercept]
    inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
    cross, level = statistics.gram[:, intercept][:, others], statistics.moment[:, intercept]
    gram = statistics.gram[:, others][:, :, others]
    raw = np.einsum("tii->ti", gram)
    gram = gram - inverse[:, None, None] * cross[:, :, None] * cross[:, None, :]
    moment = statistics.moment[:, others] - (inverse * level)[:, None] * cross
    square = statistics.square - inverse * level**2
    count = np.maximum(statistics.count - 1.0, 0.0)
    varies = (np.einsum("tii->ti", gram) > ROUNDING * raw) & (count > 0)[:, None]
    paid = (square > ROUNDING * statistics.square) & (count > 0)
    return GramStatistics(
        gram * (varies[:, :, None] & varies[:, None, :]),
        moment * (varies & paid[:, None]),
        square * paid,
        count,
    )


def with_levels(effects: Array, statistics: GramStatistics, intercept: int | None) -> Array:
    """Return parameters (T, d) from effects of the features beside the constant, (T, d - 1).

    Each task's level is that of least squares given its effects; without rows it is 0.

    Parameters
    ----------
    effects : (T, d - 1), or (T, d) where there is no constant feature
    statistics : GramStatistics
        Of the rows that effects were fitted to, with the constant feature.
    intercept : int, optional
        Which feature is constant; without one the effects are returned as they are.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 0], [[1.0, 2.0], [1.0, 4.0]], [10.0, 14.0], n_tasks=1)
    >>> with_levels(np.array([[2.0]]), seen, 0)
    array([[6., 2.]])
    """
    if intercept is None:
        return effects
    weight = statistics.gram[:, intercept, intercept]
    theta = np.insert(effects, intercept, 0.0, axis=1)
    left = statistics.moment[:, intercept] - np.vecdot(statistics.gram[:, intercept], theta)
    theta[:, intercept] = np.divide(left, weight, out=np.zeros_like(left), where=weight > 0)
    return theta


def usual_level(statistics: GramStatistics, intercept: int | None) -> float:
    """Return the mean over tasks with rows of their mean rewards; 0 where there is no constant feature.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 0, 1], [[1.0], [1.0], [1.0]], [10.0, 14.0, 4.0], n_tasks=3)
    >>> usual_level(seen, 0)
    8.0
    """
    told = statistics.count > 0
    if intercept is None or not told.any():
        return 0.0
    weight = statistics.gram[told, intercept, intercept]
    return float(np.mean(statistics.moment[told, intercept] / weight))


def counted_from(statistics: GramStatistics, level: float, intercept: int | None) -> GramStatistics:
    """Return statistics of rewards less a level: a prior around 0 is then one around that level.

    Parameters
    ----------
    statistics : GramStatistics
    level : float
        What to take off every reward.
    intercept : int, optional
        Which feature is the constant 1; without one the statistics are returned as they are.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 0], [[1.0, 2.0], [1.0, 4.0]], [10.0, 14.0], n_tasks=1)
    >>> fewer = counted_from(seen, 10.0, 0)
    >>> fewer.moment, fewer.square
    (array([[ 4., 16.]]), array([16.]))
    """
    if intercept is None:
        return statistics
    column = statistics.gram[:, intercept]
    square = statistics.square - 2.0 * level * statistics.moment[:, intercept]
    square = np.maximum(square + level**2 * column[:, intercept], 0.0)
    return GramStatistics(statistics.gram, statistics.moment - level * column, square, statistics.count)
