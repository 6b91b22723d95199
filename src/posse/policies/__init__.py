"""Who plays: estimators, rules and schedules put together."""

from posse.core.protocols import FollowsTheta, Policy, Rule, Schedule
from posse.policies.explore_commit import E2TC, PEGE, OracleCommit
from posse.policies.learning import Learning, LearningPolicy, LearningState
from posse.policies.lifelong import BARON, BRESS, SeqRepL
from posse.policies.mixture_thompson import MixtureThompson
from posse.policies.pege_tau import PEGETau
from posse.policies.presets import (
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    MLinGreedy,
    NaiveGreedy,
    OracleGreedy,
    OracleThompson,
    Shared,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
)
from posse.policies.random import Random
from posse.policies.rivals import (
    ArmulGreedy,
    Club,
    EbmThompson,
    EbmUCB,
    HierThompson,
    SpectralGreedy,
    TraceNormGreedy,
)
from posse.policies.rules import UCB, ByActions, Greedy, Thompson
from posse.policies.schedules import At, DoublyExponential, Every, Geometric

__all__ = [
    "BARON",
    "BRESS",
    "E2TC",
    "PEGE",
    "UCB",
    "ArmulGreedy",
    "At",
    "ByActions",
    "Club",
    "DoublyExponential",
    "EbmThompson",
    "EbmUCB",
    "Every",
    "FollowsTheta",
    "Geometric",
    "Greedy",
    "HierThompson",
    "IndependentGreedy",
    "IndependentThompson",
    "IndependentUCB",
    "Learning",
    "LearningPolicy",
    "LearningState",
    "MLinGreedy",
    "MixtureThompson",
    "NaiveGreedy",
    "OracleCommit",
    "OracleGreedy",
    "OracleThompson",
    "PEGETau",
    "Policy",
    "Random",
    "Rule",
    "Schedule",
    "SeqRepL",
    "Shared",
    "SharedGreedy",
    "SharedThompson",
    "SharedUCB",
    "SpectralGreedy",
    "Thompson",
    "TraceNormGreedy",
]
