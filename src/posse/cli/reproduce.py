"""`posse reproduce`: the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.console import errors, plain_errors
from posse.cli.running import (
    CORES,
    Address,
    Engine,
    Jobs,
    Out,
    Seeds,
    fetch_images,
    kept_in,
    seeds_in_words,
    showing_progress,
)
from posse.lab.engines import Workers
from posse.numerics.checks import check_choice, check_integer
from posse.paper.claims import Claim
from posse.paper.registry import DEFAULT, FIGURES, OF_IMAGES, figures_named
from posse.paper.reproduce import reproduce
from posse.paper.verdicts import SOURCES, beside_the_stored, totals_in_words
from posse.problems.images import IMAGE_SETS

OTHERS = tuple(name for name in FIGURES if name not in DEFAULT)
QUICK_SEEDS = 5
FULL_SEEDS = 20


def command(
    context: typer.Context,
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Figures to run: {', '.join(DEFAULT)}, which are all run if none is named; or, of ours, "
            f"{', '.join(OTHERS)}."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help=f"{FULL_SEEDS} seeds per setting, or {QUICK_SEEDS}.")
    ] = False,
    seeds: Seeds = None,
    data: Annotated[
        str | None,
        typer.Option(
            help=f"Images of {', '.join(OF_IMAGES)}: {', '.join(IMAGE_SETS)} "
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
    theorems beside what is measured. armul and boss are studies of other papers: of Duan and Wang 2023, and
    of tasks that come one after the other. They are run only when named.
    """
    with plain_errors(context, interrupted=kept_in(out)):
        images = data if data is not None else "mnist" if full else "digits"
        check_choice("--data", images, IMAGE_SETS)
        names = tuple(figures or DEFAULT)
        chosen = figures_named(names, images=images)
        if data is not None and not set(names) & set(OF_IMAGES):
            raise ValueError(f"--data is for {', '.join(OF_IMAGES)}, which are not run. Got {data!r}.")
        n_seeds = check_integer(
            "--seeds", seeds if seeds is not None else FULL_SEEDS if full else QUICK_SEEDS, 1
        )
        workers = Workers(jobs=jobs, engine=engine, address=address)
        for title in fetch_images(figure.study.images for figure in chosen).values():
            errors.print(f"Images: {title}", highlight=False)
        about = f"{' '.join(figure.name for figure in chosen)}, {seeds_in_words(n_seeds)}"
        with showing_progress(about, "runs") as show:
            report = reproduce(chosen, seeds=n_seeds, out=out, workers=workers, on_progress=show)
        print_verdicts(report.claims)
        for sentence in report.left_out:
            errors.print(sentence, highlight=False, markup=False, soft_wrap=True)
        print(report.path)


def print_verdicts(claims: Mapping[str, tuple[Claim, ...]]) -> None:
    """Print the verdicts on the paper's claims, those on our questions, and the totals of both."""
    console = Console()
    for source, what in SOURCES.items():
        table = Table("figure", "claim", "verdict", box=None, title=what.capitalize(), title_justify="left")
        for name, some in claims.items():
            for claim in some:
                if claim.source == source:
                    stored = beside_the_stored(name, claim)
                    table.add_row(name, claim.statement, claim.verdict + (f"\n({stored})" if stored else ""))
        if table.row_count:
            console.print(table)
    for sentence in totals_in_words(claim for some in claims.values() for claim in some):
        console.print(sentence, highlight=False)
