"""Processes to be killed that start at once: one that has imported all they need forks them.

python -m proofs.children
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from posse import Agent

ROOT = Path(__file__).parent.parent
# A child that says nothing for so long has come to harm.
PATIENCE = 120.0


class Child:
    """A process that says what it has done, a line at a time, to a file, so that it never waits for us."""

    def __init__(self, number: int, said: Path) -> None:
        self._number, self._said = number, said

    @property
    def lines(self) -> list[str]:
        """What it has said so far; the last line may be cut off."""
        return self._said.read_text().splitlines(keepends=True)

    @property
    def alive(self) -> bool:
        """Whether it runs, or is about to be gone."""
        try:
            os.kill(self._number, 0)
        except ProcessLookupError:
            return False
        return True

    def wait_for(self, n_lines: int) -> None:
        """Wait until it has said so many lines."""
        end = time.monotonic() + PATIENCE
        while len(self.lines) < n_lines:
            assert self.alive, "a process ended by itself"
            assert time.monotonic() < end, "a process does nothing"
            time.sleep(0.0005)

    def wait(self) -> list[str]:
        """Wait until it has ended, and return all that it had said."""
        end = time.monotonic() + PATIENCE
        while self.alive:
            assert time.monotonic() < end, "a process does not end"
            time.sleep(0.0005)
        return self.lines

    def kill(self) -> list[str]:
        """Kill it, and return all that it had said."""
        with suppress(ProcessLookupError):
            os.kill(self._number, signal.SIGKILL)
        return self.wait()


class Children:
    """Starts processes, by the process that forks them."""

    def __init__(self, parent: subprocess.Popen[str], folder: Path) -> None:
        self._parent, self._folder, self._count = parent, folder, 0

    def start(self, module: str, *arguments: object) -> Child:
        """Let `main` of a module run in a process of its own, with arguments as text."""
        self._count += 1
        said = self._folder / f"{self._count}.txt"
        said.touch()
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps([module, str(said), *map(str, arguments)]) + "\n")
        self._parent.stdin.flush()
        return Child(int(self._parent.stdout.readline()), said)


@contextmanager
def children() -> Iterator[Children]:
    """Have a process that forks others; it ends with the block, and they are to be ended by then."""
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        parent = subprocess.Popen(
            [sys.executable, "-m", "proofs.children"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one, "PYTHONPATH": paths},
        )
        with parent:
            yield Children(parent, Path(folder))


def wait_at_random(child: Child, most: int, rng: np.random.Generator) -> None:
    """Wait until a child has said some lines, fewer than so many; or, for one in ten, hardly at all."""
    if rng.random() < 0.1:
        time.sleep(rng.uniform(0.0, 0.05))
    else:
        child.wait_for(int(rng.integers(1, most)))


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Fork a process for every line of requests, `[module, file for what it says, arguments...]`."""
    agent = Agent(refits="inline", seed=0)  # compiles all that they need
    for number in range(40):
        agent.tell(agent.ask("shop", np.eye(3), id=str(number)).id, float(number))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # they are gone as soon as they are dead
    for line in requests:
        module, said, *arguments = json.loads(line)
        main = importlib.import_module(module).main
        number = os.fork()
        if number == 0:
            _be(main, said, arguments)
        answers.write(f"{number}\n")
        answers.flush()


def _be(main: object, said: str, arguments: list[str]) -> None:
    """Run a function as a process of its own, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    file = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(file, 1)
    try:
        assert callable(main)
        main(*arguments)
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
