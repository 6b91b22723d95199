"""`posse reproduce`: the paper's experiments."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from posse.cli.shared import CORES, Address, Engine, Jobs, Out, Seeds, kept_in, plain_errors, play_grid
from posse.lab.engines import check_engine
from posse.lab.grid import saved_results
from posse.numerics.checks import check_choice, check_integer
from posse.paper.claims import Claim
from posse.paper.guarantees import GUARANTEES, measure_guarantees, write_guarantees
from posse.paper.registry import BESIDE, FIGURES, ON_IMAGES, variant
from posse.paper.report import write_report
from posse.problems.images import IMAGE_SETS

PAPER = ("fig1", "fig2", *ON_IMAGES, "fig5", "fig6")
# Theory beside practice: run only when named.
OURS = (*BESIDE, GUARANTEES)
QUICK_SEEDS = 5
FULL_SEEDS = 20


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Figures to run: {', '.join(PAPER)}, which are all run if none is named; or, of ours, "
            f"{', '.join(OURS)}."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help=f"{FULL_SEEDS} seeds per setting, or {QUICK_SEEDS}.")
    ] = False,
    seeds: Seeds = None,
    data: Annotated[
        str | None,
        typer.Option(
            help=f"Images of {', '.join(ON_IMAGES)}: {', '.join(IMAGE_SETS)} "
            "(default: digits, which need no download; with --full mnist, as in the paper)."
        ),
    ] = None,
    jobs: Jobs = CORES,
    engine: Engine = "local",
    address: Address = None,
    out: Out = Path("results"),
) -> None:
    """Run the paper's experiments; write figures, verdicts and a page.

    Every finished run is saved at once. Stop whenever you like: the same command goes on where it
    stopped, and --full or more --seeds add to what a --quick run has done.

    Writes OUT/report.html, OUT/claims.json and, in a folder for each figure, results.parquet,
    manifest.json and the images. The page also shows the figures that earlier calls left in OUT.

    margin is ours, beside fig3 and fig4: what the margin on images is made of. Image sets other than
    MNIST have folders of their own, such as fig3_digits. scaling, bounds and guarantees are ours, too: the
    theorems beside what is measured. They are run only when named; guarantees are estimates, not runs, and
    have no part of the page, but images and verdicts in OUT/guarantees.
    """
    with plain_errors(interrupted=kept_in(out)):
        images = data if data is not None else "mnist" if full else "digits"
        check_choice("--data", images, IMAGE_SETS)
        for name in figures or ():
            check_choice("figure", name, (*PAPER, *OURS))
        if data is not None and figures and not set(figures) & set(ON_IMAGES):
            raise ValueError(f"--data is for {', '.join(ON_IMAGES)}, which are not run. Got {data!r}.")
        asked = [name for name in figures or PAPER if name != GUARANTEES]
        parts = (part for name in asked for part in BESIDE.get(name, (variant(name, images),)))
        names = list(dict.fromkeys(parts))
        n_seeds = check_integer(
            "--seeds", seeds if seeds is not None else FULL_SEEDS if full else QUICK_SEEDS, 1
        )
        check_engine(engine, address)
        check_integer("--jobs", jobs, 1)
        clock = time.perf_counter()
        claims: dict[str, tuple[Claim, ...]] = {}
        written = []
        if names:
            experiments = [FIGURES[name].experiment for name in names]
            tables = play_grid(
                names, experiments, seeds=n_seeds, jobs=jobs, engine=engine, address=address, out=out
            )
            tables |= earlier_tables(names, out)
            tables = {name: tables[name] for name in FIGURES if name in tables}
            minutes = (time.perf_counter() - clock) / 60
            report = write_report(tables, out, command=commands(tables, out), minutes=minutes)
            claims |= report.claims
            written.append(report.path)
        if GUARANTEES in (figures or ()):
            measured = measure_guarantees(seeds=n_seeds, jobs=jobs, out=out)
            claims[GUARANTEES] = write_guarantees(measured, out)
            written.append(out / GUARANTEES)
        verdicts = Table("figure", "claim", "verdict", box=None)
        for name, decided in claims.items():
            for claim in decided:
                verdicts.add_row(name, claim.statement, claim.verdict)
        Console().print(verdicts)
        print(*written, sep="\n")


def earlier_tables(names: list[str], out: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of other figures that earlier calls left."""
    saved = {name: saved_results(FIGURES[name].experiment, out) for name in FIGURES.keys() - set(names)}
    return {name: table for name, table in saved.items() if table is not None}


def commands(tables: Mapping[str, pl.DataFrame], out: Path) -> str:
    """Return the commands that make some tables again, a line each."""
    lines = (
        ["posse", "reproduce", *again(name), "--seeds", str(table["seed"].n_unique()), "--out", str(out)]
        for name, table in tables.items()
    )
    return "\n".join(dict.fromkeys(map(shlex.join, lines)))


def again(figure: str) -> list[str]:
    """Return the arguments that ask for a figure, whatever the images it was run on."""
    for name in ON_IMAGES:
        for images in IMAGE_SETS:
            if variant(name, images) == figure:
                return [name, "--data", images]
    return [next((name for name, parts in BESIDE.items() if figure in parts), figure)]
