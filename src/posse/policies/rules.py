"""How an estimate becomes a choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions, FiniteSets, choose_best
from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.numerics.checks import Array, BoolArray, IntArray, check_integer, check_number
from posse.numerics.random import standard_normal
from posse.policies.chances import check_floor, sampled_chances, upper_chances

# Parameters are drawn for as many rounds at once as have about this many values.
DRAWN_VALUES = 2**22
# Rows are decided for as many at once as have about this many normal numbers: those stay in the cache.
FEW_VALUES = 2**16


@dataclass(frozen=True)
class Greedy:
    """Play what looks best; equal actions are chosen between at random."""

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Return argmax <x, theta_t>."""
        return actions.argmax(estimate.theta, rng)

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return equal probabilities for the best arms (m, K) of some tasks, 0 for all others."""
        return _upper(0.0, beliefs, tasks, arms, available)


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """Play what would be best if theta were a draw from its posterior, drawn anew for each task and round.

    Parameters
    ----------
    scale : float
        How many times the posterior's standard deviation the draws have: 0 is `Greedy`.
    draws : int
        How many draws a decision is made from where its probabilities are asked for: with s the share of
        draws that an arm wins, p = f + (1 - K f) s, and the arm is drawn from p. So p is exact, and with
        f = 0 the law is that of a single draw, whatever their number.
    floor : float
        f, the least probability of every arm on offer.

    Examples
    --------
    >>> from posse import FiniteActions
    >>> from posse.core.posterior import KnownPosterior
    >>> sure = Estimate(np.zeros((1, 2)), posterior=KnownPosterior(np.diag([0.0, 5.0])[None]))
    >>> offered = FiniteActions(np.array([[[[1.0, 0.0], [0.0, 1.0]]]] * 8))
    >>> Thompson().choose(sure, offered, np.random.default_rng(0)).ravel()
    array([0, 1, 1, 1, 0, 1, 0, 0])
    """

    scale: float = 1.0
    draws: int = 64
    floor: float = 0.0
    needs_covariance: ClassVar = True

    def __post_init__(self) -> None:
        check_number("`scale` of Thompson", self.scale, 0.0)
        check_integer("`draws` of Thompson", self.draws, 1)
        check_number("`floor` of Thompson", self.floor, 0.0, 1.0)

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Draw theta and return argmax <x, theta_t>."""
        n_tasks, _, width = estimate.root.shape
        n_rounds = actions.n_rounds
        at_once = max(1, DRAWN_VALUES // (n_tasks * max(1, width)))
        choices = []
        for start in range(0, n_rounds, at_once):
            some = actions.rounds(start, min(start + at_once, n_rounds))
            best = some.argmax(self._draw(estimate, some.n_rounds, rng), rng)
            choices.append(best if self.floor == 0.0 else self._explored(best, some, rng))
        return np.concatenate(choices)

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return f + (1 - K f) s for every arm (m, K) of some tasks, from draws made now."""
        check_floor(self.floor, arms, available)
        chances = np.empty(arms.shape[:2])
        size = arms.shape[2] * self.draws
        at_once = max(1, FEW_VALUES // size)
        for start in range(0, len(arms), at_once):
            rows = slice(start, start + at_once)
            some = arms[rows]
            normal = standard_normal((len(some), arms.shape[2], self.draws), rng)
            offered = available[rows] if available.size else available
            sampled_chances(
                *beliefs.parts, self.scale, self.floor, tasks[rows], some, offered, normal, chances[rows]
            )
        return chances

    def _explored(self, best: NDArray[Any], actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Replace choices by uniform ones, with probability K f."""
        if not isinstance(actions, FiniteSets):
            raise ValueError(
                f"`floor` of Thompson must be 0 where actions are not a list. Got {self.floor}, and "
                f"{type(actions).__name__}."
            )
        n_arms = actions.shape[2] if actions.available is None else actions.available.sum(axis=2)
        if np.max(n_arms) * self.floor > 1.0:
            raise ValueError(
                f"`floor` of Thompson must be at most 1 / K for K = {np.max(n_arms)} arms on offer. "
                f"Got {self.floor}."
            )
        any_arm = actions.argmax(np.zeros((actions.shape[1], actions.shape[3])), rng)
        return np.where(rng.random(best.shape) < n_arms * self.floor, any_arm, best)

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
    >>> from posse.core.posterior import KnownPosterior
    >>> posterior = KnownPosterior(np.diag([0.1, 2.0])[None])
    >>> unsure = Estimate(np.array([[1.0, 0.0]]), posterior=posterior)
    >>> offered = FiniteActions(np.array([[[[1.0, 0.0], [0.0, 1.0]]]]))
    >>> UCB(scale=1.0).choose(unsure, offered, np.random.default_rng(0))
    array([[1]])
    """

    scale: float = 1.0
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

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return equal probabilities for the arms (m, K) of the largest bound of some tasks, 0 for others."""
        return _upper(self.scale, beliefs, tasks, arms, available)


@dataclass(frozen=True, kw_only=True)
class ByActions:
    """Play as suits what is on offer: upper confidence bounds where it is a list, else Thompson sampling.

    Parameters
    ----------
    finite : UCB
        The rule for finite action sets.
    other : Thompson
        The rule for all others, such as ellipsoids.

    Examples
    --------
    >>> from posse import FiniteActions
    >>> from posse.core.posterior import KnownPosterior
    >>> unsure = Estimate(np.array([[1.0, 0.0]]), posterior=KnownPosterior(np.diag([0.1, 2.0])[None]))
    >>> offered = FiniteActions(np.array([[[[1.0, 0.0], [0.0, 1.0]]]]))
    >>> ByActions().choose(unsure, offered, np.random.default_rng(0))
    array([[1]])
    """

    finite: UCB = field(default_factory=UCB)
    other: Thompson = field(default_factory=Thompson)
    needs_covariance: ClassVar = True

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Return what the rule for these actions chooses."""
        rule = self.finite if isinstance(actions, FiniteSets) else self.other
        return rule.choose(estimate, actions, rng)

    def chances(
        self, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray, rng: np.random.Generator
    ) -> Array:
        """Return the probabilities of the arms (m, K) by the rule for finite sets, as arms are a list."""
        return self.finite.chances(beliefs, tasks, arms, available, rng)


def _upper(scale: float, beliefs: Beliefs, tasks: IntArray, arms: Array, available: BoolArray) -> Array:
    chances = np.empty(arms.shape[:2])
    upper_chances(*beliefs.parts, scale, tasks, arms, available, chances)
    return chances
