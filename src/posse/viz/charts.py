"""Charts to explore in a browser: values under the pointer, policies switched on and off by their legend."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from bokeh.embed import components
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.models.annotations.legends import Legend, LegendItem
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure
from bokeh.resources import Resources

from posse.lab.registry import POLICIES
from posse.viz.plots import OVERLAY_COLOUR, STYLES

# matplotlib's markers of STYLES, by the nearest that Bokeh has
MARKERS = {
    "o": "circle",
    "H": "hex",
    "h": "hex",
    "X": "x",
    "8": "circle_cross",
    "p": "triangle_pin",
    "s": "square",
    "^": "triangle",
    "*": "star",
    "D": "diamond",
    "P": "plus",
    "<": "square_pin",
    ">": "square_cross",
    "v": "inverted_triangle",
    "d": "diamond_dot",
}
FRAME_HEIGHT = 250
# A legend whose longest label has more characters than this has one column.
LONG_LABEL = 26
# A logarithmic axis is labelled by the first of these multiples of powers of ten that give it enough labels.
MULTIPLES = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9))
ENOUGH_LABELS = 3
# Up to so many values on an axis have ticks of their own, where they are this factor apart.
MOST_TICKS, LEAST_RATIO = 12, 1.4
# A chart is drawn when it comes near the window: a page of many opens at once.
DRAW_IN_VIEW = """
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      near.unobserve(entry.target);
      draw[entry.target.dataset.chart]();
    }
  }
}, {rootMargin: "300px"});
for (const place of document.querySelectorAll("[data-chart]")) near.observe(place);
"""


@dataclass(frozen=True)
class Embedded:
    """Charts as text to put into a page.

    Attributes
    ----------
    library : str
        Script elements that hold Bokeh itself: the page asks nobody for anything.
    script : str
        A script element that fills the places, each chart when it comes into view.
    places : mapping
        For each chart its panels, as elements to put where they belong: inside one element whose attribute
        `data-chart` is the chart's name.
    """

    library: str
    script: str
    places: Mapping[str, tuple[str, ...]]


def curves_chart(
    data: pl.DataFrame,
    *,
    x: str,
    xlabel: str,
    ylabel: str,
    y: str = "regret_per_task",
    panel: str | None = None,
    log_x: bool = True,
    log_y: bool = False,
    overlay: pl.DataFrame | None = None,
) -> list[Any]:
    """Draw a curve per policy with its intervals, and a panel for each value of a column.

    Parameters
    ----------
    data : DataFrame
        Columns `policy`, x, y, `ci_low` and `ci_high`.
    x, xlabel, y, ylabel : str
        Columns, and what the axes say.
    panel : str, optional
        The column that tells panels apart.
    log_x, log_y : bool
        Whether axes are logarithmic.
    overlay : DataFrame, optional
        A curve that no policy played: columns `label`, x, y and, where there are panels, theirs.

    Returns
    -------
    list of Bokeh figures
        Switching a policy off in one switches it off in all.
    """
    values = [None] if panel is None else data[panel].unique(maintain_order=True).to_list()
    reach = _reach(data, y, overlay, log_y=log_y)
    panels, drawn = [], []
    for value in values:
        here = pl.lit(True) if panel is None else pl.col(panel) == value
        plot = _empty_panel(data, x, log_x, log_y, reach)
        renderers = _draw_curves(plot, data.filter(here), x, y)
        if overlay is not None:
            renderers |= _draw_overlay(plot, overlay.filter(here), x, y)
        plot.add_layout(_legend(renderers), "below")
        plot.title = f"k = {value}" if len(values) > 1 else ""
        plot.xaxis.axis_label, plot.yaxis.axis_label = xlabel, ylabel
        panels.append(plot)
        drawn.append(renderers)
    for others in drawn[1:]:
        for label, some in others.items():
            for mine, theirs in zip(drawn[0].get(label, []), some, strict=False):
                mine.js_link("visible", theirs, "visible")
                theirs.js_link("visible", mine, "visible")
    return panels


def embed(charts: Mapping[str, Sequence[Any]]) -> Embedded:
    """Return all charts of a page as text; each is a list of panels."""
    library = Resources(mode="inline", components=["bokeh"]).render()
    functions, places = [], {}
    for name, panels in charts.items():
        code, divs = components(tuple(panels), wrap_script=False)
        functions.append(f"draw[{json.dumps(name)}] = function() {{{code}}};")
        places[name] = tuple(divs)
    script = "\n".join(["<script>", "const draw = {};", *functions, DRAW_IN_VIEW, "</script>"])
    return Embedded(library, script, places)


def _reach(data: pl.DataFrame, y: str, overlay: pl.DataFrame | None, *, log_y: bool) -> tuple[float, float]:
    """Return the ends of an axis that all panels have in common."""
    parts = [data[y], data["ci_low"], data["ci_high"], *([] if overlay is None else [overlay[y]])]
    values = pl.concat([part.cast(pl.Float64).rename("value") for part in parts]).drop_nulls()
    highest = float(values.to_numpy().max())
    if not log_y:
        return 0.0, 1.05 * highest
    return float(values.filter(values > 0).to_numpy().min()) / 1.2, 1.2 * highest


def _round_values(low: float, high: float) -> list[float]:
    """Return round numbers within an interval, for the labels of a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values: list[float] = []
    for steps in MULTIPLES:
        values = [
            step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high
        ]
        if len(values) >= ENOUGH_LABELS:
            break
    return values


def _empty_panel(data: pl.DataFrame, x: str, log_x: bool, log_y: bool, reach: tuple[float, float]) -> Any:
    plot = figure(
        frame_height=FRAME_HEIGHT,
        sizing_mode="stretch_width",
        min_width=260,
        tools="pan,wheel_zoom,box_zoom,reset",
        x_axis_type="log" if log_x else "linear",
        y_axis_type="log" if log_y else "linear",
        y_range=Range1d(start=reach[0], end=reach[1]),
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    if log_x:
        values = data[x].unique().sort().to_list()
        few = len(values) <= MOST_TICKS
        _mark(plot.xaxis, _apart(values) if few else _round_values(values[0], values[-1]))
    if log_y:
        _mark(plot.yaxis, _round_values(*reach))
    return plot


def _apart(values: Sequence[float]) -> list[float]:
    """Return those of some increasing values whose labels have room beside each other."""
    kept = [values[0]]
    for value in values[1:]:
        if value >= LEAST_RATIO * kept[-1]:
            kept.append(value)
    return kept


def _mark(axis: Any, ticks: Sequence[float]) -> None:
    axis.ticker = list(ticks)
    axis.major_label_overrides = {tick: f"{tick:g}" for tick in ticks}


def _draw_curves(plot: Any, data: pl.DataFrame, x: str, y: str) -> dict[str, list[GlyphRenderer[Any]]]:
    """Draw each policy as line, points and intervals, and return these by the policy's label."""
    renderers: dict[str, list[GlyphRenderer[Any]]] = {}
    present = set(data["policy"])
    for policy in (policy for policy in STYLES if policy in present):
        curve = data.filter(pl.col("policy") == policy).sort(x)
        colour, marker = STYLES[policy]
        label = POLICIES[policy].label
        mean = curve[y]
        source = ColumnDataSource(
            {
                "x": curve[x].to_list(),
                "y": mean.to_list(),
                "low": curve["ci_low"].fill_null(mean).to_list(),
                "high": curve["ci_high"].fill_null(mean).to_list(),
                "policy": [label] * curve.height,
            }
        )
        line = plot.line("x", "y", source=source, color=colour, line_width=1.8)
        dots = plot.scatter("x", "y", source=source, color=colour, marker=MARKERS[marker], size=7)
        band = plot.segment("x", "low", "x", "high", source=source, color=colour, line_width=1.4)
        renderers[label] = [line, dots, band]
    tips = [("", "@policy"), (x.replace("_", " "), "@x{0,0.[00]}"), (y.replace("_", " "), "@y{0,0.00}")]
    tips.append(("95 % interval", "@low{0,0.00} to @high{0,0.00}"))
    plot.add_tools(HoverTool(renderers=[dots for _, dots, _ in renderers.values()], tooltips=tips))
    return renderers


def _draw_overlay(plot: Any, overlay: pl.DataFrame, x: str, y: str) -> dict[str, list[GlyphRenderer[Any]]]:
    curve = overlay.sort(x)
    style = {"color": OVERLAY_COLOUR, "line_dash": "dashed", "line_width": 1.8}
    return {overlay["label"][0]: [plot.line(curve[x].to_list(), curve[y].to_list(), **style)]}


def _legend(renderers: Mapping[str, list[GlyphRenderer[Any]]]) -> Legend:
    return Legend(
        items=[LegendItem(label=label, renderers=list(some)) for label, some in renderers.items()],
        click_policy="hide",
        label_text_font_size="11px",
        glyph_width=16,
        ncols=2 if max(map(len, renderers)) <= LONG_LABEL else 1,
        spacing=3,
        margin=4,
        border_line_color=None,
        location="center",
    )
