"""Many runs: resumable, the same on any number of processes, and honest about what failed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import posse
from posse import GaussianProblem, NaiveGreedy, Random, simulate
from posse.lab.engines import GridError, Workers
from posse.lab.experiment import KEPT_SHARES, Experiment
from posse.lab.grid import play_seeds, run_experiments
from posse.lab.results import final_rounds
from posse.lab.store import earlier_results
from posse.lab.study import Run
from tables import FIGURES, experiment_of

SMALL = Experiment(
    name="small",
    problem="gaussian",
    cells=tuple({"dim": 5, "rank": 2, "n_tasks": T, "n_arms": 3} for T in (3, 4)),
    policies=("mlingreedy", "naive"),
    horizon=60,
)
REGRET = ["dim", "rank", "n_tasks", "n_arms", "horizon", "seed", "policy", "round", "regret_per_task"]


def run_files(out: Path) -> dict[str, float]:
    return {p.name: p.stat().st_mtime_ns for p in (out / "small" / "runs").glob("*.parquet")}


def test_tables_are_equal_to_the_last_bit_however_they_are_made(tmp_path: Path) -> None:
    alone = run_experiments([SMALL], seeds=3, out=tmp_path / "a", workers=Workers(jobs=1))["small"]
    together = run_experiments([SMALL], seeds=3, out=tmp_path / "b", workers=Workers(jobs=2))["small"]
    assert alone.select(REGRET).equals(together.select(REGRET))
    assert alone.select(REGRET).equals(play_seeds(SMALL, seeds=3, workers=Workers(jobs=2)).select(REGRET))
    assert pl.read_parquet(tmp_path / "a" / "small" / "results.parquet").equals(alone)
    assert final_rounds(alone).height == 2 * 3 * 2


def test_finished_runs_are_never_run_again_and_more_seeds_add(tmp_path: Path) -> None:
    run_experiments([SMALL], seeds=2, out=tmp_path)
    before = run_files(tmp_path)
    run_experiments([SMALL], seeds=2, out=tmp_path)
    assert run_files(tmp_path) == before
    run_experiments([SMALL], seeds=3, out=tmp_path)
    after = run_files(tmp_path)
    assert len(after) == 6
    assert {name: after[name] for name in before} == before
    fewer = run_experiments([SMALL], seeds=1, out=tmp_path)["small"]
    assert fewer["seed"].unique().to_list() == [0]
    assert run_files(tmp_path) == after


def test_progress_counts_what_was_done_before(tmp_path: Path) -> None:
    run_experiments([SMALL], seeds=1, out=tmp_path)
    seen: list[tuple[int, int, float]] = []
    run_experiments(
        [SMALL],
        seeds=2,
        out=tmp_path,
        on_progress=lambda p: seen.append((p.runs, p.total_runs, p.work / p.total_work)),
    )
    assert [(runs, total) for runs, total, _ in seen] == [(2, 4), (3, 4), (4, 4)]
    assert seen[0][2] == pytest.approx(0.5)
    assert seen[-1][2] == 1.0


@pytest.mark.slow
def test_killing_the_command_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from posse.lab.engines import Workers
        from posse.lab.experiment import Experiment
        from posse.lab.grid import run_experiments
        cells = tuple({"dim": 6, "rank": 2, "n_tasks": T, "n_arms": 3} for T in (6, 7))
        slow = Experiment(name="small", problem="gaussian", cells=cells, policies=("naive",), horizon=4000)
        run_experiments([slow], seeds=30, out=Path(sys.argv[1]), workers=Workers(jobs=2))
        """
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    first = subprocess.Popen(command, start_new_session=True)
    for _ in range(600):
        if len(run_files(tmp_path)) >= 4:
            break
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    kept = run_files(tmp_path)
    assert 4 <= len(kept) < 60
    for name in kept:
        assert pl.read_parquet(tmp_path / "small" / "runs" / name).height > 0
    subprocess.run(command, check=True)
    after = run_files(tmp_path)
    assert len(after) == 60
    assert {name: after[name] for name in kept} == kept


def test_a_folder_with_other_parameters_is_refused(tmp_path: Path) -> None:
    run_experiments([SMALL], seeds=1, out=tmp_path)
    before = run_files(tmp_path)
    longer = replace(SMALL, horizon=61)
    with pytest.raises(
        GridError, match=r"other parameters: horizon was 60 and is now 61. Choose another --out"
    ):
        run_experiments([longer], seeds=1, out=tmp_path)
    assert run_files(tmp_path) == before


def test_foreign_and_broken_files_are_named(tmp_path: Path) -> None:
    run_experiments([SMALL], seeds=1, out=tmp_path)
    broken = Run(SMALL, SMALL.cells[0], 0).path(tmp_path)
    broken.write_bytes(b"not parquet")
    with pytest.raises(GridError, match=r"seed=0.parquet cannot be read as Parquet. Remove it"):
        run_experiments([SMALL], seeds=1, out=tmp_path)
    broken.unlink()
    run_experiments([SMALL], seeds=1, out=tmp_path)
    manifest = tmp_path / "small" / "manifest.json"
    manifest.write_text("{}")
    for content in (
        "{}",
        "[]",
        '{"parameters": null, "format": 2}',
        "text",
    ):
        manifest.write_text(content)
        with pytest.raises(GridError, match="not a manifest that posse wrote"):
            run_experiments([SMALL], seeds=1, out=tmp_path)
    for number in (1, 99):
        manifest.write_text(f'{{"parameters": {{}}, "format": {number}}}')
        with pytest.raises(
            GridError, match=rf"small holds results of format {number}, and this .* reads format 2. Choose"
        ):
            run_experiments([SMALL], seeds=1, out=tmp_path)
    manifest.unlink()
    with pytest.raises(GridError, match=r"holds runs but no manifest.json"):
        run_experiments([SMALL], seeds=1, out=tmp_path)


def test_a_run_under_another_name_is_named(tmp_path: Path) -> None:
    run_experiments([SMALL], seeds=2, out=tmp_path)
    first, second = (Run(SMALL, SMALL.cells[0], seed).path(tmp_path) for seed in (0, 1))
    second.write_bytes(first.read_bytes())
    with pytest.raises(GridError, match=r"seed=1.parquet holds something else than the run of its name"):
        run_experiments([SMALL], seeds=2, out=tmp_path)
    pl.DataFrame({"x": [1]}).write_parquet(second)
    with pytest.raises(GridError, match=r"seed=1.parquet holds something else"):
        run_experiments([SMALL], seeds=2, out=tmp_path)


def test_seeds_are_independent_problems_and_rounds() -> None:
    table = final_rounds(play_seeds(SMALL, seeds=4))
    assert table.filter(policy="naive")["regret_per_task"].n_unique() == 8
    problems = [SMALL.draw(SMALL.cells[0], seed) for seed in (0, 1)]
    theta = [problem.theta for problem in problems if isinstance(problem, GaussianProblem)]
    assert not np.allclose(theta[0], theta[1])
    fixed = [simulate(problems[0], Random(), horizon=60, seed=seed).regret for seed in (0, 1)]
    assert not np.allclose(fixed[0], fixed[1])
    for seed in (0, 1):
        problem = SMALL.draw(SMALL.cells[0], seed)
        alone = simulate(problem, NaiveGreedy(), horizon=60, seed=seed).regret_per_task[-1]
        found = table.filter(policy="naive", n_tasks=3, seed=seed)["regret_per_task"].item()
        assert found == alone


@dataclass(frozen=True)
class Careful:
    """A study of its own kind: it warns in some seeds, and notes what it plays."""

    name: str = "careful"
    cells: tuple[dict[str, int], ...] = ({"size": 1}, {"size": 5})
    warns_below: int = 1
    notes: Path | None = None

    measured = ("value",)
    images = None

    def parameters(self) -> dict[str, Any]:
        return {"cells": [*self.cells]}

    def columns(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        return dict(cell)

    def work(self, cell: Mapping[str, Any]) -> int:
        return int(cell["size"])

    def check(self, cell: Mapping[str, Any]) -> None:
        pass

    def play(self, cell: Mapping[str, Any], seed: int) -> pl.DataFrame:
        if seed < self.warns_below:
            warnings.warn("careful", UserWarning, stacklevel=1)
        if self.notes is not None:
            with self.notes.open("a") as file:
                file.write(f"{cell['size']} {seed}\n")
        return pl.DataFrame({"value": [cell["size"] + 0.5 * seed]})


def test_warnings_are_kept_and_versions_recorded(tmp_path: Path) -> None:
    run_experiments([Careful()], seeds=1, out=tmp_path)
    table = run_experiments([Careful()], seeds=2, out=tmp_path)["careful"]
    assert table.rows() == [(1, 0, 1.0), (1, 1, 1.5), (5, 0, 5.0), (5, 1, 5.5)]
    manifest = json.loads((tmp_path / "careful" / "manifest.json").read_text())
    assert manifest["warnings"] == {f"size={size},seed=0": ["careful"] for size in (1, 5)}
    assert manifest["parameters"] == {"cells": [{"size": 1}, {"size": 5}], "posse": posse.__version__}
    assert set(manifest["versions"]) == {"python", "numpy", "scipy"}


def test_large_runs_come_first(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    run_experiments([Careful(warns_below=0, notes=notes)], seeds=2, out=tmp_path)
    assert notes.read_text().splitlines() == ["5 0", "5 1", "1 0", "1 1"]


def test_the_regret_of_every_task_is_kept(tmp_path: Path) -> None:
    table = run_experiments([SMALL], seeds=1, out=tmp_path)["small"]
    kept = table.filter(pl.col("regret_by_task").is_not_null())
    for row in kept.to_dicts():
        assert len(row["regret_by_task"]) == row["n_tasks"]
        assert np.mean(row["regret_by_task"]) == pytest.approx(row["regret_per_task"], rel=1e-6)
    assert final_rounds(table)["regret_by_task"].null_count() == 0
    rounds = kept.filter(policy="naive", n_tasks=3)["round"].to_list()
    everything = np.array(table.filter(policy="naive", n_tasks=3)["round"].to_list())
    assert rounds == sorted({int(everything[everything >= share * 60].min()) for share in KEPT_SHARES})


def test_one_failed_experiment_does_not_hide_another(tmp_path: Path) -> None:
    bad = {"dim": 5, "rank": 9, "n_tasks": 3, "n_arms": 3}
    both = [replace(SMALL, name=name, cells=(*SMALL.cells, bad)) for name in ("first", "second")]
    with pytest.raises(GridError, match=r"2 of 6 runs failed"):
        run_experiments(both, seeds=1, out=tmp_path)
    for name in ("first", "second"):
        assert json.loads((tmp_path / name / "manifest.json").read_text())["failures"]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from posse.lab.engines import Workers
from posse.lab.experiment import Experiment
from posse.lab.grid import run_experiments

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
cell = {"dim": 5, "rank": 2, "n_tasks": 3, "n_arms": 3}
small = Experiment(name="small", problem="gaussian", cells=(cell,), policies=("naive",), horizon=60)
workers = Workers(jobs=int(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # a manifest has room, a run has none
try:
    run_experiments([small], seeds=3, out=Path(sys.argv[1]), workers=workers)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_full_disk_stops_the_grid_and_is_named(jobs: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), jobs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert str(tmp_path / "small" / "runs") in done.stdout, done.stderr
    assert "File too large" in done.stdout
    assert not run_files(tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": ()}, "`cells` of Experiment must be some different entries"),
        ({"cells": (SMALL.cells[0], SMALL.cells[0])}, "`cells` of Experiment must be some different entries"),
        ({"policies": ()}, "`policies` must be some different entries"),
        ({"policies": ("naiv",)}, "Did you mean 'naive'"),
        ({"problem": "gausian"}, "Did you mean 'gaussian'"),
        ({"name": "../x"}, "`name` of Experiment must be an identifier"),
        (
            {"options": {"speed": 1}},
            "option of Experiment must be one of rank, exponent, penalty, explore, prior_rank. Got 'speed'",
        ),
    ],
)
def test_experiments_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def test_a_failing_run_is_reported_and_the_others_are_kept(tmp_path: Path) -> None:
    bad = replace(SMALL, cells=(*SMALL.cells, {"dim": 5, "rank": 9, "n_tasks": 3, "n_arms": 3}))
    with pytest.raises(GridError, match=r"1 of 3 runs failed; .*rank=9.*Got 9"):
        run_experiments([bad], seeds=1, out=tmp_path)
    assert len(run_files(tmp_path)) == 2
    failures = json.loads((tmp_path / "small" / "manifest.json").read_text())["failures"]
    assert list(failures) == ["dim=5,rank=9,n_tasks=3,n_arms=3,seed=0"]


def test_results_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    other, third, fourth = (replace(SMALL, name=name) for name in ("other", "third", "fourth"))
    run_experiments([SMALL, other, third], seeds=1, out=tmp_path)
    (tmp_path / "other" / "manifest.json").write_text('{"format": 1, "parameters": {}}')
    (tmp_path / "third" / "results.parquet").write_bytes(b"not parquet")
    tables, left_out = earlier_results([SMALL, other, third, fourth], tmp_path)
    assert list(tables) == ["small"]
    assert [text.partition(" ")[0] for text in left_out] == ["other", "third"]
    assert "holds results of format 1" in left_out[0]
    assert "results.parquet cannot be read as Parquet" in left_out[1]


def test_a_disk_that_cannot_be_written_stops_the_grid(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "runs").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="runs"):
        run_experiments([SMALL], seeds=1, out=tmp_path)


def test_a_killed_worker_is_explained(tmp_path: Path) -> None:
    deadly = tmp_path / "deadly.py"
    deadly.write_text(
        textwrap.dedent(
            """
            import os, signal, sys
            from pathlib import Path
            from posse.lab.engines import GridError, Workers, in_parallel

            def die(number):
                if number == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                return number

            try:
                list(in_parallel(die, [(i,) for i in range(6)], Workers(jobs=2)))
            except GridError as error:
                print(error)
                sys.exit(7)
            """
        )
    )
    done = subprocess.run([sys.executable, str(deadly)], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert "a worker process died" in done.stdout


def test_the_figures_are_the_papers() -> None:
    for name, dim in (("fig1", 30), ("fig2", 20)):
        experiment = experiment_of(FIGURES[name])
        assert experiment.name == name
        assert experiment.horizon == 10_000
        assert {cell["dim"] for cell in experiment.cells} == {dim}
        assert {cell["n_arms"] for cell in experiment.cells} == {5}
        grid = {(cell["rank"], cell["n_tasks"]) for cell in experiment.cells}
        assert grid == {(k, T) for k in (2, 3, 5) for T in (10, 20, 50, 100, 200)}
        assert {"shared-greedy", "mlingreedy", "naive", "independent-greedy", "oracle-greedy"} <= set(
            experiment.names
        )
    for name, rank in (("fig5", 3), ("fig6", 2)):
        experiment = experiment_of(FIGURES[name])
        assert experiment.problem == "ellipsoid"
        assert experiment.horizon == 10_000
        tasks = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
        assert experiment.cells == tuple({"dim": 10, "rank": rank, "n_tasks": T} for T in tasks)
        assert {"e2tc(exponent=0.5)", "e2tc(exponent=1)", "e2tc", "e2tc(exponent=2)", "pege"} <= set(
            experiment.names
        )


def test_a_cell_may_have_a_horizon_of_its_own(tmp_path: Path) -> None:
    cells = tuple({"dim": 4, "rank": 1, "n_tasks": 3, "horizon": horizon} for horizon in (20, 50))
    grown = Experiment(name="grown", problem="gaussian", cells=cells, policies=("naive",), horizon=10)
    table = run_experiments([grown], seeds=2, out=tmp_path)["grown"]
    assert final_rounds(table)["round"].to_list() == [20, 20, 50, 50]
    assert set(table["path"]) == {"exact"}
