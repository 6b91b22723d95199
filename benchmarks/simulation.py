"""The simulator: time of a million decisions beside drawing their random numbers, and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial

import numpy as np
from rich.table import Table

from benchmarks.measure import median_seconds
from posse import GaussianProblem, MLinGreedy, simulate
from posse.catalogue import POLICIES, PROBLEMS, PolicyOptions

MEMORY_PROBE = "from benchmarks.simulation import peak_memory; print(peak_memory({n_tasks}))"


def decisions(repeats: int) -> Table:
    """Time each policy at d = 30, T = 100, K = 5, N = 10^4, beside drawing the same numbers with NumPy."""
    problem = GaussianProblem.draw(n_tasks=100, dim=30, rank=5, seed=0)
    drawing, _ = median_seconds(repeats, draw_numbers)
    table = Table(
        "policy", "time", "ratio to drawing", title="10^6 decisions: d = 30, T = 100, K = 5, N = 10^4"
    )
    table.add_row("(random numbers alone)", f"{drawing:.2f} s", "1.0")
    for name in PROBLEMS["gaussian"].policies:
        built = POLICIES[name].build(problem, PolicyOptions(rank=5))
        seconds, _ = median_seconds(repeats, partial(simulate, horizon=10_000, seed=0), problem, built)
        table.add_row(name, f"{seconds:.2f} s", f"{seconds / drawing:.1f}")
    return table


def draw_numbers() -> None:
    """Draw the numbers of those decisions, 32 rounds at a time."""
    rng = np.random.default_rng(0)
    chunk = np.empty((32, 100, 5, 30))
    for _ in range(10_000 // 32):
        rng.standard_normal(out=chunk)


def memory() -> Table:
    """Measure the peak memory of a run in a process of its own."""
    table = Table("T", "peak memory", title="Memory of a run: d = 30, K = 5, MLinGreedy")
    for n_tasks in (100, 1000):
        probe = [sys.executable, "-c", MEMORY_PROBE.format(n_tasks=n_tasks)]
        peak = subprocess.run(probe, check=True, capture_output=True, text=True).stdout.strip()
        table.add_row(str(n_tasks), f"{peak} MB")
    return table


def peak_memory(n_tasks: int) -> int:
    """Run MLinGreedy and return the peak resident memory of this process, in MB."""
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=30, rank=5, seed=0)
    simulate(problem, MLinGreedy(rank=5), horizon=1000, seed=0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
