"""LearningPolicy: what it remembers, and that the presets are what the paper says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posse import (
    DoublyExponential,
    GramStatistics,
    IndependentGreedy,
    LearningPolicy,
    LowRank,
    MLinGreedy,
    NaiveGreedy,
    OracleBasis,
    OracleGreedy,
    Ridge,
)


def block(seed: int, n: int) -> GramStatistics:
    rng = np.random.default_rng(seed)
    return GramStatistics.of(rng.standard_normal((n, 3, 4)), rng.standard_normal((n, 3)))


@pytest.mark.parametrize(("memory", "kept"), [("epoch", 0.0), ("all", 1.0), (0.9, 0.9**5), (1.0, 1.0)])
def test_memory(memory: str | float, kept: float) -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=memory)
    old, new = block(0, 8), block(1, 5)
    state = policy.update(policy.update(policy.init(3, 4), old), new)
    assert_allclose(state.statistics.gram, kept * old.gram + new.gram)
    assert_allclose(state.statistics.count, kept * old.count + new.count)
    assert_array_equal(state.estimate.theta, Ridge(penalty=1.0).fit(state.statistics).theta)


def test_the_first_estimate_is_from_no_data() -> None:
    for policy in (MLinGreedy(rank=2), NaiveGreedy(), IndependentGreedy(), OracleGreedy(np.eye(4)[:, :2])):
        state = policy.init(3, 4)
        assert_array_equal(state.estimate.theta, np.zeros((3, 4)))
        assert_array_equal(state.statistics.count, np.zeros(3))


def test_presets_are_what_the_paper_says() -> None:
    assert MLinGreedy(rank=3) == LearningPolicy(
        estimator=LowRank(rank=3), schedule=DoublyExponential(), memory="epoch"
    )
    assert NaiveGreedy() == LearningPolicy(
        estimator=Ridge(penalty=0.0), schedule=DoublyExponential(), memory="epoch"
    )
    assert isinstance(OracleGreedy(np.eye(4)[:, :2]).estimator, OracleBasis)
    assert IndependentGreedy().memory == "all"


def test_bad_memory_is_named() -> None:
    with pytest.raises(ValueError, match=r"one of all, epoch. Got 'epochs'. Did you mean 'epoch'"):
        LearningPolicy(estimator=Ridge(), memory="epochs")
    with pytest.raises(ValueError, match=r"above 0 and at most 1. Got 0.0"):
        LearningPolicy(estimator=Ridge(), memory=0.0)


def test_the_busiest_task_sets_the_discount() -> None:
    rng = np.random.default_rng(0)
    played = np.ones((6, 3))
    played[2:, 1] = 0.0
    new = GramStatistics.of(rng.standard_normal((6, 3, 4)), rng.standard_normal((6, 3)), played)
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=0.9)
    state = policy.update(policy.update(policy.init(3, 4), block(0, 8)), new)
    assert_allclose(state.statistics.count, 0.9**6 * 8 + np.array([6, 2, 6]))
