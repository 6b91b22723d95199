"""Infinite action sets: every task plays an ellipsoid (Assumption 3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from posse.core.actions import EllipsoidActions, Ellipsoids
from posse.numerics.checks import Array, check_number
from posse.numerics.random import random_matrices
from posse.problems.linear import LinearTasks
from posse.problems.noise import draw_noise_totals
from posse.problems.parameters import TaskSettings, draw_tasks


@dataclass(frozen=True)
class Assumptions:
    """The constants of Assumptions 3 to 5 that an instance has; the theorems want each well above 0.

    Attributes
    ----------
    lambda_0 : float
        Assumption 3: the least eigenvalue of all Q_t.
    nu : float
        Assumption 4, diverse tasks: k times the least eigenvalue of W'W / T.
    omega : float
        Assumption 5: the length of the shortest w_t.
    """

    lambda_0: float
    nu: float
    omega: float


@dataclass(frozen=True, eq=False, kw_only=True)
class EllipsoidProblem(LinearTasks):
    """T linear bandits, each on the ellipsoid {x : x' Q_t^-1 x <= 1}, the same in every round.

    Parameters
    ----------
    theta : (T, d)
        The parameters, one row per task.
    shapes : (d, d) or (T, d, d), optional
        Q_t, symmetric and positive definite. By default the identity: the unit ball, whose best
        actions lie on the unit sphere of the paper's experiments.
    noise_kind : {"gaussian", "uniform", "rademacher"}
        Each has mean 0 and variance 1 and is 1-sub-Gaussian.

    Examples
    --------
    >>> problem = EllipsoidProblem.draw(n_tasks=50, dim=10, rank=2, seed=0)
    >>> problem.assumptions.lambda_0
    1.0
    >>> float(problem.best_rewards(problem.actions(1, np.random.default_rng(0)))[0, 0].round(6))
    1.0
    """

    shapes: Array | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.ellipsoids  # a bad shape is an error now, not in the first round

    @classmethod
    def draw(
        cls,
        *,
        condition: float = 1.0,
        basis: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        shapes: ArrayLike | None = None,
        **tasks: Unpack[TaskSettings],
    ) -> EllipsoidProblem:
        """Draw theta_t = B w_t with B Haar-distributed and w_t uniform on the unit sphere of R^k.

        Parameters
        ----------
        n_tasks, dim, rank : int
            T, d and k, with k at most min(d, T).
        seed : int or numpy Generator
        noise_kind, structure : str
            A name of `NOISE_KINDS`, "gaussian" by default, and one of `STRUCTURES`, "low-rank" by default.
        condition : float
            At 1, unit balls. Above, each Q_t has Haar eigenvectors and eigenvalues in geometric
            progression from 1 to `condition`.
        basis, weights, shapes : optional
            A B (d, k), W (T, k) or Q of your own.
        """
        check_number("`condition` of EllipsoidProblem", condition, 1.0)
        theta, noise_kind, rng = draw_tasks("EllipsoidProblem", basis=basis, weights=weights, **tasks)
        n_tasks, dim = theta.shape
        if shapes is None and condition > 1:
            values = np.broadcast_to(np.geomspace(1.0, condition, dim), (n_tasks, dim))
            shapes = random_matrices(values, rng)
        own = None if shapes is None else np.asarray(shapes, dtype=np.float64)
        return cls(theta=theta, shapes=own, noise_kind=noise_kind)

    @cached_property
    def ellipsoids(self) -> Ellipsoids:
        """The action sets."""
        shapes = np.eye(self.dim)[None] if self.shapes is None else self.shapes
        return Ellipsoids.of(shapes, self.n_tasks, self.dim)

    @cached_property
    def assumptions(self) -> Assumptions:
        """The constants of Assumptions 3 to 5 for this instance."""
        weights = self.theta @ self.basis
        spread = np.linalg.eigvalsh(weights.T @ weights / self.n_tasks)
        return Assumptions(
            lambda_0=float(self.ellipsoids.inner_radius**2),
            nu=float(self.basis.shape[1] * spread[0]),
            omega=float(np.linalg.norm(weights, axis=1).min()),
        )

    def actions(self, n_rounds: int, rng: np.random.Generator) -> EllipsoidActions:
        """Return the action sets, which are the same in every round; nothing is drawn."""
        return EllipsoidActions(self.ellipsoids, n_rounds)

    def noise_totals(self, n_rounds: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the sum and the sum of squares of the noise of n rounds, (T,) each."""
        return draw_noise_totals(self.noise_kind, n_rounds, self.n_tasks, rng)

    def mean_rewards(self, actions: EllipsoidActions, choice: Array) -> Array:
        """Return <x, theta_t>, (n, T); (1, T) for an action that is played in every round."""
        return np.asarray(np.vecdot(choice, self.theta))

    def best_rewards(self, actions: EllipsoidActions) -> Array:
        """Return sqrt(theta_t'Q_t theta_t), (n, T)."""
        best = self.ellipsoids.support(self.theta)
        return np.broadcast_to(best, (actions.n_rounds, self.n_tasks))
