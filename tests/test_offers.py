"""What is on offer, read one by one and many at once, by the quick way and by the careful one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posse import Encoder
from posse.core.columns import NumberColumn
from posse.live.offers import Offers, packed

NAMES = ("price", "new")
PLAIN = Encoder(
    columns=(NumberColumn(name="price", mean=1.0, scale=2.0), NumberColumn(name="new")), intercept=True
)
number = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-10, 10),
    st.booleans(),
    st.sampled_from([1e80, float("nan"), float("inf"), 10**400, None, "1.5", "dear", [1.0], np.float32(0.5)]),
)
mostly = st.one_of(st.floats(-1e6, 1e6), st.integers(-10, 10), number)
vector = st.lists(mostly, min_size=1, max_size=3)
named = st.fixed_dictionaries({"price": mostly, "new": mostly})
row = st.one_of(vector, named)
offer = st.one_of(
    st.dictionaries(st.sampled_from("abcd"), st.lists(mostly, min_size=2, max_size=2), min_size=1),
    st.dictionaries(st.sampled_from("abcd"), named, min_size=1),
    st.dictionaries(st.sampled_from("abcd"), row, min_size=1),
    st.lists(vector, min_size=1, max_size=3),
)


def one_by_one(offers: Offers, many: list[Any], known: int | None) -> list[Any] | str:
    try:
        return [offers.read(arms, None, known) for arms in many]
    except (ValueError, OverflowError) as error:
        return str(error)


@pytest.mark.filterwarnings("ignore:overflow")
@settings(max_examples=300)
@given(many=st.lists(offer, min_size=1, max_size=3), encoder=st.sampled_from([None, PLAIN]))
def test_many_offers_are_read_as_each_of_them_is_or_left_to_be_read_one_by_one(
    many: list[Any], encoder: Encoder | None
) -> None:
    offers, known = Offers(encoder), 2 if encoder is None else None
    found = offers.read_many(many, known)
    if found is None:
        return
    wanted = one_by_one(offers, many, known)
    assert not isinstance(wanted, str), wanted
    for made, one in zip(found[0], wanted, strict=True):
        assert made.names == one.names
        np.testing.assert_array_equal(made.features, one.features)
    np.testing.assert_array_equal(found[1], np.concatenate([one.features for one in wanted]))


@given(rows=st.lists(vector, min_size=1, max_size=4))
def test_rows_that_are_packed_are_what_numpy_makes_of_them(rows: list[list[Any]]) -> None:
    found = packed(rows, len(rows[0]))
    if found is not None:
        np.testing.assert_array_equal(found, np.asarray(rows, dtype=np.float64))


def test_what_most_requests_are_is_read_the_quick_way() -> None:
    arms = {"a": {"price": 3.0, "new": 1}, "b": {"new": 0, "price": 1.0}}
    quick = Offers(PLAIN).read_many([arms, arms], None)
    assert quick is not None
    np.testing.assert_array_equal(quick[1], [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]] * 2)
    listed = Offers(None).read_many([{"a": [1.0, 2]}, {"b": [3.0, 4.0], "c": [5.0, 6.0]}], None)
    assert listed is not None
    assert [one.names for one in listed[0]] == [("a",), ("b", "c")]
    wrongs: list[list[Any]] = [
        [{"a": [1.0]}, {"b": [1.0, 2.0]}],
        [{"a": [1.0]}, [[1.0]]],
        [{"a": [float("nan")]}],
        [{"a": {"x": 1.0}}],
        [{}],
    ]
    for wrong in wrongs:
        assert Offers(None).read_many(wrong, None) is None
    assert Offers(PLAIN).read_many([{"a": [1.0, 2.0]}], None) is None  # whose features are three
    with pytest.raises(ValueError, match="rows of equal length"):
        Offers(None).read({"a": [1.0], "b": [1.0, 2.0]}, None, None)
