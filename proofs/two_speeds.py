"""What it saves that every reward counts at once, and what it costs, on the cells of Figures 1 and 2."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from posse import GaussianProblem, IndependentGreedy, SharedGreedy, simulate
from posse.core.protocols import Policy

HORIZON = 10_000
PAIRS: Mapping[str, tuple[Policy, Policy]] = {
    "SharedGreedy": (SharedGreedy(), SharedGreedy(prompt=True)),
    "IndependentGreedy": (IndependentGreedy(), IndependentGreedy(prompt=True)),
}


def cells(n_seeds: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield d, k, T and seeds; where T is largest two seeds are enough."""
    for dim in (20, 30):
        for rank in (2, 3, 5):
            for n_tasks in (10, 20, 50, 100, 200):
                for seed in range(min(n_seeds, 2 if n_tasks == 200 else n_seeds)):
                    yield dim, rank, n_tasks, seed


def ratios(dim: int, rank: int, n_tasks: int, seed: int, horizon: int = HORIZON) -> dict[str, Any]:
    """Return regret and processor time with two speeds, relative to one speed with equal refits."""
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed)
    found: dict[str, Any] = {"T": n_tasks}
    for name, pair in PAIRS.items():
        regret, seconds = [], []
        for policy in pair:
            clock = time.process_time()
            trace = simulate(problem, policy, horizon=horizon, seed=seed, final_state=False)
            seconds.append(time.process_time() - clock)
            regret.append(float(trace.regret_per_task[-1]))
        found[name] = (regret[1] / regret[0], seconds[1] / seconds[0])
    return found


def summary(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return geometric means of ratios of regret and of time, and the half-width of a 95 % interval."""
    regret, seconds = (np.log([row[name][place] for row in rows]) for place in (0, 1))
    half = 1.96 * regret.std(ddof=1) / np.sqrt(len(regret))
    return {
        "regret": round(float(np.exp(regret.mean())), 3),
        "+-": round(float(half), 3),
        "time": round(float(np.exp(seconds.mean())), 1),
    }


def prove(n_seeds: int = 5) -> dict[str, Any]:
    """Return ratios of two speeds to one, over all cells and by the number of tasks."""
    rows = [ratios(*cell) for cell in cells(n_seeds)]
    by_tasks = {n_tasks: [row for row in rows if row["T"] == n_tasks] for n_tasks in (10, 20, 50, 100, 200)}
    return {
        name: {
            "all": {"runs": len(rows), **summary(rows, name)},
            **{f"T = {n_tasks}": summary(some, name) for n_tasks, some in by_tasks.items()},
        }
        for name in PAIRS
    }
