"""ARMUL's study: tasks as the paper draws them, errors as it measures them, claims as tables decide them."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from posse.core.statistics import GramStatistics
from posse.estimators import Armul, LowRank, Ridge
from posse.paper.armul import (
    CONSTANTS,
    ESTIMATORS,
    STRUCTURES,
    STUDY,
    ArmulStudy,
    as_published,
    errors_chart,
    estimated,
    figure,
    held_out_errors,
    never_worse,
    prior_beside,
    robust,
)
from posse.paper.armul_published import ERRORS
from posse.paper.registry import figures_named
from tables import armul_table

SMALL = ArmulStudy(n_tasks=9, n_rounds=40, dim=5, rank=2, deltas=(0.0, 0.4))


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("outliers", [0.0, 0.2])
def test_tasks_are_near_the_structure_and_outliers_anywhere(structure: str, outliers: float) -> None:
    cell = {"structure": structure, "outliers": outliers, "delta": 0.3}
    theta, usual = STUDY.parameters_of_tasks(cell, np.random.default_rng(0))
    assert theta.shape == (30, 50)
    assert len(usual) == (24 if outliers else 30)
    exact, same = STUDY.parameters_of_tasks({**cell, "delta": 0.0}, np.random.default_rng(0))
    assert_allclose(usual, same)
    assert_allclose(np.linalg.norm((theta - exact)[usual], axis=1), 0.3)
    assert_allclose(np.linalg.norm(exact, axis=1), 2.0)
    rank = {"mean": 1, "clusters": 3, "low-rank": 3}[structure]
    assert np.linalg.matrix_rank(exact[usual]) == rank
    assert len(np.unique(exact[usual].round(9), axis=0)) == {"mean": 1, "clusters": 3}.get(
        structure, len(usual)
    )
    others = np.setdiff1d(np.arange(30), usual)
    assert np.linalg.matrix_rank(exact[others]) == len(others)


def test_the_constant_is_the_one_with_the_least_error_on_rows_kept_back() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((50, 8, 4))
    theta = rng.standard_normal((8, 1)) @ rng.standard_normal((1, 4)) + 0.2 * rng.standard_normal((8, 4))
    y = np.vecdot(x, theta) + rng.standard_normal((50, 8))
    folds = [GramStatistics.of(x[fold::5], y[fold::5]) for fold in range(5)]
    totals = np.zeros(len(CONSTANTS))
    for fold in range(5):
        kept = np.arange(50) % 5 == fold
        seen = GramStatistics.of(x[~kept], y[~kept])
        for place, constant in enumerate(CONSTANTS):
            found = Armul(rank=1, scale=constant).fit(seen).theta
            totals[place] += np.sum((y[kept] - np.vecdot(x[kept], found)) ** 2)
    by_statistics = np.sum(
        [
            held_out_errors("low-rank", 1, GramStatistics.of(x[k], y[k]), GramStatistics.of(x[~k], y[~k]))
            for k in (np.arange(50) % 5 != fold for fold in range(5))
        ],
        axis=0,
    )
    assert_allclose(by_statistics, totals, rtol=1e-4)
    estimate, chosen = estimated("armul", "low-rank", 1, folds)
    best = CONSTANTS[int(np.argmin(totals))]
    assert chosen == best
    whole = GramStatistics.of(x, y)
    assert_allclose(estimate.theta, Armul(rank=1, scale=best).fit(whole).theta, atol=1e-9)
    assert_allclose(estimated("alone", "", 1, folds)[0].theta, Ridge(penalty=0.0).fit(whole).theta, atol=1e-9)
    hard = estimated("structure", "low-rank", 1, folds)[0].theta
    assert_allclose(hard, LowRank(rank=1).fit(whole).theta, atol=1e-4)


def test_a_cell_is_played_and_says_the_largest_error() -> None:
    for cell in SMALL.cells[::5]:
        table = SMALL.play(cell, 0)
        assert table["estimator"].to_list() == list(ESTIMATORS)
        assert (table["error"] <= table["error_of_all"]).all()
        assert table.select(pl.col("error", "seconds").min() > 0).row(0) == (True, True)
        assert SMALL.play(cell, 0)["error"].to_list() == table["error"].to_list()
        assert SMALL.play(cell, 1)["error"].to_list() != table["error"].to_list()


def test_claims_follow_the_table() -> None:
    published = armul_table(spread=1e-4)
    assert as_published(published).verdict == "holds"
    assert never_worse(published).verdict == "holds"
    assert prior_beside(published).verdict == "holds"
    assert as_published(armul_table({"alone": 1.2})).verdict == "fails"
    assert as_published(armul_table(spread=0.5)).verdict == "undecided"
    assert never_worse(armul_table({"armul": 1.2})).verdict == "fails"
    assert prior_beside(armul_table({"prior": 1.3})).verdict == "fails"
    better, worse = armul_table({"armul": 0.5}, spread=1e-4), armul_table({"armul": 3.0}, spread=1e-4)
    assert robust(better).verdict == "holds"
    assert robust(worse).verdict == "fails"


def test_charts_have_a_panel_for_each_structure_and_the_published_curves() -> None:
    for outliers in (0.0, 0.2):
        chart = errors_chart(armul_table(spread=0.01), outliers)
        assert [panel.title for panel in chart.panels] == list(STRUCTURES.values())
        for panel, structure in zip(chart.panels, STRUCTURES, strict=True):
            labels = [series.label for series in panel.series]
            own = [label for label, _ in ESTIMATORS.values()]
            assert labels == [*own, *(f"{label}, published" for label in own[:3])]
            assert panel.series[-3].y == ERRORS[structure, outliers, "armul"]


def test_the_figure_has_its_name() -> None:
    (found,) = figures_named(("armul",))
    assert found.name == figure().name == "armul"
    assert len(found.study.cells) == 36
