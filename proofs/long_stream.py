"""Sixty thousand tasks in a stream: memory does not grow, nor what a task costs."""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np

from posse import SharedThompson, simulate
from posse.policies.carrying import Carried
from posse.problems import StreamProblem

# Rounds of each task and tasks of a group: a stream is long by its tasks here, not by their rounds.
ROUNDS, BATCH = 30, 60
SHARES = (0.1, 0.2, 0.5, 1.0)


class Watched(SharedThompson):
    """Writes down what is held once so many tasks have ended."""

    def watch(self, marks: list[int]) -> dict[int, dict[str, float]]:
        """Return a table that is filled as tasks end."""
        found: dict[int, dict[str, float]] = {}
        object.__setattr__(self, "_watch", (marks, found, time.process_time()))
        return found

    def finish(self, memory: Carried, policy: Any, state: Any, rng: np.random.Generator) -> Carried:
        """Learn from a group that has ended, and look at what is held."""
        learned = super().finish(memory, policy, state, rng)
        marks, found, clock = self._watch  # type: ignore[attr-defined]
        seen, kept = learned.finished.n_seen, learned.finished.statistics
        if seen in marks and kept is not None:
            found[seen] = {
                "tasks kept": kept.n_tasks,
                "MB, the most so far": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "processor seconds": round(time.process_time() - clock, 1),
            }
        return learned


def prove(n_tasks: int = 60_000) -> dict[str, Any]:
    """Return what is held after shares of a stream's tasks, in groups of 60 and one by one."""
    return {**held(n_tasks, BATCH), "one by one": held(n_tasks, 1)}


def held(n_tasks: int, batch: int) -> dict[str, Any]:
    """Return what is held after shares of the tasks; half of B is late by a twelfth of them."""
    stream = StreamProblem.draw(n_tasks=n_tasks, dim=4, rank=2, batch=batch, seed=0, order="late")
    policy = Watched()
    found = policy.watch([batch * round(share * stream.n_groups) for share in SHARES])
    trace = simulate(stream, policy, horizon=ROUNDS, seed=0)
    return {
        "after tasks": {str(seen): row for seen, row in found.items()},
        "tasks whose regret is kept": int(trace.regret.shape[1]),
    }
