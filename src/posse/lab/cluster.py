"""The engine `dask`: calls on the workers of a Dask cluster, through joblib's backend for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import dask
from distributed import CancelledError, Client, KilledWorker, LocalCluster
from distributed.comm.core import connect
from distributed.utils import silence_logging_cmgr
from joblib._dask import DaskDistributedBackend

from posse.lab.engines import GivenUp, GridError

ANSWER_SECONDS = 5.0
# Workers have the same versions, or a run is another run (the first three) or cannot be sent (the last).
SAME = ("posse", "numpy", "scipy", "polars")
IGNORE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # the caller ends its workers
OWN_CLUSTER = {
    "distributed.scheduler.worker-saturation": 1.0,  # a worker that dies is lost to one run
    "distributed.deploy.lost-worker-timeout": "1 day",  # and starts again, however long that takes
}


class Backend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's backend, without two surprises.

    joblib waits for ever for a call that Dask has given up; here its result is a `GivenUp`. And joblib
    makes all calls at home if the cluster has one worker when they start.
    """

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Future[Any]:
        """Send a batch, which here is one call."""
        future: Future[Any] = super().submit(func, callback)

        def report(done: Future[Any]) -> None:
            error = done.exception()
            if error is not None:
                ((_, arguments, _),) = func.items
                callback([GivenUp(arguments, _reason(error))])

        future.add_done_callback(report)
        return future

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Count the workers; two at least, so that joblib does not stay at home."""
        workers: int = super().effective_n_jobs(n_jobs)
        return max(2, workers)


def _reason(error: BaseException) -> str:
    if isinstance(error, KilledWorker):
        return f"{error.allowed_failures + 1} times a worker died in it (killed, or out of memory)"
    return f"{type(error).__name__}: {error}"


@contextmanager
def start_backend(jobs: int, address: str | None) -> Iterator[Backend]:
    """Connect with the cluster at an address, or start one of `jobs` processes; leave it at the end."""
    with ExitStack() as stack:
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))  # what matters is raised or yielded
        if address is None:
            stack.enter_context(dask.config.set(OWN_CLUSTER))
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                memory_limit=None,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                preload=[IGNORE_CTRL_C],
            )
            stack.enter_context(closing(cluster))
            client = Client(cluster, set_as_default=False)
        else:
            _reach(address)
            client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
        stack.enter_context(closing(client))
        if address is not None:
            _check_workers(client, address)
        try:
            yield Backend(client=client)
        except CancelledError:
            raise GridError(
                "the Dask scheduler is gone. Runs that were saved are kept, and the same command plays "
                "the rest."
            ) from None


def _reach(address: str) -> None:
    """Raise if no scheduler answers; a Client would wait for ever for one that is not a scheduler."""

    async def shake_hands() -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            comm = await connect(address)
            await comm.close()

    with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
        try:
            thread.submit(asyncio.run, shake_hands()).result()
        except Exception:  # what a stranger answers can be anything
            raise GridError(
                f"no Dask scheduler answers at {address}. `dask scheduler` starts one, and says its address."
            ) from None


def _check_workers(client: Client, address: str) -> None:
    """Raise if there are no workers, or some that would not play as this machine does."""
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError:
        raise GridError(
            f"the Dask scheduler at {address} has no workers. Start some: dask worker {address} --nthreads 1"
        ) from None
    for worker, threads in client.nthreads().items():
        if threads != 1:
            raise GridError(f"workers must have one thread each (--nthreads 1). Got {threads} at {worker}.")
    for package in SAME:
        here = version(package)
        for worker, there in client.run(version, package, on_error="return").items():
            if there != here:
                found = "none" if isinstance(there, PackageNotFoundError) else there
                raise GridError(f"{package} must be {here} on all workers, as here. Got {found} at {worker}.")
