"""The theorems beside the runs: a bound per task against T, with its constant fitted to a policy's regret."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posse.core.extras import extra
from posse.lab.registry import label_of
from posse.lab.results import final_rounds
from posse.paper.theory import Bound, Setting

with extra("lab"):
    import polars as pl

POINTS = 60


@dataclass(frozen=True, kw_only=True)
class Overlay:
    """A theorem, and the policy that it is about.

    Attributes
    ----------
    policy : str
    bound : callable
        Returns the bound on the regret of all tasks together.
    """

    policy: str
    bound: Callable[[Setting], Bound]

    def curve(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the bound per task by rank and number of tasks, as smooth curves with one constant.

        Columns are `label`, `rank`, `n_tasks` and `regret_per_task`.
        """
        cells = self._cells(table)
        constant = math.exp(cells["log_ratio"].to_numpy().mean())
        tasks = cells["n_tasks"].to_numpy()
        grid = np.unique(np.geomspace(tasks.min(), tasks.max(), POINTS).round().astype(int)).tolist()
        rows = [
            (rank, n_tasks, constant * self._bound_at(table, rank, n_tasks).value / n_tasks)
            for rank in cells["rank"].unique(maintain_order=True)
            for n_tasks in grid
        ]
        label = pl.lit(f"{self._bound_at(table, *rows[0][:2]).theorem}, constant fitted").alias("label")
        names = ["rank", "n_tasks", "regret_per_task"]
        return pl.DataFrame(rows, schema=names, orient="row").select(label, pl.all())

    def reading(self, table: pl.DataFrame) -> str:
        """Say which term of the bound dominates at which T, and how well the bound fits."""
        cells = self._cells(table)
        log_ratio = cells["log_ratio"].to_numpy()
        mean = log_ratio.mean()
        worst = math.exp(np.abs(log_ratio - mean).max())
        bound = self._bound_at(table, *cells.select("rank", "n_tasks").row(0))
        # the exponents of T tell which term is the larger with few tasks, and where the other overtakes it
        few, many = sorted(bound.terms, key=lambda term: term.exponents["n_tasks"])
        gap = many.exponents["n_tasks"] - few.exponents["n_tasks"]
        crossing = cells["n_tasks"][0] * (few.value / many.value) ** (1 / gap)
        return (
            f"Dashed: {bound.theorem}, ({many.formula} + {few.formula}) / T, times {math.exp(mean):.2g}, the "
            f"constant that fits {label_of(self.policy)} best; it is off by a factor of {worst:.2g} at "
            f"most. Below T = {crossing:.0f} its larger term is {few.formula} ({few.meaning}), above it "
            f"{many.formula} ({many.meaning})."
        )

    def _bound_at(self, table: pl.DataFrame, rank: int, n_tasks: int) -> Bound:
        dim, horizon = table.select("dim", "horizon").row(0)
        return self.bound(Setting(horizon=horizon, n_tasks=n_tasks, dim=dim, rank=rank))

    def _cells(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return each cell's regret per task relative to the bound, in logarithms."""
        rows = final_rounds(table).filter(pl.col("policy") == self.policy)
        cells = rows.group_by("rank", "n_tasks").agg(pl.col("regret_per_task").mean()).sort("rank", "n_tasks")
        ratios = [
            math.log(regret * n_tasks / self._bound_at(table, rank, n_tasks).value)
            for rank, n_tasks, regret in cells.rows()
        ]
        return cells.with_columns(pl.Series("log_ratio", ratios))
