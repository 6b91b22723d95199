"""The learned prior's promise: choices that do not depend on units."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from posse import GaussianProblem, LearningPolicy, Ridge, SharedGreedy, SharedThompson, SharedUCB, simulate
from posse.core.actions import FiniteActions
from posse.core.protocols import Policy
from posse.numerics.checks import Array, IntArray

POLICIES = {"greedy": SharedGreedy(), "thompson": SharedThompson(), "ucb": SharedUCB()}
PROBLEM = GaussianProblem.draw(n_tasks=6, dim=5, rank=2, seed=0)
N_ROUNDS = 60


@dataclass
class OtherUnits:
    """A problem whose features, all together, or rewards are counted in other units; it keeps the choices."""

    features: float = 1.0
    reward: float = 1.0
    n_tasks: int = PROBLEM.n_tasks
    dim: int = PROBLEM.dim

    def __post_init__(self) -> None:
        self.choices: list[IntArray] = []

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        offered = PROBLEM.actions(n_rounds, rng)
        return replace(offered, arms=self.features * offered.arms)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        return self.reward * PROBLEM.noise(n_rounds, rng)

    def plain(self, actions: FiniteActions) -> FiniteActions:
        return replace(actions, arms=actions.arms / self.features)

    def mean_rewards(self, actions: FiniteActions, choice: IntArray) -> Array:
        self.choices.append(choice)
        return self.reward * PROBLEM.mean_rewards(self.plain(actions), choice)

    def best_rewards(self, actions: FiniteActions) -> Array:
        return self.reward * PROBLEM.best_rewards(self.plain(actions))

    def rewards(self, means: Array, noise: Array) -> Array:
        return means + noise


def choices(policy: Policy, problem: OtherUnits) -> IntArray:
    """Return what a policy chooses in all rounds, (n, T)."""
    simulate(problem, policy, horizon=N_ROUNDS, seed=1, final_state=False)
    return np.concatenate(problem.choices)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_choices_do_not_depend_on_units(name: str) -> None:
    policy = POLICIES[name]
    plain = choices(policy, OtherUnits())
    assert plain.shape == (N_ROUNDS, PROBLEM.n_tasks)
    for scale in (1e-6, 1e6):
        assert np.array_equal(choices(policy, OtherUnits(features=scale)), plain), scale
        assert np.array_equal(choices(policy, OtherUnits(reward=scale)), plain), scale


def test_units_would_be_seen_in_choices() -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0))
    plain = choices(policy, OtherUnits())
    assert np.array_equal(choices(policy, OtherUnits(reward=1e6)), plain)
    assert not np.array_equal(choices(policy, OtherUnits(features=1e-6)), plain)
