"""A process with an agent is killed at random moments: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from proofs.live_checks import check_after_death, run_child
from proofs.postgres_checks import check_database, kill_in_turns, new_database, serving


def kill(path: Path, durability: str, seed: int, rng: np.random.Generator) -> list[str]:
    """Let a process ask and tell, kill it at a random moment, and return what it said was acknowledged."""
    child = run_child(path, durability, seed)
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(int(rng.integers(1, 120)))]
    child.kill()
    rest, _ = child.communicate()
    return [*lines, *rest.splitlines(keepends=True)]


def prove(n_kills: int = 1000, lives: int = 25) -> dict[str, Any]:
    """Kill processes, several on the file that others left; each file is checked after its last one.

    A check opens the file, finds every decision and reward that was acknowledged, once, and compares the
    state bit by bit with a replay of the journal from its first event.
    """
    rng = np.random.default_rng(0)
    told = asked = 0
    for file in range(n_kills // lives):
        folder = Path(tempfile.mkdtemp()) / "files"
        folder.mkdir()
        lines: list[str] = []
        for life in range(lives):
            durability = "power" if rng.random() < 0.25 else "process"
            lines += kill(folder / "agent.db", durability, file * lives + life, rng)
        check_after_death(folder / "agent.db", lines)
        told += sum(line.startswith("told") for line in lines)
        asked += sum(line.startswith("asked") for line in lines)
        shutil.rmtree(folder.parent)
    return {"kills": n_kills, "decisions": asked, "rewards": told, "lost": 0, "doubled": 0}


def prove_two(n_kills: int = 1000, lives: int = 50) -> dict[str, Any]:
    """Kill one of two processes on a PostgreSQL journal, the one that asks or the one that learns, in turns.

    After every so many kills the database is checked: every reward that was acknowledged is there, once,
    and the state is, bit by bit, that of a replay of the journal from its first event.
    """
    rng = np.random.default_rng(0)
    told = learners = 0
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        for first in range(0, n_kills, lives):
            address = new_database(server, f"kills_{first}")
            lines, killed = kill_in_turns(address, lives, 1000 * first, rng)
            told, learners = told + check_database(address, lines), learners + killed
    return {"kills": n_kills, "of learners": learners, "rewards": told, "lost": 0, "doubled": 0}
