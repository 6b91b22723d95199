"""Made-up logs of decisions with a known truth, for tests and proofs of evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from posse import IndependentThompson, Learner, SharedThompson
from posse.core.protocols import Policy
from posse.numerics.checks import Array, IntArray
from posse.policies.schedules import Every

# What a policy or a logger plays: the chances (n, K) of arms, by the tasks (n,) and contexts (n, m).
Chooser = Callable[["World", IntArray, Array], Array]
ARMS = ("blue", "green", "red", "white", "yellow")
# How many contexts there are, and the least chance of an arm under a logger that learns.
CONTEXTS, FLOOR = 256, 0.05


@dataclass(frozen=True)
class World:
    """Tasks whose rewards are linear in a context, with parameters of each arm's own.

    Attributes
    ----------
    theta : (T, K, m)
        The first is the level of an arm; the others are of the context.
    places : (C, m)
        The contexts that there are, all equally likely, so that values of policies are sums; 1 and standard
        normal numbers.
    noise : float
    """

    theta: Array
    places: Array
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
        places = rng.standard_normal((CONTEXTS, dim + 1))
        places[:, 0] = 1.0
        shape = n_arms, dim + 1
        if rank is None:
            theta = rng.standard_normal((n_tasks, *shape))
        else:
            kinds = rng.standard_normal((rank, *shape)) / np.sqrt(rank)
            theta = np.tensordot(rng.standard_normal((n_tasks, rank)), kinds, axes=1)
        return cls(size * theta / np.sqrt(dim + 1), places, noise)

    @property
    def shape(self) -> tuple[int, int, int]:
        """T, K, and the numbers of a context beside the 1."""
        n_tasks, n_arms, dim = self.theta.shape
        return n_tasks, n_arms, dim - 1

    def contexts(self, tasks: IntArray, rng: np.random.Generator) -> Array:
        """Draw contexts (n, m)."""
        return np.asarray(self.places[rng.integers(len(self.places), size=len(tasks))])

    def means(self, tasks: IntArray, contexts: Array) -> Array:
        """Return the expected rewards (n, K) of all arms."""
        return np.asarray(np.einsum("nkm,nm->nk", self.theta[tasks], contexts))

    def values(self, chooser: Chooser) -> Array:
        """Return what a policy earns in each task, (T,), exactly: a sum over all contexts and arms."""
        n_tasks, n_places = len(self.theta), len(self.places)
        tasks = np.repeat(np.arange(n_tasks), n_places)
        contexts = np.tile(self.places, (n_tasks, 1))
        earned = np.vecdot(chooser(self, tasks, contexts), self.means(tasks, contexts))
        return np.asarray(earned.reshape(n_tasks, n_places).mean(axis=1))


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
        """The chances (n,) of the arms that were played."""
        return np.take_along_axis(self.chances, self.arms[:, None], axis=1)[:, 0]

    def table(self) -> pa.Table:
        """Return it with a row for every decision."""
        return pa.table(
            {
                "id": pc.binary_join_element_wise(
                    "d", pa.array(np.arange(len(self.tasks))).cast("string"), ""
                ),
                "time": pa.array(np.arange(len(self.tasks), dtype=np.float64)),
                "shop": named(self.tasks, [f"shop {task:02}" for task in range(self.tasks.max() + 1)]),
                "offer": named(self.arms, ARMS),
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
            "shop": named(self.tasks[rows], [f"shop {task:02}" for task in range(self.tasks.max() + 1)]),
            "offer": named(arms, ARMS),
            "chance": pa.array(self.chances[rows, arms]),
            "was": pa.array(chosen),
            "sold": pa.array(rewards, mask=~chosen),
        }
        columns |= {f"x{place}": self.contexts[rows, place] for place in range(1, self.contexts.shape[1])}
        return pa.table(columns)


def named(numbers: IntArray, names: Sequence[str]) -> Any:
    """Return a column of names by their numbers (n,)."""
    return pa.array(names).take(pa.array(numbers))


def lists(chances: Array) -> Any:
    """Return a column of lists from the chances (n, K) of all arms."""
    return pa.FixedSizeListArray.from_arrays(pa.array(chances.ravel()), chances.shape[1]).cast(
        pa.list_(pa.float64())
    )


def softmax(world: World, tasks: IntArray, contexts: Array, seed: int = 999, sharp: float = 0.5) -> Array:
    """Return the chances (n, K) of one who prefers some arms in some contexts, none for sure."""
    rng = np.random.default_rng(seed)
    lean = rng.standard_normal((contexts.shape[1], world.shape[1])) / np.sqrt(contexts.shape[1])
    scores = np.exp(sharp * contexts @ lean)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def epsilon_greedy(world: World, tasks: IntArray, contexts: Array, floor: float = 0.3) -> Array:
    """Return the chances (n, K) of an epsilon-greedy player with a wrong idea of what is best."""
    rng = np.random.default_rng(999)
    wrong = world.theta + rng.standard_normal(world.theta.shape) / np.sqrt(world.theta.shape[2])
    best = np.argmax(np.einsum("nkm,nm->nk", wrong[tasks], contexts), axis=1)
    n_arms = world.shape[1]
    chances = np.full((len(tasks), n_arms), floor / n_arms)
    chances[np.arange(len(tasks)), best] += 1.0 - floor
    return chances


def aim(world: World, tasks: IntArray, contexts: Array) -> Array:
    """Return the chances (n, K) of a policy to evaluate, whose preferences are others than the loggers'."""
    return softmax(world, tasks, contexts, seed=7, sharp=1.0)


LOGGERS: dict[str, Chooser] = {"softmax": softmax, "epsilon-greedy": epsilon_greedy}


def play(world: World, n_each: int, seed: int, logger: str = "softmax") -> Played:
    """Return a log of a fixed logger: n decisions of every task, in random order."""
    rng = np.random.default_rng(seed)
    tasks = rng.permutation(np.repeat(np.arange(world.shape[0]), n_each))
    contexts = world.contexts(tasks, rng)
    return draw(world, tasks, contexts, LOGGERS[logger](world, tasks, contexts), rng)


def draw(world: World, tasks: IntArray, contexts: Array, chances: Array, rng: np.random.Generator) -> Played:
    """Draw arms by their chances, and rewards."""
    drawn = (rng.random(len(tasks))[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    arms = np.minimum(drawn, chances.shape[1] - 1)
    return Played(tasks, contexts, arms, earned(world, tasks, contexts, arms, rng), chances)


def earned(world: World, tasks: IntArray, contexts: Array, arms: IntArray, rng: np.random.Generator) -> Array:
    """Draw the rewards (n,) of the arms (n,) that were played."""
    means = np.take_along_axis(world.means(tasks, contexts), arms[:, None], axis=1)[:, 0]
    return np.asarray(means + world.noise * rng.standard_normal(len(tasks)))


def learning_logs(world: World, rounds: int, n_logs: int, seed: int, *, shared: bool) -> Iterator[Played]:
    """Yield logs of Thompson sampling as it learns: a decision of every task in each round.

    Tasks learn from each other, a learner for every log; or each alone, and one learner plays all logs.
    Contexts are of the arm that they are for, so that each has parameters of its own.
    """
    n_tasks = world.shape[0]
    floored: dict[str, Any] = {"floor": FLOOR, "draws": 16, "schedule": Every(rounds // 6)}
    if shared:
        for number in range(n_logs):
            yield from _learn(world, rounds, 1, [seed, number], SharedThompson(**floored), n_tasks)
    else:
        yield from _learn(world, rounds, n_logs, [seed], IndependentThompson(**floored), n_tasks)


def _learn(
    world: World, rounds: int, n_logs: int, seed: list[int], policy: Policy, n_tasks: int
) -> Iterator[Played]:
    rng = np.random.default_rng(seed)
    _, n_arms, dim = world.theta.shape
    every, tasks = np.arange(n_logs * n_tasks), np.tile(np.arange(n_tasks), n_logs)
    learner = Learner(policy, n_tasks=len(every), dim=n_arms * dim, seed=rng)
    own = np.arange(n_arms)
    kept: list[tuple[Array, IntArray, Array, Array]] = []
    for _ in range(rounds):
        contexts = world.contexts(tasks, rng)
        arms = np.zeros((len(every), n_arms, n_arms, dim))
        arms[:, own, own] = contexts[:, None, :]
        vectors = arms.reshape(len(every), n_arms, -1)
        choice = learner.select(every, vectors)
        rewards = earned(world, tasks, contexts, choice.arm, rng)
        learner.observe(every, vectors[every, choice.arm], rewards)
        kept.append((contexts, choice.arm, rewards, choice.probabilities))
        if learner.due:
            learner.update()
    parts = [np.stack(part) for part in zip(*kept, strict=True)]  # (rounds, logs * T, ...)
    for number in range(n_logs):
        whose = slice(number * n_tasks, (number + 1) * n_tasks)
        contexts, chosen, rewards, chances = (
            part[:, whose].reshape(rounds * n_tasks, *part.shape[2:]) for part in parts
        )
        yield Played(np.tile(np.arange(n_tasks), rounds), contexts, chosen, rewards, chances)
