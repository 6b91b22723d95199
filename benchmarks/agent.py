"""What decisions and rewards of an `Agent` cost: in memory, in a file, in batches, beside a refit."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from rich.table import Table

from posse import Agent, Learner, Shared
from posse.core.episode import Job
from posse.live.refits import BackgroundFitter, Finished, attempt

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
    learner = Learner(Shared(), n_tasks=N_TASKS, dim=DIM, seed=0)
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
    """Time asks and tells at the begin and at the end of many, and measure the memory of the process then."""
    table = Table(
        "where",
        "decisions so far",
        "ask, µs",
        "tell, µs",
        "pending",
        "memory, MB",
        title=f"An agent as it grows: T = {N_TASKS}, d = {DIM}, K = {N_ARMS}, processor time",
    )
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((BATCH, N_ARMS, DIM))
    with tempfile.TemporaryDirectory() as folder:
        agents = {
            "in memory": Agent(refits="never", seed=0),
            "in a file": Agent.open(Path(folder) / "agent.db", refits="never", seed=0),
        }
        for where, agent in agents.items():
            agent.ask_many(NAMES, [arms[0]] * N_TASKS)
            for size in np.linspace(0, n_decisions, 5).astype(int).tolist():
                while agent.status().decisions < size:
                    for start in range(0, N_TASKS, BATCH):
                        made = agent.ask_many(NAMES[start : start + BATCH], arms)
                        agent.tell_many([decision.id for decision in made], [0.5] * BATCH)
                ask, tell = _singles(agent, arms)
                status = agent.status()
                table.add_row(
                    where,
                    f"{status.decisions:,}",
                    f"{ask:.0f}",
                    f"{tell:.0f}",
                    f"{status.pending:,}",
                    f"{_resident():.0f}",
                )
            agent.close()
    return table


def _resident() -> float:
    """Return the memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class ThreadFitter(BackgroundFitter):
    """Runs refits in a thread, to be compared with."""

    def run(self, job: Job, number: int, finished: Finished) -> None:
        """Start a refit."""
        threading.Thread(target=lambda: finished(job, number, attempt(job)), daemon=True).start()


def beside_fit(repeats: int) -> Table:
    """Time asks while nothing else happens and while a refit is under way, in a process and in a thread.

    Of every kind the repeat with the least 99th percentile: what other programs do on the machine is no part
    of this. Nor is it part of the processor time that other threads of this process take, in which an ask may
    have to wait for them: the least of all repeats.
    """
    table = Table(
        "meanwhile",
        "median, µs",
        "99 %, µs",
        "99 %, ratio",
        "longest, ms",
        "other threads, ms",
        "asks",
        title=f"Asks beside a refit: T = {N_TASKS}, d = {DIM}, K = {N_ARMS}, wall time",
    )
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((BATCH, N_ARMS, DIM))
    quiet = 0.0
    for what in ("nothing", "a refit in a process", "a refit in a thread"):
        with Agent(refits="background", seed=0) as agent:
            if what == "a refit in a thread":
                agent._desk.fitter = ThreadFitter()
            least, threads = None, np.inf
            for _ in range(repeats):
                _rewarded(agent, rng)
                if what != "nothing":
                    agent.refit()
                times, others = _while(agent, arms, what != "nothing")
                threads = min(threads, others)
                if least is None or np.percentile(times, 99) < np.percentile(least, 99):
                    least = times
            assert least is not None
            median, high = np.percentile(least, [50, 99])
            quiet = quiet or high
            table.add_row(
                what,
                f"{median:.0f}",
                f"{high:.0f}",
                f"{high / quiet:.2f}",
                f"{least.max() / 1e3:.1f}",
                f"{1e3 * threads:.0f}",
                f"{len(least):,}",
            )
    return table


def _rewarded(agent: Agent, rng: np.random.Generator) -> None:
    """Give every task some rows more, so that there is something to fit; no refit is begun by them."""
    agent._engine.not_before = np.inf
    for _ in range(5):
        made = agent.ask_many(NAMES, rng.standard_normal((N_TASKS, 1, DIM)))
        agent.tell_many([decision.id for decision in made], rng.standard_normal(N_TASKS).tolist())


def _while(agent: Agent, arms: np.ndarray, fitting: bool) -> tuple[np.ndarray, float]:
    """Ask while a refit is under way, or for three seconds.

    Returns how long asks take, in microseconds, and the processor time of all other threads, in seconds.
    """
    times: list[int] = []
    others = time.process_time() - time.thread_time()
    end = time.perf_counter() + 3.0
    while agent._engine.job is not None if fitting else time.perf_counter() < end:
        start = time.perf_counter_ns()
        agent.ask(NAMES[len(times) % N_TASKS], arms[len(times) % BATCH])
        times.append(time.perf_counter_ns() - start)
    return np.array(times) / 1e3, time.process_time() - time.thread_time() - others


FIRST = """
import time
from numba.core import caching
if {bare}:
    caching.CacheImpl._locator_classes = []
import numpy as np
from posse import Agent
agent = Agent()
agent.ask("a", np.eye(3))
print(time.process_time())
"""


def first_decision(repeats: int) -> Table:
    """Time a new process until it has decided: with what was compiled before, with nothing, with no place."""
    table = Table(
        "compiler's cache",
        "seconds",
        "slowest",
        title="From the start of a process to its first decision, processor time",
    )
    for what, bare in (
        ("there", False),
        ("empty, as after an installation", False),
        ("cannot be written", True),
    ):
        seconds = []
        for _ in range(repeats + 1):
            with tempfile.TemporaryDirectory() as folder:
                cache = {"NUMBA_CACHE_DIR": folder} if what.startswith("empty") else {}
                run = subprocess.run(
                    [sys.executable, "-c", FIRST.format(bare=bare)],
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, **cache},
                )
                seconds.append(float(run.stdout))
        table.add_row(what, f"{np.median(seconds[1:]):.2f}", f"{max(seconds[1:]):.2f}")
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
