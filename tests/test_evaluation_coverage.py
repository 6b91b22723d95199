"""Intervals of off-policy estimates hold the truth as often as they say; choices are cautious."""

from dataclasses import replace

import numpy as np
import pytest
from proofs.decision_logs import LOGGERS, World, play, softmax
from proofs.evaluation import BATCH, DIM, N_ARMS, N_TASKS, cases, count, coverage, given, look, variances
from proofs.evaluation_choice import RARE, choose_among_equals, choose_once
from scipy.stats import binom

from posse.logs.evaluation.answers import INTERVALS, Intervals, rows_of
from posse.logs.evaluation.choose import choose
from posse.logs.evaluation.estimators import Evidence
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.intervals import asymptotic, bernstein, bootstrap, by_task, pooled
from posse.logs.evaluation.result import Gain
from posse.logs.evaluation.sequence import sequence, sequence_by_task
from posse.logs.evaluation.support import check_support

WORLD = World.draw(0, N_TASKS, N_ARMS, DIM)
LOGS = 60
# Of so many logs, or fewer, intervals of 95 % hold once in a thousand times.
FEW = int(binom.ppf(0.001, LOGS, 0.95))


@pytest.mark.parametrize("logger", [*LOGGERS, "Thompson"])
def test_intervals_hold_the_truth_as_often_as_they_say(logger: str) -> None:
    found = count(WORLD, cases(WORLD, logger, 200, range(LOGS), whole=False)).summary()
    for name in ("ips", "snips", "dr", "sndr", "dr-alone"):
        assert found[f"asymptotic, {name}"] / 1000 * LOGS >= FEW, name
        # 3,000 intervals of tasks: their share is known to 0.4 %
        assert 925 <= found[f"asymptotic by task, {name}"]["tasks"] <= 975, name
    for name in ("ips", "dr"):
        assert found[f"sequence, {name}"] / 1000 * LOGS >= FEW
        assert found[f"sequence by task, {name}"]["tasks"] >= 950
    assert found["bernstein by task, dr"]["worst-off task"] >= 950


def test_logs_are_counted_alike_in_batches_and_at_once() -> None:
    n_logs = BATCH + 2
    once = count(WORLD, cases(WORLD, "softmax", 20, range(n_logs), whole=False)).summary()
    assert coverage("softmax", 20, n_logs, whole=False) == once
    assert (
        once["Bernstein in its place, dr"]["counted"] == 1.0
    )  # nothing of 20 rows is left to the normal law
    assert "asymptotic by task, dr" not in once


def test_all_that_an_evaluation_does_is_what_a_case_of_a_proof_shows() -> None:
    log = play(WORLD, 40, 0)
    case, sure = look(WORLD, log, forward=False), given(WORLD, log)
    order = np.argsort(case.evidence[""].rewards), np.argsort(sure.evidence[""].rewards)
    for name in ("weights", "rewards"):
        one, other = (getattr(found.evidence[""], name) for found in (case, sure))
        np.testing.assert_allclose(one[order[0]], other[order[1]])


def test_sharing_saves_on_related_tasks() -> None:
    found = variances(6, rank=2, size=2.0)
    # 0.341 and 0.786 with standard errors of 0.023 and 0.028: of six other logs one time in ninety is above
    assert found["dr / snips"]["ratio"] < 0.5
    assert found["dr / dr-alone"]["ratio"] < 0.85


def test_a_choice_finds_what_is_better_and_takes_nothing_that_is_worse() -> None:
    found = [choose_once(seed, 0.5, better=True) for seed in range(4)]
    assert [one["chosen"] for one in found].count("better") >= 3
    assert all(one["gain"] >= 0 for one in found)


@pytest.mark.parametrize("effective", [10, 50, 200])
@pytest.mark.parametrize("kind", RARE)
def test_rare_rewards_do_not_make_a_choice_bold(kind: str, effective: int) -> None:
    found = [choose_among_equals(seed, *RARE[kind], effective) for seed in range(20)]
    wrong = sum(policy != "logged" for policy in found)
    assert binom.sf(wrong - 1, 20, 0.05) > 0.001


@pytest.mark.parametrize("effective", [8, 400])
def test_one_task_alone_has_the_interval_of_all_tasks_together(effective: int) -> None:
    rng = np.random.default_rng(0)
    for n_rows in (150, 2000):
        tasks, weights = Groups.one(n_rows), np.zeros(n_rows)
        weights[:: max(1, n_rows // effective)] = max(1, n_rows // effective)
        rows = Evidence(
            weights=weights, rewards=rng.standard_normal(n_rows), expected=weights, predicted=weights
        )
        checked = check_support("x", weights, np.zeros(1), tasks, ["a"], whole=False, certain=False)
        for kind in INTERVALS[:1] + INTERVALS[2:]:
            made = Intervals(kind=kind, level=0.95, tasks=tasks, order=np.arange(n_rows))
            found = list(rows_of("x", {"": rows}, checked, made, ("a",), np.inf, direct=False))
            half = len(found) // 2
            for one, own in zip(found[:half], found[half:], strict=True):
                assert (one.value, one.low, one.high) == pytest.approx((own.value, own.low, own.high))


@pytest.mark.parametrize("kind", ["asymptotic", "bernstein", "sequence"])
def test_the_chance_of_being_worse_is_that_at_which_the_interval_ends_at_nothing(kind: str) -> None:
    rng = np.random.default_rng(3)
    terms = 0.2 + rng.standard_normal(1000)
    made = Intervals(kind=kind, level=0.95, tasks=Groups.one(1000), order=np.arange(1000))
    chance = float(made.of_all(terms, doubtful=False).chance[0])
    assert 0 < chance < 0.05
    if kind == "sequence":  # its rho is that of the level
        assert made.of_all(terms, doubtful=False).low[0] > 0
        return
    again = replace(made, level=1.0 - 2.0 * chance).of_all(terms, doubtful=False)
    assert again.low[0] == pytest.approx(0.0, abs=1e-4)


def test_the_lower_end_of_a_choice_holds_for_all_candidates_at_once() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(2000):
        ends = rng.standard_normal(20)
        gains = [
            Gain(
                policy=str(place),
                task=None,
                gain=end,
                low=end - 1.96,
                high=end + 1.96,
                sure=end - 2.807,
                chance_worse=0.5,
            )
            for place, end in enumerate(ends.tolist())
        ]
        wrong += choose(gains, [], "pooled", 20)[0].policy != "logged"
    assert binom.sf(wrong - 1, 2000, 0.05) > 0.001


def test_each_task_may_choose_for_itself() -> None:
    def gain(policy: str, task: str, middle: float) -> Gain:
        return Gain(
            policy=policy,
            task=task,
            gain=middle,
            low=middle - 1,
            high=middle + 1,
            sure=middle - 1,
            chance_worse=0.1,
        )

    gains = [gain("a", "x", 3.0), gain("b", "x", 2.5), gain("a", "y", 0.5), gain("b", "z", 9.0)]
    assert [one.policy for one in choose(gains, ["x", "y", "z"], "tasks", 2)] == ["a", "logged", "b"]


# -- intervals, by a second road


def test_intervals_of_groups_are_those_of_their_rows_alone() -> None:
    rng = np.random.default_rng(0)
    tasks = Groups(rng.integers(4, size=900), 5)
    terms = rng.standard_t(3, size=900)
    found = asymptotic(terms, tasks, 0.9), bernstein(terms, tasks, 0.9, 30.0)
    order = rng.permutation(900)
    follow = sequence_by_task(terms, tasks, order, 0.9)
    span = float(np.ptp(terms))
    for task in range(4):
        own = terms[tasks.index == task]
        alone = Groups.one(len(own))
        for whole, one in zip(
            found, (asymptotic(own, alone, 0.9), bernstein(own, alone, 0.9, 30.0)), strict=True
        ):
            assert (whole.low[task], whole.high[task]) == pytest.approx((one.low[0], one.high[0]))
        low, high = sequence(terms[order][tasks.index[order] == task], 0.9, span)
        assert (follow.low[task], follow.high[task]) == pytest.approx((low[-1], high[-1]))
    mixed = by_task(terms, tasks, 0.9, np.array([True, False, False, False, False]))
    assert mixed.low[0] == pytest.approx(bernstein(terms, tasks, 0.9, span).low[0])


def test_a_sequence_is_that_of_a_loop() -> None:
    terms = np.random.default_rng(1).standard_normal(80)
    low, _ = sequence(terms, 0.95, 6.0)
    for n in (60, 80):
        some = terms[:n]
        variance = (np.sum((some - some.mean()) ** 2) + 9.0) / n
        best = next(x for x in np.linspace(1, 20, 200_001) if x - np.log(x + 1) >= -2 * np.log(0.05))
        scaled = best / 1000 * n  # n S rho^2, rho being best after a thousand
        reach = np.sqrt(variance / n * (scaled + 1) / scaled * np.log((scaled + 1) / 0.05**2))
        assert low[n - 1] == pytest.approx(some.mean() - reach, rel=1e-3)


def test_the_pooled_interval_is_that_of_a_mean_within_tasks() -> None:
    rng = np.random.default_rng(2)
    tasks = Groups(np.repeat(np.arange(50), 100), 50)
    terms = 10.0 * tasks.index + rng.standard_normal(5000)
    one = pooled(terms, tasks, 0.95)
    assert one.high[0] - one.low[0] == pytest.approx(2 * 1.96 / np.sqrt(5000), rel=0.05)
    drawn = bootstrap(terms, tasks, 0.95, np.random.default_rng(0))
    assert drawn.high[0] - drawn.low[0] > 50 * (one.high[0] - one.low[0])  # tasks differ by far


def test_the_truth_of_a_world_is_what_its_logger_earns() -> None:
    log = play(WORLD, 4000, 3)
    truth = WORLD.values(softmax).mean()
    assert abs(log.rewards.mean() - truth) < 3.3 * log.rewards.std() / np.sqrt(len(log.rewards))
    silent = replace(WORLD, noise=0.0)
    assert np.ptp(silent.values(softmax) - WORLD.values(softmax)) == 0.0
