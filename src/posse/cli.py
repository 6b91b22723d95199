"""The command: reproduce the paper, compare policies, list what there is."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from posse.catalogue import POLICIES, PROBLEMS, NamedProblem
from posse.data import IMAGE_SETS, DataError, load_images
from posse.experiments import (
    FIGURES,
    ON_IMAGES,
    Experiment,
    GridError,
    play_seeds,
    run_experiments,
    saved_results,
    variant,
)
from posse.experiments import Progress as GridProgress
from posse.plots import draw_regret_against_round, regret_against_round, save
from posse.problems.digits import SCALINGS
from posse.problems.gaussian import COVARIANCES
from posse.problems.noise import NOISE_KINDS
from posse.problems.parameters import STRUCTURES
from posse.report import write_report
from posse.results import final_rounds, summarise
from posse.validation import check_choice, check_integer

PAPER = ("fig1", "fig2", *ON_IMAGES, "fig5", "fig6")
QUICK_SEEDS = 5
FULL_SEEDS = 20
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
    "n_classes": "classes",
    "scaling": "scaling",
}

# How a picture's title calls them.
SYMBOLS = {"dim": "d", "rank": "k", "n_tasks": "T", "n_classes": "classes"}

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
errors = Console(stderr=True)


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help=f"Figures to run: {', '.join(PAPER)}. All, if none is named."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help=f"{FULL_SEEDS} seeds per setting, or {QUICK_SEEDS}.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds per setting, instead of --quick or --full.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help=f"Images of {', '.join(ON_IMAGES)}: {', '.join(IMAGE_SETS)} "
            "(default: digits, which need no download; with --full mnist, as in the paper)."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes to use.")] = os.cpu_count() or 1,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
) -> None:
    """Run the paper's experiments; write figures, verdicts and a page.

    Every finished run is saved at once. Stop whenever you like: the same command goes on where it
    stopped, and --full or more --seeds add to what a --quick run has done.

    Writes OUT/report.html, OUT/claims.json and, in a folder for each figure, results.parquet,
    manifest.json and the images. The page also shows the figures that earlier calls left in OUT.

    margin is ours, beside fig3 and fig4: what the margin on images is made of. Image sets other than
    MNIST have folders of their own, such as fig3_digits.
    """
    kept = f" Finished runs are saved in {out}; the same command goes on from there."
    with plain_errors(interrupted=kept):
        images = data if data is not None else "mnist" if full else "digits"
        check_choice("--data", images, IMAGE_SETS)
        for name in figures or ():
            check_choice("figure", name, PAPER)
        if data is not None and figures and not set(figures) & set(ON_IMAGES):
            raise ValueError(f"--data is for {', '.join(ON_IMAGES)}, which are not run. Got {data!r}.")
        names = list(dict.fromkeys(variant(name, images) for name in figures or PAPER))
        n_seeds = check_integer(
            "--seeds", seeds if seeds is not None else FULL_SEEDS if full else QUICK_SEEDS, 1
        )
        check_integer("--jobs", jobs, 1)
        used = fetch_images(PROBLEMS[FIGURES[name].experiment.problem] for name in names)
        for title in used.values():
            errors.print(f"Images: {title}", highlight=False)
        clock = time.perf_counter()
        with progress_bar() as bar:
            task = bar.add_task(f"{' '.join(names)}, {n_seeds} seeds", total=None, runs="")

            def show(state: GridProgress) -> None:
                runs = f"{state.runs}/{state.total_runs} runs"
                bar.update(task, completed=state.work, total=state.total_work, runs=runs)

            experiments = [FIGURES[name].experiment for name in names]
            tables = run_experiments(experiments, seeds=n_seeds, out=out, jobs=jobs, on_progress=show)
        for name in FIGURES.keys() - set(names):
            earlier = saved_results(FIGURES[name].experiment, out)
            if earlier is not None:
                tables[name] = earlier
        tables = {name: tables[name] for name in FIGURES if name in tables}
        command = "\n".join(
            shlex.join(
                [
                    "posse",
                    "reproduce",
                    *again(name),
                    "--seeds",
                    str(table["seed"].n_unique()),
                    "--out",
                    str(out),
                ]
            )
            for name, table in tables.items()
        )
        report = write_report(tables, out, command=command, minutes=(time.perf_counter() - clock) / 60)
        verdicts = Table("figure", "claim", "verdict", box=None)
        for name, claims in report.claims.items():
            for claim in claims:
                verdicts.add_row(name, claim.statement, claim.verdict)
        Console().print(verdicts)
        print(report.path)


@app.command()
def simulate(
    problem: Annotated[str, typer.Option(help=f"Kind of problem: {', '.join(PROBLEMS)}.")] = "gaussian",
    dim: Annotated[int | None, typer.Option(help="d, the number of features (default: 20).")] = None,
    rank: Annotated[
        int | None, typer.Option(help="k, the dimension of the shared representation (default: 2).")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(help="T, the number of tasks played side by side (default: 50).")
    ] = None,
    arms: Annotated[int | None, typer.Option(help="K, the arms of a gaussian problem (default: 5).")] = None,
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
    seeds: Annotated[
        int, typer.Option(help="Number of seeds: each draws a new problem, or new rounds of the same images.")
    ] = 8,
    jobs: Annotated[int, typer.Option(help="Processes to use.")] = os.cpu_count() or 1,
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
        check_integer("--seeds", seeds, 1)
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
            "n_classes": classes,
            "scaling": scaling,
        }
        cell = own_parameters(problem, given)
        told = {**told_rank(policy_rank), "exponent": exponent, "penalty": penalty, "explore": explore}
        options = {name: value for name, value in told.items() if value is not None}
        experiment = Experiment(
            name="simulate", problem=problem, cells=(cell,), policies=names, horizon=rounds, options=options
        )
        data = fetch_images([kind])
        with progress_bar() as bar:
            task = bar.add_task("simulating", total=seeds, runs=f"0/{seeds} seeds")

            def show(done: int) -> None:
                bar.update(task, completed=done, runs=f"{done}/{seeds} seeds")

            table = play_seeds(experiment, seeds=seeds, jobs=jobs, on_progress=show)
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


@app.command("list")
def list_names() -> None:
    """Show the policies, problems and figures that have a name."""
    with plain_errors():
        print_names()


def print_names() -> None:
    """Print a table each of policies, problems and figures."""
    console = Console()
    for heading, entries in (
        ("Policies", {name: policy.summary for name, policy in POLICIES.items()}),
        ("Problems", {name: problem.summary for name, problem in PROBLEMS.items()}),
        (
            "Figures",
            {name: FIGURES[name].title.replace(IMAGE_SETS["mnist"].title, "Images") for name in PAPER},
        ),
    ):
        table = Table(box=None, show_header=False, title=heading, title_justify="left", title_style="bold")
        for name, summary in entries.items():
            table.add_row(name, summary)
        console.print(table)


@contextmanager
def plain_errors(interrupted: str = "") -> Iterator[None]:
    """Turn errors that users can mend into one message and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print("[yellow]Stopped.[/]" + escape(interrupted), soft_wrap=True, highlight=False)
        raise typer.Exit(130) from None
    except MemoryError:
        errors.print("[red]Error:[/] not enough memory for a problem of this size.")
        raise typer.Exit(1) from None
    except (ValueError, GridError, DataError, OSError) as error:
        errors.print(f"[red]Error:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
        raise typer.Exit(2 if isinstance(error, ValueError) else 1) from None


def again(figure: str) -> list[str]:
    """Return the arguments that ask for a figure, whatever the images it was run on."""
    for name in ON_IMAGES:
        for images in IMAGE_SETS:
            if variant(name, images) == figure:
                return [name, "--data", images]
    return [figure]


def fetch_images(kinds: Iterable[NamedProblem]) -> dict[str, str]:
    """Have the image sets of some problems at hand, downloading what is not, and say which they are."""
    titles = []
    for name in dict.fromkeys(kind.images for kind in kinds if kind.images is not None):
        with Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=errors, transient=True
        ) as bar:
            task = bar.add_task(f"{name}: looking", total=None)

            def show(stage: str, done: int, total: int | None, task: TaskID = task, name: str = name) -> None:
                if done == 0 and not errors.is_terminal:
                    errors.print(f"{name}: {stage}", highlight=False)
                bar.update(task, description=f"{name}: {stage}", completed=done, total=total)

            titles.append(load_images(name, on_progress=show).title)
    return {"images": ", ".join(titles)} if titles else {}


def progress_bar() -> Progress:
    """Return a progress bar on standard error."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
    )


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


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"posse {version('posse')}")
        raise typer.Exit


@app.callback()
def options(
    version_wanted: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Many bandits, one representation.

    `posse reproduce` runs the paper's experiments and writes a page with figures and verdicts.
    `posse simulate` compares policies on a problem in one line.
    `posse list` shows the names to use.
    """


def main() -> None:
    """Run the command."""
    app(prog_name="posse")
