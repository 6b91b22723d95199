"""Finite action sets: masks, unequal numbers of arms, ties, arms from a pool."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from posse import FiniteActions
from posse.core.actions import PooledActions


def draw(
    seed: int, masked: bool, n: int = 6, n_tasks: int = 3, n_arms: int = 4, dim: int = 5
) -> FiniteActions:
    rng = np.random.default_rng(seed)
    available = rng.random((n, n_tasks, n_arms)) < 0.5 if masked else None
    return FiniteActions(rng.standard_normal((n, n_tasks, n_arms, dim)), available)


@given(seed=st.integers(0, 10_000), masked=st.booleans(), per_round=st.booleans())
def test_argmax_agrees_with_a_plain_loop(seed: int, masked: bool, per_round: bool) -> None:
    actions = draw(seed, masked)
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((6, 3, 5) if per_round else (3, 5))
    choice = actions.argmax(theta, rng)
    features = actions.features(choice)
    for n in range(6):
        for t in range(3):
            parameter = theta[n, t] if per_round else theta[t]
            on_offer = [a for a in range(4) if actions.available is None or actions.available[n, t, a]]
            if not on_offer:
                assert choice[n, t] == -1
                continue
            best = max(on_offer, key=lambda a: float(actions.arms[n, t, a] @ parameter))
            assert choice[n, t] == best
            assert_array_equal(features[n, t], actions.arms[n, t, best])


def test_a_task_with_no_arm_on_offer_sits_out() -> None:
    available = np.array([[[True, False], [False, False]]])
    actions = FiniteActions(np.ones((1, 2, 2, 3)), available)
    assert_array_equal(actions.active, [[True, False]])
    assert_array_equal(actions.argmax(np.ones((2, 3)), np.random.default_rng(0)), [[0, -1]])
    assert draw(0, masked=False).active is None


def test_ties_are_broken_uniformly_among_tied_arms_only() -> None:
    # One fixed seed, so it cannot flake; a fair rule fails a fresh seed with probability 1e-3.
    n = 30_000
    arms = np.zeros((n, 1, 4, 1))
    arms[:, :, 1] = -1.0
    choice = FiniteActions(arms).argmax(np.ones((1, 1)), np.random.default_rng(0))
    counts = np.bincount(choice[:, 0], minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]]).pvalue > 1e-3


def test_cutting_rounds_changes_nothing_not_even_ties() -> None:
    actions = FiniteActions(np.round(draw(0, masked=True, n=200).arms), draw(0, masked=True, n=200).available)
    theta = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]] * 3)
    whole = actions.argmax(theta, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    pieces = [actions.rounds(a, b).argmax(theta, rng) for a, b in ((0, 1), (1, 77), (77, 200))]
    assert_array_equal(np.concatenate(pieces), whole)


def test_scores_are_inner_products() -> None:
    actions = draw(3, masked=False)
    theta = np.random.default_rng(4).standard_normal((3, 5))
    assert_allclose(actions.scores(theta), np.einsum("ntkd,td->ntk", actions.arms, theta), rtol=1e-12)


def test_bad_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"\(n, T, K, d\). Got \(2, 3, 4\)"):
        FiniteActions(np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match=r"must have shape \(1, 2, 3\). Got \(1, 2\)"):
        FiniteActions(np.zeros((1, 2, 3, 4)), np.ones((1, 2), dtype=bool))


def test_arms_that_are_not_on_offer_cannot_be_played() -> None:
    available = np.array([[[True, False], [False, False]]])
    actions = FiniteActions(np.ones((1, 2, 2, 3)), available)
    assert_array_equal(actions.features(np.array([[0, -1]])), np.ones((1, 2, 3)))
    for choice, message in (
        ([[1, -1]], "Got arm 1 in round 0 of the block, task 0"),
        ([[0, 0]], "Got arm 0 in round 0 of the block, task 1"),
        ([[-1, -1]], "Got arm -1 in round 0 of the block, task 0"),
        ([[2, -1]], "Got arm 2 in round 0"),
    ):
        with pytest.raises(ValueError, match=message):
            actions.features(np.array(choice))
    everything = FiniteActions(np.ones((1, 2, 2, 3)))
    with pytest.raises(ValueError, match="Got arm -1 in round 0 of the block, task 1"):
        everything.features(np.array([[0, -1]]))
    with pytest.raises(ValueError, match=r"arm numbers of shape \(1, 2\)"):
        everything.features(np.array([0, 1]))
    with pytest.raises(ValueError, match=r"arm numbers of shape \(1, 2\)"):
        everything.features(np.array([[0.0, 1.0]]))


def test_bad_numbers_are_named() -> None:
    arms = np.ones((1, 2, 2, 3))
    arms[0, 1, 0, 2] = np.nan
    with pytest.raises(ValueError, match=r"scores of arms must be numbers. Got nan at index \(0, 1, 0\)"):
        FiniteActions(arms).argmax(np.ones((2, 3)), np.random.default_rng(0))
    masked = FiniteActions(arms, np.array([[[True, True], [False, True]]]))
    assert masked.argmax(np.ones((2, 3)), np.random.default_rng(0))[0, 1] == 1
    with pytest.raises(ValueError, match=r"must be of bool. Got int64"):
        FiniteActions(arms, np.ones((1, 2, 2), dtype=int))
    with pytest.raises(ValueError, match=r"must be \(T, d\) or \(n, T, d\). Got \(3,\)"):
        FiniteActions(np.ones((1, 2, 2, 3))).scores(np.ones(3))


def draw_pooled(seed: int, dtype: type = np.float32) -> PooledActions:
    rng = np.random.default_rng(seed)
    return PooledActions(rng.standard_normal((11, 5)).astype(dtype), rng.integers(0, 11, (6, 3, 4)))


@given(seed=st.integers(0, 10_000), per_round=st.booleans(), dtype=st.sampled_from([np.float32, np.float64]))
def test_arms_from_a_pool_are_arms(seed: int, per_round: bool, dtype: type) -> None:
    pooled = draw_pooled(seed, dtype)
    plain = FiniteActions(pooled.arms)
    assert_array_equal(plain.arms, pooled.pool[pooled.index])
    assert (pooled.shape, pooled.n_rounds, pooled.active) == (plain.shape, plain.n_rounds, plain.active)
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((6, 3, 5) if per_round else (3, 5))
    choice = rng.integers(0, 4, (6, 3))
    for offered, same, part in (
        (pooled, plain, theta),
        (pooled.rounds(2, 5), plain.rounds(2, 5), theta[2:5]),
    ):
        part = part if per_round else theta
        assert_allclose(offered.scores(part), same.scores(part), rtol=1e-12, atol=1e-14)
        chosen = choice[: offered.n_rounds]
        assert offered.features(chosen).dtype == np.float64
        assert_array_equal(offered.features(chosen), same.features(chosen))
        assert_array_equal(offered.features(chosen), offered.pool[offered.rows(chosen)])
        # an arm may be on offer twice: both then break the same ties with the same numbers
        best = offered.argmax(part, np.random.default_rng(1))
        assert_array_equal(best, same.argmax(part, np.random.default_rng(1)))


def test_pools_and_bad_choices_are_named() -> None:
    pooled = draw_pooled(0)
    with pytest.raises(ValueError, match="Got arm 4 in round 0 of the block, task 1"):
        pooled.features(np.array([[0, 4, 0]] * 6))
    with pytest.raises(ValueError, match=r"arm numbers of shape \(6, 3\)"):
        pooled.rows(np.zeros((6, 2), dtype=int))
    with pytest.raises(ValueError, match=r"must be \(T, d\) or \(n, T, d\). Got \(5,\)"):
        pooled.scores(np.ones(5))
    with pytest.raises(ValueError, match=r"`index` .* must lie in \[0, 10\]. Got 0 to 11"):
        PooledActions(pooled.pool, np.array([[[0, 11]]]))
    with pytest.raises(ValueError, match=r"`index` .* \(n, T, K\). Got float64 of shape \(1, 1, 1\)"):
        PooledActions(pooled.pool, np.zeros((1, 1, 1)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`pool` .* floats of shape \(m, d\). Got uint8 of shape \(2, 2\)"):
        PooledActions(np.ones((2, 2), dtype=np.uint8), pooled.index)


def test_scores_do_not_depend_on_how_arms_lie_in_memory() -> None:
    rng = np.random.default_rng(0)
    arms, theta = rng.standard_normal((4, 50, 6, 64)), rng.standard_normal((50, 64))
    expected = FiniteActions(arms).scores(theta)
    strided = np.ascontiguousarray(arms.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
    assert_array_equal(FiniteActions(strided).scores(theta), expected)
    assert_allclose(FiniteActions(arms).scores(theta.astype(np.float16)), expected, atol=0.05)
    assert_allclose(expected, np.vecdot(arms, theta[:, None, :]), rtol=1e-10, atol=1e-12)
