"""What a task may play: every kind of set says which of its actions is best for theta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posse.validation import Array, BoolArray, IntArray


class Actions(Protocol):
    """The action sets of n rounds and T tasks.

    A *choice* is whatever names one action per round and task: arm numbers for finite sets.
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


@dataclass(frozen=True, eq=False)
class FiniteActions:
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
        if self.arms.ndim != 4:
            raise ValueError(f"`arms` of FiniteActions must have shape (n, T, K, d). Got {self.arms.shape}.")
        if self.available is not None and self.available.shape != self.arms.shape[:3]:
            expected, found = self.arms.shape[:3], self.available.shape
            raise ValueError(f"`available` of FiniteActions must have shape {expected}. Got {found}.")

    @property
    def n_rounds(self) -> int:
        """The number of rounds, n."""
        return int(self.arms.shape[0])

    @property
    def active(self) -> BoolArray | None:
        """Which tasks have an arm to play, (n, T); None when all do."""
        return None if self.available is None else np.asarray(self.available.any(axis=2))

    def rounds(self, start: int, stop: int) -> FiniteActions:
        """Return the action sets of the rounds start, ..., stop - 1, without copying."""
        available = None if self.available is None else self.available[start:stop]
        return FiniteActions(self.arms[start:stop], available)

    def scores(self, theta: Array) -> Array:
        """Return <x, theta> of every arm, (n, T, K), minus infinity where an arm is not on offer.

        Parameters
        ----------
        theta : (T, d) or (n, T, d)
        """
        scores: Array = np.vecdot(self.arms, theta[..., None, :])
        if self.available is not None:
            scores[~self.available] = -np.inf
        return scores

    def argmax(self, theta: Array, rng: np.random.Generator) -> IntArray:
        """Return the arm with the largest score, (n, T); ties are broken at random.

        Only rounds with a tie consume random numbers, one each, in order of the rounds: the result
        does not depend on how the rounds are cut into calls.
        """
        return choose_best(self.scores(theta), rng)

    def features(self, choice: IntArray) -> Array:
        """Return the feature vectors of the chosen arms, (n, T, d)."""
        n, n_tasks, n_arms, dim = self.arms.shape
        rows = np.arange(n * n_tasks).reshape(n, n_tasks) * n_arms + np.maximum(choice, 0)
        return np.asarray(self.arms.reshape(-1, dim).take(rows, axis=0))


def choose_best(scores: Array, rng: np.random.Generator) -> IntArray:
    """Return the index of the largest score on the last axis, ties broken at random; -1 if all are -inf."""
    best = scores.max(axis=-1, keepdims=True)
    tied = scores == best
    choice: IntArray = tied.argmax(axis=-1)
    rows = np.count_nonzero(tied, axis=-1) > 1
    if rows.any():
        candidates = tied[rows]
        rank = np.floor(rng.random(len(candidates)) * candidates.sum(axis=1)).astype(np.intp)
        choice[rows] = (candidates.cumsum(axis=1) > rank[:, None]).argmax(axis=1)
    choice[np.isneginf(best[..., 0])] = -1
    return choice
