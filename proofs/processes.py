"""Four processes ask and tell through PostgreSQL, every reward twice, while one learns: totals are exact."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from posse import Agent
from proofs.live_checks import ROOT, statistics_of
from proofs.postgres_checks import serving


def prove(n_decisions: int = 100_000, n_processes: int = 4) -> dict[str, Any]:
    """Return what was told by all processes together, and what the learner has counted."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        address = server.get_uri()
        agent = Agent.open(address, seed=0, snapshot_every=5_000)
        paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        outputs = [Path(folder) / f"{number}.txt" for number in range(n_processes)]
        each = str(n_decisions // n_processes)
        children = []
        for number, output in enumerate(outputs):
            with output.open("w") as file:
                command = [sys.executable, "-m", "proofs.asking_child", address, str(number), each]
                children.append(
                    subprocess.Popen(command, stdout=file, env={**os.environ, "PYTHONPATH": paths})
                )
        while agent.learn() or any(child.poll() is None for child in children):
            pass
        lines = [line.split() for output in outputs for line in output.read_text().splitlines()]
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
