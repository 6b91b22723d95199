"""One run: against the naive implementation, round for round, and against itself."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import naive
import posse.play.dealing
from posse import (
    Every,
    FiniteActions,
    GaussianProblem,
    Geometric,
    GramStatistics,
    IndependentGreedy,
    LearningPolicy,
    MLinGreedy,
    NaiveGreedy,
    OracleBasis,
    OracleGreedy,
    Random,
    Ridge,
    simulate,
    simulate_all,
)
from posse.core.protocols import Policy
from posse.numerics.checks import Array

SLOW_SCHEDULE = Geometric(first=20, ratio=1.5)

PAIRS: dict[str, tuple[Callable[[GaussianProblem, int], Policy], Callable[[naive.World], float], float]] = {
    "random": (lambda problem, rank: Random(), naive.random_play, 1e-9),
    "naive": (lambda problem, rank: NaiveGreedy(), naive.naive_greedy, 1e-9),
    "independent": (
        lambda problem, rank: LearningPolicy(estimator=Ridge(penalty=3.0), schedule=SLOW_SCHEDULE),
        lambda world: naive.independent_greedy(world, penalty=3.0),
        1e-9,
    ),
    "oracle": (
        lambda problem, rank: LearningPolicy(
            estimator=OracleBasis(basis=problem.basis, penalty=2.0), schedule=SLOW_SCHEDULE
        ),
        lambda world: naive.oracle_greedy(world, penalty=2.0),
        1e-9,
    ),
    # both minimise the same non-convex function, to tolerances of their own
    "mlingreedy": (lambda problem, rank: MLinGreedy(rank=rank), naive.mlin_greedy, 1e-3),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(
    ("dim", "rank", "n_tasks", "horizon"), [(20, 2, 10, 10_000), (20, 3, 20, 3000), (30, 5, 10, 3000)]
)
def test_agrees_with_the_naive_implementation(
    name: str, dim: int, rank: int, n_tasks: int, horizon: int
) -> None:
    build, play_naively, tolerance = PAIRS[name]
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=3)
    trace = simulate(problem, build(problem, rank), horizon=horizon, seed=5, path="contexts")
    world = naive.world(problem.theta, problem.basis, seed=5, n_rounds=horizon, n_arms=5)
    assert_allclose(trace.regret_per_task[-1], play_naively(world), rtol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["exact", "contexts"])
def test_the_figures_that_the_paper_would_show(path: str) -> None:
    """d = 20, k = 2, T = 50, N = 10^4: eight fixed seeds, so the ranges cannot flake."""
    regrets: dict[str, list[float]] = {}
    for seed in range(8):
        problem = GaussianProblem.draw(n_tasks=50, dim=20, rank=2, seed=seed)
        policies: dict[str, Policy] = {
            "mlingreedy": MLinGreedy(rank=2),
            "naive": NaiveGreedy(),
            "independent": IndependentGreedy(),
            "oracle": OracleGreedy(problem.basis),
        }
        for name, trace in simulate_all(problem, policies, horizon=10_000, seed=seed, path=path).items():
            regrets.setdefault(name, []).append(float(trace.regret_per_task[-1]))
    means = {name: float(np.mean(values)) for name, values in regrets.items()}
    assert 95 <= means["mlingreedy"] <= 122
    assert 384 <= means["naive"] <= 414
    assert means["independent"] <= 215
    assert means["oracle"] <= 26


def small_problem() -> GaussianProblem:
    return GaussianProblem.draw(n_tasks=6, dim=5, rank=2, seed=0)


@pytest.mark.parametrize("path", ["exact", "contexts"])
def test_company_does_not_matter_to_the_last_bit(path: str) -> None:
    problem = small_problem()
    policies: dict[str, Policy] = {
        "naive": NaiveGreedy(),
        "random": Random(),
        "every": LearningPolicy(estimator=Ridge(), schedule=Every(7)),
    }
    together = simulate_all(problem, policies, horizon=300, seed=1, path=path)
    for name, policy in policies.items():
        alone = simulate(problem, policy, horizon=300, seed=1, path=path)
        assert alone.path == path
        assert_array_equal(together[name].regret, alone.regret)


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_rounds_do_not_depend_on_the_chunk(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = LearningPolicy(estimator=Ridge(), schedule=Geometric(first=3))
    expected = simulate(small_problem(), policy, horizon=200, seed=1, path="contexts")
    monkeypatch.setattr(posse.play.dealing, "chunk_rounds", lambda problem: chunk)
    found = simulate(small_problem(), policy, horizon=200, seed=1, path="contexts")
    assert_array_equal(found.rounds, expected.rounds)
    assert_allclose(found.regret, expected.regret, rtol=1e-10)


def test_large_problems_are_dealt_in_smaller_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    draw = GaussianProblem.actions

    def spy(self: GaussianProblem, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        sizes.append(n_rounds)
        return draw(self, n_rounds, rng)

    monkeypatch.setattr(GaussianProblem, "actions", spy)
    monkeypatch.setattr(posse.play.dealing, "CHUNK_VALUES", 4 * 6 * 5)
    simulate(small_problem(), Random(), horizon=10, seed=0, path="contexts")
    assert sizes == [4, 4, 2]


def test_chunks_of_problems_with_many_features_hold_as_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow, wide = (GaussianProblem(theta=np.ones((3, dim))) for dim in (255, 256))
    assert [posse.play.dealing.chunk_rounds(problem) for problem in (narrow, wide)] == [32, 256]
    monkeypatch.setattr(posse.play.dealing, "WIDE_CHUNK_VALUES", 40 * 3 * 256 * wide.n_arms)
    assert posse.play.dealing.chunk_rounds(wide) == 40


def test_seeds_decide_everything() -> None:
    problem = small_problem()
    first, again, other = (simulate(problem, NaiveGreedy(), horizon=100, seed=s).regret for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("path", ["exact", "contexts"])
def test_a_run_without_a_final_state_has_the_same_regret(path: str) -> None:
    problem = small_problem()
    whole, less = (
        simulate(problem, NaiveGreedy(), horizon=150, seed=0, path=path, final_state=wanted)
        for wanted in (True, False)
    )
    assert_array_equal(whole.regret, less.regret)
    with pytest.raises(ValueError, match="`final_state=True`"):
        _ = less.state


def test_checkpoints_are_cumulative_and_end_at_the_horizon() -> None:
    problem = small_problem()
    every = simulate(problem, NaiveGreedy(), horizon=150, seed=0, checkpoints=np.arange(1, 151))
    some = simulate(problem, NaiveGreedy(), horizon=150, seed=0, checkpoints=np.array([40, 7]))
    assert_array_equal(some.rounds, [7, 40, 150])
    assert_allclose(some.regret, every.regret[[6, 39, 149]], rtol=1e-12)
    assert (np.diff(every.regret, axis=0) >= -1e-12).all()
    assert simulate(problem, NaiveGreedy(), horizon=1, seed=0).rounds.tolist() == [1]


class Closing(GaussianProblem):
    """Task 0 has fewer arms than the others, and task 1 is closed in every second round."""

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        arms = super().actions(n_rounds, rng).arms
        available = np.ones(arms.shape[:3], dtype=bool)
        available[:, 0, 3:] = False
        available[rng.random(n_rounds) < 0.5, 1] = False
        return FiniteActions(arms, available)


def test_tasks_may_sit_out_and_arms_may_be_missing() -> None:
    problem = Closing(theta=small_problem().theta)
    seen: list[GramStatistics] = []

    class Watching(Random):
        def update(self, state: Array, statistics: GramStatistics) -> Array:
            seen.append(statistics)
            return state

    trace = simulate(problem, Watching(), horizon=400, seed=0)
    assert not seen  # the last update is made when its state is asked for, and once
    assert trace.state is trace.state
    (statistics,) = seen
    counts = statistics.count
    assert_array_equal(np.delete(counts, 1), 400)
    assert 120 < counts[1] < 280
    regret_per_round = trace.regret[-1] / counts
    assert (regret_per_round > 0.1).all()
    assert np.isfinite(trace.regret).all()


def test_bad_input_is_named() -> None:
    problem = small_problem()

    class Short(Random):
        def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
            return (horizon - 1,)

    with pytest.raises(ValueError, match=r"`horizon` .* Got 0"):
        simulate(problem, Random(), horizon=0, seed=0)
    with pytest.raises(ValueError, match=r"`seed` .* Got -1"):
        simulate(problem, Random(), horizon=5, seed=-1)
    with pytest.raises(ValueError, match=r"add up to 5. Got \(4,\)"):
        simulate(problem, Short(), horizon=5, seed=0)
    with pytest.raises(ValueError, match=r"`checkpoints` must be whole rounds in \[1, horizon=5\]"):
        simulate(problem, Random(), horizon=5, seed=0, checkpoints=np.array([9]))
    with pytest.raises(ValueError, match=r"`rank` of LowRank .*=5\]. Got 6"):
        simulate(problem, MLinGreedy(rank=6), horizon=5, seed=0)
