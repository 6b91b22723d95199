"""`posse status`: how a live agent or a service is doing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import plain_errors
from posse.cli.services import is_service, summary_at
from posse.live import read_status

# What is shown, under which heading, by the names of the status's fields.
SHOWN = {
    "tasks": "tasks",
    "decisions": "decisions",
    "rewards": "rewards that count",
    "pending": "pending: wait for a reward",
    "late": "late rewards",
    "expired": "expired",
    "defaults": "count with the default reward",
    "versions": "versions",
    "version": "live version",
    "backlog": "rows that the learner has not taken",
    "mode": "mode",
    "refitting": "refit under way",
    "frozen": "frozen",
    "automatic": "refits are adopted by themselves",
    "entropy": "entropy of choices, 1 at random",
    "sample_ratio": "sample ratio, chance",
    "match_rate": "decided as was played",
    "reward_played": "mean reward, as played",
}


def command(
    context: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            metavar="STORE",
            help="Of an agent or a service: a file, sqlite:PATH, or the address postgresql://...",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how a live agent or a service is doing, running or not. Exit code 3 if there is an alarm."""
    with plain_errors(context):
        found = summary_at(path) if is_service(path) else asdict(read_status(path.removeprefix("sqlite:")))
        if as_json:
            print(json.dumps(found, indent=2))
        else:
            console = Console()
            for name, space in found.get("spaces", {}).items():
                console.print(f"Space {name}", highlight=False)
                show(console, space)
                console.print()
            show(console, found)
            show_alarms(console, found["alarms"])
    if found["alarms"]:
        raise typer.Exit(3)


def show(console: Console, status: Mapping[str, Any]) -> None:
    """Print a status, or what of it there is, as a table."""
    table = Table(box=None, show_header=False)
    for name, words in SHOWN.items():
        if status.get(name) is not None:
            table.add_row(words, in_words(status[name]))
    for words, name, low, high in (
        ("mean reward, where both agree", "reward_matched", "matched_low", "matched_high"),
        ("lift over the control group", "lift", "lift_low", "lift_high"),
    ):
        if status.get(name) is not None:
            interval = f"{in_words(status[low])} to {in_words(status[high])}"
            table.add_row(words, f"{in_words(status[name])} ({interval})")
    console.print(table)


def show_alarms(console: Console, alarms: Sequence[str]) -> None:
    """Print alarms, or that there are none."""
    for alarm in alarms:
        console.print(f"[red]Alarm:[/] {alarm}", soft_wrap=True, highlight=False)
    if not alarms:
        console.print("No alarms.")


def in_words(value: object) -> str:
    """Return a number or word as a person would write it.

    Examples
    --------
    >>> in_words(12000), in_words(True), in_words(0.12345), in_words("live")
    ('12,000', 'yes', '0.123', 'live')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
