"""What problems with linear rewards have in common: parameters, and noise that is added."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from posse.core.actions import FiniteActions
from posse.numerics.checks import Array, IntArray, check_array, check_choice
from posse.numerics.linalg import RANK_TOLERANCE
from posse.problems.noise import NOISE_KINDS, draw_noise


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTasks:
    """T tasks whose rewards are `<x, theta_t> + noise`.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian; "uniform" is on [-sqrt(3), sqrt(3)].
    odd : (m,) integers, optional
        Tasks known to have nothing to do with the others, if there are such: see `worst_off`.
    """

    theta: Array
    noise_kind: str = "gaussian"
    odd: IntArray | None = None

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "theta", check_array(f"`theta` of {owner}", self.theta, ("T", "d")))
        check_choice(f"`noise_kind` of {owner}", self.noise_kind, NOISE_KINDS)
        if self.odd is not None:
            object.__setattr__(self, "odd", check_tasks(f"`odd` of {owner}", self.odd, self.n_tasks))

    @property
    def worst_off(self) -> IntArray | None:
        """The tasks (m,) that sharing could hurt, known beforehand: `odd`; None if there are none."""
        return self.odd

    @property
    def n_tasks(self) -> int:
        """The number of tasks, T."""
        return int(self.theta.shape[0])

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.theta.shape[1])

    @cached_property
    def basis(self) -> Array:
        """Orthonormal columns that span the parameters, (d, rank of theta): what an oracle is told.

        Parameters that are not exactly of low rank may span all of R^d: then the oracle is told nothing.
        """
        return span_basis(self.theta)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw independent noise of variance 1, (n, T)."""
        return draw_noise(self.noise_kind, n_rounds, self.n_tasks, rng)

    def rewards(self, means: Array, noise: Array) -> Array:
        """Return means plus noise, (n, T)."""
        return means + noise


@dataclass(frozen=True, eq=False, kw_only=True)
class FiniteLinearTasks(LinearTasks):
    """T tasks with linear rewards and finite action sets."""

    def mean_rewards(self, actions: FiniteActions, choice: IntArray) -> Array:
        """Return <x, theta_t> of the chosen arms, (n, T)."""
        return scores_of_choice(actions, choice, self.theta)

    def best_rewards(self, actions: FiniteActions) -> Array:
        """Return the largest <x, theta_t> on offer, (n, T)."""
        return np.asarray(actions.scores(self.theta).max(axis=2))


def scores_of_choice(actions: FiniteActions, choice: IntArray, theta: Array) -> Array:
    """Return <x, theta_t> of the chosen arms, (n, T), with the rounding that the scores of all arms have."""
    return FiniteActions(actions.features(choice)[:, :, None]).scores(theta)[:, :, 0]


def check_tasks(name: str, value: ArrayLike, n_tasks: int) -> IntArray:
    """Return numbers of tasks, (m,), if they are different integers in [0, n_tasks), and at least one.

    Examples
    --------
    >>> check_tasks("`odd` of a test", [3, 1], 5)
    array([3, 1])
    """
    tasks = np.asarray(value)
    fits = tasks.ndim == 1 and tasks.size > 0 and tasks.dtype.kind in "iu"
    if not fits or not 0 <= tasks.min() <= tasks.max() < n_tasks or np.unique(tasks).size < tasks.size:
        raise ValueError(f"{name} must be different integers in [0, n_tasks={n_tasks}). Got {value!r}.")
    return tasks.astype(np.intp)


def span_basis(rows: Array) -> Array:
    """Return orthonormal columns that span the rows of a matrix (T, d), up to rounding.

    Examples
    --------
    >>> span_basis(np.array([[0.0, 3.0], [0.0, 1.0]])).shape
    (2, 1)
    """
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    rank = max(1, int(np.count_nonzero(values > RANK_TOLERANCE * values[0])))
    return np.ascontiguousarray(vectors[:rank].T)
