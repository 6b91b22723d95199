"""Statistics that cannot be those of any rows are refused before an estimator works on them."""

from __future__ import annotations

import warnings

import numpy as np

from posse.core.errors import NoDataWarning
from posse.core.statistics import GramStatistics
from posse.numerics.checks import check_finite

# A sum of squares may be negative by this share of the largest: statistics are subtracted, too.
ROUNDING = 1e-9


def check_statistics(statistics: GramStatistics, owner: str = "") -> None:
    """Raise if statistics are not finite or not those of any rows; warn an `owner` if they have none."""
    parts = {name: getattr(statistics, name) for name in ("gram", "moment", "square", "count")}
    if not np.isfinite(sum(part.sum() for part in parts.values())):
        for name, part in parts.items():
            check_finite(f"`{name}` of GramStatistics", part)
    parts["gram"] = np.einsum("tii->ti", statistics.gram)
    for name in ("gram", "square", "count"):
        least = float(parts[name].min())
        if least < 0 and least < -ROUNDING * float(parts[name].max()):
            kind = "have no negative entry on its diagonal" if name == "gram" else "not be negative"
            raise ValueError(f"`{name}` of GramStatistics must {kind}. Got {least:.6g}.")
    if least <= 0 and (statistics.square[statistics.count <= 0] > 0).any():
        raise ValueError(f"`count` of GramStatistics must be positive where there are data. Got {least:g}.")
    if owner and least <= 0 and not statistics.count.any():
        warnings.warn(
            f"statistics must have rows for {owner} to learn from. Got none of {statistics.n_tasks} tasks: "
            "the estimate is what is best without data.",
            NoDataWarning,
            stacklevel=3,
        )
