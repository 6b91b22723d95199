"""Draw the gallery from its stored results, which come from a folder of `posse reproduce` if one is named.

    python docs/gallery/build.py [OUT]

`make gallery` calls it. It also writes the verdicts that posse brings along, and the picture of the README.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from posse.core.files import write_json
from posse.lab.results import final_rounds, summarise
from posse.paper import margin
from posse.paper.claims import Claim
from posse.paper.figure import Figure
from posse.paper.figures_3_4 import EPOCHS, RANKS, told
from posse.paper.registry import COMPARISONS, all_figures
from posse.paper.report import run_seconds, seeds_of, settings_of
from posse.paper.verdicts import STORED, decide, possible, to_store
from posse.viz.chart import Chart
from posse.viz.pages import in_words
from posse.viz.still import draw, save

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
# The picture of the README, and the figure whose first chart it is.
IMAGES_PAGE = ROOT / "docs" / "explanation" / "images.md"
HERO, HERO_FIGURE = ROOT / "docs" / "assets" / "regret-by-tasks.png", "fig1"


@dataclass(frozen=True)
class Gallery:
    """Stored results of figures, in a folder.

    Attributes
    ----------
    results : Path
        Holds a Parquet file for each figure, and versions.json.
    """

    results: Path = FOLDER / "results"

    @property
    def versions(self) -> Path:
        """What versions made the results."""
        return self.results / "versions.json"

    def store(self, out: Path) -> None:
        """Keep the results of a folder of `posse reproduce` as small files, and what versions made them."""
        found = [name for name in all_figures() if (out / name / "results.parquet").exists()]
        if not found:
            raise SystemExit(f"{out} holds no results of `posse reproduce`.")
        self.results.mkdir(exist_ok=True)
        versions = json.loads(self.versions.read_text(encoding="utf-8")) if self.versions.exists() else {}
        for name in found:
            table = pl.read_parquet(out / name / "results.parquet").drop("regret_by_task", strict=False)
            study = all_figures()[name].study
            given = study.columns(study.cells[0])  # the parameters of a cell are looked up, and stay exact
            table = table.with_columns(cs.by_dtype(pl.Float64).exclude(*given).cast(pl.Float32))
            table.write_parquet(self.results / f"{name}.parquet", compression="zstd", compression_level=19)
            manifest = json.loads((out / name / "manifest.json").read_text(encoding="utf-8"))
            versions[name] = {"posse": manifest["parameters"]["posse"], **manifest["versions"]}
        write_json(self.versions, versions)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the stored results, in the order of the figures."""
        return {
            name: pl.read_parquet(path).with_columns(pl.col(pl.Float32).cast(pl.Float64))
            for name in all_figures()
            if (path := self.results / f"{name}.parquet").exists()
        }

    def page(self, tables: Mapping[str, pl.DataFrame]) -> str:
        """Return the page's text."""
        figures = figures_of(tables)
        claims = decide(figures, tables, COMPARISONS)
        environment = Environment(
            loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        sections = [_section(figure, tables[figure.name], claims[figure.name]) for figure in figures]
        sections += [
            {"name": some.name, "title": some.title, "claims": claims[some.name], "figure": None}
            for some in possible(figures, COMPARISONS)
        ]
        text: str = environment.get_template("gallery.md.j2").render(
            sections=[{**section, "anchor": section["name"].replace("+", "-")} for section in sections],
            versions=_versions_in_words(json.loads(self.versions.read_text(encoding="utf-8"))),
            time=in_words(sum(run_seconds(figure, tables[figure.name]) for figure in figures)),
        )
        return text + "\n"


def figures_of(tables: Mapping[str, pl.DataFrame]) -> list[Figure]:
    """Return the figures of some tables, in their order."""
    return [all_figures()[name] for name in tables]


def charts_of(tables: Mapping[str, pl.DataFrame]) -> dict[str, Chart]:
    """Return the charts of some tables, by the stem of their picture."""
    return {
        f"{figure.name}-{chart.stem}": chart
        for figure in figures_of(tables)
        for chart in figure.charts(tables[figure.name])
    }


def _section(figure: Figure, table: pl.DataFrame, claims: tuple[Claim, ...]) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title,
        "claims": claims,
        "figure": figure,
        "settings": settings_of(figure, table),
        "seeds": seeds_of(table),
        "time": in_words(run_seconds(figure, table)),
        "charts": figure.charts(table),
    }


POLICIES_ON_IMAGES = {
    **{told(k): f"`{told(k)}`" for k in RANKS},
    "naive": "`naive`, the paper's baseline",
    EPOCHS: f"`{EPOCHS}`: ridge, all data, same epochs",
    "independent-greedy": "`independent-greedy`: the same, frequent updates",
}
LEARNED_FROM = {
    margin.RANDOM: "n random rounds",
    margin.BOTH: "98 random rounds and n − 98 greedy ones, without forgetting",
    margin.OWN: "n − 98 greedy rounds alone, as the paper's baseline",
    margin.SHARED: "the same, low-rank with k = 5, as MLinGreedy",
}


def images_page(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return the page about images with its two tables written from the stored results."""
    columns = []
    for name in ("fig3", "fig4"):
        half = (pl.col("ci_high") - pl.col("ci_low")) / 2
        means = summarise(final_rounds(tables[name]), by=["policy"]).with_columns(half.alias("half"))
        columns.append(
            {row["policy"]: f"{row['regret_per_task']:.0f} ± {row['half']:.0f}" for row in means.to_dicts()}
        )
    regret = ["| policy | T = 10, first five digits | T = 45, all ten |", "|---|---|---|"]
    regret += [
        f"| {words} | {columns[0][policy]} | {columns[1].get(policy, 'not run')} |"
        for policy, words in POLICIES_ON_IMAGES.items()
    ]
    found = summarise(margin.errors_by_rounds(tables["margin"]), by=["policy", "explore"], value="error")
    wrong = dict(found.filter(pl.col("explore") == 882).select("policy", "error").iter_rows())
    errors = ["| learned from | wrong choices at n = 882 |", "|---|---|"]
    errors += [f"| {words} | {100 * wrong[policy]:.1f} % |" for policy, words in LEARNED_FROM.items()]
    text = IMAGES_PAGE.read_text(encoding="utf-8")
    for name, rows in {"regret": regret, "errors": errors}.items():
        block = f"<!-- stored: {name} -->\n" + "\n".join(rows) + "\n<!-- end -->"
        text = re.sub(rf"<!-- stored: {name} -->.*?<!-- end -->", block, text, flags=re.DOTALL)
    return text


def _versions_in_words(versions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return each set of versions once, with the figures that it made if there are several."""
    words: dict[str, list[str]] = {}
    for name, used in versions.items():
        words.setdefault(", ".join(f"{what} {number}" for what, number in used.items()), []).append(name)
    return (
        list(words) if len(words) == 1 else [f"{', '.join(names)}: {text}" for text, names in words.items()]
    )


def main() -> None:
    """Take what the command line names, and draw."""
    gallery = Gallery()
    if len(sys.argv) > 1:
        gallery.store(Path(sys.argv[1]))
    tables = gallery.tables()
    for stem, chart in charts_of(tables).items():
        save(draw(chart), FOLDER / f"{stem}.png")
    save(draw(all_figures()[HERO_FIGURE].charts(tables[HERO_FIGURE])[0]), HERO)
    write_json(ROOT / "src" / "posse" / "paper" / STORED, to_store(figures_of(tables), tables, COMPARISONS))
    (FOLDER.parent / "gallery.md").write_text(gallery.page(tables), encoding="utf-8")
    IMAGES_PAGE.write_text(images_page(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
