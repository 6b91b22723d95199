"""Loops that NumPy cannot fuse, compiled when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import ParamSpec, TypeVar

import numpy as np

from posse.validation import Array

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], *, any_order: bool = False) -> Callable[P, R]:
    """Compile a function by Numba at its first call; what was compiled is kept on disk for the next process.

    As a plain Python function it is `function.__wrapped__`, for comparison. Sums are taken as written,
    unless they may be taken in any order, which is faster.
    """
    liberties = {"reassoc", "contract"} if any_order else set()

    @cache
    def build() -> Callable[P, R]:
        from numba import njit  # half a second to import, and many programs never need it

        try:
            kernel: Callable[P, R] = njit(nogil=True, cache=True, fastmath=liberties)(function)
        except RuntimeError:  # no folder that can be written to
            kernel = njit(nogil=True, fastmath=liberties)(function)
        return kernel

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        return build()(*arguments, **named)

    return call


def standard_normal(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw what `rng.standard_normal(shape)` draws, the same numbers to the last bit, in half the time.

    Examples
    --------
    >>> first, second = (np.random.default_rng(0) for _ in range(2))
    >>> bool((standard_normal((3, 4), first) == second.standard_normal((3, 4))).all())
    True
    """
    numbers = np.empty(shape)
    fill_normal(numbers.reshape(-1), rng)
    return numbers


@compiled
def fill_normal(numbers: Array, rng: np.random.Generator) -> None:
    """Fill an array (m,) with standard normal numbers."""
    for i in range(numbers.size):
        numbers[i] = rng.standard_normal()


@compiled
def play_coordinates(
    own: Array,
    other: Array,
    noise: Array,
    along: Array,
    across: Array,
    chosen: Array,
    regret: Array,
    products: Array,
) -> None:
    """Choose the arm of the largest along_t own + across_t other; see `posse.exact`.

    Parameters
    ----------
    own, other : (n, T, K)
        Coordinates of the arms on offer; the first is the arm's mean reward.
    noise : (n, T)
    along, across : (T,)
    chosen : (n, T, 2)
        Is filled with the coordinates of the chosen arms; of equal arms the first is chosen.
    regret : (n, T)
        Is filled with the largest `own` on offer less the chosen one.
    products : (T, 3, 3)
        The lower triangle of S'S is added to, where S has the rows (own, other, noise) of what is chosen.
    """
    n_rounds, n_tasks, n_arms = own.shape
    for i in range(n_rounds):
        for t in range(n_tasks):
            x, z, e = own[i, t, 0], other[i, t, 0], noise[i, t]
            most, top = x, along[t] * x + across[t] * z
            for j in range(1, n_arms):
                u, v = own[i, t, j], other[i, t, j]
                score = along[t] * u + across[t] * v
                better = score > top  # selections, not branches: nobody can predict which arm is best
                top = score if better else top
                x = u if better else x
                z = v if better else z
                most = u if u > most else most
            chosen[i, t, 0] = x
            chosen[i, t, 1] = z
            regret[i, t] = most - x
            products[t, 0, 0] += x * x
            products[t, 1, 0] += z * x
            products[t, 1, 1] += z * z
            products[t, 2, 0] += e * x
            products[t, 2, 1] += e * z
            products[t, 2, 2] += e * e


@partial(compiled, any_order=True)
def inner_products(arms: Array, theta: Array, scores: Array) -> None:
    """Fill `scores` (n, T, K) with <x, theta_t> of arms (n, T, K, d), for theta (n, T, d) or (1, T, d)."""
    n_rounds, n_tasks, n_arms, dim = arms.shape
    same = len(theta) == 1
    for i in range(n_rounds):
        row = 0 if same else i
        for t in range(n_tasks):
            for j in range(n_arms):
                total = 0.0
                for m in range(dim):
                    total += arms[i, t, j, m] * theta[row, t, m]
                scores[i, t, j] = total


@compiled
def add_outer_products(gram: Array, rows: Array, total: Array) -> None:
    """Fill `total` (T, d, d) with `gram` and the sum of x x' over the rows (n, T, d)."""
    n_rounds, n_tasks, dim = rows.shape
    for t in range(n_tasks):
        for i in range(dim):
            for j in range(dim):
                total[t, i, j] = gram[t, i, j] + rows[0, t, i] * rows[0, t, j]
            for n in range(1, n_rounds):
                for j in range(dim):
                    total[t, i, j] += rows[n, t, i] * rows[n, t, j]


@compiled
def update_inverses(inverse: Array, rows: Array, moment: Array, updated: Array, solution: Array) -> None:
    """Solve (A_t + X_t'X_t) x = b_t, given the inverses (T, d, d) of A_t and the rows (n, T, d) of X_t.

    `updated` is filled with the new inverses, one rank-one update after the other by the formula of Sherman
    and Morrison, and `solution` (T, d) with what they make of `moment` (T, d).
    """
    n_rounds, n_tasks, dim = rows.shape
    product = np.empty(dim)
    for t in range(n_tasks):
        for i in range(dim):
            for j in range(dim):
                updated[t, i, j] = inverse[t, i, j]
        for n in range(n_rounds):
            scale = 1.0
            for i in range(dim):
                product[i] = 0.0
            for i in range(dim):
                x = rows[n, t, i]
                for j in range(dim):  # rows serve as columns: the matrix is symmetric
                    product[j] += x * updated[t, i, j]
            for i in range(dim):
                scale += rows[n, t, i] * product[i]
            for i in range(dim):
                share = product[i] / scale
                for j in range(dim):
                    updated[t, i, j] -= share * product[j]
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += updated[t, i, j] * moment[t, j]
            solution[t, i] = total


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
