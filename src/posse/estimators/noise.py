"""The variance of the rewards' noise, from what a fit leaves over: of one task, or of many together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array
from posse.numerics.linalg import RANK_TOLERANCE, solve_symmetric

# The noise variance is learned as if this many further rewards had been pure noise of the rewards' mean
# square: a few rewards that are fitted exactly do not make it vanish, and among many it does not count.
PSEUDO_REWARDS = 1.0
# How many rewards of its own a task's noise may be worth to the others: from very different to all alike.
WORTHS = np.append(np.logspace(0, 3, 13), np.inf)
# The variance of most is found by this many steps at the most, and to this share of itself.
MOST_STEPS, CLOSE = 60, 1e-6


def noise_variance(misfit: Array, square: Array, count: Array) -> Array:
    """Return the noise variance from sums of squares, left over and in all, and numbers of rewards.

    Examples
    --------
    >>> noise_variance(np.array([0.0, 90.0]), np.array([4.0, 300.0]), np.array([1.0, 100.0])).round(2)
    array([2.  , 0.92])
    """
    pseudo = PSEUDO_REWARDS * np.divide(square, count, out=np.zeros_like(square), where=count > 0)
    return np.asarray((np.maximum(misfit, 0.0) + pseudo) / (count + PSEUDO_REWARDS))


def pooled_variance(statistics: GramStatistics) -> float:
    """Return one noise variance for all tasks, from what their own least squares leave over.

    Where no task has more rewards than numbers to fit, it is the mean square of the rewards.

    Examples
    --------
    >>> x, y = np.ones((3, 1, 1)), np.array([[1.0], [2.0], [3.0]])
    >>> round(pooled_variance(GramStatistics.of(x, y)), 6)
    1.0
    """
    values = np.linalg.eigvalsh(statistics.gram)
    ranks = np.sum(values > RANK_TOLERANCE * np.maximum(values[:, -1:], 0.0), axis=1)
    free = statistics.count - ranks
    told = free > 0
    if not told.any():
        return float(statistics.square.sum() / max(statistics.count.sum(), 1.0))
    theta = solve_symmetric(statistics.gram, statistics.moment)
    left = np.maximum(statistics.square - np.vecdot(theta, statistics.moment), 0.0)
    return float(left[told].sum() / free[told].sum())


class Moderated(NamedTuple):
    """Noise variances of tasks that learn from each other.

    Attributes
    ----------
    variances : (T,)
        Of each task: the exponential of the mean logarithm, given R_t.
    usual : float
        That of a task without rewards.
    worth : float
        e, how many rewards of its own the others' noise is worth to a task; infinite if all are alike.
    """

    variances: Array
    usual: float
    worth: float


def moderated_variances(misfits: Array, freedoms: Array) -> Moderated:
    """Return the noise variances of T tasks, each from its own rewards and the others'.

    If a task's variance is e s0 / chi-square(e), what is left of its rewards, R_t ~ variance chi-square(f_t),
    has R_t / (f_t s0) ~ F(f_t, e). s0 and e are the likeliest; a task with many rewards then has a variance
    of its own, and one with few that of the others: moderated variances (G. K. Smyth, 2004), equation (10) of
    the page "The learned prior".

    Parameters
    ----------
    misfits : (T,)
        R_t, sums of squares.
    freedoms : (T,)
        f_t, of how many free numbers: rewards less parameters that were fitted to them.

    Examples
    --------
    >>> found = moderated_variances(np.array([1.0, 100.0, 400.0, 0.0]), np.array([100.0, 100.0, 100.0, 0.0]))
    >>> found.variances[:3].round(2), bool(found.variances[3] == found.usual)
    (array([0.01, 1.  , 4.  ]), True)
    """
    told = (freedoms > 0) & (misfits > 0)
    if not told.any():
        return Moderated(np.ones(len(misfits)), 1.0, np.inf)
    left, free = misfits[told], freedoms[told]
    best, usual, worth = -np.inf, 1.0, np.inf
    for candidate in WORTHS[::-1]:
        scale = _usual_variance(left, free, candidate)
        value = _log_likelihood(left, free, scale, candidate)
        if value > best + CLOSE:
            best, usual, worth = value, scale, float(candidate)
    if worth == np.inf:
        return Moderated(np.full(len(misfits), usual), usual, worth)
    own, free = np.where(told, misfits, 0.0), np.where(told, freedoms, 0.0)
    variances = 0.5 * (worth * usual + own) / np.exp(digamma(0.5 * (worth + free)))
    return Moderated(variances, float(0.5 * worth * usual / np.exp(digamma(0.5 * worth))), worth)


def _usual_variance(left: Array, free: Array, worth: float) -> float:
    """Return the likeliest s0 for a given e, by expectation-maximisation."""
    usual = float(left.sum() / free.sum())
    if worth == np.inf:
        return usual
    usual = float(np.exp(np.average(np.log(left / free), weights=free)))
    for _ in range(MOST_STEPS):
        before, usual = usual, len(left) / float(np.sum((worth + free) / (worth * usual + left)))
        if abs(usual - before) < CLOSE * before:
            break
    return usual


def _log_likelihood(left: Array, free: Array, usual: float, worth: float) -> float:
    """Return log p(R_1, ..., R_T), up to a constant that depends neither on s0 nor on e."""
    if worth == np.inf:
        return float(np.sum(-0.5 * free * np.log(usual) - 0.5 * left / usual))
    half = 0.5 * worth
    gammas = gammaln(0.5 * (worth + free)) - gammaln(half)
    powers = half * np.log(half * usual) - 0.5 * (worth + free) * np.log(half * usual + 0.5 * left)
    return float(np.sum(gammas + powers))
