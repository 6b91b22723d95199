"""The policies that have a name. One of posse's own is added here, by one entry, and nowhere else.

Those of other papers stand in `named_rivals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from posse.core.protocols import Estimator, Policy, Problem
from posse.estimators import LowRank, MethodOfMoments, PairedMoments, Ridge, TaskSpectral
from posse.estimators.moments import SubspaceEstimator
from posse.lab.entries import Look, NamedPolicy, Parameter
from posse.lab.named_for_streams import FOR_STREAMS, true_basis
from posse.lab.named_rivals import RIVALS
from posse.lab.parameters import LEARNING, MEMORY, RANK, THOMPSON_SCALE, UCB_SCALE, learning
from posse.policies import (
    E2TC,
    PEGE,
    At,
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
    Shared,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
)
from posse.viz.style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, YELLOW, Style

PRIOR_RANK = Parameter(
    help="How many directions tasks share; auto finds out.", option="prior_rank", symbol="k"
)
PENALTY = Parameter(help="Its ridge.", option="penalty", symbol="ridge")
EXPONENT = Parameter(help="c in its N_1 = d^c k sqrt(N / T).", option="exponent", symbol="c")
SUBSPACES: Mapping[str, SubspaceEstimator] = MappingProxyType(
    {"moments": MethodOfMoments(), "spectral": TaskSpectral(), "pairs": PairedMoments()}
)
SUBSPACE = Parameter(
    help=f"How it finds the representation: {', '.join(SUBSPACES)}.",
    default="moments",
    choices=tuple(SUBSPACES),
)
FLOOR = Parameter(help="The least probability of every arm on offer.", default=0.0)
EXPLORE = Parameter(help="The round of its last estimate.", option="explore", symbol="n")
ESTIMATOR = Parameter(
    help="What it estimates by: ridge, or low-rank.", default="ridge", choices=("ridge", "low-rank")
)
LOW_RANK = replace(RANK, where=("estimator", "low-rank"))
LEARNED_ONCE = {"estimator": ESTIMATOR, "rank": LOW_RANK, "penalty": PENALTY, "explore": EXPLORE}
FORGETFUL = {"schedule": 100, "memory": 0.9995}


def _estimator(kind: str, rank: int | None, penalty: float) -> Estimator:
    return Ridge(penalty=penalty) if rank is None or kind == "ridge" else LowRank(rank=rank, penalty=penalty)


def _commit(problem: Problem, *, estimator: str, rank: int | None, penalty: float, explore: int) -> Policy:
    return LearningPolicy(estimator=_estimator(estimator, rank, penalty), schedule=At((explore,)))


def _relearn(
    problem: Problem, *, estimator: str, rank: int | None, penalty: float, explore: int, memory: Any
) -> Policy:
    first = min(max(1, problem.dim // 8), explore)
    return LearningPolicy(
        estimator=_estimator(estimator, rank, penalty), schedule=At((first, explore)), memory=memory
    )


def _mlingreedy_of_rank(rank: int, style: Style) -> Look:
    summary = f"MLinGreedy told the rank {rank}, whatever that of the problem"
    return Look(f"MLinGreedy, k = {rank}", summary, style, {"rank": rank})


def _e2tc_of_exponent(exponent: float, style: Style) -> Look:
    summary = f"E2TC with the exponent c = {exponent:g} in its N_1 = d^c k sqrt(N / T)"
    return Look(f"E2TC, c = {exponent:g}", summary, style, {"exponent": exponent})


COMMIT_SUMMARY = "n rounds at random, then greedy play by NaiveGreedy's estimate from them"
E2TC_SUMMARY = "the paper's Algorithm 2 for ellipsoids: explore, find the representation, refine, commit"
POLICIES: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "shared-greedy": NamedPolicy(
            "SharedGreedy",
            "posse's learned prior, shared by all tasks as far as that helps, and greedy play",
            "posse",
            Style(PINK, "star"),
            **learning(SharedGreedy, rank=PRIOR_RANK, **LEARNING),
            looks=(
                Look(
                    "SharedGreedy, forgetful",
                    "SharedGreedy for tasks that move: updates every 100 rounds, a memory of about 2000",
                    Style(PINK, "plus"),
                    FORGETFUL,
                ),
            ),
        ),
        "shared-thompson": NamedPolicy(
            "SharedThompson",
            "posse's learned prior and Thompson sampling: explores, on any action set",
            "posse",
            Style(PINK, "circle"),
            **learning(SharedThompson, rank=PRIOR_RANK, scale=THOMPSON_SCALE, floor=FLOOR, **LEARNING),
        ),
        "shared-ucb": NamedPolicy(
            "SharedUCB",
            "posse's learned prior and upper confidence bounds: explores, on finite action sets",
            "posse",
            Style(PINK, "square"),
            **learning(SharedUCB, rank=PRIOR_RANK, scale=UCB_SCALE, **LEARNING),
            actions="finite",
        ),
        "shared": NamedPolicy(
            "Shared",
            "if you do not choose: the learned prior, confidence bounds on finite sets, Thompson elsewhere",
            "posse",
            Style(PINK, "diamond"),
            **learning(Shared, rank=PRIOR_RANK, scale=UCB_SCALE, **LEARNING),
        ),
        "mlingreedy": NamedPolicy(
            "MLinGreedy",
            "the paper's Algorithm 1: low-rank least squares, each epoch from the last one's data",
            "the paper",
            Style(BLUE, "circle"),
            lambda problem, rank, penalty: MLinGreedy(rank=rank, penalty=penalty),
            "finite",
            {"rank": RANK, "penalty": PENALTY},
            (
                _mlingreedy_of_rank(1, Style(SKY, "diamond")),
                _mlingreedy_of_rank(2, Style(PINK, "cross")),
                _mlingreedy_of_rank(5, Style(BLUE, "hexagon")),
                _mlingreedy_of_rank(10, Style(BLACK, "down")),
            ),
        ),
        "naive": NamedPolicy(
            "NaiveGreedy",
            "the paper's baseline: ordinary least squares, each task alone, same epochs",
            "each task alone",
            Style(RED, "square"),
            lambda problem, penalty: NaiveGreedy(penalty=penalty),
            "finite",
            {"penalty": PENALTY},
        ),
        "independent-greedy": NamedPolicy(
            "IndependentGreedy",
            "the baseline strengthened: ridge with a learned penalty, all data, frequent updates",
            "each task alone",
            Style(ORANGE, "triangle"),
            **learning(IndependentGreedy, **LEARNING),
            looks=(
                Look(
                    "IndependentGreedy, epochs",
                    "ridge with a learned penalty and all data, but updates at the ends of the paper's "
                    "epochs alone",
                    Style(GREEN, "star"),
                    {"schedule": "epochs"},
                ),
                Look(
                    "IndependentGreedy, forgetful",
                    "each task alone, for tasks that move: updates every 100 rounds, a memory of about 2000",
                    Style(ORANGE, "plus"),
                    FORGETFUL,
                ),
            ),
        ),
        "independent-thompson": NamedPolicy(
            "IndependentThompson",
            "each task alone: ridge with a learned penalty, all data, Thompson sampling",
            "each task alone",
            Style(ORANGE, "circle"),
            **learning(IndependentThompson, scale=THOMPSON_SCALE, floor=FLOOR, **LEARNING),
        ),
        "independent-ucb": NamedPolicy(
            "IndependentUCB",
            "each task alone: ridge with a learned penalty, all data, upper confidence bounds",
            "each task alone",
            Style(ORANGE, "square"),
            **learning(IndependentUCB, scale=UCB_SCALE, **LEARNING),
            actions="finite",
        ),
        "oracle-greedy": NamedPolicy(
            "OracleGreedy",
            "IndependentGreedy told the true representation: what is left to gain",
            "oracles",
            Style(GREEN, "diamond"),
            lambda problem: OracleGreedy(true_basis(problem)),
        ),
        "oracle-thompson": NamedPolicy(
            "OracleThompson",
            "IndependentThompson told the true representation",
            "oracles",
            Style(GREEN, "circle"),
            lambda problem, scale: OracleThompson(true_basis(problem), scale=scale),
            parameters={"scale": THOMPSON_SCALE},
        ),
        "e2tc": NamedPolicy(
            "E2TC",
            E2TC_SUMMARY,
            "the paper",
            Style(BLUE, "plus"),
            lambda problem, rank, exponent, subspace: E2TC(
                rank=rank, exponent=exponent, subspace=SUBSPACES[subspace]
            ),
            "ellipsoids",
            {"rank": RANK, "exponent": EXPONENT, "subspace": SUBSPACE},
            (
                _e2tc_of_exponent(0.5, Style(ORANGE, "star")),
                _e2tc_of_exponent(1.0, Style(PINK, "hexagon")),
                Look("E2TC, c = 1.5", E2TC_SUMMARY, Style(BLUE, "plus")),
                _e2tc_of_exponent(2.0, Style(BLACK, "cross")),
                Look(
                    "E2TC, spectral",
                    "E2TC that finds the representation from the tasks' own least squares (Yang et al. 2022)",
                    Style(SKY, "hexagon"),
                    {"subspace": "spectral"},
                ),
                Look(
                    "E2TC, pairs",
                    "E2TC that finds the representation from products of different rounds",
                    Style(YELLOW, "star"),
                    {"subspace": "pairs"},
                ),
            ),
        ),
        "pege": NamedPolicy(
            "PEGE",
            "each task alone on its ellipsoid: cycles of exploring d directions and exploiting",
            "each task alone",
            Style(RED, "hexagon"),
            lambda problem: PEGE(),
            "ellipsoids",
        ),
        "oracle-commit": NamedPolicy(
            "OracleCommit",
            "E2TC told the true representation",
            "oracles",
            Style(GREEN, "cross"),
            lambda problem: OracleCommit(basis=true_basis(problem)),
            "ellipsoids",
        ),
        **RIVALS,
        **FOR_STREAMS,
        "commit": NamedPolicy(
            "from random rounds",
            COMMIT_SUMMARY,
            "others",
            Style(BLACK, "circle"),
            _commit,
            parameters=LEARNED_ONCE,
            looks=(
                Look(
                    "from random rounds, no ridge",
                    "n rounds at random, then greedy play by their least squares of minimum norm",
                    Style(PINK, "triangle"),
                    {"penalty": 0},
                ),
                Look("from random rounds", COMMIT_SUMMARY, Style(BLACK, "circle")),
            ),
        ),
        "relearn": NamedPolicy(
            "from own rounds, as NaiveGreedy",
            "as NaiveGreedy: d/8 rounds at random, greedy play up to n, then by an estimate from the greedy "
            "rounds alone",
            "others",
            Style(RED, "down"),
            _relearn,
            parameters={**LEARNED_ONCE, "memory": replace(MEMORY, default="epoch")},
            looks=(
                Look(
                    "from own rounds, as MLinGreedy",
                    "as MLinGreedy: d/8 rounds at random, greedy play up to n, then by an estimate from the "
                    "greedy rounds alone",
                    Style(BLUE, "triangle"),
                    {"estimator": "low-rank"},
                ),
                Look(
                    "from random and own rounds",
                    "d/8 rounds at random, greedy play up to n, then by NaiveGreedy's estimate from all of "
                    "them",
                    Style(GREEN, "plus"),
                    {"memory": "all"},
                ),
            ),
        ),
        "random": NamedPolicy(
            "Random",
            "uniform choice, never learning: the worst that is worth showing",
            "others",
            Style(GREY, "down", "dotted"),
            lambda problem: Random(),
        ),
    }
)
