"""Every task on its own: ridge regression in all of R^d, or inside a basis that is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from posse.estimators.estimate import Estimate, noise_variance
from posse.linalg import PIVOT_TOLERANCE, solve_symmetric
from posse.statistics import GramStatistics
from posse.validation import Array, check_array, check_choice, check_number

# Candidates for the learned penalty, as multiples of the mean eigenvalue of one round's x x'.
PENALTY_GRID = np.logspace(-3, 5, 33)


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """Ridge regression, each task alone: theta_t minimises |y_t - X_t theta|^2 + lambda_t |theta|^2.

    Parameters
    ----------
    penalty : float or "evidence"
        Lambda. At 0 it is least squares, and where X_t'X_t is singular the minimum-norm solution.
        "evidence", the default, lets every task choose its own: the lambda under which its rewards
        are most likely when theta_t ~ N(0, s2/lambda I) and the noise variance s2 is free. It
        follows the scale of features and rewards by itself.

    Examples
    --------
    >>> x, y = np.array([[[1.0]], [[1.0]]]), np.array([[2.0], [4.0]])
    >>> Ridge(penalty=0).fit(GramStatistics.of(x, y)).theta
    array([[3.]])
    >>> Ridge(penalty=1).fit(GramStatistics.of(x, y)).theta
    array([[2.]])

    Notes
    -----
    The covariance is s2_t (G_t + lambda_t I)^-1; the noise variance s2_t is the task's own, too.

    With r(lambda) = y'y - b'(G + lambda I)^-1 b, minus twice the log likelihood is, up to a constant,
    n log r(lambda) + log det(I + G/lambda): closed form from the eigenvalues of G. It is minimised
    over a fixed grid of 33 values from 1e-3 to 1e5 times the mean eigenvalue of x x', four to a
    decade; the likelihood is flat on that scale.
    """

    penalty: float | str = "evidence"

    def __post_init__(self) -> None:
        if isinstance(self.penalty, str):
            check_choice("`penalty` of Ridge, if not a number,", self.penalty, ["evidence"])
        else:
            check_number("`penalty` of Ridge", self.penalty, 0.0)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is zero."""
        if not isinstance(self.penalty, str):
            return self._fit_fixed(statistics, self.penalty)
        values, vectors = np.linalg.eigh(statistics.gram)
        values = np.maximum(values, 0.0)
        rotated = np.einsum("tij,ti->tj", vectors, statistics.moment)
        penalties = likeliest_penalty(values, rotated, statistics)
        shrunk = np.divide(rotated, values + penalties[:, None], out=np.zeros_like(values), where=values > 0)
        theta = np.einsum("tij,tj->ti", vectors, shrunk)
        return Estimate(theta, find_root=partial(ridge_root, statistics, theta, penalties, (values, vectors)))

    @property
    def gives_covariance(self) -> bool:
        """Whether estimates have a covariance: least squares knows nothing where a task has no data."""
        return self.penalty != 0

    def _fit_fixed(self, statistics: GramStatistics, penalty: float) -> Estimate:
        shifted = statistics.gram + penalty * np.eye(statistics.dim)
        largest = float(np.einsum("tii->ti", shifted).max())
        if penalty > PIVOT_TOLERANCE * statistics.dim * largest:
            solved = np.linalg.solve(shifted, statistics.moment[:, :, None])[:, :, 0]
            theta = np.asarray(solved, dtype=np.float64)
        else:
            theta = solve_symmetric(shifted, statistics.moment)
        if penalty == 0:
            return Estimate(theta)
        penalties = np.full(statistics.n_tasks, float(penalty))
        return Estimate(theta, find_root=partial(ridge_root, statistics, theta, penalties))


def ridge_root(
    statistics: GramStatistics, theta: Array, penalties: Array, eigen: tuple[Array, Array] | None = None
) -> Array:
    """Return roots (T, d, d) of V_t = s2_t (G_t + lambda_t I)^-1, with s2_t from the task's own misfit.

    A task without data has the identity. `eigen` is the decomposition of the G_t, if it is known.
    """
    values, vectors = np.linalg.eigh(statistics.gram) if eigen is None else eigen
    misfit = statistics.square - np.vecdot(statistics.moment, theta)
    noise = np.where(
        statistics.count > 0, noise_variance(misfit, statistics.square, statistics.count), penalties
    )
    shrunk = noise[:, None] / (np.maximum(values, 0.0) + penalties[:, None])
    return np.asarray(vectors * np.sqrt(shrunk)[:, None, :])


def likeliest_penalty(values: Array, rotated: Array, statistics: GramStatistics) -> Array:
    """Return each task's penalty of largest likelihood, from the eigenvalues of G and U'b.

    Where penalties are equally likely, as they all are after a single round, the largest is taken.
    """
    count = statistics.count
    mean_eigenvalue = np.divide(values.mean(axis=1), count, out=np.ones_like(count), where=count > 0)
    penalties = np.outer(mean_eigenvalue, PENALTY_GRID)[:, None, :]
    penalties[penalties == 0] = 1.0
    explained = (rotated[..., None] ** 2 / (values[..., None] + penalties)).sum(axis=1)
    residual = np.maximum(statistics.square[:, None] - explained, np.finfo(float).tiny)
    deviance = count[:, None] * np.log(residual) + np.log1p(values[..., None] / penalties).sum(axis=1)
    lowest = deviance.min(axis=1, keepdims=True)
    tied = deviance <= lowest + 1e-9 * (1 + np.abs(lowest))
    best = tied.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)
    return np.take_along_axis(penalties[:, 0], best[:, None], axis=1)[:, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class OracleBasis:
    """Ridge regression inside a basis that is given: what a learner could do if it knew B.

    Parameters
    ----------
    basis : (d, k)
        Orthonormal columns.
    penalty : float or "evidence"
        As in `Ridge`, for the k weights of each task.

    Examples
    --------
    >>> x, y = np.array([[[1.0, 5.0]], [[1.0, 7.0]]]), np.array([[2.0], [4.0]])
    >>> OracleBasis(basis=np.array([[1.0], [0.0]]), penalty=0).fit(GramStatistics.of(x, y)).theta
    array([[3., 0.]])
    """

    basis: Array
    penalty: float | str = "evidence"

    def __post_init__(self) -> None:
        basis = check_array("`basis` of OracleBasis", self.basis, ("d", "k"))
        gap = np.abs(basis.T @ basis - np.eye(basis.shape[1])).max()
        if gap > 1e-8:
            raise ValueError(
                f"`basis` of OracleBasis must have orthonormal columns. Got B'B - I of {gap:.3g}."
            )
        object.__setattr__(self, "basis", basis)
        Ridge(penalty=self.penalty)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate the weights of every task, and theta = B w from them."""
        B = self.basis
        if len(B) != statistics.dim:
            raise ValueError(f"`basis` of OracleBasis must have dim={statistics.dim} rows. Got {len(B)}.")
        inside = GramStatistics(
            B.T @ statistics.gram @ B, statistics.moment @ B, statistics.square, statistics.count
        )
        found = Ridge(penalty=self.penalty).fit(inside)
        find_root = (lambda: B @ found.root) if self.gives_covariance else None
        return Estimate(found.theta @ B.T, basis=B, weights=found.theta, find_root=find_root)

    @property
    def gives_covariance(self) -> bool:
        """Whether estimates have a covariance; see `Ridge`."""
        return Ridge(penalty=self.penalty).gives_covariance
