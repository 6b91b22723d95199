"""Policies and problems by name: built, drawn, and how they are called and look in tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from posse.core.protocols import Policy, Problem
from posse.lab.entries import NamedPolicy, NamedProblem, PolicyOptions
from posse.lab.named_policies import POLICIES
from posse.lab.named_problems import PROBLEMS
from posse.numerics.checks import check_choice
from posse.viz.style import Style, fallback_style

__all__ = [
    "POLICIES",
    "PROBLEMS",
    "NamedPolicy",
    "NamedProblem",
    "PolicyOptions",
    "build_policies",
    "draw_problem",
    "in_order",
    "label_of",
    "style_of",
]


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
    """Draw a problem of a named kind, by its seed and its parameters."""
    check_choice("problem", name, PROBLEMS)
    return PROBLEMS[name].draw(**parameters)


def label_of(policy: str) -> str:
    """Return what legends and tables call a policy: its label, or its name if it has none."""
    return POLICIES[policy].label if policy in POLICIES else policy


def style_of(policy: str) -> Style:
    """Return how the curve of a policy looks: also that of one which the registry never heard of."""
    return POLICIES[policy].style if policy in POLICIES else fallback_style(policy)


def in_order(policies: Iterable[str]) -> list[str]:
    """Return policies in the order of the registry, those it does not know at the end."""
    places = {name: place for place, name in enumerate(POLICIES)}
    return sorted(dict.fromkeys(policies), key=lambda name: (places.get(name, len(places)), name))
