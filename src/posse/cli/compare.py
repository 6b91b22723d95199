"""`posse compare`: policies on a suite of scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import errors, plain_errors
from posse.cli.running import (
    CORES,
    Address,
    Engine,
    Jobs,
    Out,
    Seeds,
    fetch_images,
    import_from_here,
    kept_in,
    seeds_in_words,
    showing_progress,
)
from posse.lab.engines import Workers
from posse.lab.registry import family_of, name_policies
from posse.numerics.checks import check_choice, check_integer
from posse.suite import SCENARIOS, Scenario, Suite, compare, headlines, promise
from posse.suite.words import verdict_in_words

# Where a heading may go on below.
BREAKS = re.compile(r"[- ]|(?<=[(,])")
# With one seed the whole league is played in less than an hour on two cores.
QUICK_SEEDS = 1
FULL_SEEDS = 6


def command(
    context: typer.Context,
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help=f"Scenarios to run: {', '.join(SCENARIOS)}. All, if none is named."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A further policy for all scenarios; repeat for more: NAME or NAME(parameter=value, ...) of "
            "`posse list`; or MODULE:NAME, one of your own, looked for in this folder first.",
        ),
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
    """Play the league: policies, rivals and oracles on a suite of scenarios, relative to the best.

    The first line says whether `shared`, the policy for those who do not choose, is as near the best policy
    that is no oracle as is asked of it, and where it is not.

    In the table 0.50 above 0.40-0.60 means half of the regret of the best policy that learns each task alone,
    and the 95 % interval of ratios taken within seeds. Green is settled for the policy, red against it. The
    oracle is told the true representation.

    Below, the same for the worst-off fifth of tasks: those known beforehand to be at risk, or else those
    with the most regret, beside the same rule with each task alone. A line says whether anybody was worse off
    for having shared.

    For example: posse compare few-tasks unrelated --seeds 5

    Every finished run is saved at once. Stop whenever you like: the same command goes on where it
    stopped, and --full or more --seeds add to what a --quick run has done.

    A --policy plays beside those that have played already, which do not play again.

    Writes OUT/comparison.html, a page with a heat map, ranks, who wins where, all numbers and how they are
    computed, OUT/comparison.csv, OUT/comparison.png and OUT/comparison.svg, and a folder of results for each
    scenario. The page also shows the scenarios that earlier calls left in OUT.
    """
    with plain_errors(context, interrupted=kept_in(out)):
        chosen = chosen_scenarios(scenarios or ())
        further = further_policies(policy or ())
        n_seeds = check_integer(
            "--seeds", seeds if seeds is not None else FULL_SEEDS if full else QUICK_SEEDS, 1
        )
        workers = Workers(jobs=jobs, engine=engine, address=address)
        for title in fetch_images(scenario.experiment.images for scenario in chosen).values():
            errors.print(f"Images: {title}", highlight=False)
        about = f"{' '.join(scenario.name for scenario in chosen)}, {seeds_in_words(n_seeds)}"
        with showing_progress(about, "runs") as show:
            suite = compare(
                chosen, seeds=n_seeds, out=out, policies=further, workers=workers, on_progress=show
            )
        print(verdict_in_words(suite.data))
        print_ratios(suite, [scenario.name for scenario in chosen])
        print_worst_off(suite, [scenario.name for scenario in chosen])
        print(promise(suite.data.filter(suite.data["scenario"].is_in([some.name for some in chosen]))))
        for sentence in suite.left_out:
            errors.print(sentence, highlight=False, markup=False, soft_wrap=True)
        print(suite.path)


def chosen_scenarios(names: Sequence[str]) -> list[Scenario]:
    """Return scenarios by their names; all, if none is named."""
    for name in names:
        check_choice("scenario", name, SCENARIOS)
    return [SCENARIOS[name] for name in dict.fromkeys(names or SCENARIOS)]


def further_policies(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the policies that were typed, each once; refuse what cannot be one."""
    import_from_here(*texts)
    return tuple(name_policies(tuple(dict.fromkeys(texts)), "--policy")) if texts else ()


def print_ratios(suite: Suite, names: Sequence[str]) -> None:
    """Print a row per scenario: the best independent policy, and ratios to it."""
    shown = {scenario.name: scenario for scenario in suite.scenarios}
    summaries = {name: headlines(shown[name], suite.data) for name in names}
    reference, *others = summaries[names[0]]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("scenario", no_wrap=True)
    table.add_column(reference.replace(" ", "\n"), overflow="fold")
    for heading in others:
        table.add_column(BREAKS.sub("\n", heading), justify="right", overflow="fold")
    for name, rows in summaries.items():
        best = rows[reference]
        regret = (
            "-" if best is None else f"{best['policy']}\n{best['regret_per_task']:.1f}".replace("-", "\n")
        )
        table.add_row(name, regret, *(ratio(rows[heading]) for heading in others))
    _print_whole(table)


def print_worst_off(suite: Suite, names: Sequence[str]) -> None:
    """Print a row per scenario: regret of the worst-off fifth, shared, relative to the same rule alone."""
    rows = suite.data.filter(suite.data["scenario"].is_in(names)).to_dicts()
    shared = [name for name in dict.fromkeys(row["policy"] for row in rows) if family_of(name) == "posse"]
    found = {(row["scenario"], row["policy"]): row for row in rows}
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("the worst-off fifth,\nto the same rule alone", overflow="fold")
    for policy in shared:
        table.add_column(BREAKS.sub("\n", policy), justify="right", overflow="fold")
    for name in names:
        table.add_row(name, *(ratio(found.get((name, policy)), "worst_to_same") for policy in shared))
    _print_whole(table)


def _print_whole(table: Table) -> None:
    console = Console()
    if not console.is_terminal:  # a file or a pipe has room for whole numbers
        needed = console.measure(table, options=console.options.update(width=1000)).maximum
        console = Console(width=max(console.width, needed))
    console.print(table)


def ratio(row: Mapping[str, Any] | None, name: str = "to_independent") -> str:
    """Return a ratio of a row above its interval, coloured where that settles who is better."""
    if row is None or row[name] is None:
        return "-"
    middle, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if low is None:
        return f"{middle:.2f}"
    text = f"{middle:.2f}\n{low:.2f}-{high:.2f}"
    return f"[green]{text}[/]" if round(high, 2) < 1 else f"[red]{text}[/]" if round(low, 2) > 1 else text
