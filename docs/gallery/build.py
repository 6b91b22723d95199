"""Draw the gallery from its stored results, which come from a folder of `posse reproduce` if one is named.

    python docs/gallery/build.py [OUT]

`make gallery OUT=...` calls it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from posse.lab.results import write_json
from posse.paper.registry import FIGURES
from posse.paper.report import compared, decide, in_words, run_seconds, seeds_of, settings_of
from posse.viz.plots import save

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
VERSIONS = RESULTS / "versions.json"
PAGE = FOLDER.parent / "gallery.md"


def store(out: Path) -> None:
    """Keep the results of a folder of `posse reproduce` as small files, and what versions made them."""
    found = [name for name in FIGURES if (out / name / "results.parquet").exists()]
    if not found:
        raise SystemExit(f"{out} holds no results of `posse reproduce`.")
    RESULTS.mkdir(exist_ok=True)
    versions = json.loads(VERSIONS.read_text(encoding="utf-8")) if VERSIONS.exists() else {}
    for name in found:
        table = pl.read_parquet(out / name / "results.parquet").with_columns(
            pl.col(pl.Float64).cast(pl.Float32)
        )
        table.write_parquet(RESULTS / f"{name}.parquet", compression="zstd", compression_level=19)
        manifest = json.loads((out / name / "manifest.json").read_text(encoding="utf-8"))
        versions[name] = {"posse": manifest["parameters"]["posse"], **manifest["versions"]}
    write_json(VERSIONS, versions)


def stored() -> dict[str, pl.DataFrame]:
    """Return the stored results, in the order of the figures."""
    return {
        name: pl.read_parquet(path).with_columns(pl.col(pl.Float32).cast(pl.Float64))
        for name in FIGURES
        if (path := RESULTS / f"{name}.parquet").exists()
    }


def draw(tables: Mapping[str, pl.DataFrame]) -> None:
    """Draw all pictures."""
    for name, table in tables.items():
        for drawing in FIGURES[name].drawings:
            save(drawing.draw(table, FIGURES[name].title), FOLDER / f"{name}-{drawing.stem}.png")


def page(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return the page's text."""
    claims = decide(tables)
    titles = {name: FIGURES[name].title for name in tables}
    titles |= {name: comparison.title for name, comparison in compared(tables).items()}
    environment = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text: str = environment.get_template("gallery.md.j2").render(
        sections=[_section(name, titles[name], tables.get(name), items) for name, items in claims.items()],
        versions=_versions_in_words(json.loads(VERSIONS.read_text(encoding="utf-8"))),
        time=in_words(sum(map(run_seconds, tables.values()))),
    )
    return text + "\n"


def _section(name: str, title: str, table: pl.DataFrame | None, claims: tuple[Any, ...]) -> dict[str, Any]:
    section: dict[str, Any] = {
        "name": name,
        "anchor": name.replace("+", "-"),
        "title": title,
        "claims": claims,
    }
    if table is None:
        return section | {"figure": None}
    figure = FIGURES[name]
    return section | {
        "figure": figure,
        "settings": settings_of(figure, table),
        "seeds": seeds_of(table),
        "time": in_words(run_seconds(table)),
        "readings": {drawing.stem: drawing.reading(table) for drawing in figure.drawings},
    }


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
    if len(sys.argv) > 1:
        store(Path(sys.argv[1]))
    tables = stored()
    draw(tables)
    PAGE.write_text(page(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
