"""Held-out errors of all tasks from statistics alone, and how much of them is noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators.noise import moderated_variances
from posse.logs.contenders import Fitted
from posse.logs.levels import ROUNDING, without_levels
from posse.numerics.checks import Array

# Directions of standardised features that have less than this share of the largest variance are none.
COLLINEAR = 1e-10
# With fewer rows left over than this, in all tasks together, the noise is that of the learned prior.
FEW_LEFT = 50.0


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How loud tasks are.

    Attributes
    ----------
    variances : (T,)
        Of each task's noise, learned from its own rows and the others'.
    realised : (T,)
        The mean square of the noise in the rows that are there.
    """

    variances: Array
    realised: Array


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Errors on rows that were not fitted.

    Attributes
    ----------
    rows : (T,)
        Held-out rows of each task, for which the task had others to fit to.
    errors : mapping of str to (T,)
        Mean squared errors of contenders; 0 where a task has no such rows.
    """

    rows: Array
    errors: Mapping[str, Array]

    def excess(self, name: str, noise: Noise) -> Array:
        """Return a contender's errors beyond noise, in units of each task's noise variance, (m,).

        They are of the m tasks that have held-out rows, in order.
        """
        told = self.rows > 0
        beyond = self.errors[name][told] - noise.realised[told]
        return np.asarray(beyond / noise.variances[told])


def squared_errors(statistics: GramStatistics, theta: Array) -> Array:
    """Return the sums of squared errors (T,) of parameters (T, d): y'y - 2 theta'b + theta'G theta.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 0], [[1.0], [2.0]], [1.0, 5.0], n_tasks=1)
    >>> squared_errors(seen, np.array([[2.0]]))
    array([2.])
    """
    fitted = np.vecdot(theta, np.matvec(statistics.gram, theta))
    return np.asarray(np.maximum(statistics.square - 2.0 * np.vecdot(theta, statistics.moment) + fitted, 0.0))


def total(parts: Iterable[GramStatistics]) -> GramStatistics:
    """Return the sum of one or more statistics of equal tasks and features."""
    return reduce(add, parts)


def splits(
    parts: Sequence[GramStatistics], *, forward: bool
) -> Iterator[tuple[GramStatistics, GramStatistics]]:
    """Yield pairs of what to fit to and what to test on.

    Each part is tested by a fit to all others; or, forward in time, by a fit to the ones before it.
    """
    for number in range(1 if forward else 0, len(parts)):
        others = parts[:number] if forward else [*parts[:number], *parts[number + 1 :]]
        yield total(others), parts[number]


def hold_out(
    pairs: Iterable[tuple[GramStatistics, GramStatistics]], fit: Callable[[GramStatistics], Fitted]
) -> HeldOut:
    """Fit to the first of each pair and test on the second, task by task.

    A task without rows in the first is not tested on the second: on its own it would have nothing to say.
    """
    sums: dict[str, Array] = {}
    rows = np.zeros(0)
    for train, test in pairs:
        told = (train.count > 0) & (test.count > 0)
        rows = (rows if rows.size else np.zeros(train.n_tasks)) + np.where(told, test.count, 0.0)
        if not told.any():
            continue
        for name, theta in fit(train).theta.items():
            error = np.where(told, squared_errors(test, theta), 0.0)
            sums[name] = sums.get(name, np.zeros(len(rows))) + error
    return HeldOut(
        rows=rows,
        errors={
            name: np.divide(value, rows, out=np.zeros_like(rows), where=rows > 0)
            for name, value in sums.items()
        },
    )


def estimate_noise(statistics: GramStatistics, intercept: int | None, prior: Array) -> Noise:
    """Return how loud tasks are, from what least squares leaves over of each task's rewards.

    With R_t left over of n_t rows and r_t parameters, the noise in the rows has the sum of squares R_t and
    what the fit took, r_t variances on average. So it is known up to r_t / n_t of itself, however loud it is,
    which is as well as errors beyond it are known: a noise variance alone would be off by sqrt(2 / n_t).

    Parameters
    ----------
    statistics : GramStatistics
        Of all rows.
    intercept : int, optional
        Which feature is constant.
    prior : (T,)
        Noise variances under the learned prior, taken where hardly any rows are left over.
    """
    inside = without_levels(statistics, intercept)
    left, ranks = _left_over(inside)
    taken = np.minimum(ranks + (intercept is not None), statistics.count)
    freedoms = statistics.count - taken
    variances = moderated_variances(left, freedoms).variances if freedoms.sum() >= FEW_LEFT else prior
    least = ROUNDING * float(inside.square.sum()) / float(statistics.count.sum())
    variances = np.maximum(variances, least) if left.any() else np.full(len(left), least)
    seen = np.maximum(statistics.count, 1.0)
    return Noise(variances=variances, realised=(left + taken * variances) / seen)


def _left_over(statistics: GramStatistics) -> tuple[Array, Array]:
    """Return what least squares leaves of sums of squares, (T,), and how many directions it took, (T,).

    Features count in units of their spread within the task, so that none is lost for being small.
    """
    spread = np.sqrt(np.einsum("tii->ti", statistics.gram))
    inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    values, vectors = np.linalg.eigh(statistics.gram * inverse[:, :, None] * inverse[:, None, :])
    kept = values > COLLINEAR * np.maximum(values[:, -1:], 0.0)
    kept &= np.arange(statistics.dim)[::-1] < statistics.count[:, None]  # no more than there are rows
    along = np.vecmat(statistics.moment * inverse, vectors)
    explained = np.divide(along**2, values, out=np.zeros_like(values), where=kept).sum(axis=1)
    return np.maximum(statistics.square - explained, 0.0), kept.sum(axis=1).astype(np.float64)
