"""posse: many bandits, one representation."""

from posse.actions import FiniteActions
from posse.estimators import Estimate, LowRank, OracleBasis, Ridge
from posse.policies import (
    DoublyExponential,
    Every,
    Geometric,
    Greedy,
    IndependentGreedy,
    LearningPolicy,
    MLinGreedy,
    NaiveGreedy,
    OracleGreedy,
    Random,
)
from posse.problems import GaussianProblem
from posse.simulation import Trace, simulate, simulate_all
from posse.statistics import GramStatistics

__version__ = "0.1.0"

__all__ = [
    "DoublyExponential",
    "Estimate",
    "Every",
    "FiniteActions",
    "GaussianProblem",
    "Geometric",
    "GramStatistics",
    "Greedy",
    "IndependentGreedy",
    "LearningPolicy",
    "LowRank",
    "MLinGreedy",
    "NaiveGreedy",
    "OracleBasis",
    "OracleGreedy",
    "Random",
    "Ridge",
    "Trace",
    "simulate",
    "simulate_all",
]
