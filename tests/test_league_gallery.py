"""The stored league: small, whole, and what the pages say of it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import polars.testing
import pytest
from docs.gallery import league
from docs.gallery.league import League

from posse.lab.registry import family_of
from posse.suite import SCENARIOS, Scenario, compare, league_tables
from posse.suite.words import verdict_in_words

STORED = League()
TABLES = STORED.tables()
DATA = STORED.data()
PAGE = (league.FOLDER.parent / "league.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+\.?\d*")


def test_what_is_stored_is_small_and_what_the_scenarios_play() -> None:
    assert (STORED.results / "league.parquet").stat().st_size < 2e6
    for name, table in TABLES.items():
        experiment = SCENARIOS[name].experiment
        assert tuple(table["policy"].unique(maintain_order=True)) == experiment.names
        assert table["horizon"].unique().to_list() == [experiment.horizon]
        assert table.height == len(experiment.names) * table["seed"].n_unique()
        assert table["seed"].min() == 0


def test_the_page_begins_with_the_verdict_and_is_the_one_that_make_league_writes() -> None:
    assert PAGE.index(f"**{verdict_in_words(DATA)}**") < PAGE.index("![")
    written = STORED.page(DATA)
    assert NUMBER.sub("#", written) == NUMBER.sub("#", PAGE), "run `make league`"
    found, told = ([float(number) for number in NUMBER.findall(text)] for text in (written, PAGE))
    np.testing.assert_allclose(found, told, rtol=1e-3, atol=0.011)


def test_the_tables_on_sharing_are_those_of_the_stored_results() -> None:
    assert league.sharing_page(DATA) == league.SHARING.read_text(encoding="utf-8"), "run `make league`"


def test_what_was_measured_of_rivals_is_that_of_the_stored_results() -> None:
    page = league.RIVALS.read_text(encoding="utf-8")
    assert league.rivals_page(DATA) == page, "run `make league`"
    names = {some.policy for table in league_tables(DATA) for some in table.standings}
    said = [name for names in league.MEASURED.values() for name in names]
    assert {name for name in said if name in names} == set(said)
    assert {name for name in names if family_of(name) == "rivals"} <= set(said)


def test_that_most_scenarios_have_one_seed_is_said() -> None:
    assert re.search("One seed has no intervals|have one seed, and so no intervals", PAGE)
    assert "no intervals" not in STORED.page(DATA.with_columns(n_seeds=2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "policy", "tolerance"), [("few-tasks", "shared", 1e-2), ("stream-diverse", "baron", 1e-3)]
)
def test_stored_results_are_those_of_the_policies_as_they_are(
    scenario: str, policy: str, tolerance: float
) -> None:
    """Or the page says that they are not. Linear algebra of other processors moves BARON's by 2e-4."""
    experiment = replace(SCENARIOS[scenario].experiment, policies=(policy,))
    played = experiment.play(experiment.cells[0], 0)
    now = played.filter(round=experiment.horizon)["regret_per_task"].item()
    stored = TABLES[scenario].filter(policy=policy, seed=0)["regret_per_task"].item()
    made = json.loads((STORED.results / "league.json").read_text(encoding="utf-8"))
    if now != pytest.approx(stored, rel=tolerance):
        said = f"{policy} has {now} in {scenario}, {stored} is stored: play the league again, or say it there"
        assert made["outdated"], said
    assert made["outdated"] in PAGE


def test_every_picture_is_there() -> None:
    shown = re.findall(r"!\[.*\]\(gallery/(.*)\.png\)", PAGE)
    assert shown == list(league.pictures(DATA))
    for stem in shown:
        assert (league.FOLDER / f"{stem}.png").read_bytes().startswith(b"\x89PNG")


def small(name: str) -> Scenario:
    experiment = SCENARIOS[name].experiment
    cell = {**experiment.cells[0], "dim": 5, "n_tasks": 5}
    few = replace(experiment, cells=(cell,), horizon=50, policies=("shared", "naive", "oracle-greedy"))
    return replace(SCENARIOS[name], experiment=few)


def test_results_are_taken_from_a_folder_and_say_the_same(tmp_path: Path) -> None:
    kept = League(tmp_path / "kept")
    with pytest.raises(SystemExit, match="holds no results"):
        kept.store(tmp_path)
    played = compare([small("few-tasks"), small("trap")], seeds=2, out=tmp_path / "out", known=())
    kept.store(tmp_path / "out")
    pl.testing.assert_frame_equal(kept.data(), played.data, check_exact=False, rel_tol=1e-6)
    made = json.loads((kept.results / "league.json").read_text(encoding="utf-8"))
    assert {"posse", "numpy", "scipy", "python"} <= set(made["versions"])
    page = kept.page(kept.data())
    assert page.count("`few-tasks`") >= 2
    assert "posse compare few-tasks trap --seeds 2 --out results" in page
