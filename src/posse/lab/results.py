"""The long table of results: means and intervals over seeds, on demand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from posse.core.extras import extra
from posse.core.files import write_atomically

with extra("lab"):
    import polars as pl


CONFIDENCE = 0.95


def mean_interval(
    values: Sequence[float] | np.ndarray[Any, Any], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """Return the mean of independent values and the ends of its Student's t interval.

    The ends are minus and plus infinity for fewer than two values.

    Examples
    --------
    >>> [round(x, 2) for x in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.48, 4.48]
    """
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if sample.size < 2:
        return mean, -np.inf, np.inf
    error = float(sample.std(ddof=1)) / np.sqrt(sample.size)
    half = float(stdtrit(sample.size - 1, 0.5 + confidence / 2) * error)
    return mean, mean - half, mean + half


def mean_and_ends(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float | None, float | None]:
    """Return the mean of independent values and the ends of its 95 % interval, None for fewer than two."""
    mean, low, high = mean_interval(values)
    return (mean, low, high) if np.isfinite(low) else (mean, None, None)


def summarise(table: pl.DataFrame, by: Sequence[str], value: str = "regret_per_task") -> pl.DataFrame:
    """Return mean, 95 % interval and number of seeds of a column for each group, sorted by group.

    Seeds are what is independent: rows of one seed in a group are averaged first. An interval needs two
    seeds; with one, its ends are null.

    Parameters
    ----------
    table : DataFrame
        A long table of runs, with a column `seed`.
    by : sequence of str
        Columns that tell groups apart.
    value : str
        The column to average.

    Returns
    -------
    DataFrame
        The columns of `by`, the mean under the name of `value`, `ci_low`, `ci_high` and `n_seeds`.
    """
    seeds = table.group_by([*by, "seed"], maintain_order=True).agg(pl.col(value).mean())
    rows = [
        (*key, *mean_and_ends(group[value].to_numpy()), group.height)
        for key, group in seeds.group_by(list(by), maintain_order=True)
    ]
    names = [*by, value, "ci_low", "ci_high", "n_seeds"]
    overrides = {value: pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64, "n_seeds": pl.Int64}
    return pl.DataFrame(rows, schema=names, schema_overrides=overrides, orient="row").sort(list(by))


def final_rounds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a long table of runs that belong to the last round of their run."""
    return table.filter(pl.col("round") == pl.col("horizon"))


def policies_compared(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return a row per policy of a long table of runs, the least final regret first.

    Each has `policy`, `regret_per_task` with `ci_low` and `ci_high`, the ends of its 95 % interval, None with
    one seed, and `seconds`, the mean time of a run.
    """
    final = final_rounds(table)
    times = summarise(final, by=["policy"], value="seconds")
    seconds = dict(zip(times["policy"], times["seconds"], strict=True))
    regrets = summarise(final, by=["policy"]).sort("regret_per_task").drop("n_seeds")
    return [{**row, "seconds": seconds[row["policy"]]} for row in regrets.to_dicts()]


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table as Parquet, whole or not at all."""
    try:
        write_atomically(path, table.write_parquet)
    except pl.exceptions.PolarsError as error:  # a full disk, in polars' words
        raise OSError(f"{path} cannot be written: {error}") from None
