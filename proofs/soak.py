"""A service on PostgreSQL under steady traffic, its processes killed again and again: nothing is lost.

Two processes ask, one learns and one is ready to. First it is found out how many decisions a second, each
with its reward, go through clients of this program; then 0.7 of that goes on, while the process that learns
and those that ask are killed in turns, at random moments in the first two thirds of the time. Meanwhile the
memory of all processes is watched, and how many rows the learner has not taken.

It fails if a reward is lost or counted twice, if a client that retries sees an error, if a try fails that no
kill came shortly before, or if memory is not flat: no process ever has more than `MOST`, and one that has
lived for `LONG` grows by at most `GROWTH` in the last third of its life.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg

from posse import Agent, GramStatistics
from posse.client import AsyncClient, ServiceError
from posse.live.database import connect, holder_of
from posse.numerics.checks import Array
from posse.serve.database import LEARNING, DatabaseStore
from proofs.children import ROOT
from proofs.live_checks import statistics_of
from proofs.postgres_checks import new_database, serving

TASKS, ARMS, DIM = 50, 5, 4
CONNECTIONS, RETRIES, SHARE = 16, 8, 0.7
# In this part of the time processes are killed.
KILLING = 0.65
# A try fails within so many seconds of a kill, if it does.
SOON = 5.0
# MiB that a process has at most.
MOST = 400.0
# Seconds after which the 20,000 decisions that a process remembers are there, and how much its memory may
# grow from then on.
LONG, GROWTH = 180.0, 0.03


class Service:
    """`posse serve` on a database with two processes that ask; what it says of errors goes to a file."""

    def __init__(self, address: str) -> None:
        paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        self.address = address
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        serve = ["serve", "--store", address, "--workers", "2", "--port", "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from posse.cli import main; main()", *serve],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None, os.pread(self.errors.fileno(), 10_000, 0).decode()
        self.url = found[0]

    def learner(self) -> int | None:
        """Return the number of the process that learns; None if none does."""
        with connect(self.address) as db:
            found = re.match(r"process (\d+) of", holder_of(db, str(LEARNING)))
        return None if found is None else int(found[1])

    def pids(self, kind: str = "") -> list[int]:
        """Return the numbers of its processes of a kind, or of all but the one that brings them back."""
        pid = self.process.pid
        found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [one for one in found if Path(f"/proc/{one}/cmdline").read_text().strip("\0").endswith(kind)]

    def end(self) -> None:
        """End it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()


class Traffic:
    """Decisions with their rewards, and what was acknowledged of them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.told: dict[str, tuple[int, Array, float]] = {}
        self.tries: Counter[str] = Counter()
        self.errors: list[float] = []
        self.failed: list[str] = []
        self.times: list[float] = []

    async def run(self, seconds: float, rate: float) -> float:
        """Keep up a rate of decisions a second for so long, or go as fast as can be; return the rate."""
        before, begun = len(self.told), time.monotonic()
        cycle = CONNECTIONS / rate
        await asyncio.gather(*(self._one(n, begun + seconds, cycle) for n in range(CONNECTIONS)))
        return (len(self.told) - before) / (time.monotonic() - begun)

    async def _one(self, number: int, end: float, cycle: float) -> None:
        rng = np.random.default_rng()
        async with AsyncClient(self.url, timeout=5.0, retries=RETRIES) as client:
            self._count_tries(client)
            due = time.monotonic() + cycle * number / CONNECTIONS
            while due < end:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                due = max(due + cycle, time.monotonic())
                with suppress(ServiceError):
                    await self._decide(client, rng)

    async def _decide(self, client: AsyncClient, rng: np.random.Generator) -> None:
        task, rows, reward = int(rng.integers(TASKS)), rng.standard_normal((ARMS, DIM)).round(3), rng.random()
        begun = time.monotonic()
        try:
            answer = await client.ask(f"shop {task}", rows.tolist())
            self.times.append(time.monotonic() - begun)
            assert answer.id is not None
            await client.tell(answer.id, reward)
        except ServiceError as error:
            self.failed.append(str(error))
            raise
        self.told[answer.id] = (task, rows[int(answer.arm)], reward)

    def _count_tries(self, client: AsyncClient) -> None:
        """Count what single tries come to, before they are repeated."""
        send = client._http.post

        async def counted(*given: Any, **named: Any) -> Any:
            try:
                found = await send(*given, **named)
            except httpx.TransportError as error:
                self.tries[type(error).__name__] += 1
                self.errors.append(time.monotonic())
                raise
            self.tries[str(found.status_code)] += 1
            if found.status_code != 200:
                self.errors.append(time.monotonic())
            return found

        client._http.post = counted  # type: ignore[method-assign]


class Watcher(threading.Thread):
    """Looks every second at the memory of all processes of a service, and at what its learner has not taken.

    Attributes
    ----------
    memory : dict of (kind, pid) to list of (time, MiB)
    backlog : list of int
    """

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service, self._stop_now = service, threading.Event()
        self.memory: dict[tuple[str, int], list[tuple[float, float]]] = {}
        self.backlog: list[int] = []

    def run(self) -> None:
        """Look, until somebody says stop."""
        page = os.sysconf("SC_PAGESIZE") / 2**20
        store = DatabaseStore(self.service.address)
        journal = store.journal("default", 1)
        store.close()
        with psycopg.connect(journal, autocommit=True) as db:
            waiting = (
                "SELECT (SELECT count(*) FROM posse_decisions WHERE turn IS NULL) + "
                "(SELECT count(*) FROM posse_rewards WHERE turn IS NULL)"
            )
            while not self._stop_now.wait(1.0):
                self.backlog.append((db.execute(waiting).fetchone() or (0,))[0])
                for kind in ("asks", "learns"):
                    for pid in self.service.pids(kind):
                        with suppress(FileNotFoundError, ProcessLookupError):  # it was killed just now
                            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                            found = self.memory.setdefault((kind, pid), [])
                            found.append((time.monotonic(), pages * page))

    def end(self) -> None:
        """Look no more."""
        self._stop_now.set()
        self.join()

    def summary(self) -> dict[str, Any]:
        """Return how memory went, and the learner's backlog; raise if memory was not flat."""
        grown: list[tuple[str, float]] = []
        for (kind, _), seen in self.memory.items():
            times, sizes = np.array(seen).T
            life = times[-1] - times[0]
            if life >= LONG:
                late = sizes[times >= times[-1] - life / 3]
                grown.append((kind, float(late[-1] / late[0] - 1.0)))
        most = max(size for seen in self.memory.values() for _, size in seen)
        assert most <= MOST, most
        assert all(growth <= GROWTH for _, growth in grown), grown
        return {
            "memory": {
                "processes watched": len(self.memory),
                "most MiB of one": round(most, 1),
                "growth in the last third of long lives": [
                    {"kind": kind, "growth": round(growth, 4)} for kind, growth in grown
                ],
            },
            "rows the learner had not taken": {
                "median": int(np.median(self.backlog)),
                "99 %": int(np.quantile(self.backlog, 0.99)),
                "worst": max(self.backlog),
                "at the end": self.backlog[-1],
            },
        }


class Killer(threading.Thread):
    """Kills processes of a service in turns, and watches how soon another learns."""

    def __init__(self, service: Service, seconds: float, kills: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.service, self.seconds, self.kills, self.rng = service, seconds, kills, rng
        self.killed: Counter[str] = Counter()
        self.replaced: list[float] = []
        self.times: list[float] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        """Kill."""
        try:
            begun, each = time.monotonic(), KILLING * self.seconds / self.kills
            for number in range(self.kills):
                when = begun + each * (number + self.rng.uniform(0.1, 0.6))
                time.sleep(max(0.0, when - time.monotonic()))
                self._kill("asks" if number % 2 else "learns")
        except Exception as error:  # the thread that started this one has to know
            self.failure = error

    def _kill(self, kind: str) -> None:
        learner = self._wait_for(self.service.learner)
        pid = learner if kind == "learns" else int(self.rng.choice(self.service.pids("asks")))
        self.times.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)
        self.killed[kind] += 1
        if kind == "learns":
            self.replaced.append(self._until_another_works(time.monotonic()))

    def _until_another_works(self, begun: float) -> float:
        """Return the seconds until another process has read the journals and said how the agents do."""
        with connect(self.service.address) as db:
            at = db.execute("SELECT clock_timestamp()").fetchone()
            said = "SELECT max(at) > %s FROM posse_serve.accounts"
            self._wait_for(lambda: (db.execute(said, at).fetchone() or (None,))[0] or None)
        return time.monotonic() - begun

    @staticmethod
    def _wait_for(look: Any) -> Any:
        end = time.monotonic() + 60.0
        while (found := look()) is None:
            assert time.monotonic() < end, "no process learns"
            time.sleep(0.02)
        return found


def pick_up(url: str, turns: int) -> list[float]:
    """Return the seconds from an operator's request for another version until all connections decide by it.

    The decisions that this takes are told no rewards.
    """
    found = []
    ask = {"task": "shop 0", "arms": np.eye(ARMS, DIM).tolist()}
    with ExitStack() as stack:
        clients = [stack.enter_context(httpx.Client(base_url=url, timeout=30.0)) for _ in range(8)]
        versions = [one["number"] for one in clients[0].get("/v1/versions").json()["versions"]]
        wanted = [versions[0], versions[-1]]
        for turn in range(turns if len(versions) > 1 else 0):
            begun = time.monotonic()
            answer = clients[0].post("/v1/rollback", json={"version": wanted[turn % 2]})
            assert answer.status_code == 200, answer.text
            while {c.post("/v1/ask", json=ask).json()["version"] for c in clients} != {wanted[turn % 2]}:
                pass
            found.append(time.monotonic() - begun)
    return found


def since_kill(moment: float, kills: list[float]) -> float:
    """Return the seconds since the last kill before a moment; without end if there was none."""
    return min((moment - kill for kill in kills if kill <= moment), default=np.inf)


def check(address: str, traffic: Traffic) -> None:
    """Every acknowledged reward is in the database, once, and counted once; and there are no others."""
    store = DatabaseStore(address)
    journal = store.journal("default", 1)
    store.close()
    with psycopg.connect(journal) as db:
        kept = db.execute("SELECT id, value FROM posse_rewards").fetchall()
    assert len(kept) == len(traffic.told)
    assert dict(kept) == {id: reward for id, (_, _, reward) in traffic.told.items()}
    agent = Agent.open(journal, refits="never")
    while agent.learn():
        pass
    numbers = agent._desk.engine.numbers
    tasks, x, y = zip(*traffic.told.values(), strict=True)
    wanted = GramStatistics.from_rows(
        np.array([numbers[f"shop {task}"] for task in tasks]), np.array(x), np.array(y), len(numbers)
    )
    found = statistics_of(agent)
    assert agent.status().rewards == len(traffic.told)
    for part in ("count", "gram", "moment", "square"):
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol=1e-9, atol=1e-9)
    agent.close()


def soak(address: str, seconds: float, kills: int, tries: float) -> dict[str, Any]:
    """Serve from a database for so long, with so many kills, after some seconds to find out the capacity."""
    service = Service(address)
    traffic = Traffic(service.url)
    killer, watcher = Killer(service, seconds, kills, np.random.default_rng(0)), Watcher(service)
    try:
        asyncio.run(traffic.run(min(2.0, tries), 50.0))
        capacity = asyncio.run(traffic.run(tries, np.inf))
        traffic.times.clear()
        watcher.start()
        own, begun = time.process_time(), time.monotonic()
        killer.start()
        rate = asyncio.run(traffic.run(seconds, SHARE * capacity))
        own, begun = time.process_time() - own, time.monotonic() - begun
        killer.join()
        watcher.end()
        turned = pick_up(service.url, 20)
    finally:
        service.end()
    assert killer.failure is None, killer.failure
    check(address, traffic)
    after = [since_kill(error, killer.times) for error in traffic.errors]
    assert max(after, default=0.0) <= SOON, after
    return {
        "seconds": round(seconds),
        "capacity, decisions with rewards a second": round(capacity),
        "rate kept up": round(rate),
        "client's share of one core": round(own / begun, 2),
        "kills": dict(killer.killed),
        "rewards acknowledged": len(traffic.told),
        "lost": 0,
        "counted twice": 0,
        "tries by outcome": dict(traffic.tries),
        "seconds from a kill to a failed try, at worst": round(max(after, default=0.0), 2),
        "errors after retries": len(traffic.failed),
        "seconds to the next learner": {
            "median": round(float(np.median(killer.replaced)), 2),
            "worst": round(max(killer.replaced), 2),
        },
        "seconds until all decide by the version an operator asked for": {
            "median": round(float(np.median(turned)), 2) if turned else None,
            "worst": round(max(turned), 2) if turned else None,
        },
        "milliseconds of an ask, with retries": {
            "median": round(1e3 * float(np.median(traffic.times)), 1),
            "99 %": round(1e3 * float(np.quantile(traffic.times, 0.99)), 1),
            "worst": round(1e3 * max(traffic.times), 1),
        },
        **watcher.summary(),
    }


def prove(seconds: float = 600.0, kills: int = 20) -> dict[str, Any]:
    """Return what ten minutes with ten kills of either kind came to."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        found = soak(new_database(server, "soak"), seconds, kills, 15.0)
    assert found["errors after retries"] == 0
    return found
