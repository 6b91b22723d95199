"""What one decision and one reward of a `Learner` cost, whatever the number of tasks."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.table import Table

from posse import Learner, LearningPolicy, Ridge, SharedThompson, SharedUCB
from posse.core.protocols import Policy

DIM, N_ARMS, FEW, MANY, CALLS = 30, 20, 20, 2000, 2000
POLICIES: dict[str, Policy] = {
    "SharedThompson, 64 draws": SharedThompson(),
    "SharedUCB": SharedUCB(),
    "greedy ridge": LearningPolicy(estimator=Ridge(penalty=1.0)),
}


def decisions(repeats: int) -> Table:
    """Time one select and one observe for few tasks and for many, by turns; the least time counts."""
    table = Table(
        "policy",
        "call",
        f"T = {FEW}, µs",
        f"T = {MANY}, µs",
        "ratio",
        title=f"One decision, one reward: d = {DIM}, K = {N_ARMS}, processor time",
    )
    for name, policy in POLICIES.items():
        calls = {n_tasks: _calls(policy, n_tasks) for n_tasks in (FEW, MANY)}
        for kind in ("select", "observe"):
            least = dict.fromkeys(calls, np.inf)
            for _ in range(repeats):
                for n_tasks, call in calls.items():
                    least[n_tasks] = min(least[n_tasks], _microseconds(call[kind]))
            ratio = least[MANY] / least[FEW]
            table.add_row(name, kind, f"{least[FEW]:.1f}", f"{least[MANY]:.1f}", f"{ratio:.2f}")
    return table


def _calls(policy: Policy, n_tasks: int) -> dict[str, Callable[[], object]]:
    """Return a decision and a reward for one task of a learner that has seen some rows of all."""
    rng = np.random.default_rng(0)
    learner = Learner(policy, n_tasks=n_tasks, dim=DIM, seed=0)
    tasks = np.repeat(np.arange(n_tasks), 3)
    learner.observe(tasks, rng.standard_normal((len(tasks), DIM)), rng.standard_normal(len(tasks)))
    learner.update()
    arms = rng.standard_normal((1, N_ARMS, DIM))
    return {
        "select": lambda: learner.select([17], arms),
        "observe": lambda: learner.observe([17], arms[0, :1], [1.0]),
    }


def _microseconds(call: Callable[[], object]) -> float:
    call()
    clock = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - clock) / CALLS * 1e6
