"""Finding the representation from random actions: the paper's method of moments and two better ones.

Each estimator sees rewards r = <x, theta_t> + noise of actions x drawn uniformly on a sphere of radius
rho, and returns the k leading eigenvectors of a matrix M whose mean is, up to a multiple of the identity,
a multiple of the sum of theta_t theta_t'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, check_integer
from posse.numerics.linalg import solve_symmetric


@dataclass(frozen=True, eq=False)
class MomentStatistics:
    """`GramStatistics`, and the sum of r^2 x x' over all rounds and tasks; they add up as those do.

    Attributes
    ----------
    tasks : GramStatistics
    squares : (d, d)
        The sum of r^2 x x'.
    """

    tasks: GramStatistics
    squares: Array

    @classmethod
    def zeros(cls, n_tasks: int, dim: int) -> MomentStatistics:
        """Return the statistics of no data."""
        return cls(GramStatistics.zeros(n_tasks, dim), np.zeros((dim, dim)))

    @classmethod
    def of(
        cls, features: ArrayLike, rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> MomentStatistics:
        """Summarise n rounds of all tasks: features (n, T, d), rewards and weights (n, T)."""
        x, y = np.asarray(features, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
        tasks = GramStatistics.of(x, y, weights)
        scaled = y if weights is None else np.where(np.asarray(weights) > 0, y, 0.0)
        flat = (scaled[..., None] * x).reshape(-1, x.shape[2])
        return cls(tasks, flat.T @ flat)

    @classmethod
    def repeated(cls, features: Array, n_rounds: int, total: Array, square: Array) -> MomentStatistics:
        """Summarise n rounds of one action (T, d), by the sums of rewards and of their squares, (T,)."""
        tasks = GramStatistics.repeated(features, n_rounds, total, square)
        return cls(tasks, (features * square[:, None]).T @ features)

    def __add__(self, other: MomentStatistics) -> MomentStatistics:
        return MomentStatistics(self.tasks + other.tasks, self.squares + other.squares)


class SubspaceEstimator(Protocol):
    """A way to find the span of all parameters from random actions."""

    def rounds(self, exponent: float, horizon: int, n_tasks: int, dim: int, rank: int) -> float:
        """Return N_1, the rounds of exploration that suit this estimator."""

    def basis(self, statistics: MomentStatistics, rank: int) -> Array:
        """Return orthonormal columns, (d, rank)."""


@dataclass(frozen=True)
class MethodOfMoments:
    """The paper's estimator: M = mean of r^2 x x'.

    For x on the unit sphere, E <x, theta>^2 x x' = (2 theta theta' + |theta|^2 I) / (d (d + 2)). The noise
    enters squared: M is far noisier than its relatives.
    """

    def rounds(self, exponent: float, horizon: int, n_tasks: int, dim: int, rank: int) -> float:
        """Return d^c k sqrt(N / T)."""
        return float(dim**exponent * rank * np.sqrt(horizon / n_tasks))

    def basis(self, statistics: MomentStatistics, rank: int) -> Array:
        """Return the leading eigenvectors of M."""
        return leading_eigenvectors(statistics.squares / statistics.tasks.count.sum(), rank)


@dataclass(frozen=True)
class PairedMoments:
    """Leave-one-out: M = sum over tasks and over pairs of different rounds m, n of r_m r_n x_m x_n'.

    The noise of two rounds is independent, so it leaves M unbiased: E M is a multiple of the sum of
    theta_t theta_t'. Computed as (X'y)(X'y)' minus the sum of r^2 x x'.
    """

    def rounds(self, exponent: float, horizon: int, n_tasks: int, dim: int, rank: int) -> float:
        """Return d^(c - 1/2) sqrt(k N / T)."""
        return linear_rounds(exponent, horizon, n_tasks, dim, rank)

    def basis(self, statistics: MomentStatistics, rank: int) -> Array:
        """Return the leading eigenvectors of M."""
        moment = statistics.tasks.moment
        return leading_eigenvectors(moment.T @ moment - statistics.squares, rank)


@dataclass(frozen=True)
class TaskSpectral:
    """Singular vectors of the tasks' own least-squares estimates, their noise removed (Yang et al. 2022).

    M = sum of theta_t theta_t' - s2 G_t^-1, where s2 is the residual variance of all tasks together.
    It needs more rounds than features in every task.

    References
    ----------
    Yang, Lei, Lee and Du, Nearly minimax algorithms for linear bandits with shared representation, 2022.
    """

    def rounds(self, exponent: float, horizon: int, n_tasks: int, dim: int, rank: int) -> float:
        """Return d^(c - 1/2) sqrt(k N / T), and at least 2 d."""
        return max(2.0 * dim, linear_rounds(exponent, horizon, n_tasks, dim, rank))

    def basis(self, statistics: MomentStatistics, rank: int) -> Array:
        """Return the leading eigenvectors of M."""
        tasks = statistics.tasks
        theta = solve_symmetric(tasks.gram, tasks.moment)
        freedom = float((tasks.count - tasks.dim).sum())
        residual = float((tasks.square - np.vecdot(theta, tasks.moment)).sum())
        noise = np.linalg.pinv(tasks.gram, hermitian=True).sum(axis=0)
        variance = residual / freedom if freedom > 0 else 0.0
        return leading_eigenvectors(theta.T @ theta - variance * noise, rank)


def linear_rounds(exponent: float, horizon: int, n_tasks: int, dim: int, rank: int) -> float:
    """Return d^(c - 1/2) sqrt(k N / T): at c = 3/2 the exploration that linear estimates need."""
    return float(dim ** (exponent - 0.5) * np.sqrt(rank * horizon / n_tasks))


def leading_eigenvectors(matrix: Array, rank: int) -> Array:
    """Return the eigenvectors of the `rank` largest eigenvalues of a symmetric matrix, as columns."""
    check_integer("`rank`", rank, 1, len(matrix), high_name="dim")
    return np.ascontiguousarray(np.linalg.eigh(matrix)[1][:, ::-1][:, :rank])


def largest_sine(basis: Array, estimate: Array) -> float:
    """Return the sine of the largest angle between the spans of two matrices with orthonormal columns.

    Examples
    --------
    >>> largest_sine(np.eye(3)[:, :1], np.eye(3)[:, 1:2])
    1.0
    """
    missed = estimate - basis @ (basis.T @ estimate)
    return float(np.linalg.norm(missed, ord=2))
