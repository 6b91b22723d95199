"""Time posse beside other bandit libraries on the same 100,000 decisions."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.environments import ONE_THREAD, ROOT, InstallError
from benchmarks.peers.contenders import CONTENDERS, REQUIREMENTS, interpreter
from benchmarks.peers.report import Row, markdown, tables, write_page
from benchmarks.peers.workload import write_data

LONGEST_RUN = 900  # seconds

console = Console(width=200)


def main(
    rounds: Annotated[
        int, typer.Option(min=20, help="Rounds of 100 tasks; slow libraries get fewer.")
    ] = 1000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each; the median time counts.")] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"A library to measure, may be repeated: {', '.join(REQUIREMENTS)}."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the data.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything measured to this file.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the tables into this Markdown page, between its markers.")
    ] = None,
) -> None:
    """Time posse beside other bandit libraries on the same decisions, one BLAS thread each.

    Each library lives in an environment of its own under .venv-peers, made at the first call with pip and
    kept; delete the folder to get newer versions. posse and NumPy always play. All meet the same data: 100
    tasks, 30 features, 5 arms, parameters of norm 1 in 3 dimensions, noise of standard deviation 1.

    Examples, after `make setup`:

      python -m benchmarks.peers --rounds 100 --repeats 1    a first look

      python -m benchmarks.peers --only river --only coba    two libraries

      python -m benchmarks.peers --page docs/explanation/peers.md    remake the page's tables
    """
    unknown = set(only or ()) - set(REQUIREMENTS)
    if unknown:
        raise typer.BadParameter(f"must be one of {', '.join(REQUIREMENTS)}. Got {', '.join(unknown)}.")
    rows = [
        Row(contender, batch, min(rounds, contender.most_rounds or rounds))
        for batch in (1, 10)
        for contender in CONTENDERS
        if batch in contender.batches
        and (not only or contender.library not in REQUIREMENTS or contender.library in only)
    ]
    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        for length in {row.rounds for row in rows}:
            write_data(_data(folder, length), rounds=length, seed=seed)
        for repeat in range(repeats):
            for row in rows:
                status.update(f"{row.contender.name}, batches of {row.batch}, run {repeat + 1} of {repeats}")
                if not row.failure:
                    run(row, _data(folder, row.rounds))
    for table in tables(rows):
        console.print(table)
    if json_file:
        json_file.write_text(json.dumps([row.record() for row in rows], indent=1), encoding="utf-8")
    if page:
        write_page(page, markdown(rows, repeats))


def _data(folder: str, rounds: int) -> Path:
    return Path(folder) / f"{rounds}.npz"


def run(row: Row, data: Path) -> None:
    """Run a contender once, in a process of its own, and note what came of it."""
    contender = row.contender
    try:
        command = [interpreter(contender.library), "-m", "benchmarks.peers.runner"]
        done = subprocess.run(
            [*command, str(data), str(row.batch), contender.library, contender.player],
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN,
        )
    except InstallError as error:
        row.failure = str(error)
    except subprocess.TimeoutExpired:
        row.failure = f"took more than {LONGEST_RUN} s"
    else:
        if done.returncode:
            row.failure = f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        else:
            row.runs.append(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    typer.run(main)
