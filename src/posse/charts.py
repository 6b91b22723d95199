"""Charts to explore in a browser: values under the pointer, policies switched on and off by their legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from bokeh.embed import components
from bokeh.models import ColumnDataSource, HoverTool, Legend, LegendItem
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure
from bokeh.resources import Resources

from posse.catalogue import POLICIES
from posse.plots import STYLES

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
HEIGHT = 340


@dataclass(frozen=True)
class Embedded:
    """Charts as text to put into a page.

    Attributes
    ----------
    library : str
        Script elements that hold Bokeh itself: the page asks nobody for anything.
    script : str
        A script element that fills the places.
    places : mapping
        For each chart its panels, as elements to put where they belong.
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

    Returns
    -------
    list of Bokeh figures
        Switching a policy off in one switches it off in all.
    """
    values = [None] if panel is None else data[panel].unique(maintain_order=True).to_list()
    panels, drawn = [], []
    for value in values:
        some = data if panel is None else data.filter(pl.col(panel) == value)
        plot, renderers = _panel(some, x, y, log_x, log_y)
        plot.title = "" if value is None else f"k = {value}"
        plot.xaxis.axis_label, plot.yaxis.axis_label = xlabel, ylabel
        panels.append(plot)
        drawn.append(renderers)
    for others in drawn[1:]:
        for policy, items in others.items():
            for mine, theirs in zip(drawn[0].get(policy, []), items, strict=False):
                mine.js_link("visible", theirs, "visible")
                theirs.js_link("visible", mine, "visible")
    return panels


def embed(charts: Mapping[str, Sequence[Any]]) -> Embedded:
    """Return all charts of a page as text; each is a list of panels."""
    library = Resources(mode="inline", components=["bokeh"]).render()
    panels = {f"{name}/{place}": plot for name, plots in charts.items() for place, plot in enumerate(plots)}
    script, divs = components(panels) if panels else ("", {})
    places = {
        name: tuple(divs[f"{name}/{place}"] for place in range(len(plots))) for name, plots in charts.items()
    }
    return Embedded(library, script, places)


def _panel(
    data: pl.DataFrame, x: str, y: str, log_x: bool, log_y: bool
) -> tuple[Any, dict[str, list[GlyphRenderer[Any]]]]:
    plot = figure(
        height=HEIGHT,
        sizing_mode="stretch_width",
        min_width=280,
        tools="pan,wheel_zoom,box_zoom,reset",
        x_axis_type="log" if log_x else "linear",
        y_axis_type="log" if log_y else "linear",
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    if log_x and data[x].n_unique() <= 12:
        ticks = sorted(data[x].unique().to_list())
        plot.xaxis.ticker = ticks
        plot.xaxis.major_label_overrides = {tick: f"{tick:g}" for tick in ticks}
    renderers: dict[str, list[GlyphRenderer[Any]]] = {}
    items: list[LegendItem] = []
    points: list[Any] = []
    present = set(data["policy"])
    for policy in STYLES:
        if policy not in present:
            continue
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
        renderers[policy] = [line, dots, band]
        points.append(dots)
        items.append(LegendItem(label=label, renderers=[line, dots, band]))
    tips = [("", "@policy"), (x.replace("_", " "), "@x{0,0.[00]}"), (y.replace("_", " "), "@y{0,0.00}")]
    tips.append(("95 % interval", "@low{0,0.00} to @high{0,0.00}"))
    plot.add_tools(HoverTool(renderers=points, tooltips=tips))
    legend = Legend(items=items, click_policy="hide", label_text_font_size="11px", spacing=1, padding=4)
    legend.ncols = 2
    plot.add_layout(legend, "below")
    return plot, renderers
