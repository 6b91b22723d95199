"""What the simulator asks of a policy."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from posse.validation import Array


class Policy(Protocol):
    """A way to play T tasks side by side.

    A policy is configuration only. What it has learned is a separate state, which `update`
    replaces and never changes; between two updates the policy is fixed.
    """

    @property
    def statistics(self) -> type[Any]:
        """What is kept of a block, for `update`: `GramStatistics`, or another monoid with its methods."""

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return how many rounds to play between updates; they add up to the horizon."""

    def init(self, n_tasks: int, dim: int) -> Any:
        """Return the state before the first round."""

    def select(self, state: Any, actions: Any, rng: np.random.Generator) -> NDArray[Any]:
        """Choose an action for every round and task."""

    def update(self, state: Any, statistics: Any) -> Any:
        """Return the state after a block whose rounds are summarised in `statistics`."""


@runtime_checkable
class FollowsTheta(Policy, Protocol):
    """A policy that may play greedily by one theta through each block, which allows for shortcuts."""

    def theta_of(self, state: Any) -> Array | None:
        """Return the theta (T, d) that the next block maximises; always None if it chooses otherwise."""
