"""Rewards around their common level: a large mean is no direction in which tasks vary."""

from __future__ import annotations

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.units import constant_features
from posse.numerics.checks import Array

# What is left of a sum of squares around the level is rounding, if it is below this share of it.
ROUNDING = 1e-12


def mean_level(statistics: GramStatistics) -> Array:
    """Return parameters (d,) that are 0 but for a constant feature: those of the mean of all rewards.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 1], [[1.0, 5.0], [1.0, 7.0]], [10.0, 14.0], n_tasks=2)
    >>> mean_level(seen)
    array([12.,  0.])
    """
    offset = np.zeros(statistics.dim)
    constant = constant_features(statistics)
    if len(constant):
        place = constant[0]
        offset[place] = statistics.moment[:, place].sum() / statistics.gram[:, place, place].sum()
    return offset


def statistics_around(statistics: GramStatistics, offset: Array) -> GramStatistics:
    """Return statistics of what parameters (d,) leave over of rewards.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 0], [[1.0], [1.0]], [10.0, 14.0], n_tasks=1)
    >>> around = statistics_around(seen, np.array([12.0]))
    >>> around.moment, around.square
    (array([[0.]]), array([8.]))
    """
    if not offset.any():
        return statistics
    explained = statistics.gram @ offset
    square = statistics.square - 2.0 * statistics.moment @ offset + explained @ offset
    left = square > ROUNDING * statistics.square
    moment = np.where(left[:, None], statistics.moment - explained, 0.0)
    return GramStatistics(statistics.gram, moment, np.where(left, square, 0.0), statistics.count)
