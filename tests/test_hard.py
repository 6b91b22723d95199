"""Problems that are hard for greedy play or for sharing: their laws, their clocks, and who falls for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import posse.play.dealing
from posse import (
    EllipsoidProblem,
    FiniteActions,
    GaussianProblem,
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    Random,
    SharedGreedy,
    simulate,
    simulate_all,
)
from posse.core.protocols import Problem, TimedProblem
from posse.core.statistics import GramStatistics
from posse.estimators.moments import largest_sine
from posse.lab.registry import PolicyOptions, build_policies
from posse.numerics.checks import Array, IntArray
from posse.numerics.random import haar_basis
from posse.problems import (
    STRUCTURES,
    ClassPairs,
    FixedArms,
    GreedyTrap,
    LateTasks,
    MovingBasis,
    NarrowContexts,
    TimedActions,
)
from posse.problems.parameters import WORST, confined_normal, draw_low_rank, draw_parameters
from posse.testing import check_problem

SIZES: dict[str, Any] = {"n_tasks": 12, "dim": 8, "rank": 2}


def draw_theta(structure: str, n_tasks: int = 12, dim: int = 8, rank: int = 2, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return draw_parameters("a test", structure, n_tasks=n_tasks, dim=dim, rank=rank, rng=rng)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_parameters_have_length_one_and_the_rank_of_their_structure(structure: str) -> None:
    theta = draw_theta(structure)
    assert theta.shape == (12, 8)
    lengths = np.linalg.norm(theta, axis=1)
    if structure in ("half-axes", "orthogonal-groups"):
        assert ((lengths >= 0.09) & (lengths <= 3.0)).all()
    else:
        assert_allclose(lengths, [10.0 if structure == "giant" else 1.0] + [1.0] * 11)
    ranks = {"low-rank": 2, "outliers": 5, "giant": 3}  # the tasks 0, 5 and 10 add one each
    assert np.linalg.matrix_rank(theta) == ranks.get(structure, 2 if structure in WORST else 8)


def test_the_instances_of_the_lower_bounds() -> None:
    groups, halves, orthogonal = (draw_theta(structure) for structure in WORST)
    for theta in (groups, orthogonal):  # two groups of six tasks
        for half in (theta[:6], theta[6:]):
            assert_allclose(half, np.broadcast_to(half[0], half.shape))
    assert_allclose(orthogonal[0] @ orthogonal[6], 0.0, atol=1e-12)
    assert abs(groups[0] @ groups[6]) > 1e-3
    axes = halves[:6]
    assert_allclose(axes @ axes.T, np.kron(np.eye(2), np.ones((3, 3))), atol=1e-12)
    assert_allclose(halves[6:] - halves[6:] @ axes[::3].T @ axes[::3], 0.0, atol=1e-12)
    assert len(np.unique(np.linalg.norm(halves[6:], axis=1))) == 6


def test_confined_normals_are_normals_of_some_lengths() -> None:
    """In one dimension both bounds bite: a half-normal between 0.09 and 3, Kolmogorov-Smirnov at 1e-4."""
    draws = confined_normal(5000, 1, np.random.default_rng(0))[:, 0]
    low, high = stats.norm.cdf([0.09, 3.0])

    def law(x: Array) -> Array:
        return np.asarray((stats.norm.cdf(x) - low) / (high - low))

    assert stats.kstest(np.abs(draws), law).pvalue > 1e-4
    assert abs(np.mean(draws > 0) - 0.5) < 4 * 0.5 / np.sqrt(5000)
    spread = confined_normal(5000, 20, np.random.default_rng(1))
    assert_allclose(np.mean(spread**2), 1 / 20, rtol=0.05)


def test_low_rank_draws_are_what_they_were() -> None:
    recorded = [
        [-0.05336802, 0.99355379, -0.10001358],
        [0.1861789, -0.93354281, -0.30632538],
        [-0.16815822, -0.71407385, 0.67957439],
        [-0.12053899, -0.81572078, 0.56574726],
    ]
    for kind in (GaussianProblem, EllipsoidProblem):
        assert_allclose(kind.draw(n_tasks=4, dim=3, rank=2, seed=0).theta, recorded, atol=1e-8)


def test_every_fifth_task_is_an_outlier() -> None:
    shared = draw_low_rank("a test", **SIZES, rng=np.random.default_rng(0))
    moved = (draw_theta("outliers") != shared).any(axis=1)
    assert_array_equal(np.flatnonzero(moved), [0, 5, 10])


def test_approximate_parameters_are_near_their_low_rank_ones() -> None:
    shared = draw_low_rank("a test", **SIZES, rng=np.random.default_rng(0))
    theta = draw_theta("approximate")
    # adding a vector of length 0.3 to one of length 1 turns it by at most asin 0.3
    sines = np.sqrt(1 - np.vecdot(theta, shared) ** 2)
    assert sines.max() <= 0.3
    assert sines.min() > 0.05


def test_tasks_with_a_common_mean_are_near_it_and_unrelated_ones_are_not() -> None:
    # cosines of two tasks: about 1 / 1.09 and about 0, with a spread of 1 / sqrt(50); seeds are fixed
    for structure, expected in {"common-mean": 1 / 1.09, "unrelated": 0.0}.items():
        theta = draw_theta(structure, n_tasks=200, dim=50)
        cosines = (theta @ theta.T)[np.triu_indices(200, 1)]
        assert_allclose(cosines.mean(), expected, atol=0.02)


def test_the_rank_does_not_matter_where_there_is_no_basis() -> None:
    for structure in ("unrelated", "common-mean"):
        assert_array_equal(draw_theta(structure, rank=2), draw_theta(structure, rank=99))


@pytest.mark.parametrize("draw", [GaussianProblem.draw, EllipsoidProblem.draw])
def test_problems_take_a_structure(draw: Callable[..., Any]) -> None:
    for structure in STRUCTURES:
        problem = draw(**SIZES, seed=0, structure=structure)
        assert_array_equal(problem.theta, draw_theta(structure))
        check_problem(problem)
    assert draw(**SIZES, seed=0, structure="unrelated").basis.shape == (8, 8)
    with pytest.raises(ValueError, match=r"`structure` of .* Got 'outlier'. Did you mean 'outliers'"):
        draw(**SIZES, seed=0, structure="outlier")
    with pytest.raises(ValueError, match=r"`rank` of .* Got 9"):
        draw(n_tasks=12, dim=8, rank=9, seed=0, structure="approximate")
    with pytest.raises(ValueError, match=r"`weights` of .* must be None for structure='unrelated'. Got"):
        draw(**SIZES, seed=0, structure="unrelated", weights=np.ones((12, 2)))
    with pytest.raises(ValueError, match=r"`dim` of .* Got 0"):
        draw(n_tasks=12, dim=0, rank=1, seed=0, structure="common-mean")


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "fixed": lambda: FixedArms.draw(**SIZES, seed=0),
    "fixed for all": lambda: FixedArms(theta=draw_theta("unrelated"), arms=np.eye(8)),
    "narrow": lambda: NarrowContexts.draw(**SIZES, seed=0, structure="outliers"),
    "trap": lambda: GreedyTrap.draw(**SIZES, seed=0),
    "late": lambda: LateTasks.draw(**SIZES, seed=0, join=4),
    "much later": lambda: LateTasks.draw(**SIZES, seed=0, share=1.0, join=100),
    "late in a trap": lambda: LateTasks(problem=PROBLEMS["trap"](), joins=np.arange(12)),
    "late and moving": lambda: LateTasks(problem=PROBLEMS["moving"](), joins=np.arange(12)),
    "late twice": lambda: LateTasks(problem=PROBLEMS["late"](), joins=np.arange(12)),
    "moving": lambda: MovingBasis.draw(**SIZES, seed=0, turn=100.0),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_keep_their_promises(name: str) -> None:
    problem = PROBLEMS[name]()
    check_problem(problem)
    assert isinstance(problem, TimedProblem) == (name not in ("fixed", "fixed for all", "narrow"))


@pytest.mark.parametrize("name", PROBLEMS)
def test_regret_does_not_depend_on_the_chunk(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS[name]()
    policies = {"greedy": IndependentGreedy(), "shared": SharedGreedy(), "optimist": IndependentUCB()}
    whole = simulate_all(problem, policies, horizon=60, seed=1)
    monkeypatch.setattr(posse.play.dealing, "CHUNK_ROUNDS", 7)
    cut = simulate_all(problem, policies, horizon=60, seed=1)
    for policy in policies:
        assert_allclose(cut[policy].regret, whole[policy].regret, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", [FixedArms, NarrowContexts, GreedyTrap, LateTasks, MovingBasis])
def test_seeds_decide_what_is_drawn(kind: Any) -> None:
    first, again, other = (kind.draw(**SIZES, seed=seed) for seed in (3, np.random.default_rng(3), 4))
    values = [simulate(problem, Random(), horizon=9, seed=0).regret for problem in (first, again, other)]
    assert_array_equal(values[0], values[1])
    if kind is not LateTasks:  # whose last tasks have no regret yet
        assert (values[0] != values[2]).any()
    with pytest.raises(ValueError, match=rf"`seed` of {kind.__name__} .* Got -1"):
        kind.draw(**SIZES, seed=-1)
    with pytest.raises(ValueError, match=r"`noise_kind` of .* Got 'cauchy'"):
        kind.draw(**SIZES, seed=0, noise_kind="cauchy")
    with pytest.raises(ValueError, match=r"`rank` of .* Got 13"):
        kind.draw(n_tasks=12, dim=40, rank=13, seed=0)


def test_fixed_arms_are_always_the_same_and_never_copied() -> None:
    problem = FixedArms.draw(**SIZES, seed=0, n_arms=4)
    assert problem.arms.shape == (12, 4, 8)
    assert_allclose(np.linalg.norm(problem.arms, axis=2), 1.0)
    offered = problem.actions(10**6, np.random.default_rng(0))
    assert np.shares_memory(offered.rounds(10, 20).arms, problem.arms)
    for start in (0, 999):
        assert_array_equal(offered.arms[start], problem.arms)
    best = np.einsum("tkd,td->tk", problem.arms, problem.theta).max(axis=1)
    assert_allclose(problem.best_rewards(offered.rounds(0, 1))[0], best)


def test_narrow_contexts_lie_in_their_windows() -> None:
    problem = NarrowContexts.draw(**SIZES, seed=0, n_directions=3)
    arms = problem.actions(2000, np.random.default_rng(0)).arms
    inside = arms @ problem.windows
    assert_allclose(inside @ problem.windows.mT, arms, atol=1e-12)
    # 120,000 mean squares of three normals: a standard error of 0.0024, and a fixed seed
    assert_allclose((arms**2).sum(axis=3).mean(), 1.0, atol=0.012)
    assert_allclose((inside**2).mean(axis=(0, 1, 2)), 1 / 3, atol=0.012)


def test_the_trap_offers_the_safe_arm_and_the_risky_ones_in_turn() -> None:
    problem = GreedyTrap.draw(**SIZES, seed=0)
    arms = problem.actions_from(5, 9, np.random.default_rng(0)).arms
    assert_array_equal(arms.argmax(axis=3)[:, 3], [[0, 1 + n % 7] for n in range(5, 14)])
    assert_array_equal(arms.sum(axis=3), 1.0)


def test_risky_arms_are_as_often_better_as_worse_and_worth_the_risk() -> None:
    for rank in (2, 4):
        # 20,000 gains that depend on 100 + 200 vectors; the bounds are wide and the seed is fixed
        problem = GreedyTrap.draw(n_tasks=200, dim=101, rank=rank, seed=0)
        assert np.linalg.matrix_rank(problem.theta) == problem.basis.shape[1] == rank
        assert_array_equal(problem.theta[:, 0], 0.2)
        gains = problem.theta[:, 1:] - 0.2
        assert 0.4 < (gains > 0).mean() < 0.6
        assert_allclose(np.sqrt((gains**2).mean()), 0.5, atol=0.02)
        assert np.maximum(problem.theta[:, 1:], 0.2).mean() > 0.35


@pytest.mark.parametrize("kind", [GreedyTrap, FixedArms])
def test_greedy_play_never_gets_out(kind: Any) -> None:
    problem = kind.draw(n_tasks=20, dim=8, rank=3, seed=0)
    policies = {"greedy": IndependentGreedy(), "thompson": IndependentThompson()}
    traces = simulate_all(problem, policies, horizon=4000, seed=0, checkpoints=np.array([2000]))
    half, whole = traces["greedy"].regret_per_task
    assert whole > 1.8 * half
    assert traces["thompson"].regret_per_task[-1] < whole / 2


class PlaysTheFirstArm(Random):
    """Where there is one; it keeps what it is told."""

    def select(self, state: Any, actions: Any, rng: np.random.Generator) -> IntArray:
        shape = (actions.n_rounds, len(state))
        return np.where(np.ones(shape, dtype=bool) if actions.active is None else actions.active, 0, -1)

    def update(self, state: Any, statistics: GramStatistics) -> Any:
        return statistics


def test_late_tasks_sit_out_and_are_counted_from_when_they_join() -> None:
    late = LateTasks.draw(**SIZES, seed=0, share=0.25, join=40)
    assert_array_equal(late.joins, [0] * 9 + [40] * 3)
    assert_array_equal(late.basis, GaussianProblem.draw(**SIZES, seed=0).basis)
    found, everyone = (
        simulate(
            problem, PlaysTheFirstArm(), horizon=100, seed=0, checkpoints=np.array([40]), path="contexts"
        )
        for problem in (late, late.problem)
    )
    assert_array_equal(found.state.count, [100] * 9 + [60] * 3)
    assert_allclose(found.regret[:, :9], everyone.regret[:, :9])
    assert_array_equal(found.regret[0, 9:], 0.0)
    assert_allclose(found.regret[1, 9:], (everyone.regret[1] - everyone.regret[0])[9:])


def test_arms_that_are_missing_stay_missing_for_late_tasks() -> None:
    class Closing(GaussianProblem):
        def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
            arms = super().actions(n_rounds, rng).arms
            return FiniteActions(arms, np.broadcast_to(np.arange(5) < 3, arms.shape[:3]))

    problem = LateTasks(problem=Closing(theta=np.eye(3)), joins=np.array([0, 1, 2]))
    offered = problem.actions(3, np.random.default_rng(0))
    assert offered.available is not None
    assert_array_equal(offered.available.sum(axis=2), [[3, 0, 0], [3, 3, 0], [3, 3, 3]])
    check_problem(problem)


def test_the_basis_moves_by_the_angle_asked_for() -> None:
    problem = MovingBasis.draw(**SIZES, seed=0, turn=0.2)
    times = np.array([0, 1000, 5000])
    bases, thetas = problem.basis_at(times), problem.theta_at(times)
    assert_array_equal(bases[0], problem.start)
    for basis, theta, angle in zip(bases, thetas, [0.0, 0.2, 1.0], strict=True):
        assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
        assert_allclose(largest_sine(problem.start, basis), np.sin(angle), atol=1e-7)
        assert_allclose(np.vecdot(theta, thetas[0]), np.cos(angle))
        assert_allclose(theta, problem.weights @ basis.T)


def test_regret_is_against_the_best_arm_of_the_round() -> None:
    problem = MovingBasis.draw(**SIZES, seed=0, turn=30.0)
    offered = problem.actions_from(64, 32, np.random.default_rng(0))
    assert isinstance(offered, TimedActions)
    (theta,) = problem.theta_at(np.array([64 + 20]))
    expected = (offered.arms[20] @ theta[:, :, None])[..., 0]
    part = offered.rounds(10, 30).rounds(10, 11)
    assert_allclose(problem.best_rewards(part)[0], expected.max(axis=1))
    choice = np.full((1, 12), 3)
    assert_allclose(problem.mean_rewards(part, choice)[0], expected[:, 3])


def test_a_basis_that_does_not_turn_is_a_gaussian_problem() -> None:
    moving = MovingBasis.draw(**SIZES, seed=0, turn=0.0)
    still = GaussianProblem(theta=moving.theta_at(np.array([0]))[0])
    first, second = (
        simulate(problem, IndependentGreedy(), horizon=300, seed=2, path="contexts").regret
        for problem in (moving, still)
    )
    assert_allclose(first, second, rtol=1e-10)


def test_oracles_are_told_of_a_basis_only_where_there_is_one() -> None:
    options = PolicyOptions(rank=2)
    for name in ("fixed", "narrow", "trap", "late"):
        build_policies(("oracle-greedy",), PROBLEMS[name](), options)
    for name in ("moving", "late and moving"):
        with pytest.raises(ValueError, match="with a true representation"):
            build_policies(("oracle-greedy",), PROBLEMS[name](), options)


def test_problems_that_lose_track_of_time_are_caught() -> None:
    class Forgetful(MovingBasis):
        def actions_from(self, start: int, n_rounds: int, rng: np.random.Generator) -> TimedActions:
            return super().actions_from(0, n_rounds, rng)

    with pytest.raises(AssertionError, match="best rewards must not depend on how rounds are cut"):
        check_problem(Forgetful.draw(**SIZES, seed=0, turn=100.0))


def test_bad_input_is_named() -> None:
    theta = np.eye(3)
    with pytest.raises(ValueError, match=r"`arms` of FixedArms must have shape \(K, 3\). Got \(4, 2\)"):
        FixedArms(theta=theta, arms=np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"`arms` of FixedArms must have shape \(3, K, 3\). Got \(2, 4, 3\)"):
        FixedArms(theta=theta, arms=np.ones((2, 4, 3)))
    with pytest.raises(ValueError, match=r"`n_arms` of FixedArms .* Got 0"):
        FixedArms.draw(**SIZES, seed=0, n_arms=0)
    with pytest.raises(ValueError, match=r"`windows` of NarrowContexts must have orthonormal .* off by 3"):
        NarrowContexts(theta=theta, windows=2.0 * np.stack([np.eye(3)] * 3))
    with pytest.raises(ValueError, match=r"`windows` of .* shape \(3, 3, m\). Got \(2, 3, 1\)"):
        NarrowContexts(theta=theta, windows=np.ones((2, 3, 1)))
    with pytest.raises(ValueError, match=r"`n_directions` of NarrowContexts .* \[1, dim=8\]. Got 9"):
        NarrowContexts.draw(**SIZES, seed=0, n_directions=9)
    with pytest.raises(ValueError, match=r"`theta` of GreedyTrap must have at least 2 columns. Got 1"):
        GreedyTrap(theta=np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"`rank` of GreedyTrap .* \[2, min\(dim=8, n_tasks=12\)=8\]. Got 1"):
        GreedyTrap.draw(n_tasks=12, dim=8, rank=1, seed=0)


def test_bad_input_to_timed_problems_is_named() -> None:
    gaussian = GaussianProblem.draw(**SIZES, seed=0)
    with pytest.raises(ValueError, match=r"`joins` .* of shape \(12,\). Got float64 of shape \(12,\)"):
        LateTasks(problem=gaussian, joins=np.zeros(12))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`joins` .* of shape \(12,\). Got int64 of shape \(3,\)"):
        LateTasks(problem=gaussian, joins=np.zeros(3, dtype=np.intp))
    with pytest.raises(ValueError, match=r"`joins` of LateTasks must not be negative. Got -1"):
        LateTasks(problem=gaussian, joins=np.full(12, -1))
    images = ClassPairs(images=np.ones((2, 4)), labels=np.array([0, 1]))
    for problem, found in (
        (images, "PooledActions"),
        (EllipsoidProblem(theta=np.eye(1)), "EllipsoidActions"),
    ):
        with pytest.raises(
            ValueError, match=rf"`problem` of LateTasks must offer FiniteActions. Got {found}"
        ):
            LateTasks(problem=problem, joins=np.zeros(1, dtype=np.intp))
    with pytest.raises(ValueError, match=r"`share` of LateTasks .* at most 1. Got 1.5"):
        LateTasks.draw(**SIZES, seed=0, share=1.5)
    with pytest.raises(ValueError, match=r"`join` of LateTasks .* Got -3"):
        LateTasks.draw(**SIZES, seed=0, join=-3)
    basis = haar_basis(6, 4, np.random.default_rng(0))
    start, quarter, weights = basis[:, :2], basis[:, 2:], np.ones((5, 2))
    with pytest.raises(ValueError, match=r"`start` and `quarter` .* orthonormal columns. Got .* off by 1"):
        MovingBasis(start=start, quarter=start, weights=weights)
    with pytest.raises(ValueError, match=r"`quarter` of MovingBasis must have shape \(6, 2\). Got \(6, 1\)"):
        MovingBasis(start=start, quarter=quarter[:, :1], weights=weights)
    with pytest.raises(ValueError, match=r"`weights` of MovingBasis must have shape \(T, 2\). Got \(2, 5\)"):
        MovingBasis(start=start, quarter=quarter, weights=weights.T)
    with pytest.raises(ValueError, match=r"`turn` of MovingBasis .* Got nan"):
        MovingBasis(start=start, quarter=quarter, weights=weights, turn=np.nan)
    with pytest.raises(ValueError, match=r"`n_arms` of MovingBasis .* Got 0"):
        MovingBasis.draw(**SIZES, seed=0, n_arms=0)
    with pytest.raises(ValueError, match=r"\[1, min\(dim=8 // 2, n_tasks=12\)=4\]. Got 5"):
        MovingBasis.draw(n_tasks=12, dim=8, rank=5, seed=0)
