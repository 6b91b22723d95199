"""How an estimate becomes a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions, FiniteSets, choose_best
from posse.core.estimate import Estimate
from posse.numerics.checks import Array, check_number

# Parameters are drawn for as many rounds at once as have about this many values.
DRAWN_VALUES = 2**22


@dataclass(frozen=True)
class Greedy:
    """Play what looks best; equal actions are chosen between at random."""

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Return argmax <x, theta_t>."""
        return actions.argmax(estimate.theta, rng)


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """Play what would be best if theta were a draw from its posterior, drawn anew for each task and round.

    Parameters
    ----------
    scale : float
        How many times the posterior's standard deviation the draws have: 0 is `Greedy`.

    Examples
    --------
    >>> from posse import FiniteActions
    >>> sure = Estimate(np.zeros((1, 2)), find_root=lambda: np.diag([0.0, 5.0])[None])
    >>> offered = FiniteActions(np.array([[[[1.0, 0.0], [0.0, 1.0]]]] * 8))
    >>> Thompson().choose(sure, offered, np.random.default_rng(0)).ravel()
    array([0, 1, 1, 1, 0, 1, 0, 0])
    """

    scale: float = 1.0
    needs_covariance: ClassVar = True

    def __post_init__(self) -> None:
        check_number("`scale` of Thompson", self.scale, 0.0)

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Draw theta and return argmax <x, theta_t>."""
        n_tasks, _, width = estimate.root.shape
        n_rounds = actions.n_rounds
        at_once = max(1, DRAWN_VALUES // (n_tasks * max(1, width)))
        choices = []
        for start in range(0, n_rounds, at_once):
            some = actions.rounds(start, min(start + at_once, n_rounds))
            choices.append(some.argmax(self._draw(estimate, some.n_rounds, rng), rng))
        return np.concatenate(choices)

    def _draw(self, estimate: Estimate, n_rounds: int, rng: np.random.Generator) -> Array:
        n_tasks, _, width = estimate.root.shape
        normal = rng.standard_normal((n_rounds, n_tasks, width))
        moved = estimate.root @ normal.transpose(1, 2, 0)
        return np.asarray(estimate.theta + self.scale * moved.transpose(2, 0, 1))


@dataclass(frozen=True, kw_only=True)
class UCB:
    """Play the arm of the largest upper confidence bound: <x, theta_t> + scale sqrt(x'V_t x).

    Parameters
    ----------
    scale : float
        How many standard deviations to be optimistic by: 0 is `Greedy`.

    Examples
    --------
    >>> from posse import FiniteActions
    >>> unsure = Estimate(np.array([[1.0, 0.0]]), find_root=lambda: np.diag([0.1, 2.0])[None])
    >>> offered = FiniteActions(np.array([[[[1.0, 0.0], [0.0, 1.0]]]]))
    >>> UCB(scale=1.0).choose(unsure, offered, np.random.default_rng(0))
    array([[1]])
    """

    scale: float = 2.0
    needs_covariance: ClassVar = True

    def __post_init__(self) -> None:
        check_number("`scale` of UCB", self.scale, 0.0)

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Return the argmax of the bound; equal arms are chosen between at random."""
        if not isinstance(actions, FiniteSets):
            raise ValueError(
                f"UCB plays finite action sets; Thompson plays all kinds. Got {type(actions).__name__}."
            )
        return choose_best(actions.scores(estimate.theta) + self.scale * actions.lengths(estimate.root), rng)
