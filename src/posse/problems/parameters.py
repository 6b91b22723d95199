"""Parameters of tasks: of a shared representation, theta_t = B w_t, nearly so, or of none."""

from __future__ import annotations

from typing import NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from posse.numerics.checks import Array, IntArray, check_array, check_choice, check_integer, make_generator
from posse.numerics.random import haar_basis, unit_vectors

MOST = 10**9  # beyond this no array could be made
STRUCTURES = (
    "low-rank",
    "unrelated",
    "outliers",
    "approximate",
    "common-mean",
    "clusters",
    "half",
    "giant",
    "groups",
    "half-axes",
    "orthogonal-groups",
)
# Those of the proofs of the lower bounds.
WORST = ("groups", "half-axes", "orthogonal-groups")
# The lengths to which the prior of a lower bound is confined.
LEAST_LENGTH, LARGEST_LENGTH = 0.09, 3.0
# every so many tasks one is an outlier
OUTLIER_STEP = 5
# the length of a task's own part beside one of length 1 that it shares
OWN_LENGTH = 0.3
# the same for a task of a cluster, which are tight
CLUSTER_LENGTH = 0.1
# how long the parameters of the giant are beside those of the others
GIANT_LENGTH = 10.0


class TaskSettings(TypedDict):
    """What tasks with linear rewards are drawn from, whatever they may play.

    n_tasks, dim, rank : int
        T, d and k.
    seed : int or numpy Generator
    noise_kind : str
        The noise of rewards, one of `NOISE_KINDS`; "gaussian" if it is not given.
    structure : str
        How the parameters are related, one of `STRUCTURES`; "low-rank" if it is not given.
    """

    n_tasks: int
    dim: int
    rank: int
    seed: int | np.random.Generator
    noise_kind: NotRequired[str]
    structure: NotRequired[str]


class DrawnTasks(NamedTuple):
    """Parameters (T, d) of tasks, the kind of their noise, and the generator for what else is to be drawn."""

    theta: Array
    noise_kind: str
    rng: np.random.Generator


def draw_tasks(
    owner: str,
    *,
    n_tasks: int,
    dim: int,
    rank: int,
    seed: int | np.random.Generator,
    noise_kind: str = "gaussian",
    structure: str = "low-rank",
    basis: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> DrawnTasks:
    """Draw the parameters of a problem's tasks; `owner` is the problem, and is named in messages.

    The other arguments are those of `TaskSettings` and of `draw_parameters`.
    """
    rng = make_generator(f"`seed` of {owner}", seed)
    sizes = {"n_tasks": n_tasks, "dim": dim, "rank": rank}
    theta = draw_parameters(owner, structure, **sizes, rng=rng, basis=basis, weights=weights)
    return DrawnTasks(theta, noise_kind, rng)


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
    """Draw theta (T, d) of a structure; rows have length 1 unless weights are given, or it is said below.

    Parameters
    ----------
    owner : str
        Named in messages about the other arguments.
    structure : one of STRUCTURES
        Below, B is Haar-distributed, w_t is uniform on the unit sphere of R^k, and u_t and m are uniform
        on the unit sphere of R^d.

        - "low-rank": B w_t.
        - "unrelated": u_t.
        - "outliers": B w_t, but u_t in the tasks 0, 5, 10, ...
        - "approximate": B w_t + 0.3 u_t, scaled to length 1.
        - "common-mean": m + 0.3 u_t, scaled to length 1, with one m for all tasks.
        - "clusters": c_i + 0.1 u_t, scaled to length 1, for the tasks of cluster i; the k centres c_i are
          uniform on the unit sphere of R^d, and the clusters of equal size, or nearly.
        - "half": B w_t in the first half of the tasks, the smaller one, u_t in the others.
        - "giant": B w_t, but 10 u_0 in task 0, which is ten times as long as all others.

        And the instances in the proofs of the paper's lower bounds, where mu_m is N(0, I/m) confined to
        lengths from 0.09 to 3, and k groups are of equal size, or nearly:

        - "groups": all tasks of a group have one u, and groups have nothing in common. (Theorem 2)
        - "half-axes": the first half of the tasks are B's columns, in k groups; the others B w_t with
          w_t ~ mu_k. (Theorem 4, k T sqrt(N))
        - "orthogonal-groups": all tasks of group i have one phi_i, drawn as mu_(d-i+1) in the orthogonal
          complement of those before it. (Theorem 4, d sqrt(kNT))
    n_tasks, dim, rank : int
        T, d and k. Where there is no B, in "unrelated" and "common-mean", `rank` is ignored.
    basis, weights : optional
        B (d, k) and W (T, k), if they are not to be drawn; only for the structures around B w_t.

    Examples
    --------
    >>> sizes = dict(n_tasks=10, dim=6, rank=2)
    >>> theta = draw_parameters("a test", "outliers", **sizes, rng=np.random.default_rng(0))
    >>> int(np.linalg.matrix_rank(theta)), int(np.linalg.matrix_rank(theta[[1, 2, 3, 4, 6, 7, 8, 9]]))
    (4, 2)
    """
    check_choice(f"`structure` of {owner}", structure, STRUCTURES)
    if structure in ("unrelated", "common-mean", "clusters", *WORST):
        _check_sizes(owner, n_tasks, dim)
        for name, factor in {"basis": basis, "weights": weights}.items():
            if factor is not None:
                raise ValueError(
                    f"`{name}` of {owner} must be None for structure={structure!r}. Got {factor!r}."
                )
        if structure in ("clusters", *WORST):
            _check_rank(owner, rank, n_tasks, dim)
            return _draw_groups(structure, n_tasks, dim, rank, rng)
        if structure == "unrelated":
            return unit_vectors(n_tasks, dim, rng)
        mean = unit_vectors(1, dim, rng)
        return _rescaled(mean + OWN_LENGTH * unit_vectors(n_tasks, dim, rng))
    factors = {"basis": basis, "weights": weights}
    theta = draw_low_rank(owner, n_tasks=n_tasks, dim=dim, rank=rank, rng=rng, **factors)
    odd = odd_tasks(structure, n_tasks)
    if odd is not None:
        theta[odd] = (GIANT_LENGTH if structure == "giant" else 1.0) * unit_vectors(len(odd), dim, rng)
    if structure == "approximate":
        theta = _rescaled(theta + OWN_LENGTH * unit_vectors(n_tasks, dim, rng))
    return theta


def odd_tasks(structure: str, n_tasks: int) -> IntArray | None:
    """Return the tasks (m,) of a structure that have nothing to do with the others, None if it has no such.

    They are the ones whom sharing could hurt: those in the places 0, 5, 10, ... of "outliers", the second
    half of "half", and the giant of "giant".

    Examples
    --------
    >>> odd_tasks("outliers", 12), odd_tasks("half", 5), odd_tasks("giant", 5)
    (array([ 0,  5, 10]), array([2, 3, 4]), array([0]))
    """
    tasks = np.arange(n_tasks)
    if structure == "outliers":
        return tasks[::OUTLIER_STEP]
    if structure == "half":
        return tasks[n_tasks // 2 :]
    return tasks[:1] if structure == "giant" else None


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
    _check_rank(owner, rank, n_tasks, dim)
    drawn_basis = haar_basis(dim, rank, rng)
    drawn_weights = unit_vectors(n_tasks, rank, rng)
    B = drawn_basis if basis is None else check_array(f"`basis` of {owner}", basis, (dim, rank))
    W = drawn_weights if weights is None else check_array(f"`weights` of {owner}", weights, (n_tasks, rank))
    return np.asarray(W @ B.T)


def _check_sizes(owner: str, n_tasks: int, dim: int) -> None:
    check_integer(f"`n_tasks` of {owner}", n_tasks, 1, MOST)
    check_integer(f"`dim` of {owner}", dim, 1, MOST)


def _check_rank(owner: str, rank: int, n_tasks: int, dim: int) -> None:
    most = f"min(dim={dim}, n_tasks={n_tasks})"
    check_integer(f"`rank` of {owner}", rank, 1, min(dim, n_tasks), high_name=most)


def _draw_groups(structure: str, n_tasks: int, dim: int, rank: int, rng: np.random.Generator) -> Array:
    """Draw theta (T, d) of tasks in k groups: of clusters, or of the proofs of the lower bounds."""
    if structure == "clusters":
        centres = unit_vectors(rank, dim, rng)[_groups(n_tasks, rank)]
        return _rescaled(centres + CLUSTER_LENGTH * unit_vectors(n_tasks, dim, rng))
    if structure == "groups":
        return unit_vectors(rank, dim, rng)[_groups(n_tasks, rank)]
    if structure == "half-axes":
        half = n_tasks // 2
        axes = np.eye(rank)[_groups(half, rank)]
        weights = np.vstack([axes, confined_normal(n_tasks - half, rank, rng)])
        return np.asarray(weights @ haar_basis(dim, rank, rng).T)
    basis = np.zeros((dim, 0))
    lengths = []
    for taken in range(rank):
        left = np.linalg.qr(basis, mode="complete")[0][:, taken:]
        phi = left @ confined_normal(1, dim - taken, rng)[0]
        lengths.append(np.linalg.norm(phi))
        basis = np.column_stack([basis, phi / lengths[-1]])
    return np.asarray((basis * lengths).T[_groups(n_tasks, rank)])


def _groups(n_tasks: int, n_groups: int) -> IntArray:
    """Return the group of each task, in order, (T,)."""
    return np.asarray(np.arange(n_tasks) * n_groups // max(n_tasks, 1), dtype=np.intp)


def confined_normal(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Draw rows (n, d) of N(0, I/d), given that their lengths lie between 0.09 and 3."""
    rows = np.empty((n, dim))
    wanting = np.arange(n)
    while wanting.size:
        rows[wanting] = rng.standard_normal((wanting.size, dim)) / np.sqrt(dim)
        lengths = np.linalg.norm(rows[wanting], axis=1)
        wanting = wanting[(lengths < LEAST_LENGTH) | (lengths > LARGEST_LENGTH)]
    return rows


def _rescaled(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
