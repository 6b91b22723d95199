"""Made-up logs of decisions with a known truth, for tests and proofs of evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from posse.numerics.checks import Array, IntArray

ARMS = ("blue", "green", "red", "white", "yellow")


@dataclass(frozen=True)
class World:
    """Tasks whose rewards are linear in a context, with parameters of each arm's own.

    Attributes
    ----------
    theta : (T, K, m)
        The first is the level of an arm; the others are of the context, standard normal numbers.
    noise : float
    """

    theta: Array
    noise: float = 1.0

    @classmethod
    def draw(
        cls,
        seed: int,
        n_tasks: int = 50,
        n_arms: int = 5,
        dim: int = 4,
        rank: int | None = 2,
        noise: float = 1.0,
        size: float = 1.0,
    ) -> World:
        """Draw tasks in a plane of some rank, or anywhere, with effects of about one size."""
        rng = np.random.default_rng(seed)
        shape = n_arms, dim + 1
        if rank is None:
            theta = rng.standard_normal((n_tasks, *shape))
        else:
            kinds = rng.standard_normal((rank, *shape)) / np.sqrt(rank)
            theta = np.tensordot(rng.standard_normal((n_tasks, rank)), kinds, axes=1)
        return cls(size * theta / np.sqrt(dim + 1), noise)

    @property
    def shape(self) -> tuple[int, int, int]:
        n_tasks, n_arms, dim = self.theta.shape
        return n_tasks, n_arms, dim - 1

    def contexts(self, tasks: IntArray, rng: np.random.Generator) -> Array:
        """Draw contexts (n, m), the first of which is 1."""
        x = rng.standard_normal((len(tasks), self.theta.shape[2]))
        x[:, 0] = 1.0
        return x

    def means(self, tasks: IntArray, contexts: Array) -> Array:
        """Return the expected rewards (n, K) of all arms."""
        return np.asarray(np.einsum("nkm,nm->nk", self.theta[tasks], contexts))


@dataclass(frozen=True)
class Played:
    """A log, and what only its author knows."""

    tasks: IntArray
    contexts: Array
    arms: IntArray
    rewards: Array
    chances: Array

    @property
    def propensities(self) -> Array:
        return np.take_along_axis(self.chances, self.arms[:, None], axis=1)[:, 0]

    def table(self) -> pa.Table:
        """Return it with a row for every decision."""
        return pa.table(
            {
                "id": pa.array([f"d{number}" for number in range(len(self.tasks))]),
                "time": pa.array(np.arange(len(self.tasks), dtype=np.float64)),
                "shop": pa.array([f"shop {task:02}" for task in self.tasks.tolist()]),
                "offer": pa.array([ARMS[arm] for arm in self.arms.tolist()]),
                "chance": pa.array(self.propensities),
                "sold": pa.array(self.rewards),
                **{f"x{place}": self.contexts[:, place] for place in range(1, self.contexts.shape[1])},
            }
        )

    def long_table(self, rng: np.random.Generator | None = None) -> pa.Table:
        """Return it with a row for every arm of every decision, in random order if there is a generator."""
        n_rows, n_arms = self.chances.shape
        rows = np.repeat(np.arange(n_rows), n_arms)
        arms = np.tile(np.arange(n_arms), n_rows)
        order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
        rows, arms = rows[order], arms[order]
        chosen = self.arms[rows] == arms
        rewards = np.where(chosen, self.rewards[rows], np.nan)
        columns: dict[str, Any] = {
            "id": pa.array([f"d{row}" for row in rows.tolist()]),
            "time": pa.array(rows.astype(np.float64)),
            "shop": pa.array([f"shop {task:02}" for task in self.tasks[rows].tolist()]),
            "offer": pa.array([ARMS[arm] for arm in arms.tolist()]),
            "chance": pa.array(self.chances[rows, arms]),
            "was": pa.array(chosen),
            "sold": pa.array(rewards, mask=~chosen),
        }
        columns |= {f"x{place}": self.contexts[rows, place] for place in range(1, self.contexts.shape[1])}
        return pa.table(columns)


def softmax_chances(world: World, contexts: Array, tasks: IntArray, seed: int, sharp: float = 0.5) -> Array:
    """Return the chances (n, K) of a fixed logger that prefers some arms in some contexts, none for sure."""
    rng = np.random.default_rng(seed)
    lean = rng.standard_normal((contexts.shape[1], world.shape[1])) / np.sqrt(contexts.shape[1])
    scores = np.exp(sharp * contexts @ lean)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def greedy_chances(world: World, contexts: Array, tasks: IntArray, seed: int, floor: float = 0.3) -> Array:
    """Return the chances (n, K) of an epsilon-greedy logger with a wrong idea of what is best."""
    rng = np.random.default_rng(seed)
    wrong = world.theta + rng.standard_normal(world.theta.shape) / np.sqrt(world.theta.shape[2])
    best = np.argmax(np.einsum("nkm,nm->nk", wrong[tasks], contexts), axis=1)
    n_arms = world.shape[1]
    chances = np.full((len(tasks), n_arms), floor / n_arms)
    chances[np.arange(len(tasks)), best] += 1.0 - floor
    return chances


LOGGERS = {"softmax": softmax_chances, "epsilon-greedy": greedy_chances}


def play(world: World, n_each: int, seed: int, logger: str = "softmax") -> Played:
    """Return a log of a fixed logger: n decisions of every task, in random order."""
    rng = np.random.default_rng(seed)
    tasks = rng.permutation(np.repeat(np.arange(world.shape[0]), n_each))
    contexts = world.contexts(tasks, rng)
    chances = LOGGERS[logger](world, contexts, tasks, seed=999)
    return draw(world, tasks, contexts, chances, rng)


def draw(world: World, tasks: IntArray, contexts: Array, chances: Array, rng: np.random.Generator) -> Played:
    """Draw arms by their chances, and rewards."""
    drawn = (rng.random(len(tasks))[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    arms = np.minimum(drawn, chances.shape[1] - 1)
    means = np.take_along_axis(world.means(tasks, contexts), arms[:, None], axis=1)[:, 0]
    rewards = means + world.noise * rng.standard_normal(len(tasks))
    return Played(tasks, contexts, arms, rewards, chances)


def numbers(values: NDArray[Any]) -> list[float]:
    return [float(value) for value in values]
