"""Policies for infinite action sets that explore first, or by turns, and then commit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from posse.core.actions import EllipsoidActions, Ellipsoids
from posse.core.statistics import GramStatistics, MomentTotals
from posse.estimators import OracleBasis
from posse.estimators.moments import MethodOfMoments, MomentStatistics, SubspaceEstimator
from posse.numerics.checks import Array, check_array, check_integer, check_number


@dataclass(frozen=True, eq=False)
class StageState:
    """Where an explore-then-commit policy is.

    Attributes
    ----------
    stage : "explore", "refine" or "commit"
    direction : int
        The column of the basis that the next block of "refine" plays.
    refined : GramStatistics
        The data of "refine".
    basis : (d, k), optional
        The representation, once it is found or if it is known.
    theta : (T, d), optional
        The parameters to commit to.
    """

    stage: str
    direction: int
    refined: GramStatistics
    basis: Array | None = None
    theta: Array | None = None


@dataclass(frozen=True, kw_only=True)
class E2TC:
    """Algorithm 2 of the paper: explore, find the representation, explore inside it, commit.

    Stage 1 plays N_1 rounds uniformly on the largest sphere inside all action sets, and estimates the
    representation. Stage 2 plays each column of it for N_2 / k rounds and regresses. Stage 3 plays the
    best action of the estimate for the rest.

    Parameters
    ----------
    rank : int
        k.
    exponent : float
        c, the exponent of d in N_1 = d^c k sqrt(N / T).
    n_explore, n_refine : int, optional
        N_1 and N_2, instead of the paper's N_1 and N_2 = k sqrt(N). Both are rounded, N_2 to a multiple of k.
    subspace : SubspaceEstimator
        How stage 1 finds the representation. The default is the paper's; others bring an N_1 of their own.

    Examples
    --------
    >>> E2TC(rank=2).blocks(10_000, n_tasks=50, dim=10)
    (894, 100, 100, 8906)

    Notes
    -----
    The paper's stage 1 uses the sphere of radius lambda_0 and its stage 2 the radius sqrt(lambda_0). Only the
    latter is sure to lie in the ellipsoid, so it is used in both; on the unit sphere they are equal.
    """

    rank: int
    exponent: float = 1.5
    n_explore: int | None = None
    n_refine: int | None = None
    subspace: SubspaceEstimator = field(default_factory=MethodOfMoments)
    statistics: ClassVar = MomentStatistics

    def __post_init__(self) -> None:
        check_integer("`rank` of E2TC", self.rank, 1)
        check_number("`exponent` of E2TC", self.exponent, 0.0)
        if self.n_explore is not None:
            check_integer("`n_explore` of E2TC", self.n_explore, 1)
        if self.n_refine is not None:
            check_integer("`n_refine` of E2TC", self.n_refine, self.rank)

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return N_1, N_2 / k for each column of the basis, and the rest."""
        explore = self.n_explore
        if explore is None:
            explore = round(self.subspace.rounds(self.exponent, horizon, n_tasks, dim, self.rank))
        if explore < 1:
            raise ValueError(
                "`exponent` of E2TC must leave a round to explore. "
                f"Got N_1 = {explore} for c = {self.exponent}."
            )
        return (explore, *_refine_blocks("E2TC", self.rank, self.n_refine, horizon, explore))

    def init(self, n_tasks: int, dim: int) -> StageState:
        """Return the state before the first round."""
        most = f"min(dim={dim}, n_tasks={n_tasks})"
        check_integer("`rank` of E2TC", self.rank, 1, min(dim, n_tasks), high_name=most)
        return StageState("explore", 0, GramStatistics.zeros(n_tasks, dim))

    def select(self, state: StageState, actions: EllipsoidActions, rng: np.random.Generator) -> Array:
        """Draw on the inner sphere, play a column of the basis, or commit."""
        ellipsoids = ellipsoids_of("E2TC", actions)
        if state.stage == "explore":
            return ellipsoids.inner_sphere(actions.n_rounds, rng)
        return _refine_or_commit(state, actions, ellipsoids, rng)

    def update(self, state: StageState, statistics: MomentStatistics) -> StageState:
        """Find the basis after stage 1, the parameters after stage 2."""
        if state.stage == "explore":
            return replace(state, stage="refine", basis=self.subspace.basis(statistics, self.rank))
        return _after_refining(state, statistics.tasks)


@dataclass(frozen=True, kw_only=True, eq=False)
class OracleCommit:
    """E2TC that is told the representation: it skips stage 1.

    Parameters
    ----------
    basis : (d, k)
        Orthonormal columns.
    n_refine : int, optional
        N_2, instead of k sqrt(N).

    Examples
    --------
    >>> OracleCommit(basis=np.eye(10)[:, :2]).blocks(10_000, n_tasks=50, dim=10)
    (100, 100, 9800)
    """

    basis: Array
    n_refine: int | None = None
    statistics: ClassVar = GramStatistics

    def __post_init__(self) -> None:
        OracleBasis(basis=self.basis)

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return N_2 / k for each column of the basis, and the rest."""
        return _refine_blocks("OracleCommit", self.basis.shape[1], self.n_refine, horizon, 0)

    def init(self, n_tasks: int, dim: int) -> StageState:
        """Return the state before the first round."""
        basis = check_array("`basis` of OracleCommit", self.basis, (dim, "k"))
        return StageState("refine", 0, GramStatistics.zeros(n_tasks, dim), basis)

    def select(self, state: StageState, actions: EllipsoidActions, rng: np.random.Generator) -> Array:
        """Play a column of the basis, or commit."""
        return _refine_or_commit(state, actions, ellipsoids_of("OracleCommit", actions), rng)

    def update(self, state: StageState, statistics: GramStatistics) -> StageState:
        """Find the parameters after stage 2."""
        return _after_refining(state, statistics)


@dataclass(frozen=True, eq=False)
class CycleState:
    """Where PEGE is: the direction to explore next, d for none, and X'y of all explorations."""

    direction: int
    explored: MomentTotals


@dataclass(frozen=True)
class PEGE:
    """Phased exploration and greedy exploitation, each task alone (Rusmevichientong and Tsitsiklis, 2010).

    In cycle c each of d orthogonal directions is played once, then the best action of the least-squares
    estimate from all explorations so far for c rounds. Regret is of order d sqrt(N).

    Examples
    --------
    >>> PEGE().blocks(10, n_tasks=1, dim=3)
    (1, 1, 1, 1, 1, 1, 1, 2, 1)
    """

    statistics: ClassVar = MomentTotals

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return d single rounds and 1, d single rounds and 2, ... until the horizon is full."""
        lengths: list[int] = []
        cycle, left = 1, horizon
        while left > 0:
            explore = min(dim, left)
            exploit = min(cycle, left - explore)
            lengths += [1] * explore + [exploit] * (exploit > 0)
            left -= explore + exploit
            cycle += 1
        return tuple(lengths)

    def init(self, n_tasks: int, dim: int) -> CycleState:
        """Return the state before the first round."""
        return CycleState(0, MomentTotals.zeros(n_tasks, dim))

    def select(self, state: CycleState, actions: EllipsoidActions, rng: np.random.Generator) -> Array:
        """Play an axis of the inner ball, or the best action of the estimate."""
        ellipsoids = ellipsoids_of("PEGE", actions)
        n_tasks, dim = state.explored.moment.shape
        if state.direction < dim:
            axis = ellipsoids.inner_radius * np.eye(dim)[state.direction]
            return np.broadcast_to(axis, (1, n_tasks, dim))
        # every direction was played equally often, so least squares is a multiple of X'y
        return actions.argmax(state.explored.moment, rng)

    def update(self, state: CycleState, statistics: MomentTotals) -> CycleState:
        """Keep what was explored; forget what was exploited."""
        if state.direction < state.explored.moment.shape[1]:
            return CycleState(state.direction + 1, state.explored + statistics)
        return CycleState(0, state.explored)


def ellipsoids_of(owner: str, actions: Any) -> Ellipsoids:
    """Return the ellipsoids on offer; raise, for the policy `owner`, if something else is."""
    if not isinstance(actions, EllipsoidActions):
        raise ValueError(f"{owner} plays ellipsoids, infinite action sets. Got {type(actions).__name__}.")
    return actions.ellipsoids


def _refine_blocks(
    owner: str, rank: int, n_refine: int | None, horizon: int, explored: int
) -> tuple[int, ...]:
    each = max(1, round((rank * math.sqrt(horizon) if n_refine is None else n_refine) / rank))
    left = horizon - explored - rank * each
    if left < 0:
        raise ValueError(
            f"N_1 + N_2 of {owner} must not pass the horizon {horizon}. Got {explored} + {rank * each}."
        )
    return (each,) * rank + ((left,) if left else ())


def _refine_or_commit(
    state: StageState, actions: EllipsoidActions, ellipsoids: Ellipsoids, rng: np.random.Generator
) -> Array:
    if state.stage == "refine" and state.basis is not None:
        column = ellipsoids.inner_radius * state.basis[:, state.direction]
        return np.broadcast_to(column, (1, ellipsoids.n_tasks, len(column)))
    return actions.argmax(np.zeros_like(state.refined.moment) if state.theta is None else state.theta, rng)


def _after_refining(state: StageState, statistics: GramStatistics) -> StageState:
    if state.stage == "commit" or state.basis is None:
        return state
    refined, direction = state.refined + statistics, state.direction + 1
    if direction < state.basis.shape[1]:
        return replace(state, refined=refined, direction=direction)
    theta = OracleBasis(basis=state.basis, penalty=0.0).fit(refined).theta
    return replace(state, stage="commit", refined=refined, theta=theta)
