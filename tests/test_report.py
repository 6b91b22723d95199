"""Figures and the page: drawn from the table given, complete, self-contained."""

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


def make_table(seeds: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (30, rank, n_tasks, 5, 10_000, seed, policy, moment, moment / 50 + 40 * place + rng.random(), 0.1)
        for rank in (2, 5)
        for n_tasks in (10, 50)
        for seed in range(seeds)
        for place, policy in enumerate(FIGURES["fig1"].experiment.policies)
        for moment in (1, 100, 10_000)
    ]
    names = [
        "dim",
        "rank",
        "n_tasks",
        "n_arms",
        "horizon",
        "seed",
        "policy",
        "round",
        "regret_per_task",
        "seconds",
    ]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_every_policy_has_a_style_and_no_two_look_alike() -> None:
    assert set(STYLES) == set(POLICIES)
    assert len({colour for colour, _ in STYLES.values()}) == len(STYLES)
    assert len({marker for _, marker in STYLES.values()}) == len(STYLES)


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
    tables = {"fig1": make_table(seeds), "fig2": make_table(seeds)}
    report = write_report(tables, tmp_path, command="posse reproduce <fig1>", minutes=1.5)
    page = report.path.read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 4
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert "posse reproduce &lt;fig1&gt;" in page
    decided = json.loads((tmp_path / "claims.json").read_text())
    for name, figure in FIGURES.items():
        assert len(decided[name]) == len(figure.claims)
        for claim in decided[name]:
            assert claim["verdict"] in {"holds", "fails", "undecided"}
            assert page.count(claim["statement"].replace("'", "&#39;")) >= 2
        for stem in ("regret-by-tasks", "regret-by-round"):
            assert (tmp_path / name / f"{stem}.png").stat().st_size > 10_000
            ElementTree.parse(tmp_path / name / f"{stem}.svg")
