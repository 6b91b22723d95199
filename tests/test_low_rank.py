"""LowRank: its derivatives, its optima against another optimiser, and the cases with a known answer."""

import warnings

import numpy as np
import pytest
from benchmarks.reference import best_of_restarts, instance
from numpy.testing import assert_allclose, assert_array_equal

from posse import Estimate, GramStatistics, LowRank, Ridge
from posse.core.estimate import ConvergenceWarning
from posse.estimators.low_rank import estimator as low_rank
from posse.estimators.low_rank.newton import (
    SubspaceProblem,
    evaluate,
    hessian_product,
    orthonormal,
    semi_inverse,
)
from posse.numerics import linalg
from posse.numerics.checks import Array

pytestmark = pytest.mark.filterwarnings("ignore::posse.core.errors.NoDataWarning")

Data = tuple[list[Array], list[Array]]


def draw(dim: int, rank: int, n_tasks: int, n: int, noise: float = 1.0) -> tuple[Data, Array]:
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((n_tasks, rank)) @ rng.standard_normal((rank, dim))
    X = [rng.standard_normal((n, dim)) for _ in range(n_tasks)]
    return (X, [x @ v + noise * rng.standard_normal(n) for x, v in zip(X, theta, strict=True)]), theta


def summarise(data: Data) -> GramStatistics:
    X, Y = data
    return GramStatistics(
        np.stack([x.T @ x for x in X]),
        np.stack([x.T @ y for x, y in zip(X, Y, strict=True)]),
        np.array([y @ y for y in Y]),
        np.array([float(len(y)) for y in Y]),
    )


def objective(data: Data, theta: Array) -> float:
    return float(sum(((y - x @ v) ** 2).sum() for x, y, v in zip(*data, theta, strict=True)))


def check(data: Data, estimate: Estimate, penalty: float = 0.0) -> float:
    """Check that the parts of an estimate agree with each other and with the data; return its objective."""
    assert estimate.basis is not None
    assert estimate.weights is not None
    assert estimate.certificate is not None
    assert estimate.certificate.converged
    assert_allclose(estimate.basis.T @ estimate.basis, np.eye(estimate.basis.shape[1]), atol=1e-12)
    assert_allclose(estimate.weights @ estimate.basis.T, estimate.theta, atol=1e-12)
    value = objective(data, estimate.theta) + penalty * float((estimate.theta**2).sum())
    total = float(sum((y**2).sum() for y in data[1]))
    assert estimate.certificate.objective == pytest.approx(value, rel=1e-7, abs=1e-9 * total)
    return value


@pytest.fixture
def problem() -> SubspaceProblem:
    statistics = instance(8, 2, 6, 20, 3)
    return SubspaceProblem(statistics.gram, statistics.moment, float(statistics.square.sum()), np.eye(8))


def test_gradient_and_hessian_by_finite_differences(problem: SubspaceProblem) -> None:
    basis = orthonormal(np.random.default_rng(0).standard_normal((1, 8, 2)))
    points = evaluate(problem, basis)
    complement = np.linalg.qr(basis[0], mode="complete")[0][:, 2:]
    units = np.eye(12)

    def f(z: Array) -> float:
        moved = orthonormal(basis + (complement @ z.reshape(6, 2))[None])
        return float(evaluate(problem, moved).objective[0])

    def second_differences(h: float) -> Array:
        return np.array(
            [
                [
                    (f(h * (u + v)) - f(h * (u - v)) - f(h * (v - u)) + f(-h * (u + v))) / (4 * h * h)
                    for u in units
                ]
                for v in units
            ]
        )

    gradient = np.array([(f(1e-5 * v) - f(-1e-5 * v)) / 2e-5 for v in units]) / 2
    assert_allclose((complement.T @ points.gradient[0]).ravel(), gradient, rtol=1e-6, atol=1e-7)
    hessian = (4 * second_differences(1e-3) - second_differences(2e-3)) / 6
    exact = np.array(
        [
            (complement.T @ hessian_product(problem, points, (complement @ v.reshape(6, 2))[None])[0]).ravel()
            for v in units
        ]
    )
    assert_allclose(exact, exact.T, atol=1e-12)
    assert_allclose(exact, hessian, rtol=1e-4, atol=1e-5)


def test_hessian_agrees_with_the_dense_formula(problem: SubspaceProblem) -> None:
    rng = np.random.default_rng(0)
    basis = orthonormal(rng.standard_normal((1, 8, 2)))
    points = evaluate(problem, basis)
    B, V = basis[0], rng.standard_normal((8, 2))
    V -= B @ (B.T @ V)
    hessian = np.zeros((16, 16))
    for G, w, r in zip(problem.gram, points.weights[0], points.residual[0], strict=True):
        C = np.kron(w[:, None], G @ B) - np.kron(np.eye(2), r[:, None])
        hessian += np.kron(np.outer(w, w), G) - C @ np.linalg.solve(B.T @ G @ B, C.T)
    expected = (hessian @ V.ravel(order="F")).reshape(8, 2, order="F")
    expected -= B @ (B.T @ expected)
    assert_allclose(hessian_product(problem, points, V[None])[0], expected, atol=1e-10)


def test_semi_inverse_is_a_generalised_inverse() -> None:
    rng = np.random.default_rng(0)
    stack = rng.standard_normal((5, 4, 4))
    stack = stack @ stack.mT
    stack[1] = 0.0
    stack[2] = stack[2, :, :2] @ stack[2, :, :2].T
    inverse = semi_inverse(stack)
    assert_allclose(inverse[[0, 3, 4]], np.linalg.inv(stack[[0, 3, 4]]), rtol=1e-8)
    assert_allclose(stack @ inverse @ stack, stack, atol=1e-8)
    assert_allclose(inverse @ stack @ inverse, inverse, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 2, 10, 100), (30, 5, 50, 100), (30, 5, 50, 900), (30, 3, 20, 40)])
def test_no_worse_than_the_best_of_many_restarts_of_another_optimiser(
    shape: tuple[int, int, int, int],
) -> None:
    """Eight fixed instances of each, 20 restarts; one may be missed. The benchmark runs 200 of each."""
    reached = 0
    for seed in range(8):
        statistics = instance(*shape, seed)
        certificate = LowRank(rank=shape[1]).fit(statistics).certificate
        assert certificate is not None
        assert certificate.converged
        reached += certificate.objective <= (1 + 1e-6) * best_of_restarts(statistics, shape[1], 20, seed)
    assert reached >= 7


@pytest.mark.parametrize("shape", [(20, 2, 10, 100), (30, 5, 50, 100), (30, 3, 20, 20)])
def test_the_gradient_in_the_original_coordinates_vanishes(shape: tuple[int, int, int, int]) -> None:
    statistics = instance(*shape, 1)
    estimate = LowRank(rank=shape[1]).fit(statistics)
    assert estimate.basis is not None
    assert estimate.weights is not None
    error = np.einsum("tde,te->td", statistics.gram, estimate.theta) - statistics.moment
    scale = float(np.linalg.norm(statistics.moment))
    assert np.linalg.norm(error @ estimate.basis) < 1e-6 * scale
    assert np.linalg.norm(error.T @ estimate.weights) < 1e-5 * scale * np.linalg.norm(estimate.weights)


@pytest.mark.parametrize(("told", "n"), [(3, 10), (3, 40), (5, 40)])
def test_without_noise_the_truth_is_found(told: int, n: int) -> None:
    data, theta = draw(15, 3, 12, n, noise=0.0)
    estimate = LowRank(rank=told).fit(summarise(data))
    check(data, estimate)
    assert_allclose(estimate.theta, theta, atol=1e-5)


@pytest.mark.parametrize("n", [30, 6, 2])
@pytest.mark.parametrize(("n_tasks", "rank"), [(1, 1), (4, 4), (9, 8), (2, 2)])
def test_where_the_rank_is_no_restriction_it_is_least_squares(n_tasks: int, rank: int, n: int) -> None:
    data, _ = draw(8, 2, n_tasks, n)
    statistics = summarise(data)
    estimate = LowRank(rank=rank).fit(statistics)
    check(data, estimate)
    assert_allclose(estimate.theta, [np.linalg.pinv(x) @ y for x, y in zip(*data, strict=True)], atol=1e-7)


@pytest.mark.parametrize("scale", [1e-8, 1e8, "mixed", "graded"])
@pytest.mark.parametrize("n", [60, 9])
def test_the_units_of_features_do_not_matter(scale: float | str, n: int) -> None:
    (X, Y), _ = draw(12, 2, 8, n)
    scales = {"mixed": np.where(np.arange(12) % 2, 1e-8, 1e8), "graded": np.logspace(-8, 8, 12)}
    c = scales[scale] if isinstance(scale, str) else np.full(12, scale)
    expected = LowRank(rank=2).fit(summarise((X, Y)))
    found = LowRank(rank=2).fit(summarise(([x * c for x in X], Y)))
    assert expected.certificate is not None
    assert found.certificate is not None
    assert found.certificate.objective == pytest.approx(expected.certificate.objective, rel=1e-8)
    size = np.abs(expected.theta).max()
    assert_allclose(found.theta * c, expected.theta, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("n", [60, 20])
def test_rotation_order_and_reward_scale_pass_through(n: int) -> None:
    (X, Y), _ = draw(12, 2, 8, n)
    fit = LowRank(rank=2).fit
    theta = fit(summarise((X, Y))).theta
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((12, 12)))[0]
    assert_allclose(fit(summarise(([x @ Q for x in X], Y))).theta @ Q.T, theta, atol=1e-6)
    assert_allclose(fit(summarise((X[::-1], Y[::-1]))).theta[::-1], theta, atol=1e-6)
    assert_allclose(fit(summarise((X, [1e3 * y for y in Y]))).theta / 1e3, theta, atol=1e-6)
    assert_array_equal(fit(summarise((X, Y))).theta, theta)


@pytest.mark.parametrize("n", [60, 9])
def test_zero_and_duplicated_features_get_the_least_norm(n: int) -> None:
    (X, Y), _ = draw(10, 2, 8, n)
    wide = [np.hstack([x, np.zeros((len(x), 1)), 3.0 * x[:, :2]]) for x in X]
    estimate = LowRank(rank=2).fit(summarise((wide, Y)))
    value = check((wide, Y), estimate)
    assert value == pytest.approx(check((X, Y), LowRank(rank=2).fit(summarise((X, Y)))), rel=1e-9)
    assert_allclose(estimate.theta[:, 10], 0.0, atol=1e-12)
    assert_allclose(estimate.theta[:, 11:], 3.0 * estimate.theta[:, :2], atol=1e-8)


def test_tasks_with_little_data() -> None:
    (X, Y), _ = draw(10, 2, 8, 40)
    X[3], Y[3] = X[3][:0], Y[3][:0]
    X[5], Y[5] = X[5][:1], Y[5][:1]
    statistics = summarise((X, Y))
    estimate = LowRank(rank=2).fit(statistics)
    value = check((X, Y), estimate)
    assert estimate.basis is not None
    assert estimate.weights is not None
    assert_array_equal(estimate.theta[3], 0.0)
    assert_allclose(estimate.weights[5], np.linalg.pinv(X[5] @ estimate.basis) @ Y[5], atol=1e-9)
    without = LowRank(rank=2).fit(statistics.take([t for t in range(8) if t != 3]))
    assert without.certificate is not None
    assert value == pytest.approx(without.certificate.objective, rel=1e-9)


@pytest.mark.parametrize("n", [40, 5])
def test_the_penalty_is_a_ridge(n: int) -> None:
    data, _ = draw(10, 2, 12, n)
    statistics = summarise(data)
    value = check(data, LowRank(rank=2, penalty=3.0).fit(statistics), penalty=3.0)
    shifted = GramStatistics(
        statistics.gram + 3.0 * np.eye(10), statistics.moment, statistics.square, statistics.count
    )
    other = LowRank(rank=2).fit(shifted).certificate
    assert other is not None
    assert value == pytest.approx(other.objective, rel=1e-9)
    assert_allclose(
        LowRank(rank=10, penalty=3.0).fit(statistics).theta,
        Ridge(penalty=3.0).fit(statistics).theta,
        atol=1e-9,
    )


def test_nothing_observed_and_nothing_earned() -> None:
    for statistics in (GramStatistics.zeros(4, 5), summarise(([np.eye(5)] * 4, [np.zeros(5)] * 4))):
        estimate = LowRank(rank=2).fit(statistics)
        assert_array_equal(estimate.theta, np.zeros((4, 5)))
        assert estimate.certificate is not None
        assert estimate.certificate.objective == 0.0
        assert estimate.certificate.converged


def test_more_starts_are_never_worse_and_one_is_the_spectral_start() -> None:
    statistics = instance(30, 3, 20, 40, 5)
    values = []
    for n_starts in (1, 8, 160):
        certificate = LowRank(rank=3, n_starts=n_starts).fit(statistics).certificate
        assert certificate is not None
        values.append(certificate.objective)
    assert values[0] >= values[1] * (1 - 1e-9) >= values[2] * (1 - 2e-9)


def test_screening_on_some_tasks_finds_the_same_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = instance(20, 2, 120, 60, 0)
    expected = LowRank(rank=2).fit(statistics)
    monkeypatch.setattr(low_rank, "SCREENED", 40)
    found = LowRank(rank=2).fit(statistics)
    assert expected.certificate is not None
    assert found.certificate is not None
    assert found.certificate.converged
    assert found.certificate.objective == pytest.approx(expected.certificate.objective, rel=1e-9)
    assert_allclose(found.theta, expected.theta, atol=1e-5)


def test_short_data_of_many_tasks_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screening then goes through factors of the Gram matrices."""
    monkeypatch.setattr(low_rank, "SCREENED", 20)
    data, _ = draw(20, 2, 60, 2)
    statistics = summarise(data)
    assert low_rank._stages(statistics, 2, 0.0)[0].factor is not None
    theta = LowRank(rank=2).fit(statistics).theta
    assert objective(data, theta) < 1e-4 * statistics.square.sum()


def test_screening_does_not_depend_on_order_coordinates_or_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The instance has several minima, and screening on other tasks may find others."""
    monkeypatch.setattr(low_rank, "SCREENED", 30)
    (X, Y), _ = draw(12, 3, 90, 9, noise=3.0)
    X[4], Y[4] = X[4][:0], Y[4][:0]
    fit = LowRank(rank=3).fit
    theta = fit(summarise((X, Y))).theta
    assert_array_equal(theta[4], 0.0)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((12, 12)))[0]
    atol = 1e-5 * np.abs(theta).max()
    assert_allclose(fit(summarise((X[::-1], Y[::-1]))).theta[::-1], theta, atol=atol)
    assert_allclose(fit(summarise(([x @ Q for x in X], Y))).theta @ Q.T, theta, atol=atol)
    assert_allclose(fit(summarise(([1e4 * x for x in X], Y))).theta * 1e4, theta, atol=atol)
    assert_allclose(fit(summarise((X, [1e3 * y for y in Y]))).theta / 1e3, theta, atol=atol)


def test_screening_prefers_tasks_that_predict_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "SCREENED", 8)
    (X, Y), _ = draw(6, 2, 50, 30)
    statistics = summarise((X, [30.0 * y if t in {7, 20} else y for t, y in enumerate(Y)]))
    (problem,) = low_rank._stages(statistics, 2, 0.0)
    screening = low_rank._screening_problem(statistics, problem)
    assert screening.gram.shape == (8, 6, 6)
    assert len(np.unique(screening.moment[:, 0])) == 8
    assert np.isin(statistics.moment[[7, 20], 0], screening.moment[:, 0]).all()
    assert 0.0 < screening.total < problem.total


@pytest.mark.parametrize("n", [40, 2])
def test_tasks_taken_a_few_at_a_time_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    statistics = summarise(draw(10, 2, 30, n)[0])
    expected = LowRank(rank=2).fit(statistics)
    monkeypatch.setattr(linalg, "CHUNK_BYTES", 8 * 700)
    assert [chunk.start for chunk in linalg.chunks(*statistics.gram.shape[:2])] == [0, 7, 14, 21, 28]
    assert_array_equal(LowRank(rank=2).fit(statistics).theta, expected.theta)


def test_a_solver_that_stops_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "MAX_ITER", 1)
    with pytest.warns(ConvergenceWarning, match="LowRank stopped after 1 steps with gradient norm"):
        estimate = LowRank(rank=5, n_starts=1).fit(instance(30, 5, 50, 100, 0))
    assert estimate.certificate is not None
    assert not estimate.certificate.converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LowRank(rank=2).fit(instance(10, 2, 6, 100, 0))


def test_bad_input_is_named() -> None:
    statistics = instance(6, 2, 4, 20, 0)
    with pytest.raises(ValueError, match=r"`rank` of LowRank must be an integer of at least 1. Got 0"):
        LowRank(rank=0)
    with pytest.raises(ValueError, match=r"`rank` of LowRank must be .*min\(dim=6, n_tasks=4\)=4\]. Got 5"):
        LowRank(rank=5).fit(statistics)
    with pytest.raises(ValueError, match=r"`penalty` of LowRank .* Got -1"):
        LowRank(rank=1, penalty=-1)
    with pytest.raises(ValueError, match=r"`n_starts` of LowRank .* Got 0"):
        LowRank(rank=1, n_starts=0)


@pytest.mark.parametrize("relative", [0.0, 1e-10, 1e-8, 1e-4])
@pytest.mark.parametrize("shape", [(2, 6, 8, 3), (1, 8, 5, 1), (4, 10, 20, 2)])
def test_with_fewer_rounds_than_unknowns_the_data_are_fitted(
    shape: tuple[int, int, int, int], relative: float
) -> None:
    n, n_tasks, dim, rank = shape
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((n, n_tasks, dim)), rng.standard_normal((n, n_tasks))
    statistics = GramStatistics.of(x, y)
    penalty = relative * float(np.einsum("tii->", statistics.gram)) / (n_tasks * dim)
    theta = LowRank(rank=rank, penalty=penalty).fit(statistics).theta
    assert ((np.vecdot(x, theta) - y) ** 2).sum() < 1e-4 * (y**2).sum()
