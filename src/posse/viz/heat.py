"""A picture of many ratios: a row per problem, a column per policy, the darker the farther from the best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from posse.core.extras import extra
from posse.viz.chart import HeatMap

with extra("report"):
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure

# Of a cell, and around all, in inches.
WIDTH, HEIGHT, LEFT, TOP = 0.46, 0.235, 2.0, 2.5
# Ratios from here on have the darkest colour.
DARKEST = 4.0
COLOURS = LinearSegmentedColormap.from_list("heat", ["#F4F8F1", "#F6D48F", "#D9772B", "#7F1D1D"])
NOTHING = "#ECECEC"
# Ratios above this are written in white.
DARK = 2.2


def draw_heat(chart: HeatMap) -> Figure:
    """Draw ratios as colours, with their numbers: 1, the best, is bold."""
    gaps = sum(one != other for one, other in pairwise(group for group, _ in chart.rows))
    height = TOP + HEIGHT * (len(chart.rows) + 0.9 * (gaps + 1))
    figure = Figure(figsize=(LEFT + WIDTH * len(chart.columns), height), layout="constrained")
    figure.suptitle(chart.title, fontsize=11)
    axes = figure.subplots()
    across, down = _places(chart.columns, 0.35), _places(chart.rows, 0.9)
    norm = LogNorm(1.0, DARKEST, clip=True)
    for row, y in zip(chart.values, down, strict=True):
        for value, x in zip(row, across, strict=True):
            colour = NOTHING if value is None else COLOURS(norm(value))
            axes.fill([x, x + 1, x + 1, x], [y, y, y + 1, y + 1], color=colour, linewidth=0)
            if value is not None:
                axes.text(
                    x + 0.5,
                    y + 0.52,
                    short(value),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if value > DARK else "#222222",
                    fontweight="bold" if value == 1.0 else "normal",
                )
    _name(axes, chart, across, down)
    return figure


def short(value: float) -> str:
    """Return a ratio in few letters.

    Examples
    --------
    >>> short(1.048), short(12.34), short(123.4), short(12345.0)
    ('1.05', '12.3', '123', '12k')
    """
    if value >= 10_000:
        return f"{value / 1000:.0f}k"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _places(names: Sequence[tuple[str, str]], gap: float) -> list[float]:
    """Return where each row or column begins, with a gap where a group does."""
    places, at, last = [], 0.0, None
    for group, _ in names:
        at += gap if group != last else 0.0
        places.append(at)
        at, last = at + 1.0, group
    return places


def _name(axes: Axes, chart: HeatMap, across: Sequence[float], down: Sequence[float]) -> None:
    """Write names beside rows and above columns, and those of groups over them."""
    for (_, name), y in zip(chart.rows, down, strict=True):
        axes.text(across[0] - 0.25, y + 0.5, name, ha="right", va="center", fontsize=8)
    for (_, name), x in zip(chart.columns, across, strict=True):
        axes.text(x + 0.3, down[0] - 1.1, name, rotation=55, ha="left", va="bottom", fontsize=8)
    for group, some in groupby(zip(chart.rows, down, strict=True), key=lambda pair: pair[0][0]):
        axes.text(across[0], next(some)[1] - 0.15, group, va="bottom", fontsize=7.5, color="#555555")
    for group, columns in groupby(zip(chart.columns, across, strict=True), key=lambda pair: pair[0][0]):
        places = [x for _, x in columns]
        bottom = down[-1] + 1.3
        axes.plot([places[0] + 0.08, places[-1] + 0.92], [bottom, bottom], color="#555555", linewidth=1)
        axes.text(sum(places) / len(places) + 0.5, bottom + 0.25, group, ha="center", va="top", fontsize=7.5)
    axes.set_xlim(-0.1, across[-1] + 1.1)
    axes.set_ylim(down[-1] + 2.6, down[0] - 1.2)
    axes.set_axis_off()
