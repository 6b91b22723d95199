"""Ridge and OracleBasis against closed forms and a likelihood computed the long way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from posse import GramStatistics, OracleBasis, Ridge
from posse.estimators.noise import noise_variance
from posse.estimators.ridge import MOST_UPDATES, RidgeEstimate
from posse.estimators.ridge_evidence import PENALTY_GRID, tridiagonal, tridiagonal_deviance
from posse.numerics.checks import Array
from posse.numerics.linalg import solve_symmetric
from posse.numerics.random import haar_basis

pytestmark = pytest.mark.filterwarnings("ignore::posse.core.errors.NoDataWarning")


def draw(seed: int, n: int = 12, n_tasks: int = 3, dim: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_tasks, dim))
    return x, np.vecdot(x, rng.standard_normal((n_tasks, dim))) + rng.standard_normal((n, n_tasks))


@given(seed=st.integers(0, 10_000), penalty=st.floats(1e-3, 1e3), n=st.integers(1, 12))
def test_agrees_with_least_squares_on_augmented_data(seed: int, penalty: float, n: int) -> None:
    x, y = draw(seed, n)
    theta = Ridge(penalty=penalty).fit(GramStatistics.of(x, y)).theta
    for t in range(3):
        augmented = np.vstack([x[:, t], np.sqrt(penalty) * np.eye(5)])
        expected = np.linalg.lstsq(augmented, np.append(y[:, t], np.zeros(5)))[0]
        assert_allclose(theta[t], expected, rtol=1e-8, atol=1e-10)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
@settings(max_examples=50)
def test_no_penalty_is_minimum_norm_least_squares(seed: int, n: int) -> None:
    x, y = draw(seed, n)
    x[..., 4] = x[..., 3]
    theta = Ridge(penalty=0).fit(GramStatistics.of(x, y)).theta
    for t in range(3):
        assert_allclose(theta[t], np.linalg.pinv(x[:, t]) @ y[:, t], rtol=1e-5, atol=1e-6)


def test_the_learned_penalty_is_the_likeliest_of_the_grid() -> None:
    x, y = draw(0, n=15)
    theta = Ridge().fit(GramStatistics.of(x, y)).theta
    for t in range(3):
        scale = np.trace(x[:, t].T @ x[:, t]) / (15 * 5)

        def log_likelihood(penalty: float, t: int = t) -> float:
            shape = np.eye(15) + x[:, t] @ x[:, t].T / penalty
            variance = y[:, t] @ np.linalg.solve(shape, y[:, t]) / 15
            return float(stats.multivariate_normal(np.zeros(15), variance * shape).logpdf(y[:, t]))

        best = max(scale * PENALTY_GRID, key=log_likelihood)
        assert_allclose(theta[t], Ridge(penalty=best).fit(GramStatistics.of(x, y)).theta[t], rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8])
def test_the_learned_penalty_follows_the_units(scale: float) -> None:
    x, y = draw(1)
    theta = Ridge().fit(GramStatistics.of(x, y)).theta
    assert_allclose(Ridge().fit(GramStatistics.of(scale * x, y)).theta * scale, theta, rtol=1e-6)
    assert_allclose(Ridge().fit(GramStatistics.of(x, scale * y)).theta / scale, theta, rtol=1e-6)


def test_oracle_is_ridge_on_projected_features() -> None:
    x, y = draw(2)
    basis = haar_basis(5, 2, np.random.default_rng(0))
    for penalty in (0.0, 1.5, "evidence"):
        estimate = OracleBasis(basis=basis, penalty=penalty).fit(GramStatistics.of(x, y))
        weights = Ridge(penalty=penalty).fit(GramStatistics.of(x @ basis, y)).theta
        assert estimate.weights is not None
        assert_allclose(estimate.weights, weights, rtol=1e-9)
        assert_allclose(estimate.theta, weights @ basis.T, rtol=1e-9)


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ValueError, match=r"`penalty` of Ridge .* Got -1"):
        Ridge(penalty=-1)
    with pytest.raises(ValueError, match=r"Got 'evidense'. Did you mean 'evidence'\? Known are evidence"):
        Ridge(penalty="evidense")
    with pytest.raises(ValueError, match=r"orthonormal columns"):
        OracleBasis(basis=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"must have dim=5 rows. Got 3"):
        OracleBasis(basis=np.eye(3)[:, :1]).fit(GramStatistics.of(*draw(0)))


def test_equally_likely_penalties_give_the_largest() -> None:
    """After one round every penalty is equally likely; the choice must not be left to rounding."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, y = rng.standard_normal((1, 1, 5)), rng.standard_normal((1, 1))
        largest = PENALTY_GRID[-1] * (x**2).sum() / 5
        theta = Ridge().fit(GramStatistics.of(x, y)).theta
        assert_allclose(theta, Ridge(penalty=largest).fit(GramStatistics.of(x, y)).theta, rtol=1e-9)
        assert_allclose(3 * Ridge().fit(GramStatistics.of(3 * x, y)).theta, theta, rtol=1e-9)


def test_evidence_counts_weights_and_reaches_both_ends_of_its_grid() -> None:
    x, y = draw(3, n=12)
    half = np.full(y.shape, 0.5)
    weighted = Ridge().fit(
        GramStatistics.of(np.concatenate([x, x]), np.concatenate([y, y]), np.tile(half, (2, 1)))
    )
    assert_allclose(weighted.theta, Ridge().fit(GramStatistics.of(x, y)).theta, rtol=1e-9)
    noise = np.random.default_rng(1).standard_normal((2000, 1))
    features = np.random.default_rng(2).standard_normal((2000, 1, 3))
    unrelated = Ridge().fit(GramStatistics.of(features, noise)).theta
    plain = Ridge(penalty=0).fit(GramStatistics.of(features, noise)).theta
    assert np.linalg.norm(unrelated) < 0.7 * np.linalg.norm(plain)
    exact = Ridge().fit(GramStatistics.of(features, features @ np.ones(3))).theta
    assert_allclose(exact, 1.0, rtol=1e-5)


def test_a_tiny_penalty_is_the_minimum_norm() -> None:
    x, y = draw(4, n=3)
    statistics = GramStatistics.of(x, y)
    assert_allclose(
        Ridge(penalty=1e-20).fit(statistics).theta, Ridge(penalty=0).fit(statistics).theta, rtol=1e-8
    )


@pytest.mark.parametrize(("every", "penalty", "size"), [(1, 0.5, 1.0), (3, 1e-6, 1.0), (1, 1.0, 1000.0)])
def test_updates_stay_where_fits_are(every: int, penalty: float, size: float) -> None:
    """600 rounds, more than an inverse is updated for, with penalties and units that are not kind."""
    x, y = draw(2, n=600, dim=8)
    x *= size * np.logspace(-1, 0, 8)
    ridge = Ridge(penalty=penalty)
    total = GramStatistics.zeros(3, 8)
    estimate = ridge.fit(total)
    ages = []
    for start in range(0, 600, every):
        block = GramStatistics.of(x[start : start + every], y[start : start + every])
        total = total + block
        estimate = ridge.refit(total, estimate, block)
        fitted = ridge.fit(total).theta
        assert_allclose(estimate.theta, fitted, atol=2e-5 * np.abs(fitted).max())
        ages.append(estimate.age if isinstance(estimate, RidgeEstimate) else 0)
    assert_allclose(estimate.covariance, ridge.fit(total).covariance, rtol=1e-6)
    assert 100 < max(ages) <= MOST_UPDATES
    assert ages.count(0) >= 2


def test_updates_count_weights_and_tasks_that_sit_out() -> None:
    x, y = draw(3, n=4, dim=8)
    weights = np.array([[1.0, 0.0, 2.0], [0.5, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]])
    ridge, nothing = Ridge(penalty=0.5), GramStatistics.zeros(3, 8)
    first, second = (GramStatistics.of(x[s], y[s], weights[s]) for s in (slice(0, 2), slice(2, 4)))
    assert first.rows is not None
    estimate = ridge.refit(first + second, ridge.refit(nothing + first, ridge.fit(nothing), first), second)
    assert_allclose(estimate.theta, ridge.fit(GramStatistics.of(x, y, weights)).theta, rtol=1e-10)
    assert_allclose(estimate.theta[1], 0.0)


def test_a_refit_is_a_fit_where_an_update_is_not_possible() -> None:
    x, y = draw(4, n=20, dim=8)
    early, block = GramStatistics.of(x[:18], y[:18]), GramStatistics.of(x[18:], y[18:])
    total = early + block
    for ridge, added in (
        (Ridge(), block),
        (Ridge(penalty=0), block),
        (Ridge(penalty=1e-12), block),
        (Ridge(penalty=1.0), None),
        (Ridge(penalty=1.0), GramStatistics.of(x, y)),
    ):
        estimate = ridge.refit(total, ridge.fit(early), added)
        assert not isinstance(estimate, RidgeEstimate)
        assert_allclose(estimate.theta, ridge.fit(total).theta, rtol=1e-12)


def test_rounds_are_not_the_callers_array() -> None:
    x, y = draw(7, n=1, dim=8)
    seen = GramStatistics.of(x, y)
    expected = seen.gram.copy()
    again = GramStatistics.of(x, y)
    x[:] = 99.0
    assert_allclose(again.gram, expected)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e80, 1e140])
def test_the_learned_penalty_follows_extreme_units_of_both(scale: float) -> None:
    x, y = draw(8, n=40)
    theta = Ridge().fit(GramStatistics.of(x, y)).theta
    assert_allclose(Ridge().fit(GramStatistics.of(scale * x, scale * y)).theta, theta, rtol=1e-6)


def test_an_estimate_with_another_penalty_is_not_updated() -> None:
    x, y = draw(6, n=3, dim=8)
    first, second = (GramStatistics.of(x[rows], y[rows]) for rows in (slice(0, 2), slice(2, 3)))
    other = Ridge(penalty=5.0)
    known = other.refit(first, other.fit(GramStatistics.zeros(3, 8)), first)
    found = Ridge(penalty=0.5).refit(first + second, known, second)
    assert_allclose(found.theta, Ridge(penalty=0.5).fit(first + second).theta, rtol=1e-10)


def test_covariances_of_singular_data_have_the_same_form() -> None:
    x, y = draw(5, n=3)
    seen = GramStatistics.of(x, y)
    for penalty in (1e-10, 1e-3, 1.0):  # by eigenvectors, and by Cholesky factors
        estimate = Ridge(penalty=penalty).fit(seen)
        precision = seen.gram + penalty * np.eye(5)
        noise = noise_variance(seen.square - np.vecdot(seen.moment, estimate.theta), seen.square, seen.count)
        product = estimate.covariance @ precision / noise[:, None, None]
        assert_allclose(product, np.broadcast_to(np.eye(5), (3, 5, 5)), atol=1e-4 if penalty < 1e-9 else 1e-9)
        assert (np.triu(estimate.root, 1) == 0).all()


@given(seed=st.integers(0, 10_000), dim=st.integers(1, 9))
def test_tridiagonal_matrices_answer_as_eigenvalues_do(seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((3, dim, 4))
    matrices, vectors = factors @ factors.mT, rng.standard_normal((3, dim))
    penalties = np.exp(rng.uniform(-8, 8, (3, 6)))
    explained, log_determinant = np.empty((2, 3, 6))
    tridiagonal_deviance(*tridiagonal(matrices, vectors), penalties, explained, log_determinant)
    values, rotation = np.linalg.eigh(matrices)
    rotated = np.vecmat(vectors, rotation)
    shifted = values[:, :, None] + penalties[:, None]
    assert_allclose(explained, (rotated[..., None] ** 2 / shifted).sum(axis=1), rtol=1e-7)
    assert_allclose(log_determinant, np.log(shifted / penalties[:, None]).sum(axis=1), rtol=1e-7, atol=1e-9)


def test_regular_systems_are_solved_as_singular_ones_are() -> None:
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((4, 6, 9))
    matrices, vectors = factors @ factors.mT, rng.standard_normal((4, 6))
    regular = solve_symmetric(matrices, vectors)
    assert_allclose(regular, np.linalg.solve(matrices, vectors[..., None])[..., 0], rtol=1e-10)
    matrices[0] = 0.0  # one singular matrix sends all the other way
    vectors[0] = 0.0
    assert_allclose(solve_symmetric(matrices, vectors)[1:], regular[1:], rtol=1e-8)
