"""Self-contained pages: figures, verdicts, numbers, and how to run it all again."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from posse.catalogue import POLICIES
from posse.charts import embed
from posse.experiments import COMPARISONS, FIGURES, Claim, Scenario, compare_scenarios, headlines
from posse.files import write_atomically
from posse.plots import draw_comparison, save
from posse.results import final_rounds, summarise, write_json


@dataclass(frozen=True)
class Picture:
    """A drawing: as an image for print, and as a chart to explore."""

    image: str
    caption: str
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
    sections = [_section(name, table, out) for name, table in tables.items()]
    for comparison in COMPARISONS:
        if tables.keys() >= set(comparison.figures):
            compared = {name: tables[name] for name in comparison.figures}
            decisions = tuple(decide(compared) for decide in comparison.claims)
            sections.append(Section("+".join(comparison.figures), comparison.title, decisions))
    claims = {section.name: section.claims for section in sections}
    decided = {name: [asdict(claim) for claim in items] for name, items in claims.items()}
    write_json(out / "claims.json", decided)
    path = out / "report.html"
    charts = {
        f"{name}-{drawing.stem}": drawing.explore(table)
        for name, table in tables.items()
        for drawing in FIGURES[name].drawings
    }
    _write_page(path, sections=sections, charts=embed(charts), command=command, minutes=minutes)
    return Report(path, claims)


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
        loader=PackageLoader("posse", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template(f"{path.name}.j2").render(
        policies=POLICIES,
        versions={name: version(name) for name in ("posse", "numpy", "scipy")},
        **content,
    )
    write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8"))


def _save_and_embed(picture: Figure, stem: Path) -> str:
    """Save a picture as SVG and PNG, and return it as an address that holds it."""
    for ending in ("svg", "png"):
        save(picture, stem.with_name(f"{stem.name}.{ending}"))
    encoded = base64.b64encode(stem.with_name(f"{stem.name}.svg").read_bytes()).decode("ascii")
    return f"data:image/svg+xml;base64,{encoded}"


def _section(name: str, table: pl.DataFrame, out: Path) -> Section:
    figure = FIGURES[name]
    pictures = tuple(
        Picture(
            _save_and_embed(drawing.draw(table, figure.title), out / name / drawing.stem),
            drawing.caption,
            f"{name}-{drawing.stem}",
        )
        for drawing in figure.drawings
    )
    settings = {
        "rounds N": figure.experiment.horizon,
        "seeds": table["seed"].n_unique(),
        **figure.setting,
    }
    return Section(
        name=name,
        title=figure.title,
        claims=tuple(decide(table) for decide in figure.claims),
        pictures=pictures,
        policies=figure.experiment.policies,
        columns=figure.columns,
        rows=tuple(_cells(table, list(figure.columns))),
        settings=settings,
        remark=figure.remark,
    )


def _cells(table: pl.DataFrame, columns: list[str]) -> list[dict[str, Any]]:
    """Return one row per cell of the grid, with each policy's mean and half-width."""
    means = summarise(final_rounds(table), by=[*columns, "policy"])
    half = (pl.col("ci_high") - pl.col("ci_low")) / 2
    rows = []
    for cell, group in means.with_columns(half.alias("half")).group_by(columns, maintain_order=True):
        values = {row["policy"]: (row["regret_per_task"], row["half"]) for row in group.to_dicts()}
        rows.append({"cell": cell, "values": values})
    return rows
