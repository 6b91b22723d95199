"""`posse log`: from an agent's journal to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posse.cli.console import plain_errors
from posse.live.files import export
from posse.numerics.checks import check_choice


def command(
    context: typer.Context,
    action: Annotated[str, typer.Argument(help="What to do: export.")],
    path: Annotated[str, typer.Argument(help="The file of an agent, or the address postgresql://...")],
    out: Annotated[Path, typer.Argument(help="The Parquet file to write.")],
) -> None:
    """Write an agent's decisions to a Parquet file: a row each, with propensities, features and reward."""
    with plain_errors(context):
        check_choice("the action of posse log", action, ["export"])
        print(f"{export(path, out):,} decisions in {out}.")
