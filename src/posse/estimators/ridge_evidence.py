"""Which ridge penalty makes a task's rewards most likely, for many penalties at once."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array
from posse.numerics.compiled import compiled

# Candidates for the learned penalty, as multiples of the mean eigenvalue of one round's x x'.
PENALTY_GRID = np.logspace(-3, 5, 33)
# The penalty of a task without data, before features and rewards have a scale.
NO_DATA = 1.0


def likeliest_penalty(statistics: GramStatistics) -> Array:
    """Return each task's penalty of largest likelihood, (T,).

    Where penalties are equally likely, as they all are after a single round, the largest is taken; without
    any data it is 1.
    """
    count = statistics.count
    trace = np.einsum("tii->t", statistics.gram)
    mean_eigenvalue = np.divide(trace / statistics.dim, count, out=np.ones_like(count), where=count > 0)
    penalties = np.outer(mean_eigenvalue, PENALTY_GRID)
    penalties[penalties == 0] = 1.0
    diagonal, beside, rotated = tridiagonal(statistics.gram, statistics.moment)
    explained, log_determinant = np.empty_like(penalties), np.empty_like(penalties)
    tridiagonal_deviance(diagonal, beside, rotated, penalties, explained, log_determinant)
    residual = np.maximum(statistics.square[:, None] - explained, np.finfo(float).tiny)
    deviance = count[:, None] * np.log(residual) + log_determinant
    lowest = deviance.min(axis=1, keepdims=True)
    tied = deviance <= lowest + 1e-9 * (1 + np.abs(lowest))
    best = tied.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)
    found = np.take_along_axis(penalties, best[:, None], axis=1)[:, 0]
    return np.where(count > 0, found, NO_DATA)


def tridiagonal(matrices: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """Rotate symmetric matrices (T, d, d) until they are tridiagonal, and vectors (T, d) along with them.

    A third of the work of finding eigenvectors, and as good where only solutions of shifted systems count.

    Returns
    -------
    diagonal : (T, d)
    beside : (T, d - 1)
    rotated : (T, d)

    Examples
    --------
    >>> tridiagonal(np.diag([1.0, 2.0])[None], np.array([[3.0, 4.0]]))
    (array([[1., 2.]]), array([[0.]]), array([[3., 4.]]))
    """
    n_tasks, dim = vectors.shape
    diagonal, beside, rotated = np.empty((n_tasks, dim)), np.empty((n_tasks, dim - 1)), vectors.copy()
    if dim == 1:
        return matrices[:, 0], beside, rotated
    lwork = int(scipy.linalg.lapack.dsytrd_lwork(dim, lower=1)[0])
    for task in range(n_tasks):
        reflectors, diagonal[task], beside[task], scales, _ = scipy.linalg.lapack.dsytrd(
            matrices[task].T, lower=1, lwork=lwork
        )
        reflect(reflectors, scales, rotated[task])
    return diagonal, beside, rotated


@compiled
def reflect(reflectors: Array, scales: Array, vector: Array) -> None:
    """Replace b (d,) by Q'b, where Q is given by reflectors (d, d) as LAPACK's sytrd leaves them."""
    dim = vector.size
    for k in range(dim - 1):
        total = vector[k + 1]
        for i in range(k + 2, dim):
            total += reflectors[i, k] * vector[i]
        total *= scales[k]
        vector[k + 1] -= total
        for i in range(k + 2, dim):
            vector[i] -= total * reflectors[i, k]


@compiled
def tridiagonal_deviance(
    diagonal: Array, beside: Array, rotated: Array, penalties: Array, explained: Array, log_determinant: Array
) -> None:
    """Fill b'(A_t + l I)^-1 b and log det(I + A_t / l), (T, m) each, for tridiagonal A_t and m penalties l.

    Parameters
    ----------
    diagonal : (T, d)
    beside : (T, d - 1)
    rotated : (T, d)
        b_t.
    penalties : (T, m)
    explained, log_determinant : (T, m)
    """
    n_tasks, dim = diagonal.shape
    for t in range(n_tasks):
        for m in range(penalties.shape[1]):
            penalty = penalties[t, m]
            pivot, left, total, product, logarithm = 1.0, 0.0, 0.0, 1.0, 0.0
            for i in range(dim):
                ratio = beside[t, i - 1] / pivot if i > 0 else 0.0
                pivot = diagonal[t, i] + penalty - (ratio * beside[t, i - 1] if i > 0 else 0.0)
                left = rotated[t, i] - ratio * left
                total += left * (left / pivot)  # in this order: a square alone may overflow
                product *= pivot / penalty
                if product > 1e100 or product < 1e-100:  # one logarithm for many factors
                    logarithm += np.log(product)
                    product = 1.0
            explained[t, m] = total
            log_determinant[t, m] = logarithm + np.log(product)
