"""Models of rewards that never saw the decisions which they predict: shared by all tasks, and each alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from posse.core.encoder import Encoder
from posse.core.statistics import GramStatistics
from posse.estimators import FactorPrior, Ridge
from posse.logs.contenders import measured_anyway
from posse.logs.held_out import total
from posse.logs.levels import counted_from, usual_level, with_levels, without_levels
from posse.numerics.checks import Array

# What models are called in results, and what they are.
SHARED, ALONE = "shared", "alone"


def taught_by(parts: Sequence[GramStatistics], *, forward: bool) -> list[GramStatistics]:
    """Return what each part's models and policies are learned from: all other parts, or those before it.

    Forward in time the first part has nothing before it, and its statistics are those of no rows.

    Examples
    --------
    >>> parts = [GramStatistics.from_rows([0], [[1.0]], [float(y)], n_tasks=1) for y in (1, 2, 4)]
    >>> [float(seen.moment[0, 0]) for seen in taught_by(parts, forward=False)]
    [6.0, 5.0, 3.0]
    >>> [float(seen.moment[0, 0]) for seen in taught_by(parts, forward=True)]
    [0.0, 1.0, 3.0]
    """
    nothing = GramStatistics.zeros(parts[0].n_tasks, parts[0].dim)
    if forward:
        return [total([nothing, *parts[:number]]) for number in range(len(parts))]
    return [total([*parts[:number], *parts[number + 1 :]]) for number in range(len(parts))]


def fit_shared(statistics: GramStatistics, encoder: Encoder) -> Array:
    """Return the parameters (T, d) of the learned prior, around the level of all rewards."""
    return FactorPrior(mean="level").fit(statistics).theta


def fit_alone(statistics: GramStatistics, encoder: Encoder) -> Array:
    """Return the parameters (T, d) of ridge regressions, each task alone with a level that nothing shrinks.

    A task without rows has the usual level of the others, which is all that can be said.
    """
    level = usual_level(statistics, encoder.constant)
    inside = counted_from(statistics, level, encoder.constant)
    effects = Ridge().fit(without_levels(inside, encoder.constant)).theta
    theta = with_levels(effects, inside, encoder.constant).copy()
    if encoder.constant is not None:
        theta[:, encoder.constant] += level
    return theta


FITS: Mapping[str, Callable[[GramStatistics, Encoder], Array]] = {SHARED: fit_shared, ALONE: fit_alone}


def reward_models(taught: Sequence[GramStatistics], encoder: Encoder) -> dict[str, Array]:
    """Return the parameters of every part's models, by name, as those of arms' compact features (P, T, A, c).

    Parameters
    ----------
    taught : sequence of P GramStatistics
        What each part's models are learned from; without rows they predict 0.
    encoder : Encoder
    """
    found = {}
    with measured_anyway():
        for name, fit in FITS.items():
            theta = [
                fit(seen, encoder) if seen.count.any() else np.zeros_like(seen.moment) for seen in taught
            ]
            found[name] = np.ascontiguousarray(encoder.split(np.stack(theta)))
    return found
