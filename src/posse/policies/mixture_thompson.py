"""Thompson sampling from a known prior of several Gaussians, every reward counting at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import Actions
from posse.core.statistics import GramStatistics
from posse.estimators import MixturePrior
from posse.numerics.checks import check_number


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureThompson:
    """Play what would be best if theta were a draw from a task's posterior under a mixture, round by round.

    A draw is first of a component, by how likely the task's own rewards make it, and then of theta from that
    component's posterior. So a task that the prior does not fit is found out by the component that does.

    Parameters
    ----------
    prior : MixturePrior
    scale : float
        How many times the posterior's standard deviation the draws have.

    Examples
    --------
    >>> from posse import EllipsoidProblem, simulate
    >>> prior = MixturePrior(weights=np.ones(1), means=np.zeros((1, 4)), covariances=np.eye(4)[None] / 4,
    ...                      noises=np.ones(1))
    >>> problem = EllipsoidProblem.draw(n_tasks=5, dim=4, rank=2, seed=0)
    >>> trace = simulate(problem, MixtureThompson(prior=prior), horizon=50, seed=0)
    >>> trace.regret.shape
    (22, 5)
    """

    prior: MixturePrior
    scale: float = 1.0
    statistics: ClassVar = GramStatistics

    def __post_init__(self) -> None:
        check_number("`scale` of MixtureThompson", self.scale, 0.0)

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        """Return blocks of one round: every reward counts at once."""
        return (1,) * horizon

    def init(self, n_tasks: int, dim: int) -> GramStatistics:
        """Return the state before the first round: no data."""
        if dim != self.prior.dim:
            raise ValueError(
                f"a task of MixtureThompson must have the features of its prior, {self.prior.dim}. Got {dim}."
            )
        return GramStatistics.zeros(n_tasks, dim)

    def select(self, state: GramStatistics, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Draw a component and theta for every round and task, and return argmax <x, theta>."""
        parts = self.prior.posteriors(state)
        size = (actions.n_rounds, state.n_tasks)
        chances = np.cumsum(parts.chances, axis=1)
        drawn = (rng.random(size)[..., None] * chances[:, -1:] >= chances[:, :-1]).sum(axis=2)
        tasks = np.arange(state.n_tasks)
        normal = rng.standard_normal((*size, state.dim))
        moved = np.matvec(parts.roots[tasks, drawn], normal)
        return actions.argmax(parts.means[tasks, drawn] + self.scale * moved, rng)

    def update(self, state: GramStatistics, statistics: GramStatistics) -> GramStatistics:
        """Remember further rounds."""
        return state + statistics
