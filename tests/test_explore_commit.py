"""E2TC, PEGE and OracleCommit: against a naive implementation, and stage by stage."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import naive_ellipsoid
from posse import GaussianProblem, simulate, simulate_all
from posse.core.protocols import Policy
from posse.estimators import PairedMoments, TaskSpectral
from posse.policies import E2TC, PEGE, OracleCommit
from posse.problems import EllipsoidProblem
from posse.testing import check_policy


def sphere(seed: int, n_tasks: int, rank: int = 2, dim: int = 10) -> EllipsoidProblem:
    return EllipsoidProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed)


@pytest.mark.parametrize(("rank", "exponent"), [(2, 0.5), (2, 1.0), (2, 1.5), (3, 1.0)])
def test_e2tc_agrees_with_the_naive_implementation(rank: int, exponent: float) -> None:
    """30 fixed seeds, N = 2000: paired by problem, a right implementation fails with probability 1e-3."""
    gaps = []
    for seed in range(30):
        problem = sphere(seed, n_tasks=20, rank=rank, dim=6)
        trace = simulate(problem, E2TC(rank=rank, exponent=exponent), horizon=2000, seed=seed)
        rng = np.random.default_rng(10_000 + seed)
        gaps.append(
            trace.regret_per_task[-1] - naive_ellipsoid.e2tc(problem.theta, rank, exponent, 2000, rng)
        )
    assert stats.ttest_1samp(gaps, 0.0).pvalue > 1e-3


def test_pege_agrees_with_the_naive_implementation() -> None:
    """30 fixed seeds, as above."""
    gaps = []
    for seed in range(30):
        problem = sphere(seed, n_tasks=5, dim=6)
        trace = simulate(problem, PEGE(), horizon=1003, seed=seed)
        gaps.append(
            trace.regret_per_task[-1] - naive_ellipsoid.pege(problem.theta, 1003, np.random.default_rng(seed))
        )
    assert stats.ttest_1samp(gaps, 0.0).pvalue > 1e-3


def test_the_figures_that_the_paper_would_show() -> None:
    """d = 10, k = 2, N = 10^4: ten fixed seeds."""
    ranges = {50: {"pege": (1805, 1855), "e2tc": (1380, 1580)}, 1000: {"e2tc": (515, 575)}}
    for n_tasks, expected in ranges.items():
        regrets: dict[str, list[float]] = {name: [] for name in expected}
        for seed in range(10):
            policies: dict[str, Policy] = {"pege": PEGE(), "e2tc": E2TC(rank=2)}
            chosen = {name: policies[name] for name in expected}
            for name, trace in simulate_all(sphere(seed, n_tasks), chosen, horizon=10_000, seed=seed).items():
                regrets[name].append(float(trace.regret_per_task[-1]))
        for name, (low, high) in expected.items():
            assert low <= np.mean(regrets[name]) <= high, (n_tasks, name)


def test_stages_have_the_papers_lengths() -> None:
    assert E2TC(rank=2).blocks(10_000, n_tasks=50, dim=10) == (894, 100, 100, 8906)
    assert E2TC(rank=3, exponent=2).blocks(10_000, n_tasks=10, dim=10) == (9487, 100, 100, 100, 213)
    assert E2TC(rank=2, n_explore=7, n_refine=5).blocks(100, 50, 10) == (7, 2, 2, 89)
    assert E2TC(rank=1, n_explore=5, n_refine=5).blocks(10, 50, 10) == (5, 5)
    assert E2TC(rank=2, subspace=TaskSpectral()).blocks(10_000, 50, 10)[0] == round(10 * np.sqrt(2 * 200))
    assert E2TC(rank=2, subspace=TaskSpectral()).blocks(10_000, 10**6, 10)[0] == 20
    assert E2TC(rank=2, subspace=PairedMoments()).blocks(10_000, 5000, 10)[0] == 20
    blocks = PEGE().blocks(10_000, n_tasks=1, dim=10)
    assert sum(blocks) == 10_000
    assert blocks[:23] == (*[1] * 10, 1, *[1] * 10, 2, 1)


def test_e2tc_commits_to_the_regression_inside_the_basis_it_found() -> None:
    problem = sphere(0, n_tasks=40, dim=5)
    state = simulate(problem, E2TC(rank=2, n_explore=400), horizon=2000, seed=0).state
    assert state.stage == "commit"
    x = state.refined.gram
    for t in range(3):
        inside = state.basis.T @ x[t] @ state.basis
        weights = np.linalg.solve(inside, state.basis.T @ state.refined.moment[t])
        assert_allclose(state.theta[t], state.basis @ weights)
    assert_allclose(np.einsum("tii->t", x), state.refined.count)  # radius 1
    assert state.refined.count[0] == 2 * round(np.sqrt(2000))


def test_a_known_basis_is_worth_having_and_so_is_a_better_estimator() -> None:
    """Ten fixed seeds; each order is beyond four standard errors of the paired difference."""
    regrets: dict[str, list[float]] = {}
    for seed in range(10):
        problem = sphere(seed, n_tasks=50)
        policies: dict[str, Policy] = {
            "oracle": OracleCommit(basis=problem.basis),
            "spectral": E2TC(rank=2, subspace=TaskSpectral()),
            "pairs": E2TC(rank=2, subspace=PairedMoments()),
            "paper": E2TC(rank=2),
        }
        for name, trace in simulate_all(problem, policies, horizon=10_000, seed=seed).items():
            regrets.setdefault(name, []).append(float(trace.regret_per_task[-1]))
    for better, worse in (
        ("oracle", "spectral"),
        ("oracle", "pairs"),
        ("spectral", "paper"),
        ("pairs", "paper"),
    ):
        gap = np.subtract(regrets[worse], regrets[better])
        assert gap.mean() > 4 * stats.sem(gap)


def test_ellipsoids_of_any_shape_are_played_inside_their_sets() -> None:
    problem = EllipsoidProblem.draw(n_tasks=8, dim=4, rank=2, seed=0, condition=25.0)
    scaled = replace(problem, shapes=0.01 * problem.ellipsoids.shapes)
    for instance in (problem, scaled):
        for policy in (E2TC(rank=2), PEGE(), OracleCommit(basis=instance.basis)):
            regret = simulate(instance, policy, horizon=3000, seed=0).regret[-1]
            assert (regret >= 0).all()
            assert np.isfinite(regret).all()


@pytest.mark.parametrize(
    "policy", [E2TC(rank=2, n_explore=1), PEGE(), OracleCommit(basis=np.eye(4)[:, :2])], ids=repr
)
def test_policies_keep_their_promises_on_ellipsoids(policy: Policy) -> None:
    problem = EllipsoidProblem.draw(n_tasks=6, dim=4, rank=2, seed=0)
    check_policy(policy, actions=problem.actions(20, np.random.default_rng(0)), horizons=(17, 1000))


@pytest.mark.parametrize(
    "policy", [E2TC(rank=2, n_explore=5), PEGE(), OracleCommit(basis=np.eye(4)[:, :2])], ids=repr
)
def test_finite_problems_are_refused(policy: Policy) -> None:
    problem = GaussianProblem.draw(n_tasks=6, dim=4, rank=2, seed=0)
    with pytest.raises(ValueError, match=r"plays ellipsoids, infinite action sets. Got FiniteActions."):
        simulate(problem, policy, horizon=200, seed=0)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"N_1 \+ N_2 of E2TC must not pass the horizon 100. Got 90 \+ 20"):
        simulate(sphere(0, 5), E2TC(rank=2, n_explore=90), horizon=100, seed=0)
    with pytest.raises(
        ValueError, match=r"`exponent` of E2TC must leave a round to explore. Got N_1 = 0 for c = 0.0"
    ):
        simulate(sphere(0, 500), E2TC(rank=1, exponent=0.0), horizon=100, seed=0)
    with pytest.raises(ValueError, match=r"`rank` of E2TC .*min\(dim=10, n_tasks=50\)=10\]. Got 11"):
        simulate(sphere(0, 50), E2TC(rank=11), horizon=10_000, seed=0)
    one = EllipsoidProblem.draw(n_tasks=1, dim=3, rank=1, seed=0)
    with pytest.raises(ValueError, match=r"min\(dim=3, n_tasks=1\)=1\]. Got 2"):
        simulate(one, E2TC(rank=2, n_explore=5), horizon=1000, seed=0)
    assert simulate(one, E2TC(rank=1, n_explore=5), horizon=1000, seed=0).regret[-1, 0] > 0
    with pytest.raises(ValueError, match=r"`n_refine` of E2TC .* at least 2. Got 1"):
        E2TC(rank=2, n_refine=1)
    with pytest.raises(ValueError, match=r"`exponent` of E2TC .* Got -1"):
        E2TC(rank=2, exponent=-1)
    with pytest.raises(ValueError, match="orthonormal columns"):
        OracleCommit(basis=np.ones((3, 2)))
