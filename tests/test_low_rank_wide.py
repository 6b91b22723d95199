"""LowRank where data are short or wide: against another method, and the cases with a known answer."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.low_rank import spectral_start
from benchmarks.reference import joint_lbfgs
from numpy.testing import assert_allclose, assert_array_equal

from posse import Estimate, GramStatistics, LowRank, Ridge
from posse.core.estimate import ConvergenceWarning
from posse.estimators.low_rank.coordinates import low_rank_factors, packed_product, packed_triangles
from posse.estimators.low_rank.estimator import _stages
from posse.estimators.low_rank.newton import (
    SubspaceProblem,
    evaluate,
    hessian_product,
    orthonormal,
)
from posse.numerics.checks import Array
from posse.numerics.linalg import solve_symmetric
from tangent import TangentRidge

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::posse.core.errors.NoDataWarning"),
]

Shape = tuple[int, int, int, int]
SHORT: tuple[Shape, ...] = ((50, 6, 12, 2), (60, 10, 8, 3))  # d, T, n, k


def draw(shape: Shape, seed: int) -> tuple[Array, Array]:
    """Return features (n, T, d) and rewards (n, T) of a problem of rank k, with noise."""
    dim, n_tasks, n, rank = shape
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_tasks, dim))
    theta = rng.standard_normal((n_tasks, rank)) @ rng.standard_normal((rank, dim))
    return x, np.vecdot(x, theta) + rng.standard_normal((n, n_tasks))


def tangent_ridge(x: Array, y: Array, rank: int) -> TangentRidge:
    n, n_tasks, dim = x.shape
    return TangentRidge(x.reshape(-1, dim), np.tile(np.arange(n_tasks), n), y.ravel(), rank)


def fit(statistics: GramStatistics, rank: int, penalty: float = 0.0) -> Estimate:
    """Fit; that the gradient did not vanish is the only warning allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimate = LowRank(rank=rank, penalty=penalty).fit(statistics)
    assert estimate.basis is not None
    assert estimate.weights is not None
    assert_allclose(estimate.basis.T @ estimate.basis, np.eye(rank), atol=1e-12)
    assert np.isfinite(estimate.theta).all()
    assert_allclose(
        estimate.weights @ estimate.basis.T, estimate.theta, atol=1e-12 * np.abs(estimate.theta).max()
    )
    return estimate


def objective(statistics: GramStatistics, theta: Array, penalty: float) -> float:
    error = np.einsum("tde,te->td", statistics.gram, theta) + penalty * theta - 2 * statistics.moment
    return float(np.vdot(theta, error) + statistics.square.sum())


@pytest.mark.parametrize("shape", SHORT)
def test_short_data_are_fitted_with_nearly_the_least_norm(shape: Shape) -> None:
    """Of ten fixed instances, most have the least norm that three other starts find; none is far off."""
    excess = []
    for seed in range(10):
        x, y = draw(shape, seed)
        theta = fit(GramStatistics.of(x, y), shape[3]).theta
        other, rng = tangent_ridge(x, y, shape[3]), np.random.default_rng(seed)
        ends = [other.solve(1e-8, first, rng, 1e-4) for first in (1.0, 0.1, 0.01)]
        for end in (theta, *ends):
            assert (other.residual(end) ** 2).sum() < 1e-9 * (y**2).sum()
        excess.append((theta**2).sum() / min((end**2).sum() for end in ends) - 1)
    assert np.count_nonzero(np.array(excess) < 0.01) >= 6
    assert max(excess) < 0.1


@pytest.mark.parametrize("relative", [0.1, 1e-3])
@pytest.mark.parametrize("shape", SHORT)
def test_a_penalised_objective_is_close_to_the_best_known(shape: Shape, relative: float) -> None:
    excess = []
    for seed in range(10):
        x, y = draw(shape, seed)
        other, rng = tangent_ridge(x, y, shape[3]), np.random.default_rng(seed)
        penalty = relative * other.scale
        theta = fit(GramStatistics.of(x, y), shape[3], penalty).theta
        ends = [other.solve(relative, first, rng, 1e-4) for first in (1.0, 0.1, 0.01)]
        best = min(other.objective(end, penalty) for end in ends)
        excess.append(other.objective(theta, penalty) / best - 1)
    assert np.count_nonzero(np.array(excess) < 1e-3) >= 5
    assert max(excess) < 0.1


@pytest.mark.parametrize(("relative", "gain"), [(0.1, 1e-9), (1e-3, 1e-6), (0.0, 0.02)])
@pytest.mark.parametrize("shape", SHORT)
def test_the_other_method_finds_no_descent(shape: Shape, relative: float, gain: float) -> None:
    """The gradient's tolerance leaves the vanishing ridge up to a hundredth above its minimum."""
    for seed in range(5):
        x, y = draw(shape, seed)
        other = tangent_ridge(x, y, shape[3])
        theta = fit(GramStatistics.of(x, y), shape[3], relative * other.scale).theta
        penalty = max(relative, 1e-6) * other.scale
        polished = other.descend(theta, penalty, 1e-8)
        assert other.objective(theta, penalty) <= (1 + gain) * other.objective(polished, penalty)


@pytest.mark.parametrize("shape", SHORT)
def test_the_joint_gradient_vanishes(shape: Shape) -> None:
    x, y = draw(shape, 0)
    rank, statistics = shape[3], GramStatistics.of(x, y)
    estimate = fit(statistics, rank, penalty=0.1)
    assert estimate.basis is not None
    assert estimate.weights is not None
    B, W = estimate.basis, estimate.weights

    def f(move: Array) -> float:
        theta = (W + move[shape[0] :]) @ (B + move[: shape[0]]).T
        return float(((y - np.vecdot(x, theta)) ** 2).sum() + 0.1 * (theta**2).sum())

    rng = np.random.default_rng(0)
    for _ in range(20):
        move = rng.standard_normal((shape[0] + shape[1], rank))
        slope = (f(1e-5 * move) - f(-1e-5 * move)) / 2e-5
        assert abs(slope) < 1e-4 * abs(f(1e-2 * move) - f(0.0 * move)) / 1e-2
    assert estimate.certificate is not None
    assert estimate.certificate.converged
    assert estimate.certificate.objective == pytest.approx(f(0.0 * move), rel=1e-7)


@pytest.mark.parametrize("penalty", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHORT)
def test_rotation_order_and_reward_scale_pass_through(shape: Shape, penalty: float) -> None:
    x, y = draw(shape, 1)
    dim, rank = shape[0], shape[3]
    theta = fit(GramStatistics.of(x, y), rank, penalty).theta

    def same(other: Array) -> None:
        if penalty:
            assert_allclose(other, theta, atol=1e-5 * np.abs(theta).max())
        else:  # rounding may choose another of the minima whose norms hardly differ
            assert (other**2).sum() == pytest.approx((theta**2).sum(), rel=0.02)

    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((dim, dim)))[0]
    turned = fit(GramStatistics.of(x @ Q, y), rank, penalty).theta @ Q.T
    same(turned)
    same(fit(GramStatistics.of(x[:, ::-1], y[:, ::-1]), rank, penalty).theta[::-1])
    same(fit(GramStatistics.of(x, 1e3 * y), rank, penalty).theta / 1e3)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("shape", [*SHORT, (300, 5, 10, 2)])
def test_the_scale_of_features_passes_through(shape: Shape, scale: float) -> None:
    """Rounding may lead to another point on the flat surface of exact fits, or of nearly the same norm."""
    x, y = draw(shape, 2)
    theta = fit(GramStatistics.of(x, y), shape[3]).theta
    scaled = scale * fit(GramStatistics.of(scale * x, y), shape[3]).theta
    assert (scaled**2).sum() == pytest.approx((theta**2).sum(), rel=0.02)
    assert_allclose(np.vecdot(x, scaled), y, atol=1e-2 * np.abs(y).max())


@pytest.mark.parametrize("penalty", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize(("dim", "n_tasks"), [(40, 1), (40, 4), (300, 1), (300, 3)])
def test_with_as_many_directions_as_tasks_it_is_ridge(dim: int, n_tasks: int, penalty: float) -> None:
    x, y = draw((dim, n_tasks, 6, 1), 0)
    statistics = GramStatistics.of(x, y)
    theta = fit(statistics, n_tasks, penalty).theta
    assert_allclose(theta, Ridge(penalty=penalty).fit(statistics).theta, atol=1e-12)
    if penalty == 0.0:
        expected = [np.linalg.pinv(x[:, t]) @ y[:, t] for t in range(n_tasks)]
        assert_allclose(theta, expected, atol=1e-9)


def test_factors_reproduce_matrices_of_low_rank() -> None:
    rng = np.random.default_rng(0)
    x = [rng.standard_normal((n, 11)) for n in (3, 0, 5, 1)]
    gram = np.stack([rows.T @ rows for rows in x])
    factor = low_rank_factors(gram)
    assert factor is not None
    assert factor.shape == (4, 11, 5)
    assert_allclose(factor @ factor.mT, gram, atol=1e-12)
    assert_array_equal(factor[1], 0.0)
    assert low_rank_factors(np.stack([*gram, np.eye(11)])) is None
    nothing = low_rank_factors(np.zeros((2, 11, 11)))
    assert nothing is not None
    assert nothing.shape == (2, 11, 0)


@pytest.mark.parametrize("rank", range(1, 11))
def test_factors_stop_at_half_the_dimension(rank: int) -> None:
    rows = np.random.default_rng(rank).standard_normal((rank, 10))
    assert (low_rank_factors((rows.T @ rows)[None]) is None) == (rank > 5)


def test_products_through_the_factor_are_those_through_the_gram() -> None:
    x, y = draw((30, 5, 8, 2), 0)
    x[:4, 2] = 0.0
    x[:, 3] = 0.0
    statistics = GramStatistics.of(x, y)
    total, factor = float(statistics.square.sum()), low_rank_factors(statistics.gram)
    assert factor is not None
    plain, factored = (
        SubspaceProblem(statistics.gram, statistics.moment, total, np.eye(30), 0.3, given)
        for given in (None, factor)
    )
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5, 4, 30))
    assert_allclose(factored.times_gram(rows), plain.times_gram(rows), atol=1e-11)
    bases, direction = orthonormal(rng.standard_normal((2, 30, 2))), rng.standard_normal((2, 30, 2))
    ends = [evaluate(problem, bases) for problem in (plain, factored)]
    assert_allclose(ends[1].objective, ends[0].objective, rtol=1e-12)
    assert_allclose(ends[1].gradient, ends[0].gradient, atol=1e-10)
    curved = [hessian_product(p, end, direction) for p, end in zip((plain, factored), ends, strict=True)]
    assert_allclose(curved[1], curved[0], atol=1e-9)


def test_packed_triangles_stand_for_symmetric_matrices() -> None:
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((3, 7, 7))
    matrices += matrices.mT
    rows = rng.standard_normal((3, 2, 7)).astype(np.float32)
    triangles = packed_triangles(matrices)
    assert triangles.shape == (3, 28)
    assert_allclose(packed_product(triangles, rows), rows @ matrices, atol=1e-5)


@pytest.mark.parametrize("rewards", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("n", [20, 320])
def test_rough_products_are_good_to_single_precision(n: int, rewards: float) -> None:
    x, y = draw((300, 5, n, 2), 0)
    rough = _stages(GramStatistics.of(x, rewards * y), 2, 0.0 if n == 20 else 1.0)[0]
    assert rough.rough is not None
    assert (rough.factor is None) == (n == 320)
    rng = np.random.default_rng(0)
    points = evaluate(rough, orthonormal(rng.standard_normal((1, rough.transform.shape[1], 2))))
    direction = rng.standard_normal(points.coordinates.shape)
    expected = hessian_product(replace(rough, rough=None), points, direction)
    atol = 1e-5 * np.abs(expected).max()
    assert_allclose(hessian_product(rough, points, direction), expected, rtol=0, atol=atol)


def test_features_never_seen_change_nothing() -> None:
    seen = GramStatistics.of(*draw((300, 5, 10, 2), 0))
    kept = np.sort(np.random.default_rng(0).permutation(420)[:300])
    gram, moment = np.zeros((5, 420, 420)), np.zeros((5, 420))
    gram[:, kept[:, None], kept], moment[:, kept] = seen.gram, seen.moment
    theta = fit(GramStatistics(gram, moment, seen.square, seen.count), 2, 1.0).theta
    assert_allclose(theta[:, kept], fit(seen, 2, 1.0).theta, atol=1e-5 * np.abs(theta).max())
    assert_array_equal(np.delete(theta, kept, axis=1), 0.0)


@pytest.mark.parametrize("n", [20, 320])
def test_wide_data_agree_with_another_optimiser_from_the_same_start(n: int) -> None:
    x, y = draw((300, 5, n, 2), 0)
    statistics = GramStatistics.of(x, y)
    penalty = 0.01 * float(np.einsum("tii->", statistics.gram)) / 1500
    estimate = fit(statistics, 2, penalty)
    assert estimate.certificate is not None
    assert estimate.certificate.converged
    assert len(_stages(statistics, 2, penalty)) > 1
    value = objective(statistics, estimate.theta, penalty)
    other = joint_lbfgs(statistics, *spectral_start(statistics, 2, penalty), penalty=penalty)
    assert value == pytest.approx(estimate.certificate.objective, rel=1e-8)
    assert value == pytest.approx(other.fun, rel=1e-6)


@pytest.mark.parametrize("dim", [20, 300])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_nothing_seen_is_nothing_known(dim: int, penalty: float) -> None:
    for statistics in (
        GramStatistics.zeros(4, dim),
        GramStatistics.of(np.ones((3, 4, dim)), np.zeros((3, 4))),
        GramStatistics.of(np.zeros((3, 4, dim)), np.ones((3, 4))),
    ):
        assert_allclose(fit(statistics, 2, penalty).theta, 0.0, atol=1e-12)


@pytest.mark.parametrize("shape", [*SHORT, (300, 5, 10, 2)])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_tasks_without_data_and_features_that_never_vary(shape: Shape, penalty: float) -> None:
    x, y = draw(shape, 3)
    x[..., 0], x[..., 1] = 0.0, 1.0
    seen = np.arange(shape[1]) != 2
    statistics = GramStatistics.of(x, y, np.broadcast_to(seen, y.shape))
    theta = fit(statistics, shape[3], penalty).theta
    size = np.abs(theta).max()
    assert_allclose(theta[2], 0.0, atol=1e-9 * size)
    assert_allclose(theta[:, 0], 0.0, atol=1e-6 * size)
    if penalty == 0.0:
        assert ((y - np.vecdot(x, theta))[:, seen] ** 2).sum() < 1e-8 * (y**2).sum()


@pytest.mark.parametrize("shape", SHORT)
def test_rounds_of_half_weight_are_half_the_rounds_twice(shape: Shape) -> None:
    x, y = draw(shape, 4)
    half = GramStatistics.of(x, y).discount(0.5)
    assert_allclose((half + half).count, shape[2])
    theta = fit(GramStatistics.of(x, y), shape[3], 0.2).theta
    # both stop where the gradient is 1e-7, and how sums are rounded decides where that is
    assert_allclose(fit(half, shape[3], 0.1).theta, theta, atol=1e-5 * np.abs(theta).max())


@pytest.mark.parametrize("factor", [0.5, 0.01])
def test_what_is_discounted_evenly_has_the_same_fit(factor: float) -> None:
    """Discounting lowers the count, but not the number of equations."""
    statistics = GramStatistics.of(*draw((30, 20, 10, 3), 0))
    theta = fit(statistics, 3).theta
    assert len(_stages(statistics.discount(factor), 3, 0.0)) == 1
    assert_allclose(fit(statistics.discount(factor), 3).theta, theta, atol=1e-6 * np.abs(theta).max())


def test_rounds_that_repeat_few_actions_are_short() -> None:
    """Two actions a task, 50 times each: as if their mean rewards had been seen, with 50 times the weight."""
    x, y = draw((40, 6, 2, 2), 0)
    noise = np.random.default_rng(1).standard_normal((50, 2, 6))
    repeated = (y + noise).reshape(100, 6)
    statistics = GramStatistics.of(np.tile(x, (50, 1, 1)), repeated)
    theta = fit(statistics, 2).theta
    mean = repeated.reshape(50, 2, 6).mean(axis=0)
    assert_allclose(np.vecdot(x, theta), mean, atol=1e-4 * np.abs(mean).max())
    least = [np.linalg.pinv(x[:, t]) @ mean[:, t] for t in range(6)]
    other = tangent_ridge(x, mean, 2).solve(1e-8, 1.0, np.random.default_rng(0))
    assert np.square(least).sum() <= (theta**2).sum() <= 1.1 * (other**2).sum()


@pytest.mark.parametrize("padding", [0, 60])
@pytest.mark.parametrize("scale", ["even", "graded"])
def test_short_means_fewer_equations_than_unknowns(padding: int, scale: str) -> None:
    """Neither the units of features nor features that are always zero make data short or long."""
    for n, short in ((4, True), (5, False)):  # 10 tasks, k = 2, d = 14: 44 unknowns
        x, y = draw((14, 10, n, 2), 0)
        units = np.logspace(-3, 3, 14) if scale == "graded" else np.ones(14)
        padded = np.pad(x * units, ((0, 0), (0, 0), (0, padding)))
        assert (len(_stages(GramStatistics.of(padded, y), 2, 0.0)) > 1) == short


@pytest.mark.parametrize("dim", [40, 300])
def test_a_rank_above_the_tasks_is_an_error(dim: int) -> None:
    with pytest.raises(ValueError, match=rf"min\(dim={dim}, n_tasks=3\)=3\]. Got 4"):
        LowRank(rank=4).fit(GramStatistics.zeros(3, dim))


@pytest.mark.parametrize("n", [4, 60])
@pytest.mark.parametrize(("relative", "tol"), [(1e-8, 1e-6), (1e-4, 1e-9), (1.0, 1e-12), (1e6, 1e-12)])
def test_ridge_is_the_same_by_elimination_by_eigenvalues_and_in_the_dual(
    n: int, relative: float, tol: float
) -> None:
    """The smaller the penalty, the more it magnifies the rounding of X'X and X'y."""
    x, y = draw((20, 3, n, 2), 5)
    statistics = GramStatistics.of(x, y)
    penalty = relative * n
    theta = Ridge(penalty=penalty).fit(statistics).theta
    by_eigenvalues = solve_symmetric(statistics.gram + penalty * np.eye(20), statistics.moment)
    kernel = [x[:, t] @ x[:, t].T + penalty * np.eye(n) for t in range(3)]
    dual = np.stack([x[:, t].T @ np.linalg.solve(kernel[t], y[:, t]) for t in range(3)])
    atol = tol * np.abs(dual).max()
    assert_allclose(theta, by_eigenvalues, rtol=0, atol=atol)
    assert_allclose(theta, dual, rtol=0, atol=atol)


@pytest.mark.parametrize("penalty", [0.0, 1e-300, 1e-20])
def test_a_ridge_too_small_to_matter_is_the_least_norm(penalty: float) -> None:
    x, y = draw((20, 3, 4, 2), 6)
    theta = Ridge(penalty=penalty).fit(GramStatistics.of(x, y)).theta
    assert_allclose(theta, [np.linalg.pinv(x[:, t]) @ y[:, t] for t in range(3)], atol=1e-9)


@pytest.mark.parametrize(("dim", "rank"), [(12, 3), (12, 2), (300, 2)])
def test_ample_data_are_fitted_exactly_in_any_units(dim: int, rank: int) -> None:
    """Without noise and with more rounds than features, least squares is the truth: no ridge may be left."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((3, rank)) @ rng.standard_normal((rank, dim))
    units = np.logspace(-1.5, 1.5, dim) if dim == 300 else np.logspace(-4, 4, dim)
    x = rng.standard_normal((2 * dim, 3, dim))
    found = fit(GramStatistics.of(x * units, np.vecdot(x, theta)), rank).theta * units
    assert_allclose(found, theta, atol=1e-4 * np.abs(theta).max())
