"""Measure one contender in the environment that has it; the result is one line of JSON.

python -m benchmarks.mixed_models.runner DATA LIBRARY FIT
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.mixed_models.workload import Array, Cell, Workload

WARM_UP = Cell(tasks=12, dim=2, rows=10, related=True)


def measure(fit: Callable[[Workload], tuple[Array, Array]], data: Workload) -> dict[str, float]:
    """Fit a workload, and return how long it took and how far off it is.

    A small one is fitted first, for what a library loads, compiles or caches lazily.
    """
    fit(Workload.draw(WARM_UP, 0))
    clock, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        coef, intercept = fit(data)
    seconds, processor_seconds = time.perf_counter() - clock, time.process_time() - processor
    unconverged = any("converge" in str(warning.message) for warning in heard)
    times = {"seconds": seconds, "processor_seconds": processor_seconds, "unconverged": unconverged}
    return {**times, **data.errors(coef, intercept)}


def main(data: str, library: str, fit: str) -> None:
    """Print what was measured."""
    module = import_module(f"benchmarks.mixed_models.fits.{library.replace('-', '_')}")
    found = measure(getattr(module, fit), Workload.read(Path(data)))
    print(json.dumps({**found, "version": version(library)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
