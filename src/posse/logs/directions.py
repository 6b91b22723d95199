"""What tasks share, in words of the features: directions, their loadings, and who follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators import FactorEstimate

# A direction with a smaller part of the variance between tasks is not worth a line.
LEAST_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction along which tasks differ together.

    Attributes
    ----------
    share : float
        Its part of the variance between tasks, with features counted in standard deviations.
    loadings : tuple of (str, float)
        Features, the largest first: by how much one standard deviation of the feature changes the reward of
        a task that lies one standard deviation along the direction. The first is positive.
    """

    share: float
    loadings: tuple[tuple[str, float], ...]


def directions_of(
    estimate: FactorEstimate, statistics: GramStatistics, features: Sequence[str]
) -> tuple[Direction, ...]:
    """Return the shared directions of a learned prior, the one with most variance first.

    Parameters
    ----------
    estimate : FactorEstimate
    statistics : GramStatistics
        Of the rows that it was learned from, without levels: they tell how far features vary.
    features : sequence of str
        The names of the features.

    Examples
    --------
    >>> from posse import FactorPrior
    >>> rng = np.random.default_rng(0)
    >>> x, size = rng.standard_normal((50, 30, 3)), rng.standard_normal(30)
    >>> seen = GramStatistics.of(x, (2 * x[..., 0] - x[..., 2]) * size + 0.1 * rng.standard_normal((50, 30)))
    >>> found = directions_of(FactorPrior().fit(seen), seen, ["price", "day", "rain"])
    >>> len(found), [name for name, _ in found[0].loadings], found[0].loadings[1][1] < 0
    (1, ['price', 'rain', 'day'], True)
    """
    spread = np.sqrt(np.einsum("tii->i", statistics.gram) / max(float(statistics.count.sum()), 1.0))
    scaled = spread[:, None] * np.asarray(estimate.basis)
    lengths = np.einsum("dk,dk->k", scaled, scaled)
    variances = estimate.spectrum * lengths
    rest = estimate.outside * max(float(spread @ spread) - float(lengths.sum()), 0.0)
    everything = float(variances.sum()) + rest
    loadings = np.sqrt(estimate.spectrum) * scaled
    found = []
    for number in np.argsort(-variances, kind="stable"):
        column = loadings[:, number]
        order = np.argsort(-np.abs(column), kind="stable")
        sign = 1.0 if column[order[0]] >= 0 else -1.0
        named = tuple((features[place], float(sign * column[place])) for place in order)
        found.append(Direction(share=float(variances[number] / everything), loadings=named))
    return tuple(found)
