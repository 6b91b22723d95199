"""Statistics in, an estimate of every task's parameter out."""

from posse.core.estimate import Certificate, ConvergenceWarning, Estimate
from posse.core.protocols import Estimator, Refits
from posse.estimators.factor_prior import FactorEstimate, FactorPrior
from posse.estimators.gaussian_prior import GaussianPrior
from posse.estimators.low_rank import LowRank
from posse.estimators.mixture_prior import MixturePrior
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
    "FactorEstimate",
    "FactorPrior",
    "GaussianPrior",
    "LowRank",
    "MethodOfMoments",
    "MixturePrior",
    "MomentStatistics",
    "OracleBasis",
    "PairedMoments",
    "Refits",
    "Ridge",
    "SubspaceEstimator",
    "TaskSpectral",
]
