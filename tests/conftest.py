"""Tests run side by side, so each keeps to one BLAS thread; and the same examples every time, untimed."""

from hypothesis import settings
from threadpoolctl import threadpool_limits

threadpool_limits(limits=1)
settings.register_profile("posse", derandomize=True, deadline=None)
settings.load_profile("posse")
