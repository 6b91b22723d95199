"""BOSS's study: what is played, and claims as tables decide them."""

import math

import numpy as np
import polars as pl
import pytest

from posse.paper.boss import (
    BARONS,
    FORMULA,
    LABELS,
    ORACLE,
    OURS,
    PEGE,
    PUBLISHED,
    SEQREPL,
    BossStudy,
    below_the_best,
    contestants,
    figure,
    published,
    published_rows,
    regret_over_tasks,
    totals,
    within_limits,
)
from posse.paper.boss_policies import StudiedBARON
from posse.paper.registry import figures_named
from tables import boss_table

SMALL = BossStudy(n_tasks=12, rounds=1002, dim=4, rank=2)


def test_a_cell_is_played_by_all_and_again_alike() -> None:
    for cell in SMALL.cells:
        table = SMALL.play(cell, 0)
        assert set(table["policy"]) == set(LABELS)
        assert table["tasks"].max() == 12
        (last,) = {rows["regret"].is_sorted() for _, rows in table.group_by("policy")}
        assert last
        assert SMALL.play(cell, 0).drop("seconds").equals(table.drop("seconds"))
    assert (
        SMALL.play(SMALL.cells[0], 1)["regret"].to_list() != SMALL.play(SMALL.cells[0], 0)["regret"].to_list()
    )


def test_where_tasks_are_diverse_two_of_the_published_are_one() -> None:
    policies = contestants("diverse", 3, np.eye(10)[:, :3])
    assert policies[SEQREPL] is policies[BARONS]
    assert isinstance(policies[BARONS], StudiedBARON)
    assert type(contestants("adversary", 3, np.eye(10)[:, :3])[SEQREPL]) is not StudiedBARON


def test_a_published_mean_is_that_of_all_simulations() -> None:
    """By a sample of ten numbers that has the means and deviations of two stored runs of five."""
    runs = PUBLISHED["diverse", PEGE]
    unit = np.array([-1.0, -1.0, 0.0, 1.0, 1.0])
    sample = np.concatenate([mean + deviation * unit / unit.std() for mean, deviation in runs])
    mean, error = published("diverse", PEGE)
    assert mean == pytest.approx(sample.mean())
    assert error == pytest.approx(sample.std(ddof=1) / math.sqrt(10))


def test_claims_follow_the_table() -> None:
    table = boss_table(spread=1e-3)
    for order in ("diverse", "adversary"):
        assert totals(table, order, OURS) == pytest.approx(0.8 * totals(table, order, ORACLE))
        assert published_rows(order)(table).verdict == "holds"
        assert below_the_best(order)(table).verdict == "holds"
        off = published_rows(order)(boss_table({PEGE: 1.02}, spread=1e-3))
        assert off.verdict == "fails"
        assert off.tally == (3, 1)
        assert below_the_best(order)(boss_table({OURS: 1.1}, spread=1e-3)).verdict == "fails"
        assert published_rows(order)(boss_table(seeds=1)).verdict == "undecided"
    evidence = published_rows("diverse")(boss_table({ORACLE: 1.001}, spread=1e-3)).evidence[1]
    centre, error = published("diverse", ORACLE)
    own = centre * 1.001 * 1e-3 * math.sqrt(5 / 3) / 2  # four seeds, one thousandth apart
    assert evidence.estimate == pytest.approx(0.001 * centre / 1e6)
    assert evidence.ci_high is not None
    assert evidence.ci_high - evidence.estimate == pytest.approx(2 * math.hypot(own, error) / 1e6)


def test_the_limits_of_our_policy_are_of_its_mean_and_of_every_stream() -> None:
    """The oracle's published totals are 1.02 and 1.01 million; factors are of ours to them."""
    for order, mean_above, worst_above in (("diverse", 1.0, 0.8), ("adversary", 1.5, 1.38)):
        claim = within_limits(order)(boss_table({OURS: 0.8}, spread=0.01))
        assert (claim.verdict, claim.tally) == ("holds", (2, 0))
        failed = within_limits(order)(boss_table({OURS: mean_above}, spread=0.01))
        assert failed.verdict == "fails"
        assert "above its limit" in failed.reading
        one_bad = within_limits(order)(boss_table({OURS: worst_above}, spread=0.3))
        assert one_bad.evidence[1].sign == -1
        assert "1 of them is above theirs" in one_bad.reading
        assert within_limits(order)(boss_table(seeds=1)).verdict == "undecided"


def test_a_total_that_was_published_is_drawn_where_it_belongs() -> None:
    chart = regret_over_tasks(boss_table(spread=0.01))
    assert [panel.title for panel in chart.panels] == ["diverse tasks", "tasks of an adversary"]
    for panel in chart.panels:
        *own, crosses = panel.series
        assert [series.label for series in own] == [label for label, _ in LABELS.values()]
        assert len({(series.style.colour, series.style.line) for series in own}) == len(own)
        assert crosses.x == (6000.0,) * 4
    assert all(
        len(panel.series) == len(LABELS) for panel in regret_over_tasks(boss_table(n_tasks=100)).panels
    )
    assert LABELS[FORMULA][0] in chart.legend


def test_the_figure_has_its_name() -> None:
    (found,) = figures_named(("boss",))
    assert found.name == figure().name == "boss"
    table = boss_table(spread=0.01)
    assert found.final(table).filter(pl.col("tasks") < 6000).is_empty()
