"""Parameters of tasks: of a shared representation, theta_t = B w_t, nearly so, or of none."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from posse.linalg import haar_basis, unit_vectors
from posse.validation import Array, check_array, check_choice, check_integer

MOST = 10**9  # beyond this no array could be made
STRUCTURES = ("low-rank", "unrelated", "outliers", "approximate", "common-mean")
# every so many tasks one is an outlier
OUTLIER_STEP = 5
# the length of a task's own part beside one of length 1 that it shares
OWN_LENGTH = 0.3


def draw_parameters(
    owner: str,
    structure: str,
    *,
    n_tasks: int,
    dim: int,
    rank: int,
    rng: np.random.Generator,
    basis: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Draw theta (T, d) of a structure, all rows of length 1 unless weights are given.

    Parameters
    ----------
    owner : str
        Named in messages about the other arguments.
    structure : {"low-rank", "unrelated", "outliers", "approximate", "common-mean"}
        Below, B is Haar-distributed, w_t is uniform on the unit sphere of R^k, and u_t and m are uniform
        on the unit sphere of R^d.

        - "low-rank": B w_t.
        - "unrelated": u_t.
        - "outliers": B w_t, but u_t in the tasks 0, 5, 10, ...
        - "approximate": B w_t + 0.3 u_t, scaled to length 1.
        - "common-mean": m + 0.3 u_t, scaled to length 1, with one m for all tasks.
    n_tasks, dim, rank : int
        T, d and k. Where there is no B, in "unrelated" and "common-mean", `rank` is ignored.
    basis, weights : optional
        B (d, k) and W (T, k), if they are not to be drawn; only where there is a B.

    Examples
    --------
    >>> sizes = dict(n_tasks=10, dim=6, rank=2)
    >>> theta = draw_parameters("a test", "outliers", **sizes, rng=np.random.default_rng(0))
    >>> int(np.linalg.matrix_rank(theta)), int(np.linalg.matrix_rank(theta[[1, 2, 3, 4, 6, 7, 8, 9]]))
    (4, 2)
    """
    check_choice(f"`structure` of {owner}", structure, STRUCTURES)
    if structure in ("unrelated", "common-mean"):
        _check_sizes(owner, n_tasks, dim)
        for name, factor in {"basis": basis, "weights": weights}.items():
            if factor is not None:
                raise ValueError(
                    f"`{name}` of {owner} must be None for structure={structure!r}. Got {factor!r}."
                )
        if structure == "unrelated":
            return unit_vectors(n_tasks, dim, rng)
        mean = unit_vectors(1, dim, rng)
        return _rescaled(mean + OWN_LENGTH * unit_vectors(n_tasks, dim, rng))
    factors = {"basis": basis, "weights": weights}
    theta = draw_low_rank(owner, n_tasks=n_tasks, dim=dim, rank=rank, rng=rng, **factors)
    if structure == "outliers":
        theta[::OUTLIER_STEP] = unit_vectors(len(theta[::OUTLIER_STEP]), dim, rng)
    if structure == "approximate":
        theta = _rescaled(theta + OWN_LENGTH * unit_vectors(n_tasks, dim, rng))
    return theta


def draw_low_rank(
    owner: str,
    *,
    n_tasks: int,
    dim: int,
    rank: int,
    rng: np.random.Generator,
    basis: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Draw theta (T, d): B Haar-distributed, w_t uniform on the unit sphere, unless they are given.

    `owner` is named in messages about the other arguments.
    """
    _check_sizes(owner, n_tasks, dim)
    most = f"min(dim={dim}, n_tasks={n_tasks})"
    check_integer(f"`rank` of {owner}", rank, 1, min(dim, n_tasks), high_name=most)
    drawn_basis = haar_basis(dim, rank, rng)
    drawn_weights = unit_vectors(n_tasks, rank, rng)
    B = drawn_basis if basis is None else check_array(f"`basis` of {owner}", basis, (dim, rank))
    W = drawn_weights if weights is None else check_array(f"`weights` of {owner}", weights, (n_tasks, rank))
    return np.asarray(W @ B.T)


def _check_sizes(owner: str, n_tasks: int, dim: int) -> None:
    check_integer(f"`n_tasks` of {owner}", n_tasks, 1, MOST)
    check_integer(f"`dim` of {owner}", dim, 1, MOST)


def _rescaled(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
