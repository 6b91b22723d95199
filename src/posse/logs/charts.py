"""The charts of a diagnosis, as data: what sharing saves each task, and errors against rows."""

from __future__ import annotations

from collections.abc import Sequence

from posse.logs.diagnosis import Diagnosis, TaskGain
from posse.logs.learning_curve import CurvePoint
from posse.viz.chart import Axis, Chart, Panel, Series, round_ticks
from posse.viz.style import BLUE, ORANGE, REFERENCE, Style

ERROR = "squared error / noise"
TOGETHER, ALONE = "with sharing", "each task alone"
FOLLOWS, APART, NO_CHANGE = "follows the others", "stands alone", "no change"
STYLES = {
    TOGETHER: Style(BLUE),
    ALONE: Style(ORANGE, "square", "dashed"),
    FOLLOWS: Style(BLUE),
    APART: Style(ORANGE, "diamond"),
    NO_CHANGE: Style(REFERENCE, line="dotted"),
}
# Room above and below curves, as a share of what they span.
ROOM = 0.05


def charts_of(diagnosis: Diagnosis) -> dict[str, Chart]:
    """Return the charts that a diagnosis has data for, by name: "tasks", "curve" and "newcomers"."""
    found = {}
    if diagnosis.gaining_most:
        found["tasks"] = _tasks(diagnosis)
    if len(diagnosis.curve) > 1:
        found["curve"] = _errors(
            "curve",
            "Error against rows per task",
            "rows per task",
            diagnosis.curve,
            "Mean held-out error of tasks that learn from some of their rows. 95 % intervals over tasks.",
        )
    own = [point for point in diagnosis.newcomers if point.rows > 0]
    if len(own) > 1:
        found["newcomers"] = _errors(
            "newcomers",
            "A new task",
            "rows of the new task",
            own,
            "Mean held-out error of tasks that took turns at being new: from what the others share and their "
            "own rows, or from these alone. 95 % intervals over tasks.",
        )
    return found


def _tasks(diagnosis: Diagnosis) -> Chart:
    told = diagnosis.gaining_most
    apart = {task.name for task in diagnosis.standing_alone}
    groups: dict[str, list[TaskGain]] = {FOLLOWS if diagnosis.rank else TOGETHER: [], APART: []}
    for task in told:
        groups[APART if task.name in apart else next(iter(groups))].append(task)
    rows = sorted(task.rows for task in told)
    panel = Panel(
        x=_rows_axis("rows of the task", rows),
        y=_roomy_axis("error saved / noise", [0.0, *(task.saved or 0.0 for task in told)]),
        series=(
            *(_points(label, tasks) for label, tasks in groups.items() if tasks),
            Series(
                label=NO_CHANGE, style=STYLES[NO_CHANGE], x=(rows[0], rows[-1]), y=(0.0, 0.0), kind="line"
            ),
        ),
    )
    return Chart(
        stem="tasks",
        title="What sharing saves each task",
        panels=(panel,),
        caption="Held-out squared error alone less that with sharing, of every task: above 0 it helps. "
        "The number of one task is rough.",
    )


def _points(label: str, tasks: Sequence[TaskGain]) -> Series:
    ordered = sorted(tasks, key=lambda task: task.rows)
    return Series(
        label=label,
        style=STYLES[label],
        x=tuple(task.rows for task in ordered),
        y=tuple(task.saved or 0.0 for task in ordered),
        kind="points",
        opacity=0.7,
        names=tuple(task.name for task in ordered),
    )


def _errors(stem: str, title: str, label: str, points: Sequence[CurvePoint], caption: str) -> Chart:
    rows = tuple(point.rows for point in points)
    alone, shared = (
        Series(
            label=name,
            style=STYLES[name],
            x=rows,
            y=tuple(getattr(point, which) for point in points),
            low=tuple(getattr(point, f"{which}_low") for point in points),
            high=tuple(getattr(point, f"{which}_high") for point in points),
        )
        for name, which in ((ALONE, "alone"), (TOGETHER, "shared"))
    )
    panel = Panel(
        x=_rows_axis(label, rows),
        y=_roomy_axis(ERROR, [1.0, *alone.y, *shared.y]),
        series=(shared, alone),
    )
    return Chart(stem=stem, title=title, panels=(panel,), caption=caption)


def _roomy_axis(label: str, heights: Sequence[float]) -> Axis:
    """Return an axis on which all heights lie inside, not on the edge."""
    room = ROOM * ((max(heights) - min(heights)) or 1.0)
    return Axis(label=label, low=min(heights) - room, high=max(heights) + room)


def _rows_axis(label: str, rows: Sequence[float]) -> Axis:
    ends = min(rows), max(rows)
    return Axis(label=label, scale="log", ticks=round_ticks(*ends) if ends[0] < ends[1] else (ends[0],))
