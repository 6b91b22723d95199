"""Coordinates and factors in which low-rank least squares is well scaled and cheap to multiply with."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from posse.numerics.checks import Array
from posse.numerics.linalg import RANK_TOLERANCE


def graded_qr(matrix: Array) -> tuple[Array, Array]:
    """Return Q and R' P of a QR that is accurate row by row, however the rows are scaled.

    Rows are sorted by size and columns pivoted (Cox and Higham, 1998), and both are put back.
    """
    order = np.argsort(-np.abs(matrix).max(axis=1, initial=0.0), kind="stable")
    factor, upper, columns = scipy.linalg.qr(matrix[order], mode="economic", pivoting=True)
    basis, mixing = np.empty_like(factor), np.empty_like(upper)
    basis[order], mixing[:, columns] = factor, upper
    return basis, mixing


def whitener(gram: Array) -> tuple[Array, Array]:
    """Return coordinates in which a semi-definite matrix G (d, d) is the identity.

    Returns
    -------
    transform : (d, r)
        A, whose columns span the range of G, with A'G A = I.
    completed : (d, d)
        G with its null space filled in, positive definite: solving with it is solving on the range.

    Examples
    --------
    >>> transform, completed = whitener(np.diag([4.0, 0.0]))
    >>> transform**2
    array([[0.25],
           [0.  ]])
    >>> completed
    array([[4., 0.],
           [0., 1.]])
    """
    diagonal = np.diag(gram)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(gram / scale / scale[:, None])
    kept = values > RANK_TOLERANCE * values[-1]
    transform = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    if not kept.all():
        null = graded_qr(vectors[:, ~kept] / scale[:, None])[0]
        transform -= null @ (null.T @ transform)
    filled = np.where(kept, values, 1.0)
    completed = (vectors * filled) @ vectors.T * scale * scale[:, None]
    return np.asarray(transform), np.asarray(completed)


def low_rank_factors(matrices: Array) -> Array | None:
    """Return L_t (T, d, m) with L_t L_t' = G_t, if that makes products with the G_t cheaper; else None.

    Pivoted Cholesky factors of positive semi-definite matrices, padded with zeros to the largest rank m.

    Examples
    --------
    >>> low_rank_factors(np.ones((1, 4, 4)))[0].ravel()
    array([1., 1., 1., 1.])
    >>> low_rank_factors(np.eye(4)[None]) is None
    True
    """
    dim = matrices.shape[1]
    factors = np.zeros((len(matrices), dim, dim // 2))
    largest = 0
    for matrix, factor in zip(matrices, factors, strict=True):
        tol = RANK_TOLERANCE * matrix.diagonal().max()
        lower, order, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1, tol=tol)
        if 2 * rank > dim:
            return None
        factor[order - 1, :rank] = np.tril(lower)[:, :rank]
        largest = max(largest, rank)
    return np.ascontiguousarray(factors[:, :, :largest])


def packed_triangles(matrices: Array) -> NDArray[np.float32]:
    """Return the lower triangles of symmetric matrices (T, d, d), row by row, in single precision."""
    entries = np.flatnonzero(np.tri(matrices.shape[1], dtype=np.bool_))
    return np.stack([matrix.ravel()[entries].astype(np.float32) for matrix in matrices])


def packed_product(triangles: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return v'G_t for a stack of rows v (T, s, d): half the reading of a product with all of G_t.

    Examples
    --------
    >>> triangles = packed_triangles(np.array([[[1.0, 2.0], [2.0, 5.0]]]))
    >>> packed_product(triangles, np.eye(2, dtype=np.float32)[None])
    array([[[1., 2.],
            [2., 5.]]], dtype=float32)
    """
    product = np.empty_like(rows)
    for triangle, vectors, results in zip(triangles, rows, product, strict=True):
        for i, vector in enumerate(vectors):
            results[i] = scipy.linalg.blas.sspmv(len(vector), 1.0, triangle, vector)
    return product
