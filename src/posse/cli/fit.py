"""`posse fit`: from a log to a model in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posse.cli.console import plain_errors
from posse.cli.log_options import (
    Arm,
    Categories,
    Features,
    Logs,
    Missing,
    Propensity,
    Reward,
    Task,
    Weight,
    beside,
    listed,
    one_source,
    plain_warnings,
    showing_rows,
)
from posse.core.codec import save
from posse.core.model import Model
from posse.estimators import FactorEstimate, FactorPrior
from posse.logs import Recipe, model_of, summarise

# A task stands alone if that is as probable as this; and so many are named.
SURELY, MOST_NAMED = 0.99, 5


def command(
    context: typer.Context,
    log: Logs,
    task: Task,
    reward: Reward,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the model goes.")] = Path("model.posse"),
    features: Features = None,
    arm: Arm = None,
    weight: Weight = None,
    propensity: Propensity = None,
    categories: Categories = None,
    missing: Missing = "impute",
    rank: Annotated[
        str, typer.Option(help="How many directions tasks share: auto lets the log say, 0 is none.")
    ] = "auto",
) -> None:
    """Learn what every task of a log is like, from its own rows and from all other tasks.

    A log has a row for each decision: its task, features, and the reward. Numbers are standardised,
    categories have a feature for each common level, dates are taken apart, gaps are filled and marked. What
    was read, dropped or filled is said on stderr.

    For example: posse fit sales.parquet --task shop --reward sold --out sales.posse

    The file holds all that is needed to go on: `posse predict` adds predictions to a table, `posse explain`
    says what is known of one task and why, and Python reads it by `posse.load`.
    """
    with plain_errors(context):
        estimator = FactorPrior(rank=rank if not rank.isdecimal() else int(rank), mean="level")
        with showing_rows(f"Reading {' '.join(log)}") as show:
            summary = summarise(
                one_source(log),
                task=task,
                reward=reward,
                features=None if features is None else listed(features),
                weight=weight,
                arm=arm,
                propensity=propensity,
                encoder=Recipe(categories=listed(categories)),
                missing=missing,
                on_rows=show,
            )
        with plain_warnings():
            model = model_of(summary, estimator)
        save(model, out)
        beside(model.account)
        print("\n".join(in_words(model)))
        print(out)


def in_words(model: Model) -> list[str]:
    """Return what a model has learned, in a few lines."""
    n_tasks, dim, account = len(model.tasks), model.encoder.dim, model.account
    lines = [f"{n_tasks:,} tasks, {dim:,} features, {account.used:,} of {account.rows:,} rows."]
    estimate = model.estimate
    assert isinstance(estimate, FactorEstimate)
    if estimate.rank == 0:
        return [*lines, "Tasks share no direction that these rows could show: each is nearly on its own."]
    lines.append(f"Tasks share {estimate.rank} direction{'s' if estimate.rank > 1 else ''}.")
    odd = [name for name, alone in zip(model.tasks, estimate.alone, strict=True) if alone > SURELY]
    if odd:
        more = f" and {len(odd) - MOST_NAMED:,} more" if len(odd) > MOST_NAMED else ""
        lines.append(f"Unlike all others: {', '.join(odd[:MOST_NAMED])}{more}.")
    return lines
