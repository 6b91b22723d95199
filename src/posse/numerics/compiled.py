"""Loops that NumPy cannot fuse, compiled when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], *, any_order: bool = False) -> Callable[P, R]:
    """Compile a function by Numba at its first call; what was compiled is kept on disk for the next process.

    As a plain Python function it is `function.__wrapped__`, for comparison. Sums are taken as written,
    unless they may be taken in any order, which is faster.
    """
    liberties = {"reassoc", "contract"} if any_order else set()

    @cache
    def build() -> Callable[P, R]:
        from numba import njit  # half a second to import, and many programs never need it

        try:
            kernel: Callable[P, R] = njit(nogil=True, cache=True, fastmath=liberties)(function)
        except RuntimeError:  # no folder that can be written to
            kernel = njit(nogil=True, fastmath=liberties)(function)
        return kernel

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        return build()(*arguments, **named)

    return call
