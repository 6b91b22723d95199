"""Many runs: planned as data, played in parallel, each saved when it ends, none played twice."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from posse.core.protocols import Policy, Problem
from posse.lab.engines import GivenUp, GridError, check_engine, in_parallel
from posse.lab.registry import POLICIES, PROBLEMS, PolicyOptions, build_policies, draw_problem
from posse.lab.results import write_json, write_table
from posse.numerics.checks import check_choice, check_integer
from posse.play.simulation import PATHS, default_checkpoints, simulate_all
from posse.policies import DoublyExponential

MANIFEST_FORMAT = 1
OPTIONS = tuple(item.name for item in fields(PolicyOptions))
# Policies play side by side as long as one set of statistics of each has fewer values than this.
STATISTICS_VALUES = 2**26
# The columns of a run, beside its settings.
MEASURED = ("policy", "round", "regret_per_task", "path", "seconds")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Policies by name on a grid of problems.

    Attributes
    ----------
    name : str
        Names the folder of its results.
    problem : str
        The kind of problem, a name in `posse.lab.registry`.
    cells : tuple of mappings
        Parameters of each problem in the grid.
    policies : tuple of str
        Names in `posse.lab.registry`. All of them play the same rounds.
    horizon : int
        N, the rounds of each run. A cell may have a horizon of its own.
    options : mapping
        What policies are told, by the names of `PolicyOptions`, if not the problem's rank and
        defaults. A cell may have options, too.
    path : {"auto", "exact", "contexts"}
        How rounds are played; see `simulate_all`.
    """

    name: str
    problem: str
    cells: tuple[Mapping[str, Any], ...]
    policies: tuple[str, ...]
    horizon: int
    options: Mapping[str, Any] = field(default_factory=dict)
    path: str = "auto"

    def __post_init__(self) -> None:
        check_choice("`path` of Experiment", self.path, PATHS)
        if not self.name.isidentifier():
            raise ValueError(f"`name` of Experiment must be an identifier. Got {self.name!r}.")
        for name in ("cells", "policies"):
            entries = getattr(self, name)
            if not entries or any(entries.count(entry) > 1 for entry in entries):
                raise ValueError(f"`{name}` of Experiment must be some different entries. Got {entries!r}.")
        check_choice("`problem` of Experiment", self.problem, PROBLEMS)
        for name in self.policies:
            check_choice("policy", name, POLICIES)
        for name in self.options:
            check_choice("option of Experiment", name, OPTIONS)
        for name in {name: None for cell in self.cells for name in cell}:
            known = [*PROBLEMS[self.problem].parameters, *OPTIONS, "horizon"]
            check_choice("parameter of a cell", name, known)
            if name in self.options and name != "rank":
                raise ValueError(f"{name} must be an option of Experiment or of its cells. Got both.")


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
        """The size of the run, in numbers to handle."""
        kind = PROBLEMS[self.experiment.problem]
        return kind.work({**kind.parameters, **self.cell}) * self.horizon

    @property
    def horizon(self) -> int:
        """N, the rounds of this run."""
        return int(self.cell.get("horizon", self.experiment.horizon))

    def path(self, out: Path) -> Path:
        """Where the finished run lies."""
        return out / self.experiment.name / "runs" / f"{self.id}.parquet"

    def draw(self) -> Problem:
        """Draw the problem of this cell and seed."""
        kind = self.experiment.problem
        defaults = PROBLEMS[kind].parameters
        own = {name: self.cell.get(name, default) for name, default in defaults.items()}
        return draw_problem(kind, **own, seed=self.seed)

    def build(self, problem: Problem) -> dict[str, Policy]:
        """Build the policies for a problem."""
        kind = PROBLEMS[self.experiment.problem]
        told = {name: value for name, value in self.cell.items() if name in OPTIONS}
        default = kind.options({**kind.parameters, **self.cell})
        options = PolicyOptions(**{**default, **told, **self.experiment.options})
        return build_policies(self.experiment.policies, problem, options)

    def check(self) -> None:
        """Raise what is wrong with the settings, without playing."""
        problem = self.draw()
        for policy in self.build(problem).values():
            policy.blocks(self.horizon, problem.n_tasks, problem.dim)
            policy.init(problem.n_tasks, problem.dim)

    def play(self) -> pl.DataFrame:
        """Draw the problem and play all policies on it."""
        problem = self.draw()
        policies = self.build(problem)
        horizon = self.horizon
        epochs = np.cumsum(DoublyExponential().blocks(horizon))
        explored = min(self.cell.get("explore", horizon), horizon)
        marks = np.concatenate([default_checkpoints(horizon), epochs, [explored]])
        settings = {**self.cell, "horizon": horizon, "seed": self.seed}
        tables = []
        # policies of one call share the dealt rounds, and hold their statistics at the same time
        together = max(1, STATISTICS_VALUES // (problem.n_tasks * problem.dim**2))
        for start in range(0, len(policies), together):
            some = dict(list(policies.items())[start : start + together])
            traces = simulate_all(
                problem,
                some,
                horizon=horizon,
                seed=self.seed,
                checkpoints=marks,
                path=self.experiment.path,
                final_state=False,
            )
            tables += [
                pl.DataFrame({"round": trace.rounds, "regret_per_task": trace.regret_per_task}).select(
                    *(pl.lit(value).alias(key) for key, value in settings.items()),
                    pl.lit(name).alias("policy"),
                    pl.all(),
                    pl.lit(trace.path).alias("path"),
                    pl.lit(trace.seconds).alias("seconds"),
                )
                for name, trace in traces.items()
            ]
        return pl.concat(tables)


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
    engine: str = "local",
    address: str | None = None,
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
    engine : str
        "local" for processes of this machine, "dask" for a Dask cluster, which plays a run again if its
        worker dies. It needs `posse[cluster]`.
    address : str, optional
        HOST:PORT of the cluster's scheduler; its workers then take the place of `jobs`. By default the
        cluster is `jobs` processes of this machine.
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
    check_engine(engine, address)
    runs = [Run(experiment, cell, seed) for cell in experiment.cells for seed in range(seeds)]
    for run in runs[::seeds]:
        run.check()
    tables: list[pl.DataFrame] = []
    calls = [(run,) for run in runs]
    with closing(in_parallel(Run.play, calls, jobs=jobs, engine=engine, address=address)) as results:
        for table in results:
            if isinstance(table, GivenUp):
                raise GridError(f"the run {table.arguments[0].id} could not be played: {table.reason}.")
            tables.append(table)
            on_progress(len(tables))
    return pl.concat(tables).sort([*experiment.cells[0], "seed"], maintain_order=True)


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    seeds: int,
    out: Path,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
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
    engine : str
        "local" for processes of this machine, "dask" for a Dask cluster, which plays a run again if its
        worker dies. It needs `posse[cluster]`.
    address : str, optional
        HOST:PORT of the cluster's scheduler; its workers then take the place of `jobs`. By default the
        cluster is `jobs` processes of this machine.
    on_progress : callable, optional
        Told after every run.
    """
    check_integer("`seeds`", seeds, 1)
    check_integer("`jobs`", jobs, 1)
    check_engine(engine, address)
    for experiment in experiments:
        _claim_folder(experiment, out)
    runs = [Run(e, cell, seed) for e in experiments for seed in range(seeds) for cell in e.cells]
    waiting = [run for run in runs if not run.path(out).exists()]
    waiting.sort(key=lambda run: -run.work)  # short runs come last, and fill all processes to the end
    total_work = sum(run.work for run in runs)
    work = total_work - sum(run.work for run in waiting)
    done = len(runs) - len(waiting)
    on_progress(Progress(done, len(runs), work, total_work))
    outcomes: list[_Outcome] = []
    calls = [(run,) for run in waiting]
    with closing(in_parallel(_play, calls, jobs=jobs, engine=engine, address=address)) as results:
        for result in results:
            if isinstance(result, GivenUp):
                outcome, table = _Outcome(result.arguments[0], result.reason), None
            else:
                outcome, table = result
            if table is not None:
                write_table(outcome.run.path(out), table)
            outcomes.append(outcome)
            work, done = work + outcome.run.work, done + 1
            on_progress(Progress(done, len(runs), work, total_work))
    for experiment in experiments:
        _complete_manifest(experiment, seeds, out, [o for o in outcomes if o.run.experiment == experiment])
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        raise GridError(
            f"{len(failed)} of {len(runs)} runs failed; the others are saved, and the manifest.json in {out} "
            f"beside each names all. The first was {failed[0].run.id}: {failed[0].error}"
        )
    return {experiment.name: _collect(experiment, seeds, out) for experiment in experiments}


def saved_results(experiment: Experiment, out: Path) -> pl.DataFrame | None:
    """Return the table that an earlier call left, or None if there is none of this very experiment."""
    folder = out / experiment.name
    try:
        if _read_manifest(folder / "manifest.json")["parameters"] == _parameters(experiment):
            return pl.read_parquet(folder / "results.parquet")
    except (GridError, OSError, pl.exceptions.PolarsError):
        pass
    return None


@dataclass(frozen=True)
class _Outcome:
    run: Run
    error: str | None = None
    warnings: tuple[str, ...] = ()


def _play(run: Run) -> tuple[_Outcome, pl.DataFrame | None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = run.play()
        except Exception as failure:  # a failed run is reported, and must not take the others along
            return _Outcome(run, f"{type(failure).__name__}: {failure}"), None
    return _Outcome(run, warnings=tuple(sorted({str(warning.message) for warning in caught}))), table


def _parameters(experiment: Experiment) -> dict[str, Any]:
    kind = PROBLEMS[experiment.problem]
    defaults = [kind.options({**kind.parameters, **cell}) for cell in experiment.cells]
    settings = {**asdict(experiment), "default_options": defaults, "posse": version("posse")}
    parameters: dict[str, Any] = json.loads(json.dumps(settings))
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
    found = _read_manifest(path)["parameters"]
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


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] == MANIFEST_FORMAT and isinstance(manifest["parameters"], dict):
            return dict(manifest)
    except (ValueError, KeyError, TypeError):
        pass
    raise GridError(f"{path} is not a manifest that this version of posse wrote. {_WAY_OUT}")


def _complete_manifest(experiment: Experiment, seeds: int, out: Path, outcomes: list[_Outcome]) -> None:
    """Add what the runs of this call had to report; warnings of earlier calls stay."""
    path = out / experiment.name / "manifest.json"
    warned = _read_manifest(path).get("warnings", {})
    manifest = {
        "format": MANIFEST_FORMAT,
        "parameters": _parameters(experiment),
        "seeds": seeds,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy")},
        },
        "failures": {o.run.id: o.error for o in outcomes if o.error is not None},
        "warnings": {**warned, **{o.run.id: list(o.warnings) for o in outcomes if o.warnings}},
    }
    write_json(path, manifest)


def _collect(experiment: Experiment, seeds: int, out: Path) -> pl.DataFrame:
    """Gather the runs into one table."""
    runs = (Run(experiment, cell, seed) for cell in experiment.cells for seed in range(seeds))
    table = pl.concat(_read_run(run, out) for run in runs)
    write_table(out / experiment.name / "results.parquet", table)
    return table


def _read_run(run: Run, out: Path) -> pl.DataFrame:
    path = run.path(out)
    way_out = "Remove it, and the same command plays it again."
    try:
        table = pl.read_parquet(path)
    except pl.exceptions.PolarsError:
        raise GridError(f"{path} cannot be read as Parquet. {way_out}") from None
    settings = {**run.cell, "horizon": run.horizon, "seed": run.seed}
    if set(table.columns) != {*settings, *MEASURED} or any(
        table[name].unique().to_list() != [value] for name, value in settings.items()
    ):
        raise GridError(f"{path} holds something else than the run of its name. {way_out}")
    return table
