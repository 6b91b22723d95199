"""Tests run side by side, so each keeps to one BLAS thread; and the same examples every time, untimed."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from distributed import LocalCluster

assert "numpy" not in sys.modules, "the arithmetic of numpy must be chosen before it is imported"
if platform.machine() == "x86_64":
    # the same kernels on all such processors, so that sums round alike and numbers in the docs are exact
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
import numpy  # noqa: E402, F401

threadpool_limits(limits=1)
settings.register_profile("posse", derandomize=True, deadline=None)
settings.load_profile("posse")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A cluster of Dask on this machine, three processes that tests may kill: they come back."""
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        memory_limit=None,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )
    yield cluster
    cluster.close()
