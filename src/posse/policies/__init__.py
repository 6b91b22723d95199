"""Who plays: estimators, rules and schedules put together."""

from posse.policies.explore_commit import E2TC, PEGE, OracleCommit
from posse.policies.learning import (
    IndependentGreedy,
    LearningPolicy,
    LearningState,
    MLinGreedy,
    NaiveGreedy,
    OracleGreedy,
)
from posse.policies.protocol import Policy
from posse.policies.random import Random
from posse.policies.rules import Greedy, Rule
from posse.policies.schedules import At, DoublyExponential, Every, Geometric, Schedule

__all__ = [
    "E2TC",
    "PEGE",
    "At",
    "DoublyExponential",
    "Every",
    "Geometric",
    "Greedy",
    "IndependentGreedy",
    "LearningPolicy",
    "LearningState",
    "MLinGreedy",
    "NaiveGreedy",
    "OracleCommit",
    "OracleGreedy",
    "Policy",
    "Random",
    "Rule",
    "Schedule",
]
