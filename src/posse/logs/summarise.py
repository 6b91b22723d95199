"""From a table to the statistics of its tasks, with an account of what was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posse.core.account import Account, Finding
from posse.core.encoder import Encoder
from posse.core.statistics import GramStatistics
from posse.logs.once import scan_once
from posse.logs.prepare import Prepared, Request
from posse.logs.recipe import Recipe
from posse.logs.scan import UNZONED, ZONED, Roles
from posse.logs.scanned import Scanned
from posse.logs.tables import LocalTable, open_table

# Rewards whose variance is below this share of their mean square are equal but for rounding.
CONSTANT_SHARE = 1e-12
NOTHING = "nothing can be learned"


@dataclass(frozen=True, kw_only=True, eq=False)
class LogSummary:
    """The statistics of the tasks of a log, and how its rows became features.

    Attributes
    ----------
    statistics : GramStatistics
        Of T tasks and d features.
    tasks : tuple of str
        The names of the tasks, in order.
    encoder : Encoder
    account : Account
        What was read, what was dropped or filled in, and why.
    roles : Roles
        Which columns held the task, the reward and so on.
    """

    statistics: GramStatistics
    tasks: tuple[str, ...]
    encoder: Encoder
    account: Account
    roles: Roles

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return self.encoder.features

    def __repr__(self) -> str:
        return f"<LogSummary of {len(self.tasks)} tasks, {self.encoder.dim} features: {self.account.source}>"


def summarise(
    source: Any,
    *,
    task: str,
    reward: str,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    arm: str | None = None,
    propensity: str | None = None,
    encoder: Encoder | Recipe | None = None,
    missing: str = "impute",
    engine: str = "local",
    on_rows: Callable[[int], None] | None = None,
) -> LogSummary:
    """Sum up a log of many tasks: a row for each decision, with its task, its features and its reward.

    Memory does not grow with the number of rows. Where the encoder is given, the log is read once. Where it
    has to be learned, too, if all features are numbers, none is missing, and engine is "local"; else twice,
    and a third time for levels of categories.

    Parameters
    ----------
    source
        A Parquet or CSV file, a pattern, a folder or a list of them, a frame of pandas or polars, an Arrow
        table or stream, a DuckDB relation, or a SQL query; with engine "spark" a DataFrame of Spark or the
        name or path of a table; with engine "dask" a DataFrame of Dask.
    task, reward : str
        The columns that hold the name of the task, and the reward. Rows that lack one are dropped.
    features : sequence of str, optional
        The columns that are features; by default all that have no other part.
    weight : str, optional
        The column that says how much a row counts.
    arm : str, optional
        The column that names the arm that was played: each arm then has parameters of its own.
    propensity : str, optional
        The column with the probability by which the arm was chosen. It is no feature; values outside ]0, 1]
        are counted in the account.
    encoder : Encoder or Recipe, optional
        How rows become features; or what an encoder that is learned from the log is to look like. By default
        numbers are standardised, categories have a feature for each common level, dates are taken apart,
        missing values are filled and marked, and there is a constant.
    missing : "impute", "drop" or "refuse"
        What to do about features that are missing, infinite or no numbers: fill them with the mean, drop
        their rows, or raise an error that names them.
    engine : "local", "spark" or "dask"
        Who reads the log.
    on_rows : callable, optional
        Is told, now and then, how many rows have been read; with engine "local".

    Returns
    -------
    LogSummary

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({
    ...     "shop": ["oslo", "bergen"] * 50,
    ...     "price": [1.0, 2.0, None, 4.0] * 25,
    ...     "sold": [3.0, 1.0] * 50,
    ... })
    >>> summary = summarise(log, task="shop", reward="sold")
    >>> summary.tasks, summary.features
    (('bergen', 'oslo'), ('(constant)', 'price', 'price missing'))
    >>> print(summary.account)
    DataFrame of 100 rows: 100 rows read, 100 used, 0 dropped.
    - price: 25 missing values, first in row 3: filled with the mean, and a feature says so
    """
    roles = Roles(task=task, reward=reward, weight=weight, arm=arm, propensity=propensity)
    table = open_table(source, engine)
    if on_rows is not None and engine != "local":
        raise ValueError(f"`on_rows` must be None where others read the log. Got it with engine {engine!r}.")
    request = Request(table, roles, features, encoder, missing)
    found = scan_once(request, on_rows) if isinstance(table, LocalTable) else None
    if found is None:
        prepared = request.prepare()
        found = prepared, prepared.scan(on_rows=on_rows)
    return summary_of(*found)


def summary_of(prepared: Prepared, scanned: Scanned) -> LogSummary:
    """Return the summary of all rows, in the order of the names of tasks, or say why there is none."""
    encoder, statistics = prepared.encoder, scanned.statistics
    account = Account(
        source=prepared.table.name,
        rows=scanned.rows,
        used=scanned.used,
        findings=(*prepared.findings, *_without_plain_times(scanned.findings)),
    )
    if prepared.missing == "refuse" and scanned.used < scanned.rows:
        listed = "; ".join(item.found for item in scanned.findings)
        raise ValueError(f"with `missing` = 'refuse' every row must be whole. Got {listed[:1000]}.")
    if scanned.used == 0:
        raise ValueError(f"a log must have rows that can be used. Got none: {account}")
    names = np.array(scanned.tasks)
    statistics = encoder.expand(statistics)
    order = np.argsort(names)
    if (order != np.arange(len(order))).any():
        statistics, names = statistics.take(order), names[order]
    found = (*account.findings, *_about_tasks(statistics, names, encoder, prepared.roles))
    return LogSummary(
        statistics=statistics,
        tasks=tuple(names.tolist()),
        encoder=encoder,
        account=Account(source=account.source, rows=account.rows, used=account.used, findings=found),
        roles=prepared.roles,
    )


def _without_plain_times(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings without times that have no zone, where no time of their column has one."""
    zoned = {item.column for item in findings if item.what == ZONED}
    return [item for item in findings if item.what != UNZONED or item.column in zoned]


def _about_tasks(statistics: GramStatistics, names: Any, encoder: Encoder, roles: Roles) -> list[Finding]:
    """Return what a reader should know of the tasks and rewards as a whole."""
    found = []
    (single,) = np.nonzero(statistics.count <= 1)
    if len(single):
        what = f"tasks of one row, as {names[single[0]]}"
        done = "kept; nearly all that is known of them comes from the others"
        found.append(Finding(column=roles.task, what=what, count=len(single), done=done))
    place, total = encoder.constant, statistics.square.sum()
    if place is not None:
        mean = statistics.moment[:, place].sum() / statistics.count.sum()
        if total - mean * mean * statistics.count.sum() <= CONSTANT_SHARE * total:
            count = int(statistics.count.sum())
            what = f"equal rewards, {mean:g}"
            found.append(Finding(column=roles.reward, what=what, count=count, done=NOTHING))
    return found
