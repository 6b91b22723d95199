"""Least squares over subspaces: trust-region Newton, from many starts at once.

The problem is to minimise, over a basis B (d x k) and weights w_t,

    f(B, W) = sum_t [w_t'B'G_t B w_t - 2 b_t'B w_t] + total.                          (1)

The weights are eliminated: w_t = M_t^-1 B'b_t with M_t = B'G_t B. What is left depends on the span
of B alone. With r_t = b_t - G_t B w_t, half its gradient and half its Hessian are

    gradient = -sum_t r_t w_t',                                                       (2)
    Hessian[V] = sum_t G_t (V w_t - B u_t) w_t' + r_t u_t',                           (3)
    u_t = M_t^-1 (B'G_t V w_t - V'r_t).

With a penalty, G_t + penalty I takes the place of G_t. The basis moves in whitened coordinates:
B = A C with A'(mean of G_t)A = I and C orthonormal (r x k), directions orthogonal to C. Only such small
matrices are mapped, the G_t stay as they are.

Every array of `Points` has a leading axis of starts, which all move together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.estimators.low_rank.coordinates import packed_product
from posse.numerics.checks import Array, BoolArray
from posse.numerics.linalg import PIVOT_TOLERANCE

_ROUNDING = 1e-14  # changes of the objective, relative to its total, that are noise
_METRIC_FLOOR = 1e-11  # keeps W'W invertible, relative to its trace
_MAX_CG = 200
_ROUGH_FORCING = 100.0  # times the gradient norm: how exactly a step is solved for with rough products


@dataclass(frozen=True, eq=False)
class SubspaceProblem:
    """Statistics of T tasks, and coordinates in which their mean Gram matrix is the identity.

    Attributes
    ----------
    gram : (T, d, d)
    moment : (T, d)
    total : float
        The sum of all squared rewards, which is f at W = 0.
    transform : (d, r)
        A, which maps whitened coordinates to the features'.
    penalty : float
        Added to every eigenvalue of every G_t.
    factor : (T, d, m), optional
        L_t with L_t L_t' = G_t, where m is so much smaller than d that products are faster with it.
    rough : (T, d (d + 1) / 2) or (T, d, m), optional
        The triangles of the G_t, or the L_t if they are given, in single precision: faster to read, and
        good enough for the Hessian, whose errors cost a step and not an answer.
    """

    gram: Array
    moment: Array
    total: float
    transform: Array
    penalty: float = 0.0
    factor: Array | None = None
    rough: NDArray[np.float32] | None = None

    def times_gram(self, rows: Array) -> Array:
        """Return v'(G_t + penalty I) for a stack of rows v, (T, s, d)."""
        product = rows @ self.gram if self.factor is None else _factored_product(self.factor, rows)
        return np.asarray(product + self.penalty * rows if self.penalty > 0.0 else product)

    def times_gram_roughly(self, rows: Array) -> Array:
        """Return v'(G_t + penalty I) for rows v, (T, s, d), in single precision if there is a `rough`."""
        if self.rough is None:
            return self.times_gram(rows)
        size = np.abs(rows).max() or 1.0
        scaled = (rows / size).astype(np.float32)
        through = packed_product if self.factor is None else _factored_product
        return np.asarray(size * through(self.rough, scaled) + self.penalty * rows)

    @cached_property
    def rough_transform(self) -> NDArray[Any]:
        """A, in single precision where the Gram matrices are."""
        return self.transform if self.rough is None else self.transform.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Points:
    """The eliminated problem at S bases: see (2) and (3).

    `coordinates` (S, r, k) and `gradient` are whitened, `basis` (S, d, k) and `residual` are not.
    """

    coordinates: Array
    basis: Array
    gram_basis: Array
    inverse: Array
    weights: Array
    residual: Array
    objective: Array
    gradient: Array
    metric_inverse: Array
    gradient_norm: Array

    def select(self, rows: BoolArray) -> Points:
        """Return the points in `rows`, a mask of the starts."""
        return Points(*(getattr(self, field.name)[rows] for field in fields(self)))

    def where(self, rows: BoolArray, other: Points) -> Points:
        """Return these points in `rows`, those of `other` elsewhere."""
        if rows.all():
            return self
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Points(*(np.where(rows.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a descent ended; `coordinates` (r, k) are whitened."""

    coordinates: Array
    objective: float
    gradient_norm: float
    n_iter: int
    converged: bool


def descend(problem: SubspaceProblem, starts: Array, tol: float, max_iter: int) -> list[Minimum]:
    """Minimise from all starts (S, r, k) at once; return where each ended.

    A descent has converged when its gradient norm is at most `tol`, or when no decrease above
    rounding is left to be had.
    """
    points = evaluate(problem, orthonormal(starts))
    radius = 0.5 * np.linalg.norm(points.weights, axis=(1, 2))
    index, stalled = np.arange(len(starts)), np.zeros(len(starts), dtype=np.bool_)
    noise = _ROUNDING * problem.total
    # rough products are many, and with them there is no quadratic convergence to be had
    exact = problem.rough is None
    forcing, enough = (1.0, 0.0) if exact else (_ROUGH_FORCING, (0.3 * tol) ** 2 * problem.total)
    ends: dict[int, Minimum] = {}
    for iteration in range(max_iter + 1):
        settled = stalled | (points.gradient_norm <= tol)
        done = settled | (iteration == max_iter)
        for row in np.flatnonzero(done):
            coordinates = points.coordinates[row] @ principal_directions(points.weights[row])
            values = float(points.objective[row]), float(points.gradient_norm[row])
            ends[int(index[row])] = Minimum(coordinates, *values, iteration, bool(settled[row]))
        if done.all():
            break
        if done.any():
            index, radius, points = index[~done], radius[~done], points.select(~done)
        share = np.minimum(0.1, forcing * points.gradient_norm)
        step, decrease, length = model_step(problem, points, radius, share, enough)
        trial = evaluate(problem, orthonormal(points.coordinates + step))
        ratio = (points.objective - trial.objective + noise) / (decrease + noise)
        accepted = ratio > 1e-4
        stalled = ~accepted & (decrease < noise)
        growing = (ratio > 0.75) & (length > 0.8 * radius**2)
        radius = np.where(growing, 2.0 * radius, radius)
        radius = np.where(ratio < 0.25, 0.25 * np.sqrt(length), radius)
        points = trial.where(accepted, points)
    return [ends[row] for row in range(len(starts))]


def evaluate(problem: SubspaceProblem, coordinates: Array) -> Points:
    """Eliminate the weights at bases given by orthonormal whitened coordinates (S, r, k).

    The gradient norm is sqrt(tr(g (W'W)^-1 g') / total), g as in (2): neither an invertible linear
    map of the features nor a scaling of the rewards changes it.
    """
    basis = problem.transform @ coordinates
    gram_basis = problem.times_gram(basis.mT[:, None])
    inverse = semi_inverse(gram_basis @ basis[:, None])
    moment = problem.moment @ basis
    weights = apply(inverse, moment)
    residual = problem.moment - (weights[:, :, None] @ gram_basis)[:, :, 0]
    gradient = _tangent(coordinates, problem.transform.T @ (-residual.mT @ weights))
    metric = weights.mT @ weights
    size = np.trace(metric, axis1=1, axis2=2)
    floor = np.where(size > 0.0, _METRIC_FLOOR * size, 1.0)
    metric_inverse = np.asarray(
        np.linalg.inv(metric + floor[:, None, None] * np.eye(basis.shape[2])), dtype=np.float64
    )
    slope = np.maximum(_dot(gradient, gradient @ metric_inverse), 0.0)
    gradient_norm = np.sqrt(slope / (problem.total or 1.0))
    objective = problem.total - _dot(weights, moment)
    solved = (coordinates, basis, gram_basis, inverse, weights, residual)
    return Points(*solved, objective, gradient, metric_inverse, gradient_norm)


def hessian_product(problem: SubspaceProblem, points: Points, direction: Array) -> Array:
    """Return equation (3) for whitened directions (S, r, k), in whitened coordinates too."""
    moved = _map(problem.rough_transform, direction)
    shift = points.weights @ moved.mT
    change = apply(points.gram_basis, shift) - points.residual @ moved
    change = apply(points.inverse, change)
    shift -= change @ points.basis.mT
    curved = problem.times_gram_roughly(shift.swapaxes(0, 1)).swapaxes(0, 1)
    product = curved.mT @ points.weights + points.residual.mT @ change
    return _tangent(points.coordinates, _map(problem.rough_transform.T, product))


def model_step(
    problem: SubspaceProblem, points: Points, radius: Array, share: Array, enough: float
) -> tuple[Array, Array, Array]:
    """Minimise the quadratic model by Steihaug's truncated conjugate gradients in the metric W'W.

    They stop when the square of the residual is down to `share` of what it was, or to `enough`.

    Returns
    -------
    step : (S, r, k)
    decrease : (S,)
        Of the model.
    length : (S,)
        Of the step, squared.
    """
    step = np.zeros_like(points.gradient)
    decrease, length, overlap = np.zeros((3, len(step)))
    residual = -points.gradient
    search = residual @ points.metric_inverse
    power = search_length = _dot(residual, search)
    target = np.maximum(share * power, enough)
    running = power > 0.0
    for _ in range(_MAX_CG):
        product = hessian_product(problem, points, search)
        curvature = _dot(search, product)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = power / curvature
            room = np.sqrt(overlap**2 + search_length * np.maximum(radius**2 - length, 0.0))
            edge = (room - overlap) / search_length
        leaving = ~((curvature > 0.0) & (newton < edge))
        stride = np.where(running, np.where(leaving, edge, newton), 0.0)
        decrease += stride * (2.0 * power - stride * curvature)
        length += stride * (2.0 * overlap + stride * search_length)
        step += stride[:, None, None] * search
        residual = residual - stride[:, None, None] * product
        scaled = residual @ points.metric_inverse
        previous, power = power, _dot(residual, scaled)
        running &= ~leaving & (power > target)
        if not running.any():
            break
        ratio = np.where(running, power / np.where(running, previous, 1.0), 0.0)
        overlap = ratio * (overlap + stride * search_length)
        search = scaled + ratio[:, None, None] * search
        search_length = power + ratio**2 * search_length
    return step, decrease, length


def principal_directions(rows: Array) -> Array:
    """Return right singular vectors, as columns, with signs that follow the rows."""
    left, _, right = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(right.T * np.where((left**3).sum(axis=0) < 0.0, -1.0, 1.0))


def orthonormal(stack: Array) -> Array:
    """Return orthonormal bases of the columns of a stack of matrices."""
    return np.linalg.qr(stack)[0]


def apply(matrices: Array, vectors: Array) -> Array:
    """Multiply a stack of small matrices with a stack of vectors, faster than `np.matvec` does."""
    return np.asarray(np.einsum("...ij,...j->...i", matrices, vectors))


def _factored_product(factor: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(rows @ factor @ factor.mT)


def _map(matrix: NDArray[Any], stack: Array) -> Array:
    """Multiply in the precision of `matrix`, however large or small the stack is."""
    if matrix.dtype == stack.dtype:
        return np.asarray(matrix @ stack)
    size = np.abs(stack).max() or 1.0
    return np.asarray(size * (matrix @ (stack / size).astype(matrix.dtype)))


def _tangent(coordinates: Array, stack: Array) -> Array:
    return np.asarray(stack - coordinates @ (coordinates.mT @ stack))


def _dot(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("sik,sik->s", left, right))


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
