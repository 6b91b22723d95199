"""Charts drawn by Bokeh: values under the pointer, curves switched on and off by one legend."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from posse.core.extras import extra
from posse.viz.chart import Axis, Chart, Panel, Series, round_ticks, spaced_ticks
from posse.viz.style import MARKERS

with extra("report"):
    from bokeh.embed import components
    from bokeh.models import ColumnDataSource, HoverTool, Range1d
    from bokeh.models.annotations.geometry import Span
    from bokeh.models.annotations.labels import Label
    from bokeh.plotting import figure
    from bokeh.resources import Resources

FRAME_HEIGHT = 250
# More values than this on an axis have no ticks of their own.
MOST_TICKS = 12


@dataclass(frozen=True)
class Embedded:
    """Charts as text to put into a page.

    Attributes
    ----------
    library : str
        Script elements that hold Bokeh itself: the page asks nobody for anything.
    script : str
        A script element that fills the places, each chart when it comes into view, and minds the legends.
    places : mapping
        For each chart its panels, as elements to put where they belong: inside one element whose attribute
        `data-chart` is the chart's name.
    """

    library: str
    script: str
    places: Mapping[str, tuple[str, ...]]


def draw(chart: Chart) -> list[Any]:
    """Return one Bokeh plot for each panel of a chart, without a legend: the page has one for all."""
    return [_draw_panel(chart, panel) for panel in chart.panels]


def embed(charts: Mapping[str, Chart]) -> Embedded:
    """Return all charts of a page as text, under their names."""
    library = Resources(mode="inline", components=["bokeh"]).render()
    functions, places = [], {}
    for name, chart in charts.items():
        code, divs = components(tuple(draw(chart)), wrap_script=False)
        functions.append(f"draw[{json.dumps(name)}] = function() {{{code}}};")
        places[name] = tuple(divs)
    minding = files("posse.viz").joinpath("templates", "charts.js").read_text(encoding="utf-8")
    script = "\n".join(["<script>", "const draw = {};", *functions, minding, "</script>"])
    return Embedded(library, script, places)


def _draw_panel(chart: Chart, panel: Panel) -> Any:
    low, high = chart.reach(panel)
    plot = figure(
        frame_height=FRAME_HEIGHT,
        sizing_mode="stretch_width",
        min_width=260,
        tools="pan,wheel_zoom,box_zoom,reset",
        title=panel.title or None,
        x_axis_label=panel.x.label,
        y_axis_label=panel.y.label,
        x_axis_type="log" if panel.x.scale == "log" else "linear",
        y_axis_type="log" if panel.y.scale == "log" else "linear",
        y_range=Range1d(start=panel.y.place(low), end=panel.y.place(high)),
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    points = sorted({x for series in panel.series for x in series.x})
    _set_ticks(
        plot.xaxis, panel.x, panel.x.ticks or tuple(points if len(points) <= MOST_TICKS else ()), points
    )
    _set_ticks(plot.yaxis, panel.y, panel.y.ticks, [low, high])
    if panel.line is not None:
        at, text = panel.line
        plot.add_layout(Span(location=at, dimension="height", line_color="#7F7F7F", line_dash="dotted"))
        note: dict[str, Any] = {"text_font_size": "11px", "text_baseline": "top", "x_offset": 4}
        plot.add_layout(Label(x=at, y=FRAME_HEIGHT, y_units="screen", text=text, **note))
    shown = [_draw_series(plot, panel, series, low) for series in panel.series]
    tips = [("", "@label"), (panel.x.label, "@value_x{0,0.[00]}"), (panel.y.label, "@value_y{0,0.00}")]
    if any(series.low for series in panel.series):
        tips.append(("95 % interval", "@value_low{0,0.00} to @value_high{0,0.00}"))
    plot.add_tools(HoverTool(renderers=shown, tooltips=tips))
    return plot


def _set_ticks(ruler: Any, axis: Axis, wanted: tuple[float, ...], values: list[float]) -> None:
    if not wanted:
        if axis.scale != "log":
            return
        wanted = round_ticks(values[0], values[-1])
    ticks = spaced_ticks(wanted, "log" if axis.scale == "log" else "linear")
    if axis.scale == "symlog":
        ticks = wanted
    ruler.ticker = [axis.place(tick) for tick in ticks]
    ruler.major_label_overrides = {axis.place(tick): f"{tick:g}" for tick in ticks}


def _draw_series(plot: Any, panel: Panel, series: Series, floor: float) -> Any:
    """Draw line, marks and intervals of a series, all named by its label; return what can be pointed at.

    On a logarithmic axis an interval is drawn down to the floor, where it would go on to 0 or below.
    """
    lows, highs = series.ends
    least = floor if panel.y.scale == "log" else -math.inf
    source = ColumnDataSource(
        {
            "x": list(series.x),
            "y": [panel.y.place(value) for value in series.y],
            "low": [panel.y.place(max(value, least)) for value in lows],
            "high": [panel.y.place(max(value, least)) for value in highs],
            "value_x": list(series.x),
            "value_y": list(series.y),
            "value_low": lows,
            "value_high": highs,
            "label": [f"{series.label}: {name}" for name in series.names] or [series.label] * len(series.x),
        }
    )
    look = {"source": source, "color": series.style.colour, "name": series.label}
    marker = MARKERS[series.style.marker][1]
    if series.kind == "points":
        return plot.scatter("x", "y", marker=marker, size=6, alpha=series.opacity, **look)
    line = plot.line("x", "y", line_width=1.8, line_dash=series.style.line, alpha=series.opacity, **look)
    if series.kind != "marks" and series.has_intervals:
        plot.varea("x", "low", "high", source=source, name=series.label, color=look["color"], alpha=0.2)
    if series.kind == "marks":
        plot.segment("x", "low", "x", "high", line_width=1.4, alpha=series.opacity, **look)
    if series.kind == "line":
        return line
    return plot.scatter("x", "y", marker=marker, size=7, alpha=series.opacity, **look)
