"""Run the paper's figures, and write the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from posse.lab.engines import Workers
from posse.lab.grid import ALONE, Progress, run_experiments
from posse.lab.store import earlier_results
from posse.paper.figure import Comparison, Figure
from posse.paper.registry import COMPARISONS, all_figures
from posse.paper.report import Report, write_report


def reproduce(
    figures: Sequence[Figure],
    *,
    seeds: int,
    out: Path,
    workers: Workers = ALONE,
    known: Iterable[Figure] | None = None,
    comparisons: Sequence[Comparison] = COMPARISONS,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Run what is not yet run of some figures, and write a page with figures and verdicts.

    Every finished run is saved at once, and the same call goes on where an interrupted one stopped. Writes
    OUT/report.html, OUT/claims.json and, in a folder for each figure, results.parquet, manifest.json and its
    charts as PNG and SVG.

    Parameters
    ----------
    figures : sequence of Figure
        Such as `posse.paper.registry.figures_named` returns.
    seeds : int
        Seeds 0, ..., seeds - 1 of each cell.
    out : Path
        The folder of results.
    workers : Workers
        Who plays: by default this process.
    known : iterable of Figure, optional
        The page also shows those of them that earlier calls left in `out`. By default all there are.
    comparisons : sequence of Comparison
        Shown where all their figures are.
    on_progress : callable, optional
        Told after every run.
    """
    clock = time.perf_counter()
    studies = [figure.study for figure in figures]
    tables = run_experiments(studies, seeds=seeds, out=out, workers=workers, on_progress=on_progress)
    everything = {figure.name: figure for figure in (all_figures().values() if known is None else known)}
    others = (figure.study for name, figure in everything.items() if name not in tables)
    earlier, left_out = earlier_results(others, out)
    tables |= earlier
    everything |= {figure.name: figure for figure in figures}
    shown = [figure for name, figure in everything.items() if name in tables]
    minutes = (time.perf_counter() - clock) / 60
    return write_report(shown, tables, out, comparisons=comparisons, minutes=minutes, left_out=left_out)
