"""From a table to a model of its tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from posse.core.encoder import Encoder
from posse.core.estimate import WITH_COVARIANCE
from posse.core.model import Model
from posse.core.protocols import Estimator
from posse.estimators import FactorPrior
from posse.logs.recipe import Recipe
from posse.logs.summarise import NOTHING, LogSummary, summarise


def fit(
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
    estimator: Estimator | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Model:
    """Learn the parameters of every task of a log, each from its own rows and from all other tasks.

    Parameters
    ----------
    source
        A Parquet or CSV file, a pattern, a folder or a list of them, a frame of pandas or polars, an Arrow
        table or stream, a DuckDB relation, or a SQL query; see `summarise`.
    task, reward : str
        The columns that hold the name of the task, and the reward. Rows that lack one are dropped.
    features : sequence of str, optional
        The columns that are features; by default all that have no other part.
    weight : str, optional
        The column that says how much a row counts.
    arm : str, optional
        The column that names the arm that was played: each arm then has parameters of its own.
    propensity : str, optional
        The column with the probability by which the arm was chosen, which is no feature.
    encoder : Encoder or Recipe, optional
        How rows become features; or what an encoder that is learned from the log is to look like.
    missing : "impute", "drop" or "refuse"
        What to do about features that are missing, infinite or no numbers: fill them with the mean, drop
        their rows, or raise an error that names them.
    engine : "local", "spark" or "dask"
        Who reads the log.
    estimator : Estimator, optional
        What the parameters are learned by, with a covariance; `FactorPrior(mean="level")` by default.
    on_rows : callable, optional
        Is told, now and then, how many rows have been read; with engine "local".

    Returns
    -------
    Model
        Which predicts, is explained by `explain`, and goes to a file by `posse.save`.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({
    ...     "shop": ["oslo", "bergen"] * 50,
    ...     "price": [float(price % 7) for price in range(100)],
    ... })
    >>> log["sold"] = 20.0 - log["price"] + 3.0 * (log["shop"] == "oslo")
    >>> model = fit(log, task="shop", reward="sold")
    >>> model.predict({"shop": ["oslo", "bergen"], "price": [5.0, 5.0]}).mean.round()
    array([18., 15.])
    """
    chosen = _with_covariance(estimator)
    summary = summarise(
        source,
        task=task,
        reward=reward,
        features=features,
        weight=weight,
        arm=arm,
        propensity=propensity,
        encoder=encoder,
        missing=missing,
        engine=engine,
        on_rows=on_rows,
    )
    return model_of(summary, chosen)


def model_of(summary: LogSummary, estimator: Estimator | None = None) -> Model:
    """Learn the parameters of every task of a log that has been summed up; warn if its rewards are all equal.

    Parameters
    ----------
    summary : LogSummary
        What `summarise` returned.
    estimator : Estimator, optional
        What the parameters are learned by, with a covariance; `FactorPrior(mean="level")` by default.
    """
    for finding in summary.account.findings:
        if finding.done == NOTHING:
            warnings.warn(str(finding), stacklevel=2)
    return Model(
        estimate=_with_covariance(estimator).fit(summary.statistics),
        statistics=summary.statistics,
        encoder=summary.encoder,
        tasks=summary.tasks,
        task=summary.roles.task,
        reward=summary.roles.reward,
        arm=summary.roles.arm,
        account=summary.account,
    )


def _with_covariance(estimator: Estimator | None) -> Estimator:
    """Return an estimator that says how uncertain it is, the usual one if none is given."""
    if estimator is None:
        return FactorPrior(mean="level")
    if not getattr(estimator, "gives_covariance", False):
        raise ValueError(
            f"`estimator` must give a covariance, as these do: {WITH_COVARIANCE}. Got {estimator!r:.200}."
        )
    return estimator
