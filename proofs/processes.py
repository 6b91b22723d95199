"""Four processes ask and tell through PostgreSQL, every reward twice, while one learns: totals are exact."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from posse import Agent
from proofs.children import children
from proofs.live_checks import statistics_of
from proofs.postgres_checks import serving


def prove(n_decisions: int = 100_000, n_processes: int = 4) -> dict[str, Any]:
    """Return what was told by all processes together, and what the learner has counted."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        address = server.get_uri()
        agent = Agent.open(address, seed=0, snapshot_every=5_000)
        each = n_decisions // n_processes
        with children() as start:
            asking = [
                start.start("proofs.asking_child", address, number, each) for number in range(n_processes)
            ]
            while agent.learn() or any(child.alive for child in asking):
                pass
            lines = [line.split() for child in asking for line in child.lines]
        while agent.status().refitting:
            pass
        total, status = statistics_of(agent), agent.status()
        found = {
            "decisions": status.decisions,
            "rewards told": len(lines),
            "rewards counted": status.rewards,
            "rows": float(total.count.sum()),
            "squares told": round(sum(float(reward) ** 2 for _, _, reward in lines), 6),
            "squares counted": round(float(total.square.sum()), 6),
            "versions": status.versions,
        }
        agent.close()
    return found
