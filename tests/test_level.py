"""A prior around the level of rewards: where rewards lie does not matter."""

import numpy as np
import pytest

from posse import FactorPrior, GramStatistics
from posse.numerics.checks import Array

N_TASKS, DIM = 30, 5


def rows(seed: int, level: float) -> tuple[Array, Array, Array]:
    """Features (n, T, d) with a constant one, parameters (T, d) near a line, and rewards around a level."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((N_TASKS, 1)) * rng.standard_normal(DIM)
    theta += 0.1 * rng.standard_normal((N_TASKS, DIM))
    x = rng.standard_normal((25, N_TASKS, DIM))
    x[..., 0] = 1.0
    return x, theta, level + np.vecdot(x, theta) + rng.standard_normal((25, N_TASKS))


@pytest.mark.parametrize("sweeps", [0, 120])
def test_a_shift_of_all_rewards_shifts_the_level_and_nothing_else(sweeps: int) -> None:
    estimator = FactorPrior(mean="level", sweeps=sweeps)
    x, _, y = rows(0, 0.0)
    plain, shifted = (estimator.fit(GramStatistics.of(x, y + level)) for level in (0.0, 500.0))
    moved = 500.0 * np.eye(DIM)[0]
    assert shifted.rank == plain.rank == 1
    np.testing.assert_allclose(shifted.theta, plain.theta + moved, atol=1e-4)
    np.testing.assert_allclose(shifted.covariance, plain.covariance, atol=1e-4)
    np.testing.assert_allclose(shifted.mean, plain.mean + moved, atol=1e-6)
    np.testing.assert_allclose(shifted.prior.mean, plain.prior.mean + moved, atol=1e-6)
    np.testing.assert_allclose(shifted.prior.covariance, plain.prior.covariance, atol=1e-3)
    new, old = shifted.posterior.newcomer(), plain.posterior.newcomer()  # type: ignore[union-attr]
    np.testing.assert_allclose(new.theta, old.theta + moved, atol=1e-6)
    np.testing.assert_allclose(shifted.noises, plain.noises, rtol=1e-3)


def test_with_a_level_noise_is_that_of_rewards_and_errors_are_as_large_as_said() -> None:
    x, theta, y = rows(1, 200.0)
    truth = theta + 200.0 * np.eye(DIM)[0]
    estimate = FactorPrior(mean="level").fit(GramStatistics.of(x, y))
    assert estimate.noise == pytest.approx(1.0, abs=0.25)
    deviation = np.sqrt(np.einsum("tii->ti", estimate.covariance))
    ratio = np.sqrt(np.mean(((estimate.theta - truth) / deviation) ** 2))
    assert 0.75 < ratio < 1.25


def test_without_a_constant_feature_there_is_no_level() -> None:
    x, _, y = rows(2, 3.0)
    x[..., 0] = np.random.default_rng(5).standard_normal(x.shape[:2])
    seen = GramStatistics.of(x, y)
    np.testing.assert_array_equal(FactorPrior(mean="level").fit(seen).theta, FactorPrior().fit(seen).theta)


def test_a_refit_starts_from_the_last_and_finds_the_level_anew() -> None:
    x, _, y = rows(3, 50.0)
    estimator = FactorPrior(mean="level", sweeps=0)
    first = estimator.fit(GramStatistics.of(x[:10], y[:10] - 30.0))
    again = estimator.refit(GramStatistics.of(x, y), first)
    np.testing.assert_allclose(again.theta, estimator.fit(GramStatistics.of(x, y)).theta, atol=0.05)


def test_equal_rewards_are_the_level() -> None:
    x, _, y = rows(4, 0.0)
    estimate = FactorPrior(mean="level").fit(GramStatistics.of(x, np.full_like(y, 7.3)))
    np.testing.assert_allclose(estimate.theta, 7.3 * np.eye(DIM)[[0] * N_TASKS], atol=1e-9)
    np.testing.assert_allclose(estimate.prior.mean, 7.3 * np.eye(DIM)[0], atol=1e-9)


def test_a_task_without_rows_is_expected_at_the_level() -> None:
    x, _, y = rows(5, 90.0)
    seen = GramStatistics.of(x, y).padded(N_TASKS + 1)
    estimate = FactorPrior(mean="level").fit(seen)
    assert estimate.theta[-1, 0] == pytest.approx(y.mean(), abs=1.0)
    np.testing.assert_allclose(estimate.theta[-1], estimate.prior.mean, atol=1e-9)
