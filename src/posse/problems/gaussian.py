"""Finite action sets with Gaussian contexts: Assumption 2 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from posse.core.actions import FiniteActions
from posse.numerics.checks import (
    Array,
    check_array,
    check_choice,
    check_integer,
    check_positive_definite,
)
from posse.numerics.random import random_matrices, standard_normal
from posse.problems.linear import FiniteLinearTasks
from posse.problems.parameters import MOST, TaskSettings, draw_tasks, odd_tasks

COVARIANCES = ("isotropic", "unit", "random")


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianProblem(FiniteLinearTasks):
    """T linear bandits; each round offers K arms drawn from N(0, Sigma_t).

    The reward of arm x is `<x, theta_t> + noise`. `GaussianProblem.draw` makes the random
    instances of the paper's experiments; the constructor takes parameters of your own.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task.
    n_arms : int
        K, the arms on offer in each round.
    covariance : {"isotropic", "unit"} or (d, d) or (T, d, d)
        Sigma_t. "isotropic" is I/d, the scale that Assumption 2 asks for and our reading of the
        paper's experiments, which do not state it; "unit" is I.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian; "uniform" is on [-sqrt(3), sqrt(3)].
    odd : (m,) integers, optional
        Tasks known to have nothing to do with the others. `worst_off` names them to a comparison.

    Examples
    --------
    >>> problem = GaussianProblem.draw(n_tasks=50, dim=20, rank=2, seed=0)
    >>> problem.theta.shape, problem.basis.shape
    ((50, 20), (20, 2))
    >>> problem.actions(3, np.random.default_rng(1)).arms.shape
    (3, 50, 5, 20)
    """

    n_arms: int = 5
    covariance: str | Array = "isotropic"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("`n_arms` of GaussianProblem", self.n_arms, 1, MOST)
        _ = self._covariance_root  # a bad covariance is an error now, not in the first round

    @classmethod
    def draw(
        cls,
        *,
        n_arms: int = 5,
        covariance: str | ArrayLike = "isotropic",
        basis: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        **tasks: Unpack[TaskSettings],
    ) -> GaussianProblem:
        """Draw theta_t = B w_t with B Haar-distributed and w_t uniform on the unit sphere of R^k.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        n_arms : int
            K, the arms on offer in each round.
        covariance : {"isotropic", "unit", "random"} or (d, d) or (T, d, d)
            I/d, I, or for every task a matrix with Haar eigenvectors and eigenvalues uniform in
            [1/(2d), 2/d]; or matrices of your own.
        noise_kind : {"gaussian", "uniform", "rademacher"}
            The noise of rewards, "gaussian" by default.
        basis : (d, k), optional
            A B of your own.
        weights : (T, k), optional
            A W of your own.
        structure : str
            How the parameters are related, a name from `posse.problems.STRUCTURES`; all have length 1
            unless said. "low-rank" is B w_t. "unrelated" tasks are uniform on the unit sphere of R^d.
            "outliers" has such tasks in the places 0, 5, 10, ... of a low-rank draw. "approximate"
            adds a vector of length 0.3 of its own to each B w_t, "common-mean" to one unit vector that
            all tasks share, and both scale back to length 1. "half" is low-rank in its first half and
            unrelated in the other, "giant" low-rank but for task 0, unrelated and of length 10. "groups"
            has `rank` groups of tasks with one vector each, and "clusters" with 0.1 of their own beside
            it; "half-axes" and "orthogonal-groups" are the instances in the proof of Theorem 4, with
            lengths of their own (see `draw_parameters`). `rank` is ignored where there
            is no B, in "unrelated" and "common-mean". The attribute `basis` spans whatever was drawn:
            all of R^d, as a rule, where parameters are not exactly of low rank.
        """
        theta, noise_kind, rng = draw_tasks("GaussianProblem", basis=basis, weights=weights, **tasks)
        n_tasks, dim = theta.shape
        if isinstance(covariance, str):
            check_choice("`covariance` of GaussianProblem", covariance, COVARIANCES)
            sigma: str | Array = covariance
            if covariance == "random":
                sigma = random_matrices(rng.uniform(0.5 / dim, 2.0 / dim, (n_tasks, dim)), rng)
        else:
            sigma = np.asarray(covariance, dtype=np.float64)
        odd = odd_tasks(tasks.get("structure", ""), n_tasks)
        return cls(theta=theta, n_arms=n_arms, covariance=sigma, noise_kind=noise_kind, odd=odd)

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        """Draw K arms from N(0, Sigma_t) for each round and task."""
        return FiniteActions(
            self.colour(standard_normal((n_rounds, self.n_tasks, self.n_arms, self.dim), rng))
        )

    def colour(self, normal: Array) -> Array:
        """Turn rows (..., T, m, d) that are N(0, I) into rows that are N(0, Sigma_t): z -> L_t z.

        The array may be written over.
        """
        if isinstance(self.covariance, str):
            normal *= self._covariance_root
            return normal
        return np.asarray(normal @ np.swapaxes(self._covariance_root, -1, -2))

    def whiten(self, theta: Array) -> Array:
        """Return L_t'theta_t, (T, d): what rewards are linear in, if arms are written as L_t z."""
        if isinstance(self.covariance, str):
            return np.asarray(theta * self._covariance_root)
        return np.asarray((theta[:, None, :] @ self._covariance_root)[:, 0])

    @cached_property
    def _covariance_root(self) -> Array:
        """A matrix, or a number, L_t with L_t L_t' = Sigma_t."""
        name = "`covariance` of GaussianProblem"
        if isinstance(self.covariance, str):
            check_choice(name, self.covariance, ("isotropic", "unit"))
            return np.asarray(1.0 if self.covariance == "unit" else 1.0 / np.sqrt(self.dim))
        per_task = np.ndim(self.covariance) == 3
        shape = (self.n_tasks, self.dim, self.dim) if per_task else (self.dim, self.dim)
        sigma = check_array(name, self.covariance, shape)
        check_positive_definite(name, sigma)
        return np.asarray(np.linalg.cholesky(sigma))
