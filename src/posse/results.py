"""The long table of results: rows in, Parquet out, means and intervals on demand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from posse.files import write_atomically

CONFIDENCE = 0.95


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table as Parquet, whole or not at all."""
    try:
        write_atomically(path, table.write_parquet)
    except pl.exceptions.PolarsError as error:  # a full disk, in polars' words
        raise OSError(f"{path} cannot be written: {error}") from None


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, whole or not at all."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def mean_interval(
    values: Sequence[float] | np.ndarray[Any, Any], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """Return the mean and Student's t interval of independent values; infinite for fewer than two.

    Examples
    --------
    >>> [round(x, 2) for x in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.48, 4.48]
    """
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if sample.size < 2:
        return mean, -np.inf, np.inf
    half = float(stats.t.ppf(0.5 + confidence / 2, sample.size - 1) * stats.sem(sample))
    return mean, mean - half, mean + half


def summarise(table: pl.DataFrame, by: Sequence[str], value: str = "regret_per_task") -> pl.DataFrame:
    """Return mean, 95 % interval and number of seeds for each group, sorted by group.

    An interval needs two seeds; with one, its ends are null.
    """
    rows = []
    for key, group in table.group_by(list(by), maintain_order=True):
        mean, low, high = mean_interval(group[value].to_numpy())
        ends = (low, high) if np.isfinite(low) else (None, None)
        rows.append((*key, mean, *ends, group.height))
    names = [*by, value, "ci_low", "ci_high", "n_seeds"]
    overrides = {value: pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64, "n_seeds": pl.Int64}
    return pl.DataFrame(rows, schema=names, schema_overrides=overrides, orient="row").sort(list(by))


def final_rounds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the last checkpoint."""
    return table.filter(pl.col("round") == pl.col("horizon"))


def errors_by_rounds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the share of wrong choices after the round `explore`, of every policy and seed.

    Rewards must be 0 or 1, so that regret counts wrong choices.
    """
    keys = ["policy", "explore", "seed"]
    before = table.filter(pl.col("round") == pl.col("explore")).select(
        *keys, pl.col("regret_per_task").alias("before")
    )
    played = pl.col("horizon") - pl.col("explore")
    wrong = (pl.col("regret_per_task") - pl.col("before")) / played
    return final_rounds(table).join(before, on=keys).with_columns(wrong.alias("error"))
