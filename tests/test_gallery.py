"""The gallery says what its stored results say, of every figure of the paper."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from docs.gallery import build
from docs.gallery.build import Gallery, charts_of, figures_of

from posse.core.files import write_json
from posse.lab.results import write_table
from posse.paper.registry import COMPARISONS
from posse.paper.verdicts import STORED, decide, stored_verdict, to_store
from tables import make_table

PAPER = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6")
NUMBER = re.compile(r"[-+]?\d+\.?\d*")
GALLERY = Gallery()
TABLES = GALLERY.tables()
COMMITTED = (build.FOLDER.parent / "gallery.md").read_text(encoding="utf-8")


def test_every_figure_of_the_paper_is_stored_and_small() -> None:
    assert set(TABLES) >= {*PAPER, "margin", "guarantees"}
    assert sum(path.stat().st_size for path in GALLERY.results.iterdir()) < 10e6


def test_verdicts_are_those_of_the_stored_results() -> None:
    headings = re.split(r"^## (?:(\S+): .*|.*)$", COMMITTED, flags=re.MULTILINE)
    told = {
        name: re.findall(r"^\| \*\*(\w+)\*\* \| (.*?)(?: \*\(our question\)\*)? \| ", text, re.MULTILINE)
        for name, text in zip(headings[1::2], headings[2::2], strict=True)
        if name
    }
    claims = decide(figures_of(TABLES), TABLES, COMPARISONS)
    assert told == {
        name: [(claim.verdict, claim.statement) for claim in some] for name, some in claims.items()
    }
    for name, some in claims.items():
        for claim in some:
            anchor = name.replace("+", "-")
            assert f"| [{name}](#{anchor}) | {claim.statement} | **{claim.verdict}** |" in COMMITTED


def test_the_verdicts_that_posse_brings_along_are_those_of_the_stored_results() -> None:
    found = json.loads((build.ROOT / "src" / "posse" / "paper" / STORED).read_text(encoding="utf-8"))
    assert found == to_store(figures_of(TABLES), TABLES, COMPARISONS)
    assert all(found["seeds"][name] == 20 for name in PAPER)
    for name, some in decide(figures_of(TABLES), TABLES, COMPARISONS).items():
        assert [stored_verdict(name, claim) for claim in some] == [claim.verdict for claim in some]
    (claim,) = decide(figures_of({"margin": TABLES["margin"]}), TABLES)["margin"][:1]
    assert stored_verdict("margin_digits", claim) is None


def test_the_page_is_the_one_that_make_gallery_writes() -> None:
    written = GALLERY.page(TABLES)
    assert NUMBER.sub("#", written) == NUMBER.sub("#", COMMITTED), "run `make gallery`"
    # the last digit may be rounded otherwise on another processor
    found, told = ([float(number) for number in NUMBER.findall(text)] for text in (written, COMMITTED))
    np.testing.assert_allclose(found, told, rtol=1e-3, atol=0.11)


def test_the_tables_on_images_are_those_of_the_stored_results() -> None:
    assert build.images_page(TABLES) == build.IMAGES_PAGE.read_text(encoding="utf-8"), "run `make gallery`"


def test_every_picture_is_there() -> None:
    shown = re.findall(r"!\[.*\]\((.*)\)", COMMITTED)
    assert shown == [f"gallery/{stem}.png" for stem in charts_of(TABLES)]
    for path in shown:
        assert (build.FOLDER.parent / path).read_bytes().startswith(b"\x89PNG")
    hero = charts_of({build.HERO_FIGURE: TABLES[build.HERO_FIGURE]})["fig1-regret-by-tasks"]
    assert {"SharedGreedy", "MLinGreedy", "NaiveGreedy", "IndependentGreedy"} <= set(hero.legend)


def test_results_are_taken_from_a_folder_of_runs(tmp_path: Path) -> None:
    out, gallery = tmp_path / "out", Gallery(tmp_path / "kept")
    with pytest.raises(SystemExit, match="holds no results"):
        gallery.store(out)
    table = make_table("fig5")
    write_table(out / "fig5" / "results.parquet", table)
    write_json(out / "fig5" / "manifest.json", {"parameters": {"posse": "1.2"}, "versions": {"numpy": "3.4"}})
    gallery.store(out)
    assert list(gallery.tables()) == ["fig5"]
    again = gallery.tables()["fig5"]
    assert again.drop("regret_per_task", "seconds").equals(table.drop("regret_per_task", "seconds"))
    np.testing.assert_allclose(again["regret_per_task"], table["regret_per_task"], rtol=1e-7)
    assert "Versions: posse 1.2, numpy 3.4." in gallery.page(gallery.tables())
