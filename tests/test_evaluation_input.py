"""What is wrong with a log is said with counts and examples; where it has no answer there is no number."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from proofs.decision_logs import ARMS, Played, World, lists, play
from scipy.stats import binom
from typer.testing import CliRunner

from posse import Fading, SharedGreedy
from posse.cli import app
from posse.logs import Evaluation, evaluate
from posse.logs.evaluation.answers import ESTIMATORS
from posse.logs.evaluation.balance import Balance
from posse.logs.evaluation.decisions import Decisions
from posse.logs.evaluation.page import write_evaluation

ROLES: dict[str, Any] = {"task": "shop", "reward": "sold", "arm": "offer", "propensity": "chance"}
FEATURES = ["x1", "x2"]
LOG = play(World.draw(0, n_tasks=6, n_arms=3, dim=2), 80, seed=1)
TABLE = LOG.table()


def run(log: Any, policies: Any = ("uniform",), **settings: Any) -> Evaluation:
    return evaluate(log, policies, **{**ROLES, "features": FEATURES, "n_parts": 2, **settings})


def put(table: pa.Table, column: str, values: dict[int, Any]) -> pa.Table:
    """Return a table with other values in some rows of a column."""
    found = table[column].to_pylist()
    for row, value in values.items():
        found[row] = value
    return table.set_column(table.schema.get_field_index(column), column, pa.array(found))


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("chance", {3: 0.0, 9: -0.1}, "chance: 2 propensities of 0 or below, as row 4, row 10"),
        ("chance", {7: 1.5}, "chance: 1 propensities above 1, as row 8"),
        ("chance", {0: None}, "chance: 1 missing propensities, as row 1"),
        (
            "sold",
            {5: None, 6: float("nan"), 7: float("inf")},
            "sold: 3 rewards that are missing or no",
        ),
        ("offer", {2: None}, "offer: 1 rows without an arm, as row 3"),
        ("shop", {2: None}, "shop: 1 rows without a task, as row 3"),
        ("id", {1: "d0", 3: "d2"}, "id: 2 decisions that stand in several rows, as d0, d2"),
        ("time", {4: None}, "time: 1 missing times, as row 5"),
    ],
)
def test_faults_of_a_log_are_counted_with_examples(column: str, values: dict[int, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(put(TABLE, column, values), decision="id", time="time")


def test_all_faults_are_in_one_message() -> None:
    table = put(put(TABLE, "chance", {3: 0.0}), "sold", {5: None})
    with pytest.raises(ValueError, match=r"sold: 1 rewards .*; chance: 1 prop") as caught:
        run(table)
    assert "name a query: select * from 'FILE' where" in str(caught.value)


def with_offers(change: Callable[[int], list[str]]) -> pa.Table:
    return TABLE.append_column("on", pa.array([change(row) for row in range(len(LOG.arms))]))


def test_an_arm_that_was_not_on_offer_is_a_fault() -> None:
    others = with_offers(lambda row: [arm for arm in ARMS[:3] if row or arm != ARMS[LOG.arms[0]]])
    with pytest.raises(ValueError, match="offer: 1 arms that were played and not on offer, as row 1"):
        run(others, offered="on")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"was": {0: True, 1: True}}, "was: 1 decisions with several chosen arms, as decision d0"),
        ({"was": {0: False, 1: False, 2: False}}, "was: 1 decisions without a chosen arm, as decision d0"),
        (
            {"chance": {0: 0.9, 1: 0.9}},
            "chance: 1 decisions whose propensities do not add up to 1, as d",
        ),
        ({"offer": {0: "green", 1: "green"}}, "offer: 1 decisions with an arm twice, as decision d0"),
        ({"id": {4: None}}, "id: [12] rows without a decision"),
        ({"shop": {0: "shop 05", 1: "shop 04"}}, "shop: 1 decisions of several tasks, as decision d0"),
    ],
)
def test_faults_of_decisions_with_a_row_for_every_arm(change: dict[str, dict[int, Any]], said: str) -> None:
    table = LOG.long_table()
    for column, values in change.items():
        table = put(table, column, values)
    with pytest.raises(ValueError, match=said):
        run(table, decision="id", chosen="was")


def test_rewards_that_are_all_equal_and_empty_logs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rewards must differ.* Got 480 rewards of 2 in column 'sold'"):
        run(replace(LOG, rewards=np.full(480, 2.0)).table())
    with pytest.raises(ValueError, match=r"must have rows with a task and a reward\. Got Table of 0 rows"):
        run(TABLE.slice(0, 0))


def test_a_log_sorted_by_nothing_has_no_sequence_and_no_windows() -> None:
    with pytest.raises(ValueError, match=r"`time` must be the column with the time for `interval` = 's"):
        run(TABLE, interval="sequence")
    still = put(TABLE, "time", dict.fromkeys(range(480), 1.0))
    with pytest.raises(ValueError, match=r"`time` must have 2 different times at least.* which has 1\."):
        run(still, time="time")
    with pytest.raises(ValueError, match="a policy that forgets must be evaluated forward in time"):
        run(TABLE, [SharedGreedy(memory=Fading(0.9))])


def test_a_log_too_short_for_a_sequence_has_values_without_ends() -> None:
    found = run(TABLE.slice(0, 60), interval="sequence", time="time")
    assert found.decisions == 30
    assert found.pooled("uniform")["dr"].low is None
    assert found.pooled("uniform")["dr"].value is not None
    assert found.gains == ()
    assert '"gains": []' in found.to_json()


def test_one_task_alone_is_said_and_has_no_bootstrap() -> None:
    alone = TABLE.filter(pa.compute.equal(TABLE["shop"], "shop 00"))
    found = run(alone, ["arm:red"])
    assert "there is one task: nobody is there to share with, and no interval over tasks" in found.notes
    with pytest.raises(ValueError, match="must not be bootstrap where there is one task"):
        run(alone, ["arm:red"], interval="bootstrap")


def certain() -> pa.Table:
    """Return a log of a policy that always plays the first arm."""
    chances = np.eye(3)[np.zeros(480, dtype=int)]
    return replace(LOG, arms=np.zeros(480, dtype=np.intp), chances=chances).table()


def test_a_deterministic_log_has_an_answer_about_its_own_policy_alone() -> None:
    log = certain()
    with pytest.raises(ValueError, match=r"known name|Known|Got 'red'|must be"):
        run(log, ["arm:red"])
    table = log.append_column("other", pa.array(np.full(480, 0.2)))
    with pytest.raises(
        ValueError,
        match=r"all 480 propensities are 1: the logged policy tried nothing .* 80% of what it plays",
    ):
        run(table, ["column:other"])
    own = run(log, ["arm:blue"]).pooled("arm:blue")["ips"]
    assert own.value == pytest.approx(LOG.rewards.mean())


def half_supported() -> pa.Table:
    """Return a log in which half of the tasks never met the arm red, though it was on offer."""
    chances = LOG.chances.copy()
    chances[LOG.tasks < 3, 2] = 0.0
    chances /= chances.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    arms = (rng.random(480)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    return replace(LOG, chances=chances, arms=arms).table()


def test_a_target_without_support_has_no_number_where_it_has_none() -> None:
    alone = run(half_supported(), ["arm:red"])
    found = run(half_supported(), ["arm:red", "arm:blue"])
    said = (
        "nothing can be said about arm:red in all tasks together, but in 3 of 6 tasks: weights have a mean of"
    )
    for answer in (alone, found):
        assert any(note.startswith(said) for note in answer.notes)
    lost = [row for row in found.rows if row.policy == "arm:red" and row.task in (None, "shop 00")]
    assert lost
    assert all((row.value, row.low, row.high) == (None, None, None) for row in lost)
    told = {row.estimator for row in found.rows if row.policy == "arm:red" and row.task == "shop 05"}
    assert told == set(ESTIMATORS)
    (one,) = [one for one in found.support if one.policy == "arm:red" and one.task == "shop 00"]
    assert one.unsupported == 1.0
    assert one.mean_weight == one.ess == 0.0


def test_one_task_without_support_takes_no_answer_from_the_others(tmp_path: Path) -> None:
    table = half_supported().filter(pa.compute.greater_equal(half_supported()["shop"], "shop 01"))
    found = run(table, ["arm:red"])
    told = {row.task for row in found.rows if row.policy == "arm:red" and row.low is not None}
    assert told == {"shop 03", "shop 04", "shop 05"}
    write_evaluation(found, tmp_path / "page.html")
    said = "othing can be said about arm:red in all tasks together, but in 3 of 5 tasks"
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert said in found.to_json()


def plain(seed: int = 3) -> Played:
    """Return a log whose contexts have no part in what was played."""
    rng = np.random.default_rng(seed)
    by_task = rng.dirichlet(np.full(3, 5.0), size=6)[LOG.tasks]
    arms = (rng.random(480)[:, None] > np.cumsum(by_task, axis=1)).sum(axis=1)
    return replace(LOG, arms=arms, chances=by_task)


def test_propensities_that_disagree_with_contexts_are_refused() -> None:
    first = LOG.contexts[:, 1] > 0  # decides, and nobody wrote it down
    log = replace(LOG, arms=np.where(first, 0, 1), chances=np.full((480, 3), 0.5)).table()
    said = (
        r"disagree with contexts for 2 of 2 arms: the plays of arm (blue|green).* mean of x1 that is .0\.[78]"
    )
    with pytest.raises(ValueError, match=said) as caught:
        run(log, ["arm:blue"])
    assert "of the 480 decisions in which it was on offer" in str(caught.value)
    with pytest.raises(ValueError, match=said + ".* They are estimated by frequency, and the context had a"):
        run(log.drop_columns("chance"), ["arm:blue"], propensity=None)
    found = run(log, ["arm:blue"], direct=True).pooled("arm:blue")
    assert found["dm"].value is not None
    assert all(row.low is None for row in found.values())


@pytest.mark.parametrize(("rows", "estimated"), [(80, False), (400, False), (80, True)])
def test_right_propensities_seldom_disagree_with_contexts(rows: int, estimated: bool) -> None:
    # 1 in 1,000 is promised: of 300 logs more than 4 disagree with a chance below 0.001
    world, alarms = World.draw(0, n_tasks=6, n_arms=3, dim=2), 0
    for seed in range(300):
        log = play(world, rows, seed)
        if estimated:
            log = plain(seed)
        tasks, arms = log.tasks, np.broadcast_to(np.arange(3), log.chances.shape)
        shares = np.bincount(tasks * 3 + log.arms, minlength=18).reshape(6, 3) / rows
        decisions = Decisions(
            tasks=tasks,
            chosen=log.arms,
            rewards=log.rewards,
            propensities=shares[tasks, log.arms] if estimated else log.propensities,
            times=log.rewards,
            features=log.contexts[:, None, :],
            arms=arms,
            available=np.zeros((0, 0), dtype=np.bool_),
        )
        balance = Balance(6, 3, 3)
        balance.add(decisions, decisions.propensities)
        alarms += balance.disagreement(ARMS[:3], ["level", *FEATURES]) != ""
    assert binom.sf(4, 300, 0.001) < 0.001
    assert alarms <= 4


def test_rows_that_stand_there_twice_are_counted() -> None:
    twice = pa.concat_tables([TABLE, TABLE.slice(0, 7)])
    assert any(
        note.startswith("7 rows stand in the log again, alike in all columns") for note in run(twice).notes
    )
    assert not any("again" in note for note in run(TABLE).notes)
    with pytest.raises(ValueError, match="id: 7 decisions that stand in several rows"):
        run(twice, decision="id")


def test_a_task_whose_rewards_are_all_equal_has_no_interval() -> None:
    found = run(
        replace(LOG, rewards=np.where(LOG.tasks == 1, 3.0, LOG.rewards)).table(), ["arm:red", "uniform"]
    )
    own = [row for row in found.rows if row.task == "shop 01"]
    assert {row.policy for row in own} == {"logged", "arm:red", "uniform"}
    assert all(row.value is not None and row.low is None and row.high is None for row in own)
    assert not any(gain.task == "shop 01" for gain in found.gains)
    assert "rewards are all equal in 1 of 6 tasks, as in shop 01: they have no interval" in found.notes


def test_the_direct_method_answers_where_asked_and_says_so() -> None:
    found = run(half_supported(), ["arm:red", "arm:blue"], direct=True)
    rows = found.pooled("arm:red")
    assert rows["dm"].value is not None
    assert rows["dm"].low is None
    assert all(row.value is None for name, row in rows.items() if name != "dm")
    assert "where nothing can be said, the direct method answers by the model alone" in found.notes


def test_propensities_that_disagree_with_frequencies_are_said() -> None:
    doubled = np.where(LOG.arms == 2, np.minimum(2.0 * LOG.propensities, 1.0), LOG.propensities)
    table = TABLE.set_column(TABLE.schema.get_field_index("chance"), "chance", pa.array(doubled))
    with pytest.raises(ValueError, match=r"weights have a mean of 0\.[5-9].* propensities are wrong"):
        run(table, ["arm:red"])
    found = run(table, ["arm:blue"])
    assert any(
        note.startswith("propensities disagree with frequencies: those of arm red") for note in found.notes
    )


def test_estimated_propensities_are_flagged_in_every_table(tmp_path: Path) -> None:
    file, page = tmp_path / "log.parquet", tmp_path / "page.html"
    pq.write_table(plain().table().drop_columns("chance"), file)
    words = ["evaluate", str(file), "--task", "shop", "--reward", "sold", "--arm", "offer"]
    words += [
        "--features",
        "x1,x2",
        "--policy",
        "arm:red",
        "--policy",
        "uniform",
        "--by-task",
        "--choose",
        "--parts",
        "2",
    ]
    done = CliRunner().invoke(app, [*words, "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Note: the log has no propensities: they are estimated")
    header, by_task = (line for line in done.stdout.splitlines() if line.startswith(("policy", "task")))
    assert "propensities estimated" in header
    assert "propensities estimated" in by_task
    text = page.read_text(encoding="utf-8")
    tables = [rest.split("</table>")[0] for rest in text.split("<table>")[1:]]
    assert len(tables) == 4
    assert all("propensities estimated" in one for one in tables)
    found = run(plain().table().drop_columns("chance"), propensity=None)
    assert found.estimated
    again = run(TABLE)
    assert not again.estimated


def test_estimated_propensities_are_frequencies_by_task() -> None:
    log = plain()  # whose estimates are nearly right
    arms = log.arms
    estimated = run(log.table().drop_columns("chance"), ["arm:red"], propensity=None).pooled("arm:red")
    known = run(log.table(), ["arm:red"]).pooled("arm:red")
    assert estimated["snips"].value == pytest.approx(known["snips"].value, abs=0.1)
    # a task's rate is drawn towards that of all by as many decisions as there are arms
    usual = np.mean(arms == 2)
    rates = [(np.sum(arms[LOG.tasks == task] == 2) + 3 * usual) / 83 for task in range(6)]
    totals = [
        sum((np.sum(arms[LOG.tasks == task] == arm) + 3 * np.mean(arms == arm)) / 83 for arm in range(3))
        for task in range(6)
    ]
    weights = np.where(arms == 2, 1.0 / (np.array(rates) / totals)[LOG.tasks], 0.0)
    assert estimated["ips"].value == pytest.approx(np.mean(weights * LOG.rewards))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"policies": []}, "`policies` must be one policy at least"),
        ({"policies": ["best"]}, "a policy, if a text, must be uniform, arm:NAME or column:NAME. Got 'best'"),
        ({"policies": {"logged": "uniform"}}, "must not be called 'logged'"),
        ({"policies": [3]}, "must be one that decides for single tasks"),
        ({"policies": ["column:chances"]}, "must be a known name|Got 'chances'"),
        ({"interval": "normal"}, "`interval` must be"),
        ({"level": 1.0}, "`level` must be"),
        ({"n_parts": 1}, "`n_parts` must be"),
        ({"choosing": "all"}, "`choosing` must be"),
        ({"arm": None}, "`arm` must be the column that names the arm played"),
        ({"chosen": "id"}, "`decision` must name each decision"),
        ({"offered": "id"}, "`offered` must be a column of lists"),
    ],
)
def test_wrong_arguments_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(TABLE, **{"policies": ["uniform"], **settings})


def test_probabilities_of_a_target_must_be_probabilities() -> None:
    chances = LOG.chances.copy()
    chances[0] *= 2.0
    with pytest.raises(ValueError, match=r"add up to 1. Got 1 decisions in column 'wrong'"):
        run(TABLE.append_column("wrong", lists(chances)), ["column:wrong"])


def test_an_arm_that_is_not_always_there_is_no_policy() -> None:
    first = int(np.argmax(LOG.arms != 2))
    some = with_offers(lambda row: [ARMS[LOG.arms[row]], "green" if row == first else "red"])
    with pytest.raises(ValueError, match=r"Got arm:red, which was not in 1 of 480 decisions"):
        run(some, ["arm:red"], offered="on")


def test_a_page_of_a_log_with_names_that_are_markup(tmp_path: Path) -> None:
    named = put(TABLE, "shop", {row: "<b>here</b>" for row in range(480) if LOG.tasks[row] == 0})
    write_evaluation(run(named), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;here&lt;/b&gt;" in text
    assert "<td><b>here</b>" not in text
