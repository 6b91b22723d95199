"""Pictures of results. Each has a data step, a table anyone can use, and a draw step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from posse.catalogue import POLICIES
from posse.files import write_atomically
from posse.results import final_rounds, summarise

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers say the same again.
STYLES = {
    "mlingreedy": ("#0072B2", "o"),
    "naive": ("#D55E00", "s"),
    "independent-greedy": ("#E69F00", "^"),
    "oracle-greedy": ("#009E73", "D"),
    "e2tc-0.5": ("#56B4E9", "<"),
    "e2tc-1": ("#CC79A7", ">"),
    "e2tc": ("#0072B2", "P"),
    "e2tc-2": ("#000000", "X"),
    "e2tc-spectral": ("#E69F00", "h"),
    "e2tc-pairs": ("#F0E442", "*"),
    "pege": ("#D55E00", "p"),
    "oracle-commit": ("#009E73", "d"),
    "random": ("#7F7F7F", "v"),
}
FIRST_ROUND = 10


def regret_against_tasks(table: pl.DataFrame) -> pl.DataFrame:
    """Return final regret per task by rank, policy and number of tasks, with intervals."""
    return summarise(final_rounds(table), by=["rank", "policy", "n_tasks"])


def draw_regret_against_tasks(data: pl.DataFrame, title: str, *, log_regret: bool = False) -> Figure:
    """Draw the paper's form: regret per task against T, one panel per rank, one curve per policy."""
    ticks = sorted(data["n_tasks"].unique().to_list())
    figure, panels = _panels(data["rank"].unique(maintain_order=True).to_list(), title)
    for rank, axes in panels.items():
        for policy, curve in _curves(data.filter(pl.col("rank") == rank)):
            colour, marker = STYLES[policy]
            low, high = (
                curve["regret_per_task"] - curve["ci_low"],
                curve["ci_high"] - curve["regret_per_task"],
            )
            axes.errorbar(
                curve["n_tasks"],
                curve["regret_per_task"],
                yerr=[low.fill_null(0.0), high.fill_null(0.0)],
                color=colour,
                marker=marker,
                markersize=4.5,
                capsize=2.5,
                label=POLICIES[policy].label,
            )
        axes.set(xscale="log", xticks=ticks, xlabel="number of tasks T")
        axes.set(**({"yscale": "log"} if log_regret else {"ylim": (0, None)}))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    _label(figure, panels, "regret per task")
    return figure


def regret_against_round(table: pl.DataFrame) -> pl.DataFrame:
    """Return regret per task by rank, policy and round, with intervals, at the largest number of tasks.

    It begins at round 10, where regret is no longer the luck of a few rounds.
    """
    first = min(FIRST_ROUND, max(table["round"]))
    largest = table.filter(pl.col("n_tasks") == pl.col("n_tasks").max(), pl.col("round") >= first)
    return summarise(largest, by=["rank", "policy", "n_tasks", "round"])


def draw_regret_against_round(data: pl.DataFrame, title: str) -> Figure:
    """Draw the growth of regret over the rounds, one panel per rank, one curve per policy."""
    figure, panels = _panels(data["rank"].unique(maintain_order=True).to_list(), title)
    for rank, axes in panels.items():
        for policy, curve in _curves(data.filter(pl.col("rank") == rank)):
            colour, marker = STYLES[policy]
            axes.plot(
                curve["round"],
                curve["regret_per_task"],
                color=colour,
                marker=marker,
                markersize=3.5,
                markevery=3,
                label=POLICIES[policy].label,
            )
            if curve["ci_low"].null_count() == 0:
                axes.fill_between(
                    curve["round"], curve["ci_low"], curve["ci_high"], color=colour, alpha=0.2, linewidth=0
                )
        axes.set(xlabel="round n", xscale="log", yscale="log")
    _label(figure, panels, "regret per task up to round n")
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the file's ending names, whole or not at all."""
    kind = path.suffix.removeprefix(".").lower()
    metadata = {"Date": None} if kind == "svg" else None
    write_atomically(
        path, lambda temporary: figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)
    )


def _curves(data: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    present = set(data["policy"])
    return [(policy, data.filter(pl.col("policy") == policy)) for policy in STYLES if policy in present]


def _panels(ranks: Sequence[int], title: str) -> tuple[Figure, dict[int, Axes]]:
    figure = Figure(figsize=(max(6.2, 0.8 + 3.1 * len(ranks)), 3.8), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots(1, len(ranks), sharey=True, squeeze=False)[0]
    return figure, dict(zip(ranks, axes, strict=True))


def _label(figure: Figure, panels: dict[int, Axes], ylabel: str) -> None:
    first, *_ = panels.values()
    first.set_ylabel(ylabel)
    for rank, axes in panels.items():
        if len(panels) > 1:
            axes.set_title(f"k = {rank}", fontsize=10)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = first.get_legend_handles_labels()
    columns = min(len(labels), 4) if len(panels) > 1 else 3
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
