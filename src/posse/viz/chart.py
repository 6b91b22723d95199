"""Pictures as data: described once, and drawn by matplotlib (`still`) or by Bokeh (`interactive`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from posse.viz.style import Style

Kind = Literal["marks", "band", "line", "points"]
Scale = Literal["linear", "log", "symlog"]


@dataclass(frozen=True, kw_only=True)
class Series:
    """One curve.

    Attributes
    ----------
    label : str
        Its name in the legend; series of one label are shown and hidden together.
    style : Style
    x, y : tuples of float
        In increasing order of x.
    low, high : tuples of float or None
        Ends of an interval around each y, None where there is none. Empty for a curve without intervals.
    kind : "marks", "band", "line" or "points"
        Marks have a bar for each interval, a band is shaded between their ends, a line has no marker, and
        points have no line.
    opacity : float
    names : tuple of str
        What each point is called under the pointer, beside the label; empty if it has no name.
    """

    label: str
    style: Style
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    kind: Kind = "marks"
    opacity: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[list[float], list[float]]:
        """Lower and upper ends of all intervals; y itself where there is none."""
        lows = [y if end is None else end for y, end in zip(self.y, self.low or self.y, strict=True)]
        highs = [y if end is None else end for y, end in zip(self.y, self.high or self.y, strict=True)]
        return lows, highs

    @property
    def has_intervals(self) -> bool:
        """Whether every point has an interval."""
        return bool(self.low) and None not in self.low


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis.

    Attributes
    ----------
    label : str
    scale : "linear", "log" or "symlog"
        symlog is linear from 0 up to `linear_below`, and logarithmic from there on.
    ticks : tuple of float
        Where the axis is labelled; chosen by who draws, if empty.
    low, high : float, optional
        The ends of the axis, if they are not to follow from the data.
    linear_below : float
    """

    label: str
    scale: Scale = "linear"
    ticks: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    linear_below: float = 1.0

    def place(self, value: float) -> float:
        """Return where on a linear axis, or on a logarithmic one if the scale is "log", a value is drawn.

        Examples
        --------
        >>> axis = Axis(label="", scale="symlog", linear_below=0.1)
        >>> [axis.place(value) for value in (0.0, 0.1, 1.0, 100.0)]
        [0.0, 1.0, 2.0, 4.0]
        """
        if self.scale != "symlog":
            return value
        ratio = value / self.linear_below
        return ratio if ratio <= 1.0 else 1.0 + math.log10(ratio)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves on a pair of axes.

    Attributes
    ----------
    x, y : Axis
    series : tuple of Series
    title : str
    note : str
        Lines of text in a corner.
    line : pair of float and str, optional
        An x that is marked by a vertical line, and what to write there.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    title: str = ""
    note: str = ""
    line: tuple[float, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture: panels side by side, with one legend.

    Attributes
    ----------
    stem : str
        Names its files.
    title : str
    panels : tuple of Panel
    caption : str
        What is drawn, in a sentence or two.
    reading : str
        What it shows, in words, if there is something to say.
    columns : int
        Panels in a row.
    same_y : bool
        Whether all panels have one y axis in common.
    """

    stem: str
    title: str
    panels: tuple[Panel, ...]
    caption: str = ""
    reading: str = ""
    columns: int = 4
    same_y: bool = True

    @property
    def legend(self) -> dict[str, Series]:
        """The first series of every label, in order."""
        found: dict[str, Series] = {}
        for panel in self.panels:
            for series in panel.series:
                found.setdefault(series.label, series)
        return found

    def reach(self, panel: Panel) -> tuple[float, float]:
        """Return the ends of a panel's y axis: those it asks for, or those of the curves with some room."""
        panels = self.panels if self.same_y else (panel,)
        curves = [series for some in panels for series in some.series]
        low, high = _log_room(curves) if panel.y.scale == "log" else _linear_room(curves)
        return (low if panel.y.low is None else panel.y.low, high if panel.y.high is None else panel.y.high)


def _heights(curves: Iterable[Series]) -> list[float]:
    """Return all heights of curves and of their intervals."""
    found = (value for series in curves for side in (series.y, *series.ends) for value in side)
    return [value for value in found if math.isfinite(value)]


def _linear_room(curves: Sequence[Series]) -> tuple[float, float]:
    heights = _heights(curves)
    return min(0.0, *heights), 1.05 * max(heights) or 1.0


def _log_room(curves: Sequence[Series]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis; intervals that go far below all points are cut."""
    heights = _heights(curves)
    points = [value for series in curves for value in series.y if value > 0] or [1.0]
    return max(min(heights), min(points) / FAR_BELOW) / 1.2, 1.2 * max(*heights, *points)


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Ratios of many policies in many problems: a row for each problem, a column for each policy.

    Attributes
    ----------
    title : str
    rows : tuple of pairs of str
        Group and name; rows of one group stand together, under its name.
    columns : tuple of pairs of str
        Group and name, as for rows.
    values : tuple of tuples of float or None
        Row by row; None where there is none.
    """

    title: str
    rows: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    values: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Mean ranks on a line, and who is not told apart.

    Attributes
    ----------
    title : str
    names : tuple of str
        The least rank first.
    ranks : tuple of float
    groups : tuple of pairs of int
        First and last place of neighbours no two of whom are told apart.
    critical : float, optional
        A difference of ranks to be drawn as a ruler.
    """

    title: str
    names: tuple[str, ...]
    ranks: tuple[float, ...]
    groups: tuple[tuple[int, int], ...]
    critical: float | None


# The end of an interval that is this factor below the lowest point of all is not worth an axis that shows it.
FAR_BELOW = 3.0
# A logarithmic axis is labelled at the first of these multiples of powers of ten that give it enough labels.
MULTIPLES = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0))
ENOUGH_LABELS = 3
# The width of a panel on a phone, of a letter, and between two labels, in pixels.
NARROW, LETTER_WIDTH, LABEL_GAP = 235.0, 6.5, 12.0


def round_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round numbers within an interval of positive numbers, for the labels of a logarithmic axis.

    Examples
    --------
    >>> round_ticks(8.0, 1200.0)
    (10.0, 100.0, 1000.0)
    >>> round_ticks(8.0, 120.0)
    (10.0, 30.0, 100.0)
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values: tuple[float, ...] = ()
    for steps in MULTIPLES:
        values = tuple(
            step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high
        )
        if len(values) >= ENOUGH_LABELS:
            break
    return spaced_ticks(values, "log")


def spaced_ticks(ticks: Sequence[float], scale: Scale) -> tuple[float, ...]:
    """Return those of some increasing ticks whose labels have room beside each other, also on a phone.

    Examples
    --------
    >>> spaced_ticks((10, 20, 50, 100, 200, 500, 1000, 2000, 5000), "log")
    (10, 20, 50, 200, 500, 5000)
    """
    if len(ticks) < 2:
        return tuple(ticks)
    places = [math.log(tick) if scale == "log" else float(tick) for tick in ticks]
    width = places[-1] - places[0]

    def apart(left: int, right: int) -> bool:
        letters = (len(f"{ticks[left]:g}") + len(f"{ticks[right]:g}")) / 2
        return NARROW * (places[right] - places[left]) / width >= LETTER_WIDTH * letters + LABEL_GAP

    last = len(ticks) - 1
    kept = [0]
    for number in range(1, last):
        if apart(kept[-1], number) and apart(number, last):
            kept.append(number)
    return tuple(ticks[number] for number in dict.fromkeys([*kept, last]))
