"""`posse compare`: policies on a suite of scenarios."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from posse.cli.shared import CORES, Address, Engine, Jobs, Out, Seeds, kept_in, plain_errors, play_grid
from posse.lab.engines import check_engine
from posse.lab.grid import saved_results
from posse.numerics.checks import check_choice, check_integer
from posse.paper.report import write_comparison
from posse.suite import SCENARIOS, Scenario, headlines

QUICK_SEEDS = 3
FULL_SEEDS = 20


def compare(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help=f"Scenarios to run: {', '.join(SCENARIOS)}. All, if none is named."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help=f"{FULL_SEEDS} seeds per scenario, or {QUICK_SEEDS}.")
    ] = False,
    seeds: Seeds = None,
    jobs: Jobs = CORES,
    engine: Engine = "local",
    address: Address = None,
    out: Out = Path("results"),
) -> None:
    """Run a suite of scenarios; show each policy's regret relative to the best that learns tasks alone.

    0.5 [0.4, 0.6] means half of the regret of the best independent policy, with a 95 % interval of
    ratios taken within seeds. Green is settled for the policy, red against it. The oracle is told the
    true representation.

    For example: posse compare few-tasks unrelated --seeds 5

    Every finished run is saved at once. Stop whenever you like: the same command goes on where it
    stopped, and --full or more --seeds add to what a --quick run has done.

    Writes OUT/comparison.html, a page with the picture, all numbers and how they are computed,
    OUT/comparison.csv, OUT/comparison.png and OUT/comparison.svg, and a folder of results for each
    scenario. The page also shows the scenarios that earlier calls left in OUT.
    """
    with plain_errors(interrupted=kept_in(out)):
        for name in scenarios or ():
            check_choice("scenario", name, SCENARIOS)
        names = list(dict.fromkeys(scenarios or SCENARIOS))
        n_seeds = check_integer(
            "--seeds", seeds if seeds is not None else FULL_SEEDS if full else QUICK_SEEDS, 1
        )
        check_engine(engine, address)
        check_integer("--jobs", jobs, 1)
        clock = time.perf_counter()
        experiments = [SCENARIOS[name].experiment for name in names]
        tables = play_grid(
            names, experiments, seeds=n_seeds, jobs=jobs, engine=engine, address=address, out=out
        )
        shown = []
        for scenario in SCENARIOS.values():
            experiment = scenario.experiment
            if scenario.name not in names:
                earlier = saved_results(experiment, out)
                if earlier is None:
                    continue
                tables[experiment.name] = earlier
            shown.append(scenario)
        minutes = (time.perf_counter() - clock) / 60
        command = again(shown, tables, out)
        data = write_comparison(shown, tables, out, command=command, minutes=minutes)
        print_ratios([scenario for scenario in shown if scenario.name in names], data)
        print(out / "comparison.html")


def again(scenarios: list[Scenario], tables: Mapping[str, pl.DataFrame], out: Path) -> str:
    """Return the commands that make these tables, one for each number of seeds."""
    by_seeds: dict[int, list[str]] = {}
    for scenario in scenarios:
        by_seeds.setdefault(tables[scenario.experiment.name]["seed"].n_unique(), []).append(scenario.name)
    return "\n".join(
        shlex.join(["posse", "compare", *names, "--seeds", str(n_seeds), "--out", str(out)])
        for n_seeds, names in by_seeds.items()
    )


def print_ratios(scenarios: list[Scenario], data: pl.DataFrame) -> None:
    """Print a row per scenario: the best independent policy, and ratios to it."""
    summaries = {scenario.name: headlines(scenario, data) for scenario in scenarios}
    reference, *others = summaries[scenarios[0].name]
    table = Table("scenario", reference.replace(" ", "\n"), box=None, pad_edge=False)
    for heading in others:
        table.add_column(heading.replace("-", "\n").replace(" ", "\n"), justify="right")
    for name, rows in summaries.items():
        best = rows[reference]
        regret = (
            "-" if best is None else f"{best['policy']}\n{best['regret_per_task']:.1f}".replace("-", "\n")
        )
        table.add_row(name, regret, *(ratio(rows[heading]) for heading in others))
    Console().print(table)


def ratio(row: Mapping[str, Any] | None) -> str:
    """Return the ratio of a row above its interval, coloured where that settles who is better."""
    if row is None or row["to_independent"] is None:
        return "-"
    middle, low, high = (row[f"to_independent{end}"] for end in ("", "_low", "_high"))
    if low is None:
        return f"{middle:.2f}"
    text = f"{middle:.2f}\n{low:.2f}-{high:.2f}"
    return f"[green]{text}[/]" if round(high, 2) < 1 else f"[red]{text}[/]" if round(low, 2) > 1 else text
