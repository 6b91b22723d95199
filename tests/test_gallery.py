"""The gallery says what its stored results say, of every figure of the paper."""

import re
from pathlib import Path

import numpy as np
import pytest
from docs.gallery import build

from posse.lab.results import write_json, write_table
from posse.paper.registry import FIGURES
from posse.paper.report import decide
from test_report import make_table

PAPER = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6")
NUMBER = re.compile(r"[-+]?\d+\.?\d*")
COMMITTED = build.PAGE.read_text(encoding="utf-8")


def test_every_figure_of_the_paper_is_stored_and_small() -> None:
    assert set(build.stored()) >= {*PAPER, "margin"}
    assert sum(path.stat().st_size for path in build.RESULTS.iterdir()) < 10e6


def test_verdicts_are_those_of_the_stored_results() -> None:
    headings = re.split(r"^## (?:(\S+): .*|.*)$", COMMITTED, flags=re.MULTILINE)
    told = {
        name: re.findall(r"^\| \*\*(\w+)\*\* \| (.*?)(?: \*\(our question\)\*)? \| ", text, re.MULTILINE)
        for name, text in zip(headings[1::2], headings[2::2], strict=True)
        if name
    }
    claims = decide(build.stored())
    assert told == {
        name: [(claim.verdict, claim.statement) for claim in some] for name, some in claims.items()
    }
    for name, some in claims.items():
        for claim in some:
            anchor = name.replace("+", "-")
            assert f"| [{name}](#{anchor}) | {claim.statement} | **{claim.verdict}** |" in COMMITTED


def test_the_page_is_the_one_that_make_gallery_writes() -> None:
    written = build.page(build.stored())
    assert NUMBER.sub("#", written) == NUMBER.sub("#", COMMITTED), "run `make gallery`"
    # the last digit may be rounded otherwise on another processor
    found, told = ([float(number) for number in NUMBER.findall(text)] for text in (written, COMMITTED))
    np.testing.assert_allclose(found, told, rtol=1e-3, atol=0.11)


def test_every_picture_is_there() -> None:
    shown = re.findall(r"!\[.*\]\((.*)\)", COMMITTED)
    drawn = [f"{name}-{drawing.stem}" for name in build.stored() for drawing in FIGURES[name].drawings]
    assert shown == [f"gallery/{stem}.png" for stem in drawn]
    for path in shown:
        assert (build.PAGE.parent / path).read_bytes().startswith(b"\x89PNG")


def test_results_are_taken_from_a_folder_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, kept = tmp_path / "out", tmp_path / "kept"
    monkeypatch.setattr(build, "RESULTS", kept)
    monkeypatch.setattr(build, "VERSIONS", kept / "versions.json")
    with pytest.raises(SystemExit, match="holds no results"):
        build.store(out)
    table = make_table("fig5")
    write_table(out / "fig5" / "results.parquet", table)
    write_json(out / "fig5" / "manifest.json", {"parameters": {"posse": "1.2"}, "versions": {"numpy": "3.4"}})
    build.store(out)
    assert list(build.stored()) == ["fig5"]
    again = build.stored()["fig5"]
    assert again.drop("regret_per_task", "seconds").equals(table.drop("regret_per_task", "seconds"))
    np.testing.assert_allclose(again["regret_per_task"], table["regret_per_task"], rtol=1e-7)
    assert "Versions: posse 1.2, numpy 3.4." in build.page(build.stored())
