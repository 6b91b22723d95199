"""Tasks that keep coming: a stream of groups, drawn one by one; nothing is kept of those that ended."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from posse.core.protocols import Problem
from posse.numerics.checks import (
    Array,
    check_array,
    check_choice,
    check_integer,
    check_number,
    check_orthonormal,
    make_generator,
)
from posse.numerics.random import haar_basis, random_matrices, unit_vectors
from posse.problems.ellipsoid import EllipsoidProblem
from posse.problems.gaussian import GaussianProblem
from posse.problems.noise import NOISE_KINDS
from posse.problems.parameters import MOST

ORDERS = ("diverse", "late", "adversary", "unrelated")
OFFERS = ("ball", "arms")
# Columns that are revealed late come after each such share of the tasks: 500 of 6000, as in BOSS's study.
LATE = 1 / 12


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamProblem:
    """A stream of linear tasks, theta = B w, that start and end in groups.

    Tasks have as many rounds each as a run is asked for. With one task side by side and no overlap they come
    one after the other; with several side by side they come in batches; and with overlap a group starts
    before those ahead of it have ended. A group is drawn when it is asked for, from the seed and its number.

    Parameters
    ----------
    basis : (d, k)
        B, orthonormal columns.
    n_tasks : int
        The number of tasks in all.
    seed : int
        From which every task is drawn, by its number.
    order : {"diverse", "late", "adversary", "unrelated"}
        Which columns of B a task is made of, weighed by w uniform in [-1, 1]^k. "diverse": column j from task
        j on, counted from 0. "late": column j after j twelfths of all tasks. "adversary": as "late", but once
        a second column is out, tasks whose number is a square have the first column alone, and no other
        task has it at all. "unrelated": no B, parameters point anywhere in R^d.
    batch : int
        Tasks in a group.
    overlap : int
        How many groups are played at a time: each starts when the one so many before it has ended.
    offer : {"ball", "arms"}
        What tasks may play: an ellipsoid, the unit ball by default, or n_arms arms from N(0, I/d) a round.
    n_arms : int
        K, of arms.
    condition : float
        At 1 unit balls. Above, ellipsoids with Haar axes of squared length 1 to `condition`.
    shortest : float
        Parameters have lengths uniform in [shortest, 1].
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Of rewards; each has mean 0 and variance 1.

    Examples
    --------
    >>> stream = StreamProblem.draw(n_tasks=1000, dim=10, rank=3, seed=0)
    >>> stream.n_groups, stream.group(7).theta.shape
    (1000, (1, 10))
    >>> bool((stream.group(7).theta == stream.group(7).theta).all())
    True

    Notes
    -----
    "diverse" and "adversary" are the two orders of the study of T. Duong, Z. Wang and C. Zhang, Beyond task
    diversity (NeurIPS 2024), there called BOSS, with 6000 tasks.
    """

    basis: Array
    n_tasks: int
    seed: int
    order: str = "diverse"
    batch: int = 1
    overlap: int = 1
    offer: str = "ball"
    n_arms: int = 5
    condition: float = 1.0
    shortest: float = 0.8
    noise_kind: str = "gaussian"

    def __post_init__(self) -> None:
        owner = "of StreamProblem"
        basis = check_array(f"`basis` {owner}", self.basis, ("d", "k"))
        check_orthonormal(f"`basis` {owner}", basis)
        object.__setattr__(self, "basis", basis)
        check_integer(f"`n_tasks` {owner}", self.n_tasks, 1, MOST)
        check_integer(f"`seed` {owner}", self.seed, 0)
        check_choice(f"`order` {owner}", self.order, ORDERS)
        check_integer(f"`batch` {owner}", self.batch, 1, self.n_tasks, high_name="n_tasks")
        check_integer(f"`overlap` {owner}", self.overlap, 1, self.n_groups, high_name="groups")
        check_choice(f"`offer` {owner}", self.offer, OFFERS)
        check_integer(f"`n_arms` {owner}", self.n_arms, 1, MOST)
        check_number(f"`condition` {owner}", self.condition, 1.0)
        check_number(f"`shortest` {owner}", self.shortest, 0.0, 1.0, open_low=True)
        check_choice(f"`noise_kind` {owner}", self.noise_kind, NOISE_KINDS)
        if self.offer == "arms" and self.condition > 1.0:
            raise ValueError(f'`condition` {owner} must be 1 where `offer` is "arms". Got {self.condition}.')

    @classmethod
    def draw(
        cls,
        *,
        n_tasks: int = 1000,
        dim: int = 10,
        rank: int = 3,
        seed: int | np.random.Generator,
        order: str = "diverse",
        batch: int = 1,
        overlap: int = 1,
        offer: str = "ball",
        n_arms: int = 5,
        condition: float = 1.0,
        shortest: float = 0.8,
        noise_kind: str = "gaussian",
    ) -> StreamProblem:
        """Draw B, Haar-distributed, and the seed of all tasks.

        Parameters
        ----------
        n_tasks, dim, rank : int
            The number of tasks in all, d and k, with k at most d.
        seed : int or numpy Generator
        order, batch, overlap, offer, n_arms, condition, shortest, noise_kind
            As the constructor takes them.
        """
        rng = make_generator("`seed` of StreamProblem", seed)
        check_integer("`dim` of StreamProblem", dim, 1, MOST)
        check_integer("`rank` of StreamProblem", rank, 1, dim, high_name="dim")
        return cls(
            basis=haar_basis(dim, rank, rng),
            n_tasks=n_tasks,
            seed=int(rng.integers(2**62)),
            order=order,
            batch=batch,
            overlap=overlap,
            offer=offer,
            n_arms=n_arms,
            condition=condition,
            shortest=shortest,
            noise_kind=noise_kind,
        )

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.basis.shape[0])

    @property
    def n_groups(self) -> int:
        """The number of groups; the last may be smaller than the others."""
        return -(-self.n_tasks // self.batch)

    def group(self, number: int) -> Problem:
        """Return the tasks of a group, counted from 0, as a problem of their own."""
        check_integer("`number` of a group", number, 0, self.n_groups - 1)
        first = number * self.batch
        tasks = range(first, min(first + self.batch, self.n_tasks))
        rngs = [np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(i,))) for i in tasks]
        theta = np.stack([self._parameters(i, rng) for i, rng in zip(tasks, rngs, strict=True)])
        if self.offer == "arms":
            return GaussianProblem(theta=theta, n_arms=self.n_arms, noise_kind=self.noise_kind)
        shapes = None
        if self.condition > 1.0:
            values = np.geomspace(1.0, self.condition, self.dim)[None]
            shapes = np.concatenate([random_matrices(values, rng) for rng in rngs])
        return EllipsoidProblem(theta=theta, shapes=shapes, noise_kind=self.noise_kind)

    def _parameters(self, task: int, rng: np.random.Generator) -> Array:
        """Draw the parameters of a task by its number, (d,)."""
        length = rng.uniform(self.shortest, 1.0)
        if self.order == "unrelated":
            return np.asarray(length * unit_vectors(1, self.dim, rng)[0])
        columns = self.columns(task)
        direction = columns @ rng.uniform(-1.0, 1.0, columns.shape[1])
        return np.asarray(length * direction / np.linalg.norm(direction))

    def columns(self, task: int) -> Array:
        """Return the columns of B that a task is made of, (d, m), by its number from 0 on.

        Examples
        --------
        >>> stream = StreamProblem.draw(n_tasks=24, dim=5, rank=3, order="adversary", seed=0)
        >>> [stream.columns(task).shape[1] for task in (0, 2, 4, 5, 9)]
        [1, 1, 1, 2, 1]
        """
        step = 1 if self.order == "diverse" else max(1, round(LATE * self.n_tasks))
        revealed = min(task // step + 1, self.basis.shape[1])
        if self.order != "adversary" or revealed == 1:
            return self.basis[:, :revealed]
        return self.basis[:, :1] if math.isqrt(task) ** 2 == task else self.basis[:, 1:revealed]
