"""The policies and problems that have a name: what the command and the experiments build from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from posse.core.protocols import Estimator, Policy, Problem
from posse.estimators import FactorPrior, LowRank, PairedMoments, Ridge, TaskSpectral
from posse.numerics.checks import Array, check_choice
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
from posse.problems import (
    ClassPairs,
    EllipsoidProblem,
    FixedArms,
    GaussianProblem,
    GreedyTrap,
    LateTasks,
    MovingBasis,
    NarrowContexts,
)
from posse.problems.images import IMAGE_SETS, load_images


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """What the builders of policies are told.

    Attributes
    ----------
    rank : int
        For policies that need a rank.
    exponent : float
        c in N_1 = d^c k sqrt(N / T), for E2TC.
    penalty : float
        The ridge of the paper's MLinGreedy and NaiveGreedy, and of the commit and relearn policies that
        share their estimators.
    explore : int
        The round after which the commit and relearn policies make their last estimate.
    prior_rank : int or "auto"
        For the shared policies, which find their rank themselves unless they are told one.
    """

    rank: int
    exponent: float = 1.5
    penalty: float = 0.0
    explore: int = 100
    prior_rank: int | str = "auto"


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that can be asked for by name."""

    label: str
    summary: str
    build: Callable[[Any, PolicyOptions], Policy]


@dataclass(frozen=True, kw_only=True)
class NamedProblem:
    """A kind of problem that can be asked for by name.

    Attributes
    ----------
    summary : str
    draw : callable
        Takes a seed and the parameters below.
    parameters : mapping
        What distinguishes problems of this kind, with defaults.
    policies : tuple of str
        Policies that are compared on it by default.
    work : callable
        The cost of a round, in numbers to handle, from the parameters.
    options : callable
        What policies are told by default, from the parameters; `PolicyOptions` has the rest.
    images : str, optional
        The image set that it is made of, a name in `posse.problems.images`.
    """

    summary: str
    draw: Callable[..., Problem]
    parameters: Mapping[str, Any]
    policies: tuple[str, ...]
    work: Callable[[Mapping[str, Any]], int]
    options: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda cell: {"rank": cell["rank"]}
    images: str | None = None


def _e2tc(exponent: float, problem: Problem, options: PolicyOptions) -> Policy:
    return E2TC(rank=options.rank, c=exponent)


def _mlingreedy(rank: int, problem: Problem, options: PolicyOptions) -> Policy:
    return MLinGreedy(rank=rank, penalty=options.penalty)


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


def _class_pairs(name: str, *, n_classes: int, scaling: str, seed: int) -> Problem:
    """Make the problem of an image set; it is the same under every seed."""
    chosen = load_images(name)
    return ClassPairs(
        images=chosen.images,
        labels=chosen.labels,
        brightest=chosen.brightest,
        n_classes=n_classes,
        scaling=scaling,
    )


def _arms_work(cell: Mapping[str, Any]) -> int:
    return int(cell["n_tasks"] * cell["dim"] * cell["n_arms"])


def _n_pairs(cell: Mapping[str, Any]) -> int:
    return int(cell["n_classes"]) * (int(cell["n_classes"]) - 1) // 2


def _pairs_work(dim: int, cell: Mapping[str, Any]) -> int:
    return _n_pairs(cell) * dim * dim // 4


POLICIES: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "mlingreedy": NamedPolicy(
            "MLinGreedy",
            "the paper's Algorithm 1: low-rank least squares, each epoch from the last one's data",
            lambda problem, options: MLinGreedy(rank=options.rank, penalty=options.penalty),
        ),
        **{
            f"mlingreedy-{k}": NamedPolicy(
                f"MLinGreedy, k = {k}",
                f"MLinGreedy told the rank {k}, whatever that of the problem",
                partial(_mlingreedy, k),
            )
            for k in (1, 2, 5, 10)
        },
        "naive": NamedPolicy(
            "NaiveGreedy",
            "the paper's baseline: ordinary least squares, each task alone, same epochs",
            lambda problem, options: NaiveGreedy(penalty=options.penalty),
        ),
        "independent-greedy": NamedPolicy(
            "IndependentGreedy",
            "the baseline strengthened: ridge with a learned penalty, all data, frequent updates",
            lambda problem, options: IndependentGreedy(),
        ),
        "independent-epochs": NamedPolicy(
            "IndependentGreedy, epochs",
            "ridge with a learned penalty and all data, but updates at the ends of the paper's epochs alone",
            lambda problem, options: IndependentGreedy(schedule=DoublyExponential()),
        ),
        "oracle-greedy": NamedPolicy(
            "OracleGreedy",
            "IndependentGreedy told the true representation: what is left to gain",
            lambda problem, options: OracleGreedy(_basis(problem)),
        ),
        "shared-greedy": NamedPolicy(
            "SharedGreedy",
            "posse's learned prior, shared by all tasks as far as that helps, and greedy play",
            lambda problem, options: SharedGreedy(rank=options.prior_rank),
        ),
        "shared-thompson": NamedPolicy(
            "SharedThompson",
            "posse's learned prior and Thompson sampling: explores, on any action set",
            lambda problem, options: SharedThompson(rank=options.prior_rank),
        ),
        "shared-ucb": NamedPolicy(
            "SharedUCB",
            "posse's learned prior and upper confidence bounds: explores, on finite action sets",
            lambda problem, options: SharedUCB(rank=options.prior_rank),
        ),
        "independent-thompson": NamedPolicy(
            "IndependentThompson",
            "each task alone: ridge with a learned penalty, all data, Thompson sampling",
            lambda problem, options: IndependentThompson(),
        ),
        "independent-ucb": NamedPolicy(
            "IndependentUCB",
            "each task alone: ridge with a learned penalty, all data, upper confidence bounds",
            lambda problem, options: IndependentUCB(),
        ),
        "oracle-thompson": NamedPolicy(
            "OracleThompson",
            "IndependentThompson told the true representation",
            lambda problem, options: OracleThompson(_basis(problem)),
        ),
        "shared-forgetful": NamedPolicy(
            "SharedGreedy, forgetful",
            "SharedGreedy for tasks that move: updates every 100 rounds, a memory of about 2000",
            lambda problem, options: _forgetful(FactorPrior(rank=options.prior_rank)),
        ),
        "independent-forgetful": NamedPolicy(
            "IndependentGreedy, forgetful",
            "each task alone, for tasks that move: updates every 100 rounds, a memory of about 2000",
            lambda problem, options: _forgetful(Ridge()),
        ),
        "e2tc": NamedPolicy(
            "E2TC",
            "the paper's Algorithm 2 for ellipsoids: explore, find the representation, refine, commit",
            lambda problem, options: E2TC(rank=options.rank, c=options.exponent),
        ),
        **{
            f"e2tc-{c:g}": NamedPolicy(
                f"E2TC, c = {c:g}",
                f"E2TC with the exponent c = {c:g} in its N_1 = d^c k sqrt(N / T)",
                partial(_e2tc, c),
            )
            for c in (0.5, 1.0, 2.0)
        },
        "e2tc-spectral": NamedPolicy(
            "E2TC, spectral",
            "E2TC that finds the representation from the tasks' own least squares (Yang et al. 2022)",
            lambda problem, options: E2TC(rank=options.rank, subspace=TaskSpectral()),
        ),
        "e2tc-pairs": NamedPolicy(
            "E2TC, pairs",
            "E2TC that finds the representation from products of different rounds",
            lambda problem, options: E2TC(rank=options.rank, subspace=PairedMoments()),
        ),
        "oracle-commit": NamedPolicy(
            "OracleCommit",
            "E2TC told the true representation",
            lambda problem, options: OracleCommit(basis=_basis(problem)),
        ),
        "pege": NamedPolicy(
            "PEGE",
            "each task alone on its ellipsoid: cycles of exploring d directions and exploiting",
            lambda problem, options: PEGE(),
        ),
        "commit-exact": NamedPolicy(
            "from random rounds, no ridge",
            "n rounds at random, then greedy play by their least squares of minimum norm",
            lambda problem, options: _commit(Ridge(penalty=0.0), options),
        ),
        "commit-naive": NamedPolicy(
            "from random rounds",
            "n rounds at random, then greedy play by NaiveGreedy's estimate from them",
            lambda problem, options: _commit(Ridge(penalty=options.penalty), options),
        ),
        "relearn-naive": NamedPolicy(
            "from own rounds, as NaiveGreedy",
            "as NaiveGreedy: d/8 rounds at random, greedy play up to n, then by an estimate from the greedy "
            "rounds alone",
            lambda problem, options: _relearn(Ridge(penalty=options.penalty), "epoch", problem, options),
        ),
        "relearn-mlingreedy": NamedPolicy(
            "from own rounds, as MLinGreedy",
            "as MLinGreedy: d/8 rounds at random, greedy play up to n, then by an estimate from the greedy "
            "rounds alone",
            lambda problem, options: _relearn(
                LowRank(rank=options.rank, penalty=options.penalty), "epoch", problem, options
            ),
        ),
        "relearn-all": NamedPolicy(
            "from random and own rounds",
            "d/8 rounds at random, greedy play up to n, then by NaiveGreedy's estimate from all of them",
            lambda problem, options: _relearn(Ridge(penalty=options.penalty), "all", problem, options),
        ),
        "random": NamedPolicy(
            "Random",
            "uniform choice, never learning: the worst that is worth showing",
            lambda problem, options: Random(),
        ),
    }
)

LINEAR = {"dim": 20, "rank": 2, "n_tasks": 50, "structure": "low-rank", "noise_kind": "gaussian"}
SHAPELESS = {name: value for name, value in LINEAR.items() if name != "structure"}
HARD = (
    "shared-greedy",
    "shared-thompson",
    "shared-ucb",
    "mlingreedy",
    "independent-greedy",
    "independent-thompson",
    "independent-ucb",
)
ORACLES = ("oracle-greedy", "oracle-thompson")

PROBLEMS: Mapping[str, NamedProblem] = MappingProxyType(
    {
        "gaussian": NamedProblem(
            summary="K arms drawn from N(0, Sigma_t) each round, theta_t = B w_t (Assumption 2)",
            draw=GaussianProblem.draw,
            parameters={**LINEAR, "n_arms": 5, "covariance": "isotropic"},
            policies=(
                "shared-greedy",
                "mlingreedy",
                "naive",
                "independent-greedy",
                "oracle-greedy",
                "random",
            ),
            work=_arms_work,
        ),
        "ellipsoid": NamedProblem(
            summary="all of an ellipsoid, the same each round; at condition 1 the unit ball (Assumption 3)",
            draw=EllipsoidProblem.draw,
            parameters={**LINEAR, "condition": 1.0},
            policies=("shared-thompson", "e2tc", "e2tc-spectral", "pege", "oracle-commit", "random"),
            work=lambda cell: int(cell["n_tasks"] * cell["dim"]),
        ),
        "fixed-arms": NamedProblem(
            summary="K arms for every task that never change: no diversity of contexts",
            draw=FixedArms.draw,
            parameters={**LINEAR, "n_arms": 10},
            policies=(*HARD, *ORACLES),
            work=_arms_work,
        ),
        "narrow": NamedProblem(
            summary="the arms of each task lie in a few directions of its own",
            draw=NarrowContexts.draw,
            parameters={**LINEAR, "n_arms": 5, "n_directions": 3},
            policies=(*HARD, *ORACLES),
            work=_arms_work,
        ),
        "trap": NamedProblem(
            summary="a safe arm and a risky one in every round, built against greedy play",
            draw=GreedyTrap.draw,
            parameters=SHAPELESS,
            policies=(*HARD, *ORACLES),
            work=lambda cell: int(cell["n_tasks"] * cell["dim"] * GreedyTrap.n_arms),
        ),
        "late": NamedProblem(
            summary="a gaussian problem some of whose tasks join later",
            draw=LateTasks.draw,
            parameters={**LINEAR, "n_arms": 5, "share": 0.5, "join": 1000},
            policies=(*HARD, *ORACLES),
            work=_arms_work,
        ),
        "moving": NamedProblem(
            summary="a shared representation that turns slowly",
            draw=MovingBasis.draw,
            parameters={**SHAPELESS, "n_arms": 5, "turn": 0.1},
            policies=(*HARD, "shared-forgetful", "independent-forgetful"),
            work=_arms_work,
        ),
        **{
            name: NamedProblem(
                summary=f"pairs of classes as tasks, the larger class pays 1: {images.summary}",
                draw=partial(_class_pairs, name),
                parameters={"n_classes": 10, "scaling": "norm"},
                policies=("mlingreedy", "naive", "independent-epochs", "independent-greedy", "random"),
                work=partial(_pairs_work, images.n_pixels),
                options=lambda cell: {"rank": max(1, min(5, _n_pairs(cell))), "penalty": 1e-3},
                images=name,
            )
            for name, images in IMAGE_SETS.items()
        },
    }
)


def build_policies(names: tuple[str, ...], problem: Problem, options: PolicyOptions) -> dict[str, Policy]:
    """Build policies by name for a problem.

    Examples
    --------
    >>> problem = draw_problem("gaussian", n_tasks=4, dim=6, rank=2, seed=0)
    >>> sorted(build_policies(("naive", "random"), problem, PolicyOptions(rank=2)))
    ['naive', 'random']
    """
    for name in names:
        check_choice("policy", name, POLICIES)
    return {name: POLICIES[name].build(problem, options) for name in names}


def draw_problem(name: str, **parameters: Any) -> Problem:
    """Draw a problem of a named kind."""
    check_choice("problem", name, PROBLEMS)
    return PROBLEMS[name].draw(**parameters)
