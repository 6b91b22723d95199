"""`posse simulate`: policies on one problem."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from posse.cli.console import errors, option_of, plain_errors
from posse.cli.running import (
    CORES,
    RUNNING,
    Address,
    Engine,
    Jobs,
    fetch_images,
    import_from_here,
    seeds_in_words,
    showing_progress,
)
from posse.lab.charts import regret_by_round
from posse.lab.engines import Workers
from posse.lab.entries import SYMBOLS, PolicyOptions
from posse.lab.experiment import Experiment
from posse.lab.grid import play_seeds
from posse.lab.registry import POLICIES, PROBLEMS, find_policy, find_problem, heeded_options, name_policies
from posse.lab.results import policies_compared
from posse.lab.syntax import parse_value
from posse.numerics.checks import check_choice, check_integer
from posse.play.rounds import PATHS
from posse.problems.noise import NOISE_KINDS
from posse.problems.parameters import STRUCTURES

if TYPE_CHECKING:
    import polars as pl

PLOT_ENDINGS = (".png", ".svg", ".pdf")
PROBLEM, POLICY, OUTPUT = "The problem", "The policies", "What comes out"
# What parameters mean that many problems have; those of one problem alone are explained by its entry.
HELP = {
    "dim": "d, the number of features.",
    "rank": "k, the dimension of the shared representation.",
    "n_tasks": "T, the number of tasks played side by side.",
    "n_arms": "K, the arms on offer in each round.",
    "structure": f"What the tasks have in common: {', '.join(STRUCTURES)}.",
    "noise_kind": f"Noise of the rewards: {', '.join(NOISE_KINDS)}.",
}
# What the settings of a run are called among those that policies are told.
TOLD = {
    "policy_rank": "rank",
    "prior_rank": "prior_rank",
    "penalty": "penalty",
    "exponent": "exponent",
    "explore": "explore",
}


def simulate(
    context: typer.Context,
    problem: Annotated[
        str,
        typer.Option(
            help=f"Kind of problem: {', '.join(PROBLEMS)}; or MODULE:NAME, one of your own, looked for in "
            "this folder first.",
            rich_help_panel=PROBLEM,
        ),
    ] = "gaussian",
    assigned: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of a problem of your own that has no option here; repeat for more.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="N, the number of rounds.", rich_help_panel=PROBLEM)] = 10_000,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Policy to play; repeat for more: NAME or NAME(parameter=value, ...) of `posse list`; or "
            "MODULE:NAME, one of your own, looked for in this folder first (default: some that suit).",
            rich_help_panel=POLICY,
        ),
    ] = None,
    policy_rank: Annotated[
        str | None,
        typer.Option(
            help="Tell the policies this rank, or auto (default: the paper's policies are told the true one, "
            "5 for images; the shared ones find theirs).",
            rich_help_panel=POLICY,
        ),
    ] = None,
    penalty: Annotated[
        float | None,
        typer.Option(
            help="Ridge of mlingreedy and naive (default: 0, as in the paper; 0.001 for images).",
            rich_help_panel=POLICY,
        ),
    ] = None,
    exponent: Annotated[
        float | None,
        typer.Option(
            help="Tell e2tc this c in N_1 = d^c k sqrt(N / T) (default: 1.5).", rich_help_panel=POLICY
        ),
    ] = None,
    explore: Annotated[
        int | None,
        typer.Option(
            help="Round of the last estimate of the commit and relearn policies (default: 100).",
            rich_help_panel=POLICY,
        ),
    ] = None,
    path: Annotated[
        str,
        typer.Option(
            help="How to play: contexts draws the features of all arms; exact, on gaussian problems with "
            "greedy policies, only what decides, with the same law and many times faster; auto takes exact "
            "where it can.",
            rich_help_panel=RUNNING,
        ),
    ] = "auto",
    seeds: Annotated[
        int,
        typer.Option(
            help="Number of seeds: each draws a new problem, or new rounds of the same images.",
            rich_help_panel=RUNNING,
        ),
    ] = 8,
    jobs: Jobs = CORES,
    engine: Engine = "local",
    address: Address = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=OUTPUT)
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw regret against round into a .png, .svg or .pdf file.", rich_help_panel=OUTPUT
        ),
    ] = None,
    **chosen: Any,
) -> None:
    """Compare policies on one problem: same actions, same noise, 95 % intervals.

    For example: posse simulate --dim 20 --rank 2 --tasks 50 --policy mlingreedy --policy naive
    """
    with plain_errors(context):
        import_from_here(problem, *(policy or ()))
        kind = find_problem(problem, "--problem")
        cell = all_parameters(problem, chosen, assigned or ())
        played = policy or suitable(kind.policies, kind.suits(cell))
        names = tuple(name_policies(tuple(dict.fromkeys(played)), "--policy"))
        check_integer("--rounds", rounds, 1)
        typed = {"policy_rank": policy_rank, "penalty": penalty, "exponent": exponent, "explore": explore}
        check_heeded(typed, names, rounds)
        check_choice("--path", path, PATHS)
        check_integer("--seeds", seeds, 1)
        workers = Workers(jobs=jobs, engine=engine, address=address)
        if plot is not None:
            check_plot_path(plot)
        told = {**told_rank(policy_rank), "exponent": exponent, "penalty": penalty, "explore": explore}
        experiment = Experiment(
            name="simulate",
            problem=problem,
            cells=(cell,),
            policies=names,
            horizon=rounds,
            options={name: value for name, value in told.items() if value is not None},
            path=path,
        )
        images = fetch_images([experiment.images])
        with showing_progress("simulating", "seeds") as show:
            table = play_seeds(experiment, seeds=seeds, workers=workers, on_progress=show)
        how = {"path": table["path"][0], "seeds": seeds}
        settings = {"problem": problem, **images, **settings_of(experiment), **how}
        rows = policies_compared(table)
        if as_json:
            print(json.dumps({"settings": settings, "rows": rows}, indent=2))
        else:
            print_comparison(rows, settings, names)
        if plot is not None:
            draw_growth(experiment, table, plot)


def problem_options() -> list[inspect.Parameter]:
    """Return an option for every parameter that some problem has, with what it means and its defaults."""
    found: dict[str, dict[str, Any]] = {}
    for entry in PROBLEMS.values():
        for name, default in entry.parameters.items():
            known = found.setdefault(name, {"help": entry.help.get(name) or HELP[name], "defaults": {}})
            known["defaults"].setdefault(default, default)
    return [
        inspect.Parameter(
            OPTION_OF[name],
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                type(next(iter(known["defaults"]))) | None,
                typer.Option(
                    f"--{OPTION_OF[name]}",
                    help=f"{known['help'].rstrip('.')} (default: {_defaults(name)}).",
                    rich_help_panel=PROBLEM,
                ),
            ],
        )
        for name, known in found.items()
    ]


def _defaults(name: str) -> str:
    """Say the default of a parameter, and which problems have another."""
    defaults: dict[Any, list[str]] = {}
    for problem, entry in PROBLEMS.items():
        if name in entry.parameters:
            defaults.setdefault(entry.parameters[name], []).append(problem)
    (first, _), *others = sorted(defaults.items(), key=lambda item: -len(item[1]))
    return "; ".join([str(first), *(f"{value} for {', '.join(owners)}" for value, owners in others)])


OPTION_OF = {
    name: option_of(name).removeprefix("--") for entry in PROBLEMS.values() for name in entry.parameters
}


def suitable(policies: Sequence[str], suited: tuple[str, ...]) -> list[str]:
    """Return those of some policies that are made for what a problem offers; all, if that is not known."""
    return [name for name in policies if not suited or find_policy(name)[0].actions in suited]


def all_parameters(problem: str, chosen: Mapping[str, Any], assigned: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a kind of problem, from its options, --set and its defaults."""
    found = {**own_parameters(problem, chosen), **assigned_parameters(problem, assigned)}
    for name in find_problem(problem).required:
        if name not in found:
            option = f"--{OPTION_OF[name]}" if name in OPTION_OF else f"--set {name}=..."
            raise ValueError(f"--problem {problem} has no default for {name}: it needs {option}. Got none.")
    return found


def own_parameters(problem: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a kind of problem; refuse those of another kind."""
    kind = find_problem(problem)
    defaults = (*kind.parameters, *kind.required)
    given = {name: chosen.get(option) for name, option in OPTION_OF.items()}
    for name, value in given.items():
        if value is not None and name not in defaults:
            known = ", ".join(f"--{OPTION_OF[own]}" for own in defaults if own in OPTION_OF) or "none"
            wrong = f"--{OPTION_OF[name]} is not an option of --problem {problem}"
            raise ValueError(f"{wrong}, which has {known}. Got {value!r}.")
    own = {name: given[name] for name in defaults if given.get(name) is not None}
    return {**kind.parameters, **own}


def assigned_parameters(problem: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return what --set says about a problem of one's own: values by the names of its parameters."""
    kind = find_problem(problem)
    known = [name for name in (*kind.parameters, *kind.required) if name not in OPTION_OF]
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE. Got {text!r}.")
        if not known:
            raise ValueError(f"--set is for parameters without an option: {problem} has none. Got {text!r}.")
        if name in OPTION_OF and name not in known:
            raise ValueError(f"{name} must be set by --{OPTION_OF[name]}. Got --set {text!r}.")
        if check_choice("--set", name, known) in found:
            raise ValueError(f"--set must tell {name} once. Got {text!r} as well.")
        found[name] = alike(name, parse_value(name, value), kind.parameters.get(name))
    return found


def alike(name: str, value: Any, default: Any) -> Any:
    """Return a value that was typed for a parameter, if it is of the kind of the default."""
    if isinstance(default, bool):
        value = {"true": True, "false": False}.get(str(value).lower(), value)
        if not isinstance(value, bool):
            raise ValueError(f"--set {name} must be True or False, as its default {default}. Got {value!r}.")
    elif isinstance(default, int | float) and not isinstance(value, int | float):
        raise ValueError(f"--set {name} must be a number, as its default {default}. Got {value!r}.")
    return value


def told_rank(text: str | None) -> dict[str, Any]:
    """Return what --policy-rank says to the policies: a number to all, auto to those that can."""
    if text is None:
        return {}
    if text == "auto":
        return {"prior_rank": "auto"}
    if not text.isdecimal():
        raise ValueError(f"--policy-rank must be auto or a whole number. Got {text!r}.")
    return {"rank": int(text), "prior_rank": int(text)}


def settings_of(experiment: Experiment) -> dict[str, Any]:
    """Return what is played, by the names of the options."""
    (cell,) = experiment.cells
    kind = find_problem(experiment.problem)
    used = {**kind.options({**kind.parameters, **cell}), **experiment.options}
    return {
        **{OPTION_OF.get(name, name): value for name, value in cell.items()},
        "rounds": experiment.horizon,
        **({"policy_rank": used.pop("rank")} if "rank" in used else {}),
        "prior_rank": used.pop("prior_rank", "auto"),
        **({"exponent": PolicyOptions().exponent} if heeded("exponent", experiment.names) else {}),
        **used,
    }


def check_heeded(typed: Mapping[str, Any], policies: tuple[str, ...], rounds: int) -> None:
    """Refuse an option that no policy heeds, and an estimate after the last round."""
    for name, value in typed.items():
        settings = ("policy_rank", "prior_rank") if name == "policy_rank" else (name,)
        if value is not None and not any(heeded(setting, policies) for setting in settings):
            whose = [policy for policy in POLICIES if any(heeded(some, (policy,)) for some in settings)]
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for {', '.join(whose)}, not played here. Got {value!r}.")
    explore = typed["explore"]
    if explore is not None:
        check_integer("--explore", explore, 1, rounds - 1, high_name="--rounds - 1")


def heeded(setting: str, policies: tuple[str, ...]) -> bool:
    """Return whether a setting concerns any of the policies that are played."""
    return setting not in TOLD or any(TOLD[setting] in heeded_options(name) for name in policies)


def draw_growth(experiment: Experiment, table: pl.DataFrame, path: Path) -> None:
    """Draw regret against round into a file."""
    from posse.viz.still import draw, save  # playing alone needs no matplotlib

    (cell,) = experiment.cells
    sizes = (f"{SYMBOLS[name]} = {cell[name]}" for name in cell if name in SYMBOLS and name != "n_arms")
    seeds = seeds_in_words(table["seed"].n_unique())
    title = f"{experiment.problem}, {', '.join(sizes)}, mean of {seeds}"
    save(draw(regret_by_round(table, title)), path)
    errors.print(f"Wrote {escape(str(path))}", soft_wrap=True, highlight=False)


def print_comparison(
    rows: list[dict[str, Any]], settings: Mapping[str, Any], policies: tuple[str, ...]
) -> None:
    """Print a table of policies, best first, and below it the settings that concern them."""
    about = ", ".join(f"{name} {value}" for name, value in settings.items() if heeded(name, policies))
    table = Table(caption=about, caption_justify="left")
    table.add_column("policy", overflow="fold")
    for heading in ("regret per task", "95 % interval", "seconds per run"):
        table.add_column(heading, justify="right")
    for row in rows:
        low, high = row["ci_low"], row["ci_high"]
        interval = "needs two seeds" if low is None else f"{low:.1f} to {high:.1f}"
        table.add_row(row["policy"], f"{row['regret_per_task']:.1f}", interval, f"{row['seconds']:.2f}")
    Console().print(table)


def check_plot_path(path: Path) -> None:
    """Refuse a picture that could not be written, before the runs and not after them."""
    if path.suffix.lower() not in PLOT_ENDINGS:
        raise ValueError(f"--plot must end in one of {', '.join(PLOT_ENDINGS)}. Got {str(path)!r}.")
    if path.is_dir():
        raise ValueError(f"--plot must be a file. Got the folder {str(path)!r}.")
    if not path.parent.is_dir():
        raise ValueError(f"--plot must lie in a folder that exists. Got {str(path)!r}.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"--plot must lie in a folder that can be written to. Got {str(path)!r}.")
    import_module("posse.viz.still")  # a missing matplotlib is an error now


def with_problem_options() -> Any:
    """Return `simulate` with the options of all problems after `--problem`."""
    signature = inspect.signature(simulate, eval_str=True)
    context, problem, *others = (
        item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD
    )
    keyword = inspect.Parameter.KEYWORD_ONLY
    ordered = [item.replace(kind=keyword) for item in (context, problem, *problem_options(), *others)]
    simulate.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    simulate.__annotations__ = {item.name: item.annotation for item in ordered}
    return simulate


command = with_problem_options()
