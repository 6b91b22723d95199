"""`posse simulate`: policies on one problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from posse.cli.shared import CORES, Address, Engine, Jobs, errors, fetch_images, plain_errors, progress_bar
from posse.lab.engines import check_engine
from posse.lab.grid import Experiment, play_seeds
from posse.lab.registry import POLICIES, PROBLEMS
from posse.lab.results import final_rounds, summarise
from posse.numerics.checks import check_choice, check_integer
from posse.play.simulation import PATHS
from posse.problems.class_pairs import SCALINGS
from posse.problems.gaussian import COVARIANCES
from posse.problems.noise import NOISE_KINDS
from posse.problems.parameters import STRUCTURES
from posse.viz.plots import draw_regret_against_round, regret_against_round, save

PLOT_ENDINGS = (".png", ".svg", ".pdf")
# What the command calls the parameters of problems.
OPTIONS = {
    "dim": "dim",
    "rank": "rank",
    "n_tasks": "tasks",
    "structure": "structure",
    "noise_kind": "noise",
    "n_arms": "arms",
    "covariance": "covariance",
    "condition": "condition",
    "n_directions": "directions",
    "share": "share",
    "join": "join",
    "turn": "turn",
    "n_classes": "classes",
    "scaling": "scaling",
}

# How a picture's title calls them.
SYMBOLS = {"dim": "d", "rank": "k", "n_tasks": "T", "n_classes": "classes"}


def simulate(
    problem: Annotated[str, typer.Option(help=f"Kind of problem: {', '.join(PROBLEMS)}.")] = "gaussian",
    dim: Annotated[int | None, typer.Option(help="d, the number of features (default: 20).")] = None,
    rank: Annotated[
        int | None, typer.Option(help="k, the dimension of the shared representation (default: 2).")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(help="T, the number of tasks played side by side (default: 50).")
    ] = None,
    arms: Annotated[
        int | None, typer.Option(help="K, the arms on offer in each round (default: 5; 10 for fixed-arms).")
    ] = None,
    rounds: Annotated[int, typer.Option(help="N, the number of rounds.")] = 10_000,
    covariance: Annotated[
        str | None,
        typer.Option(
            help=f"Covariance of a gaussian problem's arms: {', '.join(COVARIANCES)} (default: isotropic)."
        ),
    ] = None,
    condition: Annotated[
        float | None,
        typer.Option(help="Condition number of an ellipsoid problem's sets (default: 1, unit balls)."),
    ] = None,
    directions: Annotated[
        int | None,
        typer.Option(help="m, the directions that each task of a narrow problem sees (default: 3)."),
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="Share of a late problem's tasks that join later (default: 0.5).")
    ] = None,
    join: Annotated[
        int | None, typer.Option(help="Round at which a late problem's late tasks join (default: 1000).")
    ] = None,
    turn: Annotated[
        float | None,
        typer.Option(
            help="Turn of a moving problem's representation, in radians per 1000 rounds (default: 0.1)."
        ),
    ] = None,
    structure: Annotated[
        str | None,
        typer.Option(help=f"What the tasks have in common: {', '.join(STRUCTURES)} (default: low-rank)."),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help=f"Noise of the rewards: {', '.join(NOISE_KINDS)} (default: gaussian)."),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(help="The first C classes of an image set; their pairs are the tasks (default: 10)."),
    ] = None,
    scaling: Annotated[
        str | None, typer.Option(help=f"Scale of images: {', '.join(SCALINGS)} (default: norm).")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy to play; repeat for more. `posse list` names them; by default some that suit."
        ),
    ] = None,
    policy_rank: Annotated[
        str | None,
        typer.Option(
            help="Tell the policies this rank, or auto (default: the paper's policies are told the true one, "
            "5 for images; the shared ones find theirs)."
        ),
    ] = None,
    penalty: Annotated[
        float | None,
        typer.Option(help="Ridge of mlingreedy and naive (default: 0, as in the paper; 0.001 for images)."),
    ] = None,
    exponent: Annotated[
        float | None, typer.Option(help="Tell e2tc this c in N_1 = d^c k sqrt(N / T) (default: 1.5).")
    ] = None,
    explore: Annotated[
        int | None,
        typer.Option(help="Round of the last estimate of the commit and relearn policies (default: 100)."),
    ] = None,
    path: Annotated[
        str,
        typer.Option(
            help="How to play: contexts draws the features of all arms; exact, on gaussian problems with "
            "greedy policies, only what decides, with the same law and many times faster; auto takes exact "
            "where it can."
        ),
    ] = "auto",
    seeds: Annotated[
        int, typer.Option(help="Number of seeds: each draws a new problem, or new rounds of the same images.")
    ] = 8,
    jobs: Jobs = CORES,
    engine: Engine = "local",
    address: Address = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw regret against round into a .png, .svg or .pdf file.")
    ] = None,
) -> None:
    """Compare policies on one problem: same actions, same noise, 95 % intervals.

    For example: posse simulate --dim 20 --rank 2 --tasks 50 --policy mlingreedy --policy naive
    """
    with plain_errors():
        kind = PROBLEMS[check_choice("problem", problem, PROBLEMS)]
        names = tuple(dict.fromkeys(policy or kind.policies))
        for name in names:
            check_choice("policy", name, POLICIES)
        if exponent is not None and "e2tc" not in names:
            raise ValueError(f"--exponent is for the policy e2tc, which is not played. Got {exponent}.")
        check_integer("--rounds", rounds, 1)
        check_choice("--path", path, PATHS)
        check_integer("--seeds", seeds, 1)
        check_engine(engine, address)
        check_integer("--jobs", jobs, 1)
        if plot is not None:
            check_plot_path(plot)
        given = {
            "dim": dim,
            "rank": rank,
            "n_tasks": tasks,
            "structure": structure,
            "noise_kind": noise,
            "n_arms": arms,
            "covariance": covariance,
            "condition": condition,
            "n_directions": directions,
            "share": share,
            "join": join,
            "turn": turn,
            "n_classes": classes,
            "scaling": scaling,
        }
        cell = own_parameters(problem, given)
        told = {**told_rank(policy_rank), "exponent": exponent, "penalty": penalty, "explore": explore}
        options = {name: value for name, value in told.items() if value is not None}
        experiment = Experiment(
            name="simulate",
            problem=problem,
            cells=(cell,),
            policies=names,
            horizon=rounds,
            options=options,
            path=path,
        )
        data = fetch_images([problem])
        with progress_bar() as bar:
            task = bar.add_task("simulating", total=seeds, runs=f"0/{seeds} seeds")

            def show(done: int) -> None:
                bar.update(task, completed=done, runs=f"{done}/{seeds} seeds")

            table = play_seeds(
                experiment, seeds=seeds, jobs=jobs, engine=engine, address=address, on_progress=show
            )
        final = final_rounds(table)
        seconds = dict(
            summarise(final, by=["policy"], value="seconds").select("policy", "seconds").iter_rows()
        )
        regrets = summarise(final, by=["policy"]).sort("regret_per_task").drop("n_seeds").to_dicts()
        rows = [{**row, "seconds": seconds[row["policy"]]} for row in regrets]
        used = {**kind.options(cell), **options}
        settings = {
            "problem": problem,
            **data,
            **{OPTIONS[name]: value for name, value in cell.items()},
            "rounds": rounds,
            "policy_rank": used.pop("rank"),
            "prior_rank": used.pop("prior_rank", "auto"),
            **({"exponent": 1.5} if "e2tc" in names else {}),
            **used,
            "path": table["path"][0],
            "seeds": seeds,
        }
        if as_json:
            print(json.dumps({"settings": settings, "rows": rows}, indent=2))
        else:
            print_comparison(rows, settings)
        if plot is not None:
            about = ", ".join(f"{SYMBOLS[name]} = {value}" for name, value in cell.items() if name in SYMBOLS)
            title = f"{problem}, {about}, mean of {seeds} seeds"
            save(draw_regret_against_round(regret_against_round(table), title), plot)
            errors.print(f"Wrote {escape(str(plot))}", soft_wrap=True, highlight=False)


def print_comparison(rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Print a table of policies, best first."""
    about = ", ".join(f"{name} {value}" for name, value in settings.items())
    table = Table("policy", caption=about, caption_justify="left")
    for heading in ("regret per task", "95 % interval", "seconds per run"):
        table.add_column(heading, justify="right")
    for row in rows:
        low, high = row["ci_low"], row["ci_high"]
        interval = "needs two seeds" if low is None else f"{low:.1f} to {high:.1f}"
        table.add_row(row["policy"], f"{row['regret_per_task']:.1f}", interval, f"{row['seconds']:.2f}")
    Console().print(table)


def own_parameters(problem: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of this kind of problem; refuse those of another kind."""
    defaults = PROBLEMS[problem].parameters
    for name, value in given.items():
        if value is not None and name not in defaults:
            known = ", ".join(f"--{OPTIONS[own]}" for own in defaults)
            wrong = f"--{OPTIONS[name]} is not an option of --problem {problem}"
            raise ValueError(f"{wrong}, which has {known}. Got {value!r}.")
    return {name: default if given[name] is None else given[name] for name, default in defaults.items()}


def told_rank(text: str | None) -> dict[str, Any]:
    """Return what --policy-rank says to the policies: a number to all, auto to those that can."""
    if text is None:
        return {}
    if text == "auto":
        return {"prior_rank": "auto"}
    if not text.isdecimal():
        raise ValueError(f"--policy-rank must be auto or a whole number. Got {text!r}.")
    return {"rank": int(text), "prior_rank": int(text)}


def check_plot_path(path: Path) -> None:
    """Refuse a picture that could not be written, before the runs and not after them."""
    if path.suffix.lower() not in PLOT_ENDINGS:
        raise ValueError(f"--plot must end in one of {', '.join(PLOT_ENDINGS)}. Got {str(path)!r}.")
    if path.is_dir():
        raise ValueError(f"--plot must be a file. Got the folder {str(path)!r}.")
    if not path.parent.is_dir():
        raise ValueError(f"--plot must lie in a folder that exists. Got {str(path)!r}.")
