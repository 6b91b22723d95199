"""Off-policy evaluation: estimators by a second road and an oracle, reading, targets, the command."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimators.bandits import ips as vw_ips
from estimators.bandits import snips as vw_snips
from proofs.decision_logs import ARMS, Played, World, play
from typer.testing import CliRunner

from posse import FactorPrior, Greedy, IndependentUCB, LearningPolicy, Random, SharedGreedy, SharedThompson
from posse.cli import app
from posse.core.columns import NumberColumn
from posse.logs import Evaluation, evaluate, fit
from posse.logs.evaluation import estimators as by
from posse.logs.evaluation.answers import ESTIMATORS
from posse.logs.evaluation.decisions import DecisionColumns
from posse.logs.evaluation.estimators import Evidence, effective_sample_size, switch_threshold
from posse.logs.evaluation.gather import encoder_of, gather
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.models import reward_models, taught_by
from posse.logs.evaluation.reader import DecisionReader
from posse.logs.evaluation.score import score
from posse.logs.evaluation.targets import make_target
from posse.logs.sources import open_source
from posse.numerics.checks import Array

ROLES: dict[str, Any] = {"task": "shop", "reward": "sold", "arm": "offer", "propensity": "chance"}
FEATURES = ["x1", "x2", "x3", "x4"]
WORLD = World.draw(0, n_tasks=8)
LOG = play(WORLD, 60, seed=1)


def run(log: Any, policies: Any, **settings: Any) -> Evaluation:
    return evaluate(log, policies, **{**ROLES, "features": FEATURES, "n_parts": 2, **settings})


def value(found: Evaluation, policy: str, estimator: str, task: str | None = None) -> float:
    (one,) = [
        row.value for row in found.rows if (row.policy, row.estimator, row.task) == (policy, estimator, task)
    ]
    assert one is not None
    return one


# -- estimators


def made_up(seed: int, n_rows: int = 200) -> Evidence:
    rng = np.random.default_rng(seed)
    return Evidence(
        weights=rng.exponential(1.0, n_rows) * (rng.random(n_rows) < 0.7),
        rewards=rng.standard_normal(n_rows),
        expected=rng.standard_normal(n_rows),
        predicted=rng.standard_normal(n_rows),
    )


def by_loops(rows: Evidence, most: float, threshold: float) -> dict[str, float]:
    """Return every estimate as its definition has it, row by row."""
    n_rows = len(rows.rewards)
    names = ["dm", "ips", "ips-clipped", "dr", "dr-clipped", "switch-dr"]
    sums = dict.fromkeys([*names, "w", "wr", "wl"], 0.0)
    for w, r, v, q in zip(rows.weights, rows.rewards, rows.expected, rows.predicted, strict=True):
        sums["dm"] += v
        sums["ips"] += w * r
        sums["ips-clipped"] += min(w, most) * r
        sums["dr"] += v + w * (r - q)
        sums["dr-clipped"] += v + min(w, most) * (r - q)
        sums["switch-dr"] += v + (w * (r - q) if w <= threshold else 0.0)
        sums["w"] += w
        sums["wr"] += w * r
        sums["wl"] += w * (r - q)
    found = {name: sums[name] / n_rows for name in names}
    return {**found, "snips": sums["wr"] / sums["w"], "sndr": found["dm"] + sums["wl"] / sums["w"]}


@pytest.mark.parametrize("seed", range(5))
def test_every_estimator_is_that_of_a_loop_over_rows(seed: int) -> None:
    rows, groups = made_up(seed), Groups.one(200)
    most, threshold = float(by.clipping(groups)[0]), 1.5
    expected = by_loops(rows, most, threshold)
    for name, number in expected.items():
        assert ESTIMATORS[name].terms(rows, groups, threshold).mean() == pytest.approx(number, abs=1e-12)
    assert by.ips_clipped(rows, 0.5).mean() == pytest.approx(by_loops(rows, 0.5, 0.0)["ips-clipped"])


def test_estimates_of_tasks_are_those_of_their_rows_alone() -> None:
    rows, tasks = made_up(0), np.random.default_rng(1).integers(4, size=200)
    groups = Groups(tasks, 5)  # the last has no rows
    for made in ESTIMATORS.values():
        found = groups.means(made.terms(rows, groups, 1.5))
        assert np.isnan(found[4])
        for task in range(4):
            own = Evidence(**{name: part[tasks == task] for name, part in vars(rows).items()})
            alone = made.terms(own, Groups.one(int(sum(tasks == task))), 1.5).mean()
            assert found[task] == pytest.approx(alone, abs=1e-12)


# the examples of vw-estimators' own tests: rewards that follow from the arm, equal propensities, known values
EXAMPLES = (
    (lambda n: {"p_log": 1.0, "r": 1.0, "p_pred": 1.0}),
    (lambda n: {"p_log": 0.5, "r": float(n % 2), "p_pred": float(n % 2)}),
    (lambda n: {"p_log": 0.5, "r": 1.0 if n % 2 else 0.0, "p_pred": 0.2}),
)


@pytest.mark.parametrize("example", [*EXAMPLES, None])
@pytest.mark.parametrize("seed", range(3))
def test_ips_and_snips_are_those_of_vw_estimators(
    example: Callable[[int], dict[str, float]] | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        {"p_log": rng.uniform(0.01, 1), "r": rng.normal(2.0), "p_pred": rng.random()}
        if example is None
        else example(number)
        for number in range(100 + 900 * seed)
    ]
    ips, snips = vw_ips.Estimator(), vw_snips.Estimator()
    for row in rows:
        ips.add_example(**row)
        snips.add_example(**row)
    weights = np.array([row["p_pred"] / row["p_log"] for row in rows])
    evidence = Evidence(
        weights=weights, rewards=np.array([row["r"] for row in rows]), expected=weights, predicted=weights
    )
    assert by.ips(evidence).mean() == pytest.approx(ips.get(), abs=1e-8)
    assert by.snips(evidence, Groups.one(len(rows))).mean() == pytest.approx(snips.get(), abs=1e-8)


def test_terms_of_a_ratio_scatter_as_the_ratio_does() -> None:
    # the standard deviation over 2,000 logs of 100 rows is known to 1.6 %; the linearised one is within 5 %
    found, spread = [], []
    for seed in range(2000):
        rows = made_up(seed, 100)
        terms = by.snips(rows, Groups.one(100))
        found.append(terms.mean())
        spread.append(terms.var(ddof=1) / 100)
    assert np.sqrt(np.mean(spread)) == pytest.approx(np.std(found), rel=0.05)


def test_the_effective_sample_size_of_equal_weights_is_their_number() -> None:
    groups = Groups(np.array([0, 0, 0, 1, 2]), 4)
    found = effective_sample_size(np.array([2.0, 2.0, 0.0, 0.0, 7.0]), groups)
    np.testing.assert_allclose(found, [2.0, 0.0, 1.0, 0.0])


def test_switch_dr_leaves_heavy_rows_to_a_good_model_and_not_to_a_bad_one() -> None:
    rng = np.random.default_rng(0)
    weights = np.where(rng.random(5000) < 0.001, 300.0, 0.7)
    rewards = rng.standard_normal(5000) + 5.0
    good = Evidence(
        weights=weights, rewards=rewards, expected=np.full(5000, 5.0), predicted=np.full(5000, 5.0)
    )
    assert switch_threshold(good) < 300.0
    lost = replace(
        good, expected=np.zeros(5000), predicted=np.zeros(5000), weights=rng.exponential(1.0, 5000)
    )
    assert switch_threshold(lost) == np.inf


# -- a log, by a second road


def naive(played: Played, chances: Array, theta: Array) -> dict[str, float]:
    """Return estimates of a policy from a loop over decisions; a model of rewards is given by theta."""
    sums = dict.fromkeys(["ips", "w", "dm", "dr"], 0.0)
    for row in range(len(played.tasks)):
        task, arm = played.tasks[row], played.arms[row]
        q = [float(played.contexts[row] @ theta[task, other]) for other in range(theta.shape[1])]
        w = chances[row, arm] / played.chances[row, arm]
        v = sum(chances[row, other] * q[other] for other in range(theta.shape[1]))
        sums["ips"] += w * played.rewards[row]
        sums["w"] += w
        sums["dm"] += v
        sums["dr"] += v + w * (played.rewards[row] - q[arm])
    n_rows = len(played.tasks)
    return {
        "ips": sums["ips"] / n_rows,
        "snips": sums["ips"] / sums["w"],
        "dm": sums["dm"] / n_rows,
        "dr": sums["dr"] / n_rows,
    }


def test_an_evaluation_is_that_of_a_naive_loop_over_the_log(tmp_path: Path) -> None:
    table = LOG.table()
    source = open_source(table)
    columns = DecisionColumns(**ROLES)
    encoder = encoder_of(source, columns, FEATURES, None, [])
    logged = gather(DecisionReader(source, columns, encoder), 5, 0)
    taught = taught_by(logged.statistics, forward=False)
    models = reward_models(taught, encoder)
    numbers = {name: number for number, name in enumerate(logged.names)}
    order = [numbers[f"shop {task:02}"] for task in range(8)]
    # back to parameters of raw contexts: features are standardised
    numbered = [column for column in encoder.columns if isinstance(column, NumberColumn)]
    scale = np.array([1.0, *(column.scale for column in numbered)])
    mean = np.array([0.0, *(column.mean for column in numbered)])
    chances = np.full(LOG.chances.shape, 0.2)
    for model, suffix in (("shared", ""), ("alone", "-alone")):
        expected = {"dm": 0.0, "dr": 0.0}
        for part in range(5):
            rows = logged.parts == part
            some = Played(**{name: values[rows] for name, values in vars(LOG).items()})
            found = models[model][part][order]  # common constant, then level and slopes of each arm
            slopes = found[..., 2:] / scale[1:]
            level = found[..., 0] + found[..., 1] - slopes @ mean[1:]
            theta = np.concatenate([level[..., None], slopes], axis=-1)
            own = naive(some, chances[rows], theta)
            for name in expected:
                expected[name] += own[name] * rows.sum() / len(rows)
        found_by = run(table, ["uniform"], n_parts=5)
        for name, number in expected.items():
            assert value(found_by, "uniform", name + suffix) == pytest.approx(number, abs=1e-10)
    whole = naive(LOG, chances, np.zeros((8, 5, 5)))
    for name in ("ips", "snips"):
        assert value(found_by, "uniform", name) == pytest.approx(whole[name], abs=1e-10)


def test_models_and_policies_do_not_know_the_part_that_they_are_asked_about() -> None:
    source, columns = open_source(LOG.table()), DecisionColumns(**ROLES)
    encoder = encoder_of(source, columns, FEATURES, None, [])
    logged = gather(DecisionReader(source, columns, encoder), 5, 0)
    other = replace(LOG, rewards=np.where(logged.parts == 2, 7.0 - LOG.rewards, LOG.rewards))
    again = gather(DecisionReader(open_source(other.table()), columns, encoder), 5, 0)
    np.testing.assert_array_equal(logged.parts, again.parts)
    found = []
    for one in (logged, again):
        taught = taught_by(one.statistics, forward=False)
        target = make_target(
            "x", SharedGreedy(), one.statistics, encoder, tasks=one.names, forward=False, seed=0
        )
        found.append(score(one, {"x": target}, reward_models(taught, encoder)))
    here = logged.parts == 2
    for name in ("shared", "alone"):
        np.testing.assert_allclose(found[0].predicted[name][here], found[1].predicted[name][here], atol=1e-12)
        assert np.abs(found[0].predicted[name][~here] - found[1].predicted[name][~here]).max() > 0.01
    np.testing.assert_array_equal(found[0].targets["x"].chances[here], found[1].targets["x"].chances[here])


def test_forward_in_time_nobody_knows_the_future() -> None:
    columns = DecisionColumns(**ROLES, time="time")
    late = np.arange(len(LOG.rewards)) >= 300
    other = replace(LOG, rewards=np.where(late, -LOG.rewards, LOG.rewards))
    found, logs = [], []
    for one in (LOG, other):
        source = open_source(one.table())
        encoder = encoder_of(source, columns, FEATURES, None, [])
        logged = gather(DecisionReader(source, columns, encoder), 5, 0)
        taught = taught_by(logged.statistics, forward=True)
        target = make_target(
            "x", SharedGreedy(), logged.statistics, encoder, tasks=logged.names, forward=True, seed=0
        )
        found.append(score(logged, {"x": target}, reward_models(taught, encoder)))
        logs.append(logged)
    counted = np.arange(len(LOG.rewards))[logs[0].counted]
    assert logs[0].counted.sum() == 384  # four windows of five
    past = counted < 384  # windows that end before the change, and the one that was predicted before it
    for name in ("shared", "alone"):
        np.testing.assert_allclose(found[0].predicted[name][past], found[1].predicted[name][past], atol=1e-12)
        assert np.abs(found[0].predicted[name][~past] - found[1].predicted[name][~past]).max() > 0.01
    np.testing.assert_array_equal(found[0].targets["x"].chances[past], found[1].targets["x"].chances[past])


def test_a_row_for_every_arm_says_what_a_row_for_every_decision_does() -> None:
    rng = np.random.default_rng(0)
    wide = run(LOG.table(), ["uniform", "arm:red", SharedGreedy()], time="time", decision="id")
    for order in (None, rng):
        table = LOG.long_table(order)
        long = run(table, ["uniform", "arm:red", SharedGreedy()], time="time", decision="id", chosen="was")
        for one, other in zip(wide.rows, long.rows, strict=True):
            names = one.policy, one.estimator
            if order is None:
                assert (one.policy, one.estimator, one.task) == (other.policy, other.estimator, other.task)
                assert one.value == pytest.approx(other.value), names
                assert one.low == pytest.approx(other.low), names
        for policy in wide.policies:
            for name, row in wide.pooled(policy).items():
                assert long.pooled(policy)[name].value == pytest.approx(row.value, rel=1e-6)


def test_offers_that_vary_are_read_from_lists_as_from_rows() -> None:
    rng = np.random.default_rng(0)
    offered = rng.random(LOG.chances.shape) < 0.6
    offered[np.arange(len(offered)), rng.integers(5, size=len(offered))] = True
    chances = np.where(offered, LOG.chances, 0.0)
    chances /= chances.sum(axis=1, keepdims=True)
    arms = (rng.random(len(offered))[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    played = replace(LOG, chances=chances, arms=arms)
    lists = [[ARMS[arm] for arm in np.flatnonzero(row)] for row in offered]
    wide = played.table().append_column("on", pa.array(lists))
    long = played.long_table().filter(pa.array(offered.ravel()))
    settings = {"decision": "id"}
    one = run(wide, ["uniform", IndependentUCB()], offered="on", **settings)
    other = run(long, ["uniform", IndependentUCB()], chosen="was", **settings)
    for row, twin in zip(one.rows, other.rows, strict=True):
        assert row.value == pytest.approx(twin.value)
    by_hand = np.mean(LOG.rewards / offered.sum(axis=1) / played.propensities)
    assert value(one, "uniform", "ips") == pytest.approx(by_hand)


# -- targets


def test_probabilities_in_a_column_are_those_of_the_policy_that_they_are_of() -> None:
    table = LOG.table().append_column("even", pa.array(np.full(len(LOG.arms), 0.2)))
    lists = pa.array([[0.2] * 5] * len(LOG.arms))
    found = run(table.append_column("all", lists), ["column:even", "column:all", "uniform"])
    for name in ESTIMATORS:
        assert value(found, "column:all", name) == pytest.approx(value(found, "uniform", name))
    assert set(found.pooled("column:even")) == {"ips", "snips", "ips-clipped"}
    assert value(found, "column:even", "snips") == pytest.approx(value(found, "uniform", "snips"))


def test_a_model_plays_what_it_predicts_to_be_best() -> None:
    other = play(WORLD, 300, seed=5).table()
    model = fit(other, task="shop", reward="sold", arm="offer", features=FEATURES)
    contexts = {f"x{place}": LOG.contexts[:, place] for place in range(1, 5)}
    shops = [f"shop {task:02}" for task in LOG.tasks]
    scores = [model.predict({**contexts, "shop": shops, "offer": [arm] * len(shops)}).mean for arm in ARMS]
    match = np.argmax(scores, axis=0) == LOG.arms
    found = run(LOG.table(), {"model": model})
    assert value(found, "model", "ips") == pytest.approx(np.mean(match * LOG.rewards / LOG.propensities))


def test_a_greedy_policy_is_the_same_by_its_shortcut_and_by_its_rule() -> None:
    class Plain(Greedy):
        """Greedy, but not known to be."""

    slow = LearningPolicy(estimator=FactorPrior(), rule=Plain())
    fast = LearningPolicy(estimator=FactorPrior(), rule=Greedy())
    found = run(LOG.table(), {"slow": slow, "fast": fast})
    for name in ESTIMATORS:
        assert value(found, "slow", name) == pytest.approx(value(found, "fast", name), abs=1e-12)


def test_random_play_is_uniform_and_seeds_decide_draws() -> None:
    policies = {"random": Random(), "ts": SharedThompson(draws=4)}
    one, two = (run(LOG.table(), policies, seed=seed) for seed in (0, 0))
    assert one.rows == two.rows
    other = run(LOG.table(), ["uniform"])
    assert value(one, "random", "ips") == pytest.approx(value(other, "uniform", "ips"))


def test_the_value_of_the_policy_that_wrote_the_log_is_what_it_earned() -> None:
    lists = pa.array(LOG.chances.tolist())
    found = run(LOG.table().append_column("own", lists), ["column:own"])
    assert value(found, "logged", "mean") == pytest.approx(LOG.rewards.mean())
    for name in ("ips", "snips"):
        assert value(found, "column:own", name) == pytest.approx(LOG.rewards.mean())
    (gain,) = [gain for gain in found.gains if gain.task is None]
    assert abs(gain.gain) < 3 * (gain.high - gain.low)


# -- the command


def command(log: Path, *words: str) -> Any:
    roles = [word for role, column in ROLES.items() for word in (f"--{role}", column)]
    more = ["--features", ",".join(FEATURES), "--parts", "2"]
    return CliRunner().invoke(app, ["evaluate", str(log), *roles, *more, *words])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pq.write_table(LOG.table(), path)
    return path


def test_json_has_rows_with_the_fields_that_were_promised(file: Path) -> None:
    done = command(
        file, "--policy", "shared-thompson", "--policy", "arm:red", "--policy", "uniform", "--json"
    )
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    names = {"policy", "estimator", "task", "value", "low", "high", "ess"}
    assert all(set(row) == names for row in found["rows"])
    assert {row["policy"] for row in found["rows"]} == {"logged", "shared-thompson", "arm:red", "uniform"}
    pooled = [row for row in found["rows"] if row["task"] is None]
    assert {row["estimator"] for row in pooled if row["policy"] == "uniform"} == set(ESTIMATORS)
    assert all(row["low"] <= row["value"] <= row["high"] for row in pooled)
    assert len(found["rows"]) == 9 * (1 + 3 * len(ESTIMATORS))
    library = run(
        LOG.table(), {"shared-thompson": SharedThompson(), "arm:red": "arm:red", "uniform": "uniform"}
    )
    assert found["rows"] == json.loads(library.to_json())["rows"]


def test_the_command_shows_policies_beside_the_logged_one(file: Path) -> None:
    done = command(file, "--policy", "arm:red", "--policy", "shared-greedy(rank=2)", "--by-task", "--choose")
    assert done.exit_code == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("Note")]
    assert [line.split()[0] for line in lines[:4]] == ["policy", "logged", "arm:red", "shared-greedy(rank=2)"]
    assert sum(line.startswith("shop 0") for line in lines) == 16  # values, and choices


def test_csv_text_is_read_as_typed_columns_are(file: Path, tmp_path: Path) -> None:
    text = tmp_path / "log.csv"
    duckdb.sql(f"copy (select * from '{file}') to '{text}'")
    found, other = (command(path, "--policy", "uniform", "--json") for path in (file, text))
    for one, two in zip(json.loads(found.stdout)["rows"], json.loads(other.stdout)["rows"], strict=True):
        assert one["value"] == pytest.approx(two["value"])
