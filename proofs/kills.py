"""A process with an agent is killed at random moments: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from proofs.children import Children, children, wait_at_random
from proofs.live_checks import check_after_death
from proofs.postgres_checks import check_database, kill_in_turns, new_database, serving


def kill_one_by_one(
    path: Path, n_kills: int, first: int, start: Children, rng: np.random.Generator
) -> list[str]:
    """Kill processes at random moments, each on the file that others left; return what was acknowledged."""
    lines = []
    for seed in range(first, first + n_kills):
        durability = "power" if rng.random() < 0.25 else "process"
        child = start.start("proofs.live_child", path, durability, seed)
        wait_at_random(child, 120, rng)
        lines += child.kill()
    return lines


def prove(n_kills: int = 1000, lives: int = 25) -> dict[str, Any]:
    """Kill processes, several on the file that others left; each file is checked after its last one.

    A check opens the file, finds every decision and reward that was acknowledged, once, and compares the
    state bit by bit with a replay of the journal from its first event.
    """
    rng = np.random.default_rng(0)
    told = asked = 0
    with children() as start:
        for first in range(0, n_kills, lives):
            folder = Path(tempfile.mkdtemp()) / "files"
            folder.mkdir()
            lines = kill_one_by_one(folder / "agent.db", lives, first, start, rng)
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
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server, children() as start:
        for first in range(0, n_kills, lives):
            address = new_database(server, f"kills_{first}")
            lines, killed = kill_in_turns(address, lives, 1000 * first, start, rng)
            told, learners = told + check_database(address, lines), learners + killed
    return {"kills": n_kills, "of learners": learners, "rewards": told, "lost": 0, "doubled": 0}
