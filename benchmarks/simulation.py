"""The memory of a run; `bench_simulation.py` has the time."""

from __future__ import annotations

import resource
import subprocess
import sys

from rich.table import Table

from posse import GaussianProblem, MLinGreedy, simulate

PROBE = "from benchmarks.simulation import peak_memory; print(peak_memory({n_tasks}, {path!r}))"


def memory() -> Table:
    """Measure the peak memory of a run in a process of its own."""
    table = Table("T", "path", "peak memory", title="Memory of a run: d = 30, K = 5, MLinGreedy")
    for path in ("exact", "contexts"):
        for n_tasks in (100, 1000):
            probe = [sys.executable, "-c", PROBE.format(n_tasks=n_tasks, path=path)]
            peak = subprocess.run(probe, check=True, capture_output=True, text=True).stdout.strip()
            table.add_row(str(n_tasks), path, f"{peak} MB")
    return table


def peak_memory(n_tasks: int, path: str) -> int:
    """Run MLinGreedy and return the peak resident memory of this process, in MB."""
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=30, rank=5, seed=0)
    simulate(problem, MLinGreedy(rank=5), horizon=1000, seed=0, path=path)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
