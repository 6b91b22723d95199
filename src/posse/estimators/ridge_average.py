"""How far a ridge estimate may be from the truth, averaged over all penalties and noises that are likely."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from posse.core.statistics import GramStatistics
from posse.estimators.ridge_evidence import PENALTY_GRID
from posse.numerics.checks import Array
from posse.numerics.linalg import chunks, regular_root, triangular_root

# Student's t is replaced by the Gaussian whose central interval of this probability is as wide.
CENTRAL = 0.9
# What is left of the rewards is at least this share of them: less is rounding.
LEAST_LEFT = 1e-14


def averaged_roots(statistics: GramStatistics, theta: Array) -> Array:
    """Return roots (T, d, d) of E[(theta_t - its estimate)(theta_t - its estimate)'] / y_t'y_t, given y_t.

    Before the data the noise variance is anything, p(s2) = 1/s2, and log lambda has Cauchy's distribution
    around the penalty under which signal and noise are equally strong in a row of the mean length. Given
    lambda, theta_t is then Student's t of n degrees around m = (G + lambda I)^-1 b, of the squared scale
    r/n (G + lambda I)^-1 with r = y'y - b'm, and lambda has the weight

        p(lambda) r^(-n/2) det(I + G / lambda)^(-1/2).

    Moments are averaged over the grid of penalties that `Ridge` learns from. A Student's t counts with the
    variance of the Gaussian that has the same interval of 90 %, which is known from the first reward on.

    Parameters
    ----------
    statistics : GramStatistics
        Of T tasks. One without rewards is treated as if it had one, of no size.
    theta : (T, d)
        The estimates.

    Examples
    --------
    >>> x, y = np.array([[[1.0]], [[1.0]], [[1.0]]]), np.array([[2.0], [4.0], [3.0]])
    >>> averaged_roots(GramStatistics.of(x, y), np.array([[2.7]])).round(2)
    array([[[0.24]]])
    """
    roots = np.empty_like(statistics.gram)
    for some in chunks(len(theta), statistics.dim):
        part = GramStatistics(*(values[some] for values in _sums(statistics)))
        roots[some] = _roots(part, theta[some])
    return roots


def _sums(statistics: GramStatistics) -> tuple[Array, Array, Array, Array]:
    return statistics.gram, statistics.moment, statistics.square, statistics.count


def _roots(statistics: GramStatistics, theta: Array) -> Array:
    """Work along the eigenvectors of G_t, in units of y'y and of the mean eigenvalue of one row's x x'."""
    dim, count = statistics.dim, np.maximum(statistics.count, 1.0)
    size = np.sqrt(np.einsum("tii->t", statistics.gram) / dim / count)
    size = np.where(size > 0.0, size, 1.0)[:, None]
    square = np.sqrt(np.where(statistics.square > 0.0, statistics.square, 1.0))[:, None]
    values, vectors = np.linalg.eigh(statistics.gram / size[:, :, None] / size[:, :, None])
    shifted = np.maximum(values, 0.0)[:, :, None] + PENALTY_GRID
    moment = np.vecmat(statistics.moment / size / square, vectors)[:, :, None]
    means = moment / shifted
    left = np.maximum(1.0 - np.sum(moment * means, axis=1), LEAST_LEFT)
    log_weights = -0.5 * (count[:, None] * np.log(left) + np.log(shifted / PENALTY_GRID).sum(axis=1))
    log_weights -= np.log1p(np.log(PENALTY_GRID / dim) ** 2)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    wider = (stdtrit(count, 0.5 + 0.5 * CENTRAL) / stdtrit(np.inf, 0.5 + 0.5 * CENTRAL)) ** 2
    within = np.matvec(1.0 / shifted, weights * left * (wider / count)[:, None])
    away = means - np.vecmat(theta * size / square, vectors)[:, :, None]
    between = vectors @ (away * np.sqrt(weights)[:, None])
    own = vectors * np.sqrt(within)[:, None]
    roots = regular_root(own @ own.mT + between @ between.mT)
    if roots is None:
        roots = triangular_root(np.concatenate([own, between], axis=2))
    return np.asarray(roots / size[:, :, None])
