"""Many runs: planned as data, played in parallel, each saved when it ends, none played twice."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from posse.core.extras import extra
from posse.lab.engines import GivenUp, GridError, Workers, in_parallel
from posse.lab.results import write_table
from posse.lab.store import Outcome, claim_folder, collect, complete_manifest
from posse.lab.study import Run, Study
from posse.numerics.checks import check_integer

with extra("lab"):
    import polars as pl

ALONE = Workers()


@dataclass(frozen=True)
class Progress:
    """How far a grid is: runs, and the work in them."""

    runs: int
    total_runs: int
    work: int
    total_work: int


def play_seeds(
    study: Study,
    *,
    seeds: int,
    workers: Workers = ALONE,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> pl.DataFrame:
    """Play a study in memory, saving nothing, and return its table.

    Parameters
    ----------
    study : Study
        Such as an `Experiment`.
    seeds : int
        Seeds 0, ..., seeds - 1 of each cell.
    workers : Workers
        Who plays: by default this process.
    on_progress : callable, optional
        Told after every run.

    Examples
    --------
    >>> from posse.lab.experiment import Experiment
    >>> cell = {"dim": 6, "rank": 2, "n_tasks": 4, "n_arms": 3}
    >>> small = Experiment(name="small", problem="gaussian", cells=(cell,), policies=("naive",), horizon=50)
    >>> play_seeds(small, seeds=2)["seed"].n_unique()
    2
    """
    check_integer("`seeds`", seeds, 1)
    for cell in study.cells:
        study.check(cell)
    runs = [Run(study, cell, seed) for cell in study.cells for seed in range(seeds)]
    total_work = sum(run.work for run in runs)
    tables: list[pl.DataFrame] = []
    on_progress(Progress(0, len(runs), 0, total_work))
    with closing(in_parallel(Run.play, [(run,) for run in runs], workers)) as results:
        for table in results:
            if isinstance(table, GivenUp):
                raise GridError(f"the run {table.arguments[0].id} could not be played: {table.reason}.")
            tables.append(table)
            work = total_work * len(tables) // len(runs)
            on_progress(Progress(len(tables), len(runs), work, total_work))
    return pl.concat(tables).sort([*study.cells[0], "seed"], maintain_order=True)


def run_experiments(
    studies: Sequence[Study],
    *,
    seeds: int,
    out: Path | str,
    workers: Workers = ALONE,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, pl.DataFrame]:
    """Play what is not yet played of some studies, save it, and return their tables by name.

    Every finished run is a file of its own, written whole or not at all; a run whose file exists is
    not played again, so an interrupted call is continued by the same call. A run that fails is named
    in the manifest, the others go on, and the call ends in a `GridError`.

    Parameters
    ----------
    studies : sequence of Study
        Such as `Experiment`s.
    seeds : int
        Seeds 0, ..., seeds - 1 of each cell.
    out : Path
        Results go to a folder per study: `runs/`, `results.parquet` and `manifest.json`.
    workers : Workers
        Who plays: by default this process.
    on_progress : callable, optional
        Told after every run.
    """
    check_integer("`seeds`", seeds, 1)
    out = Path(out)
    for study in studies:
        claim_folder(study, out)
    runs = [Run(study, cell, seed) for study in studies for seed in range(seeds) for cell in study.cells]
    outcomes = _play_missing(runs, out, workers, on_progress)
    for study in studies:
        complete_manifest(study, seeds, out, [o for o in outcomes if o.run.study.name == study.name])
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        raise GridError(
            f"{len(failed)} of {len(runs)} runs failed; the others are saved, and the manifest.json in {out} "
            f"beside each names all. The first was {failed[0].run.id}: {failed[0].error}"
        )
    return {study.name: collect(study, seeds, out) for study in studies}


def _play_missing(
    runs: Sequence[Run], out: Path, workers: Workers, on_progress: Callable[[Progress], None]
) -> list[Outcome]:
    """Play the runs that have no file, the longest first, save each when it ends, and say how it did."""
    waiting = [run for run in runs if not run.path(out).exists()]
    waiting.sort(key=lambda run: -run.work)  # short runs come last, and fill all processes to the end
    total_work = sum(run.work for run in runs)
    work = total_work - sum(run.work for run in waiting)
    done = len(runs) - len(waiting)
    on_progress(Progress(done, len(runs), work, total_work))
    outcomes: list[Outcome] = []
    with closing(in_parallel(_play, [(run,) for run in waiting], workers)) as results:
        for result in results:
            outcome, table = _given_up(result) if isinstance(result, GivenUp) else result
            if table is not None:
                write_table(outcome.run.path(out), table)
            outcomes.append(outcome)
            work, done = work + outcome.run.work, done + 1
            on_progress(Progress(done, len(runs), work, total_work))
    return outcomes


def _given_up(result: GivenUp) -> tuple[Outcome, None]:
    (run,) = result.arguments
    return Outcome(run, result.reason), None


def _play(run: Run) -> tuple[Outcome, pl.DataFrame | None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = run.play()
        except Exception as failure:  # a failed run is reported, and must not take the others along
            return Outcome(run, f"{type(failure).__name__}: {failure}"), None
    return Outcome(run, warnings=tuple(sorted({str(warning.message) for warning in caught}))), table
