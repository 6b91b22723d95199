"""What a decision and a reward of an `Agent` cost, in memory and in a file, one at a time and in batches."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from rich.table import Table

from posse import Agent, Learner, SharedThompson

N_TASKS, DIM, N_ARMS, CALLS, BATCH = 1000, 30, 20, 3000, 100
NAMES = [f"task {number}" for number in range(N_TASKS)]


def decisions(repeats: int) -> Table:
    """Time asks and tells in processor time; medians of single calls, the least of several repeats."""
    table = Table(
        "where",
        "ask, µs",
        "tell, µs",
        "ask in a batch, µs",
        "tell in a batch, µs",
        title=f"An agent: T = {N_TASKS}, d = {DIM}, K = {N_ARMS}, processor time",
    )
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((BATCH, N_ARMS, DIM))
    learner = Learner(SharedThompson(), n_tasks=N_TASKS, dim=DIM, seed=0)
    least = np.min([_learner(learner, arms) for _ in range(repeats)], axis=0)
    table.add_row("Learner alone", f"{least[0]:.0f}", f"{least[1]:.0f}", "", "")
    with tempfile.TemporaryDirectory() as folder:
        agents = {
            "in memory": Agent(refits="never", seed=0),
            "in a file": Agent.open(Path(folder) / "agent.db", refits="never", seed=0),
            "in a file, features of all arms": Agent.open(
                Path(folder) / "all.db", refits="never", features="all", seed=0
            ),
        }
        for where, agent in agents.items():
            agent.ask_many(NAMES, [arms[0]] * N_TASKS)
            least = np.min([(*_singles(agent, arms), *_batches(agent, arms)) for _ in range(repeats)], axis=0)
            table.add_row(where, *(f"{microseconds:.0f}" for microseconds in least))
            agent.close()
    return table


def growth(n_decisions: int) -> Table:
    """Time asks and tells at the begin and at the end of many, and count what an agent holds then."""
    table = Table(
        "decisions so far", "ask, µs", "tell, µs", "pending", title="An agent in a file, as it grows"
    )
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((BATCH, N_ARMS, DIM))
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent.open(Path(folder) / "agent.db", refits="never", seed=0)
        agent.ask_many(NAMES, [arms[0]] * N_TASKS)
        for size in np.linspace(0, n_decisions, 5).astype(int).tolist():
            while agent.status().decisions < size:
                for start in range(0, N_TASKS, BATCH):
                    made = agent.ask_many(NAMES[start : start + BATCH], arms)
                    agent.tell_many([decision.id for decision in made], [0.5] * BATCH)
            ask, tell = _singles(agent, arms)
            status = agent.status()
            table.add_row(f"{status.decisions:,}", f"{ask:.0f}", f"{tell:.0f}", f"{status.pending:,}")
        agent.close()
    return table


def _learner(learner: Learner, arms: np.ndarray) -> tuple[float, float]:
    asks, tells = [], []
    for number in range(CALLS):
        task, offered = np.array([number % N_TASKS]), arms[number % BATCH][None]
        start = time.process_time_ns()
        choice = learner.select(task, offered)
        middle = time.process_time_ns()
        learner.observe(task, offered[0][choice.arm], np.array([0.5]))
        asks.append(middle - start)
        tells.append(time.process_time_ns() - middle)
    return float(np.median(asks)) / 1e3, float(np.median(tells)) / 1e3


def _singles(agent: Agent, arms: np.ndarray) -> tuple[float, float]:
    asks, tells = [], []
    for number in range(CALLS):
        start = time.process_time_ns()
        decision = agent.ask(NAMES[number % N_TASKS], arms[number % BATCH])
        middle = time.process_time_ns()
        agent.tell(decision.id, 0.5)
        asks.append(middle - start)
        tells.append(time.process_time_ns() - middle)
    return float(np.median(asks)) / 1e3, float(np.median(tells)) / 1e3


def _batches(agent: Agent, arms: np.ndarray) -> tuple[float, float]:
    asks, tells = [], []
    for start in range(0, N_TASKS, BATCH):
        first = time.process_time_ns()
        made = agent.ask_many(NAMES[start : start + BATCH], arms)
        middle = time.process_time_ns()
        agent.tell_many([decision.id for decision in made], [0.5] * BATCH)
        asks.append(middle - first)
        tells.append(time.process_time_ns() - middle)
    return float(np.median(asks)) / 1e3 / BATCH, float(np.median(tells)) / 1e3 / BATCH
