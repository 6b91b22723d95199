"""Made-up tables of results, for tests of what is drawn and written from tables."""

import numpy as np
import polars as pl

from posse.lab.experiment import Experiment
from posse.paper import armul, boss
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
    if name in OTHER_STUDIES:
        return OTHER_STUDIES[name](rng, seeds)
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


def _armul(rng: np.random.Generator, seeds: int) -> pl.DataFrame:
    return pl.DataFrame(
        {**cell, "seed": seed, "estimator": name, "error": 1 + rng.random(), "seconds": 0.1}
        for cell in armul.STUDY.cells
        for seed in range(seeds)
        for name in armul.ESTIMATORS
    )


def _boss(rng: np.random.Generator, seeds: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            **cell,
            "seed": seed,
            "policy": name,
            "tasks": tasks,
            "regret": tasks * (500 + 100 * place + rng.random()),
            "seconds": 0.1,
        }
        for cell in boss.STUDY.cells
        for seed in range(seeds)
        for place, name in enumerate(boss.LABELS)
        for tasks in (1, 1000, boss.STUDIED)
    )


OTHER_STUDIES = {"guarantees": _guarantees, "armul": _armul, "boss": _boss}
