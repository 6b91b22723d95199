"""The command: reproduce the paper, compare policies, list what there is."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from posse.cli import compare, listing, reproduce, simulate, theory

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.command()(reproduce.reproduce)
app.command()(compare.compare)
app.command()(simulate.simulate)
app.command()(theory.theory)
app.command("list")(listing.list_names)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"posse {version('posse')}")
        raise typer.Exit


@app.callback()
def options(
    version_wanted: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Many bandits, one representation.

    `posse reproduce` runs the paper's experiments and writes a page with figures and verdicts.
    `posse compare` runs a suite of scenarios and writes a page that shows who wins where, by how much.
    `posse simulate` compares policies on a problem in one line.
    `posse theory` says what the paper's theorems expect of a problem's size.
    `posse list` shows the names to use.
    """


def main() -> None:
    """Run the command."""
    app(prog_name="posse")
