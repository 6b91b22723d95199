"""`posse explain`: what is known of one task, and who says so."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from posse.cli.console import plain_errors
from posse.cli.log_options import load_model
from posse.logs import Effect, Explanation, explain

# So many features are shown, the largest effects first, unless all are asked for.
MOST_SHOWN = 20


def command(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A file that `posse fit` wrote.")],
    task: Annotated[str, typer.Argument(help="The name of a task of the log.")],
    everything: Annotated[
        bool, typer.Option("--all", help=f"Show all features, not the {MOST_SHOWN} largest effects.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Say what each feature is worth in one task: by its own rows, by all other tasks, and by both.

    "own rows" is ridge regression on the task's rows alone. "new task" is what the log makes one expect of a
    task that was never seen. "both" is what the model believes. Each is a mean and its standard deviation.
    "own weighs" says how much of the uncertainty about a new task the own rows have removed: 0 % is all from
    others, 100 % all own. A dash is a feature that does not vary in the task's rows; under "own weighs", one
    of which the prior itself is too uncertain to tell.

    Numbers are standardised, so an effect is that of one standard deviation, which "sd" gives in units of the
    column (days for a trend); "per unit" is the effect of one such unit.

    For example: posse explain sales.posse Oslo
    """
    with plain_errors(context):
        found = explain(load_model(model), task)
        if as_json:
            print(json.dumps(as_data(found), indent=2, allow_nan=False))
            return
        console = Console(highlight=False)
        effects = sorted(found.effects, key=lambda effect: -abs(effect.together))
        shown = list(found.effects) if everything or len(effects) <= MOST_SHOWN else effects[:MOST_SHOWN]
        console.print(f"[bold]{escape(found.task)}[/]: {escape(in_words(found))}", soft_wrap=True)
        console.print(effects_table(shown))
        if len(shown) < len(effects):
            console.print(f"{len(effects) - len(shown)} smaller effects are not shown; --all shows them.")


def in_words(found: Explanation) -> str:
    """Return what is known of a task as a whole, in a line."""
    text = f"{found.rows:,.6g} rows, rewards have a standard deviation of {found.noise:.3g} around their mean"
    if found.alone is None:
        return f"{text}."
    return f"{text}; unlike all other tasks with probability {found.alone:.2f}."


def effects_table(effects: list[Effect]) -> Table:
    """Return effects as a table."""
    table = Table("feature", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("own rows", "new task", "both", "own weighs", "sd", "per unit"):
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    for effect in effects:
        table.add_row(
            escape(effect.feature),
            with_deviation(effect.own, effect.own_deviation),
            with_deviation(effect.others, effect.others_deviation),
            with_deviation(effect.together, effect.together_deviation),
            "-" if math.isnan(effect.weight) else f"{effect.weight:.0%}",
            "" if effect.scale is None else f"{effect.scale:.3g}",
            "" if effect.per_unit is None else f"{effect.per_unit:.3g}",
        )
    return table


def with_deviation(value: float, deviation: float) -> str:
    """Return a number and its standard deviation, to about three digits of the latter's size.

    Examples
    --------
    >>> with_deviation(1.2345, 0.041), with_deviation(123.4, 25.0), with_deviation(math.nan, math.nan)
    ('1.234±0.041', '123±25', '-')
    """
    if math.isnan(value):
        return "-"
    if math.isnan(deviation):
        return f"{value:.3g}±?"
    digits = max(0, 1 - math.floor(math.log10(deviation))) if deviation > 0 else 3
    return f"{value:.{digits}f}±{deviation:.{digits}f}"


def as_data(found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain data, with nothing where its own rows say nothing."""
    effects = [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in {**asdict(effect), "per_unit": effect.per_unit}.items()
        }
        for effect in found.effects
    ]
    return {**asdict(found), "effects": effects}
