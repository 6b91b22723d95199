"""Regret on the instances in the proofs of the paper's lower bounds, beside the bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from posse.lab.grid import Experiment
from posse.lab.registry import POLICIES
from posse.lab.results import final_rounds, summarise
from posse.numerics.checks import Array
from posse.paper import theory
from posse.paper.claims import Claim, signed_claim, simultaneous
from posse.paper.figure import Drawing, Figure
from posse.paper.theory import ELLIPSOID_LOWER_CONSTANT, Bound, Setting
from posse.paper.theory_plots import draw_instances
from posse.viz import charts

HORIZON = 10_000
FINITE_POLICIES = ("mlingreedy", "naive", "shared-greedy", "independent-greedy", "oracle-greedy")
SPHERE_POLICIES = ("e2tc", "e2tc-spectral", "pege", "shared-thompson", "oracle-commit")


def lower_bounds(table: pl.DataFrame, bound: Callable[[Setting], Bound], constant: float) -> pl.DataFrame:
    """Return the lower bound per task of each cell, term by term, `terms`, and their sum, `bound`."""
    keys = ["structure", "n_tasks", "dim", "rank", "horizon"]
    rows = []
    for row in table.select(keys).unique(maintain_order=True).to_dicts():
        setting = Setting(rounds=row["horizon"], tasks=row["n_tasks"], dim=row["dim"], rank=row["rank"])
        terms = [constant * term.value / setting.tasks for term in bound(setting).terms]
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
        f"{POLICIES[str(policy)].label} on {structure}, T = {n_tasks}": group["excess"].to_numpy()
        for (structure, n_tasks, policy), group in groups
    }
    evidence = simultaneous(samples)
    theorem = bound(Setting(rounds=1, tasks=1, dim=1, rank=1)).theorem
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
            where = f"{POLICIES[policy].label}, T = {n_tasks}"
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


def _explore(table: pl.DataFrame) -> list[Any]:
    panels = []
    for (structure,), rows in final_rounds(table).group_by(["structure"], maintain_order=True):
        data = summarise(rows, by=["policy", "n_tasks"])
        (panel,) = charts.curves_chart(
            data, x="n_tasks", xlabel="number of tasks T", ylabel="regret per task", log_y=True
        )
        panel.title = str(structure)
        panels.append(panel)
    return panels


def _figure(
    name: str,
    *,
    title: str,
    problem: str,
    cells: tuple[dict[str, Any], ...],
    policies: tuple[str, ...],
    bound: Callable[[Setting], Bound],
    constant: float,
    claims: tuple[Callable[[pl.DataFrame], Claim], ...],
    remark: str,
) -> Figure:
    return Figure(
        title=title,
        experiment=Experiment(name=name, problem=problem, cells=cells, policies=policies, horizon=HORIZON),
        claims=(partial(above_bound, bound=bound, constant=constant), *claims),
        drawings=(
            Drawing(
                "regret-on-hard-instances",
                lambda table, title: draw_instances(
                    table, title, limits=lower_bounds(table, bound, constant), formulas=_formulas(bound)
                ),
                _explore,
                "Regret per task after all rounds against the number of tasks. Bars are 95 % intervals over "
                f"seeds. Black: the lower bound's two terms per task, times {constant:g}.",
            ),
        ),
        columns={"structure": "structure", "n_tasks": "T"},
        setting={"dimension d": str(cells[0]["dim"]), "rank k": str(cells[0]["rank"]), "noise": "N(0, 1)"},
        remark=remark,
    )


def _formulas(bound: Callable[[Setting], Bound]) -> tuple[str, ...]:
    return tuple(term.formula for term in bound(Setting(rounds=1, tasks=1, dim=1, rank=1)).terms)


BOUNDS = (
    _figure(
        "bounds",
        title="Groups of equal tasks, Gaussian action sets",
        problem="gaussian",
        cells=tuple(
            {"structure": "groups", "covariance": "unit", "dim": 20, "rank": 2, "n_tasks": T}
            for T in (10, 30, 100)
        ),
        policies=FINITE_POLICIES,
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
        "bounds_sphere",
        title="The two hard priors on the sphere",
        problem="ellipsoid",
        cells=tuple(
            {"structure": structure, "dim": 10, "rank": 2, "n_tasks": T}
            for structure in ("half-axes", "orthogonal-groups")
            for T in (10, 30, 100)
        ),
        policies=SPHERE_POLICIES,
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
