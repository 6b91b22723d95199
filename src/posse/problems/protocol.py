"""What the simulator asks of a problem."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from posse.actions import Actions
from posse.validation import Array


class Problem(Protocol):
    """T tasks with d features: their action sets, and the truth about their rewards.

    Policies see the actions and the rewards; the means are for the simulator alone. Randomness
    comes from the generators passed in, and is drawn round by round: two calls of `actions` or
    `noise` for n and m rounds give what one call for n + m rounds gives. So every policy meets
    the same rounds, however it cuts them into blocks.
    """

    @property
    def n_tasks(self) -> int:
        """The number of tasks, T."""

    @property
    def dim(self) -> int:
        """The number of features, d."""

    def actions(self, n_rounds: int, rng: np.random.Generator) -> Actions:
        """Draw the action sets of the next rounds."""

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw what makes the rewards of the next rounds random, (n, T): the same for every policy."""

    def mean_rewards(self, actions: Any, choice: NDArray[Any]) -> Array:
        """Return the expected reward of a choice, (n, T)."""

    def best_rewards(self, actions: Any) -> Array:
        """Return the largest expected reward on offer, (n, T); where a task sits out, it does not matter."""

    def rewards(self, means: Array, noise: Array) -> Array:
        """Return the rewards that come back, (n, T); no randomness but the noise."""


@runtime_checkable
class StaticProblem(Problem, Protocol):
    """A problem whose action sets never change and whose noise is added to the means.

    A policy that plays one action through a block then needs only totals of the noise, and the
    simulator plays the block in one step.
    """

    def noise_totals(self, n_rounds: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the sum and the sum of squares of the noise of n rounds, (T,) each."""


@runtime_checkable
class TimedProblem(Problem, Protocol):
    """A problem whose rounds differ by their number: it is told which rounds to deal.

    What `mean_rewards` and `best_rewards` need to know of the time, the actions carry with them, also
    through `rounds`: see `TimedActions`. Called on its own, `actions` deals the first rounds.
    """

    def actions_from(self, start: int, n_rounds: int, rng: np.random.Generator) -> Actions:
        """Draw the action sets of the rounds start, ..., start + n_rounds - 1, counted from 0."""


def deal_actions(problem: Problem, start: int, n_rounds: int, rng: np.random.Generator) -> Actions:
    """Draw the action sets of some rounds, all before `start` being drawn; most problems need not know it."""
    if isinstance(problem, TimedProblem):
        return problem.actions_from(start, n_rounds, rng)
    return problem.actions(n_rounds, rng)
