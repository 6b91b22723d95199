"""A picture of many ratios: a row per scenario, a lane per policy, and a line at 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.viz.chart import Lane, LaneRow
from posse.viz.still import PLAIN
from posse.viz.style import MARKERS, Style

with extra("report"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullLocator

# Heights in inches and in lanes, of which each policy has one.
LANE, FRAME = 0.06, 1.9
ROW_GAP, GROUP_GAP = 2.5, 3.5
# Intervals that go farther beyond the points than this factor are cut by the frame.
BEYOND = 2.0


def draw_lanes(rows: Sequence[LaneRow], title: str, xlabel: str) -> Figure:
    """Draw ratios on a logarithmic axis: a row per scenario, a lane per policy."""
    tops = _tops(rows)
    bottom = tops[-1] + len(rows[-1].lanes) - 1
    figure = Figure(figsize=(8.0, FRAME + LANE * bottom), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots()
    for row, top in zip(rows, tops, strict=True):
        for number, lane in enumerate(row.lanes):
            _draw_lane(axes, lane, top + number)
    axes.axvline(1.0, color="#404040", linewidth=1, zorder=1)
    _label_rows(axes, rows, tops)
    axes.set_ylim(bottom + ROW_GAP / 2, -ROW_GAP)
    axes.set_xscale("log")
    axes.set_xlim(*_limits([lane for row in rows for lane in row.lanes]))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(PLAIN)
    axes.tick_params(axis="x", top=True, labeltop=True, labelsize=9)
    axes.set_xlabel(xlabel)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.spines[["left", "right"]].set_visible(False)
    _legend_by_family(figure, rows)
    return figure


def _tops(rows: Sequence[LaneRow]) -> list[float]:
    """Return the height of each row's first lane, downwards."""
    tops, next_top, last = [], 0.0, None
    for row in rows:
        next_top += GROUP_GAP if row.group != last else 0.0
        tops.append(next_top)
        next_top, last = next_top + len(row.lanes) - 1 + ROW_GAP, row.group
    return tops


def _draw_lane(axes: Axes, lane: Lane, height: float) -> None:
    if lane.middle is None:
        return
    below = 0.0 if lane.low is None else lane.middle - lane.low
    above = 0.0 if lane.high is None else lane.high - lane.middle
    axes.errorbar(
        [lane.middle],
        [height],
        xerr=[[below], [above]],
        color=lane.style.colour,
        marker=MARKERS[lane.style.marker][0],
        markersize=4.6,
        markeredgecolor="white",
        markeredgewidth=0.4,
        linestyle="none",
        elinewidth=1.1,
        label=lane.label,
    )


def _label_rows(axes: Axes, rows: Sequence[LaneRow], tops: Sequence[float]) -> None:
    """Write the names of scenarios and groups beside their lanes, with lines between them."""
    last = None
    at = axes.get_yaxis_transform()
    for row, top in zip(rows, tops, strict=True):
        middle, edge = top + (len(row.lanes) - 1) / 2, top - ROW_GAP / 2
        beside: dict[str, Any] = {
            "xy": (0.0, middle),
            "xycoords": at,
            "textcoords": "offset points",
            "ha": "right",
        }
        axes.annotate(row.name, xytext=(-8, 0), va="bottom", fontsize=9.5, **beside)
        axes.annotate(row.title, xytext=(-8, -1), va="top", fontsize=7.5, color="#666666", **beside)
        if row.group != last:
            above = edge - GROUP_GAP / 2 - ROW_GAP / 2
            axes.axhspan(above, edge, color="#EEF1F4", linewidth=0, zorder=0)
            axes.text(0.005, (above + edge) / 2, row.group, transform=at, va="center", fontsize=8.5)
        else:
            axes.axhline(edge, color="#D9DEE5", linewidth=0.7, zorder=0)
        last = row.group
    axes.set_yticks([])


def _limits(lanes: Sequence[Lane]) -> tuple[float, float]:
    points = np.array([1.0, *(lane.middle for lane in lanes if lane.middle is not None)])
    ends = [
        end for lane in lanes if lane.middle is not None for end in (lane.low, lane.high) if end is not None
    ]
    reach = np.array([*points, *ends])
    low, high = points.min() / BEYOND, points.max() * BEYOND
    return max(reach.min(), low) / 1.1, min(reach.max(), high) * 1.1


def _legend_by_family(figure: Figure, rows: Sequence[LaneRow]) -> None:
    """Put a legend below, with a column for each family."""
    families: dict[str, dict[str, Style]] = {}
    for row in rows:
        for lane in row.lanes:
            families.setdefault(lane.family, {})[lane.label] = lane.style
    nothing = Line2D([], [], linestyle="none")
    longest = max(map(len, families.values()))
    handles, labels = [], []
    for family, members in families.items():
        marks = [
            Line2D([], [], color=style.colour, marker=MARKERS[style.marker][0], markersize=5, linewidth=1.1)
            for style in members.values()
        ]
        blank = longest - len(members)
        handles += [nothing, *marks, *[nothing] * blank]
        labels += [family, *members, *[""] * blank]
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 8.5}
    legend = figure.legend(handles, labels, ncols=len(families), **place)
    for number in range(len(families)):
        legend.get_texts()[number * (longest + 1)].set_fontweight("bold")
