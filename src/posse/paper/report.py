"""Self-contained pages: figures, verdicts, numbers, and how to run it all again."""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure as MatplotlibFigure

from posse.core.files import write_atomically
from posse.lab.registry import POLICIES
from posse.lab.results import final_rounds, summarise, write_json
from posse.paper.claims import Claim
from posse.paper.figure import Comparison, Figure
from posse.paper.registry import COMPARISONS, FIGURES
from posse.suite import Scenario, compare_scenarios, headlines
from posse.viz.charts import embed
from posse.viz.plots import draw_comparison, save

LIBRARIES = ("numpy", "scipy", "numba", "bokeh")


@dataclass(frozen=True)
class Picture:
    """A drawing: as an image for print, and as a chart to explore."""

    image: str
    caption: str
    reading: str
    chart: str


@dataclass(frozen=True)
class Section:
    """What the page shows of one figure."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...] = ()
    policies: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    time: str = ""


@dataclass(frozen=True)
class Report:
    """A page that was written, and the verdicts on it."""

    path: Path
    claims: Mapping[str, tuple[Claim, ...]]


def write_report(tables: Mapping[str, pl.DataFrame], out: Path, *, command: str, minutes: float) -> Report:
    """Draw the figures of some result tables, decide their claims, and write the page.

    Writes `<figure>/regret-by-tasks` and `<figure>/regret-by-round` as PNG and SVG, `claims.json`
    and `report.html`.

    Parameters
    ----------
    tables : mapping
        The long table of each figure, under its name.
    out : Path
        The folder to write to.
    command : str
        How these results were made, for the reader who wants to make them again.
    minutes : float
        How long that took.
    """
    claims = decide(tables)
    sections = [_section(name, table, claims[name], out) for name, table in tables.items()]
    sections += [
        Section(name, comparison.title, claims[name]) for name, comparison in compared(tables).items()
    ]
    decided = {name: [asdict(claim) for claim in items] for name, items in claims.items()}
    write_json(out / "claims.json", decided)
    path = out / "report.html"
    charts = {
        f"{name}-{drawing.stem}": drawing.explore(table)
        for name, table in tables.items()
        for drawing in FIGURES[name].drawings
    }
    _write_page(
        path,
        sections=sections,
        charts=embed(charts),
        command=command,
        minutes=minutes,
        time=in_words(sum(map(run_seconds, tables.values()))),
    )
    return Report(path, claims)


def compared(tables: Mapping[str, pl.DataFrame]) -> dict[str, Comparison]:
    """Return the comparisons whose figures are all there, by a name that tells these."""
    return {"+".join(c.figures): c for c in COMPARISONS if tables.keys() >= set(c.figures)}


def decide(tables: Mapping[str, pl.DataFrame]) -> dict[str, tuple[Claim, ...]]:
    """Decide the claims of each figure, and of each comparison whose figures are all there."""
    claims = {name: tuple(claim(table) for claim in FIGURES[name].claims) for name, table in tables.items()}
    for name, comparison in compared(tables).items():
        some = {figure: tables[figure] for figure in comparison.figures}
        claims[name] = tuple(claim(some) for claim in comparison.claims)
    return claims


def write_comparison(
    scenarios: Sequence[Scenario],
    tables: Mapping[str, pl.DataFrame],
    out: Path,
    *,
    command: str,
    minutes: float,
) -> pl.DataFrame:
    """Compare policies over scenarios, write the page, and return the table that it shows.

    Writes `comparison.html`, `comparison.csv`, `comparison.png` and `comparison.svg`.

    Parameters
    ----------
    scenarios : sequence of Scenario
    tables : mapping
        The long table of each scenario, under the name of its experiment.
    out : Path
        The folder to write to.
    command, minutes
        As in `write_report`.
    """
    data = compare_scenarios(scenarios, tables)
    write_atomically(out / "comparison.csv", data.write_csv)
    seeds = sorted(set(data["n_seeds"]))
    counted = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    title = f"Policies compared over scenarios, {counted} seed{'s' if seeds[-1] > 1 else ''} each"
    _write_page(
        out / "comparison.html",
        scenarios=scenarios,
        summaries={scenario.name: headlines(scenario, data) for scenario in scenarios},
        names=[name for name in POLICIES if name in set(data["policy"])],
        rows=data.partition_by("scenario", as_dict=True, maintain_order=True),
        image=_save_and_embed(draw_comparison(data, title), out / "comparison"),
        command=command,
        minutes=minutes,
    )
    return data


def _write_page(path: Path, **content: Any) -> None:
    """Fill the template of a page's name."""
    environment = Environment(
        loader=PackageLoader("posse.viz", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template(f"{path.name}.j2").render(
        policies=POLICIES,
        versions={
            "posse": version("posse"),
            "Python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        machine=f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        **content,
    )
    write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8"))


def _save_and_embed(picture: MatplotlibFigure, stem: Path) -> str:
    """Save a picture as SVG and PNG, and return it as an address that holds it."""
    for ending in ("svg", "png"):
        save(picture, stem.with_name(f"{stem.name}.{ending}"))
    encoded = base64.b64encode(stem.with_name(f"{stem.name}.svg").read_bytes()).decode("ascii")
    return f"data:image/svg+xml;base64,{encoded}"


def _section(name: str, table: pl.DataFrame, claims: tuple[Claim, ...], out: Path) -> Section:
    figure = FIGURES[name]
    pictures = tuple(
        Picture(
            _save_and_embed(drawing.draw(table, figure.title), out / name / drawing.stem),
            drawing.caption,
            drawing.reading(table),
            f"{name}-{drawing.stem}",
        )
        for drawing in figure.drawings
    )
    return Section(
        name=name,
        title=figure.title,
        claims=claims,
        pictures=pictures,
        policies=figure.experiment.policies,
        columns=figure.columns,
        rows=tuple(_cells(table, list(figure.columns))),
        settings=settings_of(figure, table),
        remark=figure.remark,
        time=in_words(run_seconds(table)),
    )


def settings_of(figure: Figure, table: pl.DataFrame) -> dict[str, str]:
    """Return what all runs of a figure have in common, in words."""
    return {
        "rounds N": ", ".join(map(str, sorted(table["horizon"].unique()))),
        **figure.setting,
        "seeds": seeds_of(table),
        **({"rounds were played": played(figure, table)} if "path" in table.columns else {}),
    }


def seeds_of(table: pl.DataFrame) -> str:
    """Return the seeds of a table, in words."""
    seeds = sorted(table["seed"].unique().to_list())
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"


def played(figure: Figure, table: pl.DataFrame) -> str:
    """Say how the rounds of a figure were played, by its table's column `path`."""
    dealt = "round by round" if figure.experiment.problem == "ellipsoid" else "round by round, contexts drawn"
    words = {"exact": "exact in law, without contexts", "contexts": dealt}
    return "; ".join(words[path] for path in sorted(table["path"].unique(), reverse=True))


def run_seconds(table: pl.DataFrame) -> float:
    """Return the time of all runs of a table, every policy's added up."""
    return float(final_rounds(table)["seconds"].to_numpy().sum())


def in_words(seconds: float) -> str:
    """Return a duration in the unit that suits it.

    Examples
    --------
    >>> in_words(12.3), in_words(600), in_words(9000)
    ('12 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _cells(table: pl.DataFrame, columns: list[str]) -> list[dict[str, Any]]:
    """Return one row per cell of the grid, with each policy's mean and half-width."""
    means = summarise(final_rounds(table), by=[*columns, "policy"])
    half = (pl.col("ci_high") - pl.col("ci_low")) / 2
    rows = []
    for cell, group in means.with_columns(half.alias("half")).group_by(columns, maintain_order=True):
        values = {row["policy"]: (row["regret_per_task"], row["half"]) for row in group.to_dicts()}
        rows.append({"cell": cell, "values": values})
    return rows
