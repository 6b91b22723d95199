"""Policies and problems, named or not: found, built, drawn, and how they are called and look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from posse.core.protocols import Policy, Problem
from posse.lab.describe import describe
from posse.lab.entries import Look, NamedPolicy, NamedProblem, PolicyOptions
from posse.lab.foreign import (
    check_not_reserved,
    foreign_problem,
    import_named,
    is_imported,
    is_policy,
    make_policy,
)
from posse.lab.named_policies import POLICIES
from posse.lab.named_problems import PROBLEMS
from posse.lab.syntax import parse_call
from posse.numerics.checks import check_choice
from posse.viz.style import Style, fallback_style

__all__ = [
    "POLICIES",
    "PROBLEMS",
    "NamedPolicy",
    "NamedProblem",
    "PolicyOptions",
    "build_policies",
    "describe_policy",
    "describe_problem",
    "draw_problem",
    "family_of",
    "find_policy",
    "find_problem",
    "heeded_options",
    "in_order",
    "is_named",
    "label_of",
    "look_of",
    "make_named_policy",
    "name_policies",
    "problem_title",
    "style_of",
]

# What stands for the problem of a policy that is made for none.
NO_PROBLEM: Any = None


def find_policy(text: str, what: str = "policy") -> tuple[NamedPolicy, dict[str, Any]]:
    """Return the entry of a policy that is written as text, and the parameters that are typed.

    Parameters
    ----------
    text : str
        A name of `posse list`, with parameters or without.
    what : str
        What errors call it.

    Examples
    --------
    >>> entry, typed = find_policy("mlingreedy(rank=5)")
    >>> entry.label, typed
    ('MLinGreedy', {'rank': 5})
    """
    name, typed = parse_call(text)
    entry = POLICIES[check_choice(what, name, POLICIES)]
    entry.check(name, typed)
    return entry, typed


def is_named(text: str) -> bool:
    """Return whether a text is the name of a policy that the registry knows, with parameters or without."""
    try:
        find_policy(text)
    except ValueError:
        return False
    return True


def name_policies(policies: Sequence[Any] | Mapping[str, Any], what: str = "policy") -> dict[str, Any]:
    """Return policies by the names that they have in tables, and refuse what cannot be one.

    Parameters
    ----------
    policies : sequence, or mapping of names
        Each is a name of `posse list`, with parameters or without; MODULE:NAME; a policy; or, in a mapping, a
        function of the problem. In a sequence a text is its own name, and a policy is called what it prints
        as.
    what : str
        What errors call one.

    Examples
    --------
    >>> from posse import MLinGreedy
    >>> list(name_policies(["naive", MLinGreedy(rank=3)]))
    ['naive', 'MLinGreedy(rank=3)']
    """
    if isinstance(policies, str) or not isinstance(policies, Sequence | Mapping):
        raise ValueError(f"`policies` must be a sequence, or a mapping of names. Got {policies!r}.")
    pairs = (
        list(policies.items())
        if isinstance(policies, Mapping)
        else [(_own_name(value), value) for value in policies]
    )
    for name, value in pairs:
        _check_entry(name, value, what)
    names = [name for name, _ in pairs]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"`policies` must be some different entries. Got {names!r}.")
    return dict(pairs)


def _own_name(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not is_policy(value) or repr(value) == object.__repr__(value):
        raise ValueError(
            "a policy in a sequence must be a text, or a policy that prints as what it is; others need a "
            f"name, in a mapping. Got {value!r}."
        )
    return repr(value)


def _check_entry(name: Any, value: Any, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a policy must be a text. Got {name!r}.")
    check_not_reserved(name)
    if isinstance(value, str):
        if not is_imported(value):
            find_policy(value, what)
        else:
            value = import_named(value)
    if not isinstance(value, str) and not (is_policy(value) or callable(value)):
        raise ValueError(
            f"the policy {name} must be a text, a policy, or a function of the problem that makes one. "
            f"Got {value!r}."
        )
    if is_named(name) and not (isinstance(value, str) and name == value):
        raise ValueError(f"the name of a policy must not be that of another of posse's. Got {name!r}.")


def build_policies(
    policies: Sequence[Any] | Mapping[str, Any], problem: Problem, options: PolicyOptions
) -> dict[str, Policy]:
    """Build policies for a problem, under their names.

    Parameters
    ----------
    policies : sequence, or mapping of names
        As `name_policies` takes them.
    problem : Problem
    options : PolicyOptions
        What policies with a name are told, unless it is typed.

    Examples
    --------
    >>> problem = draw_problem("gaussian", n_tasks=4, dim=6, rank=2, seed=0)
    >>> build_policies(("naive", "mlingreedy(rank=1)"), problem, PolicyOptions(rank=2))["mlingreedy(rank=1)"]
    MLinGreedy(rank=1)
    """
    return {name: _build(name, value, problem, options) for name, value in name_policies(policies).items()}


def make_named_policy(text: str) -> Policy:
    """Return a policy that is written as text, where there is no problem: for logs and live traffic.

    Parameters
    ----------
    text : str
        A name of `posse list`, with parameters or without; or MODULE:NAME, a policy or a class of policies.

    Examples
    --------
    >>> make_named_policy("shared-thompson(floor=0.05)")
    SharedThompson(floor=0.05)
    """
    if is_imported(text):
        return make_policy(text, import_named(text), NO_PROBLEM)
    entry, typed = find_policy(text)
    if entry.family == "oracles":
        raise ValueError(f"a policy for a log must not need to be told the truth. Got {text!r}.")
    return entry.make(parse_call(text)[0], typed, NO_PROBLEM, PolicyOptions())


def _build(name: str, value: Any, problem: Problem, options: PolicyOptions) -> Policy:
    if isinstance(value, str) and not is_imported(value):
        entry, typed = find_policy(value)
        return entry.make(parse_call(value)[0], typed, problem, options)
    return make_policy(name, import_named(value) if isinstance(value, str) else value, problem)


def describe_policy(name: str, value: Any) -> Any:
    """Return what a manifest says of a policy: its text, if that is all, or its name and what it is."""
    if isinstance(value, str) and not is_imported(value):
        return value if name == value else {"name": name, "policy": value}
    found = import_named(value) if isinstance(value, str) else value
    return {"name": name, "policy": describe(found() if isinstance(found, type) else found)}


def heeded_options(value: Any) -> set[str]:
    """Return the fields of `PolicyOptions` that a policy heeds: none, unless it has a name.

    Examples
    --------
    >>> sorted(heeded_options("mlingreedy")), sorted(heeded_options("mlingreedy(rank=5)"))
    (['penalty', 'rank'], ['penalty'])
    """
    if not isinstance(value, str) or is_imported(value):
        return set()
    entry, typed = find_policy(value)
    return entry.heeds(typed)


def find_problem(problem: Any, what: str = "problem") -> NamedProblem:
    """Return the entry of a problem: a registered one, or one made for a problem that is not.

    Parameters
    ----------
    problem : str, Problem or callable
        A name of `posse list`; MODULE:NAME; a problem; or a function `draw(*, seed, ...)` that draws one.
    what : str
        What errors call it.
    """
    if isinstance(problem, str):
        if not is_imported(problem):
            return PROBLEMS[check_choice(what, problem, PROBLEMS)]
        return foreign_problem(problem, import_named(problem))
    return foreign_problem(problem_title(problem), problem)


def problem_title(problem: Any) -> str:
    """Return what a problem is called in titles: its text, or the name of its class or function."""
    if isinstance(problem, str):
        return problem
    return str(getattr(problem, "__qualname__", type(problem).__qualname__))


def describe_problem(problem: Any) -> Any:
    """Return what a manifest says of a problem: its text, if that is all, or what it is."""
    if not isinstance(problem, str):
        return describe(problem)
    return {"name": problem, "problem": describe(import_named(problem))} if is_imported(problem) else problem


def draw_problem(problem: Any, **parameters: Any) -> Problem:
    """Draw a problem by its seed and its parameters; see `find_problem` for what can be one."""
    return find_problem(problem).draw(**parameters)


def look_of(policy: str) -> Look:
    """Return how a policy of a table is called and drawn: also one which the registry never heard of."""
    if not is_named(policy):
        return Look(policy, "not one of posse's", fallback_style(policy))
    entry, typed = find_policy(policy)
    return entry.look(typed)


def label_of(policy: str) -> str:
    """Return what legends and tables call a policy: its label, or its name if it has none."""
    return look_of(policy).label


def style_of(policy: str) -> Style:
    """Return how the curve of a policy looks: also that of one which the registry never heard of."""
    return look_of(policy).style


def family_of(policy: str) -> str:
    """Return the family of a policy: "others" for one that the registry does not know."""
    return find_policy(policy)[0].family if is_named(policy) else "others"


def in_order(policies: Iterable[str]) -> list[str]:
    """Return policies in the order of the registry, those it does not know at the end."""
    return sorted(dict.fromkeys(policies), key=_place)


def _place(policy: str) -> tuple[int, int, str]:
    """Return the place of a policy's name, that of its look among the well-known, and its text."""
    if not is_named(policy):
        return len(POLICIES), 0, policy
    entry, typed = find_policy(policy)
    looks = [look.parameters for look in entry.looks]
    place = looks.index(typed) if typed in looks else len(looks) if typed else -1
    return list(POLICIES).index(parse_call(policy)[0]), place, policy
