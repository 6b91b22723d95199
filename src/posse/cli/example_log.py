"""`posse example-log`: a synthetic log to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posse.cli.console import plain_errors
from posse.logs import example_log


def command(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where the log goes, .csv or .parquet.")],
    shops: Annotated[int, typer.Option(help="How many shops there are.")] = 60,
    rows: Annotated[int, typer.Option(help="How many rows there are.")] = 12_000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal logs.")] = 0,
    unrelated: Annotated[bool, typer.Option("--unrelated", help="Let shops have nothing in common.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Leave out what is wrong with it.")] = False,
) -> None:
    """Write a log of sales in shops as logs are: unequal shops, text for numbers, gaps, useless columns.

    Columns are order, shop, time, weather, price, stock, distance, currency, comment, offer (the arm),
    propensity and reward. What an offer brings in a shop depends on the visit in one of two ways, which shops
    mix, and a little on the shop; so sharing helps, unless --unrelated.

    For example: posse example-log sales.csv

    Then: posse fit sales.csv --task shop --reward reward --arm offer --propensity propensity
    """
    with plain_errors(context):
        log = example_log(shops=shops, rows=rows, seed=seed, unrelated=unrelated, clean=clean)
        log.write(file)
        print(f"{log.table.num_rows:,} rows of {len(log.shops):,} shops: {file}")
