"""The workload that every library plays, and the loop that plays it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]

N_ARMS = 5
OPENING = 10  # rounds; the largest batch


@dataclass(frozen=True)
class Workload:
    """What is offered and what it pays.

    Attributes
    ----------
    arms : (N, T, K, d)
        Feature vectors.
    means : (N, T, K)
        Mean rewards, <x, theta_t>.
    noise : (N, T)
        Added to the reward, whichever arm is played.
    """

    arms: Array
    means: Array
    noise: Array

    @classmethod
    def read(cls, path: Path) -> Workload:
        """Read a file that `write_data` made."""
        with np.load(path) as data:
            arms, theta, noise = data["arms"], data["theta"], data["noise"]
        return cls(arms, np.vecdot(arms, theta[:, None, :]), noise)

    @property
    def megabytes(self) -> float:
        """The memory that the arrays take."""
        return (self.arms.nbytes + self.means.nbytes + self.noise.nbytes) / 2**20

    def corner(self, rounds: int, tasks: int) -> Workload:
        """Return a copy of the first rounds of the first tasks."""
        return Workload(*(array[:rounds, :tasks].copy() for array in (self.arms, self.means, self.noise)))

    def regret(self, choice: IntArray) -> float:
        """Return the mean regret per decision of a choice (N, T)."""
        chosen = np.take_along_axis(self.means, choice[..., None], axis=2)[..., 0]
        return float((self.means.max(axis=2) - chosen).mean())


def write_data(
    path: Path,
    *,
    rounds: int,
    tasks: int = 100,
    dim: int = 30,
    arms: int = N_ARMS,
    rank: int = 3,
    seed: int = 0,
) -> None:
    """Draw arms ~ N(0, I), |theta_t| = 1 in a subspace of dimension `rank`, and noise ~ N(0, 1).

    In the opening rounds all arms of a task are copies of one: nothing is known yet, and libraries that
    break ties each in its own way would part there for good.
    """
    rng = np.random.default_rng(seed)
    offered = rng.standard_normal((rounds, tasks, arms, dim))
    offered[:OPENING] = offered[:OPENING, :, :1]
    basis = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
    weights = rng.standard_normal((tasks, rank))
    theta = weights / np.linalg.norm(weights, axis=1, keepdims=True) @ basis.T
    noise = rng.standard_normal((rounds, tasks))
    np.savez(path, arms=offered, theta=theta, noise=noise)


class Player(ABC):
    """Plays all tasks and learns from their rewards."""

    @abstractmethod
    def choose(self, arms: Array) -> IntArray:
        """Return the arms to play, (n, T), of those on offer, (n, T, K, d)."""

    @abstractmethod
    def learn(self, features: Array, rewards: Array) -> None:
        """Learn from the features (n, T, d) played and their rewards (n, T)."""

    def blocks(self, rounds: int, batch: int) -> tuple[int, ...]:
        """Return how many rounds to play between updates."""
        return tuple(min(batch, rounds - start) for start in range(0, rounds, batch))


class Learner(Protocol):
    """Plays one task: what a library is wrapped in."""

    def choose(self, arms: Array) -> Any:
        """Return the arms to play, (n,), of those on offer, (n, K, d)."""

    def learn(self, features: Array, rewards: Array) -> None:
        """Learn from the features (n, d) played and their rewards (n,)."""


class OnePerTask(Player):
    """Gives every task a learner of its own.

    Parameters
    ----------
    make : function
        From a task's number to its learner.
    tasks : int
    """

    def __init__(self, make: Callable[[int], Learner], tasks: int) -> None:
        self._learners = [make(task) for task in range(tasks)]

    def choose(self, arms: Array) -> IntArray:
        """Ask one learner after the other."""
        choice = np.empty(arms.shape[:2], dtype=np.int64)
        for task, learner in enumerate(self._learners):
            choice[:, task] = learner.choose(arms[:, task])
        return choice

    def learn(self, features: Array, rewards: Array) -> None:
        """Teach one learner after the other."""
        for task, learner in enumerate(self._learners):
            learner.learn(features[:, task], rewards[:, task])


def play(player: Player, workload: Workload, batch: int) -> IntArray:
    """Play every round, learning after each batch, and return the choices (N, T)."""
    rounds, tasks = workload.noise.shape
    every_task = np.arange(tasks)
    choices = np.empty((rounds, tasks), dtype=np.int64)
    start = 0
    for length in player.blocks(rounds, batch):
        block = slice(start, start + length)
        choice = player.choose(workload.arms[block])
        taken = (np.arange(length)[:, None], every_task, choice)
        player.learn(workload.arms[block][taken], workload.means[block][taken] + workload.noise[block])
        choices[block] = choice
        start += length
    return choices
