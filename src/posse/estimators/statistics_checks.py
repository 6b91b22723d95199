"""Statistics that cannot be those of any rows are refused before an estimator works on them."""

from __future__ import annotations

import warnings

import numpy as np

from posse.core.errors import NoDataWarning
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, check_finite

# A sum of squares may be negative by this share of the largest: statistics are subtracted, too.
ROUNDING = 1e-9


def check_statistics(statistics: GramStatistics, owner: str = "") -> None:
    """Raise if statistics are not finite or not those of any rows; warn an `owner` if they have none."""
    parts = {name: getattr(statistics, name) for name in ("gram", "moment", "square", "count")}
    if not np.isfinite(sum(part.sum() for part in parts.values())):
        for name, part in parts.items():
            check_finite(f"`{name}` of GramStatistics", part)
    _check_sign("gram", np.einsum("tii->ti", statistics.gram), "have no negative entry on its diagonal")
    _check_sign("square", statistics.square, "not be negative")
    least = _check_sign("count", statistics.count, "not be negative")
    if least <= 0 and (statistics.square[statistics.count <= 0] > 0).any():
        raise ValueError(f"`count` of GramStatistics must be positive where there are data. Got {least:g}.")
    if owner and least <= 0 and not statistics.count.any():
        warnings.warn(
            f"statistics must have rows for {owner} to learn from. Got none of {statistics.n_tasks} tasks: "
            "the estimate is what is best without data.",
            NoDataWarning,
            stacklevel=3,
        )


def _check_sign(name: str, values: Array, wanted: str) -> float:
    """Return the least of some sums, if it is negative by rounding at most."""
    least = float(values.min())
    if least < 0 and least < -ROUNDING * float(values.max()):
        raise ValueError(f"`{name}` of GramStatistics must {wanted}. Got {least:.6g}.")
    return least
