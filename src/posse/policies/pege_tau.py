"""Explore for a number of rounds, then commit: each task alone, in R^d or inside a known subspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from posse.core.actions import EllipsoidActions
from posse.core.statistics import GramStatistics
from posse.estimators import OracleBasis, Ridge
from posse.numerics.checks import Array, check_array, check_integer, check_number
from posse.policies.explore_commit import ellipsoids_of


@dataclass(frozen=True, eq=False)
class PEGEState:
    """Where PEGE with one exploration is.

    Attributes
    ----------
    block : int
        How many blocks have ended.
    explored : GramStatistics
        The data of the exploration.
    theta : (T, d), optional
        The parameters to commit to, once all is explored.
    """

    block: int
    explored: GramStatistics
    theta: Array | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PEGETau:
    """PEGE with one exploration of tau rounds: explore, estimate by ridge, commit; every task alone.

    Without a basis it explores uniformly on the largest sphere inside the sets. With one it plays the columns
    in turn, and estimates inside their span: told the truth, this is the oracle beside it.

    Parameters
    ----------
    n_explore : int
        tau.
    basis : (d, k), optional
        Orthonormal columns.
    penalty : float
        Of the ridge.

    Examples
    --------
    >>> PEGETau(n_explore=210).blocks(2000, n_tasks=1, dim=10)
    (210, 1790)
    >>> PEGETau(n_explore=56, basis=np.eye(10)[:, :3]).blocks(2000, n_tasks=1, dim=10)
    (19, 19, 18, 1944)

    Notes
    -----
    P. Rusmevichientong and J. Tsitsiklis (2010), in the form that the study of BOSS plays; `PEGE` explores
    and exploits in cycles. There tau + 1 rounds are explored and tau learned from: tell it tau + 1.
    """

    n_explore: int
    basis: Array | None = None
    penalty: float = 1.0
    statistics: ClassVar = GramStatistics

    def __post_init__(self) -> None:
        check_integer("`n_explore` of PEGETau", self.n_explore, 1)
        check_number("`penalty` of PEGETau", self.penalty, 0.0)
        if self.basis is not None:
            OracleBasis(basis=self.basis)

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return the exploration, column by column if there is a basis, and the rest."""
        check_integer("`n_explore` of PEGETau", self.n_explore, 1, horizon, high_name="rounds")
        return (*self._explorations(), *([horizon - self.n_explore] if horizon > self.n_explore else []))

    def _explorations(self) -> tuple[int, ...]:
        if self.basis is None:
            return (self.n_explore,)
        each, more = divmod(self.n_explore, self.basis.shape[1])
        lengths = (each + (column < more) for column in range(self.basis.shape[1]))
        return tuple(length for length in lengths if length)

    def init(self, n_tasks: int, dim: int) -> PEGEState:
        """Return the state before the first round."""
        if self.basis is not None:
            check_array("`basis` of PEGETau", self.basis, (dim, "k"))
        return PEGEState(0, GramStatistics.zeros(n_tasks, dim))

    def select(self, state: PEGEState, actions: EllipsoidActions, rng: np.random.Generator) -> Array:
        """Draw on the inner sphere, play a column of the basis, or commit."""
        ellipsoids = ellipsoids_of("PEGETau", actions)
        if state.theta is not None:
            return actions.argmax(state.theta, rng)
        if self.basis is None:
            return ellipsoids.inner_sphere(actions.n_rounds, rng)
        column = ellipsoids.inner_radius * self.basis[:, state.block]
        return np.broadcast_to(column, (1, ellipsoids.n_tasks, len(column)))

    def update(self, state: PEGEState, statistics: GramStatistics) -> PEGEState:
        """Keep what was explored, and estimate once that is all."""
        if state.theta is not None:
            return state
        block, explored = state.block + 1, state.explored + statistics
        if block < len(self._explorations()):
            return replace(state, block=block, explored=explored)
        if self.basis is None:
            return PEGEState(block, explored, Ridge(penalty=self.penalty).fit(explored).theta)
        inside = OracleBasis(basis=self.basis, penalty=self.penalty)
        return PEGEState(block, explored, inside.fit(explored).theta)
