"""What a figure is said to show, as contrasts that the runs decide.

A claim is a set of contrasts. Each contrast is computed within every seed, where all policies met the
same problem, and its interval is Student's t over seeds. The intervals of one claim
hold together with 95 % confidence (Bonferroni), so a claim that is on the boundary of being true is
called wrongly, as holding or as failing, in at most 5 % of repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from posse.core.extras import extra
from posse.lab.results import CONFIDENCE, final_rounds, mean_interval
from posse.numerics.checks import Array

with extra("lab"):
    import polars as pl

Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """One contrast: where, how much, and its simultaneous interval; null ends mean too few seeds."""

    where: str
    estimate: float
    ci_low: float | None
    ci_high: float | None

    @property
    def sign(self) -> int:
        """The sign that the interval settles, 0 if it settles none."""
        if self.ci_low is None or self.ci_high is None:
            return 0
        return int(self.ci_low > 0) - int(self.ci_high < 0)


@dataclass(frozen=True)
class Claim:
    """A statement, the verdict on it, and the numbers that decided.

    Attributes
    ----------
    statement : str
        What is claimed.
    source : "paper" or "posse"
        Whether the paper claims it, or it is a question of ours.
    measure : str
        What the estimates are.
    verdict : "holds", "fails" or "undecided"
        Holds if every interval lies on the claimed side of zero, fails if one lies wholly on the other.
    tally : pair of int
        How many intervals lie on the claimed side, and how many on the other.
    reading : str
        The verdict in words and numbers.
    evidence : tuple of Evidence
    """

    statement: str
    source: Literal["paper", "posse"]
    measure: str
    verdict: Verdict
    tally: tuple[int, int]
    reading: str
    evidence: tuple[Evidence, ...]


def final_regrets(table: pl.DataFrame) -> pl.DataFrame:
    """Return one row per rank, number of tasks and seed, with the final regret of each policy as a column.

    A table that has no ranks, or no numbers of tasks, has a row per seed and what it has of them.
    """
    keys = [name for name in ("rank", "n_tasks", "seed") if name in table.columns]
    return final_rounds(table).pivot("policy", index=keys, values="regret_per_task")


def seeds_by(table: pl.DataFrame, along: str, values: pl.Expr) -> tuple[Array, Array]:
    """Return the values of a column in order, and a quantity at each of them, (seeds, values)."""
    wide = (
        table.with_columns(values.alias("quantity")).sort(along).pivot(along, index="seed", values="quantity")
    )
    names = [name for name in wide.columns if name != "seed"]
    return np.array([float(name) for name in names]), wide.sort("seed").select(names).to_numpy()


def slopes(table: pl.DataFrame, along: str, values: pl.Expr, scale: Callable[[Array], Array]) -> Array:
    """Return each seed's least-squares slope of a quantity along a column, after `scale`."""
    points, quantities = seeds_by(table, along, values)
    centred = scale(points) - scale(points).mean()
    return np.asarray(quantities @ centred / (centred @ centred))


def simultaneous(samples: Mapping[str, Array]) -> tuple[Evidence, ...]:
    """Return the mean of each sample with intervals that hold together at 95 %."""
    level = 1 - (1 - CONFIDENCE) / len(samples)
    evidence = []
    for where, sample in samples.items():
        mean, low, high = mean_interval(sample, level)
        ends = (low, high) if np.isfinite(low) else (None, None)
        evidence.append(Evidence(where, mean, *ends))
    return tuple(evidence)


def signed_claim(
    evidence: tuple[Evidence, ...],
    sign: int,
    *,
    statement: str,
    source: Literal["paper", "posse"],
    measure: str,
    reading: str,
) -> Claim:
    """Decide the claim that all contrasts have a sign, +1 or -1."""
    signs = [sign * item.sign for item in evidence]
    right, wrong = signs.count(1), signs.count(-1)
    verdict: Verdict = "fails" if wrong else "holds" if right == len(signs) else "undecided"
    return Claim(statement, source, measure, verdict, (right, wrong), reading, evidence)


def sampled_claim(
    samples: Mapping[str, Array],
    sign: int,
    *,
    statement: str,
    source: Literal["paper", "posse"],
    measure: str,
    opening: str,
) -> Claim:
    """Decide the claim that the means of all samples have a sign, +1 or -1.

    The reading is the opening and the least and the largest mean.
    """
    evidence = simultaneous(samples)
    reading = extremes(opening, evidence)
    return signed_claim(evidence, sign, statement=statement, source=source, measure=measure, reading=reading)


def our_question(decide: Callable[[pl.DataFrame], Claim]) -> Callable[[pl.DataFrame], Claim]:
    """Return a claim of the paper as a question of ours: asked where the paper did not."""

    def ask(table: pl.DataFrame) -> Claim:
        return replace(decide(table), source="posse")

    return ask


def extremes(opening: str, evidence: tuple[Evidence, ...]) -> str:
    """Say between which values the estimates lie."""
    least, most = min(evidence, key=lambda e: e.estimate), max(evidence, key=lambda e: e.estimate)
    if least is most:
        return f"{opening} {least.estimate:+.1f} ({least.where})."
    return f"{opening} between {least.estimate:+.1f} ({least.where}) and {most.estimate:+.1f} ({most.where})."
