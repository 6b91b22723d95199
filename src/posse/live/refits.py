"""Where refits are made: at once, in the caller's time, or in a process beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from posse.core.archive import in_a_line
from posse.core.codec import load, save
from posse.core.episode import Job
from posse.core.posterior import Beliefs
from posse.live.settings import Settings
from posse.live.states import MOST_BYTES

# What a refit led to: a state, what is believed by it, and why it failed, "" if it did not.
Outcome = tuple[Any, Beliefs | None, str]
# Is called with the job, its number, and what it led to.
Finished = Callable[[Job, int, Outcome], None]


class Fitter(Protocol):
    """Runs refits."""

    def run(self, job: Job, number: int, finished: Finished) -> None:
        """Run a refit, now or later, and say when it is done."""

    def close(self) -> None:
        """Stop; a refit under way is given up."""


class InlineFitter:
    """Runs refits at once, while the caller waits."""

    def run(self, job: Job, number: int, finished: Finished) -> None:
        """Run a refit."""
        finished(job, number, attempt(job))

    def close(self) -> None:
        """Do nothing: no refit is under way."""


class BackgroundFitter:
    """Runs refits in a process of their own, one after the other; it is started when there is one to make.

    A policy with classes that posse does not ship cannot be sent there: it is refitted in a thread.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="posse-refits-"))
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._end = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def run(self, job: Job, number: int, finished: Finished) -> None:
        """Start a refit; `finished` is called from a thread when it is there."""
        threading.Thread(target=self._run, args=(job, number, finished), daemon=True).start()

    def _run(self, job: Job, number: int, finished: Finished) -> None:
        try:
            save((job.policy, job.state, job.summary), self._folder / "job.posse")
        except ValueError:
            finished(job, number, attempt(job))
            return
        except OSError as error:
            finished(job, number, (None, None, in_a_line(error)))
            return
        try:
            outcome = self._ask()
        except (OSError, ValueError) as error:
            outcome = None, None, f"the process that refits has ended: {in_a_line(error)}"
        if "must be registered" in outcome[2]:
            outcome = attempt(job)
        if not self._closed:  # else it was given up, and has not failed
            finished(job, number, outcome)

    def _ask(self) -> Outcome:
        """Return what the process answers to the job in the folder."""
        process = self._process
        if process is not None and process.poll() is not None:
            process.communicate()  # so that its pipes are closed
            process = None
        if process is None:
            process = self._process = _start()
        assert process.stdin is not None
        assert process.stdout is not None
        paths = {name: str(self._folder / f"{name}.posse") for name in ("job", "state", "beliefs")}
        process.stdin.write(json.dumps(paths) + "\n")
        process.stdin.flush()
        reason = str(json.loads(process.stdout.readline())["failed"])
        if reason:
            return None, None, reason
        state, parts = (load(paths[name], most_bytes=MOST_BYTES) for name in ("state", "beliefs"))
        return state, Beliefs(*parts), ""

    def close(self) -> None:
        """End the process; a refit under way is given up."""
        self._closed = True
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
        self._end()


def _start() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "posse.live.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def fitter_of(settings: Settings) -> Fitter:
    """Return what makes the refits of an agent with these settings."""
    return BackgroundFitter() if settings.refits == "background" else InlineFitter()


def attempt(job: Job) -> Outcome:
    """Return what a refit leads to, made here and now."""
    try:
        policy: Any = job.policy
        state = job.run().state
        return state, policy.beliefs(state), ""
    except Exception as error:  # whatever a fit may raise: an agent goes on without it
        return None, None, f"{type(error).__name__}: {in_a_line(error)}"
