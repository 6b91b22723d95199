"""The command. Everything that it does is a call of the library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from posse import __version__
from posse.core.extras import MissingExtraError

# The commands, by the module that holds each: a module is loaded when its command is asked for.
COMMANDS = {
    "simulate": "simulate",
    "compare": "compare",
    "reproduce": "reproduce",
    "serve": "serve",
    "status": "status",
    "log": "log",
    "theory": "theory",
    "diagnose": "diagnose",
    "fit": "fit",
    "predict": "predict",
    "explain": "explain",
    "evaluate": "evaluate",
    "example-log": "example_log",
    "list": "listing",
}


class OnDemand(dict[str, Any]):
    """The commands by name, each loaded when it is first got: `posse --version` need not load NumPy."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return a command by its name, or the default if there is none."""
        if name not in self:
            return default
        settings: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
        try:
            command = import_module(f"posse.cli.{COMMANDS[name]}").command
        except MissingExtraError as error:
            command = missing(str(error))
            settings |= {"ignore_unknown_options": True, "allow_extra_args": True}
        single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        single.command(name, context_settings=settings)(command)
        return typer.main.get_command(single)


class Commands(TyperGroup):
    """A group of commands that are loaded on demand."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = OnDemand(dict.fromkeys(COMMANDS))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)


def missing(reason: str) -> Callable[[], None]:
    """Return what stands for a command whose packages are not installed: it says how to get them."""

    def command() -> None:
        print(f"Error: {reason}", file=sys.stderr)
        raise typer.Exit(1)

    command.__doc__ = f"Not installed: {reason}"
    return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"posse {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version_wanted: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Many bandits, one representation: multi-task linear bandits that learn from each other.

    `posse COMMAND --help` teaches each command. To begin: `posse simulate`.
    """


def main() -> None:
    """Run the command."""
    app(prog_name="posse")
