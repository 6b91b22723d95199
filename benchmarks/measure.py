"""How things are timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def median_seconds(repeats: int, call: Callable[..., T], *arguments: Any) -> tuple[float, T]:
    """Return the median time of some equal calls, and the result of the last."""
    times = []
    for _ in range(repeats):
        clock = time.perf_counter()
        result = call(*arguments)
        times.append(time.perf_counter() - clock)
    return float(np.median(times)), result
