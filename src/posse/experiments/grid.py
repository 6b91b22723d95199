"""Many runs: planned as data, played in parallel, each saved when it ends, none played twice."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import polars as pl
from joblib.externals.loky.process_executor import TerminatedWorkerError

from posse.catalogue import PolicyOptions, build_policies, draw_problem
from posse.results import write_json, write_table
from posse.simulation import simulate_all
from posse.validation import check_integer

MANIFEST_FORMAT = 1


class GridError(RuntimeError):
    """Some runs could not be played or saved; those that were finished are kept."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Policies by name on a grid of problems.

    Attributes
    ----------
    name : str
        Names the folder of its results.
    problem : str
        The kind of problem, a name in `posse.catalogue`.
    cells : tuple of mappings
        Parameters of each problem in the grid.
    policies : tuple of str
        Names in `posse.catalogue`. All of them play the same rounds.
    horizon : int
        N, the rounds of each run.
    policy_rank : int, optional
        The rank that policies are told, if not the problem's own.
    exponent : float
        The exponent that E2TC is told.
    """

    name: str
    problem: str
    cells: tuple[Mapping[str, Any], ...]
    policies: tuple[str, ...]
    horizon: int
    policy_rank: int | None = None
    exponent: float = 1.5


@dataclass(frozen=True)
class Run:
    """One cell of an experiment under one seed: the unit of work that is saved and resumed."""

    experiment: Experiment
    cell: Mapping[str, Any]
    seed: int

    @property
    def id(self) -> str:
        """A name that people can read, unique in the experiment."""
        return ",".join(f"{key}={value}" for key, value in {**self.cell, "seed": self.seed}.items())

    @property
    def work(self) -> int:
        """The size of the run, in numbers drawn."""
        arms = self.cell.get("n_arms", 1)
        return int(self.cell["n_tasks"] * self.cell["dim"] * arms * self.experiment.horizon)

    def path(self, out: Path) -> Path:
        """Where the finished run lies."""
        return out / self.experiment.name / "runs" / f"{self.id}.parquet"

    def play(self) -> pl.DataFrame:
        """Draw the problem and play all policies on it."""
        problem = draw_problem(self.experiment.problem, **self.cell, seed=self.seed)
        rank = self.experiment.policy_rank or self.cell["rank"]
        options = PolicyOptions(rank=rank, exponent=self.experiment.exponent)
        policies = build_policies(self.experiment.policies, problem, options)
        traces = simulate_all(problem, policies, horizon=self.experiment.horizon, seed=self.seed)
        settings = {**self.cell, "horizon": self.experiment.horizon, "seed": self.seed}
        return pl.concat(
            pl.DataFrame({"round": trace.rounds, "regret_per_task": trace.regret_per_task}).select(
                *(pl.lit(value).alias(key) for key, value in settings.items()),
                pl.lit(name).alias("policy"),
                pl.all(),
                pl.lit(trace.seconds).alias("seconds"),
            )
            for name, trace in traces.items()
        )


@dataclass(frozen=True)
class Progress:
    """How far a grid is: runs, and the work in them."""

    runs: int
    total_runs: int
    work: int
    total_work: int


def play_seeds(
    experiment: Experiment,
    *,
    seeds: int,
    jobs: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> pl.DataFrame:
    """Play an experiment in memory, saving nothing, and return its table.

    Parameters
    ----------
    experiment : Experiment
    seeds : int
        Seeds 0, ..., seeds - 1 of each cell.
    jobs : int
        Processes to use.
    on_progress : callable, optional
        Told the number of runs done after each of them.

    Examples
    --------
    >>> cell = {"dim": 6, "rank": 2, "n_tasks": 4, "n_arms": 3}
    >>> small = Experiment(name="small", problem="gaussian", cells=(cell,), policies=("naive",), horizon=50)
    >>> play_seeds(small, seeds=2)["seed"].n_unique()
    2
    """
    check_integer("`seeds`", seeds, 1)
    check_integer("`jobs`", jobs, 1)
    runs = [Run(experiment, cell, seed) for cell in experiment.cells for seed in range(seeds)]
    tables: list[pl.DataFrame] = []
    for table in _in_parallel(Run.play, [(run,) for run in runs], jobs):
        tables.append(table)
        on_progress(len(tables))
    return pl.concat(tables).sort([*experiment.cells[0], "seed"], maintain_order=True)


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    seeds: int,
    out: Path,
    jobs: int = 1,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, pl.DataFrame]:
    """Play what is not yet played of some experiments, and return their tables by name.

    Every finished run is a file of its own, written whole or not at all; a run whose file exists is
    not played again, so an interrupted call is continued by the same call. A run that fails is named
    in the manifest, the others go on, and the call ends in an error.

    Parameters
    ----------
    experiments : sequence of Experiment
    seeds : int
        Seeds 0, ..., seeds - 1 of each cell.
    out : Path
        Results go to a folder per experiment: `runs/`, `results.parquet` and `manifest.json`.
    jobs : int
        Processes to use.
    on_progress : callable, optional
        Told after every run.
    """
    check_integer("`seeds`", seeds, 1)
    check_integer("`jobs`", jobs, 1)
    for experiment in experiments:
        _claim_folder(experiment, out)
    runs = [Run(e, cell, seed) for e in experiments for seed in range(seeds) for cell in e.cells]
    waiting = [run for run in runs if not run.path(out).exists()]
    waiting.sort(key=lambda run: (run.seed, -run.work))
    total_work = sum(run.work for run in runs)
    work = total_work - sum(run.work for run in waiting)
    done = len(runs) - len(waiting)
    on_progress(Progress(done, len(runs), work, total_work))
    outcomes: list[_Outcome] = []
    for outcome in _in_parallel(_play_and_save, [(run, out) for run in waiting], jobs):
        outcomes.append(outcome)
        work, done = work + outcome.run.work, done + 1
        on_progress(Progress(done, len(runs), work, total_work))
    return {
        e.name: _collect(e, seeds, out, [o for o in outcomes if o.run.experiment == e]) for e in experiments
    }


def _in_parallel(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """Yield the results of some calls as they come."""
    parallel = joblib.Parallel(n_jobs=min(jobs, max(1, len(calls))), return_as="generator_unordered")
    try:
        yield from parallel(joblib.delayed(function)(*call) for call in calls)
    except TerminatedWorkerError:
        raise GridError(
            "a worker process died (killed, or out of memory). Runs that were saved are kept, and the same "
            "command plays the rest. Fewer --jobs need less memory."
        ) from None


@dataclass(frozen=True)
class _Outcome:
    run: Run
    error: str | None
    warnings: tuple[str, ...]


def _play_and_save(run: Run, out: Path) -> _Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            write_table(run.path(out), run.play())
            error = None
        except OSError:
            raise
        except Exception as failure:  # a failed run is reported, and must not take the others along
            error = f"{type(failure).__name__}: {failure}"
    return _Outcome(run, error, tuple(sorted({str(warning.message) for warning in caught})))


def _parameters(experiment: Experiment) -> dict[str, Any]:
    parameters: dict[str, Any] = json.loads(json.dumps({**asdict(experiment), "posse": version("posse")}))
    return parameters


def _claim_folder(experiment: Experiment, out: Path) -> None:
    """Write the manifest of a new folder; refuse a folder that holds results of other parameters."""
    path = out / experiment.name / "manifest.json"
    wanted = _parameters(experiment)
    if not path.exists():
        if any(path.parent.glob("runs/*.parquet")):
            raise GridError(
                f"{path.parent} holds runs but no manifest.json, so their parameters are unknown. {_WAY_OUT}"
            )
        write_json(path, {"format": MANIFEST_FORMAT, "parameters": wanted})
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["parameters"]
    except (ValueError, KeyError, TypeError):
        raise GridError(f"{path} is not a manifest that posse wrote. {_WAY_OUT}") from None
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise GridError(
                f"{path.parent} holds results of other parameters: {key} was {_short(found.get(key))} "
                f"and is now {_short(wanted.get(key))}. {_WAY_OUT}"
            )


_WAY_OUT = "Choose another --out, or move that folder away."


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _collect(experiment: Experiment, seeds: int, out: Path, outcomes: list[_Outcome]) -> pl.DataFrame:
    """Gather the runs into one table, complete the manifest, and raise if a run is missing."""
    folder = out / experiment.name
    failures = {o.run.id: o.error for o in outcomes if o.error is not None}
    manifest = {
        "format": MANIFEST_FORMAT,
        "parameters": _parameters(experiment),
        "seeds": seeds,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy")},
        },
        "failures": failures,
        "warnings": {o.run.id: list(o.warnings) for o in outcomes if o.warnings},
    }
    write_json(folder / "manifest.json", manifest)
    if failures:
        run_id, error = next(iter(failures.items()))
        raise GridError(
            f"{len(failures)} of {seeds * len(experiment.cells)} runs of {experiment.name} failed; "
            f"the others are saved, and {folder / 'manifest.json'} names all. The first was {run_id}: {error}"
        )
    tables = [
        _read_run(Run(experiment, cell, seed).path(out)) for cell in experiment.cells for seed in range(seeds)
    ]
    table = pl.concat(tables)
    write_table(folder / "results.parquet", table)
    return table


def _read_run(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except pl.exceptions.PolarsError:
        raise GridError(
            f"{path} cannot be read as Parquet. Remove it, and the same command plays it again."
        ) from None
