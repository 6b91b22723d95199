"""The suite of scenarios: ratios, picture, page, and the command."""

import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from posse import Shared, SharedThompson, SharedUCB, UnevenTasks
from posse.cli import app
from posse.lab.experiment import Experiment
from posse.lab.registry import POLICIES, family_of, is_named
from posse.suite import (
    SCENARIOS,
    Scenario,
    compare,
    compare_scenarios,
    promise,
    relative_regrets,
    worse_off,
    worst_off_regrets,
)
from posse.suite.scenario import KINDS
from posse.suite.sharing import same_rule, watches

T_975_ONE = 12.706204736432095  # Student's t with 1 degree of freedom


def make_table(regrets: dict[str, list[float]]) -> pl.DataFrame:
    rows = [
        (seed, policy, moment, 100, regret if moment == 100 else 1e6, 0.5 + seed)
        for policy, values in regrets.items()
        for seed, regret in enumerate(values)
        for moment in (50, 100)
    ]
    names = ["seed", "policy", "round", "horizon", "regret_per_task", "seconds"]
    return pl.DataFrame(rows, schema=names, orient="row")


def by_policy(data: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["policy"]: row for row in data.to_dicts()}


BY_HAND = make_table(
    {
        "shared-greedy": [10.0, 40.0],
        "independent-ucb": [10.0, 90.0],
        "independent-greedy": [20.0, 40.0],
        "oracle-greedy": [5.0, 10.0],
        "mlingreedy": [0.0, 30.0],
    }
)


def test_ratios_and_intervals_by_hand() -> None:
    data = relative_regrets(BY_HAND)
    assert data["policy"].to_list() == BY_HAND["policy"].unique(maintain_order=True).to_list()
    assert data["n_seeds"].unique().to_list() == [2]
    assert data["best_independent"].unique().to_list() == ["independent-greedy"]
    assert data["best_oracle"].unique().to_list() == ["oracle-greedy"]
    row = by_policy(data)["shared-greedy"]
    assert row["regret_per_task"] == 25.0
    assert row["ci_low"] == pytest.approx(25 - T_975_ONE * 15)
    assert row["ci_high"] == pytest.approx(25 + T_975_ONE * 15)
    # logarithms of 1/2 and 1, and of 2 and 4
    half = T_975_ONE * math.log(2) / 2
    assert row["to_independent"] == pytest.approx(math.sqrt(0.5))
    assert row["to_independent_low"] == pytest.approx(math.sqrt(0.5) * math.exp(-half))
    assert row["to_independent_high"] == pytest.approx(math.sqrt(0.5) * math.exp(half))
    assert row["to_oracle"] == pytest.approx(math.sqrt(8))
    assert row["to_oracle_low"] == pytest.approx(math.sqrt(8) * math.exp(-half))
    reference = by_policy(data)["independent-greedy"]
    assert [reference[f"to_independent{end}"] for end in ("", "_low", "_high")] == [1.0, 1.0, 1.0]


def test_what_has_no_ratio_is_null() -> None:
    zero = by_policy(relative_regrets(BY_HAND))["mlingreedy"]
    assert zero["regret_per_task"] == 15.0
    assert zero["to_independent"] is zero["to_oracle_low"] is None
    idle = relative_regrets(make_table({"shared-ucb": [3.0, 4.0], "independent-ucb": [0.0, 1.0]}))
    assert idle["to_independent"].null_count() == idle["best_oracle"].null_count() == 2
    one = by_policy(relative_regrets(make_table({"shared-ucb": [3.0], "pege": [6.0]})))["shared-ucb"]
    assert one["to_independent"] == pytest.approx(0.5)
    assert one["ci_low"] is one["to_independent_low"] is one["to_independent_high"] is None
    alone = relative_regrets(make_table({"shared-ucb": [3.0]}))
    assert alone.select("best_independent", "to_independent").row(0) == (None, None)


def test_families_say_who_is_independent_and_who_an_oracle() -> None:
    members: dict[str, set[str]] = {}
    for name in POLICIES:
        members.setdefault(family_of(name), set()).add(name)
    assert members["oracles"] == {"oracle-greedy", "oracle-thompson", "oracle-commit", "pege-oracle"}
    assert {"pege", "naive", "independent-greedy"} <= members["each task alone"]
    assert family_of("independent-greedy(schedule=100, memory=0.9995)") == "each task alone"
    assert not members["each task alone"] & {"shared-ucb", "mlingreedy", "e2tc", "random", "oracle-greedy"}
    assert members["posse"] == {name for name in POLICIES if name.startswith("shared")}
    assert family_of("somebody's own") == "others"


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_can_be_played(name: str) -> None:
    scenario = SCENARIOS[name]
    (cell,) = scenario.experiment.cells
    scenario.experiment.check(cell)
    assert scenario.name == name
    assert scenario.experiment.name == f"compare_{name.replace('-', '_')}"
    horizons = {"where real data live": 3000, "streams of tasks": 1000}
    assert scenario.experiment.horizon == horizons.get(scenario.group, 10_000)
    assert all(map(is_named, scenario.experiment.names))
    families = {family_of(policy) for policy in scenario.experiment.names}
    assert {"posse", "each task alone"} <= families
    assert "shared" in scenario.experiment.names
    assert ("oracles" in families) == (name not in ("moving", "digits"))
    assert scenario.kind in KINDS


def test_no_cell_is_played_twice() -> None:
    played = [
        (scenario.experiment.problem, scenario.experiment.horizon, *scenario.experiment.cells[0].items())
        for scenario in SCENARIOS.values()
    ]
    assert len(set(played)) == len(played)


def test_every_policy_that_learns_side_by_side_plays_somewhere() -> None:
    """All but those that are no contestants, and one that is another by its own definition."""
    playing = {name.partition("(")[0] for some in SCENARIOS.values() for name in some.experiment.names}
    assert set(POLICIES) - playing == {"commit", "relearn", "random", "shared-ucb"}
    assert Shared().rule.finite == SharedUCB().rule
    assert Shared().rule.other == SharedThompson().rule


def test_scenarios_have_one_cell() -> None:
    scenario = SCENARIOS["few-tasks"]
    (cell,) = scenario.experiment.cells
    two = replace(scenario.experiment, cells=({**cell, "dim": 3}, {**cell, "dim": 4}))
    with pytest.raises(ValueError, match=r"`experiment` of Scenario must have exactly one cell. Got 2."):
        replace(scenario, experiment=two)


def small(name: str) -> Scenario:
    experiment = SCENARIOS[name].experiment
    cell = {**experiment.cells[0], "dim": 5, "n_tasks": 4}
    return replace(SCENARIOS[name], experiment=replace(experiment, cells=(cell,), horizon=50))


def run_files(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("*/runs/*.parquet")}


def test_a_suite_grows_and_plays_nothing_twice(tmp_path: Path) -> None:
    few, moving = small("few-tasks"), small("moving")
    known = (few, moving)
    first = compare([few], seeds=2, out=tmp_path, known=known)
    assert [scenario.name for scenario in first.scenarios] == ["few-tasks"]
    played = run_files(tmp_path)
    both = compare([few, moving], seeds=1, out=tmp_path, known=known)
    assert both.data["n_seeds"].unique().to_list() == [1]
    more = compare([few], seeds=3, out=tmp_path, known=known)
    assert [scenario.name for scenario in more.scenarios] == ["few-tasks", "moving"]
    after = run_files(tmp_path)
    assert len(after) == 4
    assert {path: after[path] for path in played} == played
    assert {path.name for path in tmp_path.iterdir()} == {
        "compare_few_tasks", "compare_moving",
        "comparison.html", "comparison.csv", "comparison.png", "comparison.svg",
        "comparison-ranks-1.png", "comparison-ranks-1.svg",
    }  # fmt: skip
    data = pl.read_csv(tmp_path / "comparison.csv")
    seeds = data.select("scenario", "n_seeds").unique().sort("scenario").rows()
    assert seeds == [("few-tasks", 3), ("moving", 1)]
    page = more.path.read_text(encoding="utf-8")
    for name in ("few-tasks", "moving"):
        assert SCENARIOS[name].reason in page
        assert f'id="{name}"' in page
    assert f"posse compare few-tasks --seeds 3 --out {tmp_path}" in page
    assert f"posse compare moving --seeds 1 --out {tmp_path}" in page
    assert "Was anybody worse off for having shared?" in page
    assert "body was worse off for having shared (mean a" in page
    assert "worst_to_same_high" in data.columns
    assert "data:image/svg+xml;base64," in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.mark.slow
def test_the_command_from_end_to_end(tmp_path: Path) -> None:
    first = run("few-tasks", "--seeds", "2", "--jobs", "2", "--out", str(tmp_path))
    assert first.exit_code == 0, first.output
    assert re.search(r"few-tasks +independent( +\d+\.\d\d){5}", first.stdout)
    assert re.search(r"\w+( +\d+\.\d\d-\d+\.\d\d){5}", first.stdout)
    assert str(tmp_path / "comparison.html") in first.stdout
    assert "few-tasks, 2 seeds: 2/2 runs, 100% of the work" in first.stderr


def test_compare_names_what_is_wrong_and_teaches(tmp_path: Path) -> None:
    unknown = run("few-task", "--out", str(tmp_path / "a"))
    assert unknown.exit_code == 2
    expected = "scenario must be a known name. Got 'few-task'. Did you mean 'few-tasks'? Known are few-tasks,"
    assert expected in unknown.stderr
    assert not os.listdir(tmp_path)
    assert "--seeds must be an integer of at least 1. Got 0." in run("--seeds", "0").stderr
    stranger = run("few-tasks", "--policy", "naiv", "--out", str(tmp_path / "a"))
    assert stranger.exit_code == 2
    assert "--policy must be a known name. Got 'naiv'. Did you mean 'naive'?" in stranger.stderr
    unfit = run("few-tasks", "--policy", "pege", "--seeds", "1", "--out", str(tmp_path / "a"))
    assert unfit.exit_code == 2
    assert "PEGE is made for ellipsoids, and the problem gaussian has finite action sets." in unfit.stderr
    assert not os.listdir(tmp_path)
    taught = run("--help").stdout
    assert "For example: posse compare few-tasks unrelated" in taught
    assert "same command goes on" in taught
    assert "6 seeds per scenario, or 1" in taught


def by_task(regrets: dict[str, list[list[float]]]) -> pl.DataFrame:
    """A table of regrets by policy, seed and task."""
    means = make_table({name: [sum(row) / len(row) for row in seeds] for name, seeds in regrets.items()})
    kept = [
        regrets[policy][seed] if moment == 100 else None
        for seed, policy, moment in means.select("seed", "policy", "round").rows()
    ]
    return means.with_columns(pl.Series("regret_by_task", kept, dtype=pl.List(pl.Float32)))


def small_gaussian(problem: str = "gaussian", **cell: object) -> Experiment:
    sizes = {"n_tasks": 5, "dim": 4, "rank": 2}
    return Experiment(
        name="small", problem=problem, cells=({**sizes, **cell},), policies=("naive",), horizon=9
    )


ALONE = [[1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0]]


def test_the_worst_off_are_the_fifth_with_the_most_regret_if_nobody_is_known_to_be() -> None:
    shared = [[10.0, 1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 20.0, 1.0, 7.0]]
    table = by_task({"shared-greedy": shared, "independent-greedy": ALONE, "pege": [[0.1] * 5] * 2})
    found = by_policy(worst_off_regrets(table, small_gaussian()))
    row = found["shared-greedy"]
    assert row["same_rule"] == "independent-greedy"  # although another is better
    assert row["watched"] == "the 1 of 5 tasks with the most regret"
    assert row["worst_off"] == pytest.approx(15.0)
    assert row["worst_to_same"] == pytest.approx(2.0)
    assert row["worst_to_same_low"] == pytest.approx(row["worst_to_same_high"]) == pytest.approx(2.0)
    assert row["mean_to_same"] == pytest.approx(1.0)
    assert found["independent-greedy"]["worst_to_same"] == pytest.approx(1.0)


def test_the_worst_off_are_those_whom_the_problem_names() -> None:
    shared = [[4.0, 1.0, 1.0, 1.0, 1.0], [8.0, 1.0, 1.0, 1.0, 1.0]]
    table = by_task({"shared-ucb": shared, "independent-greedy": ALONE})
    row = by_policy(worst_off_regrets(table, small_gaussian(structure="giant")))["shared-ucb"]
    assert row["same_rule"] == "independent-greedy"  # the best, as there is none with its rule
    assert row["watched"] == "1 of 5 tasks, known beforehand"
    assert (row["worst_off"], row["worst_to_same"]) == pytest.approx((6.0, 4.0))
    assert row["mean_to_same"] < 1


def test_groups_are_those_of_each_seed() -> None:
    experiment = small_gaussian("unequal-noise")
    drawn = [
        UnevenTasks.draw(n_tasks=5, dim=4, rank=2, seed=seed, quietest=0.2, loudest=5.0) for seed in (0, 1)
    ]
    groups = [problem.worst_off for problem in drawn]
    assert [watch.tasks for watch in watches(experiment, (0, 1)).values()] == groups
    (first,), (second,) = groups  # type: ignore[misc]
    assert first != second
    shared = [list(row) for row in ALONE]
    for seed, task in enumerate((first, second)):
        shared[seed][task] *= 3
    table = by_task({"shared-ucb": shared, "independent-ucb": ALONE})
    assert by_policy(worst_off_regrets(table, experiment))["shared-ucb"]["worst_to_same"] == pytest.approx(3)


def test_regrets_are_compared_in_the_units_of_their_tasks() -> None:
    experiment = small_gaussian("own-units")
    units = [watch.units for watch in watches(experiment, (0, 1)).values()]
    alone = [(2.0 * unit).tolist() for unit in units if unit is not None]
    shared = [(np.array([5.0, 1.0, 1.0, 1.0, 1.0]) * unit).tolist() for unit in units if unit is not None]
    found = by_policy(
        worst_off_regrets(by_task({"shared-ucb": shared, "independent-ucb": alone}), experiment)
    )
    row = found["shared-ucb"]
    values = (row["worst_off"], row["worst_to_same"], row["mean_to_same"])
    assert values == pytest.approx((5.0, 2.5, 0.9), rel=1e-5)


def test_without_the_regrets_of_single_tasks_only_means_are_compared() -> None:
    row = by_policy(worst_off_regrets(BY_HAND, small_gaussian()))["shared-greedy"]
    assert row["mean_to_same"] == pytest.approx(math.sqrt(0.5))
    assert row["worst_off"] is row["worst_to_same"] is row["watched"] is None


def test_references_have_the_same_rule_and_memory() -> None:
    forgetful = "(schedule=100, memory=0.9995)"
    alone = ["independent-greedy", "independent-thompson", f"independent-greedy{forgetful}"]
    expected = {
        "shared-greedy": alone[0],
        f"shared-greedy{forgetful}": alone[2],
        "shared-greedy(rank=2)": alone[0],
        "oracle-thompson": alone[1],
        "mlingreedy": alone[0],
        "shared": alone[1],
        "shared-ucb": "the best",
        "random": "the best",
        alone[2]: alone[2],
    }
    assert {name: same_rule(name, alone, "the best") for name in expected} == expected
    assert same_rule("shared", [*alone, "independent-ucb"], None) == "independent-ucb"


def test_the_promise_is_judged_by_means_and_by_the_worst_off() -> None:
    scenario = SCENARIOS["few-tasks"]
    experiment = replace(scenario.experiment, cells=({**scenario.experiment.cells[0], "n_tasks": 5},))
    scenario = replace(scenario, experiment=experiment)

    def judged(shared: list[list[float]]) -> tuple[str, int]:
        table = by_task({"shared-ucb": shared, "independent-ucb": ALONE, "oracle-greedy": [[99.0] * 5] * 2})
        data = compare_scenarios([scenario], {scenario.name: table})
        return promise(data), len(worse_off(data))

    line, broken = judged(ALONE)
    assert broken == 0
    assert line.startswith("Nobody was worse off for having shared (mean at most 1.03, worst-off fifth 1.10)")
    assert "in any of 1 pairs of a shared policy and a scenario, 1 scenarios, by point estimates" in line
    line, broken = judged([[1.0, 1.0, 1.0, 1.0, 6.0], [2.0, 2.0, 2.0, 2.0, 12.0]])
    assert broken == 1
    assert line.startswith("Somebody was worse off for having shared")
    assert "in 1 of 1 pairs" in line
    assert "shared-ucb in few-tasks: mean 0.67 [0.67, 0.67], worst-off 1.20 [1.20, 1.20]." in line
    line, broken = judged([[1.04 * value for value in row] for row in ALONE])
    assert (broken, "mean 1.04 [1.04, 1.04], worst-off 1.04" in line) == (1, True)
