"""Measure FactorPriorRegressor beside mixed models and regressions per task, and store the run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.environments import ONE_THREAD, ROOT, InstallError
from benchmarks.mixed_models.contenders import CONTENDERS, Contender, interpreter
from benchmarks.mixed_models.report import markdown, targets
from benchmarks.mixed_models.workload import Cell, Workload
from benchmarks.peers.report import write_page

RESULTS = Path(__file__).parent / "results.json"
PAGE = ROOT / "docs" / "explanation" / "mixed-models.md"
SIZES = ((100, 10, 60), (100, 30, 60), (1000, 30, 60))
CELLS = tuple(
    Cell(tasks=tasks, dim=dim, rows=rows, related=related)
    for tasks, dim, rows in SIZES
    for related in (True, False)
)

console = Console(width=160)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Data sets of each size and kind.")] = 5,
    limit: Annotated[int, typer.Option(min=1, help="Seconds that a fit may take.")] = 300,
    results: Annotated[Path, typer.Option(help="Where to store the run, as JSON.")] = RESULTS,
    page: Annotated[Path, typer.Option(help="The page whose tables are made anew.")] = PAGE,
    only_page: Annotated[
        bool, typer.Option(help="Measure nothing; make the page from the stored run.")
    ] = False,
) -> None:
    """Measure FactorPriorRegressor beside merf, gpboost, MixedLM, and RidgeCV and least squares per task.

    All fit the same rows, in turn, each fit in a process of its own with one thread. A contender that does
    not end within the limit is not tried again on tasks of that size and kind, and its row says so. merf,
    gpboost and statsmodels are installed by pip into environments under .venv-peers at the first call.
    """
    if not only_page:
        machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
        stored = {"date": datetime.now(UTC).date().isoformat(), "machine": machine, "limit": limit}
        runs = [run for cell in CELLS for run in measure_cell(cell, seeds, limit)]
        results.write_text(json.dumps({**stored, "runs": runs}, indent=1) + "\n", encoding="utf-8")
    found = json.loads(results.read_text(encoding="utf-8"))
    write_page(page, markdown(found))
    for name, value in targets(found).items():
        console.print(f"{name}: {value:.3f}")


def measure_cell(cell: Cell, seeds: int, limit: int) -> list[dict[str, Any]]:
    """Return what every contender found on tasks of one size and kind."""
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            data = Path(folder) / f"{seed}.npz"
            Workload.draw(cell, seed).write(data)
            for contender in CONTENDERS:
                if any(run["contender"] == contender.name and "failure" in run for run in runs):
                    continue
                found = run_once(contender, data, limit)
                runs.append({**asdict(cell), "seed": seed, "contender": contender.name, **found})
                console.print(runs[-1])
    return runs


def run_once(contender: Contender, data: Path, limit: int) -> dict[str, Any]:
    """Run a contender in a process of its own, and return what it found or why it did not."""
    try:
        command = [interpreter(contender.library), "-m", "benchmarks.mixed_models.runner"]
        done = subprocess.run(
            [*command, str(data), contender.library, contender.fit],
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except InstallError as error:
        return {"failure": str(error)}
    except subprocess.TimeoutExpired:
        return {"failure": f"did not end in {limit} s"}
    if done.returncode:
        return {"failure": f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    typer.run(main)
