"""What decisions over HTTP cost: `posse serve` beside a random arm, and one server beside another."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.peers.report import write_page
from benchmarks.service_load import BATCH, DIM, N_ARMS, N_TASKS, NAMES, asks

# Single requests come over so many connections, and batches over few: one at a time is answered.
CONNECTIONS, FEW = 16, 2
REQUESTS, BATCHES = 4_000, 40
RESULT = ROOT / "benchmarks" / "results" / "service.json"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NOT_THERE = "BanditDB: `pip index versions banditdb` found none where this was written"
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
    """What a round of requests led to.

    Attributes
    ----------
    rate : float
        Decisions or answers a second.
    median, high : float
        Seconds of an answer: the median, and the 99 % quantile.
    server, client : float
        Seconds of processor time for each decision or answer.
    others : float
        Cores that other programs kept busy meanwhile.
    """

    rate: float
    median: float
    high: float
    server: float
    client: float
    others: float


class Work(NamedTuple):
    """Requests of a kind to a server: its name, the kind, how many connections, its process and its port."""

    name: str
    kind: str
    connections: int
    pid: int
    port: int


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


def busy() -> float:
    """Return the seconds of processor time that all programs of the machine have used so far."""
    first = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    idle = int(first[4]) + int(first[5])
    return (sum(map(int, first[1:9])) - idle) / os.sysconf("SC_CLK_TCK")


def seen(work: Work, requests: int) -> Seen:
    """Return what came of so many requests."""
    every = children(work.pid)
    before, all_before = sum(map(used, every)), busy()
    arguments = map(str, (work.port, work.kind, requests, work.connections))
    command = [sys.executable, "-m", "benchmarks.service_load", *arguments]
    begun = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - begun
    spent, others = sum(map(used, every)) - before, busy() - all_before
    found, each = json.loads(run.stdout), BATCH if work.kind.endswith("batch") else 1
    count = requests * each
    return Seen(
        count / found["seconds"],
        found["median"],
        found["high"],
        spent / count,
        found["client"] / count,
        max(0.0, (others - spent - found["whole"]) / wall),
    )


def first_paint(port: int) -> dict[str, float] | None:
    """Return the milliseconds until the page of a service shows its numbers, median and most of ten loads.

    None if there is no browser.
    """
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None or importlib.util.find_spec("playwright") is None:
        return None
    from playwright.sync_api import sync_playwright

    useful, found = "performance.getEntriesByName('posse-useful')", []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(10):
            page = browser.new_context().new_page()  # nothing is cached
            page.goto(f"http://127.0.0.1:{port}/#space=named")
            page.wait_for_function(f"() => {useful}.length > 0")
            found.append(float(page.evaluate(f"() => {useful}[0].startTime")))
            page.context.close()
        browser.close()
    return {"median": round(float(np.median(found))), "most": round(max(found))}


def measure(repeats: int) -> dict[str, Any]:
    """Measure the service and what stands beside it, in turn, and return what was found.

    Of every kind the repeat with the most requests a second: what other programs do on the machine is no part
    of this.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ours = stack.enter_context(service(folder))
        work = [Work("posse serve", kind, CONNECTIONS, *ours) for kind in ("named", "listed", "named told")]
        work += [Work("posse serve", f"{kind} batch", FEW, *ours) for kind in ("named", "listed")]
        missing = []
        for name, (server, package) in BESIDE.items():
            if importlib.util.find_spec(package) is None:
                missing.append(f"{name}: pip install {package}")
                continue
            other = stack.enter_context(beside(server))
            kinds = ("named",) if server == "wabbit" else ("named", "listed")
            work += [Work(name, kind, CONNECTIONS, *other) for kind in kinds]
        for one in work:
            seen(one, 50 if one.kind.endswith("batch") else 2000)
        rounds: list[list[Seen]] = [[] for _ in work]
        for _ in range(repeats):
            for place, one in enumerate(work):
                rounds[place].append(seen(one, BATCHES if one.kind.endswith("batch") else REQUESTS))
        paint = first_paint(ours[1])
    best = [max(found, key=lambda one: one.rate) for found in rounds]
    ceilings = {one.kind: found.rate for one, found in zip(work, best, strict=True) if one.name == CEILING}
    rows = [
        {
            "server": one.name,
            "requests": one.kind,
            "connections": one.connections,
            "a second": round(found.rate),
            "of the ceiling": round(found.rate / ceilings[one.kind], 2) if one.kind in ceilings else None,
            "median, ms": round(1e3 * found.median, 1),
            "99 %, ms": round(1e3 * found.high, 1),
            "server CPU, µs": round(1e6 * found.server),
            "client CPU, µs": round(1e6 * found.client),
            "cores others had": round(found.others, 1),
        }
        for one, found in zip(work, best, strict=True)
    ]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.strip(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "rounds": repeats,
        "rows": rows,
        "milliseconds until the page shows its numbers": paint,
        "not measured": [*missing, NOT_THERE],
    }


def table(found: dict[str, Any]) -> Table:
    """Return what was found as a table for a terminal."""
    title = (
        f"T = {N_TASKS}, d = {DIM}, K = {N_ARMS}, batches of {BATCH}; the best of {found['rounds']} rounds"
    )
    shown = Table(*found["rows"][0], title=title, caption="\n".join(remarks(found)))
    for row in found["rows"]:
        shown.add_row(*map(in_words, row.values()))
    return shown


def remarks(found: dict[str, Any]) -> list[str]:
    """Return what is to be said beside the numbers."""
    paint = found["milliseconds until the page shows its numbers"]
    page = "not measured: no browser" if paint is None else f"{paint['median']} ms, {paint['most']} at most"
    return [
        f"Until the page shows its numbers: {page}.",
        *(f"Not measured: {one}." for one in found["not measured"]),
    ]


def markdown(found: dict[str, Any]) -> str:
    """Return the rows as a table of Markdown."""
    heads = [head if place else "" for place, head in enumerate(found["rows"][0])]
    lines = [heads, ["---", "---", *["---:"] * (len(heads) - 2)]]
    lines += [list(map(in_words, row.values())) for row in found["rows"]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def in_words(value: Any) -> str:
    """Return a cell of a table.

    Examples
    --------
    >>> in_words(None), in_words(13424), in_words(0.3), in_words("named")
    ('', '13,424', '0.3', 'named')
    """
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def keep(found: dict[str, Any]) -> None:
    """Store what was found beside this file, and write its table into the page on performance."""
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(PAGE, markdown(found))
