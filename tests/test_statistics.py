"""GramStatistics: the laws of a monoid, and agreement with sums written out."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from posse import GramStatistics
from posse.numerics.checks import Array

FIELDS = ("gram", "moment", "square", "count")


def draw(seed: int, n: int = 5, n_tasks: int = 3, dim: int = 4) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, n_tasks, dim)), rng.standard_normal((n, n_tasks))
    return x, y, rng.integers(0, 3, (n, n_tasks)).astype(float)


def assert_equal(left: GramStatistics, right: GramStatistics, rtol: float = 1e-12) -> None:
    for name in FIELDS:
        assert_allclose(getattr(left, name), getattr(right, name), rtol=rtol, atol=1e-12)


def by_hand(x: Array, y: Array, w: Array) -> GramStatistics:
    n, n_tasks, dim = x.shape
    gram, moment = np.zeros((n_tasks, dim, dim)), np.zeros((n_tasks, dim))
    square, count = np.zeros(n_tasks), np.zeros(n_tasks)
    for i in range(n):
        for t in range(n_tasks):
            gram[t] += w[i, t] * np.outer(x[i, t], x[i, t])
            moment[t] += w[i, t] * x[i, t] * y[i, t]
            square[t] += w[i, t] * y[i, t] ** 2
            count[t] += w[i, t]
    return GramStatistics(gram, moment, square, count)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 8), n_tasks=st.integers(1, 4), dim=st.integers(1, 5))
def test_agrees_with_sums_written_out(seed: int, n: int, n_tasks: int, dim: int) -> None:
    x, y, w = draw(seed, n, n_tasks, dim)
    assert_equal(GramStatistics.of(x, y), by_hand(x, y, np.ones_like(y)))
    assert_equal(GramStatistics.of(x, y, w), by_hand(x, y, w))


@given(seed=st.integers(0, 10_000), cut=st.integers(1, 4))
def test_monoid_laws(seed: int, cut: int) -> None:
    x, y, w = draw(seed)
    a, b, c = (GramStatistics.of(x + shift, y, w) for shift in (0.0, 1.0, 2.0))
    zero = GramStatistics.zeros(3, 4)
    assert_equal((a + b) + c, a + (b + c))
    assert_equal(a + b, b + a)
    assert_equal(a + zero, a)
    assert_equal(
        GramStatistics.of(x[:cut], y[:cut]) + GramStatistics.of(x[cut:], y[cut:]), GramStatistics.of(x, y)
    )


@given(seed=st.integers(0, 10_000), factor=st.floats(0, 1), other=st.floats(0, 1))
@settings(max_examples=50)
def test_discount_is_linear_and_composes(seed: int, factor: float, other: float) -> None:
    x, y, _ = draw(seed)
    a, b = GramStatistics.of(x, y), GramStatistics.of(y[..., None] * x, y)
    assert_equal((a + b).discount(factor), a.discount(factor) + b.discount(factor))
    assert_equal(a.discount(factor).discount(other), a.discount(factor * other))
    assert_equal(a.discount(0), GramStatistics.zeros(3, 4))


def test_take_selects_tasks_in_order() -> None:
    x, y, _ = draw(0)
    whole = GramStatistics.of(x, y)
    assert_equal(whole.take([2, 0]), GramStatistics.of(x[:, [2, 0]], y[:, [2, 0]]))
    assert_equal(whole.take([True, False, True]), GramStatistics.of(x[:, [0, 2]], y[:, [0, 2]]))


def test_a_round_sat_out_leaves_no_mark_whatever_it_holds() -> None:
    x, y, _ = draw(0)
    mask = np.ones_like(y, dtype=bool)
    mask[1, 2] = mask[3, 0] = False
    spoiled_x, spoiled_y = x.copy(), y.copy()
    spoiled_x[1, 2], spoiled_y[3, 0] = np.nan, np.inf
    assert_equal(GramStatistics.of(spoiled_x, spoiled_y, mask), by_hand(x, y, mask.astype(float)))


def test_nothing_is_mutated_and_nothing_can_be() -> None:
    x, y, w = draw(0)
    copies = x.copy(), y.copy(), w.copy()
    a = GramStatistics.of(x, y, w)
    _ = a + a, a.discount(0.5), a.take([0])
    for array, copy in zip((x, y, w), copies, strict=True):
        assert_array_equal(array, copy)
    for name in FIELDS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(a, name)[0] = 1.0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 3)), r"Got \(2, 3\) and \(2, 3\)"),
        (np.zeros((2, 3, 4)), np.zeros((2, 2)), r"Got \(2, 3, 4\) and \(2, 2\)"),
        (np.full((1, 1, 2), np.nan), np.zeros((1, 1)), r"`features` .* Got nan at index \(0, 0, 0\)"),
        (np.zeros((1, 1, 2)), np.full((1, 1), np.inf), r"`rewards` .* Got inf at index \(0, 0\)"),
        (np.full((1, 1, 2), 1e200), np.zeros((1, 1)), r"small enough to square. Got 1e\+200"),
    ],
)
def test_bad_data_is_named(x: Array, y: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        GramStatistics.of(x, y)


def test_other_bad_input_is_named() -> None:
    x, y, w = draw(0)
    whole = GramStatistics.of(x, y)
    with pytest.raises(ValueError, match=r"must not be negative. Got -1"):
        GramStatistics.of(x, y, -np.ones_like(w))
    with pytest.raises(ValueError, match=r"Got \(3, 4\) and \(2, 4\)"):
        _ = whole + whole.take([0, 1])
    with pytest.raises(ValueError, match=r"lie in \[0, 1\], .* Got 1.5"):
        whole.discount(1.5)
    with pytest.raises(ValueError, match=r"in \[0, 2\]. Got 3 to 3"):
        whole.take([3])
    with pytest.raises(ValueError, match=r"length n_tasks=3. Got 2"):
        whole.take([True, False])
    with pytest.raises(ValueError, match=r"indices or a mask. Got \[0.5\]"):
        whole.take([0.5])
    with pytest.raises(ValueError, match=r"at least 1. Got 0"):
        GramStatistics.zeros(0, 3)
    with pytest.raises(ValueError, match=r"`gram` .* must have shape \(3, 4, 4\). Got \(3, 4\)"):
        GramStatistics(whole.moment, whole.moment, whole.square, whole.count)


@pytest.mark.parametrize("dim", [6, 200])
def test_few_rounds_keep_their_rows_and_add_up_all_the_same(dim: int) -> None:
    rng = np.random.default_rng(0)
    x, y, weights = rng.standard_normal((5, 3, dim)), rng.standard_normal((5, 3)), rng.random((5, 3))
    expected = np.einsum("nt,nti,ntj->tij", weights, x, x)
    parts = [GramStatistics.of(x[s], y[s], weights[s]) for s in (slice(0, 2), slice(2, 5))]
    assert all(type(part) is GramStatistics and part.rows is not None for part in parts)
    changed = replace(parts[0], count=np.ones(3))
    assert_allclose(changed.gram, parts[0].gram)
    assert_allclose(changed.count, 1.0)
    assert_allclose(pickle.loads(pickle.dumps(parts[1])).gram, parts[1].gram)
    assert_allclose((parts[0] + parts[1]).gram, expected, atol=1e-12)
    assert_allclose((GramStatistics.zeros(3, dim) + parts[0] + parts[1]).gram, expected, atol=1e-12)
    assert_allclose(parts[0].gram, np.einsum("nt,nti,ntj->tij", weights[:2], x[:2], x[:2]), atol=1e-12)
    assert not parts[0].gram.flags.writeable
    assert_allclose(parts[1].discount(0.5).gram, 0.5 * parts[1].gram)
    assert_allclose(parts[1].take([2, 0]).gram, parts[1].gram[[2, 0]])
    x[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="`features` of GramStatistics"):
        GramStatistics.of(x[:2], y[:2])
