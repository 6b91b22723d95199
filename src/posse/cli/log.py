"""`posse log`: from an agent's journal to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posse.cli.console import plain_errors
from posse.cli.services import export_space, is_service
from posse.live.files import export
from posse.numerics.checks import check_choice


def command(
    context: typer.Context,
    action: Annotated[str, typer.Argument(help="What to do: export.")],
    store: Annotated[
        str,
        typer.Argument(help="Of an agent or a service: a file, sqlite:PATH, or the address postgresql://..."),
    ],
    out: Annotated[Path, typer.Argument(help="The Parquet file to write.")],
    every_arm: Annotated[
        bool,
        typer.Option(
            "--every-arm", help="A row for every arm on offer, which `posse evaluate` needs; of one agent."
        ),
    ] = False,
    space: Annotated[
        str | None,
        typer.Option(help="Of a service: NAME, or NAME.VERSION for an earlier version of a space."),
    ] = None,
) -> None:
    """Write an agent's decisions to a Parquet file: a row each, with propensities, features and reward."""
    with plain_errors(context):
        check_choice("the action of posse log", action, ["export"])
        if is_service(store):
            if every_arm:
                raise ValueError("`every_arm` must be False for a service; it is for one agent. Got True.")
            written = export_space(store, out, space)
        elif space is not None:
            raise ValueError(f"`space` must be that of a service; this is one agent. Got {space!r}.")
        else:
            written = export(store.removeprefix("sqlite:"), out, every_arm=every_arm)
        print(f"{written:,} decisions in {out}.")
