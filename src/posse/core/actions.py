"""What a task may play: every kind of set says which of its actions is best for theta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posse.numerics.checks import Array, BoolArray, IntArray, check_array, check_positive_definite
from posse.numerics.compiled import compiled
from posse.numerics.random import unit_vectors


class Actions(Protocol):
    """The action sets of n rounds and T tasks.

    A *choice* is whatever names one action per round and task: arm numbers (n, T) for finite sets,
    the actions themselves (n, T, d) for infinite ones. Where the sets are the same in every round, a
    choice (1, T, d) stands for one action that is played in every round of the block.
    """

    @property
    def n_rounds(self) -> int:
        """The number of rounds, n."""

    @property
    def active(self) -> BoolArray | None:
        """Which tasks play in which round, (n, T); None when all do."""

    def rounds(self, start: int, stop: int) -> Actions:
        """Return the action sets of the rounds start, ..., stop - 1."""

    def argmax(self, theta: Array, rng: np.random.Generator) -> NDArray[Any]:
        """Return the choice that maximises <x, theta>; ties are broken at random."""

    def features(self, choice: NDArray[Any]) -> Array:
        """Return the feature vectors of a choice, (n, T, d)."""


class FiniteSets(ABC):
    """What finite action sets have in common, however they hold their arms.

    A subclass has `arms` (n, T, K, d), the feature vectors on offer, and knows their `shape` without
    making them. `available` (n, T, K) is False where an arm is not on offer, and None when all are.
    """

    available: BoolArray | None = None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """The numbers (n, T, K, d) of rounds, tasks, arms and features."""

    @abstractmethod
    def _products(self, theta: Array) -> Array:
        """Return <x, theta> of every arm, (n, T, K)."""

    @property
    def n_rounds(self) -> int:
        """The number of rounds, n."""
        return self.shape[0]

    @property
    def active(self) -> BoolArray | None:
        """Which tasks have an arm to play, (n, T); None when all do."""
        return None if self.available is None else np.asarray(self.available.any(axis=2))

    def scores(self, theta: Array) -> Array:
        """Return <x, theta> of every arm, (n, T, K), minus infinity where an arm is not on offer.

        Parameters
        ----------
        theta : (T, d) or (n, T, d)
        """
        n, n_tasks, _, dim = self.shape
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape not in ((n_tasks, dim), (n, n_tasks, dim)):
            raise ValueError(
                f"theta for arms of shape {self.shape} must be (T, d) or (n, T, d). Got {theta.shape}."
            )
        scores = self._products(theta)
        if self.available is not None:
            scores[~self.available] = -np.inf
        return scores

    @abstractmethod
    def lengths(self, root: Array) -> Array:
        """Return |root_t'x| of every arm, (n, T, K): its standard deviation under V_t = root_t root_t'.

        Parameters
        ----------
        root : (T, d, m)
        """

    def argmax(self, theta: Array, rng: np.random.Generator) -> IntArray:
        """Return the arm with the largest score, (n, T); ties are broken at random.

        Only rounds with a tie consume random numbers, one each, in order of the rounds: the result
        does not depend on how the rounds are cut into calls.
        """
        return choose_best(self.scores(theta), rng)

    def _check(self, choice: IntArray) -> None:
        n, n_tasks, n_arms, _ = self.shape
        if np.shape(choice) != (n, n_tasks) or choice.dtype.kind not in "iu":
            raise ValueError(f"a choice must be arm numbers of shape {(n, n_tasks)}. Got {choice!r}.")
        wrong = (choice < 0) | (choice >= n_arms)
        if self.available is not None:
            inside = np.where(wrong, 0, choice)
            offered = np.take_along_axis(self.available, inside[..., None], axis=2)[..., 0]
            wrong = np.where(self.available.any(axis=2), wrong | ~offered, choice != -1)
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"a choice must be an arm on offer, or -1 where there is none. Got arm {choice[where]} "
                f"in round {where[0]} of the block, task {where[1]}."
            )


@dataclass(frozen=True, eq=False)
class FiniteActions(FiniteSets):
    """Finite action sets: K arms with d features each.

    Attributes
    ----------
    arms : (n, T, K, d)
        The feature vectors on offer.
    available : (n, T, K), optional
        False marks an arm that is not on offer. Tasks with fewer arms than others are padded and
        masked; a task with no arm on offer sits the round out and its choice is -1.

    Examples
    --------
    >>> offered = FiniteActions(np.array([[[[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]]]]),
    ...                         available=np.array([[[True, True, False]]]))
    >>> offered.argmax(np.array([[0.2, 0.5]]), np.random.default_rng(0))
    array([[1]])
    """

    arms: Array
    available: BoolArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", np.asarray(self.arms, dtype=np.float64))
        if self.arms.ndim != 4:
            raise ValueError(f"`arms` of FiniteActions must have shape (n, T, K, d). Got {self.arms.shape}.")
        if self.available is not None and self.available.dtype != np.bool_:
            raise ValueError(f"`available` of FiniteActions must be of bool. Got {self.available.dtype}.")
        if self.available is not None and self.available.shape != self.arms.shape[:3]:
            expected, found = self.arms.shape[:3], self.available.shape
            raise ValueError(f"`available` of FiniteActions must have shape {expected}. Got {found}.")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The numbers (n, T, K, d) of rounds, tasks, arms and features."""
        n, n_tasks, n_arms, dim = self.arms.shape
        return n, n_tasks, n_arms, dim

    def rounds(self, start: int, stop: int) -> FiniteActions:
        """Return the action sets of the rounds start, ..., stop - 1, without copying."""
        available = None if self.available is None else self.available[start:stop]
        return FiniteActions(self.arms[start:stop], available)

    def features(self, choice: IntArray) -> Array:
        """Return the feature vectors of the chosen arms, (n, T, d), if they are on offer."""
        n, n_tasks, n_arms, dim = self.shape
        self._check(choice)
        rows = np.arange(n * n_tasks).reshape(n, n_tasks) * n_arms + np.maximum(choice, 0)
        return np.asarray(self.arms.reshape(-1, dim).take(rows, axis=0))

    def lengths(self, root: Array) -> Array:
        """Return |root_t'x| of every arm, (n, T, K)."""
        return np.asarray(np.linalg.norm(self.arms @ root, axis=3))

    def _products(self, theta: Array) -> Array:
        scores = np.empty(self.arms.shape[:3])
        # in one layout, because sums that are taken in another order round differently
        arms, theta = np.ascontiguousarray(self.arms), np.ascontiguousarray(theta)
        inner_products(arms, theta if theta.ndim == 3 else theta[None], scores)
        return scores


@dataclass(frozen=True, eq=False)
class PooledActions(FiniteSets):
    """Finite action sets whose arms are rows of one pool: only the row numbers differ from round to round.

    Attributes
    ----------
    pool : (m, d)
        Feature vectors, shared by all rounds and tasks and never copied as a whole. They may be of
        float32, to halve the memory; what is computed from them is of float64.
    index : (n, T, K)
        The rows on offer.

    Examples
    --------
    >>> pool = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]], dtype=np.float32)
    >>> offered = PooledActions(pool, np.array([[[0, 2]], [[0, 1]]]))
    >>> choice = offered.argmax(np.array([[0.2, 0.5]]), np.random.default_rng(0))
    >>> offered.rows(choice)
    array([[2],
           [1]])
    """

    pool: NDArray[np.floating[Any]]
    index: IntArray

    def __post_init__(self) -> None:
        if self.pool.ndim != 2 or self.pool.dtype.kind != "f":
            found = f"{self.pool.dtype} of shape {self.pool.shape}"
            raise ValueError(f"`pool` of PooledActions must be floats of shape (m, d). Got {found}.")
        if self.index.ndim != 3 or self.index.dtype.kind not in "iu":
            found = f"{self.index.dtype} of shape {self.index.shape}"
            raise ValueError(f"`index` of PooledActions must be integers of shape (n, T, K). Got {found}.")
        if self.index.size and not (self.index.min() >= 0 and self.index.max() < len(self.pool)):
            found = f"{self.index.min()} to {self.index.max()}"
            raise ValueError(f"`index` of PooledActions must lie in [0, {len(self.pool) - 1}]. Got {found}.")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The numbers (n, T, K, d) of rounds, tasks, arms and features."""
        n, n_tasks, n_arms = self.index.shape
        return n, n_tasks, n_arms, self.pool.shape[1]

    @property
    def arms(self) -> Array:
        """The feature vectors on offer, (n, T, K, d): copied from the pool at every call."""
        return self.pool[self.index].astype(np.float64)

    def rounds(self, start: int, stop: int) -> PooledActions:
        """Return the action sets of the rounds start, ..., stop - 1, without copying."""
        return PooledActions(self.pool, self.index[start:stop])

    def rows(self, choice: IntArray) -> IntArray:
        """Return the rows of the pool that are chosen, (n, T), if they are on offer."""
        self._check(choice)
        return np.take_along_axis(self.index, choice[..., None], axis=2)[..., 0]

    def features(self, choice: IntArray) -> Array:
        """Return the feature vectors of the chosen arms, (n, T, d), if they are on offer."""
        by_task = self.rows(choice).T
        features = np.empty((*by_task.shape, self.pool.shape[1]))
        for task, rows in enumerate(by_task):
            features[task] = self.pool[rows]
        return features.transpose(1, 0, 2)

    def lengths(self, root: Array) -> Array:
        """Return |root_t'x| of every arm, (n, T, K)."""
        lengths = np.empty(self.index.shape)
        for task in range(self.index.shape[1]):
            lengths[:, task] = np.linalg.norm(self.pool[self.index[:, task]] @ root[task], axis=2)
        return lengths

    def _products(self, theta: Array) -> Array:
        products = np.empty(self.index.shape)
        # task by task: a copy of all arms at once takes three times as long
        for task in range(self.index.shape[1]):
            products[:, task] = np.vecdot(self.pool[self.index[:, task]], theta[..., task, None, :])
        return products


@dataclass(frozen=True, eq=False)
class Ellipsoids:
    """The sets {x : x' Q_t^-1 x <= 1} of T tasks.

    Attributes
    ----------
    shapes : (T, d, d)
        Q_t; one matrix stands for all tasks if they are equal.
    inverses : (T, d, d)
        Q_t^-1.
    inner_radius : float
        Of the largest ball around 0 that fits into every set: the root of the least eigenvalue.
    """

    shapes: Array
    inverses: Array
    inner_radius: float
    n_tasks: int

    @classmethod
    def of(cls, shapes: ArrayLike, n_tasks: int, dim: int) -> Ellipsoids:
        """Check matrices (d, d), (1, d, d) or (T, d, d) and make the sets.

        Examples
        --------
        >>> Ellipsoids.of(np.diag([4.0, 9.0]), n_tasks=3, dim=2).inner_radius
        2.0
        """
        name = "`shapes` of an ellipsoid"
        stack = np.asarray(shapes, dtype=np.float64)
        if stack.ndim == 2:
            stack = stack[None]
        expected = (1 if len(stack) == 1 else n_tasks, dim, dim)
        stack = check_array(name, stack, expected)
        least = check_positive_definite(name, stack)
        inverses = np.asarray(np.linalg.inv(stack), dtype=np.float64)
        return cls(stack, inverses, float(np.sqrt(least)), n_tasks)

    def support(self, theta: Array) -> Array:
        """Return the largest <x, theta>, which is sqrt(theta' Q theta)."""
        return np.asarray(np.sqrt(np.maximum(np.vecdot(theta, np.matvec(self.shapes, theta)), 0.0)))

    def maximiser(self, theta: Array) -> Array:
        """Return Q theta / sqrt(theta' Q theta), the action with the largest <x, theta>; 0 for theta = 0."""
        best = self.support(theta)[..., None]
        return np.divide(np.matvec(self.shapes, theta), best, out=np.zeros_like(theta), where=best > 0)

    def gauge(self, actions: Array) -> Array:
        """Return x' Q^-1 x, which is at most 1 inside."""
        return np.asarray(np.vecdot(actions, np.matvec(self.inverses, actions)))

    def inner_sphere(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw uniformly on the largest sphere inside every set, (n, T, d)."""
        dim = self.shapes.shape[-1]
        directions = unit_vectors(n_rounds * self.n_tasks, dim, rng)
        return np.asarray(self.inner_radius * directions.reshape(n_rounds, self.n_tasks, dim))


@dataclass(frozen=True, eq=False)
class EllipsoidActions:
    """Infinite action sets: an ellipsoid per task, the same in every round.

    Examples
    --------
    >>> offered = EllipsoidActions(Ellipsoids.of(np.diag([4.0, 1.0]), n_tasks=1, dim=2), n_rounds=7)
    >>> offered.argmax(np.array([[1.0, 0.0]]), np.random.default_rng(0))
    array([[[2., 0.]]])
    """

    ellipsoids: Ellipsoids
    n_rounds: int

    @property
    def active(self) -> None:
        """Every task plays in every round."""
        return None

    def rounds(self, start: int, stop: int) -> EllipsoidActions:
        """Return the action sets of the rounds start, ..., stop - 1."""
        return replace(self, n_rounds=stop - start)

    def argmax(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return the maximiser of <x, theta>: (1, T, d) for theta (T, d), else (n, T, d).

        Where theta is zero all actions tie: one is drawn uniformly on the inner sphere, for each round.
        """
        stack = theta if theta.ndim == 3 else theta[None]
        tied = np.asarray(~stack.any(axis=2))
        if not tied.any():
            return self.ellipsoids.maximiser(stack)
        drawn = self.ellipsoids.inner_sphere(self.n_rounds, rng)
        return np.where(tied[..., None], drawn, self.ellipsoids.maximiser(stack))

    def features(self, choice: Array) -> Array:
        """Return the actions themselves, (n, T, d), if they lie in their sets."""
        outside = self.ellipsoids.gauge(choice)
        if outside.max() > 1 + 1e-9:
            where = np.unravel_index(int(outside.argmax()), outside.shape)
            raise ValueError(
                f"an action must satisfy x'Q^-1 x <= 1. Got {outside.max():.6g} in task {int(where[1])}."
            )
        shape = (self.n_rounds, *choice.shape[1:])
        return np.broadcast_to(choice, shape)


def choose_best(scores: Array, rng: np.random.Generator) -> IntArray:
    """Return the index of the largest score on the last axis, ties broken at random; -1 if all are -inf."""
    choice: IntArray = scores.argmax(axis=-1)
    best = np.take_along_axis(scores, choice[..., None], axis=-1)[..., 0]
    if np.isnan(best).any():
        where = tuple(int(i) for i in np.argwhere(np.isnan(scores))[0])
        raise ValueError(f"scores of arms must be numbers. Got nan at index {where}.")
    # the first and the last of the largest scores differ where there is a tie
    rows = (scores[..., ::-1].argmax(axis=-1) != scores.shape[-1] - 1 - choice) & ~np.isneginf(best)
    if rows.any():
        candidates = scores[rows] == best[rows][:, None]
        rank = np.floor(rng.random(len(candidates)) * candidates.sum(axis=1)).astype(np.intp)
        choice[rows] = (candidates.cumsum(axis=1) > rank[:, None]).argmax(axis=1)
    choice[np.isneginf(best)] = -1
    return choice


@partial(compiled, any_order=True)
def inner_products(arms: Array, theta: Array, scores: Array) -> None:
    """Fill `scores` (n, T, K) with <x, theta_t> of arms (n, T, K, d), for theta (n, T, d) or (1, T, d)."""
    n_rounds, n_tasks, n_arms, dim = arms.shape
    same = len(theta) == 1
    for i in range(n_rounds):
        row = 0 if same else i
        for t in range(n_tasks):
            for j in range(n_arms):
                total = 0.0
                for m in range(dim):
                    total += arms[i, t, j, m] * theta[row, t, m]
                scores[i, t, j] = total
