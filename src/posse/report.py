"""One self-contained page: figures, verdicts, numbers, and how to run it all again."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined

from posse.catalogue import POLICIES
from posse.experiments import COMPARISONS, FIGURES, Claim
from posse.files import write_atomically
from posse.plots import save
from posse.results import final_rounds, summarise, write_json


@dataclass(frozen=True)
class Section:
    """What the page shows of one figure."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    images: tuple[tuple[str, str], ...] = ()
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
    environment = Environment(
        loader=PackageLoader("posse", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        sections=sections,
        policies=POLICIES,
        command=command,
        minutes=minutes,
        versions={name: version(name) for name in ("posse", "numpy", "scipy")},
    )
    path = out / "report.html"
    write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8"))
    return Report(path, claims)


def _section(name: str, table: pl.DataFrame, out: Path) -> Section:
    figure = FIGURES[name]
    images = []
    for drawing in figure.drawings:
        picture = drawing.draw(table, figure.title)
        for ending in ("svg", "png"):
            save(picture, out / name / f"{drawing.stem}.{ending}")
        encoded = base64.b64encode((out / name / f"{drawing.stem}.svg").read_bytes()).decode("ascii")
        images.append((f"data:image/svg+xml;base64,{encoded}", drawing.caption))
    settings = {
        "rounds N": figure.experiment.horizon,
        "seeds": table["seed"].n_unique(),
        **figure.setting,
    }
    return Section(
        name=name,
        title=figure.title,
        claims=tuple(decide(table) for decide in figure.claims),
        images=tuple(images),
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
