"""What the registry knows of a policy or a problem: its name for people, how it looks, how it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from posse.core.protocols import Policy, Problem
from posse.viz.style import Style

Family = Literal["posse", "the paper", "each task alone", "oracles", "others"]


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
    """A policy that can be asked for by name.

    Attributes
    ----------
    label : str
        Its name in legends and tables.
    summary : str
        What it does, in one line.
    family : str
        Whose it is, and whether tasks are alone or told the truth: where it stands in a comparison.
    style : Style
    build : callable
        Makes it from a problem and `PolicyOptions`.
    actions : "any", "finite" or "ellipsoids"
        The action sets that it is made for.
    """

    label: str
    summary: str
    family: Family
    style: Style
    build: Callable[[Any, PolicyOptions], Policy]
    actions: Literal["any", "finite", "ellipsoids"] = "any"


@dataclass(frozen=True, kw_only=True)
class NamedProblem:
    """A kind of problem that can be asked for by name.

    Attributes
    ----------
    summary : str
        What it is, in one line.
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
    help : mapping
        What its own parameters mean, for the command.
    actions : "finite" or "ellipsoids"
        What tasks may play.
    check : callable
        Raises what is wrong with parameters and a horizon, beside what `draw` would say.
    images : str, optional
        The image set that it is made of.
    """

    summary: str
    draw: Callable[..., Problem]
    parameters: Mapping[str, Any]
    policies: tuple[str, ...]
    work: Callable[[Mapping[str, Any]], int]
    options: Callable[[Mapping[str, Any]], dict[str, Any]]
    help: Mapping[str, str] = field(default_factory=dict)
    actions: Literal["finite", "ellipsoids"] = "finite"
    check: Callable[[Mapping[str, Any], int], None] = lambda cell, horizon: None
    images: str | None = None


# The letters that the paper has for parameters of problems and runs.
SYMBOLS: Mapping[str, str] = MappingProxyType(
    {
        "horizon": "N",
        "n_tasks": "T",
        "dim": "d",
        "rank": "k",
        "n_arms": "K",
        "n_directions": "m",
        "n_classes": "classes",
    }
)
# Sizes of the problems with linear rewards, if nobody asks for others.
SIZES: dict[str, Any] = {"dim": 20, "rank": 2, "n_tasks": 50}


def linear_problem(
    summary: str,
    draw: Callable[..., Problem],
    policies: tuple[str, ...],
    *,
    actions: Literal["finite", "ellipsoids"] = "finite",
    check: Callable[[Mapping[str, Any], int], None] = lambda cell, horizon: None,
    **help: str,
) -> NamedProblem:
    """Return the entry of a problem with linear rewards, whose parameters are those of its `draw`.

    Parameters
    ----------
    summary : str
        What it is, in one line.
    draw : callable
        Takes a seed and the parameters; those with defaults in its signature are the problem's own.
    policies : tuple of str
        Policies that are compared on it by default.
    actions : "finite" or "ellipsoids"
        What tasks may play.
    check : callable
        Raises what is wrong with parameters and a horizon, beside what `draw` would say.
    help : str
        What each parameter means that other problems do not have, under its name.
    """
    signature = inspect.signature(draw).parameters
    own = {
        name: item.default
        for name, item in signature.items()
        if item.default is not None and item.default is not item.empty
    }
    if any(item.kind is item.VAR_KEYWORD for item in signature.values()):  # those of `TaskSettings`
        own = {"structure": "low-rank", "noise_kind": "gaussian", **own}
    return NamedProblem(
        summary=summary,
        draw=draw,
        parameters={**SIZES, **own},
        policies=policies,
        work=lambda cell: int(cell["n_tasks"] * cell["dim"] * cell.get("n_arms", 1)),
        options=lambda cell: {"rank": cell["rank"]},
        help=help,
        actions=actions,
        check=check,
    )
