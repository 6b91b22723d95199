"""Pictures of theory beside practice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from posse.lab.registry import POLICIES
from posse.lab.results import final_rounds, summarise
from posse.paper.exponents import SYMBOLS, Sweep, exponent_table
from posse.paper.theory import Bound, Setting
from posse.viz.plots import PLAIN, STYLES


def draw_sweeps(
    table: pl.DataFrame,
    title: str,
    *,
    sweeps: Sequence[Sweep],
    policies: Sequence[str],
    bound: Callable[[Setting], Bound],
) -> Figure:
    """Draw regret per task against each size, log-log, with slopes, and the theorem for the first policy."""
    columns = 3 if len(sweeps) > 4 else 2
    figure = Figure(figsize=(0.6 + 3.7 * columns, 7.8), layout="constrained")
    figure.suptitle(title, fontsize=11)
    places = figure.subplots(2, columns, squeeze=False).ravel()
    found = exponent_table(table, sweeps, policies, bound)
    constant = _constant(table, sweeps, policies[0], bound)
    for place, (sweep, axes) in enumerate(zip(sweeps, places, strict=False)):
        for policy in policies:
            errorbars(axes, summarise(sweep.of(table), by=["policy", sweep.along]), policy, sweep.along)
        axes.plot(
            sweep.values,
            constant * sweep.predicted(bound),
            color=STYLES[policies[0]][0],
            linestyle="--",
            linewidth=1.2,
            label=f"{bound(sweep.settings[0]).theorem}, one constant",
        )
        tidy(axes, sweep.values, SYMBOLS[sweep.along])
        axes.set_title(sweep.title, fontsize=9.5)
        axes.set_ylabel("regret per task" if place % columns == 0 else "")
        axes.text(
            0.03,
            0.03,
            _slopes(found.filter(pl.col("sweep") == place), SYMBOLS[sweep.along]),
            transform=axes.transAxes,
            fontsize=7.5,
            family="monospace",
            va="bottom",
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "#D9DEE5", "boxstyle": "round,pad=0.3"},
        )
        low, high = axes.get_ylim()
        axes.set_ylim(low / (high / low) ** 0.45, high)
    for spare in places[len(sweeps) :]:
        spare.set_axis_off()
    handles, labels = places[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def errorbars(axes: Axes, data: pl.DataFrame, policy: str, x: str) -> None:
    """Draw one policy's means and intervals."""
    colour, marker = STYLES[policy]
    curve = data.filter(pl.col("policy") == policy).sort(x)
    mean = curve["regret_per_task"]
    axes.errorbar(
        curve[x],
        mean,
        yerr=[(mean - curve["ci_low"]).fill_null(0.0), (curve["ci_high"] - mean).fill_null(0.0)],
        color=colour,
        marker=marker,
        markersize=4.5,
        capsize=2.5,
        label=POLICIES[policy].label,
    )


def tidy(axes: Axes, ticks: Sequence[int] | None, xlabel: str) -> None:
    """Make both axes logarithmic, with plain numbers at the points of the grid, or powers of ten."""
    axes.set(xscale="log", yscale="log", xlabel=xlabel)
    if ticks is not None:
        axes.set_xticks(list(ticks))
        axes.xaxis.set_major_formatter(PLAIN)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(PLAIN)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _constant(
    table: pl.DataFrame, sweeps: Sequence[Sweep], policy: str, bound: Callable[[Setting], Bound]
) -> float:
    """Return the factor between regret and bound, by its geometric mean over all points."""
    ratios = []
    for sweep in sweeps:
        means = (
            sweep.of(table)
            .filter(pl.col("policy") == policy)
            .group_by(sweep.along)
            .agg(pl.col("regret_per_task").mean())
        )
        present = means.sort(sweep.along)["regret_per_task"].to_numpy()
        ratios.append(np.log(present / sweep.predicted(bound)))
    return float(np.exp(np.concatenate(ratios).mean()))


def _slopes(found: pl.DataFrame, symbol: str) -> str:
    """Say the exponents of a panel, a line for each policy and one for the theorem."""
    width = max(len(POLICIES[row["policy"]].label) for row in found.to_dicts())
    lines = [f"{'exponent of ' + symbol:<{width}}"]
    for row in found.to_dicts():
        half = "" if row["ci_low"] is None else f" ± {(row['ci_high'] - row['ci_low']) / 2:.2f}"
        lines.append(f"{POLICIES[row['policy']].label:<{width}} {row['exponent']:+.2f}{half}")
    first = found.row(0, named=True)
    terms = ", ".join(f"{term:+.1f}" for term in first["terms"])
    lines.append(f"{'theorem':<{width}} {first['theorem']:+.2f} (terms {terms})")
    return "\n".join(lines)


# Estimators by the colour and marker of the policy that uses them.
ESTIMATORS = {
    "low-rank": ("mlingreedy", "low-rank least squares"),
    "alone": ("naive", "least squares, each task alone"),
    "moments": ("e2tc", "method of moments"),
    "pairs": ("e2tc-1", "pairs of rounds"),
    "spectral": ("e2tc-spectral", "tasks' own least squares"),
}


def draw_guarantees(table: pl.DataFrame, title: str) -> Figure:
    """Draw in-sample errors relative to their bound, and sines against N_1 T beside theirs."""
    figure = Figure(figsize=(10.2, 4.4), layout="constrained")
    figure.suptitle(title, fontsize=11)
    left, right = figure.subplots(1, 2)
    predicted = table.filter(pl.col("measure") == "in-sample error").with_columns(
        pl.col("error") / pl.col("bound")
    )
    tasks = sorted(set(predicted["n_tasks"]))
    strength = dict(zip(tasks, np.linspace(0.4, 1.0, len(tasks)), strict=True))
    for (estimator, n_tasks), rows in predicted.group_by(["estimator", "n_tasks"], maintain_order=True):
        policy, label = ESTIMATORS[str(estimator)]
        data = summarise(rows, by=["rounds"], value="error")
        _dots(left, data, "rounds", policy, f"{label}, T = {n_tasks}", alpha=strength[n_tasks])
    tidy(left, sorted(set(predicted["rounds"])), "rounds n at random")
    left.set_ylabel("in-sample error / (dk + kT) log(nTdk)")
    left.legend(fontsize=7.5, frameon=False)
    sines = table.filter(pl.col("measure") == "largest sine").with_columns(
        (pl.col("rounds") * pl.col("n_tasks")).alias("samples")
    )
    for (estimator,), rows in sines.group_by(["estimator"], maintain_order=True):
        policy, label = ESTIMATORS[str(estimator)]
        _dots(right, summarise(rows, by=["samples"], value="error"), "samples", policy, label)
    bound = summarise(sines, by=["samples"], value="bound")
    right.plot(bound["samples"], bound["bound"], "--", color=STYLES["e2tc"][0], label="bound of the moments")
    tidy(right, None, "samples $N_1 T$")
    right.set_ylabel("largest sine to the representation")
    right.legend(fontsize=7.5, frameon=False)
    return figure


def _dots(axes: Axes, data: pl.DataFrame, x: str, policy: str, label: str, *, alpha: float = 1.0) -> None:
    colour, marker = STYLES[policy]
    mean = data["error"]
    ends = [(mean - data["ci_low"]).fill_null(0.0), (data["ci_high"] - mean).fill_null(0.0)]
    axes.errorbar(
        data[x],
        mean,
        yerr=ends,
        color=colour,
        marker=marker,
        markersize=4.5,
        capsize=2.5,
        alpha=alpha,
        label=label,
    )


def draw_instances(
    table: pl.DataFrame, title: str, *, limits: pl.DataFrame, formulas: Sequence[str]
) -> Figure:
    """Draw regret per task against T, a panel for each structure, with the terms of a lower bound."""
    structures = table["structure"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(max(6.2, 0.8 + 4.4 * len(structures)), 4.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    panels = figure.subplots(1, len(structures), sharey=True, squeeze=False)[0]
    for structure, axes in zip(structures, panels, strict=True):
        rows = final_rounds(table).filter(pl.col("structure") == structure)
        data = summarise(rows, by=["policy", "n_tasks"])
        for policy in table["policy"].unique(maintain_order=True):
            errorbars(axes, data, policy, "n_tasks")
        own = limits.filter(pl.col("structure") == structure).sort("n_tasks")
        for place, (formula, line) in enumerate(zip(formulas, ("--", ":"), strict=True)):
            label = f"lower bound, {formula}"
            axes.plot(own["n_tasks"], own["terms"].list.get(place), line, color="black", label=label)
        tidy(axes, own["n_tasks"].to_list(), "number of tasks T")
        axes.set_title(structure, fontsize=10)
    panels[0].set_ylabel("regret per task")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
