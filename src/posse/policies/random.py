"""Play at random: the floor of every comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray, IntArray
from posse.policies.rules import Greedy


@dataclass(frozen=True)
class Random:
    """Choose uniformly among the actions on offer, for ever.

    Examples
    --------
    >>> Random().blocks(100, n_tasks=3, dim=2)
    (100,)
    """

    statistics: ClassVar = GramStatistics
    prompt: ClassVar[bool | None] = False

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return one block: there is nothing to learn."""
        return (horizon,)

    def next_after(self, clock: float) -> float:
        """Return infinity: no update is ever due."""
        return math.inf

    def init(self, n_tasks: int, dim: int) -> Array:
        """Return theta = 0, under which all actions tie."""
        return np.zeros((n_tasks, dim))

    def select(self, state: Array, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Choose among ties."""
        return actions.argmax(state, rng)

    def theta_of(self, state: Array) -> Array:
        """Return theta = 0."""
        return state

    def update(self, state: Array, statistics: GramStatistics) -> Array:
        """Learn nothing."""
        return state

    def move(self, state: Array, summary: GramStatistics) -> Array:
        """Learn nothing."""
        return state

    def beliefs(self, state: Array) -> Beliefs:
        """Return theta = 0, of all tasks, without a doubt."""
        n_tasks, dim = state.shape
        return Beliefs(state.copy(), np.zeros((n_tasks, dim, dim)), np.ones(n_tasks))

    def newcomer(self, state: Array) -> Beliefs:
        """Return theta = 0."""
        return self.beliefs(state[:1])

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return equal probabilities for all arms on offer, (m, K)."""
        return Greedy().chances(beliefs, tasks, np.zeros_like(arms), available, rng)
