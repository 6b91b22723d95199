"""Statistics in, an estimate of every task's parameter out."""

from posse.core.estimate import Certificate, ConvergenceWarning, Estimate
from posse.core.protocols import Estimator, Refits
from posse.estimators.armul import Armul, ArmulEstimate
from posse.estimators.clubs import ClubEstimate, Clubs
from posse.estimators.empirical_prior import EmpiricalEstimate, EmpiricalPrior
from posse.estimators.factor_prior import FactorEstimate, FactorPrior
from posse.estimators.gaussian_prior import GaussianPrior
from posse.estimators.hierarchy import HierarchicalPrior
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
from posse.estimators.spectral import SpectralShrinkage
from posse.estimators.trace_norm import TraceNorm

__all__ = [
    "Armul",
    "ArmulEstimate",
    "Certificate",
    "ClubEstimate",
    "Clubs",
    "ConvergenceWarning",
    "EmpiricalEstimate",
    "EmpiricalPrior",
    "Estimate",
    "Estimator",
    "FactorEstimate",
    "FactorPrior",
    "GaussianPrior",
    "HierarchicalPrior",
    "LowRank",
    "MethodOfMoments",
    "MixturePrior",
    "MomentStatistics",
    "OracleBasis",
    "PairedMoments",
    "Refits",
    "Ridge",
    "SpectralShrinkage",
    "SubspaceEstimator",
    "TaskSpectral",
    "TraceNorm",
]
