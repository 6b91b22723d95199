"""The policies and problems that have a name: what the command and the experiments build from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from posse.estimators import PairedMoments, TaskSpectral
from posse.policies import (
    E2TC,
    PEGE,
    IndependentGreedy,
    MLinGreedy,
    NaiveGreedy,
    OracleCommit,
    OracleGreedy,
    Policy,
    Random,
)
from posse.problems import EllipsoidProblem, GaussianProblem, Problem
from posse.validation import check_choice


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """What the builders of policies are told.

    Attributes
    ----------
    rank : int
        For policies that need a rank.
    exponent : float
        c in N_1 = d^c k sqrt(N / T), for E2TC.
    """

    rank: int
    exponent: float = 1.5


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that can be asked for by name."""

    label: str
    summary: str
    build: Callable[[Any, PolicyOptions], Policy]


@dataclass(frozen=True)
class NamedProblem:
    """A kind of problem that can be asked for by name.

    Attributes
    ----------
    summary : str
    draw : callable
        Takes n_tasks, dim, rank, seed, noise_kind and the parameters below.
    parameters : mapping
        The parameters that this kind has of its own, with their defaults.
    policies : tuple of str
        Policies that are compared on it by default.
    """

    summary: str
    draw: Callable[..., Problem]
    parameters: Mapping[str, Any]
    policies: tuple[str, ...]


def _e2tc(exponent: float, problem: Problem, options: PolicyOptions) -> Policy:
    return E2TC(rank=options.rank, c=exponent)


POLICIES: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "mlingreedy": NamedPolicy(
            "MLinGreedy",
            "the paper's Algorithm 1: low-rank least squares, each epoch from the last one's data",
            lambda problem, options: MLinGreedy(rank=options.rank),
        ),
        "naive": NamedPolicy(
            "NaiveGreedy",
            "the paper's baseline: ordinary least squares, each task alone, same epochs",
            lambda problem, options: NaiveGreedy(),
        ),
        "independent-greedy": NamedPolicy(
            "IndependentGreedy",
            "the baseline strengthened: ridge with a learned penalty, all data, frequent updates",
            lambda problem, options: IndependentGreedy(),
        ),
        "oracle-greedy": NamedPolicy(
            "OracleGreedy",
            "IndependentGreedy told the true representation: what is left to gain",
            lambda problem, options: OracleGreedy(problem.basis),
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
            lambda problem, options: OracleCommit(basis=problem.basis),
        ),
        "pege": NamedPolicy(
            "PEGE",
            "each task alone on its ellipsoid: cycles of exploring d directions and exploiting",
            lambda problem, options: PEGE(),
        ),
        "random": NamedPolicy(
            "Random",
            "uniform choice, never learning: the worst that is worth showing",
            lambda problem, options: Random(),
        ),
    }
)

PROBLEMS: Mapping[str, NamedProblem] = MappingProxyType(
    {
        "gaussian": NamedProblem(
            "K arms drawn from N(0, Sigma_t) each round, theta_t = B w_t (Assumption 2)",
            GaussianProblem.draw,
            {"n_arms": 5, "covariance": "isotropic"},
            ("mlingreedy", "naive", "independent-greedy", "oracle-greedy", "random"),
        ),
        "ellipsoid": NamedProblem(
            "all of an ellipsoid, the same each round; at condition 1 the unit ball (Assumption 3)",
            EllipsoidProblem.draw,
            {"condition": 1.0},
            ("e2tc", "e2tc-spectral", "pege", "oracle-commit", "random"),
        ),
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
