"""Made-up tables of results, for tests of what is drawn and written from tables."""

import numpy as np
import polars as pl

from posse.lab.experiment import Experiment
from posse.paper.armul import ESTIMATORS, STRUCTURES, ArmulStudy
from posse.paper.armul_published import DELTAS, ERRORS
from posse.paper.boss import CHANCES, LABELS, ORACLE, OURS, PUBLISHED, STUDIED, BossStudy, published
from posse.paper.figure import Figure
from posse.paper.guarantees import IN_SAMPLE, SUBSPACES
from posse.paper.registry import all_figures

FIGURES = all_figures()


def experiment_of(figure: Figure) -> Experiment:
    assert isinstance(figure.study, Experiment)
    return figure.study


def make_table(name: str = "fig1", seeds: int = 3) -> pl.DataFrame:
    """Return a table of a figure's runs: of some cells of Figure 1, and of all cells of the others."""
    rng = np.random.default_rng(0)
    if name == "guarantees":
        return _guarantees(rng, seeds)
    if name == "armul":
        return armul_table(spread=0.01, seeds=seeds)
    if name == "boss":
        return boss_table(spread=0.01, seeds=seeds)
    experiment = experiment_of(FIGURES[name])
    rows = [
        (
            *(value for key, value in cell.items() if key != "horizon"),
            cell.get("horizon", experiment.horizon),
            seed,
            policy,
            moment,
            moment / 50 + 40 * place + rng.random(),
            0.1,
        )
        for cell in experiment.cells
        if name != "fig1" or (cell["rank"] != 3 and cell["n_tasks"] in (10, 50))
        for seed in range(seeds)
        for place, policy in enumerate(experiment.names)
        for moment in sorted({1, 100, cell.get("explore", 100), cell.get("horizon", experiment.horizon)})
    ]
    sizes = [key for key in experiment.cells[0] if key != "horizon"]
    names = [*sizes, "horizon", "seed", "policy", "round", "regret_per_task", "seconds"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _guarantees(rng: np.random.Generator, seeds: int) -> pl.DataFrame:
    rows = [
        {
            **cell,
            "seed": seed,
            "estimator": name,
            "error": 0.1 + rng.random(),
            "bound": 2.0,
            "seconds": 0.1,
        }
        for cell in FIGURES["guarantees"].study.cells
        for seed in range(seeds)
        for name in (("low-rank", "alone") if cell["measure"] == IN_SAMPLE else SUBSPACES)
    ]
    samples = pl.col("rounds") * pl.col("n_tasks")
    return pl.DataFrame(rows).with_columns(pl.col("error") * 100 / samples.sqrt())


def armul_table(factors: dict[str, float] | None = None, spread: float = 0.0, seeds: int = 4) -> pl.DataFrame:
    """Return published errors in every cell, times a factor for each estimator, spread over seeds."""
    rows = [
        (structure, outliers, delta, seed, name, error, error, None, 0.1)
        for structure in STRUCTURES
        for outliers in (0.0, 0.2)
        for place, delta in enumerate(DELTAS)
        for seed in range(seeds)
        for name in ESTIMATORS
        for error in [
            ERRORS[structure, outliers, "armul" if name == "prior" else name][place]
            * (factors or {}).get(name, 1.0)
            * _around(seed, seeds, spread)
        ]
    ]
    names = ["structure", "outliers", "delta", "seed", *ArmulStudy.measured]
    return pl.DataFrame(rows, schema=names, orient="row")


def boss_table(
    factors: dict[str, float] | None = None, spread: float = 0.0, seeds: int = 4, n_tasks: int = STUDIED
) -> pl.DataFrame:
    """Return published totals, ours 0.8 of the oracle's, times a factor for each policy, over seeds."""
    rows = [
        (order, seed, policy, tasks, total * tasks / STUDIED * _around(seed, seeds, spread), 0.1)
        for order in CHANCES
        for seed in range(seeds)
        for policy in LABELS
        for tasks in (n_tasks // 2, n_tasks)
        for total in [
            (factors or {}).get(policy, 0.8 if policy == OURS else 1.0)
            * published(order, policy if (order, policy) in PUBLISHED else ORACLE)[0]
        ]
    ]
    names = ["order", "seed", *BossStudy.measured]
    return pl.DataFrame(rows, schema=names, orient="row")


def _around(seed: int, seeds: int, spread: float) -> float:
    return 1.0 + spread * (seed - (seeds - 1) / 2)
