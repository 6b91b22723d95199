"""The page of an evaluation: whether there is an answer, what it is, for whom, and what it rests on."""

from __future__ import annotations

from pathlib import Path

from posse.logs.evaluation.answers import ESTIMATORS, USUAL, WITHOUT_MODEL
from posse.logs.evaluation.charts import charts_of
from posse.logs.evaluation.intervals import ASSUMPTIONS, FEW_ROWS
from posse.logs.evaluation.result import Evaluation, Row
from posse.logs.evaluation.targets import LOGGED
from posse.viz.interactive import embed
from posse.viz.pages import Picture, still_address, write_page

# So many tasks are listed.
MOST_TASKS = 500


def write_evaluation(found: Evaluation, path: Path | str, command: str = "") -> None:
    """Write an evaluation as a page that stands alone: pictures and script inside, nothing asked of anybody.

    Parameters
    ----------
    found : Evaluation
    path : Path or str
        The file to write.
    command : str
        How to make it again, if there is a command.
    """
    charts = charts_of(found)
    by_task: dict[str | None, dict[str, Row]] = {}
    for row in found.rows:
        if row.estimator in (USUAL, "mean") or (row.estimator == WITHOUT_MODEL and _bare(found, row.policy)):
            by_task.setdefault(row.task, {})[row.policy] = row
    write_page(
        Path(path),
        "evaluation.html.j2",
        found=found,
        logged=LOGGED,
        policies=[policy for policy in found.policies if policy != LOGGED],
        estimators=ESTIMATORS,
        assumptions=ASSUMPTIONS,
        few_rows=FEW_ROWS,
        gains={gain.policy: gain for gain in found.gains if gain.task is None},
        support={one.policy: one for one in found.support if one.task is None},
        by_task=by_task,
        listed=found.tasks[:MOST_TASKS],
        charts=embed(charts),
        pictures={name: Picture(name, chart, still_address(chart)) for name, chart in charts.items()},
        command=command,
    )


def _bare(found: Evaluation, policy: str) -> bool:
    """Return whether a policy has no doubly robust estimate, as only chances of arms played are known."""
    return USUAL not in found.pooled(policy)
