"""Statistics in units of their own, so that a solver's tolerances mean the same for any data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posse.core.statistics import GramStatistics


class Scaled(NamedTuple):
    """Statistics whose features and rewards have mean square 1, and how to get back.

    Attributes
    ----------
    statistics : GramStatistics
    size : float
        One unit of a parameter here, in the units of the data.
    """

    statistics: GramStatistics
    size: float


def scaled(statistics: GramStatistics) -> Scaled | None:
    """Return statistics in units of the features' and rewards' mean squares, None if they tell nothing.

    Examples
    --------
    >>> found = scaled(GramStatistics.of(np.full((2, 1, 1), 10.0), np.full((2, 1), 40.0)))
    >>> found.statistics.gram, found.statistics.moment, found.size
    (array([[[2.]]]), array([[2.]]), 4.0)
    """
    count = float(statistics.count.sum())
    trace, square = float(np.einsum("tii->", statistics.gram)), float(statistics.square.sum())
    if not (trace > 0.0 and square > 0.0):
        return None
    x, y = np.sqrt(trace / (count * statistics.dim)), np.sqrt(square / count)
    return Scaled(
        GramStatistics(
            statistics.gram / x / x, statistics.moment / x / y, statistics.square / y / y, statistics.count
        ),
        float(y / x),
    )
