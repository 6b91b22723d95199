"""Tasks that keep coming: how they are drawn, how they are played, and what is carried over."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from proofs import long_stream
from scipy.special import softmax
from scipy.stats import chi2

from posse import (
    EllipsoidProblem,
    FactorPrior,
    GaussianProblem,
    GramStatistics,
    IndependentUCB,
    MixturePrior,
    Random,
    Shared,
    SharedThompson,
    simulate,
    simulate_all,
)
from posse.core.protocols import Policy, Problem
from posse.core.reservoir import Reservoir
from posse.core.streams import Course, Stream
from posse.play import StreamTrace
from posse.play.ball import NEVER, play_ball, thompson_rounds
from posse.play.simulation import check_start
from posse.policies import MixtureThompson, PEGETau
from posse.policies.carrying import Carried
from posse.problems import StreamProblem

# Problems


def stream_of(**settings: Any) -> StreamProblem:
    return StreamProblem.draw(**{"n_tasks": 24, "dim": 6, "rank": 3, "seed": 5, **settings})


@pytest.mark.parametrize("offer", ["ball", "arms"])
def test_tasks_depend_on_their_number_alone(offer: str) -> None:
    one, five = stream_of(offer=offer), stream_of(offer=offer, batch=5, overlap=2)
    assert (one.n_groups, five.n_groups) == (24, 5)
    rows = np.concatenate([five.group(number).theta for number in range(5)])  # type: ignore[attr-defined]
    assert rows.shape == (24, 6)
    assert_array_equal(rows, np.concatenate([one.group(number).theta for number in range(24)]))  # type: ignore[attr-defined]
    expected = GaussianProblem if offer == "arms" else EllipsoidProblem
    assert type(five.group(4)) is expected
    assert five.group(4).n_tasks == 4
    assert not np.isin(rows, stream_of(seed=6).group(0).theta).any()  # type: ignore[attr-defined]


def numbers_of_columns(order: str, task: int, n_tasks: int, rank: int) -> list[int]:
    """Which columns of B a task has, in the words of the study."""
    if order == "diverse":
        return list(range(min(task, rank - 1) + 1))
    out = [column for column in range(rank) if task >= column * n_tasks / 12]
    if order == "late" or len(out) == 1:
        return out
    return [0] if task in {root**2 for root in range(n_tasks)} else out[1:]


@pytest.mark.parametrize("order", ["diverse", "late", "adversary"])
def test_a_task_is_made_of_the_columns_of_its_order(order: str) -> None:
    stream = stream_of(order=order, n_tasks=120)
    for task in range(120):
        columns = numbers_of_columns(order, task, 120, 3)
        weights = stream.basis.T @ stream.group(task).theta[0]  # type: ignore[attr-defined]
        assert_array_equal(np.flatnonzero(abs(weights) > 1e-12), columns)
        assert 0.8 <= np.linalg.norm(weights) <= 1.0


def test_directions_and_lengths_have_the_law_of_the_study() -> None:
    """w uniform in the cube, brought to a length uniform in [0.8, 1]: by its moments, over 4000 tasks."""
    stream = stream_of(n_tasks=4000, batch=4000, order="late")
    stream = replace(stream, basis=stream.basis[:, :2], order="late")
    theta = stream.group(0).theta[400:]  # type: ignore[attr-defined]
    weights, lengths = theta @ stream.basis, np.linalg.norm(theta, axis=1)
    angles = np.arctan2(weights[:, 1], weights[:, 0])
    # directions of points in a square lean to its corners: the mean of cos 4a by quadrature
    grid = (np.arange(1000) + 0.5) / 500 - 1
    expected = np.cos(4 * np.arctan2(*np.meshgrid(grid, grid))).mean()
    assert expected < -0.1
    assert abs(np.cos(4 * angles).mean() - expected) < 4 / math.sqrt(2 * len(theta))  # misses 1 in 16,000
    assert abs(lengths.mean() - 0.9) < 4 * 0.2 / math.sqrt(12 * len(theta))
    assert (lengths.min() < 0.81, lengths.max() > 0.99) == (True, True)


def test_unrelated_tasks_point_anywhere() -> None:
    theta = stream_of(order="unrelated", n_tasks=2000, batch=2000, rank=1).group(0).theta  # type: ignore[attr-defined]
    spread = np.linalg.eigvalsh(theta.T @ theta / 2000) * 6 / np.mean(theta**2) / 6
    assert spread.min() > 0.8
    assert spread.max() < 1.2


def test_ellipsoids_have_the_condition_that_was_asked_for() -> None:
    group = stream_of(condition=9.0, batch=4).group(2)
    assert isinstance(group, EllipsoidProblem)
    assert group.shapes is not None
    assert_allclose(np.linalg.eigvalsh(group.shapes), np.tile(np.geomspace(1, 9, 6), (4, 1)))


# Play


@dataclass
class Diary:
    """A policy for streams that plays at random, and writes down what happens to it."""

    lines: list[tuple[str, int]] = field(default_factory=list)
    statistics: Any = GramStatistics

    def begin(self, course: Course) -> Course:
        self.lines.append(("begin", course.n_tasks))
        return course

    def next_policy(self, memory: Course, number: int, rng: np.random.Generator) -> Policy:
        self.lines.append(("start", number))
        return _Marked(number)

    def finish(self, memory: Course, policy: Any, state: Any, rng: np.random.Generator) -> Course:
        self.lines.append(("end", policy.number))
        assert_array_equal(state.count, memory.rounds)  # the last block included
        return memory

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        raise AssertionError

    init = select = update = blocks


@dataclass(frozen=True)
class _Marked:
    """Random play in three blocks, whose state is how many rows it has learned from."""

    number: int
    statistics: ClassVar = GramStatistics

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        return (1, 2, horizon - 3)

    def init(self, n_tasks: int, dim: int) -> Any:
        return GramStatistics.zeros(n_tasks, dim)

    def select(self, state: GramStatistics, actions: Any, rng: np.random.Generator) -> Any:
        return actions.argmax(np.zeros_like(state.moment), rng)

    def update(self, state: GramStatistics, statistics: GramStatistics) -> GramStatistics:
        return state + statistics


@pytest.mark.parametrize(("batch", "overlap"), [(1, 1), (1, 3), (4, 2), (5, 1)])
def test_a_group_starts_when_the_one_so_many_before_it_has_ended(batch: int, overlap: int) -> None:
    diary = Diary()
    stream = stream_of(batch=batch, overlap=overlap)
    simulate(stream, diary, horizon=9, seed=0)  # type: ignore[arg-type]
    expected: list[tuple[str, int]] = [("begin", 24)]
    for number in range(stream.n_groups):
        if number >= overlap:
            expected.append(("end", number - overlap))
        expected.append(("start", number))
    expected += [("end", number) for number in range(stream.n_groups - overlap, stream.n_groups)]
    assert diary.lines == expected


def test_regret_per_task_is_the_mean_over_tasks_after_rounds_of_their_own() -> None:
    trace = simulate(stream_of(batch=5), Random(), horizon=40, seed=0, checkpoints=[1, 10, 40])
    assert isinstance(trace, StreamTrace)
    assert trace.regret.shape == (3, 24)
    assert_allclose(trace.regret_per_task, trace.regret.mean(axis=1))
    assert_array_equal(trace.tasks, [5, 10, 15, 20, 24])
    assert_allclose(trace.total, [trace.regret[-1, :n].sum() for n in trace.tasks])


def test_random_play_has_the_regret_that_it_must() -> None:
    """A random action earns 0 on average: regret is N |theta|; the root of its variance is below sqrt(N)."""
    stream = stream_of(n_tasks=300)
    lengths = np.array([np.linalg.norm(stream.group(i).theta) for i in range(300)])  # type: ignore[attr-defined]
    trace = simulate(stream, Random(), horizon=50, seed=3)
    assert_allclose(trace.regret_per_task[-1], 50 * lengths.mean(), atol=4 * math.sqrt(50 / 300))


def test_policies_meet_the_same_luck_whatever_their_company() -> None:
    stream = stream_of(n_tasks=8)
    thompson = MixtureThompson(prior=mixture(np.random.default_rng(0), 6, (0.3, 0.4)))
    policies: dict[str, Policy] = {"a": thompson, "b": PEGETau(n_explore=20), "c": thompson}
    together = simulate_all(stream, policies, horizon=60, seed=4)
    assert_array_equal(together["a"].regret, together["c"].regret)
    assert_array_equal(together["b"].regret, simulate(stream, policies["b"], horizon=60, seed=4).regret)
    assert (together["b"].regret != simulate(stream, policies["b"], horizon=60, seed=5).regret).any()


def test_of_many_tasks_a_sample_stands_for_all() -> None:
    stream = stream_of(n_tasks=1500, dim=2, rank=1)
    trace = simulate(stream, PEGETau(n_explore=2), horizon=4, seed=0, checkpoints=[4])
    assert isinstance(trace, StreamTrace)
    assert trace.regret.shape == (1, 1000)
    assert len(trace.tasks) == 60
    assert_allclose(trace.regret_per_task[-1], trace.total[-1] / 1500)
    error = trace.regret[-1].std() * math.sqrt(1 / 1000 - 1 / 1500)
    assert abs(trace.regret[-1].mean() - trace.regret_per_task[-1]) < 4 * error


# All rounds of a task in one compiled loop


def mixture(rng: np.random.Generator, dim: int, scales: tuple[float, ...]) -> MixturePrior:
    roots = [scale * rng.standard_normal((dim, dim)) for scale in scales]
    return MixturePrior(
        weights=np.full(len(scales), 1 / len(scales)),
        means=0.1 * rng.standard_normal((len(scales), dim)),
        covariances=np.stack([root @ root.T for root in roots]),
        noises=np.linspace(0.7, 1.3, len(scales)),
    )


@pytest.mark.parametrize("condition", [1.0, 7.0])
def test_the_compiled_loop_ends_in_the_posterior_of_what_it_played(condition: float) -> None:
    rng = np.random.default_rng(0)
    prior = mixture(rng, 4, (0.3, 0.5, 0.8))
    problem = EllipsoidProblem.draw(n_tasks=1, dim=4, rank=1, seed=1, condition=condition)
    start = prior.posteriors(GramStatistics.zeros(1, 4))
    means, roots, logs = start.means[0].copy(), np.ascontiguousarray(start.roots[0]), np.log(prior.weights)
    regret, gram, moment = np.zeros(60), np.zeros((4, 4)), np.zeros(4)
    noise = problem.noise(60, rng)[:, 0]
    best = float(problem.ellipsoids.support(problem.theta)[0])
    square = thompson_rounds(
        problem.theta[0],
        problem.ellipsoids.shapes[0],
        condition == 1.0,
        problem.ellipsoids.inner_radius,
        best,
        noise,
        np.arange(1, 61),
        means,
        roots,
        prior.noises,
        logs,
        1.0,
        rng,
        regret,
        gram,
        moment,
    )
    seen = GramStatistics(gram[None], moment[None], np.array([square]), np.array([60.0]))
    parts = prior.posteriors(seen)
    assert_allclose(means, parts.means[0], atol=1e-9)
    assert_allclose(roots @ roots.mT, parts.roots[0] @ parts.roots[0].mT, atol=1e-9)
    assert_allclose(softmax(logs), parts.chances[0], atol=1e-9)
    assert_allclose(np.vdot(problem.ellipsoids.inverses[0], gram), 60)  # every action is on the boundary
    earned = best - np.diff(regret, prepend=0.0)
    assert_allclose(earned @ earned, problem.theta[0] @ gram @ problem.theta[0])
    assert_allclose(np.sum((earned + noise) ** 2), square)


def test_the_compiled_loop_has_the_law_of_rounds_one_by_one() -> None:
    """Mean regrets of 600 tasks either way, at three rounds; 4 errors apart in 1 of 16,000 cases."""
    prior = mixture(np.random.default_rng(2), 3, (0.2, 1.0))
    problem = EllipsoidProblem.draw(n_tasks=600, dim=3, rank=3, seed=3, condition=3.0)
    marks = np.array([2, 10, 30])
    policy = MixtureThompson(prior=prior)
    slow = simulate(problem, policy, horizon=30, seed=0, checkpoints=marks).regret
    found = play_ball(problem, policy, marks, np.random.default_rng(4), np.random.default_rng(5))
    assert found is not None
    apart = found[0] - slow
    assert (abs(apart.mean(axis=1)) < 4 * apart.std(axis=1) / math.sqrt(600)).all()
    assert_allclose(found[1].count, 30)
    assert play_ball(problem, Random(), marks, np.random.default_rng(4), np.random.default_rng(5)) is None


def test_a_component_that_is_ruled_out_stays_so() -> None:
    """The rewards of 400 rounds rule out the first of two priors long before the end."""
    rng = np.random.default_rng(6)
    theta, eye = np.array([0.9, 0.0]), np.eye(2)
    means, roots = np.array([[0.0, -5.0], [0.0, 0.0]]), np.stack([0.01 * eye, eye])
    logs, regret = np.log([0.5, 0.5]), np.zeros(1)
    thompson_rounds(
        *(theta, eye, True, 1.0, 0.9, rng.standard_normal(400), np.array([400]), means, roots),
        *(np.ones(2), logs, 1.0, rng, regret, np.zeros((2, 2)), np.zeros(2)),
    )
    assert logs[0] == -np.inf
    assert logs[1] < -NEVER  # so that one that is left behind would come back if it kept its place
    assert_allclose(means[0], [0.0, -5.0], atol=0.1)


def test_a_draw_of_nothing_is_any_action() -> None:
    prior = MixturePrior(
        weights=np.ones(1), means=np.zeros((1, 3)), covariances=np.zeros((1, 3, 3)), noises=np.ones(1)
    )
    problem = EllipsoidProblem.draw(n_tasks=1, dim=3, rank=1, seed=0, condition=4.0)
    found = play_ball(
        problem, MixtureThompson(prior=prior), np.array([900]), *np.random.default_rng(7).spawn(2)
    )
    assert found is not None
    assert_allclose(np.trace(found[1].gram[0]), 900)
    assert_allclose(found[1].gram[0], 300 * np.eye(3), atol=80)


# What is kept of finished tasks


def one_task(number: int, dim: int = 2) -> GramStatistics:
    return GramStatistics.of(np.full((1, 1, dim), float(number)), np.ones((1, 1)))


def test_few_tasks_are_kept_whole() -> None:
    kept = Reservoir.empty(2, size=30, recent=5)
    for number in range(35):
        kept = kept.added(one_task(number), np.random.default_rng(0))
    assert kept.n_seen == 35
    assert kept.statistics is not None
    assert_array_equal(np.sort(kept.statistics.moment[:, 0]), np.arange(35))
    assert kept.latest is not None
    assert_array_equal(kept.latest.moment[:, 0], np.arange(30, 35))


def test_every_older_task_has_the_same_chance_to_be_kept() -> None:
    rng, counts = np.random.default_rng(1), Counter[int]()
    for _ in range(400):
        kept = Reservoir.empty(2, size=5, recent=2)
        for first in range(0, 22, 2):  # tasks end in pairs
            both = GramStatistics.of(np.full((1, 2, 2), [[first], [first + 1]], dtype=float), np.ones((1, 2)))
            kept = kept.added(both, rng)
        assert kept.sample is not None
        assert kept.sample.n_tasks == 5
        counts.update(kept.sample.moment[:, 0].astype(int).tolist())
    found = np.array([counts[number] for number in range(20)])
    assert counts.total() == found.sum() == 2000
    assert chi2.sf(np.sum((found - 100) ** 2 / 75), 19) > 1e-4  # a false alarm in one seed of 10,000


# The learned prior over a stream


class Watched(SharedThompson):
    """Tells what it carries over after every group."""

    def finish(self, memory: Carried, policy: Any, state: Any, rng: np.random.Generator) -> Carried:
        found = super().finish(memory, policy, state, rng)
        WATCHED.append(found)
        return found


WATCHED: list[Carried] = []


def watched(stream: Stream, rounds: int, seed: int = 0) -> list[Carried]:
    WATCHED.clear()
    simulate(stream, Watched(), horizon=rounds, seed=seed)
    return list(WATCHED)


def test_the_prior_is_that_of_the_finished_tasks_learned_less_and_less_often() -> None:
    found = watched(stream_of(n_tasks=40, dim=4, rank=2), 60)
    assert [len(found), found[-1].finished.n_seen] == [40, 40]
    last = found[-1]
    at = found[last.learned_at - 1]
    assert at.learned_at == last.learned_at
    assert last.prior is not None
    seen = at.finished.statistics
    assert seen is not None
    again = FactorPrior().fit(seen).prior
    assert_allclose(last.prior.covariance, again.covariance)
    learned = {memory.learned_at for memory in found}
    assert {1, 2, 3, 4, 5} <= learned
    assert len(learned) < 25


def test_newcomers_gain_from_those_that_have_ended() -> None:
    """Once 30 tasks have ended, regret is less than half of that of tasks alone: a third, on most seeds."""
    stream = stream_of(n_tasks=50, dim=8, rank=2)
    policies: dict[str, Policy] = {"ours": SharedThompson(), "alone": PEGETau(n_explore=60)}
    traces = simulate_all(stream, policies, horizon=300, seed=0)
    assert traces["ours"].regret[-1, 30:].sum() < 0.5 * traces["alone"].regret[-1, 30:].sum()


@dataclass(frozen=True)
class Turning:
    """Tasks along one line, and from some number on along another."""

    turn: int
    n_tasks: int = 50
    dim: int = 6
    overlap: int = 1

    @property
    def n_groups(self) -> int:
        return self.n_tasks

    def group(self, number: int) -> Problem:
        theta = np.zeros((1, self.dim))
        theta[0, 0 if number < self.turn else 1] = 0.9
        return EllipsoidProblem(theta=theta)


@pytest.fixture(scope="module")
def turned() -> list[Carried]:
    """What is carried over a stream of 50 tasks, after each; the 41st is the first along another line."""
    return watched(Turning(turn=40), 300)


def test_a_newcomer_that_does_not_fit_is_noticed_and_the_prior_learned_anew(turned: list[Carried]) -> None:
    before, first, last = turned[39], turned[40], turned[-1]
    assert before.misfits == 0.0
    assert before.prior is not None
    assert 0.0 < before.prior.share_alone < 0.2
    assert first.finished.latest is not None
    newcomer = first.finished.latest.take([40])
    assert before.prior.chance_alone(newcomer)[0] > 0.9
    assert first.misfits == pytest.approx(1.0 - before.prior.share_alone) or first.learned_at == 41
    assert next(memory for memory in turned[40:] if memory.learned_at > 40).learned_at <= 43
    assert last.prior is not None
    assert last.prior.chance_alone(newcomer)[0] < 0.5


def test_what_a_newcomer_that_does_not_fit_loses_is_bounded(turned: list[Carried]) -> None:
    """200 newcomers along another line lose rounds until they are found out, and none after that.

    Beside them Thompson sampling from N(0, I): at 2000 rounds they have less than a sixth more regret, all
    of it lost in the first 300; newcomers along the line that is known have less than a third.
    """
    policy = SharedThompson().next_policy(turned[39], 40, np.random.default_rng(0))
    alone = MixtureThompson(
        prior=MixturePrior(
            weights=np.ones(1), means=np.zeros((1, 6)), covariances=np.eye(6)[None], noises=np.ones(1)
        )
    )
    found = {}
    for name, played, along in (("misfit", policy, 1), ("alone", alone, 1), ("fit", policy, 0)):
        theta = np.zeros((200, 6))
        theta[:, along] = 0.9
        newcomers, rngs = EllipsoidProblem(theta=theta), np.random.default_rng(8).spawn(2)
        result = play_ball(newcomers, played, np.array([300, 2000]), *rngs)
        assert result is not None
        found[name] = result[0].mean(axis=1)
    assert found["misfit"][1] < found["alone"][1] * 7 / 6
    lost = found["misfit"] - found["alone"]
    assert 20 < lost[0] < 60
    assert lost[1] < lost[0] + 5
    assert (found["fit"] < found["alone"] / 3).all()


def test_what_is_kept_does_not_grow_with_the_stream() -> None:
    class Forgetful(Watched):
        def begin(self, course: Course) -> Carried:
            return Carried(course, Reservoir.empty(course.dim, size=16, recent=4))

    WATCHED.clear()
    simulate(stream_of(n_tasks=60, dim=3, rank=1), Forgetful(), horizon=20, seed=0)
    sizes = [memory.finished.statistics.n_tasks for memory in WATCHED if memory.finished.statistics]
    assert sizes == [min(n, 20) for n in range(1, 61)]
    assert WATCHED[-1].finished.n_seen == 60


def test_a_long_stream_is_held_in_room_for_a_thousand_tasks() -> None:
    """`make prove` has 60,000 tasks, in groups of 60 and one by one."""
    one_by_one = list(long_stream.held(n_tasks=60, batch=1)["after tasks"].values())
    assert [row["tasks kept"] for row in one_by_one] == [6, 12, 30, 60]
    found = long_stream.held(n_tasks=3000, batch=long_stream.BATCH)
    rows = list(found["after tasks"].values())
    assert [row["tasks kept"] for row in rows] == [300, 600, 1050, 1050]
    assert rows[-1]["MB, the most so far"] < rows[-2]["MB, the most so far"] + 20
    assert found["tasks whose regret is kept"] == 1000


def test_lists_of_arms_are_played_by_the_prior_too() -> None:
    stream = stream_of(n_tasks=24, batch=6, overlap=2, dim=8, rank=1, offer="arms", seed=1)
    policies: dict[str, Policy] = {"ours": Shared(), "alone": IndependentUCB()}
    traces = simulate_all(stream, policies, horizon=80, seed=1)
    ours, alone = (traces[name].regret[-1, 18:].mean() for name in ("ours", "alone"))
    assert ours < 0.8 * alone


# Bad input


class OtherFeatures(Turning):
    def group(self, number: int) -> Problem:
        return EllipsoidProblem(theta=np.ones((1, self.dim + (number == 3))))


@dataclass(frozen=True)
class Empty(Turning):
    n_tasks: int = 0


@dataclass(frozen=True)
class NeverAny(Turning):
    overlap: int = 0


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (lambda: stream_of(n_tasks=0), r"`n_tasks` of StreamProblem must be an integer in \[1, .*Got 0."),
        (lambda: stream_of(rank=7), r"`rank` of StreamProblem must be an integer in \[1, dim=6\]. Got 7."),
        (lambda: stream_of(batch=25), r"`batch` of StreamProblem must be .* \[1, n_tasks=24\]. Got 25."),
        (lambda: stream_of(overlap=9, batch=3), r"`overlap` of StreamProblem must be .*groups=8\]. Got 9."),
        (lambda: stream_of(order="mixed"), r"`order` of StreamProblem must be one of diverse, late, adv"),
        (lambda: stream_of(offer="arms", condition=2.0), r"`condition` .* must be 1 where `offer` is"),
        (lambda: stream_of(shortest=0.0), r"`shortest` of StreamProblem must be .* above 0"),
        (
            lambda: simulate(OtherFeatures(0), SharedThompson(), horizon=30, seed=0),
            r"a newcomer must have the features of all tasks before it, dim=6. Got a task with 7.",
        ),
        (
            lambda: simulate(Empty(0), SharedThompson(), horizon=30, seed=0),
            r"a stream must have at least one task. Got none.",
        ),
        (
            lambda: simulate(NeverAny(0), SharedThompson(), horizon=30, seed=0),
            r"`overlap` of NeverAny must be an integer of at least 1. Got 0.",
        ),
        (
            lambda: simulate(stream_of(), SharedThompson(), horizon=3, seed=0),
            r"tasks of a stream must not end before the first update of SharedThompson, after \d+ rounds.",
        ),
        (
            lambda: Reservoir.empty(2).added(one_task(1, dim=3), np.random.default_rng(0)),
            r"a newcomer must have the features of all tasks before it, dim=2. Got a task with 3.",
        ),
        (
            lambda: MixtureThompson(prior=mixture(np.random.default_rng(0), 3, (1.0,))).init(1, 4),
            r"a task of MixtureThompson must have the features of its prior, 3. Got 4.",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(play: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play()


def test_a_run_can_be_checked_before_it_is_played() -> None:
    check_start(stream_of(), SharedThompson(), 100)
    with pytest.raises(ValueError, match="must not end before the first update"):
        check_start(stream_of(), SharedThompson(), 3)
