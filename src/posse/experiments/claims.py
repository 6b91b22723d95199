"""What the paper says its figures show, decided from the runs.

A claim is a set of contrasts. Each contrast is computed within every seed, where all policies met the
same problem, actions and noise, and its interval is Student's t over seeds. The intervals of one claim
hold together with 95 % confidence (Bonferroni), so a claim that is on the boundary of being true is
called wrongly, as holding or as failing, in at most 5 % of repetitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from posse.results import CONFIDENCE, final_rounds, mean_interval
from posse.validation import Array

Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Evidence:
    """One contrast: where, how much, and its simultaneous interval; null ends mean too few seeds."""

    where: str
    estimate: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class Claim:
    """A statement, the verdict on it, and the numbers that decided.

    Attributes
    ----------
    statement : str
        What is claimed.
    source : "paper" or "posse"
        Who claims it.
    measure : str
        What the estimates are.
    verdict : "holds", "fails" or "undecided"
        Holds if every interval lies on the claimed side of zero, fails if one lies wholly on the other.
    reading : str
        The verdict in words and numbers.
    evidence : tuple of Evidence
    """

    statement: str
    source: Literal["paper", "posse"]
    measure: str
    verdict: Verdict
    reading: str
    evidence: tuple[Evidence, ...]


def advantage_grows_with_tasks(table: pl.DataFrame) -> Claim:
    """Decide "as the number of tasks increases, the advantage increases", for every rank."""
    samples = {
        f"k = {rank}": _slopes(_regrets(group), along="n_tasks", scale=np.log2)
        for (rank,), group in table.group_by("rank", maintain_order=True)
    }
    evidence = _simultaneous(samples)
    return Claim(
        statement="The advantage of MLinGreedy over the naive algorithm grows with the number of tasks T.",
        source="paper",
        measure="change of the advantage in regret per task for each doubling of T",
        verdict=_verdict(evidence, sign=1),
        reading=_range("Each doubling of T changes the advantage in regret per task by", evidence),
        evidence=evidence,
    )


def advantage_shrinks_with_rank(table: pl.DataFrame) -> Claim:
    """Decide "as k becomes larger, the advantage becomes smaller", for every number of tasks."""
    samples = {
        f"T = {n_tasks}": _slopes(_regrets(group), along="rank", scale=np.asarray)
        for (n_tasks,), group in table.group_by("n_tasks", maintain_order=True)
    }
    evidence = _simultaneous(samples)
    return Claim(
        statement="The advantage of MLinGreedy over the naive algorithm shrinks as the rank k grows.",
        source="paper",
        measure="change of the advantage in regret per task for each step of 1 in k",
        verdict=_verdict(evidence, sign=-1),
        reading=_range("Each step of 1 in k changes the advantage in regret per task by", evidence),
        evidence=evidence,
    )


def stronger_baseline(table: pl.DataFrame) -> Claim:
    """Decide whether MLinGreedy also beats the strengthened baseline, in every cell."""
    regrets = _regrets(table)
    saved = regrets.with_columns((pl.col("independent-greedy") - pl.col("mlingreedy")).alias("saved"))
    samples = {
        f"k = {rank}, T = {n_tasks}": group["saved"].to_numpy()
        for (rank, n_tasks), group in saved.group_by("rank", "n_tasks", maintain_order=True)
    }
    evidence = _simultaneous(samples)
    signs = [_sign(item) for item in evidence]
    ours, naive, alone = (
        float(regrets[name].to_numpy().mean()) for name in ("mlingreedy", "naive", "independent-greedy")
    )
    return Claim(
        statement="In every cell MLinGreedy also beats tasks played alone with ridge and all their data.",
        source="posse",
        measure="regret per task of IndependentGreedy minus that of MLinGreedy",
        verdict=_verdict(evidence, sign=1),
        reading=(
            f"Of {len(signs)} cells MLinGreedy wins {signs.count(1)}, loses {signs.count(-1)} and is level "
            f"within the intervals in {signs.count(0)}. Over the grid its regret is {1 - ours / naive:.0%} "
            f"below the naive algorithm's, and {1 - ours / alone:.0%} below the strengthened baseline's."
        ),
        evidence=evidence,
    )


def _regrets(table: pl.DataFrame) -> pl.DataFrame:
    """Return one row per cell and seed with the final regret of each policy, and MLinGreedy's advantage."""
    wide = final_rounds(table).pivot("policy", index=["rank", "n_tasks", "seed"], values="regret_per_task")
    return wide.with_columns((pl.col("naive") - pl.col("mlingreedy")).alias("advantage"))


def _slopes(regrets: pl.DataFrame, along: str, scale: Callable[[Array], Array]) -> Array:
    """Return each seed's least-squares slope of the advantage along a column."""
    wide = regrets.pivot(along, index="seed", values="advantage", sort_columns=True).drop("seed")
    x = scale(np.array([float(name) for name in wide.columns]))
    centred = x - x.mean()
    return np.asarray(wide.to_numpy() @ centred / (centred @ centred))


def _simultaneous(samples: dict[str, Array]) -> tuple[Evidence, ...]:
    level = 1 - (1 - CONFIDENCE) / len(samples)
    evidence = []
    for where, sample in samples.items():
        mean, low, high = mean_interval(sample, level)
        ends = (low, high) if np.isfinite(low) else (None, None)
        evidence.append(Evidence(where, mean, *ends))
    return tuple(evidence)


def _sign(evidence: Evidence) -> int:
    """Return the sign that the interval settles, 0 if it settles none."""
    if evidence.ci_low is None or evidence.ci_high is None:
        return 0
    return int(evidence.ci_low > 0) - int(evidence.ci_high < 0)


def _verdict(evidence: tuple[Evidence, ...], sign: int) -> Verdict:
    signs = [sign * _sign(item) for item in evidence]
    if all(found == 1 for found in signs):
        return "holds"
    return "fails" if -1 in signs else "undecided"


def _range(opening: str, evidence: tuple[Evidence, ...]) -> str:
    least, most = min(evidence, key=lambda e: e.estimate), max(evidence, key=lambda e: e.estimate)
    extremes = f"{least.estimate:+.1f} ({least.where}) and {most.estimate:+.1f} ({most.where})"
    return f"{opening} between {extremes}."
