"""What the registry knows of a policy or a problem: its name for people, how it looks, how it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from posse.core.protocols import Policy, Problem
from posse.numerics.checks import check_choice
from posse.viz.style import Style, fallback_style

Family = Literal["posse", "the paper", "each task alone", "rivals", "oracles", "others"]


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """What the builders of policies are told.

    Attributes
    ----------
    rank : int, optional
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

    rank: int | None = None
    exponent: float = 1.5
    penalty: float = 0.0
    explore: int = 100
    prior_rank: int | str = "auto"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a policy that has a name.

    Attributes
    ----------
    help : str
        What it means, in a sentence.
    default : object
        Its value, if none is typed and no option says it.
    option : str
        The field of `PolicyOptions` that says its default, if one does.
    symbol : str
        What labels call it; by default its name.
    choices : tuple of str
        The words that it can be, if it is one of a few.
    where : tuple of two, optional
        The name and the value of another parameter without which it means nothing.
    """

    help: str
    default: Any = None
    option: str = ""
    symbol: str = ""
    choices: tuple[str, ...] = ()
    where: tuple[str, Any] | None = None


@dataclass(frozen=True)
class Look:
    """How a policy is called and drawn.

    Attributes
    ----------
    label : str
        Its name in legends and tables.
    summary : str
        What it does, in one line.
    style : Style
    parameters : mapping
        The parameters that are typed for it.
    """

    label: str
    summary: str
    style: Style
    parameters: Mapping[str, Any] = field(default_factory=dict)


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
        Makes it from a problem and the values of all its parameters, by name.
    actions : "any", "finite", "ellipsoids" or "streams"
        The action sets that it is made for; or streams of tasks, and nothing else.
    parameters : mapping
        What can be typed in parentheses after its name.
    looks : tuple of Look
        Labels and styles of its well-known forms, in the order of legends.
    """

    label: str
    summary: str
    family: Family
    style: Style
    build: Callable[..., Policy]
    actions: Literal["any", "finite", "ellipsoids", "streams"] = "any"
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    looks: tuple[Look, ...] = ()

    def check(self, name: str, typed: Mapping[str, Any]) -> None:
        """Raise what is wrong with the parameters that are typed after its name."""
        for key, value in typed.items():
            if not self.parameters:
                raise ValueError(
                    f"{name} must be written without parameters: it has none. Got {key}={value!r}."
                )
            known = self.parameters[check_choice(f"parameter of {name}", key, self.parameters)]
            if known.choices:
                check_choice(f"{key} of {name}", value, known.choices)
            if known.where is not None and not self.applies(key, typed):
                raise ValueError(
                    f"{key} of {name} must come with {known.where[0]}={known.where[1]}. Got {value!r}."
                )

    def applies(self, key: str, typed: Mapping[str, Any]) -> bool:
        """Return whether a parameter means something beside those that are typed."""
        where = self.parameters[key].where
        return where is None or typed.get(where[0], self.parameters[where[0]].default) == where[1]

    def heeds(self, typed: Mapping[str, Any]) -> set[str]:
        """Return the fields of `PolicyOptions` that decide anything, once some parameters are typed."""
        return {
            known.option
            for key, known in self.parameters.items()
            if known.option and key not in typed and self.applies(key, typed)
        }

    def make(self, name: str, typed: Mapping[str, Any], problem: Problem, options: PolicyOptions) -> Policy:
        """Build it for a problem from what is typed, what options say, and its defaults, in this order."""
        values = {
            key: typed.get(key, getattr(options, known.option) if known.option else known.default)
            for key, known in self.parameters.items()
        }
        for key, value in values.items():
            if value is None and self.applies(key, typed):
                raise ValueError(
                    f"{key} of {name} must be told, as in {name}({key}=...): the problem does not say it. "
                    "Got none."
                )
        return self.build(problem, **values)

    def look(self, typed: Mapping[str, Any]) -> Look:
        """Return how it is called and drawn with parameters: as is well known, or derived from them."""
        for look in self.looks:
            if look.parameters == typed:
                return look
        if not typed:
            return Look(self.label, self.summary, self.style)
        words = [f"{self.parameters[key].symbol or key} = {value}" for key, value in typed.items()]
        style = fallback_style(f"{self.label} {sorted(words)}")
        return Look(", ".join([self.label, *words]), f"{self.summary}; {', '.join(words)}", style, typed)


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
    actions : "finite", "ellipsoids" or "any"
        What tasks may play; "any" if that is not known.
    suited : callable, optional
        What policies may be made for that play it, from the parameters, where `actions` does not say it:
        "any" among them, and last what tasks may play.
    check : callable
        Raises what is wrong with parameters and a horizon, beside what `draw` would say.
    images : str, optional
        The image set that it is made of.
    required : tuple of str
        Parameters without a default.
    """

    summary: str
    draw: Callable[..., Problem]
    parameters: Mapping[str, Any]
    policies: tuple[str, ...]
    work: Callable[[Mapping[str, Any]], int]
    options: Callable[[Mapping[str, Any]], dict[str, Any]]
    help: Mapping[str, str] = field(default_factory=dict)
    actions: Literal["finite", "ellipsoids", "any"] = "finite"
    suited: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    check: Callable[[Mapping[str, Any], int], None] = lambda cell, horizon: None
    images: str | None = None
    required: tuple[str, ...] = ()

    def suits(self, cell: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what policies may be made for that play it with some parameters; none if it is not known."""
        if self.suited is not None:
            return self.suited({**self.parameters, **cell})
        return () if self.actions == "any" else ("any", self.actions)


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
    draw: Callable[..., Any],
    policies: tuple[str, ...],
    *,
    actions: Literal["finite", "ellipsoids", "any"] = "finite",
    suited: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None,
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
    actions : "finite", "ellipsoids" or "any"
        What tasks may play; "any" if a parameter says it.
    suited : callable, optional
        What policies may be made for, from the parameters, where one of them says what tasks may play.
    check : callable
        Raises what is wrong with parameters and a horizon, beside what `draw` would say.
    help : str
        What each parameter means that other problems do not have, under its name.
    """
    return NamedProblem(
        summary=summary,
        draw=draw,
        parameters=drawn_parameters(draw),
        policies=policies,
        work=lambda cell: int(cell["n_tasks"] * cell["dim"] * cell.get("n_arms", 1)),
        options=lambda cell: {"rank": cell["rank"]},
        help=help,
        actions=actions,
        suited=suited,
        check=check,
    )


def drawn_parameters(draw: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function that draws a problem, with defaults, as its signature has them.

    Sizes that it asks for have the defaults of `SIZES`. A function that passes keywords on takes all sizes,
    and what the tasks have in common, as `TaskSettings` has it.

    Examples
    --------
    >>> def draw(*, seed, n_tasks, width=0.5): ...
    >>> drawn_parameters(draw)
    {'n_tasks': 50, 'width': 0.5}
    """
    signature = inspect.signature(draw).parameters
    own = {
        name: item.default
        for name, item in signature.items()
        if item.default is not None and item.default is not item.empty and name != "seed"
    }
    if any(item.kind is item.VAR_KEYWORD for item in signature.values()):
        return {**SIZES, "structure": "low-rank", "noise_kind": "gaussian", **own}
    return {**{name: size for name, size in SIZES.items() if name in signature}, **own}
