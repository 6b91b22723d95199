"""What the commands that run many simulations have in common: options, progress, images at hand."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from posse.cli.console import LINE_SECONDS, errors
from posse.lab.engines import ENGINES
from posse.lab.foreign import is_imported
from posse.lab.grid import Progress
from posse.problems.images import load_images

CORES = os.cpu_count() or 1
# Without a terminal a line of progress comes after this share of the work, too.
LINE_SHARE = 0.1

RUNNING = "How it runs"
Jobs = Annotated[int, typer.Option(help="Processes to use.", rich_help_panel=RUNNING)]
Engine = Annotated[
    str,
    typer.Option(
        help=f"Where runs are played: {' or '.join(ENGINES)}. local is processes of this machine; dask is a "
        "Dask cluster, which plays a run again if its worker dies.",
        rich_help_panel=RUNNING,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Scheduler of the Dask cluster, whose workers take the place of --jobs (default: a cluster of "
        "--jobs processes on this machine).",
        rich_help_panel=RUNNING,
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for results.")]
Seeds = Annotated[int | None, typer.Option(help="Seeds per setting, instead of --quick or --full.")]


def import_from_here(*texts: str) -> None:
    """Let MODULE:NAME be found in the current folder, if it is among what was typed."""
    here = os.getcwd()
    if any(map(is_imported, texts)) and here not in sys.path:
        sys.path.insert(0, here)


def fetch_images(names: Iterable[str | None]) -> dict[str, str]:
    """Have image sets at hand, downloading what is not, and return their titles under "images", if any."""
    titles = []
    for name in dict.fromkeys(name for name in names if name is not None):
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Bar(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
            task = bar.add_task(f"{name}: looking", total=None)

            def show(stage: str, done: int, total: int | None, task: TaskID = task, name: str = name) -> None:
                if done == 0 and not errors.is_terminal:
                    errors.print(f"{name}: {stage}", highlight=False)
                bar.update(task, description=f"{name}: {stage}", completed=done, total=total)

            titles.append(load_images(name, on_progress=show).title)
    return {"images": ", ".join(titles)} if titles else {}


@contextmanager
def showing_progress(description: str, what: str) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of many runs: a bar on a terminal, else a line now and then.

    Parameters
    ----------
    description : str
        What is run.
    what : str
        What is counted: "runs", or "seeds".
    """
    if not errors.is_terminal:
        yield _Lines(description, what)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=errors) as bar:
        task = bar.add_task(description, total=None, counted="")

        def show(state: Progress) -> None:
            counted = f"{state.runs}/{state.total_runs} {what}"
            bar.update(task, completed=state.work, total=state.total_work, counted=counted)

        yield show


class _Lines:
    """Prints a line of progress after every tenth of the work, and at least every minute."""

    def __init__(self, description: str, what: str) -> None:
        self.description, self.what = description, what
        self.start = self.last = time.monotonic()
        self.share = -1.0

    def __call__(self, state: Progress) -> None:
        share, now = state.work / state.total_work, time.monotonic()
        if share < 1.0 and share - self.share < LINE_SHARE and now - self.last < LINE_SECONDS:
            return
        self.share, self.last = share, now
        counted = f"{state.runs}/{state.total_runs} {self.what}"
        errors.print(
            f"{self.description}: {counted}, {share:.0%} of the work, {now - self.start:.0f} s",
            highlight=False,
            soft_wrap=True,
        )


def seeds_in_words(number: int) -> str:
    """Return a number of seeds with its noun.

    Examples
    --------
    >>> seeds_in_words(1), seeds_in_words(5)
    ('1 seed', '5 seeds')
    """
    return f"{number} seed{'s' if number > 1 else ''}"


def kept_in(out: Path) -> str:
    """Say what is left of a grid that was interrupted."""
    return f" Finished runs are saved in {out}; the same command goes on from there."
