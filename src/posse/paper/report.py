"""The report: totals, a picture of every figure beside its verdicts, and then all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from posse.core.extras import extra
from posse.core.files import write_json
from posse.lab.experiment import Experiment
from posse.lab.results import summarise
from posse.paper.claims import Claim
from posse.paper.figure import Comparison, Figure
from posse.paper.verdicts import beside_the_stored, decide, possible, totals_in_words
from posse.viz.interactive import embed
from posse.viz.pages import Picture, in_words, save_picture, thumbnail, write_page
from posse.viz.still import draw

with extra("lab"):
    import polars as pl


@dataclass(frozen=True)
class Section:
    """What the page shows of one figure, or of a comparison of figures."""

    name: str
    title: str
    claims: tuple[tuple[Claim, str], ...]
    thumbnail: str = ""
    pictures: tuple[Picture, ...] = ()
    contestants: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    time: str = ""
    measure: str = ""


@dataclass(frozen=True)
class Report:
    """A page that was written.

    Attributes
    ----------
    path : Path
    claims : mapping
        The verdicts on it, by figure.
    left_out : tuple of str
        Why figures whose results lie in the folder are not on the page, a sentence each.
    """

    path: Path
    claims: Mapping[str, tuple[Claim, ...]]
    left_out: tuple[str, ...] = ()


def write_report(
    figures: Sequence[Figure],
    tables: Mapping[str, pl.DataFrame],
    out: Path,
    *,
    comparisons: Sequence[Comparison] = (),
    minutes: float,
    left_out: tuple[str, ...] = (),
) -> Report:
    """Draw the charts of some figures, decide their claims, and write the page.

    Writes OUT/report.html, OUT/claims.json and, in a folder for each figure, its charts as PNG and SVG.

    Parameters
    ----------
    figures : sequence of Figure
        In the order of the page.
    tables : mapping
        The long table of each figure, under its name.
    out : Path
        The folder to write to.
    comparisons : sequence of Comparison
        Shown where all their figures are.
    minutes : float
        How long the last call took.
    left_out : tuple of str
        Why figures whose results lie in the folder are not on the page, a sentence each.
    """
    _check_tables(figures, tables)
    claims = decide(figures, tables, comparisons)
    decided = {name: [asdict(claim) for claim in some] for name, some in claims.items()}
    write_json(out / "claims.json", decided)
    sections = [_section(figure, tables[figure.name], claims[figure.name], out) for figure in figures]
    sections += [_claims_alone(some, claims[some.name]) for some in possible(figures, comparisons)]
    path = out / "report.html"
    write_page(
        path,
        "report.html.j2",
        sections=sections,
        totals=totals_in_words(chain.from_iterable(claims.values())),
        charts=embed({picture.name: picture.chart for section in sections for picture in section.pictures}),
        command=commands(figures, tables, out),
        minutes=minutes,
        left_out=left_out,
        time=in_words(sum(run_seconds(figure, tables[figure.name]) for figure in figures)),
    )
    return Report(path, claims, left_out)


def _check_tables(figures: Sequence[Figure], tables: Mapping[str, pl.DataFrame]) -> None:
    missing = [figure.name for figure in figures if figure.name not in tables]
    if missing or not figures:
        raise ValueError(
            f"`tables` must hold the results of every figure. Got none of {', '.join(missing) or 'any'}."
        )


def _claims_alone(comparison: Comparison, claims: Iterable[Claim]) -> Section:
    return Section(comparison.name, comparison.title, _beside_stored(comparison.name, claims))


def _beside_stored(name: str, claims: Iterable[Claim]) -> tuple[tuple[Claim, str], ...]:
    return tuple((claim, beside_the_stored(name, claim)) for claim in claims)


def commands(figures: Sequence[Figure], tables: Mapping[str, pl.DataFrame], out: Path) -> str:
    """Return the commands that make the results of some figures again, a line each."""
    lines = (
        [
            *("posse", "reproduce", *figure.command),
            *("--seeds", str(tables[figure.name]["seed"].n_unique()), "--out", str(out)),
        ]
        for figure in figures
    )
    return "\n".join(dict.fromkeys(map(shlex.join, lines)))


def _section(figure: Figure, table: pl.DataFrame, claims: tuple[Claim, ...], out: Path) -> Section:
    charts = figure.charts(table)
    pictures = tuple(
        Picture(
            f"{figure.name}-{chart.stem}", chart, save_picture(draw(chart), out / figure.name / chart.stem)
        )
        for chart in charts
    )
    return Section(
        name=figure.name,
        title=figure.title,
        claims=_beside_stored(figure.name, claims),
        thumbnail=thumbnail(charts[0]),
        pictures=pictures,
        contestants=figure.contestants,
        columns=figure.columns,
        rows=tuple(_cells(figure, table)),
        settings=settings_of(figure, table),
        remark=figure.remark,
        time=in_words(run_seconds(figure, table)),
        measure=figure.value.replace("_", " ").capitalize(),
    )


def settings_of(figure: Figure, table: pl.DataFrame) -> dict[str, str]:
    """Return what all runs of a figure have in common, in words."""
    rounds = (
        {"rounds N": ", ".join(map(str, sorted(table["horizon"].unique())))}
        if "horizon" in table.columns
        else {}
    )
    played_so = {"rounds were played": played(figure, table)} if "path" in table.columns else {}
    return {**rounds, **figure.setting, "seeds": seeds_of(table), **played_so}


def seeds_of(table: pl.DataFrame) -> str:
    """Return the seeds of a table, in words."""
    seeds = sorted(table["seed"].unique().to_list())
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"


def played(figure: Figure, table: pl.DataFrame) -> str:
    """Say how the rounds of a figure were played, by its table's column `path`."""
    static = isinstance(figure.study, Experiment) and figure.study.problem == "ellipsoid"
    dealt = "blocks of one action in one step" if static else "round by round, contexts drawn"
    words = {"exact": "exact in law, without contexts", "contexts": dealt}
    return "; ".join(words[path] for path in sorted(table["path"].unique(), reverse=True))


def run_seconds(figure: Figure, table: pl.DataFrame) -> float:
    """Return the time of all runs of a figure's table, every contestant's added up."""
    return float(figure.final(table)["seconds"].to_numpy().sum())


def _cells(figure: Figure, table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row per cell of the grid, with each contestant's mean and half-width."""
    columns = list(figure.columns)
    means = summarise(figure.final(table), by=[*columns, figure.contest], value=figure.value)
    half = (pl.col("ci_high") - pl.col("ci_low")) / 2
    rows = []
    halved = means.with_columns(half.alias("half"))
    groups = halved.group_by(columns, maintain_order=True) if columns else [((), halved)]
    for cell, group in groups:
        values = {row[figure.contest]: (row[figure.value], row["half"]) for row in group.to_dicts()}
        rows.append({"cell": cell, "values": values})
    return rows
