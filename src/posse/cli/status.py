"""`posse status`: how a live agent is doing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import plain_errors
from posse.live import Status, read_status

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
    path: Annotated[str, typer.Argument(help="The file of an agent, or the address postgresql://...")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how a live agent is doing, whether or not it is running. Exit code 3 if there is an alarm."""
    with plain_errors(context):
        status = read_status(path)
        if as_json:
            print(json.dumps(asdict(status), indent=2))
        else:
            show(Console(), status)
    if status.alarms:
        raise typer.Exit(3)


def show(console: Console, status: Status) -> None:
    """Print a status as a table, alarms last."""
    table = Table(box=None, show_header=False)
    for name, words in SHOWN.items():
        value = getattr(status, name)
        if value is not None:
            table.add_row(words, in_words(value))
    for words, value, low, high in (
        ("mean reward, where both agree", status.reward_matched, status.matched_low, status.matched_high),
        ("lift over the control group", status.lift, status.lift_low, status.lift_high),
    ):
        if value is not None:
            table.add_row(words, f"{in_words(value)} ({in_words(low)} to {in_words(high)})")
    console.print(table)
    for alarm in status.alarms:
        console.print(f"[red]Alarm:[/] {alarm}", soft_wrap=True, highlight=False)
    if not status.alarms:
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
