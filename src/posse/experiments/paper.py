"""The paper's figures, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from posse.experiments import ellipsoid_claims, finite_claims
from posse.experiments.claims import Claim
from posse.experiments.grid import Experiment


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the paper: what is run for it, and what it is said to show.

    Attributes
    ----------
    title : str
    experiment : Experiment
    claims : tuple of functions
        Each decides a claim from the long table of results.
    setting : mapping
        What all runs have in common, in words.
    remark : str
        What a reader must know to judge the figure fairly.
    log_regret : bool
        Whether its regret is drawn on a logarithmic scale.
    """

    title: str
    experiment: Experiment
    claims: tuple[Callable[[pl.DataFrame], Claim], ...]
    setting: Mapping[str, str]
    remark: str
    log_regret: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Claims that need the tables of several figures."""

    figures: tuple[str, ...]
    title: str
    claims: tuple[Callable[[dict[str, pl.DataFrame]], Claim], ...]


def synthetic(name: str, dim: int) -> Figure:
    """Figures 1 and 2: regret per task against T, on Gaussian contexts."""
    ranks, tasks = (2, 3, 5), (10, 20, 50, 100, 200)
    cells = tuple({"dim": dim, "rank": k, "n_tasks": T, "n_arms": 5} for k in ranks for T in tasks)
    return Figure(
        title=f"Synthetic data, d = {dim}",
        experiment=Experiment(
            name=name,
            problem="gaussian",
            cells=cells,
            policies=("mlingreedy", "naive", "independent-greedy", "oracle-greedy"),
            horizon=10_000,
        ),
        claims=(
            finite_claims.advantage_grows_with_tasks,
            finite_claims.advantage_shrinks_with_rank,
            finite_claims.stronger_baseline,
        ),
        setting={"dimension d": str(dim), "arms K": "5", "contexts": "N(0, I/d)", "noise": "N(0, 1)"},
        remark=(
            "The paper compares MLinGreedy with the naive algorithm alone. That baseline forgets every epoch "
            "but the last and fits without a penalty, so part of the margin is its weakness. "
            "IndependentGreedy shares nothing between tasks either, but uses all its data: what remains of "
            "the margin against it is what sharing earns."
        ),
    )


def sphere(name: str, rank: int) -> Figure:
    """Figures 5 and 6: regret per task against T on the unit sphere, for four exponents of N_1."""
    tasks = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
    return Figure(
        title=f"Infinite actions, k = {rank}",
        experiment=Experiment(
            name=name,
            problem="ellipsoid",
            cells=tuple({"dim": 10, "rank": rank, "n_tasks": T} for T in tasks),
            policies=(*ellipsoid_claims.EXPONENTS, "e2tc-spectral", "pege", "oracle-commit"),
            horizon=10_000,
        ),
        claims=(
            ellipsoid_claims.regret_falls_with_tasks,
            ellipsoid_claims.regret_flattens,
            ellipsoid_claims.few_tasks_lose,
            ellipsoid_claims.best_exponent,
            ellipsoid_claims.spectral_lowers_regret,
        ),
        setting={"dimension d": "10", "actions": "the unit sphere", "noise": "N(0, 1)"},
        remark=(
            "The paper's E2TC finds the representation from squared rewards. The spectral form differs in "
            "that step and in the exploration that it needs, N_1 = d sqrt(kN / T), and in nothing else. "
            "OracleCommit is told the representation: the distance to it is what learning it costs. "
            "E2TC without a c has the paper's c = 1.5."
        ),
        log_regret=True,
    )


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "fig1": synthetic("fig1", dim=30),
        "fig2": synthetic("fig2", dim=20),
        "fig5": sphere("fig5", rank=3),
        "fig6": sphere("fig6", rank=2),
    }
)

COMPARISONS = (
    Comparison(
        figures=("fig5", "fig6"),
        title="Infinite actions: k = 3 beside k = 2",
        claims=(ellipsoid_claims.larger_for_smaller_rank, ellipsoid_claims.pege_ignores_rank),
    ),
)
