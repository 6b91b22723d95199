"""`posse list`: what has a name."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from posse.cli.reproduce import PAPER
from posse.cli.shared import plain_errors
from posse.lab.registry import POLICIES, PROBLEMS
from posse.paper.guarantees import GUARANTEES
from posse.paper.guarantees import TITLE as GUARANTEES_TITLE
from posse.paper.registry import BESIDE, FIGURES
from posse.problems.images import IMAGE_SETS
from posse.suite import SCENARIOS


def list_names() -> None:
    """Show the policies, problems, figures and scenarios that have a name."""
    with plain_errors():
        print_names()


def print_names() -> None:
    """Print a table each of policies, problems, figures and scenarios."""
    console = Console()
    for heading, entries in (
        ("Policies", {name: policy.summary for name, policy in POLICIES.items()}),
        ("Problems", {name: problem.summary for name, problem in PROBLEMS.items()}),
        ("Figures", figure_titles()),
        ("Scenarios", {name: scenario.reason for name, scenario in SCENARIOS.items()}),
    ):
        table = Table(box=None, show_header=False, title=heading, title_justify="left", title_style="bold")
        for name, summary in entries.items():
            table.add_row(name, summary)
        console.print(table)


def figure_titles() -> dict[str, str]:
    """Return what each figure that can be asked for shows; some are several."""
    titles = {name: FIGURES[name].title.replace(IMAGE_SETS["mnist"].title, "Images") for name in PAPER}
    for name, parts in BESIDE.items():
        titles[name] = "; ".join(FIGURES[part].title for part in parts)
    return {**titles, GUARANTEES: GUARANTEES_TITLE}
