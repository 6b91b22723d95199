"""The paper's figures, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import polars as pl

from posse.lab.grid import Experiment
from posse.paper import ellipsoid_claims, finite_claims, image_claims
from posse.paper.bounds import BOUNDS
from posse.paper.figure import Comparison, Drawing, Figure
from posse.paper.overlay import Overlay
from posse.paper.scaling import SCALING
from posse.paper.theory import finite_upper, infinite_upper
from posse.problems.images import IMAGE_SETS
from posse.viz import charts, plots


def by_tasks_and_rounds(theorem: Overlay, *, log_regret: bool = False) -> tuple[Drawing, ...]:
    """Return the paper's picture, regret against T beside a theorem, and how regret grows over the rounds."""
    return (
        Drawing(
            "regret-by-tasks",
            lambda table, title: plots.draw_regret_against_tasks(
                plots.regret_against_tasks(table), title, log_regret=log_regret, overlay=theorem.curve(table)
            ),
            lambda table: charts.curves_chart(
                plots.regret_against_tasks(table),
                x="n_tasks",
                xlabel="number of tasks T",
                ylabel="regret per task",
                panel="rank",
                log_y=log_regret,
                overlay=theorem.curve(table),
            ),
            "Regret per task after all rounds against the number of tasks. Bars are 95 % intervals over "
            "seeds.",
            theorem.reading,
        ),
        Drawing(
            "regret-by-round",
            lambda table, title: plots.draw_regret_against_round(
                plots.regret_against_round(table), f"{title}, T = {max(table['n_tasks'])}"
            ),
            _explore_rounds,
            "Regret per task up to round n, at the largest T. Bands are 95 % intervals over seeds.",
        ),
    )


def _explore_rounds(table: pl.DataFrame) -> list[Any]:
    data = plots.regret_against_round(table)
    panel = "rank" if "rank" in data.columns else None
    ylabel = "regret per task up to round n"
    return charts.curves_chart(data, x="round", xlabel="round n", ylabel=ylabel, panel=panel, log_y=True)


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
        drawings=by_tasks_and_rounds(Overlay(policy="mlingreedy", bound=finite_upper)),
        columns={"rank": "k", "n_tasks": "T"},
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
        drawings=by_tasks_and_rounds(Overlay(policy="e2tc", bound=infinite_upper), log_regret=True),
        columns={"rank": "k", "n_tasks": "T"},
        setting={"dimension d": "10", "actions": "the unit sphere", "noise": "N(0, 1)"},
        remark=(
            "The paper's E2TC finds the representation from squared rewards. The spectral form differs in "
            "that step and in the exploration that it needs, N_1 = d sqrt(kN / T), and in nothing else. "
            "OracleCommit is told the representation: the distance to it is what learning it costs. "
            "E2TC without a c has the paper's c = 1.5."
        ),
    )


def class_pairs(name: str, n_classes: int, images: str) -> Figure:
    """Figures 3 and 4: pairs of image classes as tasks, for four ranks."""
    chosen = IMAGE_SETS[images]
    n_tasks = n_classes * (n_classes - 1) // 2
    trapped = ("independent-greedy",) if n_tasks <= MOST_TRAPPED else ()
    ranks = tuple(f"mlingreedy-{k}" for k in image_claims.RANKS)
    return Figure(
        title=f"{chosen.title}, T = {n_tasks} pairs of classes",
        experiment=Experiment(
            name=name,
            problem=images,
            cells=({"n_classes": n_classes, "scaling": "norm"},),
            policies=(*ranks, "naive", "independent-epochs", *trapped),
            horizon=10_000,
        ),
        claims=(
            image_claims.beats_naive,
            image_claims.advantage_does_not_shrink,
            image_claims.beats_ridge,
            *((image_claims.greedy_is_trapped,) if trapped else ()),
        ),
        drawings=(
            Drawing(
                "regret-by-rank",
                lambda table, title: plots.draw_regret_against_rank(plots.regret_against_rank(table), title),
                lambda table: charts.curves_chart(
                    plots.level_lines(plots.regret_against_rank(table)),
                    x="rank",
                    xlabel="rank k that MLinGreedy is told",
                    ylabel="regret per task",
                    log_y=True,
                ),
                "Regret per task after all rounds against the rank. Bars and bands are 95 % intervals over "
                "seeds.",
            ),
            Drawing(
                "regret-by-round",
                lambda table, title: plots.draw_regret_against_round(
                    plots.regret_against_round(table), title
                ),
                _explore_rounds,
                "Regret per task up to round n. Epochs end after 100, 1000 and 3162 rounds. Bands are 95 % "
                "intervals over seeds. With k = T, MLinGreedy and NaiveGreedy are one curve.",
            ),
        ),
        columns={"n_classes": "classes"},
        setting=_images_setting(images),
        remark=(
            "Each pair of classes is a task; a round shows an image of each, and the one of the larger class "
            "pays 1. No linear predictor is exact, so no policy knows a true representation. "
            "MLinGreedy and NaiveGreedy are the paper's, with the same small ridge for both. "
            "IndependentGreedy shares nothing, but keeps all data and learns its penalty."
            + (
                ""
                if images == "mnist"
                else " The paper's statements are about MNIST; these are other images."
            )
        ),
    )


def margin(name: str, images: str) -> Figure:
    """Our figure beside 3 and 4: what an estimate is worth, by the rounds that it was made from."""
    chosen = IMAGE_SETS[images]
    dim = chosen.n_pixels
    sizes = [round(dim * share) for share in (1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 1, 9 / 8, 3 / 2, 2, 4)]
    return Figure(
        title=f"{chosen.title}: what the margin is made of, T = 10",
        experiment=Experiment(
            name=name,
            problem=images,
            cells=tuple({"n_classes": 5, "scaling": "norm", "explore": n} for n in sizes),
            policies=("commit-exact", "commit-naive", "relearn-naive", "relearn-mlingreedy", "relearn-all"),
            horizon=5 * dim,
        ),
        claims=(
            partial(image_claims.interpolation_peak, dim=dim),
            partial(image_claims.one_sided_rounds, dim=dim),
        ),
        drawings=(
            Drawing(
                "error-by-rounds",
                lambda table, title: plots.draw_error_against_rounds(
                    plots.error_against_rounds(table), title, dim=dim
                ),
                lambda table: charts.curves_chart(
                    plots.error_against_rounds(table),
                    x="explore",
                    y="error",
                    xlabel="round n after which the estimate is made",
                    ylabel="share of wrong choices afterwards",
                ),
                "Share of wrong choices of greedy play by an estimate that is made after n rounds, in those "
                f"from there to N = {5 * dim}. Bars are 95 % intervals over seeds.",
            ),
        ),
        columns={"explore": "n"},
        setting={**_images_setting(images), "rank of low-rank least squares": "5"},
        remark=(
            "Two things may spoil least squares on images. With about as many rounds as features it fits its "
            "rounds exactly and at any price: the peak of interpolation. And an epoch of greedy play holds "
            "almost nothing but images that paid 1, so an estimate from that epoch alone has seen no wrong "
            "class to tell from the right one. The curves separate the two."
        ),
    )


def _images_setting(images: str) -> dict[str, str]:
    chosen = IMAGE_SETS[images]
    return {
        "images": chosen.title,
        "dimension d": str(chosen.n_pixels),
        "scaling": "each image has length 1",
        "ridge of the paper's algorithms": "0.001",
    }


def variant(name: str, images: str) -> str:
    """Return the name of a figure on an image set; MNIST is the paper's own, the others are marked."""
    return name if images == "mnist" or name not in ON_IMAGES else f"{name}_{images}"


# With more tasks than this, a run of greedy play with frequent updates takes minutes.
MOST_TRAPPED = 10

ON_IMAGES: Mapping[str, Callable[[str, str], Figure]] = MappingProxyType(
    {
        "fig3": lambda name, images: class_pairs(name, 5, images),
        "fig4": lambda name, images: class_pairs(name, 10, images),
        "margin": margin,
    }
)

FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "fig1": synthetic("fig1", dim=30),
        "fig2": synthetic("fig2", dim=20),
        **{
            variant(name, images): build(variant(name, images), images)
            for name, build in ON_IMAGES.items()
            for images in IMAGE_SETS
        },
        "fig5": sphere("fig5", rank=3),
        "fig6": sphere("fig6", rank=2),
        **{figure.experiment.name: figure for figure in (*SCALING, *BOUNDS)},
    }
)

# Ours, of theory beside practice: what is run when one of these names is asked for.
BESIDE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "scaling": tuple(figure.experiment.name for figure in SCALING),
        "bounds": tuple(figure.experiment.name for figure in BOUNDS),
    }
)

COMPARISONS = (
    Comparison(
        figures=("fig5", "fig6"),
        title="Infinite actions: k = 3 beside k = 2",
        claims=(ellipsoid_claims.larger_for_smaller_rank, ellipsoid_claims.pege_ignores_rank),
    ),
)
