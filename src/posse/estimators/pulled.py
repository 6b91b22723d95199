"""Least squares of every task pulled towards a point of its own, by a distance that is not squared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray
from posse.numerics.linalg import RANK_TOLERANCE

# Newton steps for a multiplier, at the most, and when they are done.
MOST_STEPS, CLOSE = 100, 1e-13


@dataclass(frozen=True, eq=False)
class Pulled:
    """The problems min |y_t - X_t theta|^2 / 2 + w_t |theta - c_t|, ready to be solved for many points c_t.

    The distance enters as it is, not squared. So a task whose data agree with c_t takes c_t itself, and what
    c_t can do to one whose data do not is bounded by w_t, as in Huber's loss.

    Attributes
    ----------
    statistics : GramStatistics
    values : (T, d)
        Eigenvalues of X_t'X_t.
    vectors : (T, d, d)
        Its eigenvectors, as columns.

    Examples
    --------
    >>> x, y = np.array([[[1.0]], [[1.0]]]), np.array([[2.0], [4.0]])      # one task, least squares is 3
    >>> pulled = Pulled.of(GramStatistics.of(x, y))
    >>> pulled.towards(np.array([[2.9]]), np.array([1.0]))                 # near enough: the point itself
    array([[2.9]])
    >>> pulled.towards(np.array([[0.0]]), np.array([1.0])).round(6)        # moved by w / (X'X), no more
    array([[2.5]])
    """

    statistics: GramStatistics
    values: Array
    vectors: Array

    @classmethod
    def of(cls, statistics: GramStatistics) -> Pulled:
        """Return the problems of some statistics."""
        values, vectors = np.linalg.eigh(statistics.gram)
        return cls(statistics, np.maximum(values, 0.0), vectors)

    def towards(self, points: Array, weights: Array) -> Array:
        """Return the solutions (T, d) for points c_t (T, d) and weights w_t (T,), not negative.

        With g = X'(y - X c) the solution is c where |g| <= w, and else c + (X'X + m I)^-1 g with the m for
        which m times the length of the step is w. The inverse of that length is concave in m, so that Newton
        steps from above go down to m and never past it.
        """
        seen = self.statistics
        slope = np.vecmat(seen.moment - np.matvec(seen.gram, points), self.vectors)
        kept = self.values > RANK_TOLERANCE * self.values[:, -1:]
        slope = np.where(kept, slope, 0.0)  # X'y has no part where X'X has none but for rounding
        length = np.sqrt(np.sum(slope**2, axis=1))
        (moved,) = np.nonzero(length > weights)
        steps = np.zeros_like(points)
        if moved.size:
            steps[moved] = _steps(slope[moved], self.values[moved], kept[moved], weights[moved])
        return np.asarray(points + np.matvec(self.vectors, steps))

    def objective(self, theta: Array, points: Array, weights: Array) -> float:
        """Return the sum over tasks of |y_t - X_t theta_t|^2 / 2 + w_t |theta_t - c_t|, less |y_t|^2 / 2."""
        seen = self.statistics
        squares = 0.5 * np.vecdot(theta, np.matvec(seen.gram, theta)) - np.vecdot(theta, seen.moment)
        return float(np.sum(squares + weights * np.linalg.norm(theta - points, axis=1)))


def _steps(slope: Array, values: Array, kept: BoolArray, weights: Array) -> Array:
    """Return (X'X + m I)^-1 g, along eigenvectors: slopes, values, which count (n, d), weights (n,)."""
    length = np.sqrt(np.sum(slope**2, axis=1))
    multiplier = weights * values[:, -1] / (length - weights)
    for _ in range(MOST_STEPS):
        step = np.divide(slope, values + multiplier[:, None], out=np.zeros_like(slope), where=kept)
        shorter = np.divide(step**2, values + multiplier[:, None], out=np.zeros_like(slope), where=kept)
        squares = np.sum(step**2, axis=1)
        inverse = 1.0 / np.sqrt(squares)
        steepness = np.sum(shorter, axis=1) * inverse / squares
        # 1 / |step| - m / w, whose slope in m is `steepness` - 1 / w
        down = (weights * inverse - multiplier) / (weights * steepness - 1.0)
        multiplier = np.maximum(multiplier - down, 0.0)
        if (np.abs(down) <= CLOSE * multiplier).all():
            break
    return np.asarray(np.divide(slope, values + multiplier[:, None], out=np.zeros_like(slope), where=kept))
