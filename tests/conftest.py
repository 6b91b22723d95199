"""Tests run side by side, so each keeps to one BLAS thread."""

from threadpoolctl import threadpool_limits

threadpool_limits(limits=1)
