"""Play without contexts: equal in law to play with them, for regret and for statistics.

All tasks of a problem here have the same parameter, so that one block of T tasks is T independent draws from
each road. Every comparison is of fixed seeds; had they not been tried, a correct implementation would fail
one of them with probability below FALSE_ALARM in all.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp

import posse.play.dealing
from posse import (
    UCB,
    Estimate,
    Every,
    FiniteActions,
    GaussianProblem,
    GramStatistics,
    Greedy,
    LearningPolicy,
    MLinGreedy,
    Random,
    Ridge,
    SharedGreedy,
    SharedThompson,
    simulate,
    simulate_all,
)
from posse.core.actions import Actions
from posse.core.protocols import Policy
from posse.numerics.checks import Array, IntArray
from posse.numerics.random import random_matrices
from posse.play.exact import ExactBlock, ExactRounds, play_coordinates, wishart_roots

FALSE_ALARM = 1e-3
DIM, N_TASKS = 5, 3000
LENGTHS = (1, 2, 4, DIM + 2, DIM + 3, 40)

rng = np.random.default_rng(7)
THETA, HAT = rng.standard_normal((2, DIM))
SHAPE = random_matrices(np.array([[0.05, 0.2, 0.5, 1.0, 3.0]]), rng)[0]
OTHER_SHAPE = random_matrices(np.array([[2.0, 1.0, 0.4, 0.3, 0.1]]), rng)[0]
PER_TASK = np.tile(np.stack([SHAPE, OTHER_SHAPE]), (N_TASKS // 2, 1, 1))

CASES: dict[str, tuple[Array, Array, str | Array, str]] = {
    "isotropic": (THETA, HAT, "isotropic", "gaussian"),
    "one covariance": (THETA, HAT, SHAPE, "gaussian"),
    "covariance per task": (THETA, HAT, PER_TASK, "gaussian"),
    "rademacher": (THETA, HAT, SHAPE, "rademacher"),
    "nothing believed": (THETA, np.zeros(DIM), SHAPE, "gaussian"),
    "nothing to learn": (np.zeros(DIM), HAT, SHAPE, "uniform"),
    "all known": (THETA, 3.0 * THETA, SHAPE, "gaussian"),
    "the opposite believed": (THETA, -THETA, SHAPE, "gaussian"),
    "nearly known": (THETA, THETA + 1e-9 * HAT, SHAPE, "gaussian"),
    "huge": (1e100 * THETA, 1e200 * HAT, "unit", "gaussian"),
}


def many_of_one(theta: Array, covariance: str | Array, noise_kind: str) -> GaussianProblem:
    return GaussianProblem(
        theta=np.tile(theta, (N_TASKS, 1)), n_arms=3, covariance=covariance, noise_kind=noise_kind
    )


def with_contexts(problem: GaussianProblem, hat: Array, n_rounds: int) -> tuple[Array, GramStatistics]:
    actions_rng, noise_rng, ties = (np.random.default_rng(seed) for seed in (1, 2, 3))
    offered = problem.actions(n_rounds, actions_rng)
    choice = offered.argmax(np.tile(hat, (N_TASKS, 1)), ties)
    means = problem.mean_rewards(offered, choice)
    rewards = problem.rewards(means, problem.noise(n_rounds, noise_rng))
    regret = (problem.best_rewards(offered) - means).sum(axis=0)
    return regret, GramStatistics.of(offered.features(choice), rewards)


def without_contexts(problem: GaussianProblem, hat: Array, n_rounds: int) -> tuple[Array, GramStatistics]:
    draws = np.random.default_rng(4)
    shape = (n_rounds, N_TASKS, problem.n_arms)
    rounds = ExactRounds(
        draws.standard_normal(shape), draws.standard_normal(shape), problem.noise(n_rounds, draws)
    )
    block = ExactBlock(problem, np.tile(hat, (N_TASKS, 1)), n_rounds)
    cut = n_rounds // 3
    regret = block.play(rounds.rounds(0, cut)).sum(axis=0) + block.play(rounds.rounds(cut, n_rounds)).sum(
        axis=0
    )
    return regret, block.statistics(draws)


def summaries(theta: Array, regret: Array, seen: GramStatistics) -> dict[str, Array]:
    """Return numbers per task that together tell the laws of regret and statistics apart."""
    along, beside, *others = np.linalg.qr(np.column_stack([THETA, HAT, np.eye(DIM)[:, :3]]))[0].T
    unit = np.abs(theta).max() or 1.0
    moment = seen.moment / unit
    directions = {"theta": along, "hat": beside, "third": others[0], "between": along + others[1]}
    tested = {
        "regret": regret,
        "squares": seen.square,
        "volume": np.linalg.slogdet(seen.gram + np.eye(DIM))[1],
    }
    for name, vector in directions.items():
        tested[f"gram along {name}"] = np.vecdot(np.matvec(seen.gram, vector), vector)
        tested[f"moment along {name}"] = moment @ vector
    for first, second in (("theta", "hat"), ("theta", "third"), ("hat", "third")):
        tested[f"gram of {first} and {second}"] = np.vecdot(
            np.matvec(seen.gram, directions[first]), directions[second]
        )
    fitted = np.linalg.solve(seen.gram + 0.1 * np.eye(DIM), moment[..., None])[..., 0]
    tested["estimate"] = fitted @ (along + beside)
    tested["misfit"] = seen.square / unit**2 - np.vecdot(fitted, moment)
    return tested


N_TESTS = len(CASES) * len(LENGTHS) * 17


@pytest.mark.parametrize(("case", "n_rounds"), list(product(CASES, LENGTHS)))
def test_blocks_have_the_law_that_contexts_give_them(case: str, n_rounds: int) -> None:
    """Kolmogorov-Smirnov tests, and z tests of means and variances: FALSE_ALARM for all together."""
    theta, hat, covariance, noise_kind = CASES[case]
    problem = many_of_one(theta, covariance, noise_kind)
    roads = [road(problem, hat, n_rounds) for road in (with_contexts, without_contexts)]
    assert_array_equal(roads[0][1].count, roads[1][1].count)
    level = FALSE_ALARM / (3 * N_TESTS)
    first, second = (summaries(theta, *road) for road in roads)
    for name, values in first.items():
        sizes = np.abs(values).mean(), np.abs(second[name]).mean()
        scale = max(sizes)
        if np.ptp(values) <= 1e-9 * scale and np.ptp(second[name]) <= 1e-9 * scale:
            assert_allclose(second[name], values, rtol=1e-6, atol=1e-9 * scale)
            continue
        # rounded, so that what is 0 but for rounding ties
        pair = [np.round(sample / scale, 9) for sample in (values, second[name])]
        assert ks_2samp(*pair).pvalue > level, name
        for moments in (pair, [(sample - sample.mean()) ** 2 for sample in pair]):
            spread = np.sqrt(sum(sample.var() / N_TASKS for sample in moments))
            assert abs(moments[0].mean() - moments[1].mean()) <= 5.6 * spread + 1e-9, name


def slow_ridge() -> LearningPolicy:
    return LearningPolicy(estimator=Ridge(penalty=1.0), schedule=Every(9))


WHOLE_RUNS = 4 * 2


@pytest.mark.parametrize("build", [slow_ridge, Random], ids=["ridge", "random"])
def test_whole_runs_have_the_same_law(build: Callable[[], Policy]) -> None:
    """Regret at four checkpoints, early and late in blocks: FALSE_ALARM for all eight tests together."""
    problem = many_of_one(THETA / np.linalg.norm(THETA), PER_TASK, "gaussian")
    marks = np.array([5, 9, 22, 60])
    exact, contexts = (
        simulate(problem, build(), horizon=60, seed=seed, checkpoints=marks, path=path).regret
        for seed, path in ((0, "exact"), (1, "contexts"))
    )
    for one, other in zip(exact, contexts, strict=True):
        assert ks_2samp(one, other).pvalue > FALSE_ALARM / WHOLE_RUNS
        assert abs(one.mean() - other.mean()) <= 4.2 * np.sqrt((one.var() + other.var()) / N_TASKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "build", [lambda: MLinGreedy(rank=1), lambda: SharedGreedy(rank=1)], ids=["mlin", "shared"]
)
def test_policies_that_share_have_the_same_regret_on_either_path(build: Callable[[], Policy]) -> None:
    """Means over 60 seeds of one problem; a z test at 4.2 standard errors fails by chance in 1 of 40,000."""
    problem = GaussianProblem.draw(n_tasks=8, dim=6, rank=1, seed=0, covariance="random")
    exact, contexts = (
        np.array(
            [
                simulate(problem, build(), horizon=300, seed=seed, path=path).regret_per_task[-1]
                for seed in range(start, start + 60)
            ]
        )
        for start, path in ((0, "exact"), (100, "contexts"))
    )
    assert abs(exact.mean() - contexts.mean()) <= 4.2 * np.sqrt((exact.var() + contexts.var()) / 60)


def test_the_kernel_is_its_own_python_code() -> None:
    draws = np.random.default_rng(0)
    own, other = draws.standard_normal((2, 20, 4, 3))
    noise, along, across = (
        draws.standard_normal((20, 4)),
        np.array([1.0, -0.3, 0.0, 2.0]),
        np.array([0, 1, 0, 5.0]),
    )
    found, expected = ((np.empty((20, 4, 2)), np.empty((20, 4)), np.zeros((4, 3, 3))) for _ in range(2))
    play_coordinates(own, other, noise, along, across, *found)
    play_coordinates.__wrapped__(own, other, noise, along, across, *expected)  # type: ignore[attr-defined]
    for one, two in zip(found, expected, strict=True):
        assert_array_equal(one, two)
    arms = (along[:, None] * own + across[:, None] * other).argmax(axis=2)
    chosen = np.take_along_axis(own, arms[..., None], axis=2)[..., 0]
    assert_array_equal(found[0][..., 0], chosen)
    assert_allclose(found[1], own.max(axis=2) - chosen)
    assert_allclose(found[2][:, 2, 0], (noise * chosen).sum(axis=0))


def test_wishart_matrices_have_their_mean_and_spread() -> None:
    """Of 20,000 draws, E W = m I and Var W_ij = m (1 + [i = j]); 5 standard errors, 18 entries: 1e-5."""
    roots = wishart_roots(20_000, 3, 7, np.random.default_rng(0))
    draws = roots.mT @ roots
    spread = np.sqrt(7 * (1 + np.eye(3)))
    assert_allclose(draws.mean(axis=0), 7 * np.eye(3), atol=5 * spread.max() / np.sqrt(20_000))
    assert_allclose(draws.std(axis=0) / spread, 1.0, atol=0.04)
    assert (np.tril(roots, -1) == 0).all()


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = GaussianProblem.draw(n_tasks=6, dim=5, rank=2, seed=0)
    policies = {"ridge": slow_ridge(), "naive": MLinGreedy(rank=2)}
    expected = simulate_all(problem, policies, horizon=150, seed=1, path="exact")
    monkeypatch.setattr(posse.play.dealing, "EXACT_CHUNK_VALUES", 7 * 6 * 5)
    found = simulate_all(problem, policies, horizon=150, seed=1, path="exact")
    for name in policies:
        assert_allclose(found[name].regret, expected[name].regret, rtol=1e-12)
        assert_allclose(found[name].state.statistics.gram, expected[name].state.statistics.gram, rtol=1e-9)


def test_the_last_block_is_known_when_asked_for() -> None:
    problem = GaussianProblem.draw(n_tasks=6, dim=5, rank=2, seed=0)
    trace = simulate(problem, slow_ridge(), horizon=40, seed=0, path="exact")
    assert_array_equal(trace.state.statistics.count, 40.0)
    assert trace.state is trace.state


def test_one_feature_and_one_arm_will_do() -> None:
    line = GaussianProblem(theta=np.array([[2.0], [0.0]]), n_arms=2)
    assert np.isfinite(simulate(line, slow_ridge(), horizon=50, seed=0, path="exact").regret).all()
    lone = GaussianProblem(theta=np.ones((2, 3)), n_arms=1)
    assert_array_equal(simulate(lone, slow_ridge(), horizon=50, seed=0, path="exact").regret, 0.0)


class FirstArm(Random):
    """Chooses in its own way, though it inherits what `Random` says of itself."""

    def select(self, state: Array, actions: Actions, rng: np.random.Generator) -> IntArray:
        return np.zeros((actions.n_rounds, len(state)), dtype=np.intp)


def test_the_path_is_chosen_where_it_applies() -> None:
    problem = GaussianProblem.draw(n_tasks=3, dim=4, rank=1, seed=0)
    optimist = LearningPolicy(estimator=Ridge(penalty=1.0), rule=UCB())
    assert simulate(problem, slow_ridge(), horizon=20, seed=0).path == "exact"
    for policy in (optimist, SharedThompson(rank=1), FirstArm()):
        assert simulate(problem, policy, horizon=20, seed=0).path == "contexts"
        with pytest.raises(ValueError, match=r"`path` must not be \"exact\" .* Got "):
            simulate(problem, policy, horizon=20, seed=0, path="exact")
    mixed = simulate_all(problem, {"one": slow_ridge(), "two": optimist}, horizon=20, seed=0)
    assert {trace.path for trace in mixed.values()} == {"contexts"}

    class Tilted(GaussianProblem):
        def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
            return FiniteActions(super().actions(n_rounds, rng).arms + 1.0)

    assert simulate(Tilted(theta=problem.theta), Random(), horizon=20, seed=0).path == "contexts"
    with pytest.raises(ValueError, match="`path` must be one of auto, exact, contexts"):
        simulate(problem, Random(), horizon=20, seed=0, path="fast")


def test_a_rule_that_derives_from_greedy_chooses_for_itself() -> None:
    class Contrary(Greedy):
        def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> IntArray:
            return np.asarray(actions.argmax(-estimate.theta, rng))

    problem = GaussianProblem.draw(n_tasks=3, dim=4, rank=1, seed=0)
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), rule=Contrary())
    assert simulate(problem, policy, horizon=20, seed=0).path == "contexts"


def test_a_policy_that_believes_nonsense_is_told() -> None:
    class Confused(Random):
        def theta_of(self, state: Array) -> Array:
            return np.full_like(state, np.nan)

    class Short(Random):
        def theta_of(self, state: Array) -> Array:
            return np.asarray(state[0])

    problem = GaussianProblem.draw(n_tasks=3, dim=4, rank=1, seed=0)
    for policy in (Confused(), Short()):
        with pytest.raises(ValueError, match="the theta that a policy plays by"):
            simulate(problem, policy, horizon=20, seed=0)
