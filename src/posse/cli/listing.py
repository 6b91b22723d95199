"""`posse list`: what has a name."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import plain_errors
from posse.core.extras import MissingExtraError
from posse.lab.registry import POLICIES, PROBLEMS


def command(context: typer.Context) -> None:
    """Show the policies, problems, figures and scenarios that have a name."""
    with plain_errors(context):
        console = Console()
        print_names(console, "Policies", {name: policy.summary for name, policy in POLICIES.items()})
        print_names(console, "Problems", {name: problem.summary for name, problem in PROBLEMS.items()})
        try:
            from posse.paper.registry import FIGURES
            from posse.suite.scenarios import SCENARIOS
        except MissingExtraError as error:
            console.print(f"Figures and scenarios: {error}", highlight=False, markup=False, soft_wrap=True)
            return
        print_names(console, "Figures", {name: figure.summary for name, figure in FIGURES.items()})
        print_names(console, "Scenarios", {name: scenario.reason for name, scenario in SCENARIOS.items()})


def print_names(console: Console, heading: str, summaries: dict[str, str]) -> None:
    """Print a table of names and what they stand for."""
    table = Table(box=None, show_header=False, title=heading, title_justify="left", title_style="bold")
    for name, summary in summaries.items():
        table.add_row(name, summary)
    console.print(table)
