"""Loops that NumPy cannot fuse, compiled when they are first called; and a clock that leaves that out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Loading(threading.local):
    """The seconds that a thread has spent on loading and compiling."""

    def __init__(self) -> None:
        self.seconds, self.since, self.depth = 0.0, 0.0, 0

    def on_start(self, event: Any = None) -> None:
        """Note that this thread begins to load or compile something."""
        if self.depth == 0:
            self.since = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any = None) -> None:
        """Note that it has ended."""
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.since


_LOADING = _Loading()


def working_seconds() -> float:
    """Return the reading of a clock that stands still while this thread loads or compiles code.

    The difference of two readings of one thread is what its work takes where all is loaded.
    """
    return time.perf_counter() - _LOADING.seconds


@contextmanager
def loading() -> Iterator[None]:
    """Import something while the clock of `working_seconds` stands still."""
    _LOADING.on_start()
    try:
        yield
    finally:
        _LOADING.on_end()


def compiled(function: Callable[P, R], *, any_order: bool = False) -> Callable[P, R]:
    """Compile a function by Numba at its first call; what was compiled is kept on disk for the next process.

    As a plain Python function it is `function.__wrapped__`, for comparison. Sums are taken as written,
    unless they may be taken in any order, which is faster.
    """
    liberties = {"reassoc", "contract"} if any_order else set()

    kernel: Callable[P, R] | None = None

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        nonlocal kernel
        if kernel is None:
            kernel = _compile(function, liberties)
        return kernel(*arguments, **named)

    return call


def _compile(function: Callable[P, R], liberties: set[str]) -> Callable[P, R]:
    njit = _numba()
    try:
        kernel: Callable[P, R] = njit(nogil=True, cache=True, fastmath=liberties)(function)
    except RuntimeError:  # no folder that can be written to
        kernel = njit(nogil=True, fastmath=liberties)(function)
    return kernel


@cache
def _numba() -> Any:
    """Import Numba, half a second that many programs never need, and have it tell when it compiles."""
    with loading():
        from numba import njit
        from numba.core import event

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                _LOADING.on_start()

            def on_end(self, event: Any) -> None:
                _LOADING.on_end()

        event.register("numba:compiler_lock", Listener())
    return njit
