"""Tables to statistics: every source, a naive second road, an account of all that is amiss, bad input."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from posse import Encoder, GramStatistics
from posse.core.columns import CategoryColumn, DateColumn, NumberColumn
from posse.logs import LogSummary, Recipe, diagnose, fit, summarise
from posse.logs.accumulate import Accumulator
from posse.logs.once import scan_once
from posse.logs.parts import RandomParts, summarise_parts
from posse.logs.prepare import Request
from posse.logs.profile import Spread
from posse.logs.scan import Roles
from posse.logs.sources import Source
from posse.logs.summarise import summary_of as summary_from
from posse.logs.tables import LocalTable

N_ROWS = 3000


def make_log(seed: int = 0) -> pd.DataFrame:
    """A log with numbers, categories, dates and arms, whole but for some prices and colours."""
    rng = np.random.default_rng(seed)
    price = rng.normal(100, 20, N_ROWS)
    price[rng.random(N_ROWS) < 0.05] = np.nan
    colour = rng.choice(["red", "blue", "green", "odd"], N_ROWS, p=[0.5, 0.3, 0.197, 0.003]).astype(object)
    colour[rng.random(N_ROWS) < 0.1] = None
    minutes = rng.integers(0, 400 * 1440, N_ROWS)
    return pd.DataFrame(
        {
            "shop": [f"shop-{i}" for i in rng.integers(12, size=N_ROWS)],
            "price": price,
            "visits": rng.integers(0, 50, N_ROWS),
            "colour": colour,
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min"),
            "loyal": rng.random(N_ROWS) < 0.3,
            "reward": rng.normal(size=N_ROWS),
            "weight": rng.random(N_ROWS),
            "offer": rng.choice(["ham", "jam"], N_ROWS),
        }
    )


LOG = make_log()
FEATURES = ["price", "visits", "colour", "at", "loyal"]


def summary_of(source: Any, **given: Any) -> LogSummary:
    return summarise(source, **({"task": "shop", "reward": "reward", "features": FEATURES} | given))


def assert_equal(found: LogSummary, expected: LogSummary, rel: float = 1e-10) -> None:
    assert found.tasks == expected.tasks
    assert found.features == expected.features
    for name in ("gram", "moment", "square", "count"):
        values = getattr(expected.statistics, name)
        largest = np.abs(values).max()
        assert getattr(found.statistics, name) == pytest.approx(values, rel=rel, abs=rel * largest)


def naive(log: pd.DataFrame, summary: LogSummary, weights: Any = None) -> GramStatistics:
    """The statistics of a whole log by its encoder, all rows at once."""
    x = summary.encoder.encode(log, arm=log["offer"] if summary.encoder.arms else None)
    number = {name: place for place, name in enumerate(summary.tasks)}
    tasks = [number[name] for name in log["shop"]]
    return GramStatistics.from_rows(tasks, x, log["reward"], len(number), weights)


@pytest.mark.parametrize("arm", [None, "offer"])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_statistics_equal_those_of_all_rows_at_once(arm: str | None, weight: str | None) -> None:
    found = summary_of(LOG, arm=arm, weight=weight)
    expected = naive(LOG, found, None if weight is None else LOG[weight])
    for name in ("gram", "moment", "square", "count"):
        values = getattr(expected, name)
        assert getattr(found.statistics, name) == pytest.approx(values, rel=1e-10, abs=1e-8)
    assert found.account.used == found.account.rows == N_ROWS


def test_the_encoder_is_learned_from_the_log() -> None:
    columns = {column.name: column for column in summary_of(LOG).encoder.columns}
    price, colour, at, loyal = columns["price"], columns["colour"], columns["at"], columns["loyal"]
    assert isinstance(price, NumberColumn)
    assert (price.mean, price.scale) == pytest.approx((LOG.price.mean(), LOG.price.std(ddof=0)), rel=1e-12)
    assert price.missing
    assert isinstance(colour, CategoryColumn)
    assert colour == CategoryColumn(name="colour", levels=("red", "blue", "green"), other=True, missing=True)
    assert isinstance(at, DateColumn)
    assert at.parts == ("trend", "hour", "weekday", "season")
    assert loyal == CategoryColumn(name="loyal", levels=("false", "true"))
    visits = columns["visits"]
    assert isinstance(visits, NumberColumn)
    assert not visits.missing


class Stream:
    """Something that nobody has heard of, with an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda folder: LOG,
    "polars": lambda folder: pl.from_pandas(LOG),
    "arrow": lambda folder: pa.Table.from_pandas(LOG),
    "stream": lambda folder: Stream(pa.Table.from_pandas(LOG)),
    "reader": lambda folder: pa.Table.from_pandas(LOG).to_reader(max_chunksize=700),
    "relation": lambda folder: duckdb.sql(f"select * from '{folder}/a/log.parquet'"),
    "query": lambda folder: f"select * from '{folder}/a/log.parquet'",
    "file": lambda folder: folder / "a" / "log.parquet",
    "folder": lambda folder: str(folder / "parts"),
    "pattern": lambda folder: str(folder / "parts" / "*.parquet"),
    "list": lambda folder: [folder / "parts" / f"{part}.parquet" for part in range(3)],
    "csv": lambda folder: folder / "log.csv",
    "tsv": lambda folder: folder / "log.tsv",
    "gzip": lambda folder: folder / "log.csv.gz",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "a").mkdir()
    (folder / "parts").mkdir()
    LOG.to_parquet(folder / "a" / "log.parquet", compression="zstd", row_group_size=500)
    for part, rows in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        LOG.iloc[rows].to_parquet(folder / "parts" / f"{part}.parquet")
    LOG.to_csv(folder / "log.csv", index=False)
    LOG.to_csv(folder / "log.csv.gz", index=False)
    LOG.to_csv(folder / "log.tsv", index=False, sep="\t")
    return folder


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_one_answer(kind: str, folder: Path) -> None:
    found = summary_of(SOURCES[kind](folder))
    expected = summary_of(LOG)
    if "." in str(SOURCES[kind](folder)) and kind in ("csv", "tsv", "gzip"):
        # a CSV file calls the levels of a flag as it writes them
        names = tuple(name.replace("loyal=True", "loyal=true") for name in found.features)
        assert names == expected.features
        assert found.statistics.gram == pytest.approx(expected.statistics.gram, rel=1e-10, abs=1e-6)
    else:
        assert_equal(found, expected)


def test_a_given_encoder_is_taken_as_it_is() -> None:
    learned = summary_of(LOG)
    half = LOG.iloc[: N_ROWS // 2]
    again = summary_of(half, encoder=learned.encoder)
    assert again.encoder is learned.encoder
    rest = summary_of(LOG.iloc[N_ROWS // 2 :], encoder=learned.encoder)
    assert again.statistics.gram + rest.statistics.gram == pytest.approx(
        learned.statistics.gram, rel=1e-9, abs=1e-9
    )


def test_nothing_depends_on_the_order_of_rows() -> None:
    shuffled = LOG.sample(frac=1.0, random_state=1)
    assert_equal(summary_of(shuffled), summary_of(LOG), rel=1e-9)


def findings(summary: LogSummary) -> dict[tuple[str, str], tuple[int, int | None]]:
    return {(item.column, item.what): (item.count, item.first) for item in summary.account.findings}


def test_what_is_amiss_is_counted_with_its_first_row() -> None:
    log = LOG.astype({"visits": float})
    log.loc[[7, 9], "reward"] = np.nan
    log.loc[3, "reward"] = np.inf
    log.loc[[100, 200], "shop"] = None
    log.loc[50, "visits"] = 1e80
    log.loc[[60, 61], "price"] = [np.inf, -np.inf]
    log.loc[70:72, "weight"] = [-1.0, np.nan, 0.0]
    found = summary_of(log, weight="weight")
    noted = findings(found)
    assert noted["reward", "missing values"] == (2, 8)
    assert noted["reward", "infinite values"] == (1, 4)
    assert noted["shop", "rows without a task"] == (2, 101)
    assert noted["visits", "values beyond 1e+75"] == (1, 51)
    assert noted["price", "infinite values"] == (2, 61)
    assert noted["price", "missing values"] == (
        int(log.price.isna().sum()),
        int(log.price.isna().argmax()) + 1,
    )
    assert noted["weight", "negative weights"] == (1, 71)
    assert noted["weight", "missing values"] == (1, 72)
    assert found.account.rows - found.account.used == 2 + 1 + 2 + 2
    kept = log[log.reward.abs().lt(1e75) & log.shop.notna() & log.weight.ge(0)]
    expected = naive(kept.assign(visits=kept.visits.where(kept.visits < 1e75)), found, kept.weight)
    assert found.statistics.gram == pytest.approx(expected.gram, rel=1e-9, abs=1e-9)


def test_rows_with_gaps_can_be_dropped_or_refused() -> None:
    whole = LOG.dropna()
    dropped = summary_of(LOG, missing="drop", encoder=summary_of(whole).encoder)
    assert_equal(dropped, summary_of(whole))
    assert dropped.account.rows - dropped.account.used == N_ROWS - len(whole)
    with pytest.raises(
        ValueError, match=r"every row must be whole. Got price: [0-9]+ missing values, first in row [0-9]+;"
    ):
        summary_of(LOG, missing="refuse")
    assert summary_of(whole, missing="refuse").account.used == len(whole)


def test_texts_that_should_be_numbers(tmp_path: Path) -> None:
    lines = ["shop,price,zip,reward"]
    lines += [
        f"s{n % 3},{'n/a' if n % 50 == 7 else 'free' if n == 30 else n / 7},{n % 4},{n % 5}"
        for n in range(200)
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    found = summarise(tmp_path / "log.csv", task="shop", reward="reward")
    assert findings(found)["price", "texts that are no numbers"] == (1, 31)
    assert findings(found)["price", "missing values"] == (4, 8)
    assert found.features == ("(constant)", "price", "price missing", "zip")
    named = summarise(tmp_path / "log.csv", task="shop", reward="reward", encoder=Recipe(categories=("zip",)))
    assert named.features[3:] == ("zip=0", "zip=1", "zip=2", "zip=3")
    # in a Parquet file text is text, unless there are many different numbers in it
    frame = pd.read_csv(tmp_path / "log.csv", dtype=str, keep_default_na=False).astype({"reward": float})
    typed = summarise(frame, task="shop", reward="reward")
    assert typed.features == ("(constant)", "price", "price missing", "zip=0", "zip=1", "zip=2", "zip=3")
    assert ("price", "texts that are numbers") in findings(typed)


def test_mixed_objects_are_read_as_text() -> None:
    log = LOG[["shop", "reward"]].assign(price=[*["cheap", 3], *np.arange(N_ROWS - 2.0).tolist()])
    found = summarise(log.astype({"price": object}), task="shop", reward="reward")
    assert findings(found)["price", "texts that are no numbers"] == (1, 1)
    assert found.features == ("(constant)", "price")


def test_columns_that_tell_nothing_are_left_out_and_named() -> None:
    log = LOG.assign(
        one=1.0, id=[f"order-{n}" for n in range(N_ROWS)], empty=None, same="x", list=[[1.0]] * N_ROWS
    )
    found = summary_of(log, features=[*FEATURES, "one", "id", "empty", "same", "list"])
    assert found.features == summary_of(LOG).features
    noted = {item.column for item in found.account.findings if "left out" in item.done}
    assert noted == {"one", "id", "empty", "same", "list"}


def test_levels_may_be_called_as_gaps_of_numbers_are(tmp_path: Path) -> None:
    lines = ["shop,offer,reward", *(f"a,{('none', 'ham', '-')[n % 3]},{n}" for n in range(90)), "a,,1", ""]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    found = summarise(tmp_path / "log.csv", task="shop", reward="reward")
    assert found.features == ("(constant)", "offer=-", "offer=ham", "offer=none")
    assert found.statistics.gram[0, 1:, 0].tolist() == [30, 30, 30]
    assert findings(found) == {("offer", "missing values"): (1, 91)}


def test_a_million_levels_are_one_other_level() -> None:
    codes = np.arange(1_000_000)
    log = pa.table(
        {
            "shop": pa.array((codes % 5).astype(str)),
            "sku": pa.array(np.where(codes % 3 == 0, "usual", codes.astype(str))),
            "reward": (codes % 7).astype(float),
        }
    )
    found = summarise(log, task="shop", reward="reward")
    assert found.features == ("(constant)", "sku=(other)")
    assert found.statistics.gram[:, 1, 1].sum() == np.count_nonzero(codes % 3)


def test_times_in_a_text_may_have_a_zone(tmp_path: Path) -> None:
    lines = [f"a,2026-03-0{1 + n % 7} 10:00:00{'+01:00' if n % 3 else ''},{n}" for n in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["shop,at,reward", *lines, ""]))
    found = summarise(tmp_path / "log.csv", task="shop", reward="reward")
    noted = findings(found)
    assert noted["at", "times with a zone"] == (40, 2)
    assert noted["at", "times without a zone"] == (20, 1)
    given = summarise(tmp_path / "log.csv", task="shop", reward="reward", encoder=found.encoder)
    assert findings(given) == noted
    lines = [line.replace("+01:00", "") for line in lines]
    (tmp_path / "log.csv").write_text("\n".join(["shop,at,reward", *lines, ""]))
    assert not findings(summarise(tmp_path / "log.csv", task="shop", reward="reward"))


def test_times_with_a_zone_are_those_of_utc() -> None:
    naive_times = LOG["at"].dt.tz_localize("Europe/Oslo", ambiguous=True, nonexistent="shift_forward")
    found = summary_of(LOG.assign(at=naive_times))
    utc = summary_of(LOG.assign(at=naive_times.dt.tz_convert("UTC").dt.tz_localize(None)))
    assert_equal(found, utc)
    assert findings(found)["at", "times with a zone"] == (N_ROWS, 1)
    assert ("at", "times without a zone") not in findings(found)


def test_interactions_and_own_columns_by_recipe() -> None:
    recipe = Recipe(interactions=(("price", "loyal"),), own=("visits",))
    found = summary_of(LOG, arm="offer", encoder=recipe)
    assert "price × loyal=true" in found.features
    assert [name for name in found.features if name.startswith("ham")] == ["ham: level", "ham: visits"]
    expected = naive(LOG, found)
    assert found.statistics.gram == pytest.approx(expected.gram, rel=1e-9, abs=1e-8)


def test_arms_that_an_encoder_does_not_know_are_counted() -> None:
    encoder = summary_of(LOG, arm="offer").encoder
    log = LOG.copy()
    log.loc[[4, 5], "offer"] = "spam"
    log.loc[6, "offer"] = None
    noted = findings(summary_of(log, arm="offer", encoder=encoder))
    assert noted["offer", "rows of arms that the encoder does not know"] == (2, 5)
    assert noted["offer", "rows without an arm"] == (1, 7)


def test_propensities_are_no_features_and_bad_ones_are_counted() -> None:
    log = LOG.assign(chance=0.5)
    log.loc[10:11, "chance"] = [0.0, 1.5]
    found = summarise(
        log.drop(columns=["weight", "offer"]), task="shop", reward="reward", propensity="chance"
    )
    assert "chance" not in found.features
    assert findings(found)["chance", "propensities outside ]0, 1]"] == (2, 11)
    assert found.account.used == N_ROWS


def test_tasks_of_one_row_and_equal_rewards_are_said() -> None:
    log = pd.DataFrame({"shop": ["a", "b", "b"], "x": [1.0, 2.0, 3.0], "reward": [2.0, 2.0, 2.0]})
    noted = findings(summarise(log, task="shop", reward="reward"))
    assert noted["shop", "tasks of one row, as a"][0] == 1
    assert noted["reward", "equal rewards, 2"][0] == 3
    with pytest.warns(UserWarning, match="reward: 3 equal rewards, 2: nothing can be learned"):
        fit(log, task="shop", reward="reward")


def test_booleans_are_rewards_and_numbers_are_names() -> None:
    log = pd.DataFrame({"shop": [3, 3, 11] * 20, "x": np.arange(60.0), "reward": [True, False, True] * 20})
    found = summarise(log, task="shop", reward="reward")
    assert found.tasks == ("11", "3")
    assert found.statistics.square.tolist() == [20, 20]


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        (LOG, {"task": "shp"}, "`task` must be a known name. Got 'shp'. Did you mean 'shop'"),
        (LOG, {"features": ["prise"]}, "a column of `features` .* Did you mean 'price'"),
        (LOG, {"features": ["reward"]}, "must not hold the task or the reward"),
        (LOG, {"task": "reward"}, "columns with a part of their own must differ"),
        (LOG, {"missing": "ignore"}, "`missing` must be one of impute, drop, refuse"),
        (LOG, {"engine": "sparks"}, "Did you mean 'spark'"),
        (LOG, {"encoder": Recipe(categories=("prize",))}, "Did you mean 'price'"),
        (LOG, {"arm": "shop", "task": "offer", "encoder": Recipe(rare=0.0)}, None),
        (LOG.iloc[:0], {}, "a log must have rows with a task and a reward"),
        (LOG.assign(reward="x"), {}, "a log must have rows with a task and a reward"),
        (42, {}, "a log must be a file, pattern, folder"),
        ("nowhere/*.parquet", {}, "matches none"),
        ("select * from nothing", {}, "the query cannot be run"),
    ],
)
def test_what_cannot_be_read_is_said(source: Any, given: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert len(summary_of(source, **given).encoder.arms) == 12
        return
    with pytest.raises(ValueError, match=message):
        summary_of(source, **given)


def test_too_many_arms_are_refused() -> None:
    log = LOG.assign(offer=[f"offer-{n % 300}" for n in range(N_ROWS)])
    with pytest.raises(ValueError, match="which has 300: describe arms by features"):
        summary_of(log, arm="offer")


def test_files_that_are_broken_are_named(folder: Path, tmp_path: Path) -> None:
    content = (folder / "a" / "log.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"half.parquet' cannot be read: .* ends early, as one that was cut"):
        summary_of(tmp_path / "half.parquet")
    (tmp_path / "foreign.parquet").write_bytes(b"not a table")
    with pytest.raises(ValueError, match=r"foreign.parquet' cannot be read: .* is none by its first bytes"):
        summary_of(tmp_path / "foreign.parquet")
    (tmp_path / "broken.parquet").write_bytes(content[: len(content) // 2] + content[-4:])
    with pytest.raises(ValueError, match=r"broken.parquet' cannot be read"):
        summary_of(tmp_path / "broken.parquet")
    (tmp_path / "log.txt").write_text("x")
    with pytest.raises(ValueError, match=r"must be Parquet .*, CSV .* or dsjson files"):
        summary_of(tmp_path / "log.txt")
    with pytest.raises(ValueError, match=r"Did you mean 'half.parquet'"):
        summary_of(tmp_path / "halff.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="which has none"):
        summary_of(tmp_path / "empty")


def test_a_csv_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    """A number may have lost its last digits, which nobody can see: so it is said."""
    text = "shop,x,reward\n" + "".join(f"a,{n},{n}.25\n" for n in range(90))
    (tmp_path / "log.csv").write_text(text)
    whole = summarise(tmp_path / "log.csv", task="shop", reward="reward")
    unended = "(file)", "last lines without an end, as of a file that was cut off"
    assert unended not in findings(whole)
    (tmp_path / "log.csv").write_text(text[: len(text) // 2])
    half = summarise(tmp_path / "log.csv", task="shop", reward="reward")
    assert findings(half)[unended] == (1, half.account.rows)
    (tmp_path / "log.csv").write_text("")
    with pytest.raises(ValueError, match=r"must hold a table. Got '.*log.csv', which is empty"):
        summarise(tmp_path / "log.csv", task="shop", reward="reward")


def test_files_with_different_columns_are_named(tmp_path: Path) -> None:
    LOG.to_parquet(tmp_path / "1.parquet")
    LOG.rename(columns={"price": "prize"}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2.parquet', which lacks \['price'\] and adds \['prize'\]"):
        summary_of(tmp_path)


NUMBERED, TEXTS = LOG["visits"].astype(float), LOG["visits"].astype(str)


@pytest.mark.parametrize(("first", "second"), [(NUMBERED, TEXTS), (TEXTS, NUMBERED), (LOG["at"], NUMBERED)])
def test_files_with_columns_of_different_kinds_are_named(
    first: "pd.Series[Any]", second: "pd.Series[Any]", tmp_path: Path
) -> None:
    LOG.assign(visits=first).to_parquet(tmp_path / "1.parquet")
    LOG.assign(visits=second).to_parquet(tmp_path / "2.parquet")
    kinds = r"'visits', which is [A-Z_]+ in '.*2.parquet' and [A-Z_]+ in '.*1.parquet'; a query with a cast"
    with pytest.raises(ValueError, match=kinds) as caught:
        summary_of(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_query_joins_files_with_columns_of_different_kinds(tmp_path: Path) -> None:
    LOG.iloc[:1000].to_parquet(tmp_path / "1.parquet")
    LOG.iloc[1000:].assign(visits=TEXTS).to_parquet(tmp_path / "2.parquet")
    asked = f"from read_parquet('{tmp_path}/*.parquet', union_by_name=true)"
    joined = summary_of(f"select * replace (try_cast(visits as double) as visits) {asked}")
    assert_equal(joined, summary_of(LOG), rel=1e-9)
    LOG.assign(visits="many").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"the query cannot be read: .*cast") as caught:
        summary_of(f"from read_parquet(['{tmp_path}/1.parquet', '{tmp_path}/2.parquet'])")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("integers_first", [True, False])
def test_integers_beside_floats_are_numbers_without_a_word(integers_first: bool, tmp_path: Path) -> None:
    halves = LOG.assign(visits=LOG["visits"] + 0.5), LOG
    parts = [halves[integers_first].iloc[:1000], halves[not integers_first].iloc[1000:]]
    for number, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{number}.parquet")
    assert_equal(summary_of(tmp_path), summary_of(pd.concat(parts)), rel=1e-9)
    assert findings(summary_of(tmp_path)).keys() == findings(summary_of(LOG)).keys()


@pytest.mark.parametrize("empty", [None, math.nan])
@pytest.mark.parametrize("column", ["colour", "price"])
def test_a_file_in_which_a_column_is_empty_is_like_any_other(
    column: str, empty: float | None, tmp_path: Path
) -> None:
    parts = [LOG.iloc[:1000].assign(**{column: empty}), LOG.iloc[1000:]]
    for number, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{number}.parquet")
    assert_equal(summary_of(tmp_path), summary_of(pd.concat(parts)), rel=1e-9)


def test_lines_that_are_no_rows_are_counted(tmp_path: Path) -> None:
    lines = [
        "shop,x,reward",
        *(f"a,{n},{n}" for n in range(50)),
        "a,1",
        *(f"b,{n},1" for n in range(50)),
        "b,7",
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    found = summarise(tmp_path / "log.csv", task="shop", reward="reward")
    assert findings(found)["(file)", "lines that are no rows"] == (2, 52)
    assert found.account.rows == 102
    assert found.account.used == 100


def test_names_of_columns_may_hold_anything() -> None:
    odd = LOG.rename(columns={"price": 'unit "price" [€]', "shop": "the shop; drop table", "reward": "c0"})
    features = ['unit "price" [€]', "visits"]
    found = summarise(odd, task="the shop; drop table", reward="c0", features=features)
    assert found.features[:2] == ("(constant)", 'unit "price" [€]')


@pytest.mark.parametrize("time", [None, "at"])
@pytest.mark.parametrize("arm", [None, "offer"])
def test_parts_add_up_to_the_whole(time: str | None, arm: str | None) -> None:
    roles = Roles(task="shop", reward="reward", time=time, arm=arm)
    summary, parts = summarise_parts(LOG, roles, features=["price", "visits"], n_parts=5)
    total = sum((part.gram for part in parts), np.zeros_like(summary.statistics.gram))
    assert total == pytest.approx(summary.statistics.gram, rel=1e-10, abs=1e-9)
    assert len(parts) == 5
    if time is None:
        counts = np.array([part.count for part in parts])
        assert np.ptp(counts, axis=0).max() <= 1  # dealt evenly within every task
    else:
        order = np.argsort(LOG["at"].to_numpy(), kind="stable")
        for part, rows in zip(parts, np.array_split(order, 5), strict=True):
            expected = LOG.iloc[rows].groupby("shop").size().reindex(summary.tasks, fill_value=0)
            assert np.abs(part.count - expected.to_numpy()).sum() <= 4  # at the ends of windows


def test_parts_are_dealt_alike_whatever_the_batches() -> None:
    rng = np.random.default_rng(0)
    tasks, times = rng.integers(7, size=1000), np.zeros(1000)
    whole = RandomParts(4, seed=3)(tasks, times)
    deal = RandomParts(4, seed=3)
    pieces = [deal(tasks[some], times[some]) for some in np.array_split(np.arange(1000), 13)]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert not np.array_equal(RandomParts(4, seed=4)(tasks, times), whole)


@pytest.mark.parametrize("clock", ["seconds", "rows", "floats", "texts", "texts of dates"])
def test_clocks_may_be_numbers(clock: str) -> None:
    seconds = LOG["at"].astype("datetime64[s]").astype("int64")
    columns = {
        "seconds": seconds,
        "rows": seconds.rank(method="dense").astype(int),
        "floats": seconds / 3600.0,
        "texts": seconds.astype(str),
        "texts of dates": LOG["at"].astype(str),
    }
    log, roles = LOG.assign(at=columns[clock]), Roles(task="shop", reward="reward", time="at")
    _, parts = summarise_parts(log, roles, features=["price", "visits"], n_parts=5)
    _, expected = summarise_parts(LOG, roles, features=["price", "visits"], n_parts=5)
    for part, other in zip(parts, expected, strict=True):
        assert part.gram == pytest.approx(other.gram, rel=1e-10)


def test_a_clock_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be a column of dates or numbers. Got 'loyal', which is"):
        diagnose(LOG, task="shop", reward="reward", features=["price"], time="loyal")
    log = LOG.assign(at=[None, "?", 7.5] * 1000)
    with pytest.raises(ValueError, match="`time` must have 10 different times"):
        diagnose(log, task="shop", reward="reward", features=["price"], time="at")


def test_too_few_times_for_windows_are_refused() -> None:
    log = LOG.assign(at=pd.Timestamp("2024-01-01"))
    with pytest.raises(ValueError, match="`time` must have 10 different times"):
        summarise_parts(log, Roles(task="shop", reward="reward", time="at"), features=["price"])


@pytest.mark.parametrize(("n_rows", "n_cells"), [(1, 1), (999, 3), (500, 40_000), (64, 64)])
def test_sums_equal_those_of_a_plain_loop(n_rows: int, n_cells: int) -> None:
    rng = np.random.default_rng(1)
    cells = rng.integers(n_cells, size=n_rows)
    x, y, w = rng.normal(size=(n_rows, 5)), rng.normal(size=n_rows), rng.random(n_rows)
    sums = Accumulator(5)
    for some in np.array_split(np.arange(n_rows), 3):
        sums.add(cells[some], x[some], y[some], w[some], n_cells)
    found, expected = sums.statistics(), GramStatistics.from_rows(cells, x, y, n_cells, w)
    for name in ("gram", "moment", "square", "count"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-12)


def test_spreads_of_parts_join_to_that_of_all() -> None:
    values = np.random.default_rng(2).normal(1e6, 1.0, 1000)
    total = Spread()
    for part in np.array_split(values, 7):
        total = total.joined(Spread(len(part), float(part.mean()), float(((part - part.mean()) ** 2).sum())))
    assert total.mean == pytest.approx(values.mean(), rel=1e-15)
    assert total.scale == pytest.approx(values.std(), rel=1e-9)
    assert Spread().scale == 0


def test_a_large_offset_does_not_spoil_the_scale() -> None:
    rng = np.random.default_rng(3)
    log = pd.DataFrame(
        {"shop": ["a", "b"] * 500, "x": 1e9 + rng.normal(size=1000), "reward": rng.normal(size=1000)}
    )
    found = summarise(log, task="shop", reward="reward")
    spread = np.diag(found.statistics.gram.sum(axis=0))[1] / 1000
    assert spread == pytest.approx(1.0, rel=1e-6)


def plain_log(offset: float = 1e9, n_rows: int = 80_000, seed: int = 0) -> pd.DataFrame:
    """Numbers alone, of unlike sizes, in an order that the first rows do not tell, and a constant."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "shop": rng.integers(7, size=n_rows),
            "row": np.arange(n_rows),
            "late": 1e3 + rng.normal(size=n_rows) * np.where(np.arange(n_rows) < 40_000, 1e-3, 3.0),
            "large": offset + rng.normal(size=n_rows),
            "small": 1e-9 * rng.gamma(0.3, size=n_rows),
            "same": 0.1,
            "reward": rng.normal(size=n_rows),
        }
    )


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that names every look at a log by what it asks first."""
    looks: list[str] = []
    batches = Source.batches

    def watched(source: Source, select: str, size: int) -> Any:
        looks.append(select.split()[1])
        return batches(source, select, size)

    monkeypatch.setattr(Source, "batches", watched)
    return looks


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(intercept=False), Recipe(numbers=("row",))])
def test_one_look_at_plain_numbers_finds_what_two_do(recipe: Recipe) -> None:
    """To 1e-10, if numbers are not so large that a mean of them is known less well."""
    log = plain_log(offset=1e3)
    log.loc[::1000, "reward"] = np.nan
    request = Request(LocalTable(log), Roles(task="shop", reward="reward"), None, recipe, "impute")
    once, prepared = scan_once(request), request.prepare()
    assert once is not None
    found, twice = summary_from(*once), summary_from(prepared, prepared.scan())
    assert_equal(found, twice)
    assert str(found.account) == str(twice.account)
    assert "same" not in found.features
    for column, expected in zip(found.encoder.columns, twice.encoder.columns, strict=True):
        assert isinstance(column, NumberColumn)
        assert isinstance(expected, NumberColumn)
        assert column.mean == pytest.approx(expected.mean, rel=1e-12)
        assert column.scale == pytest.approx(expected.scale, rel=1e-10)
    assert (found.statistics.gram == np.swapaxes(found.statistics.gram, 1, 2)).all()
    assert_equal(summarise(log, task="shop", reward="reward", encoder=recipe), found)


def test_one_look_at_plain_numbers_finds_what_its_encoder_does() -> None:
    log = plain_log()
    found = summarise(log, task="shop", reward="reward")
    assert_equal(found, summarise(log, task="shop", reward="reward", encoder=found.encoder))
    columns = log[list(found.features[1:])]
    assert [column.scale for column in found.encoder.columns if isinstance(column, NumberColumn)] == (
        pytest.approx(columns.std(ddof=0).to_list(), rel=1e-9)
    )


def test_plain_numbers_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And their first rows twice."""
    looks = counted(monkeypatch)
    summarise(plain_log(), task="shop", reward="reward")
    assert len(looks) == 2


@pytest.mark.parametrize("change", ["late gap", "infinite", "far", "text", "weight"])
def test_what_one_look_cannot_know_is_read_twice(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log, weight = plain_log(), None
    if change == "late gap":
        log.loc[70_000:70_200, "large"] = np.nan
    elif change == "infinite":
        log.loc[79_000, "large"] = np.inf
    elif change == "far":  # no row that counts among the first
        log.loc[:70_000, "shop"] = None
    elif change == "text":
        log["late"] = log["late"].astype(str)
    else:
        log, weight = log.assign(weight=2.0), "weight"
    roles = Roles(task="shop", reward="reward", weight=weight)
    request = Request(LocalTable(log), roles, None, None, "impute")
    assert scan_once(request) is None
    prepared = request.prepare()
    found = summarise(log, task="shop", reward="reward", weight=weight)
    assert_equal(found, summary_from(prepared, prepared.scan()))


def test_many_tasks_with_a_few_rows(tmp_path: Path) -> None:
    n_tasks = 50_000
    rng = np.random.default_rng(4)
    tasks = np.repeat(np.arange(n_tasks), 2)
    rng.shuffle(tasks)
    table = pa.table(
        {"user": tasks, "x": rng.normal(size=2 * n_tasks), "reward": rng.normal(size=2 * n_tasks)}
    )
    pq.write_table(table, tmp_path / "log.parquet")
    found = summarise(tmp_path / "log.parquet", task="user", reward="reward")
    assert found.statistics.n_tasks == n_tasks
    assert (found.statistics.count == 2).all()
    expected = np.bincount(tasks, weights=table["reward"].to_numpy(), minlength=n_tasks)
    order = [int(name) for name in found.tasks]
    assert found.statistics.moment[:, 0] == pytest.approx(expected[order], rel=1e-12, abs=1e-12)


def test_progress_is_told() -> None:
    told: list[int] = []
    summary_of(pd.concat([LOG] * 30), on_rows=told.append)
    assert told == sorted(told)
    assert told[-1] == 30 * N_ROWS
    assert len(told) > 1


def test_an_encoder_without_columns_and_a_log_without_features() -> None:
    found = summarise(LOG, task="shop", reward="reward", features=[])
    assert found.features == ("(constant)",)
    means = LOG.groupby("shop").reward.sum().reindex(found.tasks).to_numpy()
    assert found.statistics.moment[:, 0] == pytest.approx(means, rel=1e-10)
    with pytest.raises(ValueError, match="at least one feature"):
        summarise(LOG, task="shop", reward="reward", features=[], encoder=Recipe(intercept=False))
    assert math.isclose(found.statistics.count.sum(), N_ROWS)
    assert isinstance(found.encoder, Encoder)
