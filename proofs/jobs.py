"""Calls in several processes, as many as JOBS says, with a word on stderr about how far they are."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed

Found = TypeVar("Found")
# So often a word is said.
WORDS = 10


def in_processes(
    name: str, function: Callable[..., Found], calls: Sequence[tuple[Any, ...]]
) -> Iterator[Found]:
    """Yield what a function returns for each of the calls, in their order.

    Examples
    --------
    >>> list(in_processes("powers", pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    clock, jobs = time.perf_counter(), int(os.environ.get("JOBS", "2"))
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(function)(*call) for call in calls)
    for done, one in enumerate(found, start=1):
        if done * WORDS // len(calls) > (done - 1) * WORDS // len(calls):
            seconds = time.perf_counter() - clock
            print(f"{name}: {done} of {len(calls)} calls, {seconds:.0f} s", file=sys.stderr, flush=True)
        yield one
