"""How calls are run: in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.numerics.checks import check_choice, check_integer

with extra("lab"):
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

ENGINES = ("local", "dask")
ADDRESS = re.compile(r"(tcp://)?[^/\s]+:\d+")


class GridError(PosseError):
    """Runs could not be played or saved; those that were finished are kept."""


@dataclass(frozen=True)
class GivenUp:
    """Stands for the result of a call that a cluster has given up."""

    arguments: tuple[Any, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Who makes many calls: processes of this machine, or the workers of a Dask cluster.

    Parameters
    ----------
    jobs : int
        Processes to use on this machine.
    engine : "local" or "dask"
        "local" for processes of this machine. "dask" for a Dask cluster, which makes a call again elsewhere
        if its worker dies; it needs `posse[dask]`.
    address : str, optional
        HOST:PORT of the cluster's scheduler; its workers then take the place of `jobs`. By default the
        cluster is `jobs` processes of this machine.
    """

    jobs: int = 1
    engine: str = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        check_integer("`jobs` of Workers", self.jobs, 1)
        check_choice("`engine` of Workers", self.engine, ENGINES)
        if self.address is not None and self.engine != "dask":
            raise ValueError(
                f"`address` of Workers is for the engine dask, which is not used. Got {self.address!r}."
            )
        if self.address is not None and not ADDRESS.fullmatch(self.address):
            raise ValueError(
                f"`address` of Workers must be HOST:PORT, such as 10.0.0.5:8786. Got {self.address!r}."
            )
        if self.engine == "dask":
            with extra("dask"):
                import distributed  # noqa: F401


def in_parallel(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], workers: Workers
) -> Generator[Any, None, None]:
    """Yield the results of some calls as they come, each as soon as it is there.

    A call that a Dask cluster cannot make at all yields a `GivenUp`.

    Parameters
    ----------
    function : callable
    calls : sequence of tuples
        The arguments of each call. Calls start in this order.
    workers : Workers
    """
    if not calls:
        return
    with ExitStack() as stack:
        backend = None
        jobs = min(workers.jobs, len(calls))
        if workers.engine == "dask":
            from posse.lab.cluster import start_backend  # an extra, and slow to import

            backend = stack.enter_context(start_backend(jobs, workers.address))
        parallel = joblib.Parallel(
            n_jobs=jobs,
            backend=backend,
            batch_size=1,  # a result that waits for others is lost with them
            # workers that join a cluster later find work, too
            pre_dispatch="all" if workers.engine == "dask" else "2 * n_jobs",
            return_as="generator_unordered",
        )
        results = parallel(joblib.delayed(function)(*call) for call in calls)
        stack.callback(_close_quietly, results)
        try:
            for result in results:  # noqa: UP028 (`yield from` would close them with a warning)
                yield result
        except BrokenProcessPool:
            raise GridError(
                "a worker process died (killed, or out of memory). Runs that were saved are kept, and the "
                "same command plays the rest. Fewer --jobs need less memory."
            ) from None


def _close_quietly(results: Any) -> None:
    """End calls that no one waits for any more."""
    report = threading.excepthook

    def ignore_lost_calls(failure: threading.ExceptHookArgs) -> None:
        # the thread that hands calls to processes may look for one that was just given up
        if not (failure.exc_type is KeyError and "ExecutorManager" in str(failure.thread)):
            report(failure)

    threading.excepthook = ignore_lost_calls
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib counts them
            results.close()
    finally:
        threading.excepthook = report
