"""Policies and problems that posse does not know: found by module and name, looked at, and made."""

from __future__ import annotations

import inspect
import math
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from posse.core.errors import PosseError
from posse.core.protocols import Policy, Problem
from posse.lab.entries import SIZES, NamedProblem, drawn_parameters
from posse.numerics.checks import check_choice

POLICY_MEMBERS = ("statistics", "blocks", "init", "select", "update")
PROBLEM_MEMBERS = ("n_tasks", "dim", "actions", "noise", "mean_rewards", "best_rewards", "rewards")
# Policies that can play any action set, whatever the problem tells.
ANYWHERE = ("shared-greedy", "shared-thompson", "independent-greedy", "independent-thompson", "random")
NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
IMPORTED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_imported(text: str) -> bool:
    """Return whether a line of text is meant as MODULE:NAME.

    Examples
    --------
    >>> is_imported("mine:policy"), is_imported("mlingreedy(rank=5)")
    (True, False)
    """
    return ":" in text.partition("(")[0]


def check_not_reserved(text: str) -> None:
    """Raise if a name begins with `arm:`, which is kept for policies that play one arm."""
    if text.startswith("arm:"):
        raise ValueError(f"a policy's name must not begin with arm:, which is reserved. Got {text!r}.")


def import_named(text: str) -> Any:
    """Return what MODULE:NAME names; the name may have dots, as in `mine:Stores.draw`.

    Examples
    --------
    >>> import_named("posse:Random").__name__
    'Random'
    >>> import_named("posse:Randon")
    Traceback (most recent call last):
    ValueError: the name after posse: must be a known name. Got 'Randon'. Did you mean 'Random'? ...
    """
    check_not_reserved(text)
    if not IMPORTED.fullmatch(text):
        hint = " Parameters are for posse's own." if "(" in text else ""
        raise ValueError(
            f"what is to be imported must be written MODULE:NAME, as in mine:policy. Got {text!r}.{hint}"
        )
    module_name, _, path = text.partition(":")
    found: Any = _import_module(module_name, text)
    for part in path.split("."):
        if not hasattr(found, part):
            known = getattr(found, "__all__", None) or [
                some for some in vars(found) if not some.startswith("_")
            ]
            check_choice(f"the name after {module_name}:", part, known)
            raise ValueError(f"the module {module_name} must have the name {path}. Got none.")
        found = getattr(found, part)
    return found


def _import_module(name: str, text: str) -> Any:
    """Import a module of somebody else's, or say why that fails."""
    try:
        return import_module(name)
    except Exception as error:  # it may fail in any way
        missing = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        reason = "there is no such module" if missing else f"{type(error).__name__}: {error}"
        if missing and name.endswith(".py"):
            reason += ": write it without .py"
        raise ValueError(f"the module {name} must be importable. Got {text!r}, but {reason}.") from error


def is_policy(value: Any) -> bool:
    """Return whether an object has the members of a policy."""
    return not isinstance(value, type) and all(hasattr(value, member) for member in POLICY_MEMBERS)


def is_problem(value: Any) -> bool:
    """Return whether an object has the members of a problem."""
    return not isinstance(value, type) and all(hasattr(value, member) for member in PROBLEM_MEMBERS)


@contextmanager
def placing_errors() -> Iterator[None]:
    """Turn an error in somebody else's code into one that says where in it: a file, a line, a function."""
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((frame for frame in reversed(frames) if _is_foreign(frame.filename)), None)
        if place is None:
            raise
        where = f"{Path(place.filename).name}, line {place.lineno}, in {place.name}"
        raise PosseError(f"{type(error).__name__} in {where}: {error}") from error


def _is_foreign(filename: str) -> bool:
    """Return whether a file is neither posse's nor of an installed or standard library."""
    path = Path(filename)
    ours = Path(__file__).resolve().parent.parent
    libraries = (ours, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")))
    return path.suffix == ".py" and not any(path.is_relative_to(library) for library in libraries)


@contextmanager
def failing_as(what: str) -> Iterator[None]:
    """Turn any error of somebody else's code into one that says what failed."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{what}: {type(error).__name__}: {error}") from error


def make_policy(name: str, value: Any, problem: Problem) -> Policy:
    """Return a policy for a problem from a policy, a function of the problem, or a class.

    Parameters
    ----------
    name : str
        What errors call it.
    value : Policy, callable or class
        A function is called with the problem, a class without arguments.
    problem : Problem
    """
    built = value
    if not is_policy(value):
        if not callable(value):
            raise ValueError(_not_a_policy(name, value))
        with failing_as(f"the policy {name} cannot be made"):
            built = value() if isinstance(value, type) else value(problem)
        if not is_policy(built):
            raise ValueError(_not_a_policy(name, built))
    policy: Policy = built
    return policy


def _not_a_policy(name: str, value: Any) -> str:
    lacking = ", ".join(member for member in POLICY_MEMBERS if not hasattr(value, member))
    return (
        f"the policy {name} must be a policy, or make one: an object with {', '.join(POLICY_MEMBERS)}. "
        f"Got {value!r}, without {lacking}."
    )


def foreign_problem(name: str, value: Any) -> NamedProblem:
    """Return the entry of a problem, or of a function that draws one from a seed and parameters.

    Parameters
    ----------
    name : str
        What errors call it.
    value : Problem or callable
        The parameters of a function are those of its signature that are numbers or words by default, and
        those without a default, which must be given. `dim`, `rank` and `n_tasks` have the defaults of posse's
        own problems.
    """
    if is_problem(value):
        return _entry(name, lambda seed: value, {}, ())
    if not callable(value):
        raise ValueError(
            f"the problem {name} must be a problem, or a function of a seed that draws one: an object with "
            f"{', '.join(PROBLEM_MEMBERS)}. Got {value!r}."
        )
    signature = inspect.signature(value).parameters
    if "seed" not in signature and not any(item.kind is item.VAR_KEYWORD for item in signature.values()):
        raise ValueError(f"the problem {name} must be a problem, or a function of a seed. Got {value!r}.")
    own = {
        item: default
        for item, default in drawn_parameters(value).items()
        if isinstance(default, bool | int | float | str)
    }
    required = tuple(
        item.name
        for item in signature.values()
        if item.kind in NAMED and item.default is item.empty and item.name not in (*own, "seed")
    )
    return _entry(name, _Drawn(name, value), own, required)


@dataclass(frozen=True)
class _Drawn:
    """Draws a problem by somebody else's function, and looks at what comes."""

    name: str
    function: Callable[..., Any]

    def __call__(self, **parameters: Any) -> Problem:
        try:
            drawn = self.function(**parameters)
        except (ValueError, OSError, MemoryError):
            raise
        except Exception as error:
            wrong = f"the problem {self.name} cannot be drawn: {type(error).__name__}: {error}"
            raise ValueError(wrong) from error
        if not is_problem(drawn):
            lacking = ", ".join(member for member in PROBLEM_MEMBERS if not hasattr(drawn, member))
            raise ValueError(
                f"the problem {self.name} must draw a problem. Got {drawn!r}, without {lacking}."
            )
        problem: Problem = drawn
        return problem


def _entry(
    name: str, draw: Callable[..., Problem], parameters: Mapping[str, Any], required: tuple[str, ...]
) -> NamedProblem:
    return NamedProblem(
        summary=name,
        draw=draw,
        parameters=parameters,
        required=required,
        policies=ANYWHERE,
        work=lambda cell: math.prod(int(cell.get(size, 1)) for size in (*SIZES, "n_arms") if size != "rank"),
        options=lambda cell: {"rank": cell["rank"]} if "rank" in cell else {},
        actions="any",
    )
