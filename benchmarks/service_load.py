"""Requests to a service over connections that are kept, as fast as it answers: a process of its own.

    python -m benchmarks.service_load PORT KIND REQUESTS CONNECTIONS

It prints what it saw, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
import uvloop

N_TASKS, DIM, N_ARMS, BATCH = 1000, 30, 10, 100
NAMES = [f"feature {number}" for number in range(DIM)]
# What is sent: features by name or as lists, one decision or many, rewards or none.
KINDS = ("named", "listed", "named batch", "listed batch", "named told")


def asks(kind: str) -> Iterator[dict[str, Any]]:
    """Yield requests for every task in turn, in an order of its own, without end."""
    rng = np.random.default_rng(0)
    while True:
        for task in rng.permutation(N_TASKS).tolist():
            table = rng.standard_normal((N_ARMS, DIM)).round(4).tolist()
            rows = [dict(zip(NAMES, row, strict=True)) for row in table] if kind == "named" else table
            yield {"task": f"task {task}", "arms": {f"arm {n}": row for n, row in enumerate(rows)}}


def request(path: str, body: dict[str, Any]) -> bytes:
    """Return a request as bytes."""
    content = json.dumps(body, separators=(",", ":")).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def requests_of(kind: str) -> list[bytes]:
    """Return the requests of a kind, to be sent again and again."""
    space = kind.split()[0]
    rows = asks(space)
    if kind.endswith("batch"):
        return [
            request("/v1/ask/batch", {"space": space, "asks": list(islice(rows, BATCH))}) for _ in range(30)
        ]
    return [request("/v1/ask", {"space": space, **row}) for row in islice(rows, N_TASKS)]


class Load:
    """What all connections send, how many answers are still to come, and how long they took."""

    def __init__(self, kind: str, most: int, connections: int) -> None:
        self.requests, self.left, self.open = cycle(requests_of(kind)), most, connections
        self.tells = kind.endswith("told")
        self.seconds: list[float] = []
        self.end = asyncio.get_running_loop().create_future()


class Connection(asyncio.Protocol):
    """Sends the next request as soon as the last one was answered."""

    def __init__(self, load: Load) -> None:
        self.load, self.got, self.wanted, self.begun = load, b"", 0, 0.0
        self.asked = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self, reward: bytes = b"") -> None:
        if not self.load.left:
            self.transport.close()
            return
        self.load.left -= 1
        self.asked = not reward
        content = reward or next(self.load.requests)
        self.begun = time.perf_counter()
        self.transport.write(content)

    def data_received(self, data: bytes) -> None:
        self.got += data
        if not self.wanted:
            end = self.got.find(b"\r\n\r\n")
            if end < 0:
                return
            place = self.got.find(b"content-length: ") + 16
            self.wanted = end + 4 + int(self.got[place : self.got.index(b"\r", place)])
        if len(self.got) < self.wanted:
            return
        if self.got[9:12] != b"200":
            raise SystemExit(self.got.decode())
        self.load.seconds.append(time.perf_counter() - self.begun)
        answer, self.got, self.wanted = self.got, b"", 0
        if self.load.tells and self.asked:
            place = answer.index(b'"id":"') + 6
            id = answer[place : answer.index(b'"', place)].decode()
            self.send(request("/v1/tell", {"id": id, "reward": 0.5}))
        else:
            self.send()

    def connection_lost(self, error: Exception | None) -> None:
        self.load.open -= 1
        if not self.load.open:
            self.load.end.set_result(None)


def used() -> float:
    """Return the seconds of processor time that this process has used."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime


async def main(port: int, kind: str, most: int, connections: int) -> None:
    """Send so many requests, and print what came of it."""
    load = Load(kind, most, connections)
    begun, before = time.perf_counter(), used()
    for _ in range(connections):
        await asyncio.get_running_loop().create_connection(lambda: Connection(load), "127.0.0.1", port)
    await load.end
    seconds, spent = time.perf_counter() - begun, used() - before
    median, high = np.percentile(load.seconds, [50, 99])
    print(json.dumps({"seconds": seconds, "client": spent, "median": median, "high": high, "whole": used()}))


if __name__ == "__main__":
    port, kind, most, connections = sys.argv[1:]
    uvloop.run(main(int(port), kind, int(most), int(connections)))
