"""`posse predict`: a table with what a model expects of its rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from posse.cli.console import plain_errors
from posse.cli.log_options import beside, load_model, showing_rows
from posse.logs import Predictions
from posse.logs.writing import check_ending, write_csv, write_table


def command(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A file that `posse fit` wrote.")],
    table: Annotated[
        str,
        typer.Argument(
            help="A Parquet or CSV file, a pattern in quotes, a folder, or a SQL query about files, with the "
            "columns of the log; the reward need not be there."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the table goes, .csv or .parquet (default: CSV, to the terminal)."
        ),
    ] = None,
) -> None:
    """Predict the reward of each row of a table: its columns, and three more.

    `prediction` is the expected reward. `deviation` is the standard deviation of that expectation, not of a
    single reward. `known_task` is false for a task that was not in the log: it is predicted from what is
    known of new tasks. Gaps in features are filled as they were in the log; a row whose arm is not known has
    no prediction. What was filled is counted on stderr.

    For example: posse predict sales.posse tomorrow.csv --out predictions.parquet

    Rows are read and written in batches, so the table may be larger than the memory.
    """
    with plain_errors(context):
        if out is not None:
            check_ending(out)
        known = load_model(model)
        with showing_rows(f"Predicting {table}") as show:
            predicted = Predictions(known, table, on_rows=show)
            if out is None:
                write_csv(sys.stdout, predicted.schema, predicted)
            else:
                write_table(out, predicted.schema, predicted)
        beside(predicted.account)
        if out is not None:
            print(out)
