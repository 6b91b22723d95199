"""Errors against rows: of all tasks as they have more, and of a new task with and without the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from posse.core.statistics import GramStatistics
from posse.estimators import FactorPrior, Ridge
from posse.logs.contenders import fit_two, measured_anyway
from posse.logs.held_out import HeldOut, Noise, hold_out, squared_errors, total
from posse.logs.levels import with_levels, without_levels
from posse.logs.verdict import LEVEL
from posse.numerics.checks import Array, BoolArray

# Tasks take turns at being new in so many groups.
GROUPS = 5
# Bounds of the bins of rows that a new task has.
BINS = (
    1,
    2,
    3,
    5,
    8,
    12,
    20,
    30,
    50,
    80,
    120,
    200,
    300,
    500,
    800,
    1200,
    2000,
    5000,
    10000,
    10**5,
    10**7,
    10**12,
)
# A bin of fewer pairs of a task and a number of rows is joined to the next.
FEWEST = 10
# How near to the noise a new task is to come, as multiples of its variance.
TARGETS = (2.0, 1.5, 1.25, 1.1)


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Mean held-out errors of tasks that have some rows, in units of their noise: 1 is as good as can be.

    Attributes
    ----------
    rows : float
        How many rows tasks had to learn from, on average.
    alone, shared : float, optional
        Mean squared errors with each task alone and with sharing; alone has none without rows.
    alone_low, alone_high, shared_low, shared_high : float, optional
        Ends of their 95 % intervals over tasks; None with one task.
    tasks : int
        How many errors the means are of.
    """

    rows: float
    alone: float | None
    shared: float
    alone_low: float | None
    alone_high: float | None
    shared_low: float | None
    shared_high: float | None
    tasks: int


@dataclass(frozen=True, kw_only=True)
class RowsNeeded:
    """How many rows of its own a new task needs to come near to the noise.

    Attributes
    ----------
    error : float
        The squared error to be reached, in units of the noise variance.
    alone, shared : float, optional
        Rows, interpolated between those that were tried; None if so many were not enough.
    """

    error: float
    alone: float | None
    shared: float | None


def curve_point(rows: float, alone: Array | None, shared: Array) -> CurvePoint:
    """Return a point of a curve from excess errors of m tasks, (m,), in units of their noise."""
    middle, low, high = _interval(shared)
    other = (None, None, None) if alone is None else _interval(alone)
    return CurvePoint(
        rows=rows,
        alone=other[0],
        shared=middle,
        alone_low=other[1],
        alone_high=other[2],
        shared_low=low,
        shared_high=high,
        tasks=len(shared),
    )


def _interval(excess: Array) -> tuple[float, float | None, float | None]:
    middle = 1.0 + float(excess.mean())
    if len(excess) < 2:
        return middle, None, None
    half = stats.t.ppf(0.5 + LEVEL / 2, len(excess) - 1) * excess.std(ddof=1) / np.sqrt(len(excess))
    return middle, middle - float(half), middle + float(half)


def learning_curve(
    parts: Sequence[GramStatistics], intercept: int | None, noise: Noise, *, forward: bool
) -> tuple[CurvePoint, ...]:
    """Return errors of tasks that learn from 1, 2, 4, ... of P parts, alone and together.

    Two rotations of the parts are averaged, each tested on all parts that were not learned from, for tasks
    that have rows in the first. Forward in time the first windows teach, and the next one tests.
    """
    starts = (0,) if forward else (0, len(parts) // 2)
    points = []
    for size in _sizes(parts):
        pairs = []
        for first in starts:
            turned = [*parts[first:], *parts[:first]]
            tests = turned[size : size + 1] if forward else turned[size:]
            pairs.append((_only(total(turned[:size]), turned[0].count > 0), total(tests)))
        found = hold_out(pairs, lambda train: fit_two(train, intercept))
        if found.errors:
            rows = np.concatenate(
                [train.count[(train.count > 0) & (test.count > 0)] for train, test in pairs]
            )
            alone, shared = (found.excess(name, noise) for name in ("alone", "shared"))
            points.append(curve_point(float(rows.mean()), alone, shared))
    return tuple(points)


def _sizes(parts: Sequence[GramStatistics]) -> list[int]:
    """Return 1, 2, 4, ... as far as there are parts to learn from and one to test on."""
    return [2**power for power in range(len(parts)) if 2**power < len(parts)]


def _only(statistics: GramStatistics, tasks: BoolArray) -> GramStatistics:
    """Return statistics in which only the tasks of a mask (T,) have rows."""
    return statistics.discount(tasks.astype(np.float64))


def newcomers(parts: Sequence[GramStatistics], intercept: int | None, noise: Noise) -> tuple[CurvePoint, ...]:
    """Return errors of new tasks against the rows that they have, alone and from what the others share.

    The tasks take turns at being new, in groups: the prior is learned from all rows of the other groups, and
    a new task gets none, 1, 2, 4, ... parts of its own rows and is tested on the rest. Errors stand in
    bins by the number of rows, from 0 on. The prior holds levels, too.
    """
    found = list(_newcomer_errors(parts, intercept, noise))
    if not found:
        return ()
    rows, alone, shared = (np.concatenate(part) for part in zip(*found, strict=True))
    points = [curve_point(0.0, None, shared[rows == 0])] if (rows == 0).any() else []
    low = 0
    for high in range(1, len(BINS)):
        inside = (rows >= BINS[low]) & (rows < BINS[high])
        if inside.sum() >= min(FEWEST, np.count_nonzero(rows)):
            points.append(curve_point(float(rows[inside].mean()), alone[inside], shared[inside]))
            low = high
    return tuple(points)


def _newcomer_errors(
    parts: Sequence[GramStatistics], intercept: int | None, noise: Noise
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows, and excess errors alone and from the prior, (m,) each, of groups of m new tasks."""
    everything = total(parts)
    order = np.random.default_rng(0).permutation(np.flatnonzero(everything.count > 0))
    sizes = [0, *_sizes(parts)]
    trains = {size: total(parts[:size]) if size else everything.discount(0.0) for size in sizes}
    tests = {size: total(parts[size:]) for size in sizes}
    groups = np.array_split(order, min(GROUPS, len(order))) if len(order) > 1 else []
    for group in groups:
        own = Noise(variances=noise.variances[group], realised=noise.realised[group])
        others = everything.take(np.setdiff1d(order, group))
        with measured_anyway():
            prior = FactorPrior(mean="level").fit(others).prior
        for size in sizes:
            train, test = trains[size].take(group), tests[size].take(group)
            told = (test.count > 0) & ((train.count > 0) | (size == 0))
            if not told.any():
                continue
            with measured_anyway():
                alone = Ridge().fit(without_levels(train, intercept)).theta
                shared = prior.fit(train).theta
            theta = {"alone": with_levels(alone, train, intercept), "shared": shared}
            errors = {
                name: squared_errors(test, value) / np.maximum(test.count, 1.0)
                for name, value in theta.items()
            }
            held = HeldOut(rows=np.where(told, test.count, 0.0), errors=errors)
            yield train.count[told], held.excess("alone", own), held.excess("shared", own)


def rows_needed(points: Sequence[CurvePoint]) -> tuple[RowsNeeded, ...]:
    """Return how many rows a new task needs, for each target that sharing or standing alone reaches.

    Between two points of a curve errors are taken to be linear in the logarithm of 1 + rows.

    Examples
    --------
    >>> curve = [curve_point(3.0, np.array([2.0]), np.array([0.4])),
    ...          curve_point(7.0, np.array([0.5]), np.array([0.1]))]
    >>> [(need.error, need.alone, need.shared) for need in rows_needed(curve)][:2]
    [(2.0, 5.3, 3.0), (1.5, 7.0, 3.0)]
    """
    needs = []
    for target in TARGETS:
        alone = _first_below(
            [(point.rows, point.alone) for point in points if point.alone is not None], target
        )
        shared = _first_below([(point.rows, point.shared) for point in points], target)
        if alone is not None or shared is not None:
            needs.append(RowsNeeded(error=target, alone=alone, shared=shared))
    return tuple(needs)


def _first_below(points: Sequence[tuple[float, float]], target: float) -> float | None:
    """Return the rows at which a curve of (rows, error) first falls to a target, or None."""
    for number, (rows, error) in enumerate(points):
        if error <= target:
            if number == 0:
                return round(rows, 1)
            before, above = points[number - 1]
            share = (above - target) / (above - error)
            return round(float(np.expm1(np.log1p(before) * (1 - share) + np.log1p(rows) * share)), 1)
    return None
