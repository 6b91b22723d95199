"""Batched symmetric solves and subspace tools."""

from __future__ import annotations

import numpy as np

from posse.validation import Array

# Eigenvalues below this share of the largest are rounding, not signal, in double precision.
RANK_TOLERANCE = 1e-12


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
    values, vectors = np.linalg.eigh(matrix)
    floor = RANK_TOLERANCE * np.maximum(values[..., -1:], 0.0)
    kept = values > floor
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    rotated = np.einsum("...ij,...i->...j", vectors, vector)
    return np.asarray(np.einsum("...ij,...j->...i", vectors, inverse * rotated))


def haar_basis(dim: int, rank: int, rng: np.random.Generator) -> Array:
    """Draw `rank` orthonormal columns in R^dim, uniform under the Haar measure."""
    q, r = np.linalg.qr(rng.standard_normal((dim, rank)))
    return np.asarray(q * np.sign(np.diag(r)))


def unit_vectors(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Draw `n` vectors uniform on the unit sphere of R^dim, as rows."""
    draws = rng.standard_normal((n, dim))
    return np.asarray(draws / np.linalg.norm(draws, axis=1, keepdims=True))


def span_basis(rows: Array) -> Array:
    """Return orthonormal columns that span the rows of a matrix (T, d), up to rounding.

    Examples
    --------
    >>> span_basis(np.array([[0.0, 3.0], [0.0, 1.0]])).shape
    (2, 1)
    """
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    rank = max(1, int(np.count_nonzero(values > RANK_TOLERANCE * values[0])))
    return np.ascontiguousarray(vectors[:rank].T)
