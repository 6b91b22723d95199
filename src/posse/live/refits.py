"""Where refits are made: at once, in the caller's time, or in a process beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from posse.core.archive import in_a_line
from posse.core.episode import Job
from posse.live.settings import Settings

# Is called with the job, its number, the state that it led to, and why it failed, "" if it did not.
Finished = Callable[[Job, int, Any, str], None]


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
        state, reason = attempt(job)
        finished(job, number, state, reason)

    def close(self) -> None:
        """Do nothing: no refit is under way."""


def fitter_of(settings: Settings) -> Fitter:
    """Return what makes the refits of an agent with these settings."""
    return InlineFitter()


def attempt(job: Job) -> tuple[Any, str]:
    """Return the state that a refit leads to and "", or None and why it failed."""
    try:
        return job.run().state, ""
    except Exception as error:  # whatever a fit may raise: an agent goes on without it
        return None, f"{type(error).__name__}: {in_a_line(error)}"
