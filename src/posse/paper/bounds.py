"""Regret on the instances in the proofs of the paper's lower bounds, beside the bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.lab.charts import curves, reference
from posse.lab.experiment import Experiment
from posse.lab.registry import label_of
from posse.lab.results import final_rounds, summarise
from posse.numerics.checks import Array
from posse.paper import theory
from posse.paper.claims import Claim, signed_claim, simultaneous
from posse.paper.figure import Figure
from posse.paper.theory import ELLIPSOID_LOWER_CONSTANT, Bound, Setting
from posse.viz.chart import Axis, Chart, Panel

with extra("lab"):
    import polars as pl

HORIZON = 10_000
# Of which a theorem's name and formulas are asked, that do not depend on it.
SMALLEST = Setting(horizon=1, n_tasks=1, dim=1, rank=1)
FINITE_POLICIES = ("mlingreedy", "naive", "shared-greedy", "independent-greedy", "oracle-greedy")
SPHERE_POLICIES = ("e2tc", "e2tc(subspace=spectral)", "pege", "shared-thompson", "oracle-commit")


def lower_bounds(table: pl.DataFrame, bound: Callable[[Setting], Bound], constant: float) -> pl.DataFrame:
    """Return the lower bound per task of each cell, term by term, `terms`, and their sum, `bound`."""
    keys = ["structure", "n_tasks", "dim", "rank", "horizon"]
    rows = []
    for row in table.select(keys).unique(maintain_order=True).to_dicts():
        setting = Setting(**{name: row[name] for name in theory.SIZES})
        terms = [constant * term.value / setting.n_tasks for term in bound(setting).terms]
        rows.append({**row, "terms": terms, "bound": sum(terms)})
    return pl.DataFrame(rows)


def above_bound(table: pl.DataFrame, *, bound: Callable[[Setting], Bound], constant: float) -> Claim:
    """Decide whether every policy pays more than the lower bound on its instances."""
    limits = lower_bounds(table, bound, constant)
    keys = [name for name in limits.columns if name not in ("terms", "bound")]
    rows = final_rounds(table).join(limits, on=keys)
    excess = (pl.col("regret_per_task") / pl.col("bound")).log()
    groups = rows.with_columns(excess.alias("excess")).group_by(
        ["structure", "n_tasks", "policy"], maintain_order=True
    )
    samples = {
        f"{label_of(str(policy))} on {structure}, T = {n_tasks}": group["excess"].to_numpy()
        for (structure, n_tasks, policy), group in groups
    }
    evidence = simultaneous(samples)
    theorem = bound(SMALLEST).theorem
    least = min(evidence, key=lambda item: item.estimate)
    return signed_claim(
        evidence,
        1,
        statement=f"On its proof's instances all policies pay more than {constant:g} times {theorem}.",
        source="posse",
        measure="log of the ratio of regret per task and bound",
        reading=f"The least ratio is {np.exp(least.estimate):.2g} ({least.where}).",
    )


def sharing_pays(table: pl.DataFrame) -> Claim:
    """Decide whether policies that share beat their like that do not, on groups of equal tasks."""
    samples: dict[str, Array] = {}
    for (n_tasks,), group in final_rounds(table).group_by(["n_tasks"], maintain_order=True):
        wide = group.pivot("policy", index="seed", values="regret_per_task")
        for policy, alone in (("mlingreedy", "naive"), ("shared-greedy", "independent-greedy")):
            where = f"{label_of(policy)}, T = {n_tasks}"
            samples[where] = (wide[alone] / wide[policy]).log().to_numpy()
    evidence = simultaneous(samples)
    saved = ", ".join(f"{1 - np.exp(-item.estimate):.0%} ({item.where})" for item in evidence)
    return signed_claim(
        evidence,
        1,
        statement="On groups of equal tasks sharing pays: MLinGreedy beats NaiveGreedy, and SharedGreedy "
        "IndependentGreedy.",
        source="posse",
        measure="log of the ratio of the regrets without and with sharing",
        reading=f"Sharing saves {saved}.",
    )


def instances_chart(
    table: pl.DataFrame, title: str, *, bound: Callable[[Setting], Bound], constant: float
) -> Chart:
    """Return regret per task against T, a panel for each structure, with the terms of the lower bound."""
    limits = lower_bounds(table, bound, constant)
    panels = []
    for structure in table["structure"].unique(maintain_order=True).to_list():
        rows = final_rounds(table).filter(pl.col("structure") == structure)
        own = limits.filter(pl.col("structure") == structure).sort("n_tasks")
        ticks = tuple(own["n_tasks"].to_list())
        terms = tuple(
            reference(f"lower bound, {term.formula}", ticks, own["terms"].list.get(place).to_list(), line)
            for place, (term, line) in enumerate(
                zip(bound(SMALLEST).terms, ("dashed", "dotted"), strict=True)
            )
        )
        panels.append(
            Panel(
                title=structure,
                x=Axis(label="number of tasks T", scale="log", ticks=ticks),
                y=Axis(label="regret per task", scale="log"),
                series=(*curves(summarise(rows, by=["policy", "n_tasks"]), x="n_tasks"), *terms),
            )
        )
    return Chart(
        stem="regret-on-hard-instances",
        title=title,
        panels=tuple(panels),
        caption="Regret per task after all rounds against the number of tasks. Bars are 95 % intervals over "
        f"seeds. Grey: the lower bound's two terms per task, times {constant:g}.",
    )


def _figure(
    experiment: Experiment,
    *,
    title: str,
    bound: Callable[[Setting], Bound],
    constant: float,
    claims: tuple[Callable[[pl.DataFrame], Claim], ...],
    remark: str,
) -> Figure:
    first: Mapping[str, Any] = experiment.cells[0]
    return Figure(
        title=title,
        study=experiment,
        claims=(partial(above_bound, bound=bound, constant=constant), *claims),
        charts=lambda table: (instances_chart(table, title, bound=bound, constant=constant),),
        columns={"structure": "structure", "n_tasks": "T"},
        setting={"dimension d": str(first["dim"]), "rank k": str(first["rank"]), "noise": "N(0, 1)"},
        remark=remark,
        command=("bounds",),
    )


FIGURES = (
    _figure(
        Experiment(
            name="bounds",
            problem="gaussian",
            cells=tuple(
                {"structure": "groups", "covariance": "unit", "dim": 20, "rank": 2, "n_tasks": T}
                for T in (10, 30, 100)
            ),
            policies=FINITE_POLICIES,
            horizon=HORIZON,
        ),
        title="Groups of equal tasks, Gaussian action sets",
        bound=theory.finite_lower,
        constant=1.0,
        claims=(sharing_pays,),
        remark=(
            "The theorem's constant is not known; 1 stands for it. The proof takes the worst parameters of "
            "length at most 1, and those get shorter as N grows, while the groups here have length 1. A "
            "regret below the line is no contradiction: the constant is smaller, or this instance is not the "
            "worst. Arms are N(0, I), as in the proof."
        ),
    ),
    _figure(
        Experiment(
            name="bounds_sphere",
            problem="ellipsoid",
            cells=tuple(
                {"structure": structure, "dim": 10, "rank": 2, "n_tasks": T}
                for structure in ("half-axes", "orthogonal-groups")
                for T in (10, 30, 100)
            ),
            policies=SPHERE_POLICIES,
            horizon=HORIZON,
        ),
        title="The two hard priors on the sphere",
        bound=theory.infinite_lower,
        constant=ELLIPSOID_LOWER_CONSTANT,
        claims=(),
        remark=(
            "The proof gets the constant 0.0001 for each term alone, on one prior each; with it both are far "
            "below any regret. The slopes, and not the distance, are what can be compared. E2TC assumes "
            "tasks of some length and in all directions; these priors give it no more than they must."
        ),
    ),
)
