"""How much sharing gains over tasks, with an interval, and what to make of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from posse.numerics.checks import Array

LEVEL = 0.95
# Sharing that gains less than this, at most, is not worth the trouble.
WORTH_IT = 0.10
SHARE, DO_NOT, UNCLEAR = "share", "do not share", "unclear"


@dataclass(frozen=True, kw_only=True)
class Gain:
    """By how much excess errors fall, relative to those of each task alone.

    Attributes
    ----------
    value : float
        1 if sharing left no excess error, 0 if it changed nothing, below 0 if it made errors larger.
    low, high : float
        Ends of an interval of about 95 %. Values and ends below -1 are given as -1, and beyond 1 as 1.
    """

    value: float
    low: float
    high: float


def gain_over_tasks(alone: Array, shared: Array) -> Gain:
    """Return 1 - sum(shared) / sum(alone) over excess errors of m tasks, (m,) each, with its interval.

    Tasks are what was sampled, and a task's two errors are of the same rows: so the interval holds every gain
    g for which the mean of alone - shared - g alone over tasks is within Student's t of 0 (Fieller's
    interval for a ratio). Its lower end is above 0 where a paired t test finds that sharing helps, and it
    does not need the excess error of alone to be far from 0: where that is not sure to be positive, one
    end, or both, are unknown.

    Examples
    --------
    >>> found = gain_over_tasks(np.array([1.0, 1.2, 0.8, 1.1]), np.array([0.5, 0.7, 0.3, 0.4]))
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.54, 0.38, 0.75)
    """
    saved = alone - shared
    if not saved.any():
        return Gain(value=0.0, low=0.0, high=0.0)
    n_tasks, mean, gained = len(alone), float(alone.mean()), float(saved.mean())
    if n_tasks < 2:
        return Gain(value=_clipped(gained, mean), low=-1.0, high=1.0)
    spread = np.cov(np.stack([alone, saved])) * stats.t.ppf(0.5 + LEVEL / 2, n_tasks - 1) ** 2 / n_tasks
    leading = mean**2 - spread[0, 0]
    middle, last = mean * gained - spread[0, 1], gained**2 - spread[1, 1]
    root = np.sqrt(max(middle**2 - leading * last, 0.0))
    if mean > 0 and leading > 0:
        low, high = _clipped(middle - root, leading), _clipped(middle + root, leading)
    elif last > 0:  # that sharing changes errors is sure, but not by which part of so little
        end = _clipped(last, abs(middle) + root)
        low, high = (end, 1.0) if gained > 0 else (-1.0, -end)
    else:
        low, high = -1.0, 1.0
    return Gain(value=float(np.clip(_clipped(gained, mean), low, high)), low=low, high=high)


def _clipped(above: float, below: float) -> float:
    """Return a ratio in [-1, 1]; 0 / 0 is 0, and without a positive denominator the sign is all there is."""
    if below <= 0:
        return float(np.sign(above))
    return float(np.clip(above / below, -1.0, 1.0))


def is_better(errors: Array, others: Array) -> bool:
    """Return whether errors of m tasks, (m,), are less than others by more than a standard error over tasks.

    Evidence has spoken for them already, so held-out rows need not be sure by themselves: of estimates that
    are as good as each other this takes one for better in about a sixth of all cases.

    Examples
    --------
    >>> is_better(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.2, 1.7]))
    True
    >>> is_better(np.array([1.0, 1.1, 0.9]), np.array([0.5, 1.8, 0.8]))
    False
    """
    saved = others - errors
    luck = saved.std(ddof=1) / np.sqrt(len(saved)) if len(saved) > 1 else 0.0
    return bool(saved.mean() > luck)


def decide(gain: Gain, rank: int) -> str:
    """Return the verdict: "share", "do not share" or "unclear".

    Without a shared direction there is nothing to share, whatever a strength that tasks have in common
    may gain.

    Examples
    --------
    >>> gain = Gain(value=0.3, low=0.1, high=0.5)
    >>> decide(gain, rank=2), decide(gain, rank=0), decide(Gain(value=0.1, low=-0.1, high=0.3), rank=1)
    ('share', 'do not share', 'unclear')
    """
    if rank == 0:
        return DO_NOT
    if gain.low > 0:
        return SHARE
    return DO_NOT if gain.high < WORTH_IT else UNCLEAR
