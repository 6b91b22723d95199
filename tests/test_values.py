"""Policies and problems are values: anyone's can be played, saved, compared, drawn and reported."""

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import strangers
from posse import At, GaussianProblem, MLinGreedy, Random, SharedGreedy, simulate, simulate_all
from posse.cli.running import import_from_here
from posse.cli.simulate import alike, assigned_parameters
from posse.core.codec import decode
from posse.core.errors import PosseError
from posse.core.protocols import Policy
from posse.lab.charts import regret_by_round, regret_by_tasks
from posse.lab.describe import describe
from posse.lab.engines import GridError, Workers
from posse.lab.experiment import Experiment
from posse.lab.grid import play_seeds, run_experiments
from posse.lab.registry import (
    POLICIES,
    family_of,
    find_policy,
    in_order,
    label_of,
    look_of,
    name_policies,
    style_of,
)
from posse.lab.results import final_rounds
from posse.paper.claims import Claim, extremes, final_regrets, signed_claim, simultaneous
from posse.paper.figure import Figure
from posse.paper.report import write_report
from posse.paper.reproduce import reproduce
from posse.suite import SCENARIOS, Scenario, compare
from posse.viz.style import fallback_style
from strangers import Anxious, Committing, Plain, Stores, alone

CELL = {"dim": 5, "rank": 2, "n_tasks": 4, "n_arms": 3}
ENTRIES: dict[str, Any] = {
    "naive": "naive",
    "told 1": "mlingreedy(rank=1)",
    "found": "strangers:committing",
    "a class": "strangers:Committing",
    "an object": Committing(explore=7),
    "a function": alone,
    "a lambda": lambda problem: Committing(explore=problem.n_tasks),
    "plain": Plain(explore=5),
}
MIXED = Experiment(name="mixed", problem="gaussian", cells=(CELL,), policies=ENTRIES, horizon=60)
WITHOUT_TIMES = ["seed", "policy", "round", "regret_per_task"]
TESTS = Path(__file__).parent


def only(policies: Any, **fields: Any) -> Experiment:
    return replace(MIXED, policies=policies, **fields)


def finals(experiment: Experiment, seed: int = 0) -> dict[str, float]:
    table = final_rounds(
        experiment.play(experiment.cells[0], seed).with_columns(horizon=pl.col("round").max())
    )
    return dict(table.select("policy", "regret_per_task").iter_rows())


def test_a_mapping_plays_under_its_names_what_it_holds() -> None:
    problem = GaussianProblem.draw(dim=5, rank=2, n_tasks=4, n_arms=3, seed=0)
    policies: dict[str, Policy] = {
        "told 1": MLinGreedy(rank=1),
        "found": Committing(explore=10),
        "a class": Committing(),
        "an object": Committing(explore=7),
        "a function": alone(problem),
        "a lambda": Committing(explore=4),
    }
    expected = simulate_all(problem, policies, horizon=60, seed=0, path="contexts")
    found = finals(only(ENTRIES, path="contexts"))
    assert list(found) == list(ENTRIES) == list(MIXED.names)
    for name, trace in expected.items():
        assert found[name] == trace.regret_per_task[-1]


def test_values_travel_to_other_processes() -> None:
    here = play_seeds(MIXED, seeds=2)
    there = play_seeds(MIXED, seeds=2, workers=Workers(jobs=2))
    assert here.select(WITHOUT_TIMES).equals(there.select(WITHOUT_TIMES))
    problem = replace(MIXED, problem=strangers.stores, cells=({},), policies=(Committing(), "random"))
    assert play_seeds(problem, seeds=2, workers=Workers(jobs=2))["policy"].unique().sort().to_list() == [
        "Committing(explore=20)",
        "random",
    ]


@pytest.mark.slow
def test_values_travel_to_a_dask_cluster() -> None:
    here = play_seeds(MIXED, seeds=2)
    there = play_seeds(MIXED, seeds=2, workers=Workers(jobs=2, engine="dask"))
    assert here.select(WITHOUT_TIMES).equals(there.select(WITHOUT_TIMES))


@pytest.mark.parametrize("engine", ["local", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_policy_of_the_program_itself_is_played_by_workers(tmp_path: Path, engine: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            from dataclasses import dataclass
            from pathlib import Path
            from posse import Random
            from posse.lab.engines import Workers
            from posse.lab.experiment import Experiment
            from posse.lab.grid import run_experiments

            @dataclass(frozen=True)
            class Mine(Random):
                mood: str = "good"

            if __name__ == "__main__":
                mine = Experiment(
                    name="mine", problem="gaussian", cells=({CELL},), policies=(Mine(), "random"), horizon=40
                )
                workers = Workers(jobs=2, engine="{engine}")
                table = run_experiments([mine], seeds=2, out=Path("out"), workers=workers)["mine"]
                last = table.filter(round=40).sort("seed")
                mine, random = (last.filter(policy=name)["regret_per_task"] for name in mine.names)
                assert mine.to_list() == random.to_list()
            """
        )
    )
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, check=True)
    manifest = json.loads((tmp_path / "out" / "mine" / "manifest.json").read_text())
    mine = {"name": "Mine(mood='good')", "policy": {"class": "__main__:Mine", "fields": {"mood": "good"}}}
    assert manifest["parameters"]["policies"] == [mine, "random"]
    assert not manifest["failures"]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ("naive", "`policies` must be a sequence, or a mapping of names. Got 'naive'."),
        (3, "`policies` must be a sequence"),
        ({}, "`policies` must be some different entries"),
        (("naive", "naive"), "`policies` must be some different entries"),
        (("naiv",), "policy must be a known name. Got 'naiv'. Did you mean 'naive'?"),
        (
            ("mlingreedy(rnk=3)",),
            "parameter of mlingreedy must be a known name. Got 'rnk'. Did you mean 'rank'?",
        ),
        (("random(x=1)",), "random must be written without parameters: it has none. Got x=1."),
        (("mlingreedy(3)",), r"must be written NAME or NAME\(parameter=value, ...\). Got 'mlingreedy\(3\)'"),
        (("mlingreedy(rank=3",), "must be written NAME or NAME"),
        (("mlingreedy(**{})",), "must be written NAME or NAME"),
        (("mlingreedy(rank=3)(rank=4)",), "must be written NAME or NAME"),
        (("mlingreedy(rank=1 + x)",), "the value of rank must be a number, a word, or another literal"),
        (("mlingreedy(rank=__import__('os'))",), "the value of rank must be"),
        (("e2tc(subspace=spectra)",), "subspace of e2tc must be a known name. Got 'spectra'. Did you mean"),
        (("relearn(rank=2)",), "rank of relearn must come with estimator=low-rank. Got 2."),
        (("arm:3",), "a policy's name must not begin with arm:, which is reserved. Got 'arm:3'."),
        ({"arm:3": "naive"}, "must not begin with arm:"),
        ({"naive": "random"}, "the name of a policy must not be that of another of posse's. Got 'naive'."),
        ({"mlingreedy(rank=2)": Random()}, "must not be that of another"),
        ({3: "naive"}, "the name of a policy must be a text. Got 3."),
        (
            {"x": 3},
            "the policy x must be a text, a policy, or a function of the problem that makes one. Got 3.",
        ),
        (("strangers:number",), "the policy strangers:number must be a text, a policy, or a function"),
        ((alone,), "others need a name, in a mapping. Got <function alone"),
        ((Plain(),), "others need a name, in a mapping. Got <strangers.Plain object"),
        (
            ("stranger:x",),
            "the module stranger must be importable. Got 'stranger:x', but there is no such module",
        ),
        (("strangers:",), "must be written MODULE:NAME, as in mine:policy. Got 'strangers:'."),
        (
            ("strangers:alon",),
            "the name after strangers: must be a known name. Got 'alon'. Did you mean 'alone'?",
        ),
    ],
)
def test_what_cannot_be_a_policy_is_refused_in_a_sentence(policies: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        only(policies)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            "strangers:Failing",
            "the policy strangers:Failing fails before the first round: ZeroDivisionError: no",
        ),
        ("strangers:Needy", "the policy strangers:Needy cannot be made: TypeError: .*needed"),
        (
            "strangers:nothing",
            "must be a policy, or make one: an object with .* Got None, without statistics,",
        ),
        ("mlingreedy(rank=two)", "`rank` of LowRank must be an integer of at least 1. Got 'two'."),
        ("independent-greedy(schedule=often)", "schedule must be geometric, epochs, or a number of rounds"),
        ("e2tc(exponent=1)", "E2TC is made for ellipsoids, and the problem gaussian has finite action sets."),
    ],
)
def test_what_cannot_be_played_is_refused_before_it_is(policy: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play_seeds(only((policy,)), seeds=1)


def test_a_problem_is_an_object_a_function_or_found_by_its_module() -> None:
    policies = ("strangers:committing", "shared-greedy")
    fixed = only(policies, problem=strangers.stores, cells=({},))
    assert finals(fixed) == finals(replace(fixed, problem="strangers:stores"))
    by_hand = simulate(strangers.stores, strangers.committing, horizon=60, seed=3)
    assert finals(fixed, 3)["strangers:committing"] == by_hand.regret_per_task[-1]
    cell = {"n_tasks": 3, "in_stock": 0.5}
    drawn = only(policies, problem=Stores.draw, cells=(cell,))
    assert finals(drawn, 2) == finals(replace(drawn, problem="strangers:Stores.draw"), 2)
    problem = drawn.draw(cell, 2)
    assert (problem.n_tasks, problem.dim) == (3, 4)
    assert only(policies, problem=Stores.draw, cells=({},)).draw({}, 0).n_tasks == 50
    needing = only(policies, problem=strangers.needing, cells=({"n_stores": 2},))
    assert needing.draw(needing.cells[0], 0).n_tasks == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"problem": "gausian"}, "`problem` of Experiment must be a known name. Got 'gausian'. Did you mean"),
        ({"problem": "stranger:x"}, "the module stranger must be importable"),
        (
            {"problem": "strangers:number"},
            "the problem strangers:number must be a problem, or a function of a",
        ),
        (
            {"problem": alone},
            "the problem alone must be a problem, or a function of a seed. Got <function alone",
        ),
        ({"problem": Stores}, "the problem Stores must be a problem, or a function of a seed. Got <class"),
        ({"problem": strangers.needing}, "a cell must say n_stores: problem needing has no default for it."),
        ({"problem": Stores.draw, "cells": ({"in_stok": 1},)}, "Got 'in_stok'. Did you mean 'in_stock'"),
        ({"problem": strangers.failing}, "the problem failing cannot be drawn: KeyError: 'shelf'"),
        ({"problem": strangers.drawing_nothing}, "must draw a problem. Got None, without n_tasks,"),
        (
            {"problem": strangers.stores, "policies": ("mlingreedy",)},
            "rank of mlingreedy must be told, as in",
        ),
    ],
)
def test_what_cannot_be_a_problem_is_refused_in_a_sentence(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play_seeds(only(**{"policies": ("random",), "cells": ({},), **fields}), seeds=1)


class Moody:
    """An object that is no dataclass, and remembers what was asked of it."""

    def __init__(self, number: int) -> None:
        self.number = number

    @cached_property
    def double(self) -> int:
        """Twice the number."""
        return 2 * self.number


def exploring(rounds: int) -> Any:
    return lambda problem: Committing(explore=rounds)


def test_descriptions_are_json_and_tell_values_apart() -> None:
    array = np.arange(3.0)
    values: list[Any] = [
        *(
            None,
            True,
            3,
            2.5,
            float("nan"),
            "word",
            (1, 2),
            {"a": array},
            array,
            array[::-1],
            np.float32(0.5),
        ),
        *(MLinGreedy(rank=2), MLinGreedy(rank=3), Committing(explore=2), Plain(explore=2), Anxious()),
        *(Anxious(weights=array + 1), strangers.stores, alone, Stores, Stores.draw, strangers.stores.draw),
        *(Moody(1), Moody(2), Path("a"), Path("b"), {1, 2}, {1, 3}, b"a", b"b", 1j, 2j, range(2), range(3)),
        *(np.random.default_rng(1), np.random.default_rng(2), [], {}),
        *(strangers.stores.noise, partial(exploring, 3), partial(exploring, 4), len, np.add),
        *map(exploring, (1, 2)),
        *(lambda problem: 1, lambda problem: 2),
    ]
    texts = [json.dumps(describe(value)) for value in values]
    assert len(set(texts)) == len(values) - 1  # a method of a class is that of its objects
    assert [json.dumps(describe(value)) for value in values] == texts
    assert describe(Committing(explore=2)) == {"class": "strangers:Committing", "fields": {"explore": 2}}
    assert describe(alone)["function"] == "strangers:alone"
    for one, other in (  # functions that differ in a constant, in a tuple of them, in a function inside
        (lambda: 3, lambda: 4),
        (lambda: At((10, 30)), lambda: At((10, 50))),
        (lambda: (lambda: 3)(), lambda: (lambda: 4)()),
        (float("inf"), "inf"),
        ({1: "a", "1": "b"}, {"1": "b"}),
    ):
        assert describe(one) != describe(other)
    policy = SharedGreedy(schedule=At((3, 9)), memory=0.9)
    assert decode(describe(policy), {}) == policy  # as a file has it
    moody = Moody(3)
    before = describe(moody)
    assert moody.double == 6
    assert describe(moody) == before == {"class": f"{Moody.__module__}:Moody", "state": {"number": 3}}
    assert describe(Stores.draw)["function"] == "strangers:Stores.draw"
    assert describe(array.reshape(1, 3))["shape"] == [1, 3]


def test_a_folder_remembers_what_its_policies_and_problems_were(tmp_path: Path) -> None:
    cell = {"n_tasks": 3}
    study = only({"mine": Committing(), "naive": "naive"}, problem=Stores.draw, cells=(cell,))
    run_experiments([study], seeds=1, out=tmp_path)
    parameters = json.loads((tmp_path / "mixed" / "manifest.json").read_text())["parameters"]
    assert parameters["problem"]["function"] == "strangers:Stores.draw"
    mine = {"name": "mine", "policy": {"class": "strangers:Committing", "fields": {"explore": 20}}}
    assert parameters["policies"] == [mine, "naive"]
    run_experiments(
        [replace(study, policies={"mine": Committing(), "naive": "naive"})], seeds=1, out=tmp_path
    )
    for other in (
        replace(study, policies={"mine": Committing(explore=21), "naive": "naive"}),
        replace(study, problem=strangers.needing, cells=({"n_stores": 3},)),
    ):
        with pytest.raises(GridError, match=r"other parameters: (policies|problem|cells) was"):
            run_experiments([other], seeds=1, out=tmp_path)


def test_names_alone_are_remembered_as_they_always_were() -> None:
    named = only(("naive", "mlingreedy(rank=1)"))
    assert named.parameters() == {
        "name": "mixed",
        "problem": "gaussian",
        "cells": [CELL],
        "policies": ["naive", "mlingreedy(rank=1)"],
        "horizon": 60,
        "options": {},
        "path": "auto",
        "default_options": [{"rank": 2}],
    }


def test_warnings_of_values_that_equal_nothing_are_kept(tmp_path: Path) -> None:
    study = only((Anxious(),))
    run_experiments([study], seeds=2, out=tmp_path, workers=Workers(jobs=2))
    warned = json.loads((tmp_path / "mixed" / "manifest.json").read_text())["warnings"]
    assert len(warned) == 2
    assert all("a stranger warns" in messages for messages in warned.values())


def test_well_known_forms_keep_their_labels_and_others_get_one() -> None:
    assert label_of("mlingreedy(rank=5)") == label_of("mlingreedy( rank = 5 )") == "MLinGreedy, k = 5"
    assert label_of("e2tc(exponent=0.5)") == "E2TC, c = 0.5"
    assert label_of("e2tc") == "E2TC, c = 1.5"
    assert label_of("mlingreedy(rank=7)") == "MLinGreedy, k = 7"
    assert label_of("mlingreedy(rank=7, penalty=0.5)") == "MLinGreedy, k = 7, ridge = 0.5"
    assert style_of("mlingreedy(rank=7)") != style_of("mlingreedy(rank=8)")
    assert family_of("mlingreedy(rank=7)") == "the paper"
    assert look_of("mlingreedy(rank=7)").summary.endswith("the last one's data; k = 7")
    for stranger in ("mine:policy", "a name", "mlingreedy(rnk=3)"):
        assert (label_of(stranger), family_of(stranger)) == (stranger, "others")
        assert style_of(stranger) == fallback_style(stranger)
    order = ["mlingreedy", "mlingreedy(rank=1)", "mlingreedy(rank=5)", "mlingreedy(rank=7)", "naive"]
    order += ["e2tc(exponent=0.5)", "e2tc(exponent=1)", "e2tc", "e2tc(exponent=2)", "mine:policy"]
    assert in_order(reversed(order)) == order


def test_every_parameter_of_every_policy_is_explained_and_used() -> None:
    for name, policy in POLICIES.items():
        for key, parameter in policy.parameters.items():
            assert parameter.help.endswith("."), (name, key)
            assert (parameter.default is None) == bool(parameter.option), (name, key)
        for look in policy.looks:
            typed = ", ".join(f"{key}={value}" for key, value in look.parameters.items())
            assert find_policy(f"{name}({typed})") == (policy, look.parameters)


def stranger_wins(table: pl.DataFrame) -> Claim:
    """Decide whether the stranger's policy beats random play."""
    regrets = final_regrets(table)
    evidence = simultaneous({"saved": (regrets["random"] - regrets["strangers:committing"]).to_numpy()})
    return signed_claim(
        evidence,
        1,
        statement="Strangers learn.",
        source="posse",
        measure="regret saved",
        reading=extremes("The stranger saves", evidence),
    )


def test_a_stranger_is_drawn_and_reported_with_paired_intervals(tmp_path: Path) -> None:
    cells = tuple({"n_tasks": n_tasks, "n_promotions": 8} for n_tasks in (4, 8))
    policies = {
        **{name: name for name in ("strangers:committing", "random")},
        "mine": Committing(explore=5),
    }
    study = Experiment(name="shop", problem=Stores.draw, cells=cells, policies=policies, horizon=150)
    figure = Figure(
        title="Stores",
        study=study,
        claims=(stranger_wins,),
        charts=lambda table: (regret_by_tasks(table, "Stores"), regret_by_round(table, "Stores")),
        setting={},
        remark="Somebody else's.",
        columns={"n_tasks": "T"},
        command=("shop",),
    )
    report = reproduce([figure], seeds=4, out=tmp_path, known=())
    (claim,) = report.claims["shop"]
    assert claim.verdict == "holds"
    assert claim.evidence[0].sign == 1
    page = report.path.read_text(encoding="utf-8")
    assert "not one of posse&#39;s" in page or "not one of posse's" in page
    for chart in figure.charts(pl.read_parquet(tmp_path / "shop" / "results.parquet")):
        (panel,) = chart.panels
        found = {series.label: series.style for series in panel.series}
        assert list(found) == ["Random", "mine", "strangers:committing"]
        assert found["mine"] == fallback_style("mine")
        assert all(low is not None for series in panel.series for low in series.low or ())
    alone_in_a_cell = replace(study, problem=strangers.stores, cells=({},))
    table = play_seeds(alone_in_a_cell, seeds=3)
    one = replace(
        figure, study=alone_in_a_cell, columns={}, charts=lambda table: (regret_by_round(table, ""),)
    )
    written = write_report([one], {"shop": table}, tmp_path / "one", minutes=0.0)
    assert "Regret per task in every cell" in written.path.read_text(encoding="utf-8")


def small(name: str) -> Scenario:
    experiment = SCENARIOS[name].experiment
    cell = {**experiment.cells[0], "dim": 5, "n_tasks": 4}
    return replace(SCENARIOS[name], experiment=replace(experiment, cells=(cell,), horizon=50))


def test_a_comparison_takes_further_policies(tmp_path: Path) -> None:
    few = small("few-tasks")
    further = {"strangers:committing": "strangers:committing", "mine": Committing(explore=5)}
    suite = compare([few], seeds=2, out=tmp_path, policies=further, known=(few, small("trap")))
    rows = {row["policy"]: row for row in suite.data.to_dicts()}
    assert set(rows) == {*few.experiment.names, *further}
    assert rows["mine"]["to_independent_low"] < rows["mine"]["to_independent"]
    assert suite.scenarios[0].further == tuple(further)
    page = suite.path.read_text(encoding="utf-8")
    assert "posse compare few-tasks --policy strangers:committing --seeds 2" in page
    assert "# in a program, which adds the policy mine" in page
    assert page.count("<th>mine</th>") == 1
    played = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/runs/*.parquet")}
    assert len(played) == 6
    without = compare([few], seeds=2, out=tmp_path, known=(few,))
    assert set(without.data["policy"]) == set(few.experiment.names)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/runs/*.parquet")} == played
    with pytest.raises(GridError, match="holds results of other parameters: policies was"):
        compare([few], seeds=2, out=tmp_path, policies={"mine": Committing(explore=6)}, known=())
    with pytest.raises(ValueError, match="PEGE is made for ellipsoids"):
        compare([few], seeds=2, out=tmp_path / "b", policies=("pege",), known=())


def test_the_current_folder_is_on_the_path_only_if_a_module_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    import_from_here("naive", "mlingreedy(rank=5)")
    assert str(tmp_path) not in sys.path
    import_from_here("naive", "own:policy")
    import_from_here("own:policy")
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[0] == str(tmp_path)


def test_names_of_policies_are_those_that_were_typed() -> None:
    assert list(name_policies(["mlingreedy( rank=5 )"])) == ["mlingreedy( rank=5 )"]
    assert list(finals(only(("mlingreedy( rank=2 )",)))) == ["mlingreedy( rank=2 )"]


def posse(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", "from posse.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a module of somebody's own, which is on no path."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "own.py").write_text((TESTS / "strangers.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "broken.py").write_text("policy = 1 / 0\n", encoding="utf-8")
    return folder


SMALL = ("--rounds", "60", "--seeds", "2", "--jobs", "2")


@pytest.mark.slow
def test_the_command_plays_what_is_in_its_folder(folder: Path) -> None:
    policies = ("own:committing", "own:alone", "own:Committing", "mlingreedy( rank = 1 )", "naive")
    typed = [word for policy in policies for word in ("--policy", policy)]
    done = posse(
        folder, "simulate", "--tasks", "4", "--dim", "5", *SMALL, *typed, "--json", "--plot", "a.svg"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert {row["policy"] for row in answer["rows"]} == set(policies)
    assert all(row["ci_low"] < row["regret_per_task"] for row in answer["rows"])
    assert "own:committing" in (folder / "a.svg").read_text(encoding="utf-8")
    done = posse(
        folder,
        "simulate",
        "--problem",
        "own:Stores.draw",
        "--tasks",
        "4",
        "--set",
        "in_stock=0.5",
        *SMALL,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    expected = {"problem": "own:Stores.draw", "tasks": 4, "dim": 4, "in_stock": 0.5, "n_promotions": 6}
    assert expected.items() <= settings.items()
    done = posse(folder, "simulate", "--problem", "own:stores", "--policy", "own:committing", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "own:committing" in done.stdout
    compared = ("few-tasks", "--policy", "own:committing", "--seeds", "1", "--jobs", "2", "--out", "out")
    done = posse(folder, "compare", *compared)
    assert done.returncode == 0, done.stderr
    assert "own:committing" in done.stdout
    assert "own:committing" in (folder / "out" / "comparison.csv").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--policy", "owm:x"),
            "the module owm must be importable. Got 'owm:x', but there is no such module.",
        ),
        (("--policy", "broken:policy"), "Got 'broken:policy', but ZeroDivisionError: division by zero."),
        (("--policy", "own:commiting"), "Did you mean 'committing'?"),
        (
            ("--policy", "own:number"),
            "must be a text, a policy, or a function of the problem that makes one.",
        ),
        (
            ("--policy", "own:Failing"),
            "the policy own:Failing fails before the first round: ZeroDivisionError",
        ),
        (("--policy", "own:Needy"), "the policy own:Needy cannot be made: TypeError"),
        (
            ("--problem", "own:committing"),
            "the problem own:committing must be a problem, or a function of a seed",
        ),
        (
            ("--problem", "own:needing"),
            "--problem own:needing has no default for n_stores: it needs --set n_stores=.... Got none.",
        ),
        (
            ("--problem", "own:Stores.draw", "--rank", "2"),
            "--rank is not an option of --problem own:Stores.draw,",
        ),
        (("--problem", "own:Stores.draw", "--set", "in_stok=1"), "Did you mean 'in_stock'?"),
        (("--problem", "own:Stores.draw", "--set", "in_stock"), "--set must be NAME=VALUE. Got 'in_stock'."),
        (("--set", "x=1"), "--set is for parameters without an option: gaussian has none. Got 'x=1'."),
        (
            ("--policy", "own:committing", "--penalty", "1"),
            "--penalty is for mlingreedy, naive, commit, relearn,",
        ),
    ],
)
def test_the_command_says_what_is_wrong(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = posse(folder, "simulate", *SMALL, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_policy_says_where_it_is(jobs: int, tmp_path: Path) -> None:
    mistaken = only({"mine": strangers.Careless(), "naive": "naive"})
    line = next(
        number
        for number, text in enumerate(Path(strangers.__file__).read_text().splitlines(), 1)
        if 'state["chances"]' in text
    )
    where = rf"\w+Error in strangers.py, line {line}, in select: "
    with pytest.raises(PosseError, match=where):
        play_seeds(mistaken, seeds=2, workers=Workers(jobs=jobs))
    with pytest.raises(GridError, match=where):
        run_experiments([mistaken], seeds=1, out=tmp_path, workers=Workers(jobs=jobs))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["n_promotions=many"], "--set n_promotions must be a number, as its default 6. Got 'many'."),
        (
            ["n_promotions=3", "n_promotions=4"],
            "--set must tell n_promotions once. Got 'n_promotions=4' as well.",
        ),
        (["n_tasks=3"], "n_tasks must be set by --tasks. Got --set 'n_tasks=3'."),
    ],
)
def test_what_is_set_is_of_the_kind_of_its_default(texts: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        assigned_parameters("strangers:Stores.draw", texts)
    assert alike("loud", "false", True) is False
    with pytest.raises(ValueError, match=r"--set loud must be True or False, as its default True. Got 'no'."):
        alike("loud", "no", True)


def test_small_slips_are_answered() -> None:
    for text, message in (
        ("strangers.py:alone", "there is no such module: write it without .py"),
        ("strangers:alone(width=3)", "Parameters are for posse's own."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            only((text,))
    with pytest.raises(ValueError, match=r"rank must be told once. Got 'mlingreedy\(rank=2, rank=3\)'"):
        only(("mlingreedy(rank=2, rank=3)",))
    for wrong in ("naive(penalty={[1]:2})", "naive(penalty=" + "-" * 9999 + "1)"):
        with pytest.raises(ValueError, match=r"must be (a number|written NAME)"):
            only((wrong,))
