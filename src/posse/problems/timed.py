"""Problems that change with the round: tasks that join late, a representation that moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np

from posse.core.actions import FiniteActions
from posse.core.protocols import Problem, deal_actions
from posse.numerics.checks import (
    Array,
    IntArray,
    check_array,
    check_choice,
    check_integer,
    check_number,
    check_orthonormal,
    make_generator,
)
from posse.numerics.random import haar_basis, unit_vectors
from posse.problems.gaussian import GaussianProblem
from posse.problems.linear import scores_of_choice
from posse.problems.noise import NOISE_KINDS, draw_noise
from posse.problems.parameters import MOST, TaskSettings, draw_tasks


@dataclass(frozen=True, eq=False)
class TimedActions(FiniteActions):
    """Finite action sets that know when they are on offer.

    Attributes
    ----------
    arms : (n, T, K, d)
        The feature vectors on offer.
    available : (n, T, K), optional
        False marks an arm that is not on offer.
    first : int
        The number of the first round, counted from 0.

    Examples
    --------
    >>> TimedActions(np.ones((8, 1, 2, 3)), first=32).rounds(5, 8).times
    array([37, 38, 39])
    """

    first: int = 0

    @property
    def times(self) -> IntArray:
        """The numbers of the rounds, (n,)."""
        return self.first + np.arange(self.n_rounds)

    def rounds(self, start: int, stop: int) -> TimedActions:
        """Return the action sets of the rounds start, ..., stop - 1 of these, without copying."""
        some = super().rounds(start, stop)
        return TimedActions(some.arms, some.available, self.first + start)


@dataclass(frozen=True, eq=False, kw_only=True)
class LateTasks:
    """A problem some of whose tasks join later: before that they sit out, and have no regret.

    Can a newcomer use what the others have learned? And do the others, once it is there, gain by it?

    Parameters
    ----------
    problem : Problem
        What is played. Its action sets must be `FiniteActions`.
    joins : (T,) integers
        The first round of each task, counted from 0.

    Examples
    --------
    >>> everyone = GaussianProblem.draw(n_tasks=2, dim=4, rank=1, seed=0)
    >>> problem = LateTasks(problem=everyone, joins=np.array([0, 2]))
    >>> problem.actions(3, np.random.default_rng(0)).active
    array([[ True, False],
           [ True, False],
           [ True,  True]])
    """

    problem: Problem
    joins: IntArray

    def __post_init__(self) -> None:
        joins = np.asarray(self.joins)
        name = "`joins` of LateTasks"
        if joins.dtype.kind not in "iu" or joins.shape != (self.n_tasks,):
            found = f"{joins.dtype} of shape {joins.shape}"
            raise ValueError(f"{name} must be integers of shape ({self.n_tasks},). Got {found}.")
        if joins.min() < 0:
            raise ValueError(f"{name} must not be negative. Got {joins.min()}.")
        object.__setattr__(self, "joins", joins.astype(np.intp))
        _ = self.n_arms  # a problem with other action sets is an error now, not in the first round

    @classmethod
    def draw(
        cls,
        *,
        share: float = 0.5,
        join: int = 1000,
        waves: int = 1,
        n_arms: int = 5,
        **tasks: Unpack[TaskSettings],
    ) -> LateTasks:
        """Draw a `GaussianProblem` whose last tasks join later; the others are there from the start.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        noise_kind, structure : str
            A name of `NOISE_KINDS`, "gaussian" by default, and one of `STRUCTURES`, "low-rank" by default.
        share : float
            Of the tasks, how many are late: from 0 to 1, rounded to whole tasks.
        join : int
            The round at which the first of them join, counted from 0.
        waves : int
            In how many groups they join, of equal size or nearly: at the rounds join, 2 join, 3 join, ...
        n_arms : int
            K.
        """
        check_number("`share` of LateTasks", share, 0.0, 1.0)
        check_integer("`join` of LateTasks", join, 0, MOST)
        check_integer("`waves` of LateTasks", waves, 1, MOST)
        theta, noise_kind, _ = draw_tasks("LateTasks", **tasks)
        problem = GaussianProblem(theta=theta, n_arms=n_arms, noise_kind=noise_kind)
        n_late = round(share * problem.n_tasks)
        joins = np.zeros(problem.n_tasks, dtype=np.intp)
        joins[problem.n_tasks - n_late :] = join * (1 + np.arange(n_late) * waves // max(n_late, 1))
        return cls(problem=problem, joins=joins)

    @property
    def worst_off(self) -> IntArray | None:
        """The newcomers, (m,): all tasks but those that join first. None if all join at once."""
        late = np.flatnonzero(self.joins > self.joins.min())
        return late if late.size else None

    @property
    def n_tasks(self) -> int:
        """The number of tasks, T, those that have not joined yet among them."""
        return self.problem.n_tasks

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return self.problem.dim

    @cached_property
    def n_arms(self) -> int:
        """The number of arms, K."""
        offered = self.problem.actions(1, np.random.default_rng(0))
        if not isinstance(offered, FiniteActions):
            found = type(offered).__name__
            raise ValueError(f"`problem` of LateTasks must offer FiniteActions. Got {found}.")
        return offered.shape[2]

    @property
    def basis(self) -> Array:
        """The basis of the problem, if it has one."""
        basis: Array = self.problem.basis  # type: ignore[attr-defined]
        return basis

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Draw the action sets of the first rounds."""
        return self.actions_from(0, n_rounds, rng)

    def actions_from(self, start: int, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Draw the problem's action sets, with no arm on offer to those who have not joined."""
        offered = deal_actions(self.problem, start, n_rounds, rng)
        assert isinstance(offered, FiniteActions)
        joined = np.arange(start, start + n_rounds)[:, None] >= self.joins
        everyone = np.ones(1, dtype=bool) if offered.available is None else offered.available
        return replace(offered, available=np.broadcast_to(joined[..., None] & everyone, offered.shape[:3]))

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw the problem's noise, (n, T), for tasks that sit out as well."""
        return self.problem.noise(n_rounds, rng)

    def mean_rewards(self, actions: FiniteActions, choice: IntArray) -> Array:
        """Return the problem's mean rewards, (n, T); where a task sits out, they mean nothing."""
        return self.problem.mean_rewards(actions, choice)

    def best_rewards(self, actions: FiniteActions) -> Array:
        """Return the problem's best rewards, (n, T)."""
        return self.problem.best_rewards(actions)

    def rewards(self, means: Array, noise: Array) -> Array:
        """Return the problem's rewards, (n, T)."""
        return self.problem.rewards(means, noise)


@dataclass(frozen=True, eq=False, kw_only=True)
class MovingBasis:
    """T linear bandits whose shared representation turns slowly: theta_t(n) = B(n) w_t.

    B(n) = B cos(a n) + C sin(a n) in round n, counted from 0: each column of B turns towards the same
    column of C. Each round offers K arms from N(0, I/d), and regret is against the best arm of the
    parameters of that round. There is no representation that an oracle could be told for good.

    Parameters
    ----------
    start : (d, k)
        B, with orthonormal columns.
    quarter : (d, k)
        C, the representation after a quarter of a turn: orthonormal, and orthogonal to B.
    weights : (T, k)
        w_t, one row per task.
    turn : float
        The angle, in radians per 1000 rounds.
    n_arms : int
        K, the arms on offer in each round.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian.

    Examples
    --------
    >>> problem = MovingBasis.draw(n_tasks=6, dim=5, rank=2, seed=0, turn=0.1)
    >>> first, later = problem.theta_at(np.array([0, 10_000]))
    >>> np.vecdot(first, later).round(4)  # the cosine of 1, as all rows have length 1
    array([0.5403, 0.5403, 0.5403, 0.5403, 0.5403, 0.5403])
    """

    start: Array
    quarter: Array
    weights: Array
    turn: float = 0.1
    n_arms: int = 5
    noise_kind: str = "gaussian"

    def __post_init__(self) -> None:
        start = check_array("`start` of MovingBasis", self.start, ("d", "k"))
        quarter = check_array("`quarter` of MovingBasis", self.quarter, start.shape)
        weights = check_array("`weights` of MovingBasis", self.weights, ("T", start.shape[1]))
        both = np.concatenate([start, quarter], axis=1)
        check_orthonormal("`start` and `quarter` of MovingBasis, side by side,", both)
        for name, factor in {"start": start, "quarter": quarter, "weights": weights}.items():
            object.__setattr__(self, name, factor)
        check_number("`turn` of MovingBasis", self.turn, 0.0)
        check_integer("`n_arms` of MovingBasis", self.n_arms, 1, MOST)
        check_choice("`noise_kind` of MovingBasis", self.noise_kind, NOISE_KINDS)

    @classmethod
    def draw(
        cls,
        *,
        n_tasks: int,
        dim: int,
        rank: int,
        seed: int | np.random.Generator,
        turn: float = 0.1,
        n_arms: int = 5,
        noise_kind: str = "gaussian",
    ) -> MovingBasis:
        """Draw B and C together, Haar-distributed, and w_t uniform on the unit sphere of R^k.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d / 2, T).
        seed : int or numpy Generator
        turn : float
            The angle, in radians per 1000 rounds.
        n_arms : int
            K, the arms on offer in each round.
        noise_kind : {"gaussian", "uniform", "rademacher"}
            The noise of rewards.
        """
        rng = make_generator("`seed` of MovingBasis", seed)
        check_integer("`n_tasks` of MovingBasis", n_tasks, 1, MOST)
        check_integer("`dim` of MovingBasis", dim, 2, MOST)
        most = f"min(dim={dim} // 2, n_tasks={n_tasks})"
        check_integer("`rank` of MovingBasis", rank, 1, min(dim // 2, n_tasks), high_name=most)
        start, quarter = np.split(haar_basis(dim, 2 * rank, rng), 2, axis=1)
        weights = unit_vectors(n_tasks, rank, rng)
        return cls(
            start=start, quarter=quarter, weights=weights, turn=turn, n_arms=n_arms, noise_kind=noise_kind
        )

    @property
    def n_tasks(self) -> int:
        """The number of tasks, T."""
        return int(self.weights.shape[0])

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.start.shape[0])

    def basis_at(self, rounds: IntArray) -> Array:
        """Return B(n) of some rounds, (n, d, k)."""
        angles = self.turn / 1000 * rounds[:, None, None]
        return np.asarray(np.cos(angles) * self.start + np.sin(angles) * self.quarter)

    def theta_at(self, rounds: IntArray) -> Array:
        """Return the parameters in some rounds, (n, T, d)."""
        return np.asarray(self.weights @ self.basis_at(rounds).mT)

    def actions(self, n_rounds: int, rng: np.random.Generator) -> TimedActions:
        """Draw the arms of the first rounds."""
        return self.actions_from(0, n_rounds, rng)

    def actions_from(self, start: int, n_rounds: int, rng: np.random.Generator) -> TimedActions:
        """Draw K arms from N(0, I/d) for each round and task, from round `start` on."""
        arms = rng.standard_normal((n_rounds, self.n_tasks, self.n_arms, self.dim))
        return TimedActions(arms / np.sqrt(self.dim), first=start)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw independent noise of variance 1, (n, T)."""
        return draw_noise(self.noise_kind, n_rounds, self.n_tasks, rng)

    def mean_rewards(self, actions: TimedActions, choice: IntArray) -> Array:
        """Return <x, theta_t(n)> of the chosen arms, (n, T)."""
        return scores_of_choice(actions, choice, self.theta_at(actions.times))

    def best_rewards(self, actions: TimedActions) -> Array:
        """Return the largest <x, theta_t(n)> on offer, (n, T)."""
        return np.asarray(actions.scores(self.theta_at(actions.times)).max(axis=2))

    def rewards(self, means: Array, noise: Array) -> Array:
        """Return means plus noise, (n, T)."""
        return means + noise
