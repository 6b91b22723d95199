"""Exponents: slopes in a log-log plot, measured and as a theorem has them, and claims about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from posse.core.extras import extra
from posse.lab.entries import SYMBOLS
from posse.lab.results import final_rounds, mean_and_ends, mean_interval
from posse.numerics.checks import Array
from posse.paper.claims import Claim, Evidence, Verdict, seeds_by, simultaneous, slopes
from posse.paper.theory import SIZES, Bound, Setting

with extra("lab"):
    import polars as pl


@dataclass(frozen=True)
class Sweep:
    """One size of a problem is varied, the others are fixed.

    Attributes
    ----------
    along : str
        What is varied: "horizon", "n_tasks", "dim" or "rank".
    values : tuple of int
    fixed : mapping
        The other three sizes.
    """

    along: str
    values: tuple[int, ...]
    fixed: Mapping[str, int]

    @property
    def title(self) -> str:
        """What is varied, and what is fixed, by the letters of the paper."""
        others = ", ".join(f"{SYMBOLS[name]} = {self.fixed[name]:,}" for name in SIZES if name in self.fixed)
        return f"{SYMBOLS[self.along]}, at {others}"

    @property
    def cells(self) -> tuple[dict[str, int], ...]:
        """The cells of the grid, in order."""
        return tuple(
            {name: {**self.fixed, self.along: value}[name] for name in SIZES} for value in self.values
        )

    @property
    def settings(self) -> list[Setting]:
        """The cells as the theorems know them, in order."""
        return [Setting(**cell) for cell in self.cells]

    def of(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the final rows of a table of runs that belong to the sweep."""
        return final_rounds(table).filter(
            pl.col(self.along).is_in(self.values),
            *(pl.col(name) == size for name, size in self.fixed.items()),
        )

    def exponents(self, table: pl.DataFrame, policy: str) -> Array:
        """Return the exponent of a policy's regret per task in every seed."""
        rows = self.of(table).filter(pl.col("policy") == policy)
        return log_slopes(rows, self.along, pl.col("regret_per_task"))

    def predicted(self, bound: Callable[[Setting], Bound]) -> Array:
        """Return a theorem's sum of terms per task, constants being 1, at every cell."""
        return np.array([bound(setting).value / setting.n_tasks for setting in self.settings])

    def predicted_exponent(self, bound: Callable[[Setting], Bound]) -> float:
        """Return the slope of a theorem's sum of terms over the sweep, by least squares in logarithms."""
        return power(np.array(self.values, dtype=np.float64), self.predicted(bound))

    def term_exponents(self, bound: Callable[[Setting], Bound]) -> tuple[float, ...]:
        """Return the exponent of each term per task: the slope where that term is by far the larger."""
        per_task = self.along == "n_tasks"
        return tuple(term.exponents[self.along] - per_task for term in bound(self.settings[0]).terms)


def log_slopes(rows: pl.DataFrame, along: str, values: pl.Expr) -> Array:
    """Return each seed's least-squares slope of log values against log along."""
    return slopes(rows, along, values.log(), np.log)


def power(points: Array, values: Array) -> float:
    """Return the least-squares slope of log values against log points.

    Examples
    --------
    >>> round(power(np.array([1.0, 2.0, 4.0]), np.array([5.0, 20.0, 80.0])), 9)
    2.0
    """
    centred = np.log(points) - np.log(points).mean()
    return float(centred @ np.log(values) / (centred @ centred))


def range_claim(
    samples: Mapping[str, Array],
    low: float,
    high: float,
    *,
    statement: str,
    measure: str,
    reading: str,
    source: Literal["paper", "posse"] = "posse",
) -> Claim:
    """Decide the claim that all means lie in [low, high]: by intervals inside it, or one wholly outside."""
    evidence = simultaneous(samples)
    inside = sum(_ends(item)[0] >= low and _ends(item)[1] <= high for item in evidence)
    outside = sum(_ends(item)[1] < low or _ends(item)[0] > high for item in evidence)
    verdict: Verdict = "fails" if outside else "holds" if inside == len(evidence) else "undecided"
    return Claim(statement, source, measure, verdict, (inside, outside), reading, evidence)


def steps(rows: pl.DataFrame, along: str, values: pl.Expr) -> dict[str, Array]:
    """Return the change of a quantity at each step along a column, in every seed."""
    points, quantities = seeds_by(rows, along, values)
    names = [f"{SYMBOLS[along]} = {a:g} to {b:g}" for a, b in pairwise(points)]
    return dict(zip(names, np.diff(quantities, axis=1).T, strict=True))


def exponent_table(
    table: pl.DataFrame, sweeps: Sequence[Sweep], policies: Sequence[str], bound: Callable[[Setting], Bound]
) -> pl.DataFrame:
    """Return the exponent of every policy in every sweep with its interval, and the theorem's."""
    rows: list[dict[str, Any]] = []
    for place, sweep in enumerate(sweeps):
        for policy in policies:
            measured = mean_and_ends(sweep.exponents(table, policy))
            theorem = (sweep.predicted_exponent(bound), list(sweep.term_exponents(bound)))
            names = ("sweep", "along", "policy", "exponent", "ci_low", "ci_high", "theorem", "terms")
            rows.append(dict(zip(names, (place, sweep.along, policy, *measured, *theorem), strict=True)))
    return pl.DataFrame(rows, infer_schema_length=None)


def with_interval(sample: Array) -> str:
    """Say a mean with the half-width of its 95 % interval."""
    mean, low, high = mean_interval(sample)
    half = (high - low) / 2
    if not math.isfinite(low):
        return f"{mean:.2f}"
    return f"{mean:.2f} ± {half:.2f}" if half >= 0.005 else f"{mean:.3f} ± {half:.1g}"


def _ends(item: Evidence) -> tuple[float, float]:
    return (
        -math.inf if item.ci_low is None else item.ci_low,
        math.inf if item.ci_high is None else item.ci_high,
    )
