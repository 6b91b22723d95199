"""The variance of the rewards' noise, from what a fit leaves over."""

from __future__ import annotations

import numpy as np

from posse.numerics.checks import Array

# The noise variance is learned as if this many further rewards had been pure noise of the rewards' mean
# square: a few rewards that are fitted exactly do not make it vanish, and among many it does not count.
PSEUDO_REWARDS = 1.0


def noise_variance(misfit: Array, square: Array, count: Array) -> Array:
    """Return the noise variance from sums of squares, left over and in all, and numbers of rewards.

    Examples
    --------
    >>> noise_variance(np.array([0.0, 90.0]), np.array([4.0, 300.0]), np.array([1.0, 100.0])).round(2)
    array([2.  , 0.92])
    """
    pseudo = PSEUDO_REWARDS * np.divide(square, count, out=np.zeros_like(square), where=count > 0)
    return np.asarray((np.maximum(misfit, 0.0) + pseudo) / (count + PSEUDO_REWARDS))
