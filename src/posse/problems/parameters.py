"""Parameters of tasks that share a representation: theta_t = B w_t."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from posse.linalg import haar_basis, unit_vectors
from posse.validation import Array, check_array, check_integer

MOST = 10**9  # beyond this no array could be made


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
    check_integer(f"`n_tasks` of {owner}", n_tasks, 1, MOST)
    check_integer(f"`dim` of {owner}", dim, 1, MOST)
    most = f"min(dim={dim}, n_tasks={n_tasks})"
    check_integer(f"`rank` of {owner}", rank, 1, min(dim, n_tasks), high_name=most)
    drawn_basis = haar_basis(dim, rank, rng)
    drawn_weights = unit_vectors(n_tasks, rank, rng)
    B = drawn_basis if basis is None else check_array(f"`basis` of {owner}", basis, (dim, rank))
    W = drawn_weights if weights is None else check_array(f"`weights` of {owner}", weights, (n_tasks, rank))
    return np.asarray(W @ B.T)
