"""From tables of runs to charts, as data: `posse.viz` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posse.core.extras import extra
from posse.lab.registry import in_order, label_of, style_of
from posse.lab.results import final_rounds, summarise
from posse.viz.chart import Axis, Chart, Kind, Panel, Scale, Series
from posse.viz.style import REFERENCE, Style

with extra("lab"):
    import polars as pl

# Regret is drawn from this round on: before it, it is the luck of a few rounds.
FIRST_ROUND = 10


def curves(
    data: pl.DataFrame, *, x: str, y: str = "regret_per_task", kind: Kind = "marks", factor: float = 1.0
) -> tuple[Series, ...]:
    """Return a curve for each policy of a table that `summarise` made, with its intervals.

    Parameters
    ----------
    data : DataFrame
        Columns `policy`, x, y, `ci_low` and `ci_high`.
    x, y : str
        Columns to draw.
    kind : "marks" or "band"
        How intervals are shown.
    factor : float
        By which all values are multiplied.
    """
    found = []
    for policy in in_order(data["policy"]):
        rows = data.filter(pl.col("policy") == policy).sort(x)
        found.append(
            series(rows, x=x, y=y, kind=kind, factor=factor, label=label_of(policy), style=style_of(policy))
        )
    return tuple(found)


def series(
    rows: pl.DataFrame,
    *,
    x: str,
    y: str,
    label: str,
    style: Style,
    kind: Kind = "marks",
    factor: float = 1.0,
    opacity: float = 1.0,
) -> Series:
    """Return one curve from rows that `summarise` made, in order of x."""
    mean, low, high = (
        tuple(None if value is None else factor * value for value in rows[name].to_list())
        for name in (y, "ci_low", "ci_high")
    )
    return Series(
        label=label,
        style=style,
        x=tuple(rows[x].to_list()),
        y=tuple(value for value in mean if value is not None),
        low=low,
        high=high,
        kind=kind,
        opacity=opacity,
    )


def reference(label: str, x: Sequence[float], y: Sequence[float], line: str = "dashed") -> Series:
    """Return a curve that no policy played: a theorem's, say."""
    return Series(label=label, style=Style(REFERENCE, line=line), x=tuple(x), y=tuple(y), kind="line")


def regret_by_tasks(
    table: pl.DataFrame, title: str, *, scale: Scale = "linear", theorem: pl.DataFrame | None = None
) -> Chart:
    """Return the paper's picture: final regret per task against T, one panel per rank.

    Parameters
    ----------
    table : DataFrame
        The long table of runs, with a column `n_tasks`; where it has a column `rank`, each rank has a panel.
    title : str
    scale : "linear" or "log"
        Of regret.
    theorem : DataFrame, optional
        A dashed curve: columns `label`, `rank`, `n_tasks` and `regret_per_task`.
    """
    ticks = tuple(sorted(table["n_tasks"].unique().to_list()))
    panels = []
    for rank, rows in _by_rank(final_rounds(table)):
        drawn = curves(summarise(rows, by=["policy", "n_tasks"]), x="n_tasks")
        if theorem is not None:
            own = theorem.filter(pl.col("rank") == rank)
            drawn += (reference(own["label"][0], own["n_tasks"].to_list(), own["regret_per_task"].to_list()),)
        panels.append(
            Panel(
                title=f"k = {rank}",
                x=Axis(label="number of tasks T", scale="log", ticks=ticks),
                y=Axis(label="regret per task", scale=scale, low=0.0 if scale == "linear" else None),
                series=drawn,
            )
        )
    return Chart(
        stem="regret-by-tasks",
        title=title,
        panels=_titled_if_many(panels),
        caption="Regret per task after all rounds against the number of tasks. Bars are 95 % intervals over "
        "seeds.",
    )


def regret_by_round(table: pl.DataFrame, title: str, *, caption: str = "") -> Chart:
    """Return how regret grows over the rounds, at the largest number of tasks, one panel per rank.

    Parameters
    ----------
    table : DataFrame
        The long table of runs. Where it has a column `n_tasks`, the largest is drawn; where it has a column
        `rank`, each rank has a panel.
    title : str
    caption : str
        What to say beside that bands are intervals.
    """
    rows = table.filter(pl.col("round") >= min(FIRST_ROUND, max(table["round"])))
    if "n_tasks" in table.columns:
        rows = rows.filter(pl.col("n_tasks") == pl.col("n_tasks").max())
    panels = []
    for rank, own in _by_rank(rows):
        panels.append(
            Panel(
                title=f"k = {rank}",
                x=Axis(label="round n", scale="log"),
                y=Axis(label="regret per task up to round n", scale="log"),
                series=curves(summarise(own, by=["policy", "round"]), x="round", kind="band"),
            )
        )
    sentences = ("Regret per task up to round n.", caption, "Bands are 95 % intervals over seeds.")
    said = " ".join(filter(None, sentences))
    return Chart(stem="regret-by-round", title=title, panels=_titled_if_many(panels), caption=said)


def _by_rank(rows: pl.DataFrame) -> list[tuple[Any, pl.DataFrame]]:
    """Return ranks and their rows, least first; rows without ranks are together, under None."""
    if "rank" not in rows.columns:
        return [(None, rows)]
    return [(rank, rows.filter(pl.col("rank") == rank)) for rank in sorted(rows["rank"].unique().to_list())]


def _titled_if_many(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """Leave out the title of a panel that is the only one."""
    if len(panels) > 1:
        return tuple(panels)
    (panel,) = panels
    return (Panel(x=panel.x, y=panel.y, series=panel.series, note=panel.note, line=panel.line),)
