"""Intervals for those who look while decisions come in: they hold at all times at once."""

from __future__ import annotations

import numpy as np
from scipy.special import lambertw

from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.intervals import Interval, span_of
from posse.numerics.checks import Array, IntArray

# A sequence is tightest after this many decisions, and says nothing before the first few.
TIGHTEST = 1000.0
FIRST = 50


def sequence(terms: Array, level: float, span: float, least: float = 0.0) -> tuple[Array, Array]:
    """Return the ends (n,), (n,) of a confidence sequence for the running mean of what terms (n,) expect.

    With probability `level` it holds after every decision at once, in the limit: one may look at any time,
    and stop. It is that of Waudby-Smith et al. (2024, Theorem 2.2) for martingales: with S the variance of
    terms so far, n of them and a fixed rho, the mean is off by at most
    sqrt((S n rho^2 + 1) / (n^2 rho^2) log((S n rho^2 + 1) / (1 - level)^2)). Infinite before the first 50.

    Heavy weights are rare, and a variance in which none of them is yet would be far too small. So S begins,
    with the weight of one decision, at span^2 / 4, the largest variance that terms of such a span can have
    (Popoviciu 1935): that is forgotten as 1 / n. Variances are taken for `least` at the least.

    Examples
    --------
    >>> low, high = sequence(np.tile([0.0, 1.0], 500), 0.95, 1.0)
    >>> low[-1].round(2), high[-1].round(2)
    (np.float64(0.45), np.float64(0.55))
    """
    count = np.arange(1.0, len(terms) + 1)
    middle = np.cumsum(terms) / count
    squares = np.cumsum((terms - middle) * (terms - np.append(0.0, middle[:-1])))  # Welford's
    variance = np.maximum((np.maximum(squares, 0.0) + span**2 / 4.0) / count, least)
    alpha = 1.0 - level
    tight = _tight(count, level)
    reach = np.sqrt(variance * (tight + 1.0) / (tight * count) * np.log((tight + 1.0) / alpha**2))
    reach[: FIRST - 1] = np.inf
    return middle - reach, middle + reach


def _tight(count: Array, level: float) -> Array:
    """Return S n rho^2 after so many decisions (n,), rho being chosen for the variance so far."""
    best = -float(lambertw(-((1.0 - level) ** 2) * np.exp(-1.0), k=-1).real) - 1.0  # where it is tightest
    return best / TIGHTEST * count


def last_of(middle: Array, low: Array, high: Array, counts: Array, level: float) -> Interval:
    """Return the last intervals (G,) of sequences of so many terms, with the chances that go with them.

    For a fixed rho the reach is as the root of log((S n rho^2 + 1) / (1 - level)^2), whatever the level.
    """
    tight = _tight(np.maximum(counts, 1.0), level) + 1.0
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.maximum(middle, 0.0) / (high - middle))
    chance = np.exp(0.5 * (np.log(tight) - share**2 * np.log(tight / (1.0 - level) ** 2)))
    return Interval(middle, low, high, np.minimum(chance, 1.0))


def sequence_by_task(
    terms: Array, tasks: Groups, order: IntArray, level: float, least: Array | float = 0.0
) -> Interval:
    """Return the last interval of every task's own confidence sequence, of terms (n,) in an order (n,).

    Variances are taken for `least`, (T,) or one number, at the least.
    """
    low, high = np.full(tasks.n_groups, -np.inf), np.full(tasks.n_groups, np.inf)
    least = np.broadcast_to(np.asarray(least), tasks.n_groups)
    span = span_of(terms)
    by_task = order[np.argsort(tasks.index[order], kind="stable")]
    ends = np.cumsum(tasks.counts).astype(np.intp)
    for task, end in enumerate(ends.tolist()):
        own = terms[by_task[end - int(tasks.counts[task]) : end]]
        if len(own):
            lows, highs = sequence(own, level, span, float(least[task]))
            low[task], high[task] = lows[-1], highs[-1]
    return last_of(tasks.means(terms), low, high, tasks.counts, level)
