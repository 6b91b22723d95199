"""`posse list`: what has a name."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import plain_errors
from posse.lab.registry import POLICIES, PROBLEMS
from posse.paper.registry import FIGURES
from posse.suite.scenarios import SCENARIOS


def command(context: typer.Context) -> None:
    """Show the policies, problems, figures and scenarios that have a name."""
    with plain_errors(context):
        console = Console()
        for heading, entries in (
            ("Policies", {name: policy.summary for name, policy in POLICIES.items()}),
            ("Problems", {name: problem.summary for name, problem in PROBLEMS.items()}),
            ("Figures", {name: figure.summary for name, figure in FIGURES.items()}),
            ("Scenarios", {name: scenario.reason for name, scenario in SCENARIOS.items()}),
        ):
            table = Table(
                box=None, show_header=False, title=heading, title_justify="left", title_style="bold"
            )
            for name, summary in entries.items():
                table.add_row(name, summary)
            console.print(table)
