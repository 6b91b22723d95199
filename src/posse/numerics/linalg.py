"""Batched symmetric solves, subspaces and their changes of coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from posse.numerics.checks import Array
from posse.numerics.compiled import compiled

# Eigenvalues below this share of the largest are rounding, not signal, in double precision.
RANK_TOLERANCE = 1e-12
# Pivots below this share of the largest diagonal entry are rounding.
PIVOT_TOLERANCE = 1e-11
# From about this many features on a matrix is large: a step of a solver takes long, and a chunk is one task.
WIDE = 256
# Matrices of tasks are worked on together as long as they fit into a processor's cache, in bytes.
CHUNK_BYTES = 4 * 2**20
# With all pivots above this share of the largest diagonal entry a matrix is inverted as it stands.
REGULAR = 1e-9
# Matrices up to this size are inverted together, if there are so many.
LARGEST_SMALL, MANY_SMALL = 12, 40


def chunks(n_tasks: int, dim: int) -> Iterator[slice]:
    """Return the tasks in slices whose d x d matrices fit into a processor's cache together.

    Examples
    --------
    >>> list(chunks(10, 362))
    [slice(0, 4, None), slice(4, 8, None), slice(8, 12, None)]
    """
    size = max(1, CHUNK_BYTES // (8 * dim**2))
    return (slice(first, first + size) for first in range(0, n_tasks, size))


def solve_symmetric(matrix: Array, vector: Array) -> Array:
    """Return the minimum-norm x with `matrix @ x = vector`, for a stack of positive semi-definite matrices.

    Parameters
    ----------
    matrix : (..., d, d)
    vector : (..., d)

    Examples
    --------
    >>> solve_symmetric(np.diag([2.0, 0.0]), np.array([4.0, 0.0]))
    array([2., 0.])
    """
    if matrix.ndim == 3:
        lower = regular_root(matrix)
        if lower is not None:
            solution = np.empty_like(vector)
            solve_lower(lower, vector, solution)
            return solution
    values, vectors = np.linalg.eigh(matrix)
    floor = RANK_TOLERANCE * np.maximum(values[..., -1:], 0.0)
    kept = values > floor
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    rotated = np.einsum("...ij,...i->...j", vectors, vector)
    return np.asarray(np.einsum("...ij,...j->...i", vectors, inverse * rotated))


def regular_root(matrices: Array) -> Array | None:
    """Return Cholesky factors (T, d, d) if all matrices are far from singular, else None.

    Examples
    --------
    >>> regular_root(np.diag([4.0, 9.0])[None])
    array([[[2., 0.],
            [0., 3.]]])
    >>> regular_root(np.ones((1, 2, 2))) is None
    True
    """
    try:
        lower: Array = np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    pivots = np.einsum("tii->ti", lower) ** 2
    largest = np.einsum("tii->ti", matrices).max(axis=1, keepdims=True)
    return lower if (pivots > REGULAR * largest).all() else None


def inverse_root(matrices: Array) -> Array:
    """Return upper triangular roots R (n, d, d) with R R' = A^-1, of positive definite matrices A (n, d, d).

    Examples
    --------
    >>> inverse_root(np.array([[[4.0, 0.0], [0.0, 0.25]]])) ** 2
    array([[[0.25, 0.  ],
            [0.  , 4.  ]]])
    """
    roots = np.linalg.cholesky(matrices)
    for root in roots:
        # column by column the lower triangle is LAPACK's upper one
        root[...] = scipy.linalg.lapack.dtrtri(root.T)[0]
    return np.asarray(roots)


def identity_plus_root(matrices: Array) -> Array:
    """Return roots R (n, d, d) with R R' = (I + A)^-1, of positive semi-definite matrices A (n, d, d).

    Where A is so large that I is lost in rounding, they come from eigenvalues.

    Examples
    --------
    >>> identity_plus_root(np.array([[[3.0, 0.0], [0.0, 8.0]]])) ** 2
    array([[[0.25      , 0.        ],
            [0.        , 0.11111111]]])
    """
    try:
        return inverse_root(matrices + np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrices)
        return np.asarray(vectors / np.sqrt(1.0 + np.maximum(values, 0.0))[..., None, :])


def triangular_root(root: Array) -> Array:
    """Return lower triangular roots (..., d, d) of root root', for a stack of roots (..., d, m).

    They are Cholesky factors, also where a matrix is singular, and do not depend on which root was given.

    Examples
    --------
    >>> triangular_root(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[5., 0.],
           [0., 0.]])
    """
    dim, width = root.shape[-2:]
    if width == dim and not np.triu(root, 1).any() and (np.einsum("...ii->...i", root) >= 0).all():
        return root
    if width < dim:
        root = np.concatenate([root, np.zeros((*root.shape[:-1], dim - width))], axis=-1)
    upper = np.linalg.qr(root.mT, mode="r")
    signs = np.where(np.einsum("...ii->...i", upper) < 0, -1.0, 1.0)
    return np.asarray((signs[..., None] * upper).mT + 0.0)


def inverse_and_log_determinant(matrices: Array) -> tuple[Array, Array]:
    """Return the inverses (n, k, k) and log determinants (n,) of positive definite matrices (n, k, k).

    For many of small size Gauss-Jordan steps on all at once are faster than a LAPACK call for each.

    Examples
    --------
    >>> inverse, log_determinant = inverse_and_log_determinant(np.array([[[4.0, 0.0], [0.0, 0.5]]]))
    >>> inverse
    array([[[0.25, 0.  ],
            [0.  , 2.  ]]])
    >>> np.exp(log_determinant)
    array([2.])
    """
    rank = matrices.shape[-1]
    if rank > LARGEST_SMALL or len(matrices) < MANY_SMALL:
        return np.asarray(np.linalg.inv(matrices)), np.asarray(np.linalg.slogdet(matrices)[1])
    swept, pivots = matrices.transpose(1, 2, 0).copy(), np.empty((rank, len(matrices)))
    for j in range(rank):
        pivots[j] = swept[j, j]
        row = swept[j] / pivots[j]
        swept -= row[:, None] * swept[j]
        swept[j] = swept[:, j] = row
        swept[j, j] = -1.0 / pivots[j]
    return np.ascontiguousarray(0.0 - swept.transpose(2, 0, 1)), np.log(pivots).sum(axis=0)


@compiled
def solve_lower(lower: Array, vectors: Array, solution: Array) -> None:
    """Fill `solution` (T, d) with those of L_t L_t'x = b_t, for Cholesky factors (T, d, d) and b (T, d)."""
    n_tasks, dim = vectors.shape
    for t in range(n_tasks):
        for i in range(dim):
            total = vectors[t, i]
            for j in range(i):
                total -= lower[t, i, j] * solution[t, j]
            solution[t, i] = total / lower[t, i, i]
        for i in range(dim - 1, -1, -1):
            x = solution[t, i] / lower[t, i, i]
            solution[t, i] = x
            for j in range(i):
                solution[t, j] -= lower[t, i, j] * x
