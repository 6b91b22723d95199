"""Pairs of classes of images: the law of the rounds, the rewards, and play on real digits."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_digits

import posse.play.dealing
from posse import (
    Geometric,
    IndependentGreedy,
    LearningPolicy,
    MLinGreedy,
    NaiveGreedy,
    Random,
    Ridge,
    simulate,
    simulate_all,
)
from posse.core.actions import PooledActions
from posse.core.protocols import Policy
from posse.numerics.checks import Array, IntArray
from posse.problems import ClassPairs
from posse.testing import check_policy, check_problem

IMAGES, LABELS = load_digits(return_X_y=True)


def digits(**changed: Any) -> ClassPairs:
    arguments = {"images": IMAGES, "labels": LABELS, "brightest": 16, "n_classes": 5, "scaling": "unit"}
    return ClassPairs(**(arguments | changed))


@pytest.mark.parametrize("scaling", ["unit", "norm"])
@pytest.mark.parametrize("n_classes", [2, 5, None])
def test_it_keeps_the_promises_of_a_problem(scaling: str, n_classes: int | None) -> None:
    check_problem(digits(scaling=scaling, n_classes=n_classes))


@pytest.mark.parametrize("policy", [Random(), NaiveGreedy(), MLinGreedy(rank=2)], ids=repr)
def test_policies_keep_theirs_on_it(policy: Policy) -> None:
    problem = digits(n_classes=3)
    offered = problem.actions(20, np.random.default_rng(0))
    check_policy(policy, n_tasks=problem.n_tasks, dim=problem.dim, actions=offered)


def test_tasks_are_the_pairs_of_the_first_classes() -> None:
    problem = digits(n_classes=3)
    assert_array_equal(problem.pairs, [[0, 1], [0, 2], [1, 2]])
    assert (problem.n_tasks, problem.dim) == (3, 64)
    everything = digits(n_classes=None)
    assert (everything.n_tasks, everything.n_classes) == (45, 10)
    assert digits().n_tasks == 10


def test_the_pool_holds_the_scaled_images_by_class() -> None:
    problem = digits(n_classes=4)
    used = LABELS < 4
    order = np.argsort(LABELS[used], kind="stable")
    assert_array_equal(problem.classes, np.sort(LABELS[used]))
    assert problem.pool.dtype == np.float32
    assert_array_equal(problem.pool, IMAGES[used][order] / 16)  # sixteenths are exact
    unit_length = digits(n_classes=4, scaling="norm").pool
    expected = IMAGES[used][order] / np.linalg.norm(IMAGES[used][order], axis=1)[:, None]
    assert_allclose(unit_length, expected.astype(np.float32), rtol=2e-7)
    assert_allclose(np.linalg.norm(unit_length.astype(np.float64), axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("scaling", ["unit", "norm"])
def test_integers_and_floats_are_the_same_pixels(scaling: str) -> None:
    expected = digits(scaling=scaling).pool
    for dtype in (np.uint8, np.uint64, np.float32):
        changed = digits(images=IMAGES.astype(dtype), labels=LABELS.astype(np.uint64), scaling=scaling)
        assert_array_equal(changed.pool, expected)


def test_images_are_never_copied_for_rounds() -> None:
    problem = digits()
    rng = np.random.default_rng(0)
    for offered in (problem.actions(50, rng), problem.actions(3, rng), problem.actions(50, rng).rounds(2, 9)):
        assert np.shares_memory(offered.pool, problem.pool)
    with pytest.raises(ValueError, match="read-only"):
        problem.pool[0, 0] = 1.0


@pytest.mark.parametrize("per_round", [False, True])
def test_rounds_agree_with_plain_loops(per_round: bool) -> None:
    problem, rng = digits(n_classes=4), np.random.default_rng(1)
    n, n_tasks = 30, problem.n_tasks
    offered = problem.actions(n, rng)
    theta = rng.standard_normal((n, n_tasks, 64) if per_round else (n_tasks, 64))
    choice = rng.integers(0, 2, (n, n_tasks))
    scores, features = offered.scores(theta), offered.features(choice)
    means = problem.mean_rewards(offered, choice)
    sorted_images = np.concatenate([IMAGES[c == LABELS] for c in range(4)]) / 16
    sorted_labels = np.concatenate([LABELS[c == LABELS] for c in range(4)])
    for i in range(n):
        for t in range(n_tasks):
            parameter = theta[i, t] if per_round else theta[t]
            for k in range(2):
                image = sorted_images[offered.index[i, t, k]]
                assert scores[i, t, k] == pytest.approx(sum(image * parameter), rel=1e-12, abs=1e-12)
            own, other = (sorted_labels[offered.index[i, t, k]] for k in (choice[i, t], 1 - choice[i, t]))
            assert {own, other} == set(problem.pairs[t])
            assert means[i, t] == (1.0 if own > other else 0.0)
            assert_array_equal(features[i, t], sorted_images[offered.index[i, t, choice[i, t]]])
    assert features.dtype == np.float64
    assert_array_equal(problem.best_rewards(offered), np.ones((n, n_tasks)))


def test_images_and_positions_are_uniform() -> None:
    # Fixed seed. Each of the 13 checks fails a fresh seed with probability 1e-3.
    problem = digits(n_classes=3)
    index = problem.actions(20_000, np.random.default_rng(2)).index
    for t, pair in enumerate(problem.pairs):
        rows, classes = index[:, t].ravel(), problem.classes[index[:, t]]
        for c in pair:
            counts = np.bincount(rows, minlength=len(problem.pool))[problem.classes == c]
            assert counts.sum() == 20_000
            assert stats.chisquare(counts).pvalue > 1e-3
        larger_first = int((classes[:, 0] == pair[1]).sum())
        assert stats.binomtest(larger_first, 20_000).pvalue > 1e-3
    images, places = index[:, 0].max(axis=1), index[:, 0].argmax(axis=1)
    assert stats.chi2_contingency(np.histogram2d(images, places, bins=(8, 2))[0]).pvalue > 1e-3
    first = problem.classes[index[:, :, 0]] == problem.pairs[:, 1]
    for a, b in ((0, 1), (0, 2), (1, 2)):  # tasks draw on their own
        assert stats.binomtest(int((first[:, a] == first[:, b]).sum()), 20_000).pvalue > 1e-3


def test_there_is_no_noise_and_none_is_drawn() -> None:
    problem, rng = digits(), np.random.default_rng(0)
    assert_array_equal(problem.noise(4, rng), np.zeros((4, 10)))
    assert rng.random() == np.random.default_rng(0).random()
    means = np.random.default_rng(1).integers(0, 2, (4, 10)).astype(float)
    assert_array_equal(problem.rewards(means, problem.noise(4, rng)), means)


def test_random_play_is_wrong_half_the_time() -> None:
    # Fixed seed; a fresh one fails with probability 1e-3.
    trace = simulate(digits(), Random(), horizon=2000, seed=0)
    wrong = trace.regret[-1].sum()
    assert wrong == int(wrong)
    assert stats.binomtest(int(wrong), 2000 * 10).pvalue > 1e-3


def test_who_knows_the_labels_has_no_regret() -> None:
    problem = digits()

    class Knowing(Random):
        def select(self, state: Array, actions: PooledActions, rng: np.random.Generator) -> IntArray:  # type: ignore[override]
            return np.asarray(problem.classes[actions.index].argmax(axis=2))

    class Mistaken(Knowing):
        def select(self, state: Array, actions: PooledActions, rng: np.random.Generator) -> IntArray:  # type: ignore[override]
            return 1 - super().select(state, actions, rng)

    assert_array_equal(simulate(problem, Knowing(), horizon=300, seed=0).regret, 0.0)
    assert_array_equal(simulate(problem, Mistaken(), horizon=300, seed=0).regret[-1], 300.0)


@pytest.mark.parametrize("scaling", ["unit", "norm"])
def test_learning_beats_random_play(scaling: str) -> None:
    policies: dict[str, Policy] = {
        "mlingreedy": MLinGreedy(rank=2),
        "naive": NaiveGreedy(),
        "independent": IndependentGreedy(),
        "random": Random(),
    }
    traces = simulate_all(digits(scaling=scaling, n_classes=4), policies, horizon=1500, seed=0)
    regret = {name: trace.regret_per_task[-1] for name, trace in traces.items()}
    assert all(regret[name] < 0.75 * regret["random"] for name in ("mlingreedy", "naive", "independent"))


@pytest.mark.parametrize("scaling", ["unit", "norm"])
def test_rounds_do_not_depend_on_the_chunk(scaling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(scaling=scaling)
    policy = LearningPolicy(estimator=Ridge(penalty=1.0), schedule=Geometric(first=100, ratio=2.0))
    expected = simulate(problem, policy, horizon=500, seed=1)
    for n_rounds in (7, 500):
        monkeypatch.setattr(posse.play.dealing, "chunk_rounds", lambda _, n=n_rounds: n)
        found = simulate(problem, policy, horizon=500, seed=1)
        assert_array_equal(found.regret, expected.regret)
        assert_allclose(found.state.estimate.theta, expected.state.estimate.theta, rtol=1e-9, atol=1e-12)


def test_constant_pixels_are_allowed() -> None:
    images = np.full((4, 3), 7, dtype=np.uint8)
    problem = ClassPairs(images=images, labels=np.array([0, 1, 1, 0]), scaling="unit")
    check_problem(problem)
    black = ClassPairs(images=0 * images, labels=np.array([0, 1, 1, 0]), scaling="unit")
    assert_array_equal(black.pool, 0.0)


def test_classes_that_are_not_used_do_not_matter() -> None:
    images = IMAGES.copy()
    images[LABELS == 9] = 0.0
    assert_array_equal(digits(images=images, scaling="norm").pool, digits(scaling="norm").pool)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"images": IMAGES[0]}, r"`images` .* shape \(m, d\). Got float64 of shape \(64,\)"),
        ({"images": IMAGES.astype(str)}, r"`images` of ClassPairs must be numbers .* Got <U"),
        ({"images": IMAGES[:9]}, r"`images` .* as many as the 1797 labels. Got shape \(9, 64\)"),
        ({"images": IMAGES[:, :0]}, r"`images` .* Got shape \(1797, 0\)"),
        ({"images": np.where(IMAGES > 15, np.nan, IMAGES)}, r"`images` .* must be finite. Got nan at index"),
        ({"images": IMAGES - 1}, r"`images` .* lie in \[0, brightest=16\]. Got -1\."),
        ({"brightest": 8}, r"`images` .* lie in \[0, brightest=8\]. Got 16\."),
        ({"brightest": 0}, r"`brightest` .* above 0. Got 0"),
        ({"brightest": np.inf}, r"`brightest` .* finite number above 0. Got inf"),
        ({"labels": LABELS[:, None]}, r"`labels` .* shape \(m,\). Got int64 of shape \(1797, 1\)"),
        ({"labels": LABELS + 0.5}, r"`labels` .* must be integers .* Got float64"),
        ({"labels": LABELS - 1}, r"`labels` .* must not be negative. Got -1"),
        ({"labels": LABELS[:0], "images": IMAGES[:0]}, r"`labels` .* Got int64 of shape \(0,\)"),
        ({"labels": 0 * LABELS}, r"`labels` .* at least two classes. Got class 0 alone"),
        ({"labels": LABELS + 2}, r"each class of ClassPairs must have an image. Got none of 0, 1\."),
        ({"n_classes": 1}, r"`n_classes` .* integer in \[2, classes=10\]. Got 1"),
        ({"n_classes": 11}, r"`n_classes` .* integer in \[2, classes=10\]. Got 11"),
        ({"n_classes": 2.0}, r"`n_classes` .* Got 2.0"),
        ({"scaling": "uint"}, r"`scaling` .* Got 'uint'. Did you mean 'unit'"),
        (
            {"images": IMAGES * (np.arange(1797) > 2)[:, None], "scaling": "norm"},
            r"`images` .* not be black .* Got 3 that are",
        ),
    ],
    ids=str,
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        digits(**changed)


def test_choices_are_checked() -> None:
    problem = digits()
    offered = problem.actions(3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="Got arm -1 in round 0 of the block, task 0"):
        problem.mean_rewards(offered, np.full((3, 10), -1))
