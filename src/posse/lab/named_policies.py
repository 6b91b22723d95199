"""The policies that have a name. One of posse's own is added here, by one entry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from posse.core.protocols import Estimator, Policy, Problem
from posse.estimators import FactorPrior, LowRank, PairedMoments, Ridge, TaskSpectral
from posse.lab.entries import NamedPolicy, PolicyOptions
from posse.numerics.checks import Array
from posse.policies import (
    E2TC,
    PEGE,
    At,
    DoublyExponential,
    Every,
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
)
from posse.viz.style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, YELLOW, Style


def _commit(estimator: Estimator, options: PolicyOptions) -> Policy:
    return LearningPolicy(estimator=estimator, schedule=At((options.explore,)))


def _relearn(estimator: Estimator, memory: str, problem: Problem, options: PolicyOptions) -> Policy:
    first = min(max(1, problem.dim // 8), options.explore)
    return LearningPolicy(estimator=estimator, schedule=At((first, options.explore)), memory=memory)


def _forgetful(estimator: Estimator) -> Policy:
    return LearningPolicy(estimator=estimator, schedule=Every(100), memory=1 - 1 / 2000)


def _basis(problem: Any) -> Array:
    basis: Array | None = getattr(problem, "basis", None)
    if basis is None:
        owner = type(problem).__name__
        raise ValueError(f"oracle policies need a problem with a true representation. Got {owner}.")
    return basis


def _mlingreedy_of_rank(rank: int, style: Style) -> NamedPolicy:
    return NamedPolicy(
        f"MLinGreedy, k = {rank}",
        f"MLinGreedy told the rank {rank}, whatever that of the problem",
        "the paper",
        style,
        lambda problem, options: MLinGreedy(rank=rank, penalty=options.penalty),
        "finite",
    )


def _e2tc_of_exponent(exponent: float, style: Style) -> NamedPolicy:
    return NamedPolicy(
        f"E2TC, c = {exponent:g}",
        f"E2TC with the exponent c = {exponent:g} in its N_1 = d^c k sqrt(N / T)",
        "the paper",
        style,
        lambda problem, options: E2TC(rank=options.rank, exponent=exponent),
        "ellipsoids",
    )


POLICIES: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "shared-greedy": NamedPolicy(
            "SharedGreedy",
            "posse's learned prior, shared by all tasks as far as that helps, and greedy play",
            "posse",
            Style(PINK, "star"),
            lambda problem, options: SharedGreedy(rank=options.prior_rank),
        ),
        "shared-thompson": NamedPolicy(
            "SharedThompson",
            "posse's learned prior and Thompson sampling: explores, on any action set",
            "posse",
            Style(PINK, "circle"),
            lambda problem, options: SharedThompson(rank=options.prior_rank),
        ),
        "shared-ucb": NamedPolicy(
            "SharedUCB",
            "posse's learned prior and upper confidence bounds: explores, on finite action sets",
            "posse",
            Style(PINK, "square"),
            lambda problem, options: SharedUCB(rank=options.prior_rank),
            "finite",
        ),
        "shared-forgetful": NamedPolicy(
            "SharedGreedy, forgetful",
            "SharedGreedy for tasks that move: updates every 100 rounds, a memory of about 2000",
            "posse",
            Style(PINK, "plus"),
            lambda problem, options: _forgetful(FactorPrior(rank=options.prior_rank)),
        ),
        "mlingreedy": NamedPolicy(
            "MLinGreedy",
            "the paper's Algorithm 1: low-rank least squares, each epoch from the last one's data",
            "the paper",
            Style(BLUE, "circle"),
            lambda problem, options: MLinGreedy(rank=options.rank, penalty=options.penalty),
            "finite",
        ),
        "mlingreedy-1": _mlingreedy_of_rank(1, Style(SKY, "diamond")),
        "mlingreedy-2": _mlingreedy_of_rank(2, Style(PINK, "cross")),
        "mlingreedy-5": _mlingreedy_of_rank(5, Style(BLUE, "hexagon")),
        "mlingreedy-10": _mlingreedy_of_rank(10, Style(BLACK, "down")),
        "naive": NamedPolicy(
            "NaiveGreedy",
            "the paper's baseline: ordinary least squares, each task alone, same epochs",
            "each task alone",
            Style(RED, "square"),
            lambda problem, options: NaiveGreedy(penalty=options.penalty),
            "finite",
        ),
        "independent-greedy": NamedPolicy(
            "IndependentGreedy",
            "the baseline strengthened: ridge with a learned penalty, all data, frequent updates",
            "each task alone",
            Style(ORANGE, "triangle"),
            lambda problem, options: IndependentGreedy(),
        ),
        "independent-epochs": NamedPolicy(
            "IndependentGreedy, epochs",
            "ridge with a learned penalty and all data, but updates at the ends of the paper's epochs alone",
            "each task alone",
            Style(GREEN, "star"),
            lambda problem, options: IndependentGreedy(schedule=DoublyExponential()),
        ),
        "independent-thompson": NamedPolicy(
            "IndependentThompson",
            "each task alone: ridge with a learned penalty, all data, Thompson sampling",
            "each task alone",
            Style(ORANGE, "circle"),
            lambda problem, options: IndependentThompson(),
        ),
        "independent-ucb": NamedPolicy(
            "IndependentUCB",
            "each task alone: ridge with a learned penalty, all data, upper confidence bounds",
            "each task alone",
            Style(ORANGE, "square"),
            lambda problem, options: IndependentUCB(),
            "finite",
        ),
        "independent-forgetful": NamedPolicy(
            "IndependentGreedy, forgetful",
            "each task alone, for tasks that move: updates every 100 rounds, a memory of about 2000",
            "each task alone",
            Style(ORANGE, "plus"),
            lambda problem, options: _forgetful(Ridge()),
        ),
        "oracle-greedy": NamedPolicy(
            "OracleGreedy",
            "IndependentGreedy told the true representation: what is left to gain",
            "oracles",
            Style(GREEN, "diamond"),
            lambda problem, options: OracleGreedy(_basis(problem)),
        ),
        "oracle-thompson": NamedPolicy(
            "OracleThompson",
            "IndependentThompson told the true representation",
            "oracles",
            Style(GREEN, "circle"),
            lambda problem, options: OracleThompson(_basis(problem)),
        ),
        "e2tc-0.5": _e2tc_of_exponent(0.5, Style(ORANGE, "star")),
        "e2tc-1": _e2tc_of_exponent(1.0, Style(PINK, "hexagon")),
        "e2tc": NamedPolicy(
            "E2TC, c = 1.5",
            "the paper's Algorithm 2 for ellipsoids: explore, find the representation, refine, commit",
            "the paper",
            Style(BLUE, "plus"),
            lambda problem, options: E2TC(rank=options.rank, exponent=options.exponent),
            "ellipsoids",
        ),
        "e2tc-2": _e2tc_of_exponent(2.0, Style(BLACK, "cross")),
        "e2tc-spectral": NamedPolicy(
            "E2TC, spectral",
            "E2TC that finds the representation from the tasks' own least squares (Yang et al. 2022)",
            "the paper",
            Style(SKY, "hexagon"),
            lambda problem, options: E2TC(rank=options.rank, subspace=TaskSpectral()),
            "ellipsoids",
        ),
        "e2tc-pairs": NamedPolicy(
            "E2TC, pairs",
            "E2TC that finds the representation from products of different rounds",
            "the paper",
            Style(YELLOW, "star"),
            lambda problem, options: E2TC(rank=options.rank, subspace=PairedMoments()),
            "ellipsoids",
        ),
        "pege": NamedPolicy(
            "PEGE",
            "each task alone on its ellipsoid: cycles of exploring d directions and exploiting",
            "each task alone",
            Style(RED, "hexagon"),
            lambda problem, options: PEGE(),
            "ellipsoids",
        ),
        "oracle-commit": NamedPolicy(
            "OracleCommit",
            "E2TC told the true representation",
            "oracles",
            Style(GREEN, "cross"),
            lambda problem, options: OracleCommit(basis=_basis(problem)),
            "ellipsoids",
        ),
        "commit-exact": NamedPolicy(
            "from random rounds, no ridge",
            "n rounds at random, then greedy play by their least squares of minimum norm",
            "others",
            Style(PINK, "triangle"),
            lambda problem, options: _commit(Ridge(penalty=0.0), options),
        ),
        "commit-naive": NamedPolicy(
            "from random rounds",
            "n rounds at random, then greedy play by NaiveGreedy's estimate from them",
            "others",
            Style(BLACK, "circle"),
            lambda problem, options: _commit(Ridge(penalty=options.penalty), options),
        ),
        "relearn-naive": NamedPolicy(
            "from own rounds, as NaiveGreedy",
            "as NaiveGreedy: d/8 rounds at random, greedy play up to n, then by an estimate from the greedy "
            "rounds alone",
            "others",
            Style(RED, "down"),
            lambda problem, options: _relearn(Ridge(penalty=options.penalty), "epoch", problem, options),
        ),
        "relearn-mlingreedy": NamedPolicy(
            "from own rounds, as MLinGreedy",
            "as MLinGreedy: d/8 rounds at random, greedy play up to n, then by an estimate from the greedy "
            "rounds alone",
            "others",
            Style(BLUE, "triangle"),
            lambda problem, options: _relearn(
                LowRank(rank=options.rank, penalty=options.penalty), "epoch", problem, options
            ),
        ),
        "relearn-all": NamedPolicy(
            "from random and own rounds",
            "d/8 rounds at random, greedy play up to n, then by NaiveGreedy's estimate from all of them",
            "others",
            Style(GREEN, "plus"),
            lambda problem, options: _relearn(Ridge(penalty=options.penalty), "all", problem, options),
        ),
        "random": NamedPolicy(
            "Random",
            "uniform choice, never learning: the worst that is worth showing",
            "others",
            Style(GREY, "down", "dotted"),
            lambda problem, options: Random(),
        ),
    }
)
