"""What was measured, as tables."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.peers.contenders import NUMPY, POSSE, Contender

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
REGRET_TOLERANCE = 1e-6
HEADINGS = (
    "",
    "version",
    "what it plays",
    "µs per decision",
    "ratio to posse",
    "memory, MB",
    "growth, MB",
    "regret",
    "note",
)


@dataclass
class Row:
    """A contender in one of the tables, and what its runs found."""

    contender: Contender
    batch: int
    rounds: int
    runs: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None

    @property
    def microseconds(self) -> float:
        """The processor time of a decision, which other programs disturb less: the median over runs."""
        return float(1e6 * median(run["processor_seconds"] / run["decisions"] for run in self.runs))

    def record(self) -> dict[str, object]:
        """Return all that is known, for JSON."""
        return {**asdict(self), "microseconds": None if self.failure else self.microseconds}


def cells(row: Row, rows: Sequence[Row]) -> list[str]:
    """Return a row of its table, as text; `rows` are those of all tables."""
    contender = row.contender
    if row.failure:
        return [contender.name, "", contender.plays, *["–"] * 5, row.failure]
    run = row.runs[-1]
    posse, numpy = (_same_table(row, rows, other) for other in (POSSE, NUMPY))
    notes = []
    if posse is not None and row.rounds != posse.rounds:
        notes.append(f"{row.rounds} rounds: regret is not comparable")
    elif contender.exact and numpy is not None:
        gap = run["regret"] - numpy.runs[-1]["regret"]
        if abs(gap) > REGRET_TOLERANCE:
            notes.append(f"regret differs from NumPy's by {gap:+.1e}")
    return [
        contender.name,
        str(run["version"]),
        contender.plays,
        _three_digits(row.microseconds),
        "–" if posse is None else _three_digits(row.microseconds / posse.microseconds),
        *("–" if run[size] is None else f"{run[size]:.0f}" for size in ("peak_mb", "growth_mb")),
        f"{run['regret']:.4f}",
        "; ".join(notes),
    ]


def _same_table(row: Row, rows: Sequence[Row], contender: Contender) -> Row | None:
    found = (other for other in rows if other.contender == contender and other.batch == row.batch)
    return next((other for other in found if not other.failure), None)


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def titled(rows: Sequence[Row]) -> Iterable[tuple[str, list[list[str]]]]:
    """Yield a title and the cells of each table."""
    for batch in dict.fromkeys(row.batch for row in rows):
        when = "every decision" if batch == 1 else f"every {batch} rounds"
        yield f"Updates after {when}", [cells(row, rows) for row in rows if row.batch == batch]


def tables(rows: Sequence[Row]) -> Iterable[Table]:
    """Yield the tables for a terminal."""
    for title, lines in titled(rows):
        table = Table(*HEADINGS, title=title)
        for line in lines:
            table.add_row(*line)
        yield table


def markdown(rows: Sequence[Row], repeats: int) -> str:
    """Return the tables as Markdown, under a line that says when and where they were made."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    text = f"Measured on {date.today()} with {machine}. Processor time, median of {repeats}.\n"
    for title, lines in titled(rows):
        body = [HEADINGS, ["---"] * len(HEADINGS), *lines]
        text += f"\n### {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in body)
    return text


def write_page(path: Path, text: str) -> None:
    """Write Markdown into a page between its two markers, or as a new page if there is none."""
    page = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{path} must hold the lines {BEGIN!r} and {END!r}.")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")
