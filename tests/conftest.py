"""Tests run side by side, so each keeps to one BLAS thread; and the same examples every time, untimed."""

import os
import platform
import sys

from hypothesis import settings
from threadpoolctl import threadpool_limits

assert "numpy" not in sys.modules, "the arithmetic of numpy must be chosen before it is imported"
if platform.machine() == "x86_64":
    # the same kernels on all such processors, so that sums round alike and numbers in the docs are exact
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
import numpy  # noqa: E402, F401

threadpool_limits(limits=1)
settings.register_profile("posse", derandomize=True, deadline=None)
settings.load_profile("posse")
