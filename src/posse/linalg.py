"""Batched symmetric solves, subspaces and their changes of coordinates."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from posse.kernels import reflect, solve_lower
from posse.validation import Array

# Eigenvalues below this share of the largest are rounding, not signal, in double precision.
RANK_TOLERANCE = 1e-12
# Pivots below this share of the largest diagonal entry are rounding.
PIVOT_TOLERANCE = 1e-11
# With all pivots above this share of the largest diagonal entry a matrix is inverted as it stands.
REGULAR = 1e-9
# Matrices up to this size are inverted together, if there are so many.
LARGEST_SMALL, MANY_SMALL = 12, 40


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


def haar_basis(dim: int, rank: int, rng: np.random.Generator) -> Array:
    """Draw `rank` orthonormal columns in R^dim, uniform under the Haar measure."""
    q, r = np.linalg.qr(rng.standard_normal((dim, rank)))
    return np.asarray(q * np.sign(np.diag(r)))


def random_matrices(eigenvalues: Array, rng: np.random.Generator) -> Array:
    """Draw symmetric matrices (T, d, d) with given eigenvalues (T, d) and Haar eigenvectors."""
    dim = eigenvalues.shape[1]
    vectors = np.stack([haar_basis(dim, dim, rng) for _ in eigenvalues])
    return np.asarray((vectors * eigenvalues[:, None, :]) @ vectors.mT)


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


def semi_inverse(matrices: Array) -> Array:
    """Invert a stack of small positive semi-definite matrices by the sweep operator.

    A pivot that is zero to rounding leaves a zero row and column: a generalised inverse. For k x k
    matrices it takes k passes over the stack, which is faster than a LAPACK call for each.

    Examples
    --------
    >>> semi_inverse(np.array([[[2.0, 0.0], [0.0, 0.0]]]))
    array([[[0.5, 0. ],
            [0. , 0. ]]])
    """
    swept = matrices.copy()
    floor = PIVOT_TOLERANCE * np.einsum("...ii->...i", matrices).max(axis=-1, initial=0.0)
    for j in range(matrices.shape[-1]):
        pivot = swept[..., j, j]
        regular = pivot > floor
        reciprocal = np.where(regular, 1.0 / np.where(regular, pivot, 1.0), 0.0)
        column = swept[..., j].copy()
        scaled = column * reciprocal[..., None]
        swept -= column[..., None] * scaled[..., None, :]
        swept[..., j] = swept[..., j, :] = scaled
        swept[..., j, j] = -reciprocal
    return np.asarray(0.0 - swept)


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


def semi_root(name: str, matrix: Array) -> Array:
    """Return L (d, r) with L L' equal to a positive semi-definite matrix of rank r, or say why it is none.

    Examples
    --------
    >>> semi_root("`covariance`", np.diag([0.0, 4.0])) ** 2
    array([[0.],
           [4.]])
    """
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > 1e-8 * np.abs(matrix).max():
        raise ValueError(f"{name} must be symmetric. Got entries that differ by {asymmetry:.3g}.")
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-8 * abs(values[-1]):
        raise ValueError(f"{name} must have no negative eigenvalue. Got {values[0]:.3g}.")
    kept = values > RANK_TOLERANCE * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


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


def largest_sine(basis: Array, estimate: Array) -> float:
    """Return the sine of the largest angle between the spans of two matrices with orthonormal columns.

    Examples
    --------
    >>> largest_sine(np.eye(3)[:, :1], np.eye(3)[:, 1:2])
    1.0
    """
    missed = estimate - basis @ (basis.T @ estimate)
    return float(np.linalg.norm(missed, ord=2))
