"""The long table of results: rows in, Parquet out, means and intervals on demand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from posse.core.files import write_atomically

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
    rows = [
        (*key, *_mean_and_ends(group[value].to_numpy()), group.height)
        for key, group in table.group_by(list(by), maintain_order=True)
    ]
    names = [*by, value, "ci_low", "ci_high", "n_seeds"]
    overrides = {value: pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64, "n_seeds": pl.Int64}
    return pl.DataFrame(rows, schema=names, schema_overrides=overrides, orient="row").sort(list(by))


def final_rounds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the last checkpoint."""
    return table.filter(pl.col("round") == pl.col("horizon"))


def is_independent(policy: str) -> bool:
    """Tell whether a policy, by its name, learns each task alone."""
    return policy.startswith("independent-") or policy in ("naive", "pege")


def is_oracle(policy: str) -> bool:
    """Tell whether a policy, by its name, is told the true representation."""
    return policy.startswith("oracle-")


def relative_regrets(table: pl.DataFrame) -> pl.DataFrame:
    """Return the final regret of each policy, and its ratio to the best independent policy and oracle.

    The best one is that of the least mean regret. A ratio is taken within each seed, where both met the
    same problem: it is the geometric mean over seeds, with Student's t interval of the logarithms.

    Parameters
    ----------
    table : DataFrame
        The long table of one problem.

    Returns
    -------
    DataFrame
        A row per policy, in the order of the table: `policy`, `n_seeds`, `regret_per_task`, `ci_low` and
        `ci_high`; then, for `independent` and `oracle`, the name of the `best_...` one and the ratio
        `to_...` with `to_..._low` and `to_..._high`. Null are references that were not played, ratios
        where a regret is not above 0, and the ends of intervals from one seed.
    """
    regrets = final_rounds(table).pivot("policy", index="seed", values="regret_per_task").drop("seed")
    samples = {policy: regrets[policy].to_numpy() for policy in regrets.columns}
    best = {
        "independent": min(
            filter(is_independent, samples), key=lambda name: samples[name].mean(), default=None
        ),
        "oracle": min(filter(is_oracle, samples), key=lambda name: samples[name].mean(), default=None),
    }
    rows = []
    for policy, sample in samples.items():
        mean, low, high = _mean_and_ends(sample)
        row = {
            "policy": policy,
            "n_seeds": sample.size,
            "regret_per_task": mean,
            "ci_low": low,
            "ci_high": high,
        }
        for kind, name in best.items():
            ratio, low, high = (None, None, None) if name is None else _ratio(sample, samples[name])
            row |= {f"best_{kind}": name, f"to_{kind}": ratio, f"to_{kind}_low": low, f"to_{kind}_high": high}
        rows.append(row)
    kinds = {
        "policy": pl.String,
        "n_seeds": pl.Int64,
        "best_independent": pl.String,
        "best_oracle": pl.String,
    }
    return pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in rows[0]})


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


def _mean_and_ends(sample: np.ndarray[Any, Any]) -> tuple[float, float | None, float | None]:
    mean, low, high = mean_interval(sample)
    return (mean, low, high) if np.isfinite(low) else (mean, None, None)


def _ratio(
    sample: np.ndarray[Any, Any], reference: np.ndarray[Any, Any]
) -> tuple[float | None, float | None, float | None]:
    if min(sample.min(), reference.min()) <= 0:
        return None, None, None
    mean, low, high = _mean_and_ends(np.log(sample / reference))
    return math.exp(mean), None if low is None else math.exp(low), None if high is None else math.exp(high)
