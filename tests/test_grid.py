"""Many runs: resumable, the same on any number of processes, and honest about what failed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from posse.experiments import Experiment, GridError, play_seeds, run_experiments
from posse.experiments.grid import Run
from posse.experiments.paper import FIGURES
from posse.results import final_rounds

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
    alone = run_experiments([SMALL], seeds=3, out=tmp_path / "a", jobs=1)["small"]
    together = run_experiments([SMALL], seeds=3, out=tmp_path / "b", jobs=2)["small"]
    assert alone.select(REGRET).equals(together.select(REGRET))
    assert alone.select(REGRET).equals(play_seeds(SMALL, seeds=3, jobs=2).select(REGRET))
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


def test_killing_the_command_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from posse.experiments import Experiment, run_experiments
        cells = tuple({"dim": 6, "rank": 2, "n_tasks": T, "n_arms": 3} for T in (6, 7))
        slow = Experiment(name="small", problem="gaussian", cells=cells, policies=("naive",), horizon=4000)
        run_experiments([slow], seeds=30, out=Path(sys.argv[1]), jobs=2)
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
    with pytest.raises(GridError, match="not a manifest that posse wrote"):
        run_experiments([SMALL], seeds=1, out=tmp_path)
    manifest.unlink()
    with pytest.raises(GridError, match=r"holds runs but no manifest.json"):
        run_experiments([SMALL], seeds=1, out=tmp_path)


def test_a_failing_run_is_reported_and_the_others_are_kept(tmp_path: Path) -> None:
    bad = replace(SMALL, cells=(*SMALL.cells, {"dim": 5, "rank": 9, "n_tasks": 3, "n_arms": 3}))
    with pytest.raises(GridError, match=r"1 of 3 runs of small failed; .*rank=9.*Got 9"):
        run_experiments([bad], seeds=1, out=tmp_path)
    assert len(run_files(tmp_path)) == 2
    failures = json.loads((tmp_path / "small" / "manifest.json").read_text())["failures"]
    assert list(failures) == ["dim=5,rank=9,n_tasks=3,n_arms=3,seed=0"]


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
            from posse.experiments import GridError
            from posse.experiments.grid import _in_parallel

            def die(number):
                if number == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                return number

            try:
                list(_in_parallel(die, [(i,) for i in range(6)], 2))
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
        experiment = FIGURES[name].experiment
        assert experiment.name == name
        assert experiment.horizon == 10_000
        assert {cell["dim"] for cell in experiment.cells} == {dim}
        assert {cell["n_arms"] for cell in experiment.cells} == {5}
        grid = {(cell["rank"], cell["n_tasks"]) for cell in experiment.cells}
        assert grid == {(k, T) for k in (2, 3, 5) for T in (10, 20, 50, 100, 200)}
        assert {"mlingreedy", "naive", "independent-greedy", "oracle-greedy"} <= set(experiment.policies)
