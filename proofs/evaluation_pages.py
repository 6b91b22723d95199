"""What stored results of evaluation say, as the tables of the pages have it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "howto" / "evaluate.md"
HEAD = "| logger, decisions of a task | `ips` | `dr` | `ips` by task | `dr` by task | `sequence`, `dr` |"
RULE = "|---|---:|---:|---:|---:|---:|"
SHARING_HEAD = (
    "| tasks, effects of variance | `dr` / `snips` | told the true rewards / `snips` | `dr` / `dr-alone` |"
    " worst-off fifth of tasks |"
)
SHARING_RULE = "|---|---:|---:|---:|---:|"
RATIOS = ("dr / snips", "told the true rewards / snips", "dr / dr-alone")


def coverage_table(found: Mapping[str, Any]) -> str:
    """Return the table of how many of 1,000 intervals hold the truth, from a proof's result."""
    rows = [
        _row(name, held)
        for name, held in found.items()
        if isinstance(held, dict) and "asymptotic, dr" in held
    ]
    return "\n".join([HEAD, RULE, *rows])


def sharing_table(found: Mapping[str, Any]) -> str:
    """Return the table of what the shared model of rewards saves, from a proof's result."""
    rows = []
    for name, ratios in found.items():
        if isinstance(ratios, dict):
            cells = [f"{ratios[one]['ratio']:.3f} ± {ratios[one]['+-']:.3f}" for one in RATIOS]
            cells.append(f"{ratios['dr / dr-alone, worst-off fifth of tasks']:.3f}")
            rows.append(f"| {name.replace('effects of variance ', '')} | {' | '.join(cells)} |")
    return "\n".join([SHARING_HEAD, SHARING_RULE, *rows])


def _row(name: str, held: Mapping[str, Any]) -> str:
    tasks = (_of_tasks(held, estimator) for estimator in ("ips", "dr"))
    cells = [held["asymptotic, ips"], held["asymptotic, dr"], *tasks, held["sequence, dr"]]
    return f"| {name.replace(' n = ', ' ')} | {' | '.join(map(str, cells))} |"


def _of_tasks(held: Mapping[str, Any], estimator: str) -> str:
    """Return the mean over tasks with the worst-off one, of normal intervals or of Bernstein's instead."""
    normal = held.get(f"asymptotic by task, {estimator}")
    if normal is None:
        return f"{held[f'Bernstein in its place, {estimator}']['tasks']}, Bernstein"
    return f"{normal['tasks']} ({normal['worst-off task']})"


def main() -> None:
    """Put the tables of the stored results into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("intervals", coverage_table), ("sharing", sharing_table)):
        found = json.loads((RESULTS / f"evaluation-{name}.json").read_text(encoding="utf-8"))
        made = table(found)
        start = text.index(made[: made.index("|", 1) + 1])  # the head of the first column
        text = text[:start] + made + text[text.index("\n\n", start) :]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
