"""Figures and the page: drawn from the table given, complete, self-contained."""

import base64
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from posse.catalogue import POLICIES
from posse.experiments import FIGURES
from posse.plots import (
    STYLES,
    draw_regret_against_round,
    draw_regret_against_tasks,
    regret_against_round,
    regret_against_tasks,
    save,
)
from posse.report import write_report


def make_table(name: str = "fig1", seeds: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    experiment = FIGURES[name].experiment
    rows = [
        (
            *cell.values(),
            experiment.horizon,
            seed,
            policy,
            moment,
            moment / 50 + 40 * place + rng.random(),
            0.1,
        )
        for cell in experiment.cells
        if name != "fig1" or (cell["rank"] != 3 and cell["n_tasks"] in (10, 50))
        for seed in range(seeds)
        for place, policy in enumerate(experiment.policies)
        for moment in sorted({1, 100, cell.get("explore", 100), experiment.horizon})
    ]
    cell = experiment.cells[0]
    names = [*cell, "horizon", "seed", "policy", "round", "regret_per_task", "seconds"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_every_policy_has_a_style_and_no_two_of_a_figure_look_alike() -> None:
    assert set(STYLES) == set(POLICIES)
    assert len(set(STYLES.values())) == len(STYLES)
    for figure in FIGURES.values():
        styles = [STYLES[name] for name in figure.experiment.policies]
        assert len({colour for colour, _ in styles}) == len({marker for _, marker in styles}) == len(styles)


def test_curves_show_the_means_and_intervals_of_the_table() -> None:
    data = regret_against_tasks(make_table())
    figure = draw_regret_against_tasks(data, "title")
    assert [axes.get_title() for axes in figure.axes] == ["k = 2", "k = 5"]
    lines = {bars.get_label(): bars for bars in figure.axes[0].containers}
    assert set(lines) == {"MLinGreedy", "NaiveGreedy", "IndependentGreedy", "OracleGreedy"}
    expected = data.filter(pl.col("rank") == 2, pl.col("policy") == "naive")
    centre, _, (bars,) = lines["NaiveGreedy"]
    assert list(centre.get_xdata()) == [10, 50]
    np.testing.assert_allclose(np.asarray(centre.get_ydata(), dtype=float), expected["regret_per_task"])
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends[:, 0], expected["ci_low"].to_numpy())
    np.testing.assert_allclose(ends[:, 1], expected["ci_high"])


def test_rounds_are_those_of_the_largest_number_of_tasks() -> None:
    data = regret_against_round(make_table())
    assert data["n_tasks"].unique().to_list() == [50]
    assert data["round"].unique().sort().to_list() == [100, 10_000]
    figure = draw_regret_against_round(data, "title")
    assert len(figure.axes[0].collections) == 4
    alone = draw_regret_against_round(regret_against_round(make_table(seeds=1)), "title")
    assert len(alone.axes[0].collections) == 0


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_are_saved_in_the_format_of_their_ending(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"figure.{ending}"
    save(draw_regret_against_tasks(regret_against_tasks(make_table()), "title"), path)
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[ending])


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_page_is_complete_and_needs_no_network(seeds: int, tmp_path: Path) -> None:
    tables = {name: make_table(name, seeds) for name in FIGURES}
    report = write_report(tables, tmp_path, command="posse reproduce <fig1>", minutes=1.5)
    page = report.path.read_text(encoding="utf-8")
    images = re.findall(r"<img src=\"data:image/svg\+xml;base64,([^\"]*)", page)
    assert len(images) == sum(len(figure.drawings) for figure in FIGURES.values())
    for image in images:
        ElementTree.fromstring(base64.b64decode(image))
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert "posse reproduce &lt;fig1&gt;" in page
    decided = json.loads((tmp_path / "claims.json").read_text())
    assert set(decided) == {*FIGURES, "fig5+fig6"}
    for claims in decided.values():
        for claim in claims:
            assert claim["verdict"] in {"holds", "fails", "undecided"}
            assert page.count(claim["statement"].replace("'", "&#39;")) >= 2
    for name, figure in FIGURES.items():
        for drawing in figure.drawings:
            assert (tmp_path / name / f"{drawing.stem}.png").stat().st_size > 10_000
            ElementTree.parse(tmp_path / name / f"{drawing.stem}.svg")


def test_comparisons_need_all_their_figures(tmp_path: Path) -> None:
    report = write_report({"fig5": make_table("fig5", 2)}, tmp_path, command="", minutes=0.1)
    assert set(report.claims) == {"fig5"}
