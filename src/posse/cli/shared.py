"""What the commands have in common: consoles, errors in one line, progress, images at hand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from posse.lab.engines import ENGINES, GridError
from posse.lab.grid import Experiment, run_experiments
from posse.lab.grid import Progress as GridProgress
from posse.lab.registry import PROBLEMS
from posse.problems.images import DataError, load_images

CORES = os.cpu_count() or 1
Jobs = Annotated[int, typer.Option(help="Processes to use.")]
Engine = Annotated[
    str,
    typer.Option(
        help=f"Where runs are played: {' or '.join(ENGINES)}. local is processes of this machine; dask is a "
        "Dask cluster, which plays a run again if its worker dies."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Scheduler of the Dask cluster, whose workers take the place of --jobs (default: a cluster of "
        "--jobs processes on this machine).",
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for results.")]
Seeds = Annotated[int | None, typer.Option(help="Seeds per setting, instead of --quick or --full.")]

errors = Console(stderr=True)


@contextmanager
def plain_errors(interrupted: str = "") -> Iterator[None]:
    """Turn errors that users can mend into one message and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print("[yellow]Stopped.[/]" + escape(interrupted), soft_wrap=True, highlight=False)
        raise typer.Exit(130) from None
    except MemoryError:
        errors.print("[red]Error:[/] not enough memory for a problem of this size.")
        raise typer.Exit(1) from None
    except (ValueError, GridError, DataError, OSError) as error:
        errors.print(f"[red]Error:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
        raise typer.Exit(2 if isinstance(error, ValueError) else 1) from None


def fetch_images(problems: Iterable[str]) -> dict[str, str]:
    """Have the image sets of some problems at hand, downloading what is not, and say which they are."""
    titles = []
    sets = (PROBLEMS[problem].images for problem in problems)
    for name in dict.fromkeys(images for images in sets if images is not None):
        with Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=errors, transient=True
        ) as bar:
            task = bar.add_task(f"{name}: looking", total=None)

            def show(stage: str, done: int, total: int | None, task: TaskID = task, name: str = name) -> None:
                if done == 0 and not errors.is_terminal:
                    errors.print(f"{name}: {stage}", highlight=False)
                bar.update(task, description=f"{name}: {stage}", completed=done, total=total)

            titles.append(load_images(name, on_progress=show).title)
    return {"images": ", ".join(titles)} if titles else {}


def progress_bar() -> Progress:
    """Return a progress bar on standard error."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
    )


def kept_in(out: Path) -> str:
    """Say what is left of a grid that was interrupted."""
    return f" Finished runs are saved in {out}; the same command goes on from there."


def play_grid(
    names: Sequence[str],
    experiments: Sequence[Experiment],
    *,
    seeds: int,
    jobs: int,
    engine: str,
    address: str | None,
    out: Path,
) -> dict[str, pl.DataFrame]:
    """Play what is not yet played of some experiments under a progress bar, and return their tables."""
    used = fetch_images(experiment.problem for experiment in experiments)
    for title in used.values():
        errors.print(f"Images: {title}", highlight=False)
    with progress_bar() as bar:
        task = bar.add_task(f"{' '.join(names)}, {seeds} seeds", total=None, runs="")

        def show(state: GridProgress) -> None:
            runs = f"{state.runs}/{state.total_runs} runs"
            bar.update(task, completed=state.work, total=state.total_work, runs=runs)

        return run_experiments(
            experiments, seeds=seeds, out=out, jobs=jobs, engine=engine, address=address, on_progress=show
        )
