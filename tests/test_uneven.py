"""Problems as real data pose them: their laws, and the tasks that are known to be at risk."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posse import Clicks, GaussianProblem, SharedUCB, UnevenTasks, simulate
from posse.core.protocols import Problem
from posse.lab.registry import PROBLEMS, draw_problem
from posse.problems import LateTasks
from posse.problems.parameters import draw_parameters, odd_tasks
from posse.testing import check_problem

SIZES: dict[str, Any] = {"n_tasks": 20, "dim": 8, "rank": 2, "seed": 0}
NAMES = ("unequal-noise", "own-units", "intercept", "scaled-features", "clicks")


@pytest.mark.parametrize("name", NAMES)
def test_they_are_played_by_their_names(name: str) -> None:
    problem = draw_problem(name, **SIZES)
    check_problem(problem)
    trace = simulate(problem, SharedUCB(), horizon=60, seed=0)
    assert np.isfinite(trace.regret).all()
    assert (trace.regret[-1] > 0).all()


def test_nothing_is_uneven_by_default() -> None:
    even, gaussian = UnevenTasks.draw(**SIZES), GaussianProblem.draw(**SIZES)
    assert_array_equal(even.theta, gaussian.theta)
    for problem in (even, gaussian):
        assert problem.worst_off is None
    assert even.units is None
    first, second = (simulate(p, SharedUCB(), horizon=50, seed=1, path="contexts") for p in (even, gaussian))
    assert_allclose(first.regret, second.regret, rtol=1e-10)


def test_noise_is_spread_geometrically_and_the_quietest_fifth_is_watched() -> None:
    problem = draw_problem("unequal-noise", **SIZES)
    assert isinstance(problem, UnevenTasks)
    levels = problem.noise_levels
    assert_allclose(np.sort(levels), np.geomspace(0.2, 5.0, 20))
    assert (np.diff(levels) < 0).any()
    assert problem.worst_off is not None
    assert_array_equal(np.sort(levels[problem.worst_off]), np.sort(levels)[:4])
    noise = problem.noise(20_000, np.random.default_rng(0))
    # a standard deviation of 20,000 normals is off by 2.5 % once in 2 million
    assert_allclose(noise.std(axis=0), levels, rtol=0.025)
    other = draw_problem("unequal-noise", **{**SIZES, "seed": 1})
    assert isinstance(other, UnevenTasks)
    assert (other.noise_levels != levels).any()


def test_units_change_rewards_and_noise_alike() -> None:
    problem = draw_problem("own-units", **SIZES)
    assert isinstance(problem, UnevenTasks)
    assert problem.units is not None
    assert_allclose(np.sort(problem.units), np.geomspace(0.1, 10.0, 20))
    assert_allclose(np.linalg.norm(problem.theta, axis=1), problem.units)
    assert_allclose(problem.noise_levels, problem.units)
    assert problem.worst_off is None
    both = draw_problem("own-units", **SIZES, quietest=0.2, loudest=5.0)
    assert isinstance(both, UnevenTasks)
    assert both.units is not None
    assert both.worst_off is not None
    relative = both.noise_levels / both.units
    assert_array_equal(np.sort(relative[both.worst_off]), np.sort(relative)[:4])


def test_intercepts_and_scales() -> None:
    problem = draw_problem("intercept", **{**SIZES, "n_tasks": 2000})
    assert isinstance(problem, UnevenTasks)
    assert abs(problem.theta[:, 0].mean() - 2.0) < 4 / np.sqrt(2000)  # once in 16,000 seeds
    assert_array_equal(problem.actions(3, np.random.default_rng(0)).arms[..., 0], 1.0)
    scaled = draw_problem("scaled-features", **SIZES)
    plain = GaussianProblem.draw(**SIZES)
    assert isinstance(scaled, UnevenTasks)
    assert scaled.scales is not None
    assert_array_equal(scaled.scales, [1, 1000, 1, 1, 1, 1, 1000, 1])
    mine, theirs = (p.actions(5, np.random.default_rng(0)) for p in (scaled, plain))
    assert_allclose(mine.arms, theirs.arms * scaled.scales)
    assert_allclose(scaled.best_rewards(mine), plain.best_rewards(theirs))
    assert draw_problem("scaled-features", **{**SIZES, "dim": 1, "rank": 1}).theta.shape == (20, 1)  # type: ignore[attr-defined]


def test_clicks_are_zeros_and_ones_with_the_probabilities_of_their_means() -> None:
    problem = Clicks.draw(**SIZES, strength=3.0)  # strong enough to be cut off
    offered = problem.actions(200, np.random.default_rng(0))
    means = problem.mean_rewards(offered, np.zeros((200, 20), dtype=np.intp))
    inside = np.einsum("ntd,td->nt", offered.arms[:, :, 0], problem.theta)
    assert_allclose(means, np.clip(inside, 0.0, 1.0))
    assert 0.0 == means.min() < means.max() == 1.0
    assert (problem.best_rewards(offered) >= means).all()
    rng = np.random.default_rng(1)
    drawn = np.stack([problem.rewards(means, problem.noise(200, rng)) for _ in range(100)])
    assert set(np.unique(drawn)) == {0.0, 1.0}
    # 400,000 draws: four standard errors
    assert abs((drawn - means).mean()) < 4 * 0.5 / np.sqrt(drawn.size)
    assert_array_equal(drawn[:, means == 1.0], 1.0)
    assert_array_equal(drawn[:, means == 0.0], 0.0)


def test_clusters_are_tight_and_far_from_each_other() -> None:
    sizes = {"n_tasks": 12, "dim": 20, "rank": 3, "rng": np.random.default_rng(0)}
    theta = draw_parameters("a test", "clusters", **sizes)  # type: ignore[arg-type]
    near = theta @ theta.T > 0.95
    assert_array_equal(near, np.kron(np.eye(3), np.ones((4, 4))) > 0)


@pytest.mark.parametrize(
    ("structure", "odd"),
    [("outliers", [0, 5, 10, 15]), ("half", list(range(10, 20))), ("giant", [0]), ("low-rank", None)],
)
def test_those_unlike_the_others_are_watched(structure: str, odd: list[int] | None) -> None:
    for kind in (GaussianProblem, UnevenTasks, Clicks):
        problem = kind.draw(**SIZES, structure=structure)
        assert (None if problem.worst_off is None else problem.worst_off.tolist()) == odd
    theta = GaussianProblem.draw(**SIZES, structure=structure).theta
    others = np.delete(theta, [] if odd is None else odd, axis=0)
    assert np.linalg.matrix_rank(others) == 2
    assert np.linalg.matrix_rank(theta) == min(8, 2 + len(odd or ()))
    assert odd_tasks("unrelated", 5) is None


def test_newcomers_join_in_waves_and_are_watched() -> None:
    late = LateTasks.draw(**SIZES, share=0.5, join=40, waves=3)
    assert_array_equal(late.joins, [0] * 10 + [40] * 4 + [80] * 3 + [120] * 3)
    assert late.worst_off is not None
    assert_array_equal(late.worst_off, np.arange(10, 20))
    assert LateTasks.draw(**SIZES, share=0.0).worst_off is None
    check_problem(late)
    with pytest.raises(ValueError, match=r"`waves` of LateTasks .* Got 0"):
        LateTasks.draw(**SIZES, waves=0)
    with pytest.raises(ValueError, match=r"of rounds, 100 over the 3 waves, or nobody joins"):
        PROBLEMS["late"].check({"share": 0.5, "join": 40, "waves": 3}, 100)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"`loudest` of UnevenTasks must be at least quietest=2. Got 1"):
        UnevenTasks.draw(**SIZES, quietest=2.0)
    with pytest.raises(ValueError, match=r"`smallest` of UnevenTasks must be .* above 0. Got 0"):
        UnevenTasks.draw(**SIZES, smallest=0)
    with pytest.raises(ValueError, match=r"`stretch` of UnevenTasks must be .* above 0. Got -1"):
        UnevenTasks.draw(**SIZES, stretch=-1)
    with pytest.raises(ValueError, match=r"`level` of UnevenTasks"):
        UnevenTasks.draw(**SIZES, level=np.nan)
    with pytest.raises(ValueError, match=r"`noise_levels` of UnevenTasks must have shape \(3\). Got \(2,\)"):
        UnevenTasks(theta=np.eye(3), noise_levels=np.ones(2))
    with pytest.raises(ValueError, match=r"`units` of UnevenTasks must be above 0. Got -1"):
        UnevenTasks(theta=np.eye(3), noise_levels=np.ones(3), units=-np.ones(3))
    with pytest.raises(ValueError, match=r"`rate` of Clicks .* at most 1. Got 2"):
        Clicks.draw(**SIZES, rate=2)
    with pytest.raises(ValueError, match=r"`odd` of GaussianProblem .* n_tasks=3\). Got \[3\]"):
        GaussianProblem(theta=np.eye(3), odd=[3])  # type: ignore[arg-type]
    everyone: Problem = GaussianProblem(theta=np.eye(3), odd=np.array([2]))
    assert everyone.worst_off.tolist() == [2]  # type: ignore[attr-defined]
