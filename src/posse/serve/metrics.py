"""What is counted while a service runs, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
}
STANDS = {
    "version": "The version that decisions are made by.",
    "entropy": "Entropy of late choices, 1 at random.",
    "sample_ratio": "Chance, at most, that right probabilities would ever look as wrong as these.",
}


class Meter:
    """Requests by endpoint with their times, and refusals by status."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._refused: dict[int, int] = {}

    def answered(self, path: str, seconds: float) -> None:
        """Count a request and its time, whether or not it ended well."""
        found = self._times.get(path)
        if found is None:
            found = self._times[path] = [0.0] * (len(TIMES) + 2)
        for place, most in enumerate(TIMES):
            if seconds <= most:
                found[place] += 1
                break
        else:
            found[-2] += 1
        found[-1] += seconds

    def refused(self, status: int) -> None:
        """Count a request that was answered with an error."""
        self._refused[status] = self._refused.get(status, 0) + 1

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
        lines += [f'posse_refused_total{{status="{code}"}} {n}' for code, n in sorted(self._refused.items())]
        return "\n".join([*lines, *self._histogram()]) + "\n"

    def _histogram(self) -> list[str]:
        name = "posse_request_seconds"
        lines = [f"# HELP {name} Times of answers.", f"# TYPE {name} histogram"]
        for path, found in sorted(self._times.items()):
            total = 0.0
            for most, count in zip((*TIMES, "+Inf"), found[:-1], strict=True):
                total += count
                lines.append(f'{name}_bucket{{path="{path}",le="{most}"}} {total:.0f}')
            lines += [
                f'{name}_sum{{path="{path}"}} {found[-1]:.6f}',
                f'{name}_count{{path="{path}"}} {total:.0f}',
            ]
        return lines
