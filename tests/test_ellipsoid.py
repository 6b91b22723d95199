"""Ellipsoids: action sets, the problem, and blocks of one action played in one step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import minimize

from posse import EllipsoidActions, EllipsoidProblem, IndependentGreedy, Random, simulate, simulate_all
from posse.core.actions import Ellipsoids
from posse.core.protocols import Policy
from posse.numerics.checks import Array
from posse.policies import E2TC, PEGE
from posse.problems.noise import draw_noise, draw_noise_totals
from posse.testing import check_problem


def draw(seed: int, n_tasks: int = 3, dim: int = 4, condition: float = 9.0) -> EllipsoidProblem:
    return EllipsoidProblem.draw(n_tasks=n_tasks, dim=dim, rank=2, seed=seed, condition=condition)


@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_the_maximiser_is_that_of_a_numerical_optimiser(seed: int) -> None:
    problem = draw(seed)
    sets = problem.ellipsoids
    found = sets.maximiser(problem.theta)
    assert_allclose(sets.gauge(found), 1.0)
    for t in range(3):
        inside = {"type": "ineq", "fun": lambda x, t=t: 1 - x @ np.linalg.solve(sets.shapes[t], x)}
        start = np.full(4, 0.1)
        best = minimize(
            lambda x, t=t: -x @ problem.theta[t], start, constraints=inside, options={"ftol": 1e-12}
        )
        assert_allclose(found[t], best.x, atol=1e-3)
        assert_allclose(sets.support(problem.theta)[t], -best.fun, rtol=1e-6)


def test_membership_and_the_inner_ball() -> None:
    problem = draw(0)
    sets = problem.ellipsoids
    eigenvalues = np.linalg.eigvalsh(sets.shapes)
    assert_allclose(eigenvalues, np.broadcast_to(np.geomspace(1, 9, 4), (3, 4)))
    assert sets.inner_radius == pytest.approx(1.0)
    drawn = sets.inner_sphere(500, np.random.default_rng(0))
    assert_allclose(np.linalg.norm(drawn, axis=2), 1.0)
    assert (sets.gauge(drawn) <= 1 + 1e-12).all()
    # fixed seed; squared coordinates of a uniform direction in R^4 are Beta(1/2, 3/2); alarm rate 1e-3
    assert stats.kstest(drawn[:, 0, 1] ** 2, stats.beta(0.5, 1.5).cdf).pvalue > 1e-3
    offered = problem.actions(2, np.random.default_rng(0))
    outside = np.zeros((1, 3, 4))
    outside[0, 2] = 1.1 * sets.maximiser(problem.theta)[2]
    with pytest.raises(ValueError, match=r"x'Q\^-1 x <= 1. Got 1.21 in task 2"):
        offered.features(outside)


def test_one_matrix_serves_all_tasks() -> None:
    theta = np.random.default_rng(0).standard_normal((5, 3))
    Q = np.diag([1.0, 4.0, 9.0])
    one, many = (EllipsoidProblem(theta=theta, shapes=shapes) for shapes in (Q, np.stack([Q] * 5)))
    assert_allclose(one.ellipsoids.maximiser(theta), many.ellipsoids.maximiser(theta))
    ball = EllipsoidProblem(theta=theta)
    assert_allclose(ball.ellipsoids.maximiser(theta), theta / np.linalg.norm(theta, axis=1, keepdims=True))


def test_zero_theta_ties_everything_and_draws_each_round() -> None:
    offered = EllipsoidActions(Ellipsoids.of(np.eye(3), 4, 3), n_rounds=6)
    drawn = offered.argmax(np.zeros((4, 3)), np.random.default_rng(0))
    assert drawn.shape == (6, 4, 3)
    assert len(np.unique(drawn[:, 0, 0])) == 6
    assert offered.argmax(np.ones((4, 3)), np.random.default_rng(0)).shape == (1, 4, 3)
    assert offered.features(np.zeros((1, 4, 3))).shape == (6, 4, 3)


def test_assumptions_are_those_of_the_instance() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    problem = EllipsoidProblem.draw(n_tasks=3, dim=4, rank=2, seed=0, weights=weights, condition=5.0)
    assert problem.assumptions.lambda_0 == pytest.approx(1.0)
    assert problem.assumptions.nu == pytest.approx(2 * min(2 / 3, 4 / 3))
    assert problem.assumptions.omega == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["gaussian", "rademacher", "uniform"])
def test_totals_of_noise_have_the_law_of_sums(kind: str) -> None:
    """Fixed seeds; two-sample tests with alarm rate 1e-3 each."""
    rng = np.random.default_rng(0)
    n, size = 7, 3000
    total, square = draw_noise_totals(kind, n, size, rng)
    noise = draw_noise(kind, n, size, rng)
    assert stats.ks_2samp(total, noise.sum(axis=0)).pvalue > 1e-3
    assert stats.ks_2samp(square, (noise**2).sum(axis=0)).pvalue > 1e-3
    product = stats.ks_2samp(total * square, noise.sum(axis=0) * (noise**2).sum(axis=0))
    assert product.pvalue > 1e-3
    one, one_square = draw_noise_totals(kind, 1, size, rng)
    assert_allclose(one_square, one**2)


@pytest.mark.parametrize("condition", [1.0, 4.0])
@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_the_problem_keeps_its_promises(condition: float, kind: str) -> None:
    check_problem(
        EllipsoidProblem.draw(n_tasks=4, dim=5, rank=2, seed=0, condition=condition, noise_kind=kind)
    )


class Dealt:
    """The same problem without its shortcut: every round is dealt and draws its own noise."""

    def __init__(self, problem: EllipsoidProblem) -> None:
        self.problem = problem

    def __getattr__(self, name: str) -> object:
        if name == "noise_totals":
            raise AttributeError(name)
        return getattr(self.problem, name)


def test_blocks_in_one_step_have_the_law_of_rounds_one_by_one() -> None:
    """Regret of both paths over 40 fixed seeds, paired by problem: alarm rate 1e-3 for each policy."""
    policies: dict[str, Policy] = {
        "e2tc": E2TC(rank=2, exponent=0.5),
        "pege": PEGE(),
        "greedy": IndependentGreedy(),
    }
    gaps: dict[str, list[float]] = {name: [] for name in policies}
    for seed in range(40):
        problem = EllipsoidProblem.draw(n_tasks=10, dim=4, rank=2, seed=seed, condition=2.0)
        steps = simulate_all(problem, policies, horizon=300, seed=seed)
        rounds = simulate_all(Dealt(problem), policies, horizon=300, seed=1000 + seed)  # type: ignore[arg-type]
        for name, sample in gaps.items():
            sample.append(float(steps[name].regret_per_task[-1] - rounds[name].regret_per_task[-1]))
    for sample in gaps.values():
        assert stats.ttest_1samp(sample, 0.0).pvalue > 1e-3


def test_regret_within_a_block_grows_by_the_same_step() -> None:
    problem = draw(0)
    marks = np.arange(1, 301)
    trace = simulate(problem, E2TC(rank=2, n_explore=20, n_refine=40), horizon=300, seed=0, checkpoints=marks)
    steps = np.diff(trace.regret, axis=0)
    assert_allclose(steps[20:39], np.broadcast_to(steps[20], (19, 3)), rtol=1e-9)
    assert_allclose(steps[60:], np.broadcast_to(steps[60], (239, 3)), rtol=1e-9)
    coarse = simulate(problem, E2TC(rank=2, n_explore=20, n_refine=40), horizon=300, seed=0)
    assert_array_equal(coarse.regret[-1], trace.regret[-1])
    assert (simulate(problem, Random(), horizon=50, seed=0).regret[-1] > 0).all()


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "must be symmetric. Got entries that differ by 0.5"),
        (np.diag([1.0, 0.0]), "must be positive definite. Got eigenvalue 0"),
        (np.diag([1.0, -2.0]), "must be positive definite. Got eigenvalue -2"),
        (np.eye(3), r"must have shape \(1, 2, 2\). Got \(1, 3, 3\)"),
        (np.stack([np.eye(2)] * 2), r"must have shape \(5, 2, 2\). Got \(2, 2, 2\)"),
        (np.diag([1.0, np.nan]), "must be finite. Got nan"),
    ],
)
def test_bad_shapes_are_named(shapes: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EllipsoidProblem(theta=np.ones((5, 2)), shapes=shapes)


def test_other_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"`condition` .* at least 1. Got 0.5"):
        EllipsoidProblem.draw(n_tasks=3, dim=4, rank=2, seed=0, condition=0.5)
    with pytest.raises(ValueError, match=r"`rank` of EllipsoidProblem .*=4\]. Got 5"):
        EllipsoidProblem.draw(n_tasks=9, dim=4, rank=5, seed=0)
    with pytest.raises(ValueError, match=r"`noise_kind` .* Got 'cauchy'"):
        EllipsoidProblem(theta=np.ones((2, 2)), noise_kind="cauchy")
