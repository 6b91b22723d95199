"""Figures 5 and 6: regret per task against the number of tasks, on the unit sphere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from posse.core.extras import extra
from posse.lab.charts import regret_by_round, regret_by_tasks
from posse.lab.experiment import Experiment
from posse.lab.results import mean_interval
from posse.numerics.checks import Array
from posse.paper.claims import (
    Claim,
    Verdict,
    final_regrets,
    sampled_claim,
    seeds_by,
    signed_claim,
    simultaneous,
    slopes,
)
from posse.paper.figure import Comparison, Figure
from posse.paper.overlay import Overlay
from posse.paper.theory import infinite_upper
from posse.viz.chart import Chart

with extra("lab"):
    import polars as pl

TASKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
EXPONENTS = {
    "e2tc(exponent=0.5)": "c = 0.5",
    "e2tc(exponent=1)": "c = 1",
    "e2tc": "c = 1.5",
    "e2tc(exponent=2)": "c = 2",
}
SPECTRAL = "e2tc(subspace=spectral)"
THEOREM = Overlay(policy="e2tc", bound=infinite_upper)
# Regrets are equal if they differ by less than this share.
EQUIVALENCE = 0.02
# Regret that levels off keeps this share of what it is at the largest T, however many tasks there are.
LEVEL = 1 / 3


def regret_falls_with_tasks(table: pl.DataFrame) -> Claim:
    """Decide "the regret per task decreases as T increases", for every exponent."""
    regrets = final_regrets(table)
    samples = {label: slopes(regrets, "n_tasks", pl.col(name), np.log2) for name, label in EXPONENTS.items()}
    return sampled_claim(
        samples,
        -1,
        statement="The regret per task of E2TC falls as the number of tasks T grows.",
        source="paper",
        measure="change of the regret per task for each doubling of T",
        opening="Each doubling of T changes the regret per task by",
    )


def regret_flattens(table: pl.DataFrame) -> Claim:
    """Decide "the curves bend to a horizontal line", with the paper's own exponent.

    In every seed a + b / sqrt(T) is fitted, by least squares of relative errors; a is what would be left with
    any number of tasks. The claim is that regret falls, b > 0, and that a is more than a third of the regret
    at the largest T. A curve that falls like 1 / sqrt(T) for ever has a = 0.
    """
    points, regrets = seeds_by(final_regrets(table), "n_tasks", pl.col("e2tc"))
    levels, falls, worst = levels_off(points, regrets)
    last = regrets[:, -1]
    evidence = simultaneous({"what is left": levels - LEVEL * last, "what falls": falls / np.sqrt(points[0])})
    mean, low, high = mean_interval(levels)
    half = f" ± {(high - low) / 2:.0f}" if np.isfinite(low) else ""
    return signed_claim(
        evidence,
        1,
        statement="With c = 1.5 the fall flattens: the help of representation learning is bounded.",
        source="paper",
        measure=f"of the fit a + b / √T: a, minus a third of the regret at T = {points[-1]:g}; and b / √T at "
        f"T = {points[0]:g}",
        reading=f"By the fit a + b / √T the regret levels off at a = {mean:.0f}{half}, which is "
        f"{mean / last.mean():.0%} of that at T = {points[-1]:g}; the fit is off by {worst:.0%} at most. "
        "For a regret that fell like 1 / √T for ever a would be 0.",
    )


def levels_off(points: Array, regrets: Array) -> tuple[Array, Array, float]:
    """Return a and b of the fit a + b / sqrt(T) in every seed, and how far the mean fit is off at most.

    The fit is by least squares of relative errors, and the last number is relative, too.

    Examples
    --------
    >>> levels, falls, worst = levels_off(np.array([1.0, 4.0, 16.0]), np.array([[10.0, 6.0, 4.0]]))
    >>> levels.round(9), falls.round(9), round(worst, 9)
    (array([2.]), array([8.]), 0.0)
    """
    design = np.stack([np.ones_like(points), 1 / np.sqrt(points)], axis=1)
    fits = np.array([np.linalg.lstsq(design / row[:, None], np.ones_like(row))[0] for row in regrets])
    means = regrets.mean(axis=0)
    return fits[:, 0], fits[:, 1], float(np.abs(design @ fits.mean(axis=0) / means - 1).max())


def few_tasks_lose(table: pl.DataFrame) -> Claim:
    """Decide "our algorithm cannot outperform PEGE when T is small", at the least T, for every exponent."""
    regrets = final_regrets(table)
    least = min(regrets["n_tasks"])
    few = regrets.filter(pl.col("n_tasks") == least)
    lost = {label: (few[name] - few["pege"]).to_numpy() for name, label in EXPONENTS.items()}
    return sampled_claim(
        lost,
        1,
        statement=f"With few tasks (T = {least}) E2TC loses to PEGE, which shares nothing.",
        source="paper",
        measure="regret per task of E2TC minus that of PEGE",
        opening=f"At T = {least} E2TC's regret differs from PEGE's by",
    )


def best_exponent(table: pl.DataFrame) -> Claim:
    """Decide "with c other than 1.5 it takes many more tasks to outperform PEGE"."""
    regrets = final_regrets(table)
    needed = {label: doublings_to_win(regrets, name) for name, label in EXPONENTS.items()}
    samples = {label: sample - needed["c = 1.5"] for label, sample in needed.items() if label != "c = 1.5"}
    evidence = simultaneous(samples)
    tasks = ", ".join(f"{2 ** sample.mean():.0f} with {label}" for label, sample in needed.items())
    others = [name for name in EXPONENTS if name != "e2tc"]
    means = regrets.group_by("n_tasks").mean()
    lowest = sum(all(row["e2tc"] <= row[name] for name in others) for row in means.iter_rows(named=True))
    return signed_claim(
        evidence,
        1,
        statement="Of the four exponents, c = 1.5 needs the fewest tasks to beat PEGE.",
        source="paper",
        measure="doublings of T that E2TC needs to beat PEGE, beyond those with c = 1.5",
        reading=(
            f"To beat PEGE from then on E2TC needs about this many tasks: {tasks}. At {lowest} of "
            f"{means.height} values of T the regret with c = 1.5 is the lowest of the four."
        ),
    )


def doublings_to_win(regrets: pl.DataFrame, policy: str) -> Array:
    """Return log2 of the T from which a policy beats PEGE for good, for every seed.

    Between two values of T the advantage is interpolated along log2 T. A policy that never wins gets
    the largest T, which is too little.
    """
    points, behind = seeds_by(regrets, "n_tasks", pl.col(policy) - pl.col("pege"))
    doublings = np.log2(points)
    crossings = []
    for row in behind:
        losing = np.flatnonzero(row >= 0)
        last = int(losing[-1]) if losing.size else -1
        if last in (-1, len(row) - 1):
            crossings.append(doublings[max(last, 0)])
        else:
            share = row[last] / (row[last] - row[last + 1])
            crossings.append(doublings[last] + share * (doublings[last + 1] - doublings[last]))
    return np.array(crossings)


def spectral_lowers_regret(table: pl.DataFrame) -> Claim:
    """Decide whether the spectral estimator, with its own N_1, lowers E2TC's regret at every T."""
    points, saved = seeds_by(final_regrets(table), "n_tasks", pl.col("e2tc") - pl.col(SPECTRAL))
    evidence = simultaneous({f"T = {T:g}": sample for T, sample in zip(points, saved.T, strict=True)})
    _, paper = seeds_by(final_regrets(table), "n_tasks", pl.col("e2tc"))
    share = saved.mean(axis=0) / paper.mean(axis=0)
    return signed_claim(
        evidence,
        1,
        statement="At every T E2TC has less regret with the tasks' own estimates than with moments.",
        source="posse",
        measure="regret per task of E2TC (c = 1.5) minus that of E2TC with the spectral estimator",
        reading=(
            f"The spectral estimator, with its own N_1, saves {share[0]:.0%} of the regret at "
            f"T = {points[0]:g} and {share[-1]:.0%} at T = {points[-1]:g}."
        ),
    )


def larger_for_smaller_rank(tables: Mapping[str, pl.DataFrame]) -> Claim:
    """Decide "our algorithm has a bigger advantage when k is smaller", at every T; fig5 against fig6."""
    (points, small), (_, large) = (
        seeds_by(final_regrets(tables[name]), "n_tasks", pl.col("pege") - pl.col("e2tc"))
        for name in ("fig6", "fig5")
    )
    samples = {f"T = {T:g}": gain for T, gain in zip(points, (small - large).T, strict=True)}
    return sampled_claim(
        samples,
        1,
        statement="The advantage of E2TC over PEGE is larger for k = 2 than for k = 3.",
        source="paper",
        measure="advantage over PEGE in regret per task (c = 1.5) at k = 2, minus that at k = 3",
        opening="The advantage at k = 2 exceeds that at k = 3 by",
    )


def pege_ignores_rank(tables: Mapping[str, pl.DataFrame]) -> Claim:
    """Decide "PEGE does not benefit from a smaller k": its regret at k = 2 and 3 agrees within 2 %."""
    (_, small), (_, large) = (
        seeds_by(final_regrets(tables[name]), "n_tasks", pl.col("pege")) for name in ("fig6", "fig5")
    )
    differences = (large - small).mean(axis=1)
    mean, low, high = mean_interval(differences)
    margin = EQUIVALENCE * float(small.mean())
    decided: Verdict = "undecided"
    if -margin < low and high < margin:
        decided = "holds"
    elif low > margin or high < -margin:
        decided = "fails"
    return Claim(
        statement=f"The regret of PEGE does not depend on k (within {EQUIVALENCE:.0%}).",
        source="paper",
        measure="regret per task of PEGE at k = 3 minus that at k = 2, mean over the values of T",
        verdict=decided,
        tally=(int(decided == "holds"), int(decided == "fails")),
        reading=(
            f"The difference is {mean:+.1f}, of a regret of {small.mean():.0f}; "
            f"within ±{margin:.0f} counts as none."
        ),
        evidence=simultaneous({"k = 3 against k = 2": differences}),
    )


def figure(name: str, *, rank: int) -> Figure:
    """Return Figure 5 (k = 3) or Figure 6 (k = 2)."""
    title = f"Infinite actions, k = {rank}"

    def charts(table: pl.DataFrame) -> tuple[Chart, ...]:
        by_tasks = regret_by_tasks(table, title, scale="log", theorem=THEOREM.curve(table))
        most = f"{title}, T = {max(table['n_tasks'])}"
        return (
            replace(by_tasks, reading=THEOREM.reading(table)),
            regret_by_round(table, most, caption="At the largest T."),
        )

    return Figure(
        title=title,
        study=Experiment(
            name=name,
            problem="ellipsoid",
            cells=tuple({"dim": 10, "rank": rank, "n_tasks": T} for T in TASKS),
            policies=(*EXPONENTS, SPECTRAL, "pege", "oracle-commit"),
            horizon=10_000,
        ),
        claims=(
            regret_falls_with_tasks,
            regret_flattens,
            few_tasks_lose,
            best_exponent,
            spectral_lowers_regret,
        ),
        charts=charts,
        columns={"rank": "k", "n_tasks": "T"},
        setting={"dimension d": "10", "actions": "the unit sphere", "noise": "N(0, 1)"},
        remark=(
            "The paper's E2TC finds the representation from squared rewards. The spectral form differs in "
            "that step and in the exploration that it needs, N_1 = d sqrt(kN / T), and in nothing else. "
            "OracleCommit is told the representation: the distance to it is what learning it costs. "
            "c = 1.5 is the paper's."
        ),
        command=(name,),
    )


BOTH = Comparison(
    figures=("fig5", "fig6"),
    title="Infinite actions: k = 3 beside k = 2",
    claims=(larger_for_smaller_rank, pege_ignores_rank),
)
