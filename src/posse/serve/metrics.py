"""What is counted while a service runs, for Prometheus."""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np

from posse.numerics.checks import Array

# Upper ends of the classes of answer times, in seconds.
TIMES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
COUNTS = {
    "tasks": ("gauge", "Tasks that were seen."),
    "decisions": ("counter", "Decisions that were made."),
    "rewards": ("counter", "Decisions that count with a reward that was told."),
    "pending": ("gauge", "Decisions that wait for a reward."),
    "late": ("counter", "Rewards that came too late to count."),
    "expired": ("counter", "Decisions that nobody waits for any more."),
    "defaults": ("counter", "Expired decisions that count with the default reward."),
    "backlog": ("gauge", "Decisions and rewards that the process which learns has not taken yet."),
}
STANDS = {
    "version": "The version that decisions are made by.",
    "entropy": "Entropy of late choices, 1 at random.",
    "sample_ratio": "Chance, at most, that right probabilities would ever look as wrong as these.",
}


# A process has its counts in so many numbers: what is queued, refusals by status, and for each of some paths
# its answers by class of time, and their seconds.
FIRST_STATUS, STATUSES, MOST_PATHS, EACH = 400, 200, 32, len(TIMES) + 2
SIZE = 1 + STATUSES + MOST_PATHS * EACH


class Meter:
    """Requests by endpoint with their times, and refusals by status, of all processes that answer.

    Each process has numbers of its own in one piece of memory, and whoever is asked adds them up. That memory
    is not the process's: one that is killed has counted what it has counted, and the next one goes on there.

    Parameters
    ----------
    memory : writable buffer, optional
        `SIZE` numbers for each process, 0 at first; by default this one's own, for one process.
    place : int
        Of this process, among them.

    Examples
    --------
    >>> memory = memoryview(bytearray(2 * 8 * SIZE))
    >>> one, other = Meter(memory, 0), Meter(memory, 1)
    >>> one.refused(404), other.refused(404)
    (None, None)
    >>> 'posse_refused_total{status="404"} 2' in one.text({"spaces": {}})
    True
    """

    def __init__(self, memory: Any = None, place: int = 0) -> None:
        whole = memoryview(bytearray(8 * SIZE) if memory is None else memory)
        self._every = np.frombuffer(whole, np.float64).reshape(-1, SIZE)
        self._own = whole.cast("B")[8 * SIZE * place : 8 * SIZE * (place + 1)].cast("d")
        self._paths: list[str] = []
        self.queued(0)

    @classmethod
    def of_file(cls, number: int, place: int) -> Meter:
        """Return the meter of a process by the number of an open file, which others have open, too."""
        return cls(mmap.mmap(number, 0), place)

    def begin_of(self, path: str) -> int:
        """Return where the counts of a path begin; all processes name theirs in one order."""
        if path not in self._paths:
            assert len(self._paths) < MOST_PATHS
            self._paths.append(path)
        return 1 + STATUSES + EACH * self._paths.index(path)

    def answered(self, begin: int, seconds: float) -> None:
        """Count a request of a path and its time, whether or not it ended well."""
        own = self._own
        own[begin + bisect_left(TIMES, seconds)] += 1.0
        own[begin + EACH - 1] += seconds

    def refused(self, status: int) -> None:
        """Count a request that was answered with an error."""
        self._own[1 + status - FIRST_STATUS] += 1.0

    def queued(self, number: int) -> None:
        """Say how many decisions this process keeps until its database is back."""
        self._own[0] = number

    def text(self, summary: Mapping[str, Any]) -> str:
        """Return all counts in the format of Prometheus; no names of tasks are among them.

        Parameters
        ----------
        summary : mapping
            As `Service.summary` returns it.
        """
        lines: list[str] = []
        for name, (kind, words) in COUNTS.items():
            full = f"posse_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# HELP {full} {words}", f"# TYPE {full} {kind}"]
            lines += [f'{full}{{space="{one}"}} {space[name]}' for one, space in summary["spaces"].items()]
        for name, words in STANDS.items():
            lines += [f"# HELP posse_{name} {words}", f"# TYPE posse_{name} gauge"]
            lines += [
                f'posse_{name}{{space="{one}"}} {space[name]}'
                for one, space in summary["spaces"].items()
                if space[name] is not None
            ]
        lines += ["# HELP posse_alarms Alarms that are on.", "# TYPE posse_alarms gauge"]
        lines += [f'posse_alarms{{space="{one}"}} {len(s["alarms"])}' for one, s in summary["spaces"].items()]
        lines += [
            "# HELP posse_refused_total Requests answered with an error.",
            "# TYPE posse_refused_total counter",
        ]
        own = self._every.sum(axis=0)
        refused = own[1 : 1 + STATUSES].tolist()
        lines += [
            f'posse_refused_total{{status="{FIRST_STATUS + place}"}} {count:.0f}'
            for place, count in enumerate(refused)
            if count
        ]
        lines += [
            "# HELP posse_queued Decisions that wait in processes until the database is back.",
            "# TYPE posse_queued gauge",
            f"posse_queued {own[0]:.0f}",
        ]
        return "\n".join([*lines, *self._histogram(own)]) + "\n"

    def _histogram(self, own: Array) -> list[str]:
        name = "posse_request_seconds"
        lines = [f"# HELP {name} Times of answers.", f"# TYPE {name} histogram"]
        for path in sorted(self._paths):
            begin = self.begin_of(path)
            found, total = own[begin : begin + EACH].tolist(), 0.0
            if not any(found):
                continue
            for most, count in zip((*TIMES, "+Inf"), found[:-1], strict=True):
                total += count
                lines.append(f'{name}_bucket{{path="{path}",le="{most}"}} {total:.0f}')
            lines += [
                f'{name}_sum{{path="{path}"}} {found[-1]:.6f}',
                f'{name}_count{{path="{path}"}} {total:.0f}',
            ]
        return lines
