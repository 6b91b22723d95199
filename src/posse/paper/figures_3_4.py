"""Figures 3 and 4: pairs of image classes as tasks, and the rank that MLinGreedy is told."""

from __future__ import annotations

from itertools import pairwise

from posse.core.extras import extra
from posse.lab.charts import curves, regret_by_round, series
from posse.lab.experiment import Experiment
from posse.lab.registry import POLICIES, find_policy, is_named, label_of, style_of
from posse.lab.results import final_rounds, summarise
from posse.numerics.checks import Array
from posse.paper.claims import (
    Claim,
    Evidence,
    extremes,
    our_question,
    sampled_claim,
    signed_claim,
    simultaneous,
)
from posse.paper.figure import Figure
from posse.problems.images import IMAGE_SETS
from posse.viz.chart import Axis, Chart, Panel

with extra("lab"):
    import polars as pl

RANKS = (1, 2, 5, 10)
EPOCHS = "independent-greedy(schedule=epochs)"
# With more tasks than this, a run of greedy play with frequent updates takes minutes.
MOST_TRAPPED = 10


def told(rank: int) -> str:
    """Return the name of MLinGreedy that is told a rank."""
    return f"mlingreedy(rank={rank})"


def beats_naive(table: pl.DataFrame) -> Claim:
    """Decide "our algorithm significantly outperforms the naive algorithm for all k"."""
    evidence = _saved(table, "naive")
    n_tasks = _n_tasks(table)
    same = f" With k = T = {n_tasks} the rank is no restriction and the two are one: that k is left out."
    return signed_claim(
        evidence,
        1,
        statement="MLinGreedy beats the naive algorithm for every k.",
        source="paper",
        measure="regret per task of NaiveGreedy minus that of MLinGreedy",
        reading=extremes("MLinGreedy saves", evidence) + (same if n_tasks in RANKS else ""),
    )


def advantage_does_not_shrink(table: pl.DataFrame) -> Claim:
    """Decide "the advantage of our algorithm does not decrease as we increase k", step by step."""
    regrets = _by_policy(final_rounds(table))
    steps = {
        f"k = {small} to {large}": regrets[told(small)] - regrets[told(large)]
        for small, large in pairwise(_ranks(table))
    }
    return sampled_claim(
        steps,
        1,
        statement="The advantage of MLinGreedy over the naive algorithm does not shrink as k grows.",
        source="paper",
        measure="change of the advantage in regret per task from one k to the next",
        opening="From one k to the next the advantage changes by",
    )


def beats_ridge(table: pl.DataFrame) -> Claim:
    """Decide whether MLinGreedy also beats tasks alone that keep their data and a penalty."""
    evidence = _saved(table, EPOCHS)
    return signed_claim(
        evidence,
        1,
        statement="For every k MLinGreedy also beats tasks played alone, in the same epochs, with ridge and "
        "all their data.",
        source="posse",
        measure="regret per task of IndependentGreedy in the paper's epochs minus that of MLinGreedy",
        reading=extremes("MLinGreedy saves", evidence),
    )


def greedy_is_trapped(table: pl.DataFrame) -> Claim:
    """Decide whether frequent updates without exploration do harm."""
    regrets = _by_policy(final_rounds(table))
    often, seldom = regrets["independent-greedy"], regrets[EPOCHS]
    evidence = simultaneous({"frequent updates minus the paper's epochs": often - seldom})
    return signed_claim(
        evidence,
        1,
        statement="Greedy play that re-estimates often from its first rounds on is trapped: its regret is "
        "larger than with the paper's few, long epochs.",
        source="posse",
        measure="regret per task of IndependentGreedy minus that of the same in the paper's epochs",
        reading=f"Regret per task is {often.mean():.0f} with frequent updates and {seldom.mean():.0f} with "
        "the paper's epochs. Ties are broken at random here: who has not been paid yet tries both classes.",
    )


def _saved(table: pl.DataFrame, baseline: str) -> tuple[Evidence, ...]:
    regrets = _by_policy(final_rounds(table))
    return simultaneous({f"k = {k}": regrets[baseline] - regrets[told(k)] for k in _ranks(table)})


def _n_tasks(table: pl.DataFrame) -> int:
    n_classes = int(table["n_classes"][0])
    return n_classes * (n_classes - 1) // 2


def _ranks(table: pl.DataFrame) -> list[int]:
    """Return the ranks that restrict: with k = T, low-rank least squares is least squares."""
    return [k for k in RANKS if k < _n_tasks(table)]


def _by_policy(rows: pl.DataFrame) -> dict[str, Array]:
    """Return each policy's regret, in order of seeds."""
    return {
        str(policy): group.sort("seed")["regret_per_task"].to_numpy()
        for (policy,), group in rows.group_by("policy", maintain_order=True)
    }


def _rank_of(policy: str) -> int | None:
    """Return the rank that MLinGreedy is told by its name; None for other policies."""
    if not is_named(policy):
        return None
    entry, typed = find_policy(policy)
    return typed.get("rank") if entry is POLICIES["mlingreedy"] else None


def regret_by_rank(table: pl.DataFrame, title: str) -> Chart:
    """Return MLinGreedy's final regret against the rank it is told; policies without one are level lines."""
    data = summarise(final_rounds(table), by=["policy"])
    ranks = [_rank_of(policy) for policy in data["policy"]]
    ranked = data.with_columns(pl.Series("rank", ranks, dtype=pl.Int64)).drop_nulls("rank").sort("rank")
    level = data.filter(~pl.col("policy").is_in(ranked["policy"].to_list()))
    ends = pl.DataFrame({"rank": [ranked["rank"][0], ranked["rank"][-1]]})
    panel = Panel(
        x=Axis(label="rank k that MLinGreedy is told", scale="log", ticks=tuple(ranked["rank"].to_list())),
        y=Axis(label="regret per task", scale="log"),
        series=(
            series(
                ranked,
                x="rank",
                y="regret_per_task",
                label=label_of("mlingreedy"),
                style=style_of("mlingreedy"),
            ),
            *curves(level.join(ends, how="cross"), x="rank", kind="line"),
        ),
    )
    return Chart(
        stem="regret-by-rank",
        title=title,
        panels=(panel,),
        caption="Regret per task after all rounds against the rank. Bars and bands are 95 % intervals over "
        "seeds.",
    )


def images_setting(images: str) -> dict[str, str]:
    """Return what all runs on an image set have in common, in words."""
    chosen = IMAGE_SETS[images]
    return {
        "images": chosen.title,
        "dimension d": str(chosen.n_pixels),
        "scaling": "each image has length 1",
        "ridge of the paper's algorithms": "0.001",
    }


def variant(name: str, images: str) -> str:
    """Return the name of a figure on an image set; MNIST is the paper's own, the others are marked."""
    return name if images == "mnist" else f"{name}_{images}"


def figure(name: str, *, n_classes: int, images: str) -> Figure:
    """Return Figure 3 (5 classes) or Figure 4 (10 classes) on an image set."""
    n_tasks = n_classes * (n_classes - 1) // 2
    title = f"{IMAGE_SETS[images].title}, T = {n_tasks} pairs of classes"
    trapped = ("independent-greedy",) if n_tasks <= MOST_TRAPPED else ()
    papers = (beats_naive, advantage_does_not_shrink)
    own = images == "mnist"

    def charts(table: pl.DataFrame) -> tuple[Chart, ...]:
        by_round = regret_by_round(
            table,
            title,
            caption="Epochs end after 100, 1000 and 3162 rounds. With k = T, MLinGreedy and NaiveGreedy are "
            "one curve.",
        )
        return regret_by_rank(table, title), by_round

    return Figure(
        title=title,
        study=Experiment(
            name=variant(name, images),
            problem=images,
            cells=({"n_classes": n_classes, "scaling": "norm"},),
            policies=(*(told(k) for k in RANKS), "naive", EPOCHS, *trapped),
            horizon=10_000,
        ),
        claims=(
            *(papers if own else map(our_question, papers)),
            beats_ridge,
            *((greedy_is_trapped,) if trapped else ()),
        ),
        charts=charts,
        columns={"n_classes": "classes"},
        setting=images_setting(images),
        remark=(
            "Each pair of classes is a task; a round shows an image of each, and the one of the larger class "
            "pays 1. No linear predictor is exact, so no policy knows a true representation. "
            "MLinGreedy and NaiveGreedy are the paper's, with the same small ridge for both. "
            "IndependentGreedy shares nothing, but keeps all data and learns its penalty."
            + ("" if own else " The paper's statements are about MNIST; here they are asked of other images.")
        ),
        command=(name, "--data", images),
    )
