"""The learned prior against dense Gaussians, EM, other optimisers, ridge and low-rank least squares."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from posse import FactorPrior, GaussianPrior, GramStatistics, LowRank, Ridge
from posse.estimators import FactorEstimate
from posse.estimators.factor_prior import ranks
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.estimators.factor_prior.information import information
from posse.estimators.factor_prior.posterior import FactorPosterior
from posse.estimators.factor_prior.ranks import RankSearch
from posse.estimators.factor_prior.search import LEAST_RATIO, Found, _projected
from posse.estimators.moments import largest_sine
from posse.numerics.checks import Array
from posse.numerics.random import haar_basis, unit_vectors

pytestmark = pytest.mark.filterwarnings("ignore::posse.core.errors.NoDataWarning")

GAUSSIAN = np.inf
# one noise for all, nobody stands alone, and the likeliest prior: the model whose evidence has a closed form
PLAIN: dict[str, Any] = {"noise": "shared", "alone": False, "sweeps": 0}


def shared_prior(estimate: FactorEstimate) -> GaussianPrior:
    """Return N(mu, S) as it was learned."""
    assert estimate.basis is not None
    covariance = estimate.outside * np.eye(len(estimate.mean))
    covariance += (estimate.basis * (estimate.spectrum - estimate.outside)) @ estimate.basis.T
    return GaussianPrior(mean=estimate.mean, covariance=covariance, noise=estimate.noise)


@pytest.fixture
def wide_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let F be of any strength before the data, so that the likeliest one is known by other means."""
    monkeypatch.setattr(ranks, "STRENGTH", 10.0)


def draw(
    seed: int = 0, *, n: int = 60, n_tasks: int = 12, dim: int = 5, rank: int = 2, noise: float = 0.5
) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    theta = unit_vectors(n_tasks, rank, rng) @ haar_basis(dim, rank, rng).T
    x = rng.standard_normal((n, n_tasks, dim))
    return x, np.vecdot(x, theta) + noise * rng.standard_normal((n, n_tasks)), theta


def dense_log_likelihood(x: Array, y: Array, mean: Array, covariances: Array, noise: float) -> float:
    total = 0.0
    for t in range(x.shape[1]):
        spread = noise * np.eye(len(x)) + x[:, t] @ covariances[t] @ x[:, t].T
        total += float(stats.multivariate_normal(x[:, t] @ mean, spread).logpdf(y[:, t]))
    return total


def some_model(rng: np.random.Generator, n_tasks: int, dim: int, rank: int, heavy: bool) -> FactorModel:
    scales = 0.7 * rng.standard_normal(n_tasks) if heavy else np.zeros(n_tasks)
    factors, mean = rng.standard_normal((dim, rank)), 0.4 * rng.standard_normal(dim)
    return FactorModel(factors, 0.3, scales, mean, 3.0 if heavy else np.inf)


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("n", [3, 20])
def test_the_evidence_is_that_of_a_dense_gaussian(rank: int, heavy: bool, n: int) -> None:
    x, y, _ = draw(n=n, n_tasks=4)
    evidence = FactorEvidence(GramStatistics.of(x, y))
    model = some_model(np.random.default_rng(1), 4, 5, rank, heavy)
    solved = evidence.solve(model)
    noise = evidence.noise(solved)
    shape = model.factors @ model.factors.T + np.exp(model.log_ratio) * np.eye(5)
    covariances = noise * np.exp(model.log_scales)[:, None, None] * shape
    expected = dense_log_likelihood(x, y, model.mean, covariances, noise)
    assert_allclose(evidence.log_likelihoods(solved).sum(), expected, rtol=1e-9)


def test_the_noise_variance_is_the_likeliest_one_up_to_a_pseudo_reward() -> None:
    x, y, _ = draw(n=500)
    evidence = FactorEvidence(GramStatistics.of(x, y))
    model = some_model(np.random.default_rng(1), 12, 5, 2, False)
    solved = evidence.solve(model)

    def minus_log_likelihood(log_noise: float) -> float:
        noise = float(np.exp(log_noise))
        return evidence.total * log_noise + solved.misfit / noise

    best = np.exp(optimize.minimize_scalar(minus_log_likelihood, bounds=(-5, 5), method="bounded").x)
    assert_allclose(evidence.noise(solved), best, rtol=1e-3)


@pytest.mark.parametrize("heavy", [False, True])
def test_slopes_are_those_of_the_deviance(heavy: bool) -> None:
    x, y, _ = draw(n=8, n_tasks=4)
    evidence = FactorEvidence(GramStatistics.of(x, y))
    model = replace(some_model(np.random.default_rng(2), 4, 5, 2, heavy), strength=2.0)
    _, slope = evidence.deviance(model)

    def along(**moves: Any) -> float:
        def value(step: float) -> float:
            moved = {name: getattr(model, name) + step * move for name, move in moves.items()}
            return evidence.deviance(replace(model, **moved))[0]

        return (value(1e-5) - value(-1e-5)) / 2e-5

    rng = np.random.default_rng(3)
    for name in ("factors", "log_ratio", "log_scales", "mean"):
        direction = rng.standard_normal(np.shape(getattr(model, name)))
        direction = float(direction) if name == "log_ratio" else direction
        expected = np.sum(getattr(slope, name) * direction)
        assert_allclose(along(**{name: direction}), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mean", ["zero", "learned"])
@pytest.mark.parametrize("rank", [0, 2])
def test_estimates_are_the_exact_posterior_under_the_learned_prior(rank: int, mean: str) -> None:
    x, y, _ = draw()
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior(rank=rank, mean=mean, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    known = shared_prior(estimate).fit(statistics)
    assert_allclose(estimate.theta, known.theta, rtol=1e-6, atol=1e-9)
    assert_allclose(
        estimate.evidence,
        dense_log_likelihood(
            x,
            y,
            estimate.mean,
            np.broadcast_to(shared_prior(estimate).covariance, (12, 5, 5)),
            estimate.noise,
        ),
        rtol=1e-9,
    )
    # that the representation is an estimate too makes it less sure, and only then
    excess = estimate.covariance - known.covariance
    assert np.linalg.eigvalsh(excess).min() > -1e-10
    assert (np.linalg.eigvalsh(excess).max() > 1e-6) == (rank > 0)


def test_gaussian_prior_against_the_textbook() -> None:
    x, y, _ = draw(n=7)
    rng = np.random.default_rng(4)
    root = rng.standard_normal((5, 5))
    prior = GaussianPrior(mean=rng.standard_normal(5), covariance=root @ root.T, noise=0.7)
    estimate = prior.fit(GramStatistics.of(x, y))
    for t in range(12):
        precision = np.linalg.inv(prior.covariance)
        covariance = np.linalg.inv(precision + x[:, t].T @ x[:, t] / 0.7)
        mean = covariance @ (precision @ prior.mean + x[:, t].T @ y[:, t] / 0.7)
        assert_allclose(estimate.covariance[t], covariance, rtol=1e-7, atol=1e-10)
        assert_allclose(estimate.theta[t], mean, rtol=1e-7, atol=1e-10)


def test_no_shared_direction_is_ridge_at_the_learned_penalty() -> None:
    x, y, _ = draw(rank=5)
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior(rank=0, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    ridge = Ridge(penalty=estimate.noise / estimate.outside).fit(statistics)
    assert_allclose(estimate.theta, ridge.theta, rtol=1e-8)
    evidence = FactorEvidence(statistics)
    grid = [replace(evidence.start(), log_ratio=a) for a in np.linspace(-6, 6, 2001)]
    best = min(grid, key=lambda model: evidence.deviance(model)[0])
    assert_allclose(np.log(estimate.outside / estimate.noise), best.log_ratio, atol=0.01)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_without_an_outside_it_is_low_rank_least_squares(rank: int, wide_factors: None) -> None:
    x, y, _ = draw(rank=rank, n=300, n_tasks=20, noise=1e-3)
    statistics = GramStatistics.of(x, y)
    hard = FactorPrior(rank=rank, hard=True, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    paper = LowRank(rank=rank).fit(statistics)
    assert hard.outside == 0
    assert paper.basis is not None
    assert hard.basis is not None
    assert_allclose(hard.theta, paper.theta, atol=2e-6)
    assert largest_sine(paper.basis, hard.basis) < 1e-5


def test_it_is_a_fixed_point_of_expectation_maximisation(wide_factors: None) -> None:
    x, y, _ = draw(n=40, n_tasks=30, rank=2)
    x, y = x[:, :, :], y + 0.3 * np.vecdot(x, np.random.default_rng(5).standard_normal((30, 5)))
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior(rank=2, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    posterior = shared_prior(estimate).fit(statistics)
    moments = posterior.covariance + posterior.theta[:, :, None] * posterior.theta[:, None, :]
    values, vectors = np.linalg.eigh(moments.mean(axis=0))
    assert_allclose(values[:3].mean(), estimate.outside, rtol=1e-2)
    assert_allclose(values[:2:-1], estimate.spectrum, rtol=1e-2)
    assert estimate.basis is not None
    assert largest_sine(estimate.basis, vectors[:, 3:]) < 1e-2
    residual = statistics.square - 2 * np.vecdot(statistics.moment, posterior.theta)
    residual = residual + np.einsum("tij,tij->t", statistics.gram, moments)
    assert_allclose(residual.sum() / statistics.count.sum(), estimate.noise, rtol=1e-2)


def test_another_optimiser_from_many_starts_finds_nothing_likelier(wide_factors: None) -> None:
    x, y, _ = draw(n=10, n_tasks=6, dim=3, rank=1)
    estimate = FactorPrior(rank=1, degrees=GAUSSIAN, **PLAIN).fit(GramStatistics.of(x, y))

    def minus_log_likelihood(point: Array) -> float:
        noise, outside = np.exp(point[3]), np.exp(point[4])
        covariance = np.outer(point[:3], point[:3]) + outside * np.eye(3)
        return -dense_log_likelihood(x, y, np.zeros(3), np.broadcast_to(covariance, (6, 3, 3)), noise)

    rng = np.random.default_rng(6)
    bounds = [(-5, 5)] * 3 + [(-12, 3)] * 2
    found = [
        optimize.minimize(minus_log_likelihood, rng.normal(0, 1, 5), bounds=bounds, method="L-BFGS-B").fun
        for _ in range(8)
    ]
    # the pseudo-reward and the weak prior on strengths cost it a little
    assert estimate.evidence > -min(found) - 0.3


def test_heavy_tails_are_integrated_out() -> None:
    x, y, _ = draw(n=30, n_tasks=6)
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior(rank=1, degrees=4.0, **PLAIN).fit(statistics)
    covariance, noise = shared_prior(estimate).covariance, estimate.noise
    total = 0.0
    for t in range(6):
        at_best = dense_log_likelihood(
            x[:, [t]], y[:, [t]], np.zeros(5), covariance[None] * estimate.scales[t], noise
        )

        def density(log_omega: float, t: int = t, at_best: float = at_best) -> float:
            omega = np.exp(log_omega)
            likelihood = dense_log_likelihood(
                x[:, [t]], y[:, [t]], np.zeros(5), covariance[None] / omega, noise
            )
            return float(np.exp(likelihood - at_best) * stats.gamma(2.0, scale=0.5).pdf(omega) * omega)

        total += at_best + np.log(integrate.quad(density, -6, 4)[0])
    # Laplace's method is not exact
    assert_allclose(estimate.evidence, total, atol=0.05 * 6)


def test_an_outlier_gets_a_large_scale_and_does_not_spoil_the_prior() -> None:
    x, y, theta = draw(n=100, n_tasks=20, dim=8, rank=1)
    far = np.zeros(8)
    far[3] = 5.0
    y[:, 0] += x[:, 0] @ (far - theta[0])
    robust, gaussian = (
        FactorPrior(rank=1, degrees=nu, **PLAIN).fit(GramStatistics.of(x, y)) for nu in (3.0, GAUSSIAN)
    )
    assert robust.scales[0] > 5 * np.median(robust.scales)
    assert robust.outside < 0.1 * gaussian.outside
    assert_allclose(gaussian.scales, 1.0)


def test_a_mean_is_learned() -> None:
    rng = np.random.default_rng(7)
    mean = np.array([2.0, -1.0, 0.5, 0.0])
    theta = mean + 0.1 * rng.standard_normal((40, 4))
    x = rng.standard_normal((30, 40, 4))
    y = np.vecdot(x, theta) + rng.standard_normal((30, 40))
    statistics = GramStatistics.of(x, y)
    learned = FactorPrior(rank=0, mean="learned", degrees=GAUSSIAN, **PLAIN).fit(statistics)
    zero = FactorPrior(rank=0, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    assert_allclose(learned.mean, mean, atol=0.15)
    # generalised least squares, the long way
    spread = np.linalg.inv(
        [learned.noise * np.eye(30) + learned.outside * x[:, t] @ x[:, t].T for t in range(40)]
    )
    information = sum(x[:, t].T @ spread[t] @ x[:, t] for t in range(40))
    score = sum(x[:, t].T @ spread[t] @ y[:, t] for t in range(40))
    assert_allclose(learned.mean, np.linalg.solve(information, score), atol=1e-5)
    assert learned.evidence > zero.evidence + 50


@pytest.mark.parametrize(("rank", "seed"), [(1, 0), (2, 1), (3, 2)])
def test_auto_finds_the_rank(rank: int, seed: int) -> None:
    x, y, _ = draw(seed, n=80, n_tasks=40, dim=10, rank=rank)
    estimate = FactorPrior().fit(GramStatistics.of(x, y))
    assert estimate.rank == rank
    assert estimate.basis is not None
    assert estimate.basis.shape == (10, rank)


@pytest.mark.parametrize("n_tasks", [10, 50])
@pytest.mark.parametrize("n", [10, 100])
def test_auto_stands_back_from_unrelated_tasks(n_tasks: int, n: int) -> None:
    x, y, _ = draw(3, n=n, n_tasks=n_tasks, dim=10, rank=10 if n_tasks > 10 else 9, noise=1.0)
    rng = np.random.default_rng(8)
    theta = unit_vectors(n_tasks, 10, rng)
    y = np.vecdot(x, theta) + rng.standard_normal(y.shape)
    assert FactorPrior().fit(GramStatistics.of(x, y)).rank == 0


@pytest.mark.parametrize("rank", ["auto", 0, 1])
def test_one_task_is_estimated_on_its_own(rank: int | str) -> None:
    x, y, _ = draw(n_tasks=1, rank=1)
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior(rank=rank, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    assert estimate.rank == 0
    alone = Ridge(penalty=estimate.noise / estimate.outside).fit(statistics)
    assert_allclose(estimate.theta, alone.theta, rtol=1e-8)
    assert_allclose(estimate.theta, Ridge().fit(statistics).theta, rtol=0.02)


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_turning_the_features_turns_the_estimate(seed: int) -> None:
    x, y, _ = draw(seed)
    turn = haar_basis(5, 5, np.random.default_rng(seed))
    prior = FactorPrior(rank=2, degrees=GAUSSIAN, **PLAIN)
    straight = prior.fit(GramStatistics.of(x, y))
    turned = prior.fit(GramStatistics.of(x @ turn, y))
    assert_allclose(turned.evidence, straight.evidence, atol=1e-3)
    assert_allclose(turned.theta @ turn.T, straight.theta, atol=2e-3)


@pytest.mark.parametrize("rank", ["auto", 2])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(rank: int | str, scale: float) -> None:
    x, y, _ = draw()
    prior = FactorPrior(rank=rank)
    theta = prior.fit(GramStatistics.of(x, y)).theta
    other = prior.fit(GramStatistics.of(scale * x, y))
    assert_allclose(scale * other.theta, theta, atol=1e-4)
    paid = prior.fit(GramStatistics.of(x, scale * y))
    assert_allclose(paid.theta / scale, theta, atol=1e-4)
    assert_allclose(paid.noise, scale**2 * prior.fit(GramStatistics.of(x, y)).noise, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e120, 1e-150])
def test_units_whose_squares_leave_the_range_of_numbers(scale: float) -> None:
    x, y, _ = draw()
    prior = FactorPrior()
    plain, large = prior.fit(GramStatistics.of(x, y)), prior.fit(GramStatistics.of(scale * x, scale * y))
    assert large.rank == plain.rank
    assert_allclose(large.theta, plain.theta, atol=1e-4)
    assert_allclose(large.covariance, plain.covariance, atol=1e-4)
    assert_allclose(large.prior.covariance, plain.prior.covariance, rtol=1e-3)
    assert_allclose(large.evidence, plain.evidence - y.size * np.log(scale), rtol=1e-9)
    again = prior.refit(GramStatistics.of(scale * x, scale * y), large)
    assert_allclose(again.theta, large.theta, atol=1e-4)


def test_features_of_wildly_different_scale() -> None:
    x, y, _ = draw()
    units = np.array([1e-8, 1.0, 1.0, 1e4, 1e8])
    estimate = FactorPrior().fit(GramStatistics.of(units * x, y))
    assert np.isfinite(estimate.theta).all()
    assert np.isfinite(estimate.covariance).all()
    assert np.isfinite(estimate.evidence)


def test_tasks_without_data_get_the_prior() -> None:
    x, y, _ = draw()
    weights = np.ones(y.shape)
    weights[:, 3] = 0
    prior = FactorPrior(rank=2, mean="learned", sweeps=0)
    estimate = prior.fit(GramStatistics.of(x, y, weights))
    assert_allclose(estimate.theta[3], estimate.mean, atol=1e-12)
    posterior = estimate.posterior
    assert isinstance(posterior, FactorPosterior)
    _, root, deviation = posterior.newcomer().parts
    assert_allclose(estimate.covariance[3], deviation[0] ** 2 * root[0] @ root[0].T, rtol=1e-8)
    assert_allclose(estimate.prior.fit(GramStatistics.zeros(1, 5)).theta[0], estimate.mean, atol=1e-12)
    assert_allclose(estimate.scales[3], 1.0, rtol=1e-3)
    others = GramStatistics.of(x, y).take(np.arange(12) != 3)
    alone = prior.fit(others)
    assert_allclose(np.delete(estimate.theta, 3, axis=0), alone.theta, atol=0.02)


@pytest.mark.parametrize("rank", ["auto", 2])
def test_no_data_and_no_rewards(rank: int | str) -> None:
    prior = FactorPrior(rank=rank)
    nothing = prior.fit(GramStatistics.zeros(6, 4))
    assert_allclose(nothing.theta, 0.0)
    assert_allclose(nothing.covariance, np.broadcast_to(np.eye(4), (6, 4, 4)))
    x, _, _ = draw(n_tasks=6, dim=4)
    unpaid = prior.fit(GramStatistics.of(x, np.zeros((60, 6))))
    assert_allclose(unpaid.theta, 0.0)
    assert np.isfinite(unpaid.covariance).all()
    constant = prior.fit(GramStatistics.of(x, np.ones((60, 6))))
    assert np.isfinite(constant.theta).all()
    assert np.isfinite(constant.covariance).all()
    blank = prior.fit(GramStatistics.of(0.0 * x, np.ones((60, 6))))
    assert_allclose(blank.theta, 0.0)


def test_noise_free_rewards_are_fitted() -> None:
    x, y, theta = draw(noise=0.0, rank=2)
    estimate = FactorPrior().fit(GramStatistics.of(x, y))
    assert_allclose(estimate.theta, theta, atol=0.05)


@pytest.mark.parametrize("degrees", [3.0, GAUSSIAN])
@pytest.mark.parametrize("rank", ["auto", 2])
def test_a_refit_ends_where_a_fit_does(rank: int | str, degrees: float) -> None:
    x, y, _ = draw(n=90, n_tasks=20)
    prior = FactorPrior(rank=rank, degrees=degrees)
    early, late = GramStatistics.of(x[:60], y[:60]), GramStatistics.of(x, y)
    warm, cold = prior.refit(late, prior.fit(early)), prior.fit(late)
    assert warm.rank == cold.rank == 2
    assert_allclose(warm.evidence, cold.evidence, atol=1e-3)
    assert_allclose(warm.theta, cold.theta, atol=2e-3)
    assert_allclose(prior.refit(late, Ridge().fit(early)).theta, cold.theta, atol=1e-12)


def test_the_search_for_a_rank_goes_down_too() -> None:
    x, y, _ = draw(n=80, n_tasks=40, dim=10, rank=2)
    statistics = GramStatistics.of(x, y)
    too_many = FactorPrior(rank=5).fit(statistics)
    assert FactorPrior().refit(statistics, too_many).rank == 2


def test_the_certificate_says_how_it_ended() -> None:
    x, y, _ = draw()
    certificate = FactorPrior(rank=2).fit(GramStatistics.of(x, y)).certificate
    assert certificate is not None
    assert certificate.converged
    assert certificate.gradient_norm < 1e-3


@pytest.mark.parametrize("rank", [2, "auto"])
def test_a_certificate_counts_no_slope_that_leads_out_of_the_range(rank: int | str) -> None:
    # without noise nothing lies outside of the subspace: tau is at its bound, and the deviance slopes beyond
    x, y, _ = draw(n=200, n_tasks=30, noise=0.0)
    estimate = FactorPrior(rank=rank, sweeps=0).fit(GramStatistics.of(x, y))
    certificate, model = estimate.certificate, estimate.model
    assert certificate is not None
    assert model is not None
    assert estimate.rank == 2
    mean_square = float(np.mean(x**2))
    assert_allclose(np.exp(model.log_ratio) * mean_square, LEAST_RATIO, rtol=0.05)
    assert certificate.converged
    assert certificate.gradient_norm < 1e-3


def test_a_slope_is_projected_as_far_as_a_step_down_it_leads() -> None:
    # well inside; at an end, down the slope outwards and inwards; near an end; and without room
    point = np.array([0.0, -1.0, -1.0, 0.9, 2.0])
    bounds = np.array([[-np.inf, np.inf], [-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], [2.0, 2.0]])
    slope = np.array([3.0, 0.5, -0.5, -4.0, 1.0])
    assert_allclose(_projected(slope, point, bounds), [3.0, 0.0, -0.5, -0.1, 0.0], atol=1e-15)


def fit_with(**settings: Any) -> FactorEstimate:
    x, y, _ = draw()
    return FactorPrior(**settings).fit(GramStatistics.of(x, y))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"rank": 6},
            r"`rank` of FactorPrior must be an integer in \[0, min\(dim=5, n_tasks=12\)=5\]. Got 6.",
        ),
        ({"rank": -1}, "`rank` of FactorPrior must be an integer of at least 0. Got -1."),
        ({"rank": 1.5}, "Got 1.5."),
        ({"rank": "most"}, "`rank` of FactorPrior, if not an integer, must be one of auto. Got 'most'."),
        ({"mean": "median"}, "`mean` of FactorPrior must be one of zero, learned, level. Got 'median'."),
        ({"degrees": 0}, "`degrees` of FactorPrior must be a finite number above 0. Got 0."),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_with(**settings)


def test_bad_priors_and_refits() -> None:
    with pytest.raises(ValueError, match=r"must have no negative eigenvalue. Got -1."):
        GaussianPrior(mean=np.zeros(2), covariance=np.diag([1.0, -1.0]), noise=1.0)
    with pytest.raises(ValueError, match=r"`noise` of GaussianPrior must be a finite number above 0\. Got 0"):
        GaussianPrior(mean=np.zeros(2), covariance=np.eye(2), noise=0.0)
    with pytest.raises(ValueError, match=r"`mean` of GaussianPrior must have dim=3\. Got 2"):
        GaussianPrior(mean=np.zeros(2), covariance=np.eye(2), noise=1.0).fit(GramStatistics.zeros(1, 3))
    with pytest.raises(ValueError, match=r"and tasks or more, \(3, 5\). Got an estimate of \(12, 5\)."):
        FactorPrior().refit(GramStatistics.zeros(3, 5), fit_with())


@pytest.mark.parametrize("n_tasks", [1, 6])
@pytest.mark.parametrize("rank", [0, 1, "auto"])
@pytest.mark.parametrize("degrees", [3.0, GAUSSIAN])
def test_hard_priors_of_any_rank(n_tasks: int, rank: int | str, degrees: float) -> None:
    x, y, _ = draw(n_tasks=n_tasks, dim=4, rank=1)
    estimate = FactorPrior(rank=rank, hard=True, degrees=degrees).fit(GramStatistics.of(x, y))
    # with no shared direction there is nothing to be hard about: each task is on its own
    assert (estimate.outside == 0) == (estimate.rank > 0)
    assert np.abs(estimate.theta).max() > 0.1
    assert np.isfinite(estimate.covariance).all()


def test_a_refit_follows_its_own_settings() -> None:
    x, y, _ = draw(n_tasks=8, rank=2)
    statistics = GramStatistics.of(x, y)
    soft, hard = FactorPrior(rank=2), FactorPrior(rank=2, hard=True)
    learned = FactorPrior(rank=2, mean="learned")
    assert hard.refit(statistics, soft.fit(statistics)).outside == 0
    again = soft.refit(statistics, hard.fit(statistics))
    assert again.outside > 0
    assert_allclose(again.evidence, soft.fit(statistics).evidence, atol=0.1)
    assert not soft.refit(statistics, learned.fit(statistics)).mean.any()


def test_what_the_data_tell_about_the_representation() -> None:
    # half of the mean curvature of misfit / s2 + log det, over data drawn from the model itself
    rng = np.random.default_rng(9)
    n_tasks, dim, noise = 300, 4, 0.25
    factor = np.zeros((dim, 1))
    factor[0] = 1.5
    model = FactorModel(factor, -np.inf, np.zeros(n_tasks), np.zeros(dim))
    step = 1e-3 * np.eye(dim)[:, [1]]
    curvatures, claims = [], []
    for _ in range(20):
        x = rng.standard_normal((6, n_tasks, dim))
        weights = np.sqrt(noise) * rng.standard_normal((n_tasks, 1))
        y = np.vecdot(x, weights @ factor.T) + np.sqrt(noise) * rng.standard_normal((6, n_tasks))
        evidence = FactorEvidence(GramStatistics.of(x, y))

        def deviance(factors: Array, evidence: FactorEvidence = evidence) -> float:
            solved = evidence.solve(replace(model, factors=factors))
            return solved.misfit / noise + solved.log_determinant

        second = deviance(factor + step) + deviance(factor - step) - 2 * deviance(factor)
        curvatures.append(0.5 * second / 1e-6)
        along, between = information(evidence, model, evidence.solve(model))
        claims.append(along.mean() * between[0, 0])
    # means of 20 sets: both are known to about 1 %, and pooling is right to some 15 % here
    assert_allclose(np.mean(claims), np.mean(curvatures), rtol=0.2)


def test_only_what_leaves_the_representation_makes_it_less_sure() -> None:
    x, y, _ = draw(n_tasks=20)
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior(rank=2, degrees=GAUSSIAN, **PLAIN).fit(statistics)
    excess = estimate.covariance - shared_prior(estimate).fit(statistics).covariance
    assert estimate.basis is not None
    assert np.abs(excess @ estimate.basis).max() < 1e-8
    few = FactorPrior(rank=2, degrees=GAUSSIAN, **PLAIN).fit(GramStatistics.of(x[:10], y[:10]))
    assert (
        np.trace(few.covariance, axis1=1, axis2=2).mean()
        > np.trace(estimate.covariance, axis1=1, axis2=2).mean()
    )


@pytest.mark.parametrize("name", ["gram", "moment", "square", "count"])
def test_statistics_that_are_not_numbers(name: str) -> None:
    x, y, _ = draw()
    statistics = GramStatistics.of(x, y)
    broken = getattr(statistics, name).copy()
    broken[(0,) * broken.ndim] = np.nan
    with pytest.raises(ValueError, match=f"`{name}` of GramStatistics must be finite. Got nan at index"):
        FactorPrior().fit(replace(statistics, **{name: broken}))
    with pytest.raises(ValueError, match="`count` of GramStatistics must be positive where there are data"):
        FactorPrior().fit(replace(statistics, count=0.0 * statistics.count))


def test_features_that_hardly_vary_do_not_let_the_representation_grow() -> None:
    x, y, _ = draw(n=200, n_tasks=10, dim=6)
    x[..., 5] *= 1e-4
    estimate = FactorPrior(rank=2).fit(GramStatistics.of(x, y))
    alone = FactorPrior(rank=0).fit(GramStatistics.of(x, y))
    assert estimate.spectrum.max() < 100 * 6 * max(alone.outside, alone.noise / 6)


@pytest.mark.parametrize(("n_tasks", "rank", "degrees"), [(6, 2, 5.0), (60, 2, 3.0), (5, 5, np.inf)])
def test_tails_are_no_heavier_than_the_tasks_bear(n_tasks: int, rank: int, degrees: float) -> None:
    x, y, _ = draw(n_tasks=n_tasks, rank=rank)
    model = FactorPrior(rank=rank).fit(GramStatistics.of(x, y)).model
    assert model is not None
    assert model.degrees == degrees


def test_the_price_of_directions() -> None:
    x, y, _ = draw()
    evidence = FactorEvidence(GramStatistics.of(x, y))
    search = RankSearch(evidence, FactorPrior(), None)
    rng = np.random.default_rng(10)
    for rank, price in ((0, 0.0), (1, 6.0), (2, 6.0 + 0.8 * 5), (3, 6.0 + 0.8 * 9)):
        model = some_model(rng, 12, 5, rank, False)
        found = Found(model, 0.0, 0.0, 0, True)
        assert_allclose(evidence.log_evidence(model) - search.score(found), price)
