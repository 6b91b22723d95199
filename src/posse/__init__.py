"""posse: many bandits, one representation."""

from posse.core.actions import EllipsoidActions, FiniteActions
from posse.core.estimate import Estimate
from posse.core.statistics import GramStatistics
from posse.estimators import (
    FactorPrior,
    GaussianPrior,
    LowRank,
    MethodOfMoments,
    OracleBasis,
    PairedMoments,
    Ridge,
    TaskSpectral,
)
from posse.play.simulation import Trace, simulate, simulate_all
from posse.policies import (
    E2TC,
    PEGE,
    UCB,
    At,
    DoublyExponential,
    Every,
    Geometric,
    Greedy,
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    LearningPolicy,
    MLinGreedy,
    NaiveGreedy,
    OracleCommit,
    OracleGreedy,
    OracleThompson,
    Random,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    Thompson,
)
from posse.problems import ClassPairs, EllipsoidProblem, GaussianProblem
from posse.problems.images import ImageSet, load_images

__version__ = "0.1.0"

__all__ = [
    "E2TC",
    "PEGE",
    "UCB",
    "At",
    "ClassPairs",
    "DoublyExponential",
    "EllipsoidActions",
    "EllipsoidProblem",
    "Estimate",
    "Every",
    "FactorPrior",
    "FiniteActions",
    "GaussianPrior",
    "GaussianProblem",
    "Geometric",
    "GramStatistics",
    "Greedy",
    "ImageSet",
    "IndependentGreedy",
    "IndependentThompson",
    "IndependentUCB",
    "LearningPolicy",
    "LowRank",
    "MLinGreedy",
    "MethodOfMoments",
    "NaiveGreedy",
    "OracleBasis",
    "OracleCommit",
    "OracleGreedy",
    "OracleThompson",
    "PairedMoments",
    "Random",
    "Ridge",
    "SharedGreedy",
    "SharedThompson",
    "SharedUCB",
    "TaskSpectral",
    "Thompson",
    "Trace",
    "load_images",
    "simulate",
    "simulate_all",
]
