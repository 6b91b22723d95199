"""Problems on which greedy play or sharing has a hard time, each for one reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from posse.core.actions import FiniteActions
from posse.numerics.checks import Array, check_array, check_integer, check_orthonormal, make_generator
from posse.numerics.random import haar_basis, unit_vectors
from posse.problems.linear import FiniteLinearTasks
from posse.problems.parameters import MOST, TaskSettings, draw_tasks

SAFE_REWARD = 0.2
# root mean square of what a risky arm of GreedyTrap pays more, or less, than the safe one
RISK = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedArms(FiniteLinearTasks):
    """T linear bandits whose arms never change: no diversity of contexts.

    A greedy policy that has settled on an arm learns nothing about those it does not play.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task.
    arms : (T, K, d) or (K, d)
        What every round offers, by task or to all alike.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian.

    Examples
    --------
    >>> problem = FixedArms(theta=np.array([[1.0, 0.0], [0.0, 1.0]]), arms=np.eye(2))
    >>> offered = problem.actions(1000, np.random.default_rng(0))
    >>> offered.arms.shape, offered.arms.base.shape
    ((1000, 2, 2, 2), (2, 2))
    """

    arms: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = (self.n_tasks, "K", self.dim) if np.ndim(self.arms) == 3 else ("K", self.dim)
        object.__setattr__(self, "arms", check_array("`arms` of FixedArms", self.arms, shape))

    @classmethod
    def draw(cls, *, n_arms: int = 10, **tasks: Unpack[TaskSettings]) -> FixedArms:
        """Draw parameters, and for every task arms of its own, uniform on the unit sphere of R^d.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        noise_kind, structure : str
            A name of `NOISE_KINDS`, "gaussian" by default, and one of `STRUCTURES`, "low-rank" by default.
        n_arms : int
            K.
        """
        check_integer("`n_arms` of FixedArms", n_arms, 1, MOST)
        theta, noise_kind, rng = draw_tasks("FixedArms", **tasks)
        n_tasks, dim = theta.shape
        arms = unit_vectors(n_tasks * n_arms, dim, rng).reshape(n_tasks, n_arms, dim)
        return cls(theta=theta, arms=arms, noise_kind=noise_kind)

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return int(self.arms.shape[-2])

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Return the arms, which are the same in every round and not copied; nothing is drawn."""
        return FiniteActions(np.broadcast_to(self.arms, (n_rounds, self.n_tasks, self.n_arms, self.dim)))


@dataclass(frozen=True, eq=False, kw_only=True)
class NarrowContexts(FiniteLinearTasks):
    """T linear bandits that each see a few directions alone: their arms lie in a window of dimension m.

    Each round offers K arms x = V_t z with z ~ N(0, I/m), so that |x|^2 is 1 on average, as in
    `GaussianProblem`. What a task learns says nothing about theta outside its window.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task.
    windows : (T, d, m)
        V_t, with orthonormal columns.
    n_arms : int
        K, the arms on offer in each round.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian.

    Examples
    --------
    >>> problem = NarrowContexts.draw(n_tasks=4, dim=9, rank=2, seed=0, n_directions=3)
    >>> arms = problem.actions(5, np.random.default_rng(0)).arms
    >>> arms.shape, int(np.linalg.matrix_rank(arms[:, 0].reshape(-1, 9)))
    ((5, 4, 5, 9), 3)
    """

    windows: Array
    n_arms: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        name = "`windows` of NarrowContexts"
        windows = check_array(name, self.windows, (self.n_tasks, self.dim, "m"))
        check_orthonormal(name, windows)
        object.__setattr__(self, "windows", windows)
        check_integer("`n_arms` of NarrowContexts", self.n_arms, 1, MOST)

    @classmethod
    def draw(cls, *, n_directions: int = 3, n_arms: int = 5, **tasks: Unpack[TaskSettings]) -> NarrowContexts:
        """Draw parameters, and for every task a Haar-distributed window.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        noise_kind, structure : str
            A name of `NOISE_KINDS`, "gaussian" by default, and one of `STRUCTURES`, "low-rank" by default.
        n_directions : int
            m, at most d.
        n_arms : int
            K.
        """
        theta, noise_kind, rng = draw_tasks("NarrowContexts", **tasks)
        n_tasks, dim = theta.shape
        check_integer("`n_directions` of NarrowContexts", n_directions, 1, dim, high_name="dim")
        windows = np.stack([haar_basis(dim, n_directions, rng) for _ in range(n_tasks)])
        return cls(theta=theta, windows=windows, n_arms=n_arms, noise_kind=noise_kind)

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Draw K arms in the window of each task, for each round."""
        n_directions = self.windows.shape[2]
        inside = rng.standard_normal((n_rounds, self.n_tasks, self.n_arms, n_directions))
        return FiniteActions(inside @ (self.windows.mT / np.sqrt(n_directions)))


@dataclass(frozen=True, eq=False, kw_only=True)
class GreedyTrap(FiniteLinearTasks):
    """T linear bandits built against greedy play: every round offers a safe arm and a risky one.

    The safe arm is e_1; the risky one is e_j, where j runs through 2, ..., d in turn, alike for all
    tasks. The features of different arms are orthogonal, so that playing one tells nothing about
    another. A good risky arm that was unlucky, or that was not tried while the policy knew nothing,
    looks worse than the safe one; greedy play then never tries it again, and pays for it whenever
    its turn comes.

    Parameters
    ----------
    theta : (T, d)
        The rewards of the arms: the safe one first, d at least 2.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian.

    Examples
    --------
    >>> problem = GreedyTrap(theta=np.array([[0.2, 1.0, -1.0]]))
    >>> problem.actions(3, np.random.default_rng(0)).arms[:, 0, 1]
    array([[0., 1., 0.],
           [0., 0., 1.],
           [0., 1., 0.]])
    """

    n_arms: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim < 2:
            raise ValueError(f"`theta` of GreedyTrap must have at least 2 columns. Got {self.dim}.")

    @classmethod
    def draw(
        cls,
        *,
        n_tasks: int,
        dim: int,
        rank: int,
        seed: int | np.random.Generator,
        noise_kind: str = "gaussian",
    ) -> GreedyTrap:
        """Draw risky rewards around the safe one, which is 0.2, so that half of them are better on average.

        Task t gains 0.5 sqrt(k - 1) <a_j, v_t> by the risky arm j over the safe one, with a_j and v_t
        uniform on the unit sphere of R^(k-1): a root mean square of 0.5. Theta is of rank k.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k from 2, as tasks of rank 1 would all be the same, to min(d, T).
        seed : int or numpy Generator
        noise_kind : {"gaussian", "uniform", "rademacher"}
            The noise of rewards.
        """
        rng = make_generator("`seed` of GreedyTrap", seed)
        check_integer("`n_tasks` of GreedyTrap", n_tasks, 2, MOST)
        check_integer("`dim` of GreedyTrap", dim, 2, MOST)
        most = f"min(dim={dim}, n_tasks={n_tasks})"
        check_integer("`rank` of GreedyTrap", rank, 2, min(dim, n_tasks), high_name=most)
        sides = unit_vectors(dim - 1, rank - 1, rng)
        tastes = unit_vectors(n_tasks, rank - 1, rng)
        theta = np.full((n_tasks, dim), SAFE_REWARD)
        theta[:, 1:] += RISK * np.sqrt(rank - 1) * tastes @ sides.T
        return cls(theta=theta, noise_kind=noise_kind)

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Return the arms of the first rounds; nothing is drawn."""
        return self.actions_from(0, n_rounds, rng)

    def actions_from(self, start: int, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Return the arms of the rounds start, ..., start + n_rounds - 1; nothing is drawn."""
        risky = 1 + np.arange(start, start + n_rounds) % (self.dim - 1)
        arms = np.eye(self.dim)[np.stack([np.zeros_like(risky), risky], axis=1)]
        return FiniteActions(np.broadcast_to(arms[:, None], (n_rounds, self.n_tasks, 2, self.dim)))
