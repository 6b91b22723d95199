"""The processes of a service on PostgreSQL: those that ask, one that may learn, and who brings them back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from threading import Event

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.serve.child import READY, Part
from posse.serve.metrics import SIZE
from posse.serve.run import LAST_SECONDS

with extra("serve"):
    import msgspec
    from msgspec.structs import replace

# Seconds after which a process that has ended is started again: these, doubled as often as it ended soon.
FIRST_PAUSE, MOST_PAUSE, SOON = 0.05, 5.0, 5.0
# One process learns, and another has all loaded that it takes, and waits for its end.
LEARNERS = 2
# Seconds between two looks at all processes.
LOOK = 0.05


class Member:
    """A process that is started again whenever it ends.

    Parameters
    ----------
    part : Part
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self._pause = FIRST_PAUSE
        self._ended_at: float | None = None
        self._start()

    def _start(self) -> None:
        paths = os.pathsep.join(filter(None, sys.path))
        self._began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "posse.serve.child", self.part.kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self.part.listening, self.part.counts] if self.part.kind == "asks" else [],
            env={**os.environ, "PYTHONPATH": paths},
        )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(msgspec.json.encode(self.part) + b"\n")
            self.process.stdin.flush()

    def ready(self) -> bool:
        """Return whether it answers requests, once that is known; False if it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip() == READY

    def revive(self) -> None:
        """Start it again if it has ended, and not too soon after that."""
        if self.process.poll() is None:
            return
        now = time.monotonic()
        if self._ended_at is None:
            self._ended_at = now
            lived = now - self._began
            self._pause = min(2.0 * self._pause, MOST_PAUSE) if lived < SOON else FIRST_PAUSE
            self._forget()
        if now - self._ended_at >= self._pause:
            self._ended_at = None
            self._start()

    def end(self) -> None:
        """Let it finish what it has acknowledged, and end; one that does not is killed."""
        self.process.terminate()
        try:
            self.process.wait(LAST_SECONDS + 5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._forget()

    def _forget(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def keep(part: Part, workers: int, ready: Callable[[], None]) -> None:
    """Run processes, and start again those that end, until a signal comes.

    Parameters
    ----------
    part : Part
        Of those that ask.
    workers : int
        How many of these there are; another process learns, and one more is ready to.
    ready : callable
        Called when requests are answered.
    """
    stop = Event()
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda *_: stop.set())
    members: list[Member] = []
    with TemporaryFile() as counts, ended(members):
        counts.truncate(8 * SIZE * workers)
        part = replace(part, counts=counts.fileno())
        members += [Member(replace(part, kind="learns")) for _ in range(LEARNERS)]
        members += [Member(replace(part, place=place)) for place in range(workers)]
        if not all(member.ready() for member in members[LEARNERS:]):
            if stop.is_set():
                return
            raise PosseError("the processes of a service must come up. Got one that has ended.")
        ready()
        while not stop.wait(LOOK):
            for member in members:
                member.revive()


@contextmanager
def ended(members: list[Member]) -> Iterator[None]:
    """End processes, the last first, at the end of the block."""
    try:
        yield
    finally:
        for member in reversed(members):
            member.end()
