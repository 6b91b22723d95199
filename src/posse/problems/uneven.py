"""Problems as real data pose them: unequal noise and units, intercepts, features of all sizes, clicks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import numpy as np

from posse.core.actions import FiniteActions
from posse.numerics.checks import Array, IntArray, check_array, check_integer, check_number
from posse.problems.linear import FiniteLinearTasks, scores_of_choice
from posse.problems.parameters import MOST, TaskSettings, draw_tasks, odd_tasks

# Of the tasks, how many are watched as the quietest.
QUIET_SHARE = 0.2
# every so many features one is stretched
STRETCHED_STEP = 5
# standard deviation of a task's own base rate around that of all
RATE_SPREAD = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class UnevenTasks(FiniteLinearTasks):
    """T linear bandits with Gaussian contexts that are not all alike: in noise, in units, or in features.

    Each round offers K arms x with x_i = scale_i z_i and z ~ N(0, I/d), as `GaussianProblem` has them; with
    an intercept x_1 is the constant 1. The reward is `<x, theta_t> + s_t e`, with e of variance 1.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task, in the task's unit.
    noise_levels : (T,)
        s_t, the standard deviation of each task's rewards, in the task's unit.
    units : (T,), optional
        What the rewards of each task are measured in, if that differs. Regrets of tasks are compared only
        once they are divided by it.
    scales : (d,), optional
        What each feature is multiplied by; ones, if it is not given.
    intercept : bool
        Whether the first feature is the constant 1.
    n_arms : int
        K, the arms on offer in each round.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1, before it is multiplied.
    odd : (m,) integers, optional
        Tasks known to have nothing to do with the others.

    Examples
    --------
    >>> problem = UnevenTasks.draw(n_tasks=5, dim=4, rank=2, seed=0, quietest=0.2, loudest=5.0)
    >>> problem.noise_levels.round(2), problem.worst_off
    (array([2.24, 1.  , 0.45, 5.  , 0.2 ]), array([4]))
    >>> problem = UnevenTasks.draw(n_tasks=5, dim=4, rank=2, seed=0, intercept=True)
    >>> problem.actions(1, np.random.default_rng(0)).arms[0, 0, :, 0]
    array([1., 1., 1., 1., 1.])
    """

    noise_levels: Array
    units: Array | None = None
    scales: Array | None = None
    intercept: bool = False
    n_arms: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("`n_arms` of UnevenTasks", self.n_arms, 1, MOST)
        sizes = {"noise_levels": self.n_tasks, "units": self.n_tasks, "scales": self.dim}
        for name, size in sizes.items():
            given = getattr(self, name)
            if given is None:
                continue
            values = check_array(f"`{name}` of UnevenTasks", given, (size,))
            if values.min() <= 0:
                raise ValueError(f"`{name}` of UnevenTasks must be above 0. Got {values.min():g}.")
            object.__setattr__(self, name, values)

    @classmethod
    def draw(
        cls,
        *,
        quietest: float = 1.0,
        loudest: float = 1.0,
        smallest: float = 1.0,
        largest: float = 1.0,
        intercept: bool = False,
        level: float = 2.0,
        stretch: float = 1.0,
        n_arms: int = 5,
        **tasks: Unpack[TaskSettings],
    ) -> UnevenTasks:
        """Draw parameters of a structure, and what is uneven: by default nothing, a `GaussianProblem`.

        Noise and units are spread geometrically between their ends, and dealt to the tasks at random.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        noise_kind, structure : str
            A name of `NOISE_KINDS`, "gaussian" by default, and one of `STRUCTURES`, "low-rank" by default.
        quietest, loudest : float
            The least and the largest standard deviation of rewards.
        smallest, largest : float
            The least and the largest factor that multiplies a task's parameters and its noise alike.
        intercept : bool
            Whether the first feature is the constant 1; its parameter is then `level` plus N(0, 1).
        level : float
            The mean of the intercepts, if there are any.
        stretch : float
            What every fifth feature from the second on is multiplied by; the parameter is divided by it.
        n_arms : int
            K, the arms on offer in each round.
        """
        theta, noise_kind, rng = draw_tasks("UnevenTasks", **tasks)
        n_tasks, dim = theta.shape
        check_number("`stretch` of UnevenTasks", stretch, 0.0, open_low=True)
        check_array("`level` of UnevenTasks", level, ())
        levels = _spread("quietest", quietest, "loudest", loudest, n_tasks, rng)
        units = _spread("smallest", smallest, "largest", largest, n_tasks, rng)
        if intercept:
            theta[:, 0] = level + rng.standard_normal(n_tasks)
        scales = np.where(np.arange(dim) % STRETCHED_STEP == min(1, dim - 1), stretch, 1.0)
        return cls(
            theta=units[:, None] * theta / scales,
            noise_levels=units * levels,
            units=units if smallest < largest else None,
            scales=scales,
            intercept=intercept,
            n_arms=n_arms,
            noise_kind=noise_kind,
            odd=odd_tasks(tasks.get("structure", ""), n_tasks),
        )

    @cached_property
    def worst_off(self) -> IntArray | None:
        """The tasks (m,) that sharing could hurt: the quietest fifth if noise differs, else `odd`."""
        noise = self.noise_levels if self.units is None else self.noise_levels / self.units
        if np.ptp(noise) <= 1e-9 * noise.max():
            return self.odd
        return np.sort(np.argsort(noise, kind="stable")[: max(1, round(QUIET_SHARE * self.n_tasks))])

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Draw K arms for each round and task, scaled, with the constant first if there is an intercept."""
        arms = rng.standard_normal((n_rounds, self.n_tasks, self.n_arms, self.dim))
        arms *= (1.0 if self.scales is None else self.scales) / np.sqrt(self.dim)
        if self.intercept:
            arms[..., 0] = 1.0
        return FiniteActions(arms)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw independent noise of each task's own standard deviation, (n, T)."""
        return super().noise(n_rounds, rng) * self.noise_levels


@dataclass(frozen=True, eq=False, kw_only=True)
class Clicks(FiniteLinearTasks):
    """T bandits whose rewards are 0 or 1, with a probability that is linear in the features.

    Each round offers K arms whose first feature is the constant 1 and whose others are drawn from
    N(0, I/d). Arm x pays 1 with the probability <x, theta_t>, cut off at 0 and 1, and 0 otherwise.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task: a base rate first.
    n_arms : int
        K, the arms on offer in each round.
    odd : (m,) integers, optional
        Tasks known to have nothing to do with the others.

    Examples
    --------
    >>> problem = Clicks.draw(n_tasks=3, dim=4, rank=2, seed=0)
    >>> chances = problem.best_rewards(problem.actions(2, np.random.default_rng(0)))
    >>> problem.rewards(chances, problem.noise(2, np.random.default_rng(1)))
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """

    n_arms: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("`n_arms` of Clicks", self.n_arms, 1, MOST)

    @classmethod
    def draw(
        cls,
        *,
        n_tasks: int,
        dim: int,
        rank: int,
        seed: int | np.random.Generator,
        structure: str = "low-rank",
        rate: float = 0.5,
        strength: float = 0.5,
        n_arms: int = 5,
    ) -> Clicks:
        """Draw parameters of a structure, and for every task a base rate of its own.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        structure : str
            One of `STRUCTURES`.
        rate : float
            The mean of the base rates, from 0 to 1. Each is normal around it, with standard deviation 0.1,
            and moved into [0, 1].
        strength : float
            What the parameters of the other features are multiplied by.
        n_arms : int
            K, the arms on offer in each round.
        """
        check_number("`rate` of Clicks", rate, 0.0, 1.0)
        check_number("`strength` of Clicks", strength, 0.0)
        theta, _, rng = draw_tasks(
            "Clicks", n_tasks=n_tasks, dim=dim, rank=rank, seed=seed, structure=structure
        )
        theta *= strength
        theta[:, 0] = np.clip(rate + RATE_SPREAD * rng.standard_normal(n_tasks), 0.0, 1.0)
        return cls(theta=theta, n_arms=n_arms, odd=odd_tasks(structure, n_tasks))

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Draw K arms for each round and task, the constant first."""
        arms = rng.standard_normal((n_rounds, self.n_tasks, self.n_arms, self.dim)) / np.sqrt(self.dim)
        arms[..., 0] = 1.0
        return FiniteActions(arms)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Draw numbers that are uniform on [0, 1), (n, T)."""
        return rng.random((n_rounds, self.n_tasks))

    def mean_rewards(self, actions: FiniteActions, choice: IntArray) -> Array:
        """Return the probability of a 1 of the chosen arms, (n, T)."""
        return np.clip(scores_of_choice(actions, choice, self.theta), 0.0, 1.0)

    def best_rewards(self, actions: FiniteActions) -> Array:
        """Return the largest probability of a 1 on offer, (n, T)."""
        return np.clip(super().best_rewards(actions), 0.0, 1.0)

    def rewards(self, means: Array, noise: Array) -> Array:
        """Return 1 where the uniform number is below the probability and 0 elsewhere, (n, T)."""
        return np.asarray(noise < means, dtype=np.float64)


def _spread(
    low_name: str, low: float, high_name: str, high: float, n_tasks: int, rng: np.random.Generator
) -> Array:
    """Return numbers (T,) spread geometrically from low to high, in an order drawn at random."""
    check_number(f"`{low_name}` of UnevenTasks", low, 0.0, open_low=True)
    check_number(f"`{high_name}` of UnevenTasks", high, 0.0, open_low=True)
    if high < low:
        raise ValueError(f"`{high_name}` of UnevenTasks must be at least {low_name}={low:g}. Got {high:g}.")
    return rng.permutation(np.geomspace(low, high, n_tasks)) if low < high else np.full(n_tasks, low)
