"""Figures and the page: drawn from the table given, complete, self-contained."""

import base64
import json
import os
import platform
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from posse.lab.registry import POLICIES
from posse.paper.overlay import Overlay
from posse.paper.registry import FIGURES
from posse.paper.report import write_report
from posse.paper.theory import Setting, finite_upper, infinite_upper
from posse.viz.plots import (
    STYLES,
    draw_regret_against_round,
    draw_regret_against_tasks,
    regret_against_round,
    regret_against_tasks,
    save,
)


def make_table(name: str = "fig1", seeds: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    experiment = FIGURES[name].experiment
    rows = [
        (
            *(value for key, value in cell.items() if key != "horizon"),
            cell.get("horizon", experiment.horizon),
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
        for moment in sorted({1, 100, cell.get("explore", 100), cell.get("horizon", experiment.horizon)})
    ]
    cell = experiment.cells[0]
    sizes = [key for key in cell if key != "horizon"]
    names = [*sizes, "horizon", "seed", "policy", "round", "regret_per_task", "seconds"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_every_policy_has_a_style_and_no_two_of_a_figure_look_alike() -> None:
    assert set(STYLES) == set(POLICIES)
    assert len(set(STYLES.values())) == len(STYLES)
    for figure in FIGURES.values():
        styles = [STYLES[name] for name in figure.experiment.policies]
        assert len({colour for colour, _ in styles}) == len(set(styles)) == len(styles)


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


FULL = [name for name in FIGURES if not name.endswith(("_digits", "_fashion"))]


@pytest.mark.parametrize(("names", "seeds"), [(("fig1", "margin_digits", "fig5", "fig6"), 1), (FULL, 3)])
def test_the_page_is_complete_and_needs_no_network(names: Iterable[str], seeds: int, tmp_path: Path) -> None:
    figures = {name: FIGURES[name] for name in names}
    tables = {name: make_table(name, seeds) for name in figures}
    report = write_report(tables, tmp_path, command="posse reproduce <fig1>", minutes=1.5)
    page = report.path.read_text(encoding="utf-8")
    images = re.findall(r"<img src=\"data:image/svg\+xml;base64,([^\"]*)", page)
    assert len(images) == sum(len(figure.drawings) for figure in figures.values())
    for image in images:
        ElementTree.fromstring(base64.b64decode(image))
    elements = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", elements)
    assert "posse reproduce &lt;fig1&gt;" in page
    decided = json.loads((tmp_path / "claims.json").read_text())
    assert set(decided) == {*figures, "fig5+fig6"}
    for claims in decided.values():
        for claim in claims:
            assert claim["verdict"] in {"holds", "fails", "undecided"}
            assert page.count(claim["statement"].replace("'", "&#39;")) >= 2
    for name, figure in figures.items():
        assert f'<a href="#{name}">' in elements
        assert f'<h2 id="{name}">' in elements
        for drawing in figure.drawings:
            assert (tmp_path / name / f"{drawing.stem}.png").stat().st_size > 10_000
            ElementTree.parse(tmp_path / name / f"{drawing.stem}.svg")


def test_comparisons_need_all_their_figures(tmp_path: Path) -> None:
    report = write_report({"fig5": make_table("fig5", 2)}, tmp_path, command="", minutes=0.1)
    assert set(report.claims) == {"fig5"}


def test_the_page_says_how_it_was_made(tmp_path: Path) -> None:
    path = pl.when(pl.col("policy") == "naive").then(pl.lit("contexts")).otherwise(pl.lit("exact"))
    tables = {
        "fig1": make_table().with_columns(path.alias("path")),
        "fig5": make_table("fig5").with_columns(pl.lit("contexts").alias("path")),
    }
    page = write_report(tables, tmp_path, command="", minutes=1.5).path.read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]*>", " ", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    for library in ("posse", "Python", "numpy", "scipy", "numba", "bokeh"):
        assert re.search(rf"\b{library} \d+\.\d+", shown)
    assert f"{os.cpu_count()} cores, {platform.machine()}" in shown
    assert platform.node() not in shown.split()
    assert re.findall(r"rounds were played\s+(.*?)\s\s", shown) == [
        "exact in law, without contexts; round by round, contexts drawn",
        "round by round",
    ]
    assert len(re.findall(r"seeds\s+0 to 2\b", shown)) == 2
    # 4 cells with 4 policies, and 9 with 7, of 3 seeds: a tenth of a second each
    assert "24 seconds, the time of every policy in every run added up" in shown


@pytest.mark.parametrize(("name", "crossing"), [("fig1", 30), ("fig2", 20), ("fig5", 1000), ("fig6", 1000)])
def test_a_bound_is_fitted_by_one_constant(name: str, crossing: int) -> None:
    bound, policy = (finite_upper, "mlingreedy") if name < "fig3" else (infinite_upper, "e2tc")
    cells = FIGURES[name].experiment.cells
    tight = [
        2.5
        * bound(Setting(rounds=10_000, tasks=c["n_tasks"], dim=c["dim"], rank=c["rank"])).value
        / c["n_tasks"]
        for c in cells
    ]
    table = pl.DataFrame(cells).with_columns(
        pl.Series("regret_per_task", tight), policy=pl.lit(policy), round=10_000, horizon=10_000
    )
    overlay = Overlay(policy=policy, bound=bound)
    curve = overlay.curve(table)
    both = table.join(curve, on=["rank", "n_tasks"], suffix="_fitted")
    assert both.height >= 2 * len(set(table["rank"]))
    np.testing.assert_allclose(both["regret_per_task_fitted"], both["regret_per_task"])
    reading = overlay.reading(table)
    assert "times 2.5," in reading
    assert "off by a factor of 1 at most" in reading
    assert f"Below T = {crossing} its larger term is" in reading


def test_the_overlay_is_in_the_picture_and_in_the_chart() -> None:
    drawing = FIGURES["fig1"].drawings[0]
    table = make_table()
    label = "Theorem 1, constant fitted"
    for axes in drawing.draw(table, "title").axes:
        ((line, *_),) = (bars for bars in axes.containers if bars.get_label() == label)
        assert line.get_linestyle() == "--"
    panels = drawing.explore(table)
    for panel in panels:
        (item,) = (item for item in panel.legend[0].items if item.label.value == label)
        assert item.renderers[0].glyph.line_dash == [6]
    assert {(panel.y_range.start, panel.y_range.end) for panel in panels} == {(0.0, panels[0].y_range.end)}
