"""LearningPolicy: what it remembers, and that the presets are what the paper says."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posse import (
    DoublyExponential,
    Every,
    FactorPrior,
    GramStatistics,
    Greedy,
    IndependentGreedy,
    IndependentUCB,
    LearningPolicy,
    LowRank,
    MLinGreedy,
    NaiveGreedy,
    OracleBasis,
    OracleGreedy,
    Ridge,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    Thompson,
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
    for preset, estimator in (
        (MLinGreedy(rank=3), LowRank(rank=3)),
        (MLinGreedy(3, penalty=0.5), LowRank(rank=3, penalty=0.5)),
        (NaiveGreedy(), Ridge(penalty=0.0)),
    ):
        parts = (preset.estimator, preset.rule, preset.schedule, preset.memory)
        assert parts == (estimator, Greedy(), DoublyExponential(), "epoch")
    assert isinstance(OracleGreedy(np.eye(4)[:, :2]).estimator, OracleBasis)
    assert IndependentGreedy().memory == "all"


def test_presets_say_their_names_and_check_what_they_are_told() -> None:
    for policy in (MLinGreedy(3), IndependentUCB(), SharedThompson(2, floor=0.1, schedule=Every(3))):
        assert eval(repr(policy)) == policy
    assert repr(MLinGreedy(3)) == "MLinGreedy(rank=3)"
    assert repr(IndependentUCB(scale=3.0)) == "IndependentUCB(scale=3.0)"
    assert SharedThompson(2, scale=3.0).rule == Thompson(scale=3.0)
    assert SharedGreedy(2).estimator == FactorPrior(rank=2)
    for wrong in (
        lambda: MLinGreedy(0),
        lambda: SharedGreedy(-1),
        lambda: SharedUCB(scale=-1.0),
        lambda: SharedGreedy(memory=2.0),
        lambda: OracleGreedy(np.ones((3, 2))),
    ):
        with pytest.raises(ValueError, match=r" must .* Got "):
            wrong()


def test_presets_survive_a_trip_to_another_process() -> None:
    for preset in (MLinGreedy(2), SharedThompson(scale=2.0), IndependentGreedy(), NaiveGreedy(penalty=0.1)):
        again = pickle.loads(pickle.dumps(preset))
        assert again == preset
        assert again.estimator == preset.estimator


def test_bad_memory_is_named() -> None:
    with pytest.raises(ValueError, match=r"Got 'epochs'. Did you mean 'epoch'\? Known are all, epoch"):
        LearningPolicy(estimator=Ridge(), memory="epochs")
    with pytest.raises(ValueError, match=r"above 0 and at most 1. Got 0.0"):
        LearningPolicy(estimator=Ridge(), memory=0.0)


def test_every_task_forgets_by_rounds_of_its_own() -> None:
    rng = np.random.default_rng(0)
    played = np.ones((6, 3))
    played[2:, 1] = 0.0
    new = GramStatistics.of(rng.standard_normal((6, 3, 4)), rng.standard_normal((6, 3)), played)
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), memory=0.9)
    state = policy.update(policy.update(policy.init(3, 4), block(0, 8)), new)
    assert_allclose(state.statistics.count, 0.9 ** np.array([6, 2, 6]) * 8 + np.array([6, 2, 6]))
