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


def coverage_table(found: Mapping[str, Any]) -> str:
    """Return the table of how many of 1,000 intervals hold the truth, from a proof's result."""
    rows = [
        _row(name, held)
        for name, held in found.items()
        if isinstance(held, dict) and "asymptotic, dr" in held
    ]
    return "\n".join([HEAD, RULE, *rows])


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
    """Put the table of the stored result into the page."""
    found = json.loads((RESULTS / "evaluation-intervals.json").read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("| logger, decisions of a task |")
    end = text.index("\n\n", start)
    PAGE.write_text(text[:start] + coverage_table(found) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
