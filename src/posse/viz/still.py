"""Charts drawn by matplotlib: pictures for files, print and pages without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.viz.chart import Axis, Chart, Panel, Series, round_ticks
from posse.viz.style import MARKERS

with extra("report"):
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
PANEL_WIDTH, WIDE_PANEL, PANEL_HEIGHT, LEAST_WIDTH = 3.1, 3.9, 3.1, 6.2  # inches
# The share of a panel's height that is left free for a note.
NOTE_SHARE = 0.3


def draw(chart: Chart) -> Figure:
    """Draw a chart: its panels in rows, one legend below."""
    columns = min(chart.columns, len(chart.panels))
    rows = math.ceil(len(chart.panels) / columns)
    wide = columns == 2 or any(panel.note for panel in chart.panels)
    width = max(LEAST_WIDTH, 0.8 + (WIDE_PANEL if wide else PANEL_WIDTH) * columns)
    figure = Figure(figsize=(width, 0.5 + PANEL_HEIGHT * rows), layout="constrained")
    figure.suptitle(chart.title, fontsize=11)
    places = figure.subplots(rows, columns, sharey=chart.same_y, squeeze=False).ravel()
    for number, (panel, axes) in enumerate(zip(chart.panels, places, strict=False)):
        _draw_panel(axes, panel)
        _limit(axes, panel, chart.reach(panel))
        if number % columns == 0 or not chart.same_y:
            axes.set_ylabel(panel.y.label)
    for spare in places[len(chart.panels) :]:
        spare.set_axis_off()
    _legend(figure, chart)
    return figure


def errorbars(axes: Axes, series: Series, **more: Any) -> None:
    """Draw one series of marks with a bar for every interval."""
    lows, highs = series.ends
    below = [y - low for y, low in zip(series.y, lows, strict=True)]
    above = [high - y for y, high in zip(series.y, highs, strict=True)]
    settings = {**_line_of(series), "marker": MARKERS[series.style.marker][0], "markersize": 4.5, **more}
    axes.errorbar(series.x, series.y, yerr=[below, above], capsize=2.5, label=series.label, **settings)


def save(figure: Figure, path: Path | str) -> None:
    """Write a figure in the format that the file's ending names, whole or not at all."""
    path = Path(path)
    kind = path.suffix.removeprefix(".").lower()
    metadata = {"Date": None} if kind == "svg" else None
    write_atomically(
        path, lambda temporary: figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)
    )


def _draw_panel(axes: Axes, panel: Panel) -> None:
    if panel.line is not None:
        at, text = panel.line
        axes.axvline(at, color="#7F7F7F", linestyle=":", linewidth=1)
        axes.annotate(f" {text}", (at, 1.0), xycoords=("data", "axes fraction"), va="top", fontsize=9)
    for series in panel.series:
        if series.kind == "marks":
            errorbars(axes, series)
        else:
            _draw_line(axes, series)
    axes.set_title(panel.title, fontsize=10)
    _set_axis(axes, "x", panel.x)
    _set_axis(axes, "y", panel.y)
    axes.set_xlabel(panel.x.label)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if panel.note:
        box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "#D9DEE5", "boxstyle": "round,pad=0.3"}
        place: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom", "bbox": box}
        axes.text(0.03, 0.03, panel.note, fontsize=7, family="monospace", **place)


def _limit(axes: Axes, panel: Panel, reach: tuple[float, float]) -> None:
    """Let the vertical axis span `reach`, with room for a note below, and label log axes by round numbers."""
    low, high = reach
    if panel.y.scale == "log" and not panel.y.ticks:
        _set_ticks(axes.yaxis, round_ticks(low, high))
    if panel.x.scale == "log" and not panel.x.ticks:
        _set_ticks(axes.xaxis, round_ticks(*axes.dataLim.intervalx))
    if panel.note:
        low /= (high / low) ** (NOTE_SHARE / (1 - NOTE_SHARE))
    axes.set_ylim(low, high)


def _draw_line(axes: Axes, series: Series) -> None:
    settings = _line_of(series)
    if series.kind == "points":
        settings |= {"marker": MARKERS[series.style.marker][0], "markersize": 4, "linestyle": "none"}
    if series.kind == "band":
        settings |= {"marker": MARKERS[series.style.marker][0], "markersize": 3.5, "markevery": 3}
    axes.plot(series.x, series.y, label=series.label, **settings)
    if series.has_intervals:
        lows, highs = series.ends
        axes.fill_between(series.x, lows, highs, color=series.style.colour, alpha=0.2, linewidth=0)


def _line_of(series: Series) -> dict[str, Any]:
    style = series.style
    return {"color": style.colour, "linestyle": style.line, "alpha": series.opacity}


def _set_axis(axes: Axes, name: str, axis: Axis) -> None:
    settings = {"linthresh": axis.linear_below} if axis.scale == "symlog" else {}
    axes.set(**{f"{name}scale": axis.scale}) if not settings else axes.set_yscale("symlog", **settings)
    ruler = axes.xaxis if name == "x" else axes.yaxis
    if axis.ticks:
        _set_ticks(ruler, axis.ticks, slanted=name == "x" and len(axis.ticks) > 9)


def _set_ticks(ruler: Any, ticks: Sequence[float], *, slanted: bool = False) -> None:
    ruler.set_ticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45 if slanted else 0)
    ruler.set_minor_locator(NullLocator())


def _legend(figure: Figure, chart: Chart) -> None:
    """Put one legend for all panels below them, as wide as fits, and make room for its height."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    labels = list(chart.legend)
    handles = [found[label] for label in labels]
    renderer = FigureCanvasAgg(figure).get_renderer()
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
    for columns in range(len(labels), 0, -1):
        legend = figure.legend(handles, labels, ncols=columns, **place)
        box = legend.get_window_extent(renderer)
        if columns == 1 or box.width <= figure.bbox.width:
            break
        legend.remove()
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + box.height / figure.dpi)
