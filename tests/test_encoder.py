"""Encoders: features by a naive second road, gaps, dates, arms, files, and what is said of bad tables."""

import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from posse import Encoder, GramStatistics, load, save
from posse.core.columns import CategoryColumn, Column, DateColumn, NumberColumn

PRICE = NumberColumn(name="price", mean=10.0, scale=2.0, missing=True)
COLOUR = CategoryColumn(name="colour", levels=("red", "blue", "green"), other=True, missing=True)
AT = DateColumn(name="at", parts=("trend", "hour", "weekday", "season"), mean=1.7e9, scale=1e6, missing=True)
COLUMNS: tuple[Column, ...] = (PRICE, COLOUR, AT)
MONDAY = datetime(2024, 1, 1, 6)


def naive_features(row: dict[str, Any]) -> dict[str, float]:
    """The features of one row, by name, without an array."""
    found = {"(constant)": 1.0}
    known = row["price"] is not None
    found["price"] = (row["price"] - 10.0) / 2.0 if known else 0.0
    found["price missing"] = float(not known)
    for level in ("red", "blue", "green"):
        found[f"colour={level}"] = float(row["colour"] == level)
    found["colour=(other)"] = float(row["colour"] not in (None, "red", "blue", "green"))
    found["colour missing"] = float(row["colour"] is None)
    at = row["at"]
    seconds = at.replace(tzinfo=at.tzinfo or UTC).timestamp() if at else 0.0
    day = datetime.fromtimestamp(seconds, UTC)
    hours = (day.hour + day.minute / 60) / 24 * 2 * math.pi
    year = seconds / (365.25 * 86_400) * 2 * math.pi
    parts = {"trend": (seconds - 1.7e9) / 1e6, "hour sin": math.sin(hours), "hour cos": math.cos(hours)}
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    parts |= {name: float(f"{day:%A}" == name) for name in days}
    parts |= {"season sin": math.sin(year), "season cos": math.cos(year)}
    found |= {f"at {name}": value if at else 0.0 for name, value in parts.items()}
    found["at missing"] = float(at is None)
    return found


ROWS: list[dict[str, Any]] = [
    {"price": 12.0, "colour": "blue", "at": MONDAY},
    {"price": None, "colour": "red", "at": MONDAY + timedelta(days=5, hours=3, minutes=30)},
    {"price": 7.5, "colour": None, "at": None},
    {"price": -1.0, "colour": "mauve", "at": MONDAY.replace(tzinfo=timezone(timedelta(hours=9)))},
]


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_features_equal_those_of_a_naive_loop() -> None:
    encoder = Encoder(columns=COLUMNS)
    found = encoder.encode(columns_of(ROWS))
    expected = [naive_features(row) for row in ROWS]
    assert encoder.features == tuple(expected[0])
    assert found == pytest.approx(np.array([list(row.values()) for row in expected]), abs=1e-9)


@pytest.mark.parametrize(
    ("column", "features", "rows", "fallback"),
    [
        (CategoryColumn(name="c", levels=("a", "b")), ("c=b",), [[0], [1], [0], [0]], "taken for 'a'"),
        (
            CategoryColumn(name="c", levels=("a", "b"), missing=True),
            ("c=a", "c=b", "c missing"),
            [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]],
            "taken for an average of the levels",
        ),
        (
            CategoryColumn(name="c", levels=("a",), other=True),
            ("c=(other)",),
            [[0], [1], [1], [0]],
            "taken for 'a'",
        ),
        (
            CategoryColumn(name="c", levels=("a", "b", "d")),
            ("c=a", "c=b", "c=d"),
            [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]],
            "taken for an average of the levels",
        ),
    ],
)
def test_every_level_has_a_feature_unless_one_tells_two_cases_apart(
    column: CategoryColumn, features: tuple[str, ...], rows: list[list[float]], fallback: str
) -> None:
    assert column.features == features
    assert column.fallback == fallback
    encoder = Encoder(columns=(column,), intercept=False)
    assert encoder.encode({"c": ["a", "b", "z", None]}).tolist() == rows


def test_frames_arrays_and_lists_give_equal_features() -> None:
    table = {"price": [1.0, None, 3.0], "colour": ["red", None, "blue"]}
    encoder = Encoder(columns=(PRICE, COLOUR))
    expected = encoder.encode(table)
    frame = pd.DataFrame(table)
    for given in (frame, frame.convert_dtypes(), frame.astype({"colour": "category"}), pl.DataFrame(table)):
        assert np.array_equal(encoder.encode(given), expected)


def test_dates_of_any_kind_are_one_moment() -> None:
    encoder = Encoder(columns=(AT,))
    kinds: list[Any] = [
        [MONDAY],
        np.array(["2024-01-01T06:00"], dtype="datetime64[s]"),
        pd.Series([MONDAY]),
        ["2024-01-01T06:00:00"],
        ["2024-01-01T07:00:00+01:00"],
        [pd.Timestamp(MONDAY)],
    ]
    expected = encoder.encode({"at": [MONDAY]})
    for kind in kinds:
        assert np.array_equal(encoder.encode({"at": kind}), expected), kind
    gap = encoder.encode({"at": np.array(["NaT"], dtype="datetime64[s]")})
    assert np.array_equal(gap, encoder.encode({"at": [None]}))


def test_interactions_are_products_of_all_features() -> None:
    encoder = Encoder(columns=(PRICE, COLOUR), interactions=(("price", "colour"),))
    plain = Encoder(columns=(PRICE, COLOUR))
    table = {"price": [12.0, None], "colour": ["blue", "mauve"]}
    x, base = encoder.encode(table), plain.encode(table)
    names = plain.features
    for place, name in enumerate(encoder.features[plain.dim :], start=plain.dim):
        one, other = name.split(" × ")
        assert np.array_equal(x[:, place], base[:, names.index(one)] * base[:, names.index(other)])
    assert encoder.dim == plain.dim + 2 * 5


def test_arms_have_blocks_of_their_own() -> None:
    encoder = Encoder(columns=(PRICE, COLOUR), arms=("a", "b"), own=("price",))
    x = encoder.encode({"price": [12.0, 8.0], "colour": ["blue", "red"]}, arm=["b", "a"])
    by_name = [dict(zip(encoder.features, row, strict=True)) for row in x.tolist()]
    assert by_name[0]["b: level"] == 1
    assert by_name[0]["b: price"] == 1
    assert by_name[0]["a: level"] == by_name[0]["a: price"] == 0
    assert by_name[1]["a: price"] == -1
    assert by_name[1]["b: price"] == by_name[1]["b: level"] == 0
    assert by_name[0]["colour=blue"] == by_name[0]["(constant)"] == 1
    assert "price" not in encoder.features


@pytest.mark.parametrize("own", [(), ("price",), ("price", "colour")])
def test_statistics_of_cells_expand_to_those_of_whole_vectors(own: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    encoder = Encoder(columns=(PRICE, COLOUR), arms=("a", "b", "c"), own=own)
    n_rows, n_tasks = 200, 4
    table = {"price": rng.normal(10, 2, n_rows), "colour": rng.choice(["red", "blue", "x"], n_rows)}
    arm, task, reward = (
        rng.integers(3, size=n_rows),
        rng.integers(n_tasks, size=n_rows),
        rng.normal(size=n_rows),
    )
    whole = GramStatistics.from_rows(
        task, encoder.encode(table, arm=np.array(encoder.arms)[arm]), reward, n_tasks
    )
    raws = {column.name: column.raw(table[column.name]) for column in encoder.columns}
    compact = encoder.compact(raws, n_rows)
    cells = GramStatistics.from_rows(task * 3 + arm, compact, reward, n_tasks * 3)
    found = encoder.expand(cells)
    for name in ("gram", "moment", "square", "count"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=1e-12, abs=1e-12)


def test_an_encoder_comes_back_from_a_file(tmp_path: Path) -> None:
    encoder = Encoder(columns=COLUMNS, interactions=(("price", "at"),), arms=("a", "b"), own=("colour",))
    save(encoder, tmp_path / "encoder.posse")
    assert load(tmp_path / "encoder.posse") == encoder


def test_gaps_that_the_encoder_does_not_mark_are_the_mean() -> None:
    plain = Encoder(columns=(NumberColumn(name="price", mean=3.0, scale=2.0),))
    gaps = [None, math.nan, math.inf, -math.inf, 1e300]
    assert np.array_equal(plain.encode({"price": gaps})[:, 1], np.zeros(5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Encoder(columns=(PRICE, PRICE)), "`columns` of Encoder must have different names"),
        (lambda: Encoder(columns=(PRICE,), own=("price",)), "`own` of Encoder must be empty"),
        (lambda: Encoder(columns=(PRICE,), interactions=(("price", "prize"),)), "Did you mean 'price'"),
        (lambda: Encoder(intercept=False), "must make at least one feature"),
        (lambda: Encoder(columns=(PRICE,), arms=("a", "a")), "`arms` of Encoder must have different names"),
        (lambda: NumberColumn(name="price", scale=0.0), "`scale` of column 'price'"),
        (lambda: NumberColumn(name="price", mean=math.nan), "`mean` of column 'price'"),
        (lambda: CategoryColumn(name="c", levels=()), "`levels` of column 'c'"),
        (lambda: DateColumn(name="at", parts=("hours",)), "Did you mean 'hour'"),
        (lambda: Encoder(columns=(PRICE,)).encode({"prices": [1]}), "Did you mean 'prices'"),
        (
            lambda: Encoder(columns=(PRICE,)).encode({"price": ["cheap"]}),
            "'price' must be numbers. Got 'cheap'",
        ),
        (lambda: Encoder(columns=(AT,)).encode({"at": ["soon"]}), "'at' must be dates"),
        (lambda: Encoder(columns=(PRICE,), arms=("a",)).encode({"price": [1]}), "`arm` must name"),
        (lambda: Encoder(columns=(PRICE,), arms=("a",)).encode({"price": [1]}, arm=["z"]), "Got 'z'"),
        (
            lambda: Encoder(columns=(PRICE, COLOUR)).encode({"price": [1, 2], "colour": ["red"]}),
            "must be of one length. Got \\[1, 2\\]",
        ),
    ],
)
def test_what_cannot_be_encoded_is_said(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
