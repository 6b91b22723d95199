"""`posse diagnose`: whether sharing helps on a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from posse.cli.console import plain_errors
from posse.cli.log_options import (
    Arm,
    Categories,
    Features,
    Logs,
    Missing,
    Propensity,
    Reward,
    Task,
    Weight,
    beside,
    listed,
    one_source,
    showing_rows,
    typed,
)
from posse.logs import Diagnosis, Recipe, diagnose
from posse.logs.contenders import CONTENDERS
from posse.logs.diagnose import PARTS
from posse.logs.diagnosis import TaskGain
from posse.logs.directions import LEAST_SHARE
from posse.logs.verdict import DO_NOT, SHARE, UNCLEAR, Gain

COLOURS = {SHARE: "green", DO_NOT: "red", UNCLEAR: "yellow"}
# How many tasks, and loadings of a direction, are named.
MOST_TASKS, MOST_LOADINGS = 5, 4


def command(
    context: typer.Context,
    log: Logs,
    task: Task,
    reward: Reward,
    features: Features = None,
    arm: Arm = None,
    weight: Weight = None,
    propensity: Propensity = None,
    time: Annotated[
        str | None,
        typer.Option(help="The column with the time: windows are then predicted from those before them."),
    ] = None,
    categories: Categories = None,
    missing: Missing = "impute",
    parts: Annotated[int, typer.Option(help="How many parts rows are dealt to.")] = PARTS,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with all of it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON, and nothing else.")] = False,
) -> None:
    """Say whether the tasks of a log should learn from each other: by how much, who, and along what.

    A log has a row for each decision: its task, features, and the reward. Rows are held out in turns and
    predicted by each task alone, with a level of its own, and with what the tasks share. The gain is the
    part of the error beyond noise that sharing saves.

    The verdict is "share" if the interval of the gain, of about 95 %, lies above 0, "do not share" if tasks
    have no direction in common or the interval ends below 10 %, and "unclear" otherwise.

    For example: posse diagnose sales.parquet --task shop --reward sold --html page.html

    With --time, rows of a window are predicted from earlier ones: if tasks drift, random rows would hide it.
    """
    with plain_errors(context):
        with showing_rows(f"Reading {' '.join(log)}") as progress:
            found = diagnose(
                one_source(log),
                task=task,
                reward=reward,
                features=None if features is None else listed(features),
                weight=weight,
                arm=arm,
                propensity=propensity,
                time=time,
                encoder=Recipe(categories=listed(categories)),
                missing=missing,
                n_parts=parts,
                on_rows=progress,
            )
        if html is not None:
            from posse.logs.page import write_diagnosis

            write_diagnosis(found, html, typed(context, "diagnose"))
        if json:
            print(found.to_json())
            return
        show(found)
        if found.account is not None:
            beside(found.account)
        if html is not None:
            print(html)


def show(found: Diagnosis) -> None:
    """Print the verdict and its reason, the contenders, and who gains, stands alone and shares what."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold {COLOURS[found.verdict]}]{found.verdict}[/]: {escape(found.reason)}")
    if not found.errors:
        return
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("who predicts")
    table.add_column("held-out error / noise", justify="right")
    table.add_column("gain over alone", justify="right")
    for name, error in found.errors.items():
        table.add_row(CONTENDERS[name], f"{error:.3f}", in_percent(found.gains.get(name)))
    console.print(table)
    for line in lines(found):
        console.print(escape(line))


def lines(found: Diagnosis) -> list[str]:
    """Return what there is to say beside the verdict, a line each, after an empty one."""
    strong = [direction for direction in found.directions if direction.share >= LEAST_SHARE]
    said = [
        f"Direction {number}, {direction.share:.0%} of the variance between tasks: "
        + ", ".join(f"{name} {value:+.2g}" for name, value in direction.loadings[:MOST_LOADINGS])
        for number, direction in enumerate(strong, 1)
    ]
    if found.verdict == SHARE:
        said.append(f"Gain most: {names(found.gaining_most[:MOST_TASKS])}")
    if found.standing_alone:
        said.append(f"Stand alone: {names(found.standing_alone)}")
    said += [
        f"A new task reaches {need.error:g} x noise with {in_rows(need.shared)}, "
        f"alone with {in_rows(need.alone)}"
        for need in found.rows_needed
    ]
    return ["", *said] if said else []


def names(tasks: Sequence[TaskGain]) -> str:
    """Return the names of the first tasks with their rows, and how many more there are."""
    named = ", ".join(f"{task.name} ({task.rows:,.0f} rows)" for task in tasks[:MOST_TASKS])
    more = len(tasks) - MOST_TASKS
    return f"{named}, and {more} more" if more > 0 else named


def in_percent(gain: Gain | None) -> str:
    """Return a gain with its interval in words.

    Examples
    --------
    >>> in_percent(Gain(value=0.5, low=-0.25, high=1.0)), in_percent(None)
    ('50% (-25% to 100%)', '')
    """
    return "" if gain is None else f"{gain.value:.0%} ({gain.low:.0%} to {gain.high:.0%})"


def in_rows(number: float | None) -> str:
    """Return a number of rows in words.

    Examples
    --------
    >>> in_rows(12.4), in_rows(None)
    ('12 rows', 'more rows than there were')
    """
    return "more rows than there were" if number is None else f"{number:.0f} rows"
