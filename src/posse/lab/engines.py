"""How calls are run: in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from posse.numerics.checks import check_choice

ENGINES = ("local", "dask")
ADDRESS = re.compile(r"(tcp://)?[^/\s]+:\d+")


class GridError(RuntimeError):
    """Some runs could not be played or saved; those that were finished are kept."""


@dataclass(frozen=True)
class GivenUp:
    """Stands for the result of a call that a cluster has given up."""

    arguments: tuple[Any, ...]
    reason: str


def check_engine(engine: str, address: str | None) -> None:
    """Raise what is wrong with the choice of an engine, without starting it."""
    check_choice("engine", engine, ENGINES)
    if address is not None and engine != "dask":
        raise ValueError(f"address is for the engine dask, which is not used. Got {address!r}.")
    if address is not None and not ADDRESS.fullmatch(address):
        raise ValueError(f"address must be HOST:PORT, such as 10.0.0.5:8786. Got {address!r}.")
    if engine == "dask" and not (find_spec("dask") and find_spec("distributed")):
        raise GridError(
            'the engine dask needs packages that are not installed. Get them by: pip install "posse[cluster]"'
        )


def in_parallel(
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    jobs: int,
    engine: str = "local",
    address: str | None = None,
) -> Generator[Any, None, None]:
    """Yield the results of some calls as they come, each as soon as it is there.

    Parameters
    ----------
    function : callable
    calls : sequence of tuples
        The arguments of each call. Calls start in this order.
    jobs : int
        Processes to use on this machine.
    engine : str
        "local", or "dask" for a Dask cluster. There a call whose worker dies is made again elsewhere,
        and one that cannot be made at all yields a `GivenUp`.
    address : str, optional
        Where the scheduler of the cluster listens. By default the cluster is `jobs` processes of this
        machine.
    """
    if not calls:
        return
    with ExitStack() as stack:
        backend = None
        if engine == "dask":
            from posse.lab.cluster import start_backend

            backend = stack.enter_context(start_backend(min(jobs, len(calls)), address))
        parallel = joblib.Parallel(
            n_jobs=min(jobs, len(calls)),
            backend=backend,
            batch_size=1,  # a result that waits for others is lost with them
            pre_dispatch="all",  # workers that join a cluster later find work, too
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # joblib counts them
        results.close()
