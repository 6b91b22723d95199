"""The policies and problems that have a name: what the command and the experiments build from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from posse.policies import IndependentGreedy, MLinGreedy, NaiveGreedy, OracleGreedy, Policy, Random
from posse.problems import GaussianProblem, Problem
from posse.validation import check_choice


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that can be asked for by name."""

    label: str
    summary: str
    build: Callable[[Any, int], Policy]


@dataclass(frozen=True)
class NamedProblem:
    """A kind of problem that can be asked for by name."""

    summary: str
    draw: Callable[..., Problem]


POLICIES: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "mlingreedy": NamedPolicy(
            "MLinGreedy",
            "the paper's Algorithm 1: low-rank least squares, each epoch from the last one's data",
            lambda problem, rank: MLinGreedy(rank=rank),
        ),
        "naive": NamedPolicy(
            "NaiveGreedy",
            "the paper's baseline: ordinary least squares, each task alone, same epochs",
            lambda problem, rank: NaiveGreedy(),
        ),
        "independent-greedy": NamedPolicy(
            "IndependentGreedy",
            "the baseline strengthened: ridge with a learned penalty, all data, frequent updates",
            lambda problem, rank: IndependentGreedy(),
        ),
        "oracle-greedy": NamedPolicy(
            "OracleGreedy",
            "IndependentGreedy told the true representation: what is left to gain",
            lambda problem, rank: OracleGreedy(problem.basis),
        ),
        "random": NamedPolicy(
            "Random",
            "uniform choice, never learning: the worst that is worth showing",
            lambda problem, rank: Random(),
        ),
    }
)

PROBLEMS: Mapping[str, NamedProblem] = MappingProxyType(
    {
        "gaussian": NamedProblem(
            "K arms drawn from N(0, Sigma_t) each round, theta_t = B w_t (Assumption 2)",
            GaussianProblem.draw,
        ),
    }
)


def build_policies(names: tuple[str, ...], problem: Problem, rank: int) -> dict[str, Policy]:
    """Build policies by name for a problem; `rank` is what those that need a rank are told.

    Examples
    --------
    >>> problem = draw_problem("gaussian", n_tasks=4, dim=6, rank=2, seed=0)
    >>> sorted(build_policies(("naive", "random"), problem, rank=2))
    ['naive', 'random']
    """
    for name in names:
        check_choice("policy", name, POLICIES)
    return {name: POLICIES[name].build(problem, rank) for name in names}


def draw_problem(name: str, **parameters: Any) -> Problem:
    """Draw a problem of a named kind."""
    check_choice("problem", name, PROBLEMS)
    return PROBLEMS[name].draw(**parameters)
