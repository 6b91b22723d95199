"""Play at random: the floor of every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array


@dataclass(frozen=True)
class Random:
    """Choose uniformly among the actions on offer, for ever.

    Examples
    --------
    >>> Random().blocks(100, n_tasks=3, dim=2)
    (100,)
    """

    statistics: ClassVar = GramStatistics

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return one block: there is nothing to learn."""
        return (horizon,)

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
