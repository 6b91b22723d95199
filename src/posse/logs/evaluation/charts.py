"""The charts of an evaluation, as data: values of policies by several estimators, and gains of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from posse.logs.evaluation.answers import ESTIMATORS
from posse.logs.evaluation.result import Evaluation, Gain, Row
from posse.logs.evaluation.targets import LOGGED
from posse.viz.chart import Axis, Chart, Panel, Series, round_ticks
from posse.viz.style import BLUE, GREEN, ORANGE, PINK, REFERENCE, Style

# The estimators that are drawn beside each other, with their looks.
DRAWN = {
    "dr": Style(BLUE),
    "snips": Style(ORANGE, "square"),
    "ips": Style(PINK, "triangle"),
    "dr-alone": Style(GREEN, "diamond"),
}
EARNED, NO_CHANGE = "what was earned", "no change"
DOTTED = Style(REFERENCE, line="dotted")
# How far apart estimators of one policy stand, in places of policies; and the room beside the first and last.
APART, BESIDE = 0.12, 0.5
ROOM = 0.05
# Of as many policies as there are styles gains are drawn by task.
STYLES = (Style(BLUE), Style(ORANGE, "square"), Style(PINK, "triangle"), Style(GREEN, "diamond"))


def charts_of(found: Evaluation) -> dict[str, Chart]:
    """Return the charts that an evaluation has data for, by name: "policies" and "tasks"."""
    charts = {}
    policies = [policy for policy in found.policies if policy != LOGGED]
    if any(row.low is not None for policy in policies for row in found.pooled(policy).values()):
        charts["policies"] = _policies(found, policies)
    gains = [gain for gain in found.gains if gain.task is not None]
    if gains:
        charts["tasks"] = _tasks(found, gains, policies)
    return charts


def _policies(found: Evaluation, policies: Sequence[str]) -> Chart:
    series = _marks(found, policies)
    earned = found.pooled(LOGGED)["mean"].value or 0.0
    ends = 1.0 - BESIDE, len(policies) + BESIDE
    series.append(Series(label=EARNED, style=DOTTED, x=ends, y=(earned, earned), kind="line"))
    panel = Panel(
        x=Axis(
            label="policy, by its number in the table",
            ticks=tuple(float(place) for place in range(1, len(policies) + 1)),
            low=ends[0],
            high=ends[1],
        ),
        y=_value_axis("reward of a decision", series),
        series=tuple(series),
    )
    flag = " Propensities are estimated." if found.estimated else ""
    return Chart(
        stem="policies",
        title="What policies would have earned",
        panels=(panel,),
        caption=f"The mean reward of a decision by several estimators, with {found.level:.0%} intervals, and "
        f"what was earned.{flag}",
    )


def _marks(found: Evaluation, policies: Sequence[str]) -> list[Series]:
    """Return the estimates that have an interval, those of one policy side by side."""
    series = []
    for number, (name, style) in enumerate(DRAWN.items()):
        aside = APART * (number - (len(DRAWN) - 1) / 2)
        for place, policy in enumerate(policies, 1):
            row = found.pooled(policy).get(name)
            if row is not None and row.low is not None:
                series.append(_mark(ESTIMATORS[name].title, style, place + aside, row))
    return series


def _mark(label: str, style: Style, place: float, row: Row) -> Series:
    """Return one estimate with its interval, a series of its own: no line joins it to another policy."""
    return Series(
        label=label,
        style=style,
        x=(place,),
        y=(row.value or 0.0,),
        low=(row.low,),
        high=(row.high,),
        names=(row.policy,),
    )


def _value_axis(label: str, series: Sequence[Series]) -> Axis:
    heights = [value for one in series for side in (one.y, *one.ends) for value in side]
    room = ROOM * (max(heights) - min(heights)) or 1.0
    return Axis(label=label, low=min(heights) - room, high=max(heights) + room)


def _tasks(found: Evaluation, gains: Sequence[Gain], policies: Sequence[str]) -> Chart:
    rows = {row.task: row.ess for row in found.rows if row.policy == LOGGED}
    owned = [[gain for gain in gains if gain.policy == policy] for policy in policies]
    series = [_points(own, style, rows) for own, style in zip(owned, STYLES, strict=False) if own]
    places = sorted({place for one in series for place in one.x})
    ends = places[0], places[-1]
    series.append(Series(label=NO_CHANGE, style=DOTTED, x=ends, y=(0.0, 0.0), kind="line"))
    ticks = round_ticks(*ends) if ends[0] < ends[1] else (ends[0],)
    panel = Panel(
        x=Axis(label="decisions of the task", scale="log", ticks=ticks),
        y=_value_axis("gain over the logged policy", series),
        series=tuple(series),
    )
    return Chart(
        stem="tasks",
        title="Gains of tasks",
        panels=(panel,),
        caption="What policies would have earned beyond the logged one in each task, by the doubly robust "
        "estimator. The number of one task is rough: its interval is in the table.",
    )


def _points(gains: Sequence[Gain], style: Style, rows: Mapping[str | None, float]) -> Series:
    """Return the gains of one policy over the decisions of tasks, by the number of these."""
    ordered = sorted(gains, key=lambda gain: rows[gain.task])
    return Series(
        label=ordered[0].policy,
        style=style,
        x=tuple(rows[gain.task] for gain in ordered),
        y=tuple(gain.gain for gain in ordered),
        kind="points",
        opacity=0.7,
        names=tuple(gain.task or "" for gain in ordered),
    )
