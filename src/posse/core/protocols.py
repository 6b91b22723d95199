"""What the parts of posse ask of each other: problems, estimators, rules, schedules and policies."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions
from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray, IntArray


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
    """Draw the action sets of n rounds from round `start` on, all before it being drawn already.

    A `TimedProblem` is told the round; other problems need not know it.
    """
    if isinstance(problem, TimedProblem):
        return problem.actions_from(start, n_rounds, rng)
    return problem.actions(n_rounds, rng)


class Summary(Protocol):
    """What is kept of rounds or rows: it adds up, so that parts can be summarised on their own and joined.

    Addition is associative. Nothing changes a summary once it is made.
    """

    def __add__(self, later: Any, /) -> Any:
        """Return the summary of these rounds and of later ones."""


class Summariser(Protocol):
    """A way to summarise rounds: `GramStatistics`, `Fading` and others that a policy asks for."""

    def zeros(self, n_tasks: int, dim: int) -> Any:
        """Return the summary of no rounds, which adds nothing."""

    def of(self, features: Array, rewards: Array, weights: Array | None = None) -> Any:
        """Summarise n rounds of all tasks: features (n, T, d), rewards and, optionally, weights (n, T)."""


@runtime_checkable
class Repeats(Summariser, Protocol):
    """A way to summarise rounds that can do with totals of rewards where every task repeats one action."""

    def repeated(self, features: Array, n_rounds: int, total: Array, square: Array) -> Any:
        """Summarise n rounds of one action (T, d), by the sums of rewards and of their squares, (T,)."""


class Estimator(Protocol):
    """A rule that turns statistics into an estimate; it keeps no state of its own."""

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task. A task without data gets what is best with no data."""


@runtime_checkable
class Refits(Estimator, Protocol):
    """An estimator that gets to its next estimate faster from its last one."""

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> Estimate:
        """Estimate from statistics, starting where an estimate from earlier ones ended.

        `added` is given where the statistics are the earlier ones and these, and nothing was forgotten.
        Tasks may have been added at the end.
        """


class Rule(Protocol):
    """An estimate and action sets in, a choice out.

    A rule that needs the covariance of estimates says so with an attribute `needs_covariance = True`.
    """

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Choose an action for every round and task."""


@runtime_checkable
class GivesChances(Rule, Protocol):
    """A rule that decides for rows, one task each, and says with which probabilities."""

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return the probability of every arm (m, K), for tasks (m,) and their arms (m, K, d).

        `available` (m, K) is False where an arm is not on offer; an empty array stands for all on offer.
        """


class Schedule(Protocol):
    """A way to cut a horizon into blocks.

    A schedule that needs no horizon says when the next update is due: see `Anytime`.
    """

    def blocks(self, horizon: int) -> tuple[int, ...]:
        """Return positive block lengths that add up to the horizon."""


@runtime_checkable
class Anytime(Schedule, Protocol):
    """A schedule that needs no horizon."""

    def next_after(self, clock: float) -> float:
        """Return the round after which the next update is due, the last one being made at `clock`."""


class Policy(Protocol):
    """A way to play T tasks side by side.

    A policy is configuration only. What it has learned is a separate state, which `update`
    replaces and never changes; between two updates the policy is fixed.
    """

    @property
    def statistics(self) -> Any:
        """How blocks are summarised for `update`, a `Summariser`: `GramStatistics` for most."""

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return how many rounds to play between updates; they add up to the horizon."""

    def init(self, n_tasks: int, dim: int) -> Any:
        """Return the state before the first round."""

    def select(self, state: Any, actions: Any, rng: np.random.Generator) -> NDArray[Any]:
        """Choose an action for every round and task."""

    def update(self, state: Any, statistics: Any) -> Any:
        """Return the state after a block whose rounds are summarised in `statistics`."""


def keeps_pace(owner: object, name: str, beside: str) -> bool:
    """Return whether a method was written for the class that another method comes from, or for a child of it.

    A class that chooses in its own way, and inherited a shortcut of its parent, must not be played by that.
    """
    first, second = (
        next((kind for kind in type(owner).__mro__ if method in vars(kind)), object)
        for method in (name, beside)
    )
    return issubclass(first, second)


@runtime_checkable
class FollowsTheta(Policy, Protocol):
    """A policy that may play greedily by one theta through each block, which allows for shortcuts."""

    def theta_of(self, state: Any) -> Array | None:
        """Return the theta (T, d) that the next block maximises; always None if it chooses otherwise."""


@runtime_checkable
class MovesAtOnce(Policy, Protocol):
    """A policy of two speeds: between two updates every reward may move the state of its own task.

    `prompt` says whether it does; None leaves it to the driver.
    """

    @property
    def prompt(self) -> bool | None:
        """Whether rewards count at once."""

    def move(self, state: Any, summary: Any) -> Any:
        """Return the state after rounds whose summary `update` has not seen yet, all else being equal."""


@runtime_checkable
class DecidesRows(MovesAtOnce, Protocol):
    """A policy that can decide for a few tasks at a time, as a `Learner` asks it to."""

    def beliefs(self, state: Any) -> Beliefs:
        """Return the posteriors of all tasks, as they stand."""

    def newcomer(self, state: Any) -> Beliefs:
        """Return what is believed of one task that was never seen."""

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return the probability of every arm (m, K), for tasks (m,) and their arms (m, K, d).

        `available` (m, K) is False where an arm is not on offer; an empty array stands for all on offer.
        """
