"""Loops that NumPy cannot fuse, compiled when they are first called; and a clock that leaves that out."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Loading:
    """The seconds that this process has spent on loading and compiling kernels."""

    def __init__(self) -> None:
        self.seconds, self.since, self.depth = 0.0, 0.0, 0

    def on_start(self, event: Any) -> None:
        """Note that Numba begins to load or compile something."""
        if self.depth == 0:
            self.since = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Note that it has ended."""
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.since


_LOADING = _Loading()


def working_seconds() -> float:
    """Return a clock's reading that stands still while kernels are loaded or compiled.

    Differences of two readings are the seconds that work takes in a process that has done it before.
    """
    return time.perf_counter() - _LOADING.seconds


def compiled(function: Callable[P, R], *, any_order: bool = False) -> Callable[P, R]:
    """Compile a function by Numba at its first call; what was compiled is kept on disk for the next process.

    As a plain Python function it is `function.__wrapped__`, for comparison. Sums are taken as written,
    unless they may be taken in any order, which is faster.
    """
    liberties = {"reassoc", "contract"} if any_order else set()

    @cache
    def build() -> Callable[P, R]:
        njit = _numba()
        try:
            kernel: Callable[P, R] = njit(nogil=True, cache=True, fastmath=liberties)(function)
        except RuntimeError:  # no folder that can be written to
            kernel = njit(nogil=True, fastmath=liberties)(function)
        return kernel

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        return build()(*arguments, **named)

    return call


@cache
def _numba() -> Any:
    """Import Numba, half a second that many programs never need, and count the time that it loads for."""
    _LOADING.on_start(None)
    try:
        from numba import njit
        from numba.core import event

        class Listener(event.Listener):
            on_start, on_end = _LOADING.on_start, _LOADING.on_end

        event.register("numba:compiler_lock", Listener())
    finally:
        _LOADING.on_end(None)
    return njit
