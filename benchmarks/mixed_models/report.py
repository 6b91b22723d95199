"""What was measured, as tables: everything in them is made from the stored run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, median
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.mixed_models.contenders import CONTENDERS, MERF, POSSE, TOLD

HEADINGS = (
    "",
    "error",
    "ratio",
    "fresh rows",
    "time, s",
    "ratio",
)
Run = dict[str, Any]


def cells_of(stored: dict[str, Any]) -> list[tuple[int, int, int, bool]]:
    """Return what was drawn, (T, d, n, related), in the order of the run."""
    return list(dict.fromkeys(_cell(run) for run in stored["runs"]))


def _cell(run: Run) -> tuple[int, int, int, bool]:
    return run["tasks"], run["dim"], run["rows"], run["related"]


def runs_of(stored: dict[str, Any], cell: tuple[int, int, int, bool], name: str) -> list[Run]:
    """Return the runs of a contender on some tasks, by seed."""
    found = [run for run in stored["runs"] if _cell(run) == cell and run["contender"] == name]
    return sorted(found, key=lambda run: run["seed"])


def ended(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that came to an end."""
    return [run for run in runs if "failure" not in run]


def ratios(runs: Sequence[Run], others: Sequence[Run], what: str) -> list[float]:
    """Return what runs measured relative to others, seed by seed, where both ended."""
    by_seed = {run["seed"]: run for run in ended(others)}
    return [run[what] / by_seed[run["seed"]][what] for run in ended(runs) if run["seed"] in by_seed]


def table(stored: dict[str, Any], cell: tuple[int, int, int, bool]) -> list[list[str]]:
    """Return a row of text for each contender: what stands in the table, and a note at the end."""
    posse, lines = runs_of(stored, cell, POSSE.name), []
    for contender in CONTENDERS:
        runs = runs_of(stored, cell, contender.name)
        done, failures = ended(runs), [run["failure"] for run in runs if "failure" in run]
        warned = (
            ["says in some runs that it did not converge"] if any(run["unconverged"] for run in done) else []
        )
        note = "; ".join(dict.fromkeys(failures + warned))
        if not done:
            lines.append([contender.name, *["–"] * 5, note])
            continue
        errors = ratios(done, posse, "theta_error")
        times = ratios(done, posse, "processor_seconds")
        time = "–" if contender is TOLD else _digits(median(run["processor_seconds"] for run in done))
        lines.append(
            [
                contender.name,
                f"{_rms(run['theta_error'] for run in done):.3f}",
                "1" if contender is POSSE else f"{mean(errors):.3f} ± {_half_width(errors):.3f}",
                f"{_rms(run['held_out'] for run in done):.3f}",
                time,
                "–" if contender is TOLD else _digits(median(times)),
                note,
            ]
        )
    return lines


def _rms(values: Iterable[float]) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def _half_width(values: Sequence[float]) -> float:
    """Return half the width of a 95 % interval of a mean, by Student's t; 0 of a single value."""
    n = len(values)
    return float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5) if n > 1 else 0.0


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def targets(stored: dict[str, Any]) -> dict[str, float]:
    """Return the three figures that were aimed at.

    The error relative to merf's at the largest size, related, and how many times faster; and the largest
    error on unrelated tasks relative to the best other contender's, which is chosen afresh for each size.
    """
    largest = max(cell for cell in cells_of(stored) if cell[3])
    posse, merf = (runs_of(stored, largest, name) for name in (POSSE.name, MERF.name))
    rivals = [contender.name for contender in CONTENDERS if contender not in (POSSE, TOLD)]
    unrelated = []
    for cell in (cell for cell in cells_of(stored) if not cell[3]):
        own = runs_of(stored, cell, POSSE.name)
        found = [ratios(own, runs_of(stored, cell, name), "theta_error") for name in rivals]
        unrelated.append(max(mean(values) for values in found if values))
    return {
        "error relative to merf": mean(ratios(posse, merf, "theta_error")),
        "told the truth relative to merf": mean(
            ratios(runs_of(stored, largest, TOLD.name), merf, "theta_error")
        ),
        "times faster than merf": median(ratios(merf, posse, "processor_seconds")),
        "unrelated, relative to the best": max(unrelated),
    }


def markdown(stored: dict[str, Any]) -> str:
    """Return the tables as Markdown, under lines that say when, where and with what they were made."""
    versions = {run["contender"]: run["version"] for run in ended(stored["runs"])}
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if name != TOLD.name)
    text = f"Measured on {stored['date']} with {stored['machine']}. {known}.\n"
    for cell in cells_of(stored):
        tasks, dim, rows, related = cell
        seeds = len(runs_of(stored, cell, POSSE.name))
        text += f"\n### {'Related' if related else 'Unrelated'}, T = {tasks}, d = {dim}, n = {rows}\n\n"
        text += f"{seeds} seeds.\n\n"
        lines = table(stored, cell)  # notes stand below: a wide table has to be scrolled
        body = [HEADINGS, ["---"] * len(HEADINGS), *(line[:-1] for line in lines)]
        text += "".join(f"| {' | '.join(line)} |\n" for line in body)
        text += "".join(f"\n{line[0]} {line[-1]}.\n" for line in lines if line[-1])
    return text
