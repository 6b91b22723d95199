"""Statistics in, an estimate of every task's parameter out."""

from posse.estimators.estimate import Certificate, Estimate, Estimator
from posse.estimators.low_rank import ConvergenceWarning, LowRank
from posse.estimators.moments import (
    MethodOfMoments,
    MomentStatistics,
    PairedMoments,
    SubspaceEstimator,
    TaskSpectral,
)
from posse.estimators.ridge import OracleBasis, Ridge

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "Estimate",
    "Estimator",
    "LowRank",
    "MethodOfMoments",
    "MomentStatistics",
    "OracleBasis",
    "PairedMoments",
    "Ridge",
    "SubspaceEstimator",
    "TaskSpectral",
]
