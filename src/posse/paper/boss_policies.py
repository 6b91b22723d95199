"""The policies of BOSS's study as its code plays them: a round more is explored than is learned from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posse.core.actions import EllipsoidActions
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, check_integer
from posse.policies import BARON, PEGETau, SeqRepL
from posse.policies.lifelong import LifelongMemory
from posse.policies.pege_tau import PEGEState


@dataclass(frozen=True, kw_only=True, eq=False)
class StudiedPEGE(PEGETau):
    """PEGE with one exploration of tau rounds that are learned from, and one more that is not."""

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return the exploration, the round that nothing is learned from, and the rest."""
        check_integer("`n_explore` of StudiedPEGE", self.n_explore, 1, horizon - 1, high_name="rounds - 1")
        left = horizon - self.n_explore - 1
        return (*self._explorations(), 1, *([left] if left else []))

    def select(self, state: PEGEState, actions: EllipsoidActions, rng: np.random.Generator) -> Array:
        """Explore once more before it commits."""
        if state.block == len(self._explorations()):
            column = 0 if self.basis is None else self.n_explore % self.basis.shape[1]
            state = replace(state, block=column, theta=None)
        return super().select(state, actions, rng)

    def update(self, state: PEGEState, statistics: GramStatistics) -> PEGEState:
        """Learn from the exploration, and from no round after it."""
        if state.theta is not None:
            return replace(state, block=state.block + 1)
        return super().update(state, statistics)


class _AsStudied:
    """Groups of tasks are played by `StudiedPEGE`."""

    def next_policy(self, memory: LifelongMemory, number: int, rng: np.random.Generator) -> StudiedPEGE:
        """Return the exploration of a group's tasks, or their play inside the subspace that is known."""
        policy: PEGETau = super().next_policy(memory, number, rng)  # type: ignore[misc]
        told: dict[str, Any] = {"basis": policy.basis, "penalty": policy.penalty}
        return StudiedPEGE(n_explore=policy.n_explore, **told)


@dataclass(frozen=True, kw_only=True)
class StudiedSeqRepL(_AsStudied, SeqRepL):
    """SeqRepL of the study."""


@dataclass(frozen=True, kw_only=True)
class StudiedBARON(_AsStudied, BARON):
    """BARON of the study."""
