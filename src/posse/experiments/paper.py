"""The paper's figures, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from posse.experiments.claims import (
    Claim,
    advantage_grows_with_tasks,
    advantage_shrinks_with_rank,
    stronger_baseline,
)
from posse.experiments.grid import Experiment

RANKS = (2, 3, 5)
TASKS = (10, 20, 50, 100, 200)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the paper: what is run for it, and what it is said to show."""

    title: str
    experiment: Experiment
    claims: tuple[Callable[[pl.DataFrame], Claim], ...]


def synthetic(name: str, dim: int) -> Figure:
    """Figures 1 and 2: regret per task against T, on Gaussian contexts."""
    cells = tuple({"dim": dim, "rank": k, "n_tasks": T, "n_arms": 5} for k in RANKS for T in TASKS)
    return Figure(
        title=f"Synthetic data, d = {dim}",
        experiment=Experiment(
            name=name,
            problem="gaussian",
            cells=cells,
            policies=("mlingreedy", "naive", "independent-greedy", "oracle-greedy"),
            horizon=10_000,
        ),
        claims=(advantage_grows_with_tasks, advantage_shrinks_with_rank, stronger_baseline),
    )


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {"fig1": synthetic("fig1", dim=30), "fig2": synthetic("fig2", dim=20)}
)
