"""The command, as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import posse
from posse.cli import app
from posse.cli.console import in_options
from posse.lab.engines import Workers
from posse.lab.grid import Progress
from posse.paper.figure import Figure
from posse.paper.reproduce import reproduce
from tables import FIGURES, experiment_of

SMALL = ["--dim", "5", "--rank", "2", "--tasks", "4", "--arms", "3", "--rounds", "60", "--jobs", "1"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})


def test_json_is_one_object_and_nothing_else() -> None:
    result = run("simulate", *SMALL, "--policy", "naive", "--policy", "mlingreedy", "--seeds", "3", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert {row["policy"] for row in answer["rows"]} == {"naive", "mlingreedy"}
    for row in answer["rows"]:
        assert set(row) == {"policy", "regret_per_task", "ci_low", "ci_high", "seconds"}
        assert row["ci_low"] < row["regret_per_task"] < row["ci_high"]
        assert row["seconds"] > 0
    expected = {"dim": 5, "rank": 2, "tasks": 4, "arms": 3, "rounds": 60, "policy_rank": 2, "seeds": 3}
    assert expected.items() <= answer["settings"].items()


def test_one_seed_has_no_interval() -> None:
    (row,) = json.loads(run("simulate", *SMALL, "--policy", "random", "--seeds", "1", "--json").stdout)[
        "rows"
    ]
    assert row["ci_low"] is None
    assert "needs two seeds" in run("simulate", *SMALL, "--policy", "random", "--seeds", "1").stdout


def test_all_policies_by_default_and_a_picture(tmp_path: Path) -> None:
    plot = tmp_path / "regret.png"
    result = run("simulate", *SMALL, "--seeds", "2", "--plot", str(plot))
    assert result.exit_code == 0, result.output
    for name in ("mlingreedy", "naive", "independent-greedy", "oracle-greedy", "random"):
        assert name in result.stdout
    assert plot.stat().st_size > 10_000


def test_policy_rank_is_told_to_the_policies_alone() -> None:
    def regret(*extra: str) -> float:
        answer = json.loads(
            run("simulate", *SMALL, "--policy", "mlingreedy", "--seeds", "2", "--json", *extra).stdout
        )
        return float(answer["rows"][0]["regret_per_task"])

    assert regret("--policy-rank", "2") == regret()
    assert regret("--policy-rank", "1") != regret()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--policy", "mlingredy"],
            "--policy must be a known name. Got 'mlingredy'. Did you mean 'mlingreedy'? Known are",
        ),
        (
            ["--problem", "gausian"],
            "--problem must be a known name. Got 'gausian'. Did you mean 'gaussian'? Known are gaussian,",
        ),
        (
            ["--rank", "9"],
            "--rank must be an integer in [1, min(dim=5, tasks=4)=4]. Got 9.",
        ),
        (
            ["--policy-rank", "5"],
            "--policy-rank must be an integer in [0, min(dim=5, tasks=4)=4]. Got 5.",
        ),
        (["--policy-rank", "0"], "--policy-rank must be an integer of at least 1. Got 0."),
        (["--policy-rank", "two"], "--policy-rank must be auto or a whole number. Got 'two'."),
        (["--rounds", "0"], "--rounds must be an integer of at least 1. Got 0."),
        (["--tasks", "0"], "--tasks must be an integer in [1, 1000000000]. Got 0."),
        (["--seeds", "0"], "--seeds must be an integer of at least 1. Got 0."),
        (
            ["--arms", "100000000000000000000"],
            "--arms must be an integer in [1, 1000000000].",
        ),
        (["--condition", "2"], "--condition is not an option of --problem gaussian, which has --dim, --rank"),
        (
            ["--problem", "ellipsoid"],
            "--arms is not an option of --problem ellipsoid, which has --dim, --rank",
        ),
        (
            ["--policy", "pege"],
            "PEGE is made for ellipsoids, and the problem gaussian has finite action sets. Got the policy",
        ),
        (["--policy", "naive", "--explore", "9"], "--explore is for commit, relearn, not played here."),
        (
            ["--policy", "shared-greedy", "--penalty", "1"],
            "--penalty is for mlingreedy, naive, commit, relearn,",
        ),
        (["--policy", "naive", "--policy-rank", "1"], "--policy-rank is for shared-greedy, shared-thompson,"),
        (
            ["--policy", "commit", "--explore", "60"],
            "--explore must be an integer in [1, --rounds - 1=59].",
        ),
        (
            ["--policy", "mlingreedy(rank=10)"],
            "`rank` of LowRank must be an integer in [1, min(dim=5, tasks=4)=4].",
        ),
        (
            ["--policy", "mlingreedy(rank=2)", "--policy-rank", "1"],
            "--policy-rank is for shared-greedy, shared-thompson, shared-ucb, shared, mlingreedy, e2tc",
        ),
        (
            ["--policy", "mlingreedy(rnk=2)"],
            "parameter of mlingreedy must be a known name. Got 'rnk'. Did you mean 'rank'? Known are rank,",
        ),
        (["--policy", "arm:1"], "a policy's name must not begin with arm:, which is reserved. Got 'arm:1'."),
        (["--policy", "relearn(rank=2)"], "rank of relearn must come with estimator=low-rank. Got 2."),
        (["--jobs", "0"], "--jobs must be an integer of at least 1. Got 0."),
        (
            ["--engine", "dusk"],
            "--engine must be a known name. Got 'dusk'. Did you mean 'dask'? Known are local, dask.",
        ),
        (
            ["--address", "localhost:8786"],
            "--address is for the engine dask, which is not used. Got 'localhost:8786'.",
        ),
        (
            ["--engine", "dask", "--address", "localhost"],
            "--address must be HOST:PORT, such as 10.0.0.5:8786.",
        ),
        (["--noise", "cauchy"], "--noise must be one of gaussian, uniform, rademacher. Got 'cauchy'."),
        (["--plot", "picture.txt"], "--plot must end in one of .png, .svg, .pdf. Got 'picture.txt'."),
        (["--plot", "no-such-folder/a.png"], "--plot must lie in a folder that exists."),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: list[str], message: str) -> None:
    result = run("simulate", *SMALL, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def regrets(*arguments: str) -> dict[str, float]:
    answer = json.loads(run("simulate", *arguments, "--seeds", "2", "--jobs", "1", "--json").stdout)
    values = [row["regret_per_task"] for row in answer["rows"]]
    assert values == sorted(values)
    return {row["policy"]: row["regret_per_task"] for row in answer["rows"]}


def test_options_reach_the_problem() -> None:
    for option in (["--covariance", "unit"], ["--noise", "rademacher"], ["--arms", "4"], ["--dim", "6"]):
        assert regrets(*SMALL[:-2], "--policy", "naive") != regrets(*SMALL[:-2], *option, "--policy", "naive")


def test_ellipsoids_from_the_command() -> None:
    sphere = ["--problem", "ellipsoid", "--dim", "4", "--rank", "2", "--tasks", "6", "--rounds", "3000"]
    found = regrets(*sphere)
    assert set(found) == {
        "shared-thompson",
        "e2tc",
        "e2tc(subspace=spectral)",
        "pege",
        "oracle-commit",
        "random",
    }
    assert found["oracle-commit"] < found["e2tc(subspace=spectral)"] < found["random"]
    assert regrets(*sphere, "--condition", "9")["random"] > found["random"]
    assert regrets(*sphere, "--exponent", "1", "--policy", "e2tc") == {
        "e2tc": regrets(*sphere, "--policy", "e2tc(exponent=1)")["e2tc(exponent=1)"]
    }
    short = run("simulate", *sphere[:-1], "40", "--policy", "e2tc", "--jobs", "1")
    assert short.exit_code == 2
    assert "N_1 + N_2 of E2TC must not pass --rounds 40." in short.stderr


@pytest.mark.parametrize(
    ("problem", "option"),
    [
        ("fixed-arms", ["--arms", "4"]),
        ("narrow", ["--directions", "2"]),
        ("late", ["--join", "20"]),
        ("late", ["--share", "0.25"]),
        ("moving", ["--turn", "9"]),
        ("trap", ["--noise", "uniform"]),
    ],
)
def test_hard_problems_from_the_command(problem: str, option: list[str]) -> None:
    small = ["--problem", problem, "--dim", "5", "--tasks", "4", "--rounds", "60"]
    small += ["--join", "30"] if problem == "late" else []
    policies = ["--policy", "independent-greedy"]
    assert regrets(*small, *option, *policies) != regrets(*small, *policies)
    for other in ("gaussian", "ellipsoid"):
        if option[0] not in ("--arms", "--noise"):
            refused = run("simulate", "--problem", other, *option)
            assert refused.exit_code == 2
            assert f"{option[0]} is not an option of --problem {other}" in refused.stderr


def test_short_runs_are_drawn_too(tmp_path: Path) -> None:
    plot = tmp_path / "short.svg"
    short = [*SMALL[:-3], "9", "--jobs", "1"]
    result = run("simulate", *short, "--policy", "naive", "--seeds", "2", "--plot", str(plot))
    assert result.exit_code == 0, result.output
    assert plot.exists()
    assert "Wrote" in result.stderr
    (tmp_path / "folder.svg").mkdir()
    folder = run("simulate", *short, "--plot", str(tmp_path / "folder.svg"))
    assert folder.exit_code == 2
    assert "--plot must be a file. Got the folder" in folder.stderr


def test_late_tasks_must_join_in_time() -> None:
    late = run("simulate", "--problem", "late", "--rounds", "60", "--tasks", "4", "--dim", "5")
    assert late.exit_code == 2
    assert "--join must be below the number of rounds, 60, or nobody joins. Got 1000." in late.stderr


def test_settings_are_said_of_policies_that_heed_them() -> None:
    images = ("simulate", "--problem", "digits", "--classes", "3", "--rounds", "30", "--seeds", "1")
    shown = run(*images, "--policy", "independent-greedy", "--jobs", "1").stdout
    assert "scaling norm" in shown
    for setting in ("prior_rank", "policy_rank", "penalty"):
        assert setting not in shown
    everything = run(*SMALL_SIMULATION, "--policy", "naive", "--policy", "shared-greedy").stdout
    assert "prior_rank auto" in everything
    assert "policy_rank" not in everything


def test_a_message_names_options_that_the_command_has() -> None:
    message = (
        "`n_arms` of FixedArms must be at least 1, and `depth` of Sea, too: min(n_tasks=4, dim=2). Got 0."
    )
    expected = "--arms must be at least 1, and `depth` of Sea, too: min(tasks=4, dim=2). Got 0."
    assert in_options(message, ["--arms", "--tasks"]) == expected


SMALL_SIMULATION = ("simulate", *SMALL, "--seeds", "1")


def small(name: str) -> Figure:
    cells = tuple({"dim": 5, "rank": k, "n_tasks": T, "n_arms": 3} for k in (1, 2) for T in (3, 5))
    return replace(FIGURES[name], study=replace(experiment_of(FIGURES[name]), cells=cells, horizon=50))


def test_reproducing_writes_everything_it_promises(tmp_path: Path) -> None:
    seen: list[Progress] = []
    report = reproduce([small("fig2")], seeds=2, out=tmp_path, known=(), on_progress=seen.append)
    assert report.path == tmp_path / "report.html"
    assert {p.name for p in tmp_path.iterdir()} == {"fig2", "claims.json", "report.html"}
    assert {p.name for p in (tmp_path / "fig2").iterdir()} == {
        "runs", "results.parquet", "manifest.json",
        "regret-by-tasks.png", "regret-by-tasks.svg", "regret-by-round.png", "regret-by-round.svg",
    }  # fmt: skip
    assert pl.read_parquet(tmp_path / "fig2" / "results.parquet")["seed"].n_unique() == 2
    assert [state.runs for state in seen] == list(range(9))
    assert any("advantage of MLinGreedy" in claim.statement for claim in report.claims["fig2"])


@pytest.mark.slow
def test_the_page_keeps_the_figures_of_earlier_calls(tmp_path: Path) -> None:
    first, second = small("fig1"), small("fig2")
    reproduce([second], seeds=3, out=tmp_path, known=(first, second))
    both = reproduce([first], seeds=2, out=tmp_path, workers=Workers(jobs=2), known=(first, second))
    assert list(json.loads((tmp_path / "claims.json").read_text())) == list(both.claims) == ["fig1", "fig2"]
    page = both.path.read_text()
    assert "posse reproduce fig1 --seeds 2" in page
    assert "posse reproduce fig2 --seeds 3" in page
    (tmp_path / "fig2" / "manifest.json").write_text("{}")
    assert list(reproduce([first], seeds=2, out=tmp_path, known=(first, second)).claims) == ["fig1"]


@pytest.mark.slow
def test_the_command_separates_the_papers_claims_from_our_questions(tmp_path: Path) -> None:
    result = run("reproduce", "fig6", "--seeds", "1", "--jobs", "2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    papers, ours = map(result.stdout.index, ("Claims of the paper", "Questions of ours"))
    assert papers < result.stdout.index("c = 1.5 the fall flattens") < ours
    assert ours < result.stdout.index("less regret with the tasks' own")
    assert "Of 4 claims of the paper 0 hold, 0 fail, 4 are undecided." in result.stdout
    assert "Of 1 question of ours 0 hold, 0 fail, 1 is undecided." in result.stdout
    assert result.stdout.count("in the stored run of 20 seeds: ") == 5
    assert str(tmp_path / "report.html") in result.stdout
    assert "fig6, 1 seed: 9/9 runs, 100% of the work" in result.stderr


def test_reproduce_names_what_is_wrong(tmp_path: Path) -> None:
    unknown = run("reproduce", "fig11", "--out", str(tmp_path / "a"))
    assert unknown.exit_code == 2
    assert "figure must be a known name. Got 'fig11'. Did you mean 'fig1'? Known are fig1," in unknown.stderr
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    blocked = run("reproduce", "fig1", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path / "file"))
    assert blocked.exit_code == 2
    assert f"--out must be a folder. Got the file {tmp_path / 'file'}." in blocked.stderr
    (tmp_path / "b" / "fig1").mkdir(parents=True)
    for number, reason in ((1, "holds results of format 1"), (2, "holds results of other parameters")):
        manifest = {"format": number, "parameters": {"horizon": 7}}
        (tmp_path / "b" / "fig1" / "manifest.json").write_text(json.dumps(manifest))
        other = run("reproduce", "fig1", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path / "b"))
        assert other.exit_code == 1
        assert reason in other.stderr


@pytest.mark.slow
def test_ctrl_c_says_that_work_is_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from posse.cli import main; main()"]
    command += ["reproduce", "fig2", "--seeds", "1", "--jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(600):
        if (tmp_path / "fig2" / "manifest.json").exists():
            break
        time.sleep(0.1)
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in stderr


def test_list_and_version_and_help_teach() -> None:
    listed = run("list").stdout
    for name in (
        "mlingreedy",
        "naive",
        "independent-greedy",
        "oracle-greedy",
        "random",
        "gaussian",
        "fixed-arms",
        "narrow",
        "trap",
        "late",
        "moving",
        "fig1",
        "fig2",
        "high-rank-many",
    ):
        assert name in listed
    for words in ("mlingreedy(rank, penalty)", "(default: what --policy-rank says)", "(default: geometric)"):
        assert words in " ".join(listed.split())
    assert run("--version").stdout == f"posse {posse.__version__}\n"
    assert "same command goes on" in run("reproduce", "--help").stdout
    taught = run("simulate", "--help").stdout
    assert "For example: posse simulate" in taught
    for panel in ("The problem", "The policies", "How it runs", "What comes out"):
        assert panel in taught
    narrow = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert "20 seeds per setting, or 5" in run("reproduce", "--help").stdout
    unknown = run("simulat")
    assert unknown.exit_code == 2
    assert "simulate" in unknown.stderr


def test_an_exponent_without_its_policy_is_refused() -> None:
    result = run("simulate", *SMALL, "--exponent", "1.2")
    assert result.exit_code == 2
    assert "--exponent is for e2tc, not played here. Got 1.2." in result.stderr


def test_the_path_is_chosen_and_told() -> None:
    small = ("simulate", "--tasks", "3", "--dim", "4", "--rounds", "60", "--seeds", "1", "--json")
    regrets = {}
    for path, used in (("auto", "exact"), ("exact", "exact"), ("contexts", "contexts")):
        found = json.loads(run(*small, "--policy", "naive", "--path", path).stdout)
        assert found["settings"]["path"] == used
        regrets[path] = found["rows"][0]["regret_per_task"]
    assert regrets["auto"] == regrets["exact"] != regrets["contexts"]
    refused = run(*small, "--policy", "shared-thompson", "--path", "exact")
    assert refused.exit_code == 2
    assert "unless a GaussianProblem is played greedily" in refused.stderr
    assert "--path must be one of auto, exact, contexts. Got 'fast'" in run(*small, "--path", "fast").stderr
