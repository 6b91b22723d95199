"""What decisions over HTTP cost: `posse serve` beside a random arm, and one server beside another."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from benchmarks.service_load import BATCH, DIM, N_ARMS, N_TASKS, NAMES, asks

REQUESTS, BATCHES, CONNECTIONS = 4_000, 40, 16
# What stands beside the service, if it is installed: the argument of `service_bare`, and the package.
BESIDE = {
    "random arm, uvicorn": ("uvicorn", "uvicorn"),
    "random arm, Granian": ("granian", "granian"),
    "Vowpal Wabbit, uvicorn": ("wabbit", "vowpalwabbit"),
}
CEILING = "random arm, uvicorn"
SPACES: tuple[dict[str, Any], ...] = (
    {"name": "named", "features": NAMES},
    {"name": "listed", "vectors": True},
)


class Seen(NamedTuple):
    """What a round of requests led to: decisions or answers a second, seconds, and processor time of each."""

    rate: float
    median: float
    high: float
    server: float
    client: float


def used(pid: int) -> float:
    """Return the seconds of processor time that a process, with all its threads, has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return a process and those that it has started."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in below for one in children(int(child)))]


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a process until the end of the block."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def post(port: int, path: str, body: Any) -> Any:
    """Send one request, and return its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    if answer.status != 200:
        raise RuntimeError(found)
    return found


@contextmanager
def service(folder: str) -> Iterator[tuple[int, int]]:
    """Yield process and port of a service that knows all tasks, and has learned from ten rewards of each."""
    code = "from posse.cli import main; main()"
    with running(["-c", code, "serve", "--store", f"sqlite:{folder}/s.db", "--port", "0"]) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        rng = np.random.default_rng(0)
        for space in SPACES:
            post(port, "/v1/spaces", space)
            rows = asks(space["name"])
            for _ in range(10 * N_TASKS // 500):
                body = {"space": space["name"], "asks": [next(rows) for _ in range(500)]}
                made = post(port, "/v1/ask/batch", body)["decisions"]
                rewards = rng.standard_normal(500).tolist()
                told = [{"id": one["id"], "reward": y} for one, y in zip(made, rewards, strict=True)]
                post(port, "/v1/tell/batch", {"tells": told})
            post(port, "/v1/freeze", {"space": space["name"]})  # a refit is measured by `live`
            post(port, "/v1/freeze", {"space": space["name"], "on": False})
        yield process.pid, port


@contextmanager
def beside(server: str) -> Iterator[tuple[int, int]]:
    """Yield process and port of what the service is compared with."""
    port = free_port()
    with running(["-m", "benchmarks.service_bare", server, str(port)]) as process:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield process.pid, port


def seen(pid: int, port: int, kind: str, requests: int) -> Seen:
    """Return what came of requests of a kind."""
    every = children(pid)
    before = sum(map(used, every))
    command = [
        sys.executable,
        "-m",
        "benchmarks.service_load",
        str(port),
        kind,
        str(requests),
        str(CONNECTIONS),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    spent = sum(map(used, every)) - before
    found, each = json.loads(run.stdout), BATCH if kind.endswith("batch") else 1
    count = requests * each
    return Seen(
        count / found["seconds"], found["median"], found["high"], spent / count, found["client"] / count
    )


def requests(repeats: int) -> Table:
    """Measure the service and what stands beside it, in turn.

    Of every kind the repeat with the most requests a second: what other programs do on the machine is no part
    of this.
    """
    table = Table(
        "",
        "requests",
        "a second",
        "of the ceiling",
        "median, ms",
        "99 %, ms",
        "server CPU, µs",
        "client CPU, µs",
        "client's share",
        title=f"{CONNECTIONS} connections, T = {N_TASKS}, d = {DIM}, K = {N_ARMS}, batches of {BATCH}",
    )
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ours = stack.enter_context(service(folder))
        work = [("posse serve", kind, *ours) for kind in ("named", "listed", "named told")]
        for name, (server, package) in BESIDE.items():
            if importlib.util.find_spec(package) is not None:
                other = stack.enter_context(beside(server))
                kinds = ("named",) if server == "wabbit" else ("named", "listed")
                work += [(name, kind, *other) for kind in kinds]
        work += [("posse serve", kind, *ours) for kind in ("named batch", "listed batch")]
        for _, kind, pid, port in work:
            seen(pid, port, kind, 50 if kind.endswith("batch") else 2000)
        rounds: list[list[Seen]] = [[] for _ in work]
        for _ in range(repeats):
            for place, (_, kind, pid, port) in enumerate(work):
                count = BATCHES if kind.endswith("batch") else REQUESTS
                rounds[place].append(seen(pid, port, kind, count))
    best = [max(found, key=lambda one: one.rate) for found in rounds]
    ceilings = {kind: one.rate for (name, kind, *_), one in zip(work, best, strict=True) if name == CEILING}
    for (name, kind, *_), one in zip(work, best, strict=True):
        top = ceilings.get(kind)
        ratio = "" if top is None else f"{one.rate / top:.2f}"
        table.add_row(
            name,
            kind,
            f"{one.rate:,.0f}",
            ratio,
            f"{1e3 * one.median:.1f}",
            f"{1e3 * one.high:.1f}",
            f"{1e6 * one.server:.0f}",
            f"{1e6 * one.client:.0f}",
            f"{one.client / (one.client + one.server):.0%}",
        )
    return table
