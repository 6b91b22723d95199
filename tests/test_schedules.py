"""Schedules cover the horizon, and Algorithm 1's epochs are the paper's."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posse import At, DoublyExponential, Every, Geometric
from posse.core.protocols import Schedule

SCHEDULES = st.one_of(
    st.just(DoublyExponential()),
    st.builds(Every, st.integers(1, 50)),
    st.builds(Geometric, first=st.integers(1, 100), ratio=st.floats(1.01, 5)),
)


@given(schedule=SCHEDULES, horizon=st.integers(1, 20_000))
def test_blocks_are_positive_and_cover_the_horizon(schedule: Schedule, horizon: int) -> None:
    blocks = schedule.blocks(horizon)
    assert min(blocks) >= 1
    assert sum(blocks) == horizon


@given(horizon=st.integers(17, 10**7))
def test_epochs_follow_the_formula(horizon: int) -> None:
    blocks = DoublyExponential().blocks(horizon)
    n_epochs = math.ceil(math.log2(math.log2(horizon)))
    assert len(blocks) == n_epochs
    for m in range(1, n_epochs):
        assert abs(sum(blocks[:m]) - horizon ** (1 - 2**-m)) <= 0.5 + 1e-6


def test_epochs_of_the_paper() -> None:
    assert DoublyExponential().blocks(10_000) == (100, 900, 2162, 6838)
    assert [DoublyExponential().blocks(n) for n in (1, 2, 3, 4)] == [(1,), (2,), (3,), (4,)]


@given(first=st.integers(1, 50), ratio=st.floats(1.01, 4))
def test_geometric_grows_by_its_ratio(first: int, ratio: float) -> None:
    blocks = Geometric(first=first, ratio=ratio).blocks(5000)
    ends = [sum(blocks[: i + 1]) for i in range(len(blocks))]
    for earlier, later in itertools.pairwise(ends[:-1]):
        assert later == max(earlier + 1, math.ceil(earlier * ratio))


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ValueError, match=r"above 1. Got 1.0"):
        Geometric(ratio=1.0)
    with pytest.raises(ValueError, match=r"`first` of Geometric .* Got 0"):
        Geometric(first=0)
    with pytest.raises(ValueError, match=r"`rounds` of Every .* Got 2.5"):
        Every(2.5)  # type: ignore[arg-type]
    for schedule in (DoublyExponential(), Geometric(), Every()):
        with pytest.raises(ValueError, match=r"`horizon` must be .* Got 0"):
            schedule.blocks(0)


def test_at_needs_a_tuple_of_rounds() -> None:
    with pytest.raises(ValueError, match=r"`rounds` of At must be a tuple of rounds. Got 10"):
        At(10)  # type: ignore[arg-type]
    assert At((5, 500)).blocks(100) == (5, 95)
