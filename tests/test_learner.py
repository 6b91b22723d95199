"""Learner: posteriors that rewards move at once, exact probabilities, states that go on as they were."""

import copy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from proofs.propensities import POLICIES, frequencies, weighted_value

from posse import (
    E2TC,
    PEGE,
    UCB,
    Every,
    FactorPrior,
    Fading,
    FiniteActions,
    GaussianPrior,
    GramStatistics,
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    Learner,
    LearningPolicy,
    LowRank,
    MLinGreedy,
    OracleBasis,
    OracleGreedy,
    OracleThompson,
    Random,
    Ridge,
    Shared,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    Thompson,
    load,
    save,
)
from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.protocols import Policy
from posse.estimators import FactorEstimate
from posse.estimators.factor_prior.posterior import FactorPosterior
from posse.numerics.checks import Array

N_TASKS, DIM = 5, 4
BASIS = np.linalg.qr(np.random.default_rng(0).standard_normal((DIM, 2)))[0]
PRIOR = GaussianPrior(mean=np.arange(4.0) / 4, covariance=np.diag([1.0, 0.5, 2.0, 0.0]), noise=0.7)
SERVING: list[Policy] = [
    Random(),
    SharedGreedy(),
    SharedGreedy(rank=2, memory=0.97),
    SharedThompson(floor=0.01),
    SharedUCB(),
    Shared(),
    IndependentGreedy(memory=Fading(0.95, by="clock")),
    IndependentThompson(draws=7),
    IndependentUCB(prompt=False),
    OracleGreedy(BASIS),
    OracleThompson(BASIS),
    LearningPolicy(estimator=PRIOR, rule=Thompson()),
    LearningPolicy(estimator=Ridge(penalty=2.0), rule=UCB(), memory="epoch"),
]


def rows(n: int, seed: int = 1, n_tasks: int = N_TASKS) -> tuple[Any, Array, Array]:
    rng = np.random.default_rng(seed)
    tasks = rng.integers(n_tasks, size=n)
    x = rng.standard_normal((n, DIM))
    return tasks, x, x @ np.array([1.0, -1.0, 0.5, 0.0]) + rng.standard_normal(n)


def covariance_of(beliefs: Beliefs) -> Array:
    root = beliefs.deviation[:, None, None] * beliefs.root
    return np.asarray(root @ root.mT)


@pytest.mark.parametrize("estimator", [Ridge(penalty=2.0), OracleBasis(basis=BASIS, penalty=0.5), PRIOR])
@pytest.mark.parametrize("weighted", [False, True])
def test_rewards_that_count_at_once_give_what_a_fit_gives(estimator: Any, weighted: bool) -> None:
    tasks, x, y = rows(60)
    weights = np.random.default_rng(2).integers(0, 3, 60).astype(float) if weighted else None
    learner = Learner(LearningPolicy(estimator=estimator), n_tasks=N_TASKS, dim=DIM, seed=0)
    learner.observe(tasks, x, y, weights)
    fitted = estimator.fit(GramStatistics.from_rows(tasks, x, y, N_TASKS, weights))
    assert_allclose(learner.beliefs.theta, fitted.theta, atol=1e-10)
    if estimator is PRIOR:  # whose noise is known, too
        assert_allclose(covariance_of(learner.beliefs), fitted.covariance, atol=1e-10)
    learner.update()
    assert_allclose(learner.beliefs.theta, fitted.theta, atol=1e-10)
    assert_allclose(covariance_of(learner.beliefs), fitted.covariance, atol=1e-10)


@pytest.mark.parametrize("policy", [SharedThompson(rank=2), IndependentThompson(), OracleThompson(BASIS)])
def test_between_updates_a_task_is_conditioned_on_its_own_rows_by_bayes(policy: Policy) -> None:
    learner = Learner(policy, n_tasks=N_TASKS, dim=DIM, seed=0)
    learner.observe(*rows(80))
    learner.update()
    before, noise = learner.beliefs, learner.beliefs.deviation[3] ** 2
    _, x, y = rows(7, seed=5)
    learner.observe([3] * 7, x, y)
    after = learner.beliefs
    prior = covariance_of(before)[3]
    gain = prior @ x.T @ np.linalg.inv(noise * np.eye(7) + x @ prior @ x.T)  # by rows
    assert_allclose(after.theta[3], before.theta[3] + gain @ (y - x @ before.theta[3]), atol=1e-9)
    assert_allclose(covariance_of(after)[3], prior - gain @ x @ prior, atol=1e-9)
    for others in (after, before):
        assert_array_equal(np.delete(others.theta, 3, axis=0), np.delete(before.theta, 3, axis=0))


@pytest.mark.parametrize("policy", [SharedThompson(), IndependentGreedy(), LearningPolicy(estimator=PRIOR)])
def test_order_and_batches_do_not_matter(policy: Policy) -> None:
    tasks, x, y = rows(50)
    order = np.random.default_rng(3).permutation(50)
    whole, single, mixed = (Learner(policy, n_tasks=N_TASKS, dim=DIM, seed=0) for _ in range(3))
    whole.observe(tasks, x, y)
    for n in range(50):
        single.observe(tasks[n : n + 1], x[n : n + 1], y[n : n + 1])
    for part in np.array_split(order, 4):
        mixed.observe(tasks[part], x[part], y[part])
    for update in (False, True):
        if update:
            for learner in (whole, single, mixed):
                learner.update()
        for other in (single, mixed):
            assert other.clock == whole.clock
            assert_allclose(other.beliefs.theta, whole.beliefs.theta, atol=1e-7)
            assert_allclose(covariance_of(other.beliefs), covariance_of(whole.beliefs), atol=1e-7)
    assert_allclose(single.state.statistics.gram, whole.state.statistics.gram, atol=1e-12)


@pytest.mark.parametrize("memory", [0.9, Fading(0.9, by="clock")])
def test_forgetting_does_not_depend_on_batches(memory: Any) -> None:
    tasks, x, y = rows(40)
    tasks[:N_TASKS] = np.arange(N_TASKS)  # all are seen, so that the clock is rows / T from then on
    states = []
    for cuts in ([], [20], [6, 7, 20, 33], list(range(6, 40))):
        learner = Learner(
            LearningPolicy(estimator=Ridge(penalty=1.0), memory=memory), n_tasks=N_TASKS, dim=DIM, seed=0
        )
        for part in np.split(np.arange(40), cuts):
            learner.observe(tasks[part], x[part], y[part])
            learner.update()
        states.append(learner.state)
    for state in states[1:]:
        assert_allclose(state.statistics.gram, states[0].statistics.gram, rtol=1e-10)
        assert_allclose(state.statistics.count, states[0].statistics.count, rtol=1e-10)
        assert_allclose(state.estimate.theta, states[0].estimate.theta, rtol=1e-8)
    if memory == 0.9:
        expected = Fading(0.9).from_rows(tasks, x, y, N_TASKS)
        assert_allclose(states[0].statistics.moment, expected.moment, rtol=1e-10)


def test_six_single_task_updates_forget_as_much_as_their_rows_at_once() -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=0.9)
    left = []
    for parts in ([np.arange(6)], np.split(np.arange(6), 6)):
        learner = Learner(policy, n_tasks=6, dim=1, seed=0)
        learner.observe(np.repeat(np.arange(6), 100), np.ones((600, 1)), np.zeros(600))
        learner.update()
        for part in parts:
            learner.observe(part, np.ones((len(part), 1)), np.zeros(len(part)))
            learner.update()
        left.append(learner.state.statistics.count)
    assert_allclose(left[0], left[1], rtol=1e-12)


def test_a_clock_of_many_rows_does_not_overflow() -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=Fading(0.5, by="clock"))
    learner = Learner(policy, n_tasks=2, dim=1, seed=0)
    for _ in range(30):
        learner.observe(np.tile([0, 1], 100), np.ones((200, 1)), np.ones(200))
    learner.update()
    each = np.sqrt(0.5)  # the clock moves by a half with each row, and a task has every other
    assert_allclose(learner.state.statistics.count, [each / (1 - 0.5), 1 / (1 - 0.5)], rtol=1e-9)


@pytest.mark.parametrize("policy", [SharedThompson(), SharedThompson(prompt=False), IndependentThompson()])
def test_statistics_teach_what_their_rows_do(policy: Policy) -> None:
    rng = np.random.default_rng(0)
    tasks, x, y = rng.integers(6, size=200), rng.standard_normal((200, 3)), rng.standard_normal(200)
    told = GramStatistics.from_rows(tasks[:150], x[:150], y[:150], 6)
    by_rows, by_sums = (Learner(policy, n_tasks=6, dim=3, names=list("abcdef"), seed=0) for _ in range(2))
    by_rows.observe(tasks[:150], x[:150], y[:150])
    by_sums.absorb(told)
    for _ in range(2):  # before an update, and after it
        one, other = by_rows.beliefs, by_sums.beliefs
        assert_allclose(one.theta, other.theta, atol=1e-8)
        assert_allclose(one.root @ one.root.mT, other.root @ other.root.mT, atol=1e-8)
        assert_allclose(one.deviation, other.deviation)
        assert (by_rows.clock, by_rows.due) == (by_sums.clock, by_sums.due)
        for learner in (by_rows, by_sums):
            learner.observe(tasks[150:], x[150:], y[150:])
            learner.update()
    again = Learner.restore(by_sums.snapshot())
    assert again.clock == by_rows.clock
    assert again.names == tuple("abcdef")


def test_statistics_that_do_not_fit_are_refused_and_change_nothing() -> None:
    learner = Learner(SharedThompson(), n_tasks=2, dim=3, seed=0)
    with pytest.raises(ValueError, match=r"must be of 2 tasks and 3 features. Got \(3, 3\)."):
        learner.absorb(GramStatistics.zeros(3, 3))
    forgetful = Learner(SharedThompson(memory=0.9), n_tasks=2, dim=1, seed=0)
    with pytest.raises(ValueError, match="have no order in time, so the policy must forget nothing"):
        forgetful.absorb(GramStatistics.of(np.ones((3, 2, 1)), np.ones((3, 2))))
    assert (learner.clock, forgetful.clock) == (0, 0)
    learner.absorb(GramStatistics.zeros(2, 3))
    with pytest.raises(ValueError, match="must have something to learn from"):
        learner.update()


def test_a_learner_is_due_when_its_schedule_says_so() -> None:
    learner = Learner(IndependentGreedy(schedule=Every(2)), n_tasks=3, dim=1, seed=0)
    assert not learner.due
    for row in range(4):
        learner.observe([row % 2], [[1.0]], [1.0])
        assert learner.due == (row == 3)  # two rows of two tasks seen
    learner.update()
    assert (learner.due, learner.clock) == (False, 2.0)
    learner.observe([2], [[1.0]], [1.0])
    assert learner.clock == 5 / 3  # another task was seen


def test_rows_that_come_during_an_update_are_not_lost() -> None:
    whole, apart = (Learner(SharedThompson(rank=1), n_tasks=N_TASKS, dim=DIM, seed=0) for _ in range(2))
    first, second = rows(60), rows(30, seed=9)
    for learner in (whole, apart):
        learner.observe(*first)
    whole.update()
    whole.observe(*second)
    job = apart.begin()
    assert not apart.due
    apart.observe(*second)
    with pytest.raises(ValueError, match=r"must be adopted or cancelled before another begins"):
        apart.begin()
    apart.adopt(job.run())
    assert_allclose(apart.beliefs.theta, whole.beliefs.theta, atol=1e-9)
    assert_allclose(covariance_of(apart.beliefs), covariance_of(whole.beliefs), atol=1e-9)
    for learner in (whole, apart):
        learner.update()
    assert_array_equal(apart.state.statistics.gram, whole.state.statistics.gram)


def test_an_update_that_is_cancelled_loses_nothing() -> None:
    learner = Learner(SharedGreedy(rank=1), n_tasks=2, dim=DIM, seed=0)
    tasks, x, y = rows(30, n_tasks=2)
    learner.observe(tasks[:10], x[:10], y[:10])
    learner.begin()
    learner.observe(tasks[10:20], x[10:20], y[10:20])
    saved = learner.snapshot()  # in the middle of it
    learner.cancel()
    learner.add(2)
    learner.observe(tasks[20:], x[20:], y[20:])
    learner.update()
    expected = GramStatistics.from_rows(tasks, x, y, 4)
    assert_allclose(learner.state.statistics.gram, expected.gram, atol=1e-12)
    again = Learner.restore(saved, seed=0)
    again.observe(tasks[20:], x[20:], y[20:])
    again.update()
    assert_allclose(again.state.statistics.gram, expected.gram[:2], atol=1e-12)
    with pytest.raises(ValueError, match=r"must have something to learn from"):
        again.begin()
    with pytest.raises(ValueError, match=r"must be what Job.run returned. Got LearningState"):
        again.adopt(again.state)


def test_only_the_result_of_the_update_under_way_is_adopted() -> None:
    learner = Learner(SharedGreedy(rank=1), n_tasks=2, dim=DIM, seed=0)
    learner.observe(*rows(10, n_tasks=2))
    first = learner.begin().run()
    learner.cancel()
    with pytest.raises(ValueError, match=r"must be that of the update under way. Got none under way"):
        learner.adopt(first)
    learner.observe(*rows(5, seed=3, n_tasks=2))
    second = learner.begin()
    with pytest.raises(ValueError, match=r"must be that of the update under way. Got that of another"):
        learner.adopt(first)
    learner.adopt(second.run())
    assert learner.state.statistics.count.sum() == 15
    for wrong in (learner, "learner.posse", first):
        with pytest.raises(
            ValueError, match=r"must be what `snapshot` returned. Got .* `posse.load` reads a file"
        ):
            Learner.restore(wrong)  # type: ignore[arg-type]


class FailsOnce:
    """An estimator that fails when it is told to."""

    gives_covariance = True

    def __init__(self) -> None:
        self.fails = False

    def fit(self, statistics: GramStatistics) -> Estimate:
        if self.fails:
            raise RuntimeError("no memory left")
        return PRIOR.fit(statistics)


def test_an_update_that_fails_leaves_all_as_it_was() -> None:
    estimator = FailsOnce()
    learner = Learner(LearningPolicy(estimator=estimator, schedule=Every(1)), n_tasks=2, dim=DIM, seed=0)
    tasks, x, y = rows(20, n_tasks=2)
    learner.observe(tasks[:10], x[:10], y[:10])
    before = learner.beliefs
    estimator.fails = True
    with pytest.raises(RuntimeError, match="no memory left"):
        learner.update()
    assert learner.due
    assert_array_equal(learner.beliefs.theta, before.theta)
    learner.observe(tasks[10:], x[10:], y[10:])
    estimator.fails = False
    learner.update()
    assert_allclose(learner.state.statistics.gram, GramStatistics.from_rows(tasks, x, y, 2).gram, atol=1e-12)


def test_a_new_task_starts_from_the_prior() -> None:
    learner = Learner(SharedThompson(rank=1), n_tasks=N_TASKS, dim=DIM, seed=0)
    learner.observe(*rows(200))
    learner.update()
    (number,) = learner.add(1)
    estimate = learner.state.estimate
    assert isinstance(estimate, FactorEstimate)
    assert isinstance(estimate.posterior, FactorPosterior)
    assert_allclose(learner.beliefs.theta[number], estimate.mean, atol=1e-12)
    expected = covariance_of(estimate.posterior.newcomer())[0]
    assert_allclose(covariance_of(learner.beliefs)[number], expected, atol=1e-10)
    more = learner.add(40)
    assert (more[0], learner.n_tasks) == (6, 46)
    learner.observe([45], [[1.0, 0.0, 0.0, 0.0]], [3.0])
    learner.update()
    assert learner.state.statistics.n_tasks == 46
    assert_array_equal(learner.state.statistics.count[[44, 45]], [0.0, 1.0])
    learner.observe([45], [[1.0, 0.0, 0.0, 0.0]], [3.0])  # and the warm start of all tasks goes on
    learner.update()
    fresh = FactorPrior(rank=1).fit(learner.state.statistics)
    assert_allclose(learner.state.estimate.theta, fresh.theta, atol=1e-4)


@pytest.mark.parametrize("policy", SERVING, ids=repr)
def test_a_learner_that_is_saved_goes_on_bit_by_bit(policy: Policy, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    learner = Learner(policy, n_tasks=N_TASKS, dim=DIM, seed=0)
    for step in range(4):
        save(learner.snapshot(), tmp_path / "learner.posse")
        again = Learner.restore(load(tmp_path / "learner.posse"), seed=copy.deepcopy(learner._rng))
        arms = rng.standard_normal((N_TASKS, 3, DIM))
        both = [one.select(np.arange(N_TASKS), arms) for one in (learner, again)]
        assert_array_equal(both[0].arm, both[1].arm)
        assert_array_equal(both[0].probabilities, both[1].probabilities)
        for one in (learner, again):
            one.observe(*rows(30, seed=step))
            if step % 2:
                one.update()
            assert one.due == learner.due
        for name in ("theta", "root", "deviation"):
            assert_array_equal(getattr(again.beliefs, name), getattr(learner.beliefs, name))


GO_ON = """
import sys
import numpy as np
{imports}
from posse import Learner, load
learner = Learner.restore(load({path!r}), seed=5)
learner.observe([0, 1], np.ones((2, 4)), [1.0, 2.0])
learner.update()
choice = learner.select([1], np.arange(12.0).reshape(1, 3, 4))
print(learner.beliefs.theta.tobytes().hex(), choice.probabilities.tobytes().hex())
"""


@pytest.mark.parametrize("imports", ["", "import posse.play", "import posse.policies, posse.lab.registry"])
def test_a_new_process_goes_on_bit_by_bit(imports: str, tmp_path: Path) -> None:
    learner = Learner(SharedThompson(), n_tasks=N_TASKS, dim=DIM, seed=0, names=list("abcde"))
    learner.observe(*rows(60))
    learner.update()
    learner.observe(*rows(9, seed=2))
    path = tmp_path / "learner.posse"
    save(learner.snapshot(), path)
    program = GO_ON.format(imports=imports, path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    learner._rng = np.random.default_rng(5)
    learner.observe([0, 1], np.ones((2, 4)), [1.0, 2.0])
    learner.update()
    choice = learner.select([1], np.arange(12.0).reshape(1, 3, 4))
    assert done.stdout.split() == [
        learner.beliefs.theta.tobytes().hex(),
        choice.probabilities.tobytes().hex(),
    ]


# Eight tests at the level 1e-4 each, with seeds: an honest learner fails one of them for a seed in 1250.
@pytest.mark.parametrize("name", POLICIES)
def test_choices_are_as_frequent_as_their_probabilities(name: str) -> None:
    assert frequencies(POLICIES[name], 20_000) > 1e-4


def test_weights_by_propensities_are_unbiased() -> None:
    found = weighted_value(300)
    assert found["p"] > 1e-4
    assert found["standard error"] < 0.1


def test_thompson_with_many_draws_has_the_law_of_one_draw() -> None:
    learner = Learner(LearningPolicy(estimator=PRIOR, rule=Thompson(draws=200)), n_tasks=1, dim=DIM, seed=0)
    arms = np.random.default_rng(4).standard_normal((1, 3, DIM))
    drawn = np.random.default_rng(1).multivariate_normal(PRIOR.mean, PRIOR.covariance, 200_000)
    wins = np.bincount((drawn @ arms[0].T).argmax(axis=1), minlength=3) / 200_000
    mean = np.mean([learner.select([0], arms).probabilities[0] for _ in range(400)], axis=0)
    assert_allclose(mean, wins, atol=5 * np.sqrt(0.25 / 80_000))  # five standard errors, of each of three


def test_a_floor_holds_for_every_arm_on_offer_and_in_dense_play() -> None:
    policy = LearningPolicy(estimator=PRIOR, rule=Thompson(floor=0.1))
    learner = Learner(policy, n_tasks=1, dim=DIM, seed=0)
    arms = np.zeros((1, 4, DIM))
    arms[0, 0, 3] = 1.0  # along which theta is known
    available = np.array([[True, True, True, False]])
    assert_allclose(learner.select([0], arms, available).probabilities, [[0.8, 0.1, 0.1, 0.0]])
    offered = FiniteActions(
        np.broadcast_to(arms, (20_000, 1, 4, DIM)), np.broadcast_to(available, (20_000, 1, 4))
    )
    chosen = policy.select(policy.init(1, DIM), offered, np.random.default_rng(0))
    assert_allclose(np.bincount(chosen.ravel(), minlength=4)[1:] / 20_000, [0.1, 0.1, 0.0], atol=0.012)
    with pytest.raises(ValueError, match=r"at most 1 / K for K = 4 arms on offer. Got 0.3"):
        LearningPolicy(estimator=PRIOR, rule=Thompson(floor=0.3)).select(
            policy.init(1, DIM), FiniteActions(arms[None]), np.random.default_rng(0)
        )
    with pytest.raises(ValueError, match=r"at most 1 / K for K = 4 arms on offer. Got 0.3"):
        Learner(LearningPolicy(estimator=PRIOR, rule=Thompson(floor=0.3)), n_tasks=1, dim=DIM).select(
            [0], arms
        )


def test_names() -> None:
    learner = Learner(Random(), n_tasks=2, dim=1, names=["north", "17"], seed=0)
    learner.observe(["17", "north", "17"], np.ones((3, 1)), [1.0, 2.0, 3.0])
    assert_array_equal(learner.snapshot().seen, [1.0, 2.0])
    assert_array_equal(learner.add(["east"]), [2])
    assert learner.names == ("north", "17", "east")
    learner.select(["east"], np.ones((1, 2, 1)))
    learner.retire(["17"])
    with pytest.raises(ValueError, match=r"tasks to decide for must not be retired. Got 17\."):
        learner.select(["north", "17"], np.ones((2, 2, 1)))
    learner.observe(["17"], np.ones((1, 1)), [1.0])  # a reward that is late
    learner.retire(["17"])
    assert_array_equal(learner.retired, [1])
    with pytest.raises(ValueError, match=r"must be known, or be added first. Got 'west'"):
        learner.observe(["west"], [[1.0]], [1.0])
    for wrong in (["north"], ["a", "a"], []):
        with pytest.raises(ValueError, match=r"must each be of one task alone. Got \["):
            learner.add(wrong)
    for odd in (2, "west", [3]):
        with pytest.raises(ValueError, match=r"must be a list of strings. Got"):
            learner.add(odd)  # type: ignore[arg-type]
    assert (learner.n_tasks, learner.names) == (3, ("north", "17", "east"))
    for names in (["north"], "ab", ["a", "a"], [1, 2]):
        with pytest.raises(ValueError, match=r"one for each of 2|of one task alone|list of strings"):
            Learner(Random(), n_tasks=2, dim=1, names=names)  # type: ignore[arg-type]
    assert Learner(Random(), n_tasks=2, dim=1, names=np.array(["a", "b"])).names == ("a", "b")  # type: ignore[arg-type]


def test_tasks_that_are_added_one_by_one_are_those_added_together() -> None:
    one, many = (Learner(SharedThompson(rank=1), n_tasks=3, dim=DIM, seed=0) for _ in range(2))
    for learner in (one, many):
        learner.observe(*rows(60, n_tasks=3))
        learner.update()
    many.add(50)
    for number in range(3, 53):
        assert_array_equal(one.add(1), [number])
        one.observe([number], np.ones((1, DIM)), [1.0])
        many.observe([number], np.ones((1, DIM)), [1.0])
    assert_array_equal(one.beliefs.theta, many.beliefs.theta)
    assert_array_equal(one.snapshot().pending.gram, many.snapshot().pending.gram)
    assert len(one._beliefs.theta) < 128  # room for twice as many, not more


class Nameless:
    """A rule that cannot tell its probabilities."""

    def choose(self, estimate: Estimate, actions: Any, rng: Any) -> Any:
        return actions.argmax(estimate.theta, rng)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.select([5], np.ones((1, 2, 4))), "numbers from 0 to 4, or be added first. Got 5"),
        (lambda one: one.select([-1], np.ones((1, 2, 4))), "Got -1"),
        (lambda one: one.select(["a"], np.ones((1, 2, 4))), r"list of numbers of tasks. Got \['a'\]"),
        (lambda one: one.select([0.5], np.ones((1, 2, 4))), "list of numbers"),
        (lambda one: one.select([], np.ones((0, 2, 4))), "list of numbers"),
        (lambda one: one.select([0], np.ones((1, 2, 3))), r"shape \(m=1, K, d=4\). Got \(1, 2, 3\)"),
        (lambda one: one.select([0], np.ones((2, 2, 4))), r"Got \(2, 2, 4\)"),
        (lambda one: one.select([0], np.full((1, 2, 4), np.nan)), "not numbers in row 0"),
        (lambda one: one.select([0], np.ones((1, 2, 4)), [[False, False]]), "Got none in row 0"),
        (
            lambda one: one.select([0], np.ones((1, 2, 4)), [[True]]),
            r"shape \(1, 2\). Got bool of shape \(1, 1\)",
        ),
        (lambda one: one.select([0], np.ones((1, 2, 4)), [["True", "False"]]), r"True or False.* Got <U5"),
        (
            lambda one: one.select([0, 1], [[[1.0] * 4], [[1.0] * 4] * 2]),
            "equal length: fill up .* by `available`",
        ),
        (lambda one: one.observe([0], [["1", "2", "3", "4"]], [1.0]), "`features` must be numbers. Got <U1"),
        (lambda one: one.observe([0], np.full((1, 4), 1e160), [1.0]), "`features` .* of at most 1e75"),
        (lambda one: one.observe([0], np.ones((1, 4)), [1e200]), "`rewards` .* at most 1e75. Got 1e"),
        (lambda one: one.select([0], np.ones((1, 0, 4))), "Got none in row 0"),
        (lambda one: one.observe([0], np.ones((1, 3)), [1.0]), r"features of shape \(1, 4\)"),
        (lambda one: one.observe([0], np.ones((1, 4)), [1.0, 2.0]), r"Got \(1, 4\), \(2,\)"),
        (lambda one: one.observe([0, 9], np.ones((2, 4)), [1.0, 2.0]), "Got 9"),
        (lambda one: one.observe([0, 1], np.ones((2, 4)), [1.0, np.nan]), "`rewards` .* Got nan in row 1"),
        (lambda one: one.observe([0], np.full((1, 4), np.inf), [1.0]), "`features` .* inf.* in row 0"),
        (lambda one: one.observe([0], np.ones((1, 4)), [1.0], [-1.0]), "`weights` .* Got -1.0 in row 0"),
        (lambda one: one.add(0), "`tasks` of add must be an integer of at least 1. Got 0"),
        (lambda one: one.add(["a"]), r"must be counted, as the others have no names. Got \['a'\]"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(call: Any, message: str) -> None:
    learner = Learner(SharedThompson(), n_tasks=N_TASKS, dim=DIM, seed=0)
    learner.observe(*rows(20))
    before, pending = learner.beliefs, learner.snapshot().pending
    with pytest.raises(ValueError, match=message):
        call(learner)
    assert_array_equal(learner.beliefs.theta, before.theta)
    assert_array_equal(learner.snapshot().pending.gram, pending.gram)
    assert learner.n_tasks == N_TASKS


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (E2TC(rank=2), "must have a policy that decides for single tasks.* Got E2TC"),
        (PEGE(), "Got PEGE"),
        (SharedGreedy, "Got <class"),
        (MLinGreedy(2), "if nobody knows the last round. Got MLinGreedy.* DoublyExponential needs a horizon"),
        (LearningPolicy(estimator=LowRank(rank=2)), "must have a posterior for each task.* Got LowRank"),
    ],
)
def test_policies_that_cannot_serve_are_refused(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Learner(policy, n_tasks=3, dim=2)


def test_a_probability_that_a_rule_cannot_give_is_refused() -> None:
    learner = Learner(LearningPolicy(estimator=PRIOR, rule=Nameless()), n_tasks=2, dim=DIM)
    with pytest.raises(ValueError, match=r"must have a rule that knows its probabilities.* Got <.*Nameless"):
        learner.select([0], np.ones((1, 2, DIM)))


def test_a_reward_moves_a_task_whose_rewards_were_all_zero() -> None:
    learner = Learner(IndependentGreedy(), n_tasks=1, dim=1, seed=0)
    learner.observe([0] * 9, np.ones((9, 1)), np.zeros(9))
    learner.update()
    learner.observe([0], [[1.0]], [1.0])
    assert learner.beliefs.theta[0, 0] > 0


def test_bounds_of_ucb_are_as_wide_as_the_posterior() -> None:
    scale = 0.7
    learner = Learner(LearningPolicy(estimator=PRIOR, rule=UCB(scale=scale)), n_tasks=2, dim=DIM, seed=0)
    learner.observe(*rows(12, n_tasks=2))
    rng = np.random.default_rng(3)
    for task in (0, 1):
        theta, covariance = learner.beliefs.theta[task], covariance_of(learner.beliefs)[task]
        for _ in range(40):
            arms = rng.standard_normal((3, DIM))
            bounds = arms @ theta + scale * np.sqrt(np.einsum("ki,ij,kj->k", arms, covariance, arms))
            assert learner.select([task], arms[None]).arm[0] == bounds.argmax()


@pytest.mark.parametrize("size", [1.0, 1e-40])
@pytest.mark.parametrize(
    "policy",
    [
        LearningPolicy(estimator=Ridge(penalty=4.0)),
        LearningPolicy(estimator=OracleBasis(basis=BASIS, penalty=4.0)),
        IndependentGreedy(),
        OracleGreedy(BASIS),
        LearningPolicy(estimator=PRIOR),
        SharedGreedy(rank=1),
    ],
    ids=repr,
)
def test_a_newcomer_is_a_task_without_data(policy: Any, size: float) -> None:
    learner = Learner(policy, n_tasks=4, dim=DIM, seed=0)
    tasks, x, y = rows(60, n_tasks=3)
    learner.observe(tasks, size * x, y)  # the last task has none
    learner.update()
    learner.add(1)
    for _ in range(2):  # alike from the start, and after a reward
        beliefs = learner.beliefs
        assert_allclose(beliefs.theta[4], beliefs.theta[3], rtol=1e-6, atol=1e-12 / size)
        assert_allclose(covariance_of(beliefs)[4], covariance_of(beliefs)[3], rtol=1e-6, atol=1e-12)
        learner.observe([3, 4], size * x[[0, 0]], [1.0, 1.0])


def test_a_policy_that_waits_is_moved_by_updates_alone() -> None:
    learner = Learner(IndependentThompson(prompt=False), n_tasks=2, dim=DIM, seed=0)
    before = learner.beliefs
    learner.observe(*rows(20, n_tasks=2))
    assert_array_equal(learner.beliefs.theta, before.theta)
    learner.begin()
    learner.cancel()
    learner.update()
    assert np.abs(learner.beliefs.theta - before.theta).max() > 0.1


def test_tasks_that_are_added_during_an_update_start_from_what_it_finds() -> None:
    learner = Learner(SharedGreedy(rank=1), n_tasks=N_TASKS, dim=DIM, seed=0)
    learner.observe(*rows(100))
    job = learner.begin()
    (number,) = learner.add(1)
    learner.adopt(job.run())
    expected = covariance_of(learner.state.estimate.posterior.newcomer())[0]
    assert_allclose(covariance_of(learner.beliefs)[number], expected, atol=1e-10)
    assert np.abs(expected - np.eye(DIM)).max() > 0.1


@pytest.mark.parametrize("memory", [0.8, Fading(0.8, by="clock")])
def test_forgetting_goes_through_jobs_and_files_as_it_should(memory: Any, tmp_path: Path) -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=memory)
    plain, jobs = (Learner(policy, n_tasks=3, dim=DIM, seed=0) for _ in range(2))
    tasks, x, y = rows(30, n_tasks=3)
    for part in np.split(np.arange(30), 3):
        plain.observe(tasks[part], x[part], y[part])
    plain.update()
    jobs.observe(tasks[:10], x[:10], y[:10])
    jobs.begin()
    jobs.observe(tasks[10:20], x[10:20], y[10:20])
    save(jobs.snapshot(), tmp_path / "learner.posse")
    again = Learner.restore(load(tmp_path / "learner.posse"), seed=0)
    jobs.cancel()
    for learner in (jobs, again):
        learner.observe(tasks[20:], x[20:], y[20:])
        learner.update()
        assert_allclose(learner.state.statistics.gram, plain.state.statistics.gram, rtol=1e-12)
        assert_allclose(learner.state.statistics.count, plain.state.statistics.count, rtol=1e-12)
    if isinstance(memory, Fading):
        expected = memory.from_rows(tasks, x, y, 3)
        assert_allclose(plain.state.statistics.moment, expected.moment, rtol=1e-10)


@pytest.mark.parametrize("n_rows", [3, 30_000])
def test_a_clock_may_run_far_in_one_call(n_rows: int) -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=Fading(0.5, by="clock"))
    learner = Learner(policy, n_tasks=1, dim=1, seed=0)
    learner.observe([0] * n_rows, np.ones((n_rows, 1)), np.ones(n_rows))
    learner.update()
    assert_allclose(learner.state.statistics.count, (1 - 0.5**n_rows) / 0.5)


def test_a_task_that_is_idle_for_long_is_forgotten_altogether() -> None:
    learner = Learner(IndependentGreedy(memory=Fading(0.5, by="clock")), n_tasks=2, dim=2, seed=0)
    learner.observe([0, 0, 1], np.random.default_rng(0).standard_normal((3, 2)), [1000.0, 500.0, 1.0])
    for _ in range(700):
        learner.observe([1] * 4, np.ones((4, 2)), [1.0] * 4)
        learner.update()
    assert_array_equal(learner.state.statistics.gram[0], 0.0)
    assert learner.state.statistics.square[0] == 0.0


def test_tasks_that_come_late_do_not_put_off_updates_for_ever() -> None:
    learner = Learner(IndependentGreedy(), n_tasks=10, dim=1, seed=0)
    learner.observe(np.tile(np.arange(10), 100), np.ones((1000, 1)), np.ones(1000))
    learner.update()
    for one in (learner, Learner.restore(learner.snapshot())):
        one.add(990)
        one.observe(np.arange(1000), np.ones((1000, 1)), np.ones(1000))
        assert not one.due  # two rows each
        one.observe(np.tile(np.arange(1000), 3), np.ones((3000, 1)), np.ones(3000))
        assert one.due  # five


def test_what_is_restored_is_due_and_retired_as_it_was(tmp_path: Path) -> None:
    learner = Learner(IndependentGreedy(), n_tasks=3, dim=DIM, seed=0)
    learner.observe(*rows(60, n_tasks=3))
    learner.update()
    learner.retire([1])
    again = Learner.restore(learner.snapshot())
    assert_array_equal(again.retired, [1])
    assert not again.due
    for one in (learner, again):
        one.observe(*rows(11, n_tasks=3))
        assert not one.due
        one.observe(*rows(1, n_tasks=3))
        assert one.due  # a fifth more than 60 rows


def test_a_state_that_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    saved = Learner(IndependentGreedy(), n_tasks=20, dim=DIM).snapshot()
    parts: tuple[tuple[str, Any], ...] = (
        ("root", np.zeros((1, DIM, DIM))),
        ("seen", np.zeros(1)),
        ("retired", np.zeros(20)),
        ("pending", None),
        ("theta", np.zeros(3)),
    )
    for name, part in parts:
        with pytest.raises(ValueError, match=rf"`({name}|root)` of LearnerState must be"):
            replace(saved, **{name: part})


def test_a_learner_survives_more_tasks_than_fit_into_memory() -> None:
    learner = Learner(IndependentGreedy(), n_tasks=3, dim=DIM, seed=0)
    with pytest.raises((MemoryError, ValueError)):
        learner.add(10**14)
    assert learner.n_tasks == 3
    learner.select([2], np.ones((1, 2, DIM)))


def test_features_that_are_huge_for_the_prior() -> None:
    learner = Learner(IndependentThompson(), n_tasks=2, dim=3, seed=0)
    rng = np.random.default_rng(5)
    for size in (1e9, 1e12):
        learner.observe([0] * 20, size * rng.standard_normal((20, 3)), rng.standard_normal(20))
        job = learner.begin()
        x = size * rng.standard_normal((2, 3))
        learner.observe([1, 1], x, [1.0, 2.0])
        learner.adopt(job.run())
        assert_allclose(x @ learner.beliefs.theta[1], [1.0, 2.0], rtol=1e-3)
        learner.update()


class Headstrong(Thompson):
    """A rule that chooses in its own way."""

    def choose(self, estimate: Estimate, actions: Any, rng: Any) -> Any:
        return np.zeros((actions.n_rounds, actions.shape[1]), dtype=int)


class Stubborn(SharedThompson):
    """A policy that chooses in its own way."""

    def select(self, state: Any, actions: Any, rng: Any) -> Any:
        return np.zeros((actions.n_rounds, actions.shape[1]), dtype=int)


def test_a_way_of_ones_own_is_not_served_by_the_parents() -> None:
    with pytest.raises(ValueError, match=r"must have a rule that knows its probabilities.* Got Headstrong"):
        Learner(LearningPolicy(estimator=PRIOR, rule=Headstrong()), n_tasks=1, dim=DIM).select(
            [0], np.ones((1, 2, DIM))
        )
    with pytest.raises(ValueError, match=r"decides for single tasks.* Got Stubborn"):
        Learner(Stubborn(), n_tasks=1, dim=DIM)


def test_switches_are_true_or_false() -> None:
    for prompt in ("false", 1, 0.0):
        with pytest.raises(
            ValueError, match=rf"`prompt` of SharedGreedy must be True, False or None. Got {prompt!r}"
        ):
            SharedGreedy(prompt=prompt)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"`schedule` of SharedGreedy must be one, such as Every\(100\). Got 100"
    ):
        SharedGreedy(schedule=100)  # type: ignore[arg-type]
