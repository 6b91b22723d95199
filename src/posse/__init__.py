"""posse: many bandits, one representation."""

from posse.actions import EllipsoidActions, FiniteActions
from posse.data import ImageSet, load_images
from posse.estimators import (
    Estimate,
    LowRank,
    MethodOfMoments,
    OracleBasis,
    PairedMoments,
    Ridge,
    TaskSpectral,
)
from posse.policies import (
    E2TC,
    PEGE,
    At,
    DoublyExponential,
    Every,
    Geometric,
    Greedy,
    IndependentGreedy,
    LearningPolicy,
    MLinGreedy,
    NaiveGreedy,
    OracleCommit,
    OracleGreedy,
    Random,
)
from posse.problems import ClassPairs, EllipsoidProblem, GaussianProblem
from posse.simulation import Trace, simulate, simulate_all
from posse.statistics import GramStatistics

__version__ = "0.1.0"

__all__ = [
    "E2TC",
    "PEGE",
    "At",
    "ClassPairs",
    "DoublyExponential",
    "EllipsoidActions",
    "EllipsoidProblem",
    "Estimate",
    "Every",
    "FiniteActions",
    "GaussianProblem",
    "Geometric",
    "GramStatistics",
    "Greedy",
    "ImageSet",
    "IndependentGreedy",
    "LearningPolicy",
    "LowRank",
    "MLinGreedy",
    "MethodOfMoments",
    "NaiveGreedy",
    "OracleBasis",
    "OracleCommit",
    "OracleGreedy",
    "PairedMoments",
    "Random",
    "Ridge",
    "TaskSpectral",
    "Trace",
    "load_images",
    "simulate",
    "simulate_all",
]
