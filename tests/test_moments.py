"""Subspace estimators: their statistics, their means, and what they recover."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posse.core.statistics import GramStatistics, MomentTotals
from posse.estimators import MethodOfMoments, MomentStatistics, PairedMoments, SubspaceEstimator, TaskSpectral
from posse.estimators.moments import largest_sine
from posse.numerics.checks import Array
from posse.numerics.random import haar_basis, unit_vectors

ESTIMATORS: list[SubspaceEstimator] = [MethodOfMoments(), PairedMoments(), TaskSpectral()]


def draw(
    seed: int, n: int, n_tasks: int = 30, dim: int = 6, noise: float = 1.0
) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    basis = haar_basis(dim, 2, rng)
    theta = unit_vectors(n_tasks, 2, rng) @ basis.T
    x = unit_vectors(n * n_tasks, dim, rng).reshape(n, n_tasks, dim)
    return x, np.vecdot(x, theta) + noise * rng.standard_normal((n, n_tasks)), basis


@given(seed=st.integers(0, 1000), cut=st.integers(1, 4))
def test_statistics_add_up_and_agree_with_sums_written_out(seed: int, cut: int) -> None:
    x, y, _ = draw(seed, 5, n_tasks=3)
    whole = MomentStatistics.of(x, y)
    parts = MomentStatistics.of(x[:cut], y[:cut]) + MomentStatistics.of(x[cut:], y[cut:])
    expected = sum(y[n, t] ** 2 * np.outer(x[n, t], x[n, t]) for n in range(5) for t in range(3))
    for found in (whole, parts, whole + MomentStatistics.zeros(3, 6)):
        assert_allclose(found.squares, expected, atol=1e-12)
        assert_allclose(found.tasks.moment, GramStatistics.of(x, y).moment, atol=1e-12)
    mask = np.ones_like(y)
    mask[0, 1] = 0.0
    masked = MomentStatistics.of(x, y, mask).squares
    assert_allclose(masked, expected - y[0, 1] ** 2 * np.outer(x[0, 1], x[0, 1]), atol=1e-12)


@pytest.mark.parametrize("kind", [GramStatistics, MomentStatistics, MomentTotals])
def test_a_repeated_action_is_summarised_as_its_rounds_are(kind: type) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((7, 3))
    repeated = kind.repeated(x, 7, y.sum(axis=0), (y**2).sum(axis=0))  # type: ignore[attr-defined]
    rounds = kind.of(np.broadcast_to(x, (7, 3, 4)), y)  # type: ignore[attr-defined]
    for name in ("gram", "moment", "square", "count", "squares"):
        for left, right in (
            (repeated, rounds),
            (getattr(repeated, "tasks", None), getattr(rounds, "tasks", None)),
        ):
            if hasattr(left, name):
                assert_allclose(getattr(left, name), getattr(right, name), atol=1e-12)


def test_the_mean_of_the_moments_is_the_papers() -> None:
    """(2 theta theta' + |theta|^2 I) / (d (d + 2)) + I / d, within 5 standard errors, fixed seed."""
    rng = np.random.default_rng(0)
    dim, n = 5, 200_000
    theta = np.array([1.5, -0.5, 0.0, 0.2, 0.0])
    x = unit_vectors(n, dim, rng)
    y = x @ theta + rng.standard_normal(n)
    products = y[:, None, None] ** 2 * x[:, :, None] * x[:, None, :]
    identity = np.eye(dim)
    expected = (2 * np.outer(theta, theta) + theta @ theta * identity) / (dim * (dim + 2)) + identity / dim
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - expected) < 5 * error).all()


def test_pairs_are_all_pairs_of_different_rounds() -> None:
    x, y, _ = draw(0, 4, n_tasks=2)
    expected = np.zeros((6, 6))
    for t in range(2):
        for m in range(4):
            for n in range(4):
                if m != n:
                    expected += y[m, t] * y[n, t] * np.outer(x[m, t], x[n, t])
    statistics = MomentStatistics.of(x, y)
    moment = statistics.tasks.moment
    assert_allclose(moment.T @ moment - statistics.squares, expected, atol=1e-12)
    values, vectors = np.linalg.eigh(expected)
    assert largest_sine(vectors[:, [-1, -2]], PairedMoments().basis(statistics, 2)) < 1e-8
    assert values[-2] > values[-3]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_more_data_finds_the_subspace(estimator: SubspaceEstimator) -> None:
    errors = []
    for n in (20, 20_000):
        x, y, basis = draw(1, n)
        found = estimator.basis(MomentStatistics.of(x, y), 2)
        assert_allclose(found.T @ found, np.eye(2), atol=1e-12)
        errors.append(largest_sine(basis, found))
    assert errors[1] < 0.15
    assert errors[1] < errors[0]


def test_linear_estimators_need_far_less_data_than_moments() -> None:
    errors = {repr(estimator): [] for estimator in ESTIMATORS}  # type: ignore[var-annotated]
    for seed in range(10):
        x, y, basis = draw(seed, 100)
        statistics = MomentStatistics.of(x, y)
        for estimator in ESTIMATORS:
            errors[repr(estimator)].append(largest_sine(basis, estimator.basis(statistics, 2)))
    moments, pairs, spectral = (np.array(sample) for sample in errors.values())
    assert (pairs < moments).all()
    assert (spectral < moments).all()


@pytest.mark.parametrize("estimator", [PairedMoments(), TaskSpectral()], ids=repr)
def test_rotations_pass_through(estimator: SubspaceEstimator) -> None:
    x, y, _ = draw(2, 50)
    Q = haar_basis(6, 6, np.random.default_rng(5))
    plain = estimator.basis(MomentStatistics.of(x, y), 2)
    turned = estimator.basis(MomentStatistics.of(x @ Q, y), 2)
    assert largest_sine(plain, Q @ turned) < 1e-6


def test_noise_that_differs_between_tasks_is_removed() -> None:
    """One task has few rounds: its noise must not tilt the subspace."""
    x, y, basis = draw(3, 400, n_tasks=20)
    weights = np.ones_like(y)
    weights[12:, :10] = 0.0
    corrected = largest_sine(basis, TaskSpectral().basis(MomentStatistics.of(x, y, weights), 2))
    tasks = GramStatistics.of(x, y, weights)
    theta = np.linalg.solve(tasks.gram, tasks.moment[..., None])[..., 0]
    plain = largest_sine(basis, np.linalg.svd(theta.T)[0][:, :2])
    assert corrected < plain


def test_the_sine_of_the_largest_angle() -> None:
    angle = 0.3
    turned = np.array([[np.cos(angle), 0.0], [0.0, 1.0], [np.sin(angle), 0.0]])
    assert largest_sine(np.eye(3)[:, :2], turned) == pytest.approx(np.sin(angle))
    with pytest.raises(ValueError, match=r"`rank` must be an integer in \[1, dim=6\]. Got 7"):
        MethodOfMoments().basis(MomentStatistics.of(*draw(0, 5)[:2]), 7)
