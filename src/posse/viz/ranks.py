"""A picture of mean ranks: names on a line, and bars over those who are not told apart."""

from __future__ import annotations

import math

from posse.core.extras import extra
from posse.viz.chart import Ranking

with extra("report"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, BAR, FRAME = 8.0, 0.2, 0.11, 1.3  # inches
INK = "#404040"


def draw_ranks(chart: Ranking) -> Figure:
    """Draw mean ranks on a line, names left and right of it, and a bar for each group that is alike."""
    n = len(chart.names)
    half = math.ceil(n / 2)
    bars = BAR / ROW * (len(chart.groups) + 1)
    figure = Figure(figsize=(WIDTH, FRAME + ROW * half + BAR * len(chart.groups)), layout="constrained")
    figure.suptitle(chart.title, fontsize=11)
    axes = figure.subplots()
    low, high = 1, max(2, n)
    axes.plot([low, high], [0, 0], color=INK, linewidth=1)
    for tick in range(low, high + 1):
        axes.plot([tick, tick], [0, -0.25], color=INK, linewidth=1)
        axes.text(tick, -0.4, str(tick), ha="center", va="bottom", fontsize=8)
    for place, (name, rank) in enumerate(zip(chart.names, chart.ranks, strict=True)):
        left = place < half
        height = bars + 0.6 + (place if left else n - 1 - place)
        _label(axes, height, name, rank, (low, high), left=left)
    for number, (first, last) in enumerate(chart.groups):
        depth = BAR / ROW * (number + 0.8)
        ends = [chart.ranks[first] - 0.06, chart.ranks[last] + 0.06]
        axes.plot(ends, [depth, depth], color=INK, linewidth=3, solid_capstyle="butt")
    if chart.critical is not None:
        axes.plot([low, low + chart.critical], [-2.0, -2.0], color="#7F7F7F", linewidth=1.5)
        axes.text(
            low, -2.2, f"Nemenyi's critical difference, {chart.critical:.1f}", fontsize=7.5, va="bottom"
        )
    room = 0.42 * (high - low) + 0.4
    axes.set_xlim(low - room, high + room)
    axes.set_ylim(bars + half + 0.4, -3.6)
    axes.set_axis_off()
    return figure


def _label(
    axes: Axes, height: float, name: str, rank: float, ends: tuple[float, float], *, left: bool
) -> None:
    """Draw the line from a rank to its name, beside the ruler's left end or its right."""
    reach = 0.03 * (ends[1] - ends[0]) + 0.1
    side = ends[0] - reach if left else ends[1] + reach
    axes.plot([rank, rank, side], [0, height, height], color="#8A8A8A", linewidth=0.8)
    text = f"{name}  {rank:.1f} " if left else f" {rank:.1f}  {name}"
    axes.text(side, height, text, ha="right" if left else "left", va="center", fontsize=8)
