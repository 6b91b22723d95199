"""What the commands about logs have in common: options, progress, what is said beside the answer."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from posse.cli.console import LINE_SECONDS, errors
from posse.core.codec import load
from posse.core.estimate import ConvergenceWarning
from posse.core.model import Model

LOG_HELP = "A Parquet or CSV file, a pattern, a folder, or a SQL query about files."
Log = Annotated[
    str,
    typer.Argument(help="A Parquet or CSV file, a pattern in quotes, a folder, or a SQL query about files."),
]
Logs = Annotated[list[str], typer.Argument(metavar="{log}...", help=f"{LOG_HELP} Or several files.")]
Categories = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Columns of numbers that are names, as codes of regions."),
]
Task = Annotated[str, typer.Option(help="The column that names the task of each row, as the shop.")]
Reward = Annotated[str, typer.Option(help="The column that holds the reward.")]
Features = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="The columns that are features (default: all others)."),
]
Arm = Annotated[
    str | None, typer.Option(help="The column that names the arm, if arms have parameters of their own.")
]
Weight = Annotated[str | None, typer.Option(help="The column that says how much a row counts.")]
Propensity = Annotated[
    str | None, typer.Option(help="The column with the probability of the choice: it is no feature.")
]
Missing = Annotated[
    str, typer.Option(help="What to do about gaps in features: impute, drop (the row) or refuse.")
]


def one_source(logs: Sequence[str]) -> str | list[str]:
    """Return what was typed as a log as a source: one thing, or several files.

    Examples
    --------
    >>> one_source(["logs/*.csv"]), one_source(["1.csv", "2.csv"])
    ('logs/*.csv', ['1.csv', '2.csv'])
    """
    return logs[0] if len(logs) == 1 else list(logs)


def listed(text: str | None) -> tuple[str, ...]:
    """Return the names in a text, between commas.

    Examples
    --------
    >>> listed("price, weather"), listed(None)
    (('price', 'weather'), ())
    """
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def beside(text: Any) -> None:
    """Print something that is not the answer, as an account, to stderr."""
    errors.print(str(text), highlight=False, markup=False, soft_wrap=True)


@contextmanager
def showing_rows(description: str) -> Iterator[Callable[[int], None]]:
    """Show how many rows have been read: beside a spinner on a terminal, else a line every minute."""
    if not errors.is_terminal:
        yield _Lines(description)
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(description)
        yield lambda rows: progress.update(task, description=f"{description}: {rows:,} rows")


class _Lines:
    """Prints a line of progress every minute."""

    def __init__(self, description: str) -> None:
        self.description, self.last = description, time.monotonic()

    def __call__(self, rows: int) -> None:
        now = time.monotonic()
        if now - self.last >= LINE_SECONDS:
            self.last = now
            beside(f"{self.description}: {rows:,} rows")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Turn each warning of a fit into one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield
    for warning in caught:
        beside(f"Warning: {warning.message}")


def load_model(path: Any) -> Model:
    """Return the model in a file, or say what is there instead."""
    found = load(path)
    if not isinstance(found, Model):
        raise ValueError(f"a model must be what `posse fit` wrote. Got {path}: {type(found).__name__}.")
    return found


def typed(context: typer.Context, command: str) -> str:
    """Return a command as it was typed, with all that differs from its defaults."""
    words = ["posse", command]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if value == parameter.default or value is None:
            continue
        if parameter.param_type_name == "argument":
            words += [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        elif value is True:
            words.append(parameter.opts[0])
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [parameter.opts[0], str(one)]
    return shlex.join(words)
