"""A service in a process of its own, and clients that speak to it over a socket."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from typer.testing import CliRunner

from posse.cli import app

ARMS = {"red": {"price": 1.2, "new": 0}, "blue": {"price": 0.9, "new": 1}}
JSON = {"Content-Type": "application/json"}


class Reply:
    """An answer: its status, its headers, and its body, read as JSON where it is that."""

    def __init__(self, found: http.client.HTTPResponse) -> None:
        self.status, self.headers, raw = found.status, found.headers, found.read()
        kind = self.headers.get("content-type", "")
        self.body: Any = json.loads(raw) if kind.endswith("json") and raw else raw.decode()

    @property
    def detail(self) -> str:
        """What was wrong."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.body["status"] == self.status
        return str(self.body["detail"])


class Client:
    """A connection that is kept, and a token if there is one."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._token = {} if token is None else {"Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        content = json.dumps(body) if body is not None and not isinstance(body, bytes) else body
        kind = {} if body is None else JSON
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._http.request(method, path, content, {**kind, **self._token, **named})
        return Reply(self._http.getresponse())

    def get(self, path: str) -> Any:
        reply = self.call("GET", path)
        assert reply.status == 200, reply.body
        return reply.body

    def post(self, path: str, **body: Any) -> Any:
        reply = self.call("POST", path, body)
        assert reply.status == 200, reply.body
        return reply.body

    def close(self) -> None:
        self._http.close()


class Served:
    """`posse serve` as a process, after a first statement; its output is read as it comes."""

    def __init__(self, *arguments: object, most_file: int | None = None, first: str = "") -> None:
        limit: Callable[[], None] | None = None
        if most_file is not None:
            size = most_file

            def limit() -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"{first}\nfrom posse.cli import main; main()",
                "serve",
                *map(str, arguments),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
            preexec_fn=limit,
        )
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1]) if line else 0
        self.greeting = line

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def client(self, token: str | None = None) -> Client:
        return Client(self.port, token)

    def end(self, kind: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """End the process by a signal; return its code and what it said since the begin, and of errors."""
        if self.process.poll() is None:
            self.process.send_signal(kind)
        code = self.process.wait(timeout=60)
        self._reader.join()
        assert self.process.stdout is not None
        self.greeting += "" if self.process.stdout.closed else self.process.stdout.read()
        self.process.stdout.close()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code, self.greeting, "".join(self.errors)


@contextmanager
def served(store: object, *arguments: object, **how: Any) -> Iterator[Served]:
    """A service with a store, on any port; a clean end."""
    address = store if str(store).startswith("postgresql") else f"sqlite:{store}"
    server = Served("--store", address, "--port", 0, *arguments, **how)
    try:
        if not server.port:
            raise AssertionError(server.end()[2])
        yield server
    finally:
        if server.process.poll() is None:
            server.end()


def run(*arguments: object) -> tuple[int, str, str]:
    """Run a command of posse; return its code, what it says, and of errors."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def refused(*arguments: object) -> tuple[int, str]:
    """Run `posse serve` with what it cannot come up with; return its code and what it says."""
    with mock.patch("posse.cli.serve.serve", side_effect=AssertionError("it came up")):
        code, _, errors = run("serve", *arguments)
    return code, errors


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for other processes; a minute without it is a failure, not a measurement."""
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
