"""Measure one library in the environment that has it; the result is one line of JSON.

python -m benchmarks.peers.runner DATA BATCH LIBRARY PLAYER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.workload import Player, Workload, play

WARM_UP_BATCHES = 5


def measure(make: Callable[[int, int], Player], workload: Workload, batch: int) -> dict[str, float | None]:
    """Play a workload and return how long it took, what memory, and the regret.

    A few batches are played first: of one task, for what a library loads, compiles or caches lazily, and
    of all tasks, until memory that is used and freed in every batch stays with the process. Making
    objects is not timed, but their memory is part of what the run added.
    """
    _, tasks, _, dim = workload.arms.shape
    play(make(1, dim), workload.corner(WARM_UP_BATCHES * batch, 1), batch)
    before = resident_megabytes("VmRSS")
    play(make(tasks, dim), workload.corner(WARM_UP_BATCHES * batch, tasks), batch)
    player = make(tasks, dim)
    clock, processor = time.perf_counter(), time.process_time()
    choice = play(player, workload, batch)
    seconds, processor_seconds = time.perf_counter() - clock, time.process_time() - processor
    after, peak = resident_megabytes("VmRSS"), resident_megabytes("VmHWM")
    return {
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "decisions": choice.size,
        "peak_mb": None if peak is None else peak - workload.megabytes,
        "growth_mb": None if after is None or before is None else after - before,
        "regret": workload.regret(choice),
    }


def resident_megabytes(field: str) -> float | None:
    """Return the resident memory of this process, now (VmRSS) or at its peak (VmHWM); None off Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[field].split()[0]) / 1024


def main(data: str, batch: str, library: str, player: str) -> None:
    """Print what was measured."""
    make = getattr(import_module(f"benchmarks.peers.players.{library}"), player)
    found = measure(make, Workload.read(Path(data)), int(batch))
    print(json.dumps({**found, "version": version(library)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
