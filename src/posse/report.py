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
from posse.plots import (
    draw_regret_against_round,
    draw_regret_against_tasks,
    regret_against_round,
    regret_against_tasks,
    save,
)
from posse.results import write_json


@dataclass(frozen=True)
class Section:
    """What the page shows of one figure."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    images: tuple[tuple[str, str], ...] = ()
    policies: tuple[str, ...] = ()
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
    by_tasks = regret_against_tasks(table)
    largest = max(table["n_tasks"])
    drawings = {
        "regret-by-tasks": (
            draw_regret_against_tasks(by_tasks, figure.title, log_regret=figure.log_regret),
            f"Regret per task after N = {figure.experiment.horizon} rounds against the number of tasks. "
            "Bars are 95 % intervals over seeds.",
        ),
        "regret-by-round": (
            draw_regret_against_round(regret_against_round(table), f"{figure.title}, T = {largest}"),
            f"Regret per task up to round n, T = {largest}. Bands are 95 % intervals over seeds.",
        ),
    }
    images = []
    for stem, (drawing, caption) in drawings.items():
        for ending in ("svg", "png"):
            save(drawing, out / name / f"{stem}.{ending}")
        encoded = base64.b64encode((out / name / f"{stem}.svg").read_bytes()).decode("ascii")
        images.append((f"data:image/svg+xml;base64,{encoded}", caption))
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
        rows=tuple(_cells(by_tasks)),
        settings=settings,
        remark=figure.remark,
    )


def _cells(by_tasks: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row per rank and number of tasks, with each policy's mean and half-width."""
    half = (pl.col("ci_high") - pl.col("ci_low")) / 2
    rows = []
    for (rank, n_tasks), group in by_tasks.with_columns(half.alias("half")).group_by(
        "rank", "n_tasks", maintain_order=True
    ):
        values = {row["policy"]: (row["regret_per_task"], row["half"]) for row in group.to_dicts()}
        rows.append({"rank": rank, "n_tasks": n_tasks, "values": values})
    return sorted(rows, key=lambda row: (row["rank"], row["n_tasks"]))
