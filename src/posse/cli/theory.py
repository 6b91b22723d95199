"""`posse theory`: what the paper's theorems say of a problem's size."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import option_of, plain_errors
from posse.paper.expectations import expectations
from posse.paper.theory import Setting


def command(
    context: typer.Context,
    dim: Annotated[int, typer.Option(help="d, the number of features.")] = 20,
    rank: Annotated[int, typer.Option(help="k, the dimension of the shared representation.")] = 2,
    tasks: Annotated[int, typer.Option(help="T, the number of tasks.")] = 50,
    rounds: Annotated[int, typer.Option(help="N, the number of rounds.")] = 10_000,
    arms: Annotated[int, typer.Option(help="K, the arms on offer in each round.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Say what regret the paper's theorems expect, term by term, and whether sharing should pay.

    Constants are 1 and logarithms are left out: compare terms with each other, not with a measured regret.

    For example: posse theory --dim 30 --rank 3 --tasks 100 --rounds 10000
    """
    with plain_errors(context):
        setting = Setting(horizon=rounds, n_tasks=tasks, dim=dim, rank=rank, n_arms=arms)
        report = {name: expectations(setting, name) for name in ("finite", "infinite")}
        if as_json:
            print(json.dumps(by_options({"setting": asdict(setting), **report}), indent=2))
            return
        console = Console()
        for name, title in {"finite": "Finite action sets", "infinite": "Ellipsoids"}.items():
            console.print(terms_table(report[name]["bounds"], title, tasks))
            for sentence in report[name]["in_words"]:
                console.print(sentence, highlight=False)
            console.print()


def terms_table(bounds: list[dict[str, Any]], title: str, n_tasks: int) -> Table:
    """Return the terms of some bounds as a table, for all tasks and per task."""
    table = Table("", "term", title=title, title_justify="left", caption_justify="left")
    for heading in ("all tasks", "per task"):
        table.add_column(heading, justify="right")
    table.add_column("paid for")
    for bound in bounds:
        for term in bound["terms"]:
            value = term["value"]
            row = (f"{value:,.0f}", f"{value / n_tasks:,.1f}", term["meaning"])
            table.add_row(bound["theorem"], term["formula"], *row)
    return table


def by_options(value: Any) -> Any:
    """Return a value with the command's names in the place of the library's: `tasks`, not `n_tasks`."""
    if isinstance(value, dict):
        return {option_of(name)[2:].replace("-", "_"): by_options(item) for name, item in value.items()}
    return [by_options(item) for item in value] if isinstance(value, list | tuple) else value
