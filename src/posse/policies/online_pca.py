"""Online principal components of M. Warmuth and D. Kuzmin (2008): a density over directions to leave out."""

from __future__ import annotations

import numpy as np

from posse.numerics.checks import Array


def exponentiated(matrix: Array, direction: Array, rate: float) -> Array:
    """Return exp(log W - rate x x') of trace 1, for a density matrix W (d, d) and x (d,) brought to length 1.

    Examples
    --------
    >>> exponentiated(np.eye(2) / 2, np.array([3.0, 0.0]), np.log(3.0)).round(6)
    array([[0.25, 0.  ],
           [0.  , 0.75]])
    """
    values, vectors = np.linalg.eigh(matrix)
    logs = (vectors * np.log(np.maximum(values, 1e-15))) @ vectors.T
    unit = direction / np.linalg.norm(direction)
    values, vectors = np.linalg.eigh(logs - rate * np.outer(unit, unit))
    shares = np.exp(values - values.max())
    return np.asarray((vectors * (shares / shares.sum())) @ vectors.T)


def capped(matrix: Array, cap: float) -> Array:
    """Return the density matrix nearest to W (d, d), in relative entropy, with eigenvalues of at most `cap`.

    The largest are set to the cap and the others scaled, as few as leave all below it.
    """
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * capped_shares(values, cap)) @ vectors.T)


def capped_shares(shares: Array, cap: float) -> Array:
    """Return shares (d,) that add up to 1 with the largest cut to `cap`, and the others scaled to fill up.

    Examples
    --------
    >>> capped_shares(np.array([0.1, 0.2, 0.7]), 0.5)
    array([0.16666667, 0.33333333, 0.5       ])
    """
    order = np.argsort(-shares, kind="stable")
    found = shares / shares.sum()
    for n_capped in range(len(shares)):
        rest = order[n_capped:]
        scaled = found[rest] * (1.0 - n_capped * cap) / found[rest].sum()
        if scaled[0] <= cap * (1.0 + 1e-12):
            result = np.full(len(shares), cap)
            result[rest] = scaled
            return result
    return np.full(len(shares), 1.0 / len(shares))  # the cap leaves no other


def sampled_basis(matrix: Array, rank: int, rng: np.random.Generator) -> Array:
    """Draw k eigenvectors to keep, (d, k): each is left out with probability (d - k) times its eigenvalue.

    The d - k to leave out are drawn by systematic sampling, in a random order.

    Parameters
    ----------
    matrix : (d, d)
        A density matrix with eigenvalues of at most 1 / (d - k).
    rank : int
        k, below d.
    rng : numpy Generator
    """
    values, vectors = np.linalg.eigh(matrix)
    order = rng.permutation(len(values))
    dropped = len(values) - rank
    ends = np.cumsum(dropped * np.maximum(values[order], 0.0))
    ends *= dropped / ends[-1]
    # a direction is left out if its stretch of [0, d - k] holds a point of the lattice u, u + 1, ...
    points = np.searchsorted(ends, rng.random() + np.arange(dropped), side="right")
    out = order[np.minimum(points, len(values) - 1)]
    return np.ascontiguousarray(np.delete(vectors, out, axis=1)[:, :rank])
