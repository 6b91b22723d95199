"""From a table to an answer: whether sharing helps, and whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from posse.core.encoder import Encoder
from posse.logs.diagnosis import Diagnosis, diagnose_parts
from posse.logs.parts import summarise_parts
from posse.logs.recipe import Recipe
from posse.logs.scan import Roles
from posse.numerics.linalg import WIDE

PARTS = 10


def diagnose(
    source: Any,
    *,
    task: str,
    reward: str,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    arm: str | None = None,
    propensity: str | None = None,
    time: str | None = None,
    encoder: Encoder | Recipe | None = None,
    missing: str = "impute",
    n_parts: int = PARTS,
    seed: int = 0,
    on_rows: Callable[[int], None] | None = None,
) -> Diagnosis:
    """Say whether the tasks of a log should learn from each other: by how much, who, and along what.

    Rows of each task are dealt to parts at random, and each part is predicted by fits to all others: each
    task alone, by one regression for all, by a hard low rank, and by the learned prior. See `Diagnosis`.
    Memory does not grow with rows: the parts of T tasks and d features take 8 P T d^2 bytes.

    Parameters
    ----------
    source
        A Parquet or CSV file, a pattern, a folder or a list of them, a frame of pandas or polars, an Arrow
        table or stream, a DuckDB relation, or a SQL query.
    task, reward : str
        The columns that hold the name of the task, and the reward.
    features : sequence of str, optional
        The columns that are features; by default all that have no other part.
    weight, arm, propensity : str, optional
        The columns that say how much a row counts, which arm was played, if arms have parameters of their
        own, and by which probability.
    time : str, optional
        The column with the time of each row, dates or numbers. Parts are then windows in time, and each is
        predicted from those before it: if tasks drift, random rows would hide it.
    encoder : Encoder or Recipe, optional
        How rows become features, or what an encoder that is learned from the log is to look like.
    missing : "impute", "drop" or "refuse"
        What to do about features that are missing.
    n_parts : int
        How many parts, 2 or more.
    seed : int
        Of the deal.
    on_rows : callable, optional
        Is told, now and then, how many rows have been read.

    Returns
    -------
    Diagnosis
        With an account of what was read.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> log = pd.DataFrame(rng.standard_normal((1200, 6)), columns=list("abcdef"))
    >>> log["shop"] = np.repeat([f"shop {number:02}" for number in range(30)], 40)
    >>> size = np.repeat(rng.standard_normal(30), 40)
    >>> log["sold"] = 5 + size * (log["a"] - log["b"]) + rng.standard_normal(1200)
    >>> found = diagnose(log, task="shop", reward="sold")
    >>> found.verdict, found.rank
    ('share', 1)
    """
    roles = Roles(task=task, reward=reward, weight=weight, arm=arm, propensity=propensity, time=time)
    summary, parts = summarise_parts(
        source,
        roles,
        features=features,
        encoder=encoder,
        missing=missing,
        n_parts=n_parts,
        seed=seed,
        on_rows=on_rows,
    )
    # many small matrices: with more threads than one these mostly wait for each other
    with threadpool_limits(limits=1 if summary.statistics.dim < WIDE else None):
        found = diagnose_parts(
            parts,
            tasks=summary.tasks,
            features=summary.features,
            intercept=summary.encoder.constant,
            forward=time is not None,
        )
    return replace(found, account=summary.account)
