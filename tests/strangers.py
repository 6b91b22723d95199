"""Policies and problems of somebody else's, for tests of what posse does with what it never heard of."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posse import FiniteActions, GramStatistics, LearningPolicy, Ridge
from posse.core.protocols import Policy, Problem
from posse.numerics.checks import Array, IntArray


@dataclass(frozen=True, kw_only=True)
class Committing:
    """Plays some rounds at random, estimates, and commits."""

    explore: int = 20
    statistics = GramStatistics

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        return (horizon,) if horizon <= self.explore else (self.explore, horizon - self.explore)

    def init(self, n_tasks: int, dim: int) -> Array:
        return np.zeros((n_tasks, dim))

    def select(self, state: Array, actions: FiniteActions, rng: np.random.Generator) -> IntArray:
        return actions.argmax(state, rng)

    def update(self, state: Array, statistics: GramStatistics) -> Array:
        return state if state.any() else Ridge().fit(statistics).theta


@dataclass(frozen=True, eq=False, kw_only=True)
class Anxious(Committing):
    """Holds an array, so that no two are equal, and warns."""

    weights: Array = field(default_factory=lambda: np.arange(3.0))

    def update(self, state: Array, statistics: GramStatistics) -> Array:
        warnings.warn("a stranger warns", stacklevel=1)
        return super().update(state, statistics)


class Plain(Committing):
    """Not a dataclass of its own, and prints as nothing in particular."""

    __repr__ = object.__repr__


class Failing(Committing):
    """Cannot begin."""

    def init(self, n_tasks: int, dim: int) -> Array:
        raise ZeroDivisionError("no tasks to divide by")


class Needy(Committing):
    """Needs an argument."""

    def __init__(self, needed: int) -> None:
        super().__init__(explore=needed)


committing = Committing(explore=10)
number = 3


def alone(problem: Problem) -> Policy:
    """Make a policy for a problem."""
    return LearningPolicy(estimator=Ridge(penalty=float(problem.dim)))


def nothing(problem: Problem) -> Any:
    """Make no policy."""
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Stores:
    """A fixed catalogue whose promotions run out."""

    theta: Array
    catalogue: Array
    in_stock: float = 0.7

    @classmethod
    def draw(
        cls, *, seed: int, n_tasks: int, dim: int = 4, n_promotions: int = 6, in_stock: float = 0.7
    ) -> "Stores":
        rng = np.random.default_rng(seed)
        catalogue = rng.dirichlet(np.full(dim, 0.3), n_promotions)
        return cls(theta=rng.random((n_tasks, dim)), catalogue=catalogue, in_stock=in_stock)

    @property
    def n_tasks(self) -> int:
        return int(self.theta.shape[0])

    @property
    def dim(self) -> int:
        return int(self.theta.shape[1])

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        stocked = rng.random((n_rounds, self.n_tasks, len(self.catalogue))) < self.in_stock
        arms = np.broadcast_to(self.catalogue, (n_rounds, self.n_tasks, *self.catalogue.shape))
        return FiniteActions(arms, available=stocked)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        return rng.random((n_rounds, self.n_tasks))

    def mean_rewards(self, actions: FiniteActions, choice: IntArray) -> Array:
        return np.asarray(np.vecdot(actions.features(choice), self.theta))

    def best_rewards(self, actions: FiniteActions) -> Array:
        return np.asarray(actions.scores(self.theta).max(axis=2))

    def rewards(self, means: Array, noise: Array) -> Array:
        return (noise < means).astype(float)


def needing(*, seed: int, n_stores: int) -> Stores:
    """Draw stores whose number has no default."""
    return Stores.draw(seed=seed, n_tasks=n_stores)


def failing(*, seed: int) -> Stores:
    """Draw nothing."""
    raise KeyError("shelf")


def drawing_nothing(*, seed: int) -> None:
    """Draw what is no problem."""


stores = Stores.draw(seed=1, n_tasks=5)


class Careless(Committing):
    """A policy with a mistake that shows in the first round."""

    def select(self, state: Any, actions: Any, rng: Any) -> Any:
        return state["chances"]
