"""Pictures of results. Each has a data step, a table anyone can use, and a draw step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from posse.core.files import write_atomically
from posse.lab.registry import POLICIES
from posse.lab.results import errors_by_rounds, final_rounds, is_independent, is_oracle, summarise

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers say the same again.
STYLES = {
    "mlingreedy": ("#0072B2", "o"),
    "mlingreedy-1": ("#56B4E9", "H"),
    "mlingreedy-2": ("#CC79A7", "X"),
    "mlingreedy-5": ("#0072B2", "8"),
    "mlingreedy-10": ("#000000", "p"),
    "naive": ("#D55E00", "s"),
    "independent-greedy": ("#E69F00", "^"),
    "independent-epochs": ("#009E73", "*"),
    "oracle-greedy": ("#009E73", "D"),
    "shared-greedy": ("#CC79A7", "^"),
    "shared-thompson": ("#CC79A7", "o"),
    "shared-ucb": ("#CC79A7", "s"),
    "shared-forgetful": ("#CC79A7", "P"),
    "independent-thompson": ("#E69F00", "o"),
    "independent-ucb": ("#E69F00", "s"),
    "independent-forgetful": ("#E69F00", "P"),
    "oracle-thompson": ("#009E73", "o"),
    "e2tc-0.5": ("#E69F00", "<"),
    "e2tc-1": ("#CC79A7", ">"),
    "e2tc": ("#0072B2", "P"),
    "e2tc-2": ("#000000", "X"),
    "e2tc-spectral": ("#56B4E9", "h"),
    "e2tc-pairs": ("#F0E442", "*"),
    "pege": ("#D55E00", "p"),
    "oracle-commit": ("#009E73", "d"),
    "commit-exact": ("#CC79A7", "*"),
    "commit-naive": ("#000000", "o"),
    "relearn-naive": ("#D55E00", "v"),
    "relearn-mlingreedy": ("#0072B2", "^"),
    "relearn-all": ("#009E73", "<"),
    "random": ("#7F7F7F", "v"),
}
LINES = {"naive": "--", "independent-greedy": "-.", "independent-epochs": "-", "random": ":"}
OVERLAY_COLOUR = "#6B6B6B"
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
FIRST_ROUND = 10
LONG_LABEL = 22
# Heights of the comparison of scenarios, in inches and in lanes, of which each policy has one.
LANE, FRAME = 0.06, 1.9
ROW_GAP, GROUP_GAP = 2.5, 3.5
# Intervals that go farther beyond the points than this factor are cut by the frame.
BEYOND = 2.0


def regret_against_tasks(table: pl.DataFrame) -> pl.DataFrame:
    """Return final regret per task by rank, policy and number of tasks, with intervals."""
    return summarise(final_rounds(table), by=["rank", "policy", "n_tasks"])


def draw_regret_against_tasks(
    data: pl.DataFrame, title: str, *, log_regret: bool = False, overlay: pl.DataFrame | None = None
) -> Figure:
    """Draw the paper's form: regret per task against T, one panel per rank, one curve per policy.

    An overlay is a dashed curve that no policy played: columns `label`, `rank`, `n_tasks` and
    `regret_per_task`.
    """
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
        if overlay is not None:
            curve = overlay.filter(pl.col("rank") == rank)
            axes.errorbar(
                curve["n_tasks"],
                curve["regret_per_task"],
                color=OVERLAY_COLOUR,
                linestyle="--",
                zorder=3,
                label=overlay["label"][0],
            )
        axes.set(xscale="log", xticks=ticks, xlabel="number of tasks T")
        axes.set(**({"yscale": "log"} if log_regret else {"ylim": (0, None)}))
        axes.xaxis.set_major_formatter(PLAIN)
        axes.xaxis.set_minor_locator(NullLocator())
    _label(figure, panels, "regret per task")
    return figure


def regret_against_round(table: pl.DataFrame) -> pl.DataFrame:
    """Return regret per task by policy and round, with intervals, at the largest number of tasks.

    It begins at round 10, where regret is no longer the luck of a few rounds. Problems with a rank are
    kept apart by it.
    """
    rows = table.filter(pl.col("round") >= min(FIRST_ROUND, max(table["round"])))
    if "n_tasks" in table.columns:
        rows = rows.filter(pl.col("n_tasks") == pl.col("n_tasks").max())
    keys = [name for name in ("rank", "n_tasks", "n_classes") if name in table.columns]
    return summarise(rows, by=[*keys, "policy", "round"])


def draw_regret_against_round(data: pl.DataFrame, title: str) -> Figure:
    """Draw the growth of regret over the rounds, one panel per rank, one curve per policy."""
    ranks = data["rank"].unique(maintain_order=True).to_list() if "rank" in data.columns else [None]
    figure, panels = _panels(ranks, title)
    for rank, axes in panels.items():
        for policy, curve in _curves(data if rank is None else data.filter(pl.col("rank") == rank)):
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


def regret_against_rank(table: pl.DataFrame) -> pl.DataFrame:
    """Return final regret per task by policy, with intervals, and the rank that each policy is told."""
    told = pl.col("policy").str.extract(r"^mlingreedy-(\d+)$").cast(pl.Int64)
    return summarise(final_rounds(table), by=["policy"]).with_columns(told.alias("rank"))


def level_lines(data: pl.DataFrame) -> pl.DataFrame:
    """Return regret against rank as curves: MLinGreedy's, and level ones of policies without a rank."""
    ranked = data.filter(pl.col("rank").is_not_null()).with_columns(pl.lit("mlingreedy").alias("policy"))
    level = data.filter(pl.col("rank").is_null()).drop("rank").join(ranked.select("rank"), how="cross")
    return pl.concat([ranked, level.select(ranked.columns)]).sort("rank")


def draw_regret_against_rank(data: pl.DataFrame, title: str) -> Figure:
    """Draw MLinGreedy's regret against the rank it is told; policies without a rank are level lines."""
    figure, panels = _panels([None], title)
    axes = panels[None]
    ranked = data.filter(pl.col("rank").is_not_null()).sort("rank")
    places = range(ranked.height)
    for policy, row in _curves(data.filter(pl.col("rank").is_null())):
        mean, low, high = row.select("regret_per_task", "ci_low", "ci_high").row(0)
        colour, _ = STYLES[policy]
        axes.axhline(mean, color=colour, linestyle=LINES.get(policy, "-"), label=POLICIES[policy].label)
        if low is not None:
            axes.axhspan(low, high, color=colour, alpha=0.2, linewidth=0)
    low, high = (
        ranked["regret_per_task"] - ranked["ci_low"],
        ranked["ci_high"] - ranked["regret_per_task"],
    )
    colour, marker = STYLES["mlingreedy"]
    axes.errorbar(
        places,
        ranked["regret_per_task"],
        yerr=[low.fill_null(0.0), high.fill_null(0.0)],
        color=colour,
        marker=marker,
        capsize=3,
        label=POLICIES["mlingreedy"].label,
    )
    axes.set(xlabel="rank k that MLinGreedy is told", yscale="log")
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_xticks(places, [str(rank) for rank in ranked["rank"]])
    _label(figure, panels, "regret per task")
    return figure


def error_against_rounds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the share of wrong choices by policy and round of the last estimate, with intervals."""
    return summarise(errors_by_rounds(table), by=["policy", "explore"], value="error")


def draw_error_against_rounds(data: pl.DataFrame, title: str, *, dim: int) -> Figure:
    """Draw the error of each estimate against the round at which it is made; a line marks n = d."""
    figure, panels = _panels([None], title)
    axes = panels[None]
    axes.axvline(dim, color="#7F7F7F", linestyle=":", linewidth=1)
    axes.annotate(f" n = d = {dim}", (dim, 1.0), xycoords=("data", "axes fraction"), va="top", fontsize=9)
    for policy, curve in _curves(data):
        colour, marker = STYLES[policy]
        low, high = curve["error"] - curve["ci_low"], curve["ci_high"] - curve["error"]
        axes.errorbar(
            curve["explore"],
            100 * curve["error"],
            yerr=[100 * low.fill_null(0.0), 100 * high.fill_null(0.0)],
            color=colour,
            marker=marker,
            markersize=4.5,
            capsize=2.5,
            label=POLICIES[policy].label,
        )
    ticks = sorted(data["explore"].unique().to_list())
    axes.set(xlabel="round n after which the estimate is made", xscale="log")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(0, 100)
    axes.set_xticks(ticks, [str(tick) for tick in ticks], rotation=45)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(PLAIN)
    _label(figure, panels, "wrong choices afterwards (%)")
    return figure


def draw_comparison(data: pl.DataFrame, title: str) -> Figure:
    """Draw regret relative to the best independent policy: a row per scenario, a lane per policy.

    Parameters
    ----------
    data : DataFrame
        `posse.suite.compare_scenarios` makes it.
    title : str
    """
    families = _families(data["policy"].unique().to_list())
    order = list(chain.from_iterable(families.values()))
    rows = _lanes(data, order)
    figure = Figure(figsize=(8.0, FRAME + LANE * rows["lane"].to_numpy().max()), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots()
    drawn = rows.filter(pl.col("to_independent").is_not_null())
    for policy in order:
        some = drawn.filter(pl.col("policy") == policy)
        colour, marker = STYLES[policy]
        low = (some["to_independent"] - some["to_independent_low"]).fill_null(0.0)
        high = (some["to_independent_high"] - some["to_independent"]).fill_null(0.0)
        axes.errorbar(
            some["to_independent"],
            some["lane"],
            xerr=[low, high],
            color=colour,
            marker=marker,
            markersize=4.6,
            markeredgecolor="white",
            markeredgewidth=0.4,
            linestyle="none",
            elinewidth=1.1,
            label=POLICIES[policy].label,
        )
    axes.axvline(1.0, color="#404040", linewidth=1, zorder=1)
    _label_rows(axes, rows)
    axes.set_xscale("log")
    if drawn.height:
        axes.set_xlim(*_limits(drawn))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(PLAIN)
    axes.tick_params(axis="x", top=True, labeltop=True, labelsize=9)
    axes.set_xlabel("regret relative to the best policy that learns each task alone, 95 % intervals")
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.spines[["left", "right"]].set_visible(False)
    _legend_by_family(figure, families)
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


def _panels(ranks: Sequence[int | None], title: str) -> tuple[Figure, dict[int | None, Axes]]:
    figure = Figure(figsize=(max(6.2, 0.8 + 3.1 * len(ranks)), 3.8), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots(1, len(ranks), sharey=True, squeeze=False)[0]
    return figure, dict(zip(ranks, axes, strict=True))


def _label(figure: Figure, panels: dict[int | None, Axes], ylabel: str) -> None:
    first, *_ = panels.values()
    first.set_ylabel(ylabel)
    for rank, axes in panels.items():
        if len(panels) > 1:
            axes.set_title(f"k = {rank}", fontsize=10)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = first.get_legend_handles_labels()
    alone = 3 if max(map(len, labels)) <= LONG_LABEL else 2
    columns = min(len(labels), 5) if len(panels) > 1 else alone
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def _families(policies: Sequence[str]) -> dict[str, list[str]]:
    """Sort policies into those that share, the paper's, those that learn alone, and oracles."""
    families: dict[str, list[str]] = {"posse": [], "the paper": [], "each task alone": [], "oracles": []}
    for policy in STYLES:
        if policy in policies:
            ours = "posse" if policy.startswith("shared-") else "the paper"
            alone = "each task alone" if is_independent(policy) else ours
            families["oracles" if is_oracle(policy) else alone].append(policy)
    return {family: members for family, members in families.items() if members}


def _lanes(data: pl.DataFrame, order: Sequence[str]) -> pl.DataFrame:
    """Add the height at which each policy of each scenario is drawn, downwards and in some order."""
    place = pl.col("policy").replace_strict(order, range(len(order)))
    lanes, top, last = [], 0.0, None
    for (group, _), some in data.group_by(["group", "scenario"], maintain_order=True):
        top += GROUP_GAP if group != last else 0.0
        lanes.append(some.sort(place).with_columns((top + pl.int_range(pl.len())).alias("lane")))
        top, last = top + some.height - 1 + ROW_GAP, group
    return pl.concat(lanes)


def _label_rows(axes: Axes, rows: pl.DataFrame) -> None:
    """Write the names of scenarios and groups beside their lanes, with lines between them."""
    last = None
    at = axes.get_yaxis_transform()
    for (group, scenario, title), some in rows.group_by(["group", "scenario", "title"], maintain_order=True):
        lanes = some["lane"].to_numpy()
        middle, edge = lanes.mean(), lanes[0] - ROW_GAP / 2
        beside: dict[str, Any] = {
            "xy": (0.0, middle),
            "xycoords": at,
            "textcoords": "offset points",
            "ha": "right",
        }
        axes.annotate(scenario, xytext=(-8, 0), va="bottom", fontsize=9.5, **beside)
        axes.annotate(title, xytext=(-8, -1), va="top", fontsize=7.5, color="#666666", **beside)
        if group != last:
            above = edge - GROUP_GAP / 2
            axes.axhspan(above - ROW_GAP / 2, edge, color="#EEF1F4", linewidth=0, zorder=0)
            axes.text(0.005, (above - ROW_GAP / 2 + edge) / 2, group, transform=at, va="center", fontsize=8.5)
        else:
            axes.axhline(edge, color="#D9DEE5", linewidth=0.7, zorder=0)
        last = group
    axes.set_yticks([])
    axes.set_ylim(rows["lane"].to_numpy().max() + ROW_GAP / 2, -ROW_GAP)


def _limits(drawn: pl.DataFrame) -> tuple[float, float]:
    points = drawn["to_independent"].to_numpy()
    ends = drawn.select("to_independent_low", "to_independent_high").to_numpy()
    reach = np.concatenate([points, ends[np.isfinite(ends)], [1.0]])
    low, high = min(points.min(), 1.0) / BEYOND, max(points.max(), 1.0) * BEYOND
    return max(reach.min(), low) / 1.1, min(reach.max(), high) * 1.1


def _legend_by_family(figure: Figure, families: dict[str, list[str]]) -> None:
    """Put a legend below, with a column for each family."""
    nothing = Line2D([], [], linestyle="none")
    longest = max(map(len, families.values()))
    handles, labels = [], []
    for family, members in families.items():
        styles = [STYLES[policy] for policy in members]
        marks = [Line2D([], [], color=c, marker=m, markersize=5, linewidth=1.1) for c, m in styles]
        blank = longest - len(members)
        handles += [nothing, *marks, *[nothing] * blank]
        labels += [family, *(POLICIES[policy].label for policy in members), *[""] * blank]
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=len(families), frameon=False, fontsize=8.5
    )
    for place in range(len(families)):
        legend.get_texts()[place * (longest + 1)].set_fontweight("bold")
