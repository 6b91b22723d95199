"""`posse list`: what has a name."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import option_of, plain_errors
from posse.core.extras import MissingExtraError
from posse.lab.registry import POLICIES, PROBLEMS

# The options that say what parameters are by default, where they are called otherwise.
TOLD_BY = {"rank": "policy_rank", "prior_rank": "policy_rank"}


def command(context: typer.Context) -> None:
    """Show the policies, problems, figures and scenarios that have a name."""
    with plain_errors(context):
        console = Console()
        print_names(console, "Policies", {with_parameters(name): POLICIES[name].summary for name in POLICIES})
        print_names(console, "Parameters of policies", parameters_in_words())
        print_names(console, "Problems", {name: problem.summary for name, problem in PROBLEMS.items()})
        try:
            from posse.paper.registry import FIGURES
            from posse.suite.scenarios import SCENARIOS
        except MissingExtraError as error:
            console.print(f"Figures and scenarios: {error}", highlight=False, markup=False, soft_wrap=True)
            return
        print_names(console, "Figures", {name: figure.summary for name, figure in FIGURES.items()})
        print_names(console, "Scenarios", {name: scenario.reason for name, scenario in SCENARIOS.items()})


def with_parameters(name: str) -> str:
    """Return the name of a policy, followed by the names of its parameters.

    Examples
    --------
    >>> with_parameters("mlingreedy"), with_parameters("random")
    ('mlingreedy(rank, penalty)', 'random')
    """
    parameters = POLICIES[name].parameters
    return f"{name}({', '.join(parameters)})" if parameters else name


def parameters_in_words() -> dict[str, str]:
    """Return what each parameter of a policy means and whose it is, where it means different things."""
    owners: dict[tuple[str, str], list[str]] = {}
    for name, policy in POLICIES.items():
        for key, parameter in policy.parameters.items():
            option = option_of(TOLD_BY.get(parameter.option, parameter.option))
            default = f"what {option} says" if parameter.option else parameter.default
            owners.setdefault((key, f"{parameter.help.rstrip('.')} (default: {default})."), []).append(name)
    meanings = [key for key, _ in owners]
    return {
        key if meanings.count(key) == 1 else f"{key} of {', '.join(names)}": words
        for (key, words), names in owners.items()
    }


def print_names(console: Console, heading: str, summaries: dict[str, str]) -> None:
    """Print a table of names and what they stand for."""
    table = Table(box=None, show_header=False, title=heading, title_justify="left", title_style="bold")
    for name, summary in summaries.items():
        table.add_row(name, summary)
    console.print(table)
