"""Consoles, and errors in one line that name the option typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from posse.core.errors import PosseError
from posse.core.extras import MissingExtraError

# What the command calls arguments of the library, where the two differ.
OPTION_NAMES = {
    "n_tasks": "tasks",
    "n_arms": "arms",
    "n_classes": "classes",
    "n_directions": "directions",
    "n_parts": "parts",
    "noise_kind": "noise",
    "horizon": "rounds",
}
# Whose `rank` is what policies are told.
TOLD_RANK = ("LowRank", "FactorPrior", "E2TC", "Armul", "SpectralShrinkage", "SeqRepL", "BARON", "BRESS")
# Whose `penalty` is typed in parentheses after their name, and nowhere else.
OWN_PENALTY = ("SeqRepL", "BARON", "BRESS", "PEGETau")
# Without a terminal a line of progress comes after this many seconds.
LINE_SECONDS = 60.0
ARGUMENT = re.compile(r"`(\w+)`(?: of (\w+))?")

errors = Console(stderr=True)


def option_of(argument: str, owner: str = "") -> str:
    """Return the option that an argument of the library has in the command.

    Examples
    --------
    >>> option_of("n_tasks", "GaussianProblem"), option_of("rank", "LowRank")
    ('--tasks', '--policy-rank')
    """
    if argument == "rank" and owner in TOLD_RANK:
        return "--policy-rank"
    if argument == "penalty" and owner in OWN_PENALTY:
        return ""
    return "--" + OPTION_NAMES.get(argument, argument).replace("_", "-")


def in_options(message: str, options: Iterable[str]) -> str:
    """Return a message of the library in words of the command: arguments as the options that were typed.

    Parameters
    ----------
    message : str
    options : iterable of str
        The options that the command has, such as "--tasks"; arguments that have none stay as they are.

    Examples
    --------
    >>> in_options("`n_tasks` of GaussianProblem must be at least 1. Got 0.", ["--tasks"])
    '--tasks must be at least 1. Got 0.'
    """
    known = set(options)

    def renamed(found: re.Match[str]) -> str:
        option = option_of(found[1], found[2] or "")
        return option if option in known else found[0]

    named = ARGUMENT.sub(renamed, message).replace("the horizon ", "--rounds ")
    return re.sub(r"\bn_(tasks|arms|classes|directions)(?==)", r"\1", named)


@contextmanager
def plain_errors(context: typer.Context, interrupted: str = "") -> Iterator[None]:
    """Turn errors that users can mend into one message and an exit code: 2 for bad input, else 1."""
    options = [option for parameter in context.command.params for option in parameter.opts]
    if context.params.get("policy_rank") is None and "--policy-rank" in options:
        options.remove("--policy-rank")  # a rank that a policy was not told by whoever typed
    try:
        yield
    except KeyboardInterrupt:
        errors.print("[yellow]Stopped.[/]" + escape(interrupted), soft_wrap=True, highlight=False)
        raise typer.Exit(130) from None
    except MemoryError:
        errors.print("[red]Error:[/] not enough memory for a problem of this size.")
        raise typer.Exit(1) from None
    except BrokenPipeError:  # whoever read the output has seen enough
        raise typer.Exit(1) from None
    except (ValueError, PosseError, OSError, MissingExtraError) as error:
        text = in_options(str(error), options) if isinstance(error, ValueError) else str(error)
        errors.print(f"[red]Error:[/] {escape(text)}", soft_wrap=True, highlight=False)
        raise typer.Exit(2 if isinstance(error, ValueError) else 1) from None
