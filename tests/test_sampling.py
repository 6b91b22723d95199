"""Averages over priors: against integrals, importance sampling, invariances and coverage."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from proofs import limits
from proofs.coverage import cell
from proofs.promise import level_ratios, log_ratios, smaller_draws_ratios, summary
from scipy import stats

from posse import FactorPrior, GaussianProblem, GramStatistics, IndependentGreedy, MixturePrior, Ridge
from posse.estimators import FactorEstimate
from posse.estimators.factor_prior import kernels, sampling
from posse.estimators.factor_prior.learning import Learned, learn_prior
from posse.estimators.factor_prior.posterior import FactorPosterior
from posse.estimators.factor_prior.sampling import NOTHING_OUTSIDE, Moments, averaged_moments
from posse.estimators.factor_prior.units import Units
from posse.numerics import linalg
from posse.numerics.checks import Array, IntArray
from posse.numerics.random import haar_basis, unit_vectors

# the parts of the model that have no closed form left out, and one noise for all
GAUSSIAN: dict[str, Any] = {"degrees": np.inf, "noise": "shared", "alone": False}
COVERED = stats.norm.ppf(0.95)


def draw(
    seed: int, *, n_tasks: int, n: int, dim: int = 10, rank: int = 2, signal: float = 1.0
) -> tuple[Array, Array, Array]:
    """Return features, rewards and parameters of the prior's own Gaussian model."""
    rng = np.random.default_rng(seed)
    factors = signal * rng.standard_normal((dim, rank)) / np.sqrt(dim)
    theta = rng.standard_normal((n_tasks, rank)) @ factors.T
    x = rng.standard_normal((n, n_tasks, dim))
    return x, np.vecdot(x, theta) + rng.standard_normal((n, n_tasks)), theta


def sample(statistics: GramStatistics, **settings: Any) -> tuple[Learned, Moments]:
    """Return what is learned, and the moments of many turns."""
    prior = FactorPrior(**{**GAUSSIAN, "sweeps": 6000, **settings})
    learned = learn_prior(statistics, prior, None)
    moments = averaged_moments(learned, prior)
    assert moments is not None
    return learned, moments


def log_outside_density(outside: Array, strength: float) -> Array:
    """Return the log density of log a before the data, up to a constant."""
    ratio = outside / strength
    return np.asarray(0.25 * np.log(ratio) - 0.75 * np.log1p(ratio))


def log_noise_density(noise: Array, usual: float) -> Array:
    """Return the log density of log s before the data, one reward of the usual noise, up to a constant."""
    return np.asarray(-0.5 * np.log(noise) - 0.5 * usual / noise)


def log_likelihoods(statistics: GramStatistics, prior: Array, noise: float) -> tuple[float, Array, Array]:
    """Return log p(y) up to a constant, means (T, d) and covariances (T, d, d) of tasks under N(0, S)."""
    total, means, covariances = 0.0, [], []
    for t in range(statistics.n_tasks):
        covariance = np.linalg.inv(statistics.gram[t] / noise + np.linalg.inv(prior))
        mean = covariance @ statistics.moment[t] / noise
        total -= 0.5 * float(
            statistics.count[t] * np.log(noise)
            + (statistics.square[t] - statistics.moment[t] @ mean) / noise
            + np.linalg.slogdet(prior)[1]
            - np.linalg.slogdet(covariance)[1]
        )
        means.append(mean)
        covariances.append(covariance)
    return total, np.array(means), np.array(covariances)


def average(logs: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Return the moments of a mixture of many Gaussians, whose log weights are known."""
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = np.einsum("m,mtd->td", weights, means)
    apart = means - mean
    spread = covariances + apart[..., :, None] * apart[..., None, :]
    return mean, np.einsum("m,mtij->tij", weights, spread)


def test_without_shared_directions_it_is_an_integral_over_two_variances() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 4, 2))
    y = np.vecdot(x, rng.standard_normal((4, 2))) + rng.standard_normal((6, 4))
    statistics = GramStatistics.of(x, y)
    learned, moments = sample(statistics, rank=0)
    usual = learned.evidence.noise(learned.solved)
    outsides = usual * learned.strength * np.exp(np.linspace(-24, 16, 121))
    noises = usual * np.exp(np.linspace(-3, 3, 61))
    parts = []
    for outside in outsides:
        for noise in noises:
            found = log_likelihoods(statistics, outside * np.eye(2), float(noise))
            before = log_outside_density(outside, usual * learned.strength) + log_noise_density(noise, usual)
            parts.append((found[0] + float(before), found[1], found[2]))
    mean, covariance = average(*(np.array(part) for part in zip(*parts, strict=True)))
    # 6000 turns: errors of means are some 3 % of the width, of variances some 5 %
    width = np.sqrt(np.einsum("tii->ti", covariance))
    assert (np.abs(moments.means - mean) < 0.1 * width).all()
    assert_allclose(np.sqrt(np.einsum("tii->ti", moments.covariances)), width, rtol=0.08)


@pytest.mark.slow
def test_a_shared_direction_is_averaged_over_as_importance_sampling_does() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5, 5, 2))
    theta = np.outer(rng.standard_normal(5), [1.5, 0.5])
    statistics = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((5, 5)))
    learned, moments = sample(statistics, rank=1)
    usual = learned.evidence.noise(learned.solved)
    strength = usual * learned.strength
    n = 40_000
    # every part from its prior, but noise from near where it is likely
    columns = np.sqrt(strength) * stats.halfcauchy.rvs(size=(n, 1), random_state=rng)
    factors = columns * rng.standard_normal((n, 2))
    # r^(1/4) / (1 + r)^(3/4) on the scale of log r, or next to nothing
    ratios = stats.betaprime(0.25, 0.5).rvs(n, random_state=rng)
    outsides = strength * np.where(rng.random(n) < NOTHING_OUTSIDE, 0.0, ratios)
    outsides = np.maximum(outsides, 1e-9 * (strength + np.vecdot(factors, factors)))
    noises = usual * np.exp(0.5 * rng.standard_normal(n))
    parts = []
    for factor, outside, noise in zip(factors, outsides, noises, strict=True):
        found = log_likelihoods(statistics, np.outer(factor, factor) + outside * np.eye(2), float(noise))
        before = log_noise_density(noise, usual)
        chance = stats.norm(scale=0.5).logpdf(np.log(noise / usual))
        parts.append((found[0] + float(before) - float(chance), found[1], found[2]))
    mean, covariance = average(*(np.array(part) for part in zip(*parts, strict=True)))
    width = np.sqrt(np.einsum("tii->ti", covariance))
    # weights are worth some 500 draws of the 40,000: 5 % of the width
    assert (np.abs(moments.means - mean) < 0.2 * width).all()
    assert_allclose(np.sqrt(np.einsum("tii->ti", moments.covariances)), width, rtol=0.15)


@pytest.mark.parametrize("outside", [0.0, 0.3])
@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("plain", [False, True])
def test_moments_of_a_turn_are_those_of_the_textbook(rank: int, outside: float, plain: bool) -> None:
    """The loops, compiled and not, against matrices written out: weights, means and squares given F."""
    n_tasks, dim, n_axes = 4, 6, 5
    rng = np.random.default_rng(3)
    vectors = np.linalg.qr(rng.standard_normal((n_tasks, dim, n_axes)))[0]
    values, moment = rng.random((n_tasks, n_axes)) + 0.1, rng.standard_normal((n_tasks, n_axes))
    scales, noises = rng.random(n_tasks) + 0.5, rng.random(n_tasks) + 0.5
    factors, normal = rng.standard_normal((rank, dim)), rng.standard_normal((n_tasks, rank))
    spread, weights = outside * scales, np.full((n_tasks, rank), np.nan)
    damping = 1.0 / (noises[:, None] + spread[:, None] * values)
    total, square = np.zeros((n_tasks, dim)), np.zeros((n_tasks, dim, dim))
    loops = kernels.draw_weights.__wrapped__ if plain else kernels.draw_weights  # type: ignore[attr-defined]
    for count in (False, True):
        turned = np.ascontiguousarray(vectors.mT)
        given = vectors, turned, values, moment, damping, spread, scales, factors, normal, weights
        assert loops(*given, count, total, square)
        if not count:
            assert not total.any()
    for t in range(n_tasks):
        gram, b = (vectors[t] * values[t]) @ vectors[t].T / noises[t], vectors[t] @ moment[t] / noises[t]
        prior = scales[t] * factors.T @ factors + spread[t] * np.eye(dim)
        covariance = prior - prior @ gram @ np.linalg.inv(np.eye(dim) + prior @ gram) @ prior
        mean = covariance @ b
        # what spread outside of F leaves, given the weights, is counted elsewhere
        given_weights = np.linalg.pinv(np.eye(dim) / spread[t] + gram) if outside else np.zeros((dim, dim))
        assert_allclose(total[t], mean, atol=1e-12)
        expected = covariance - given_weights + np.outer(mean, mean)
        assert_allclose(np.tril(square[t]), np.tril(expected), atol=1e-12)
        precision = (vectors[t] * values[t] * damping[t]) @ vectors[t].T
        root = np.linalg.cholesky(np.eye(rank) / scales[t] + factors @ precision @ factors.T)
        middle = np.linalg.solve(root @ root.T, factors @ vectors[t] @ (damping[t] * moment[t]))
        assert_allclose(weights[t], middle + np.linalg.inv(root).T @ normal[t], atol=1e-12)


def test_a_covariance_of_no_width_is_told() -> None:
    empty, one = np.zeros((1, 1)), np.ones((1, 1))
    given = np.ones((1, 1, 1)), np.ones((1, 1, 1)), one, one, np.full((1, 1), np.nan), np.zeros(1), np.ones(1)
    assert not kernels.draw_weights(*given, one, one, empty.copy(), False, empty, np.zeros((1, 1, 1)))


def naive_gibbs(
    statistics: GramStatistics, learned: Learned, worth: float, n_turns: int, seed: int
) -> tuple[Array, Array]:
    """Return means (T, d) and covariances of a chain that integrates nothing out, of one shared direction."""
    rng, model = np.random.default_rng(seed), learned.found.model
    n_tasks, dim = statistics.moment.shape
    mean, usual = model.mean, learned.evidence.noise(learned.solved)
    strength = usual * learned.strength
    gram, moment = statistics.gram, statistics.moment - statistics.gram @ mean
    square = statistics.square - 2 * statistics.moment @ mean + np.vecdot(mean, statistics.gram @ mean)
    F, q = np.sqrt(usual) * model.factors[:, 0], np.ones(n_tasks)
    e: Array = np.zeros((n_tasks, dim))
    s, s0, a, size, rate, nu = np.full(n_tasks, usual), usual, 0.1 * strength, strength, strength, 3.0
    tails = np.array([3.0, 5.0, 10.0, 30.0, 100.0])
    total, spread = np.zeros((n_tasks, dim)), np.zeros((n_tasks, dim, dim))
    for turn in range(-n_turns // 10, n_turns):
        precision = np.vecdot(F, gram @ F) / s + 1 / q
        w = (moment - np.matvec(gram, e)) @ F / s / precision
        w += rng.standard_normal(n_tasks) / np.sqrt(precision)
        root = np.linalg.cholesky(gram / s[:, None, None] + np.eye(dim) / (a * q)[:, None, None])
        linear = (moment - np.matvec(gram, np.outer(w, F))) / s[:, None]
        drawn = np.linalg.solve(root, linear[:, :, None])[:, :, 0] + rng.standard_normal((n_tasks, dim))
        e = np.asarray(np.linalg.solve(root.mT, drawn[:, :, None])[:, :, 0], dtype=np.float64)
        precision_F = np.einsum("t,tij->ij", w**2 / s, gram) + np.eye(dim) / size
        covariance = np.linalg.inv(precision_F)
        F = rng.multivariate_normal(covariance @ ((w / s) @ (moment - np.matvec(gram, e))), covariance)
        size = (rate + 0.5 * F @ F) / rng.gamma(0.5 + 0.5 * dim)
        rate = rng.gamma(1.0) / (1 / strength + 1 / size)
        for _ in range(3):
            tried = a * np.exp(1.5 * rng.standard_normal())
            logs = [
                -0.5 * n_tasks * dim * np.log(value)
                - 0.5 * np.sum(e**2 / q[:, None]) / value
                + float(log_outside_density(np.array(value), strength))
                for value in (a, tried)
            ]
            a = tried if np.log(rng.random()) < logs[1] - logs[0] else a
        q = (nu + w**2 + np.vecdot(e, e) / a) / rng.chisquare(nu + 1 + dim, n_tasks)
        density = [float(np.sum(stats.gamma(v / 2, scale=2 / v).logpdf(1 / q))) for v in tails]
        chances = np.exp(density - np.max(density))
        nu = float(rng.choice(tails, p=chances / chances.sum()))
        theta = np.outer(w, F) + e
        left = square - 2 * np.vecdot(theta, moment) + np.vecdot(theta, np.matvec(gram, theta))
        s = (worth * s0 + left) / rng.chisquare(worth + statistics.count)
        s0 = rng.gamma(0.5 * worth * n_tasks) / (0.5 * worth * np.sum(1 / s))
        if turn >= 0:
            total += theta
            spread += theta[:, :, None] * theta[:, None, :]
    average = total / n_turns
    return mean + average, spread / n_turns - average[:, :, None] * average[:, None, :]


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
def test_how_likely_a_variance_outside_is_follows_from_the_gaussian_of_all_rewards(plain: bool) -> None:
    rng = np.random.default_rng(0)
    features = [rng.standard_normal((n, 4)) for n in (3, 9, 20, 6, 8)]
    rewards = [2.0 * rng.standard_normal(len(x)) for x in features]
    factors, tried = rng.standard_normal((4, 2)), np.array([1e-3, 0.1, 2.0, 0.0])
    noises, scales = rng.uniform(0.5, 2.0, (2, 5))
    expected = [
        sum(
            stats.multivariate_normal.logpdf(
                y, cov=q * x @ (factors @ factors.T + outside * np.eye(4)) @ x.T + s * np.eye(len(y))
            )
            for x, y, q, s in zip(features, rewards, scales, noises, strict=True)
        )
        for outside in tried
    ]
    values, vectors = np.linalg.eigh(np.stack([x.T @ x for x in features]))
    moment = np.vecmat(np.stack([x.T @ y for x, y in zip(features, rewards, strict=True)]), vectors)
    found, wide = np.zeros(4), np.ascontiguousarray(factors.T)
    loops = kernels.add_log_likelihoods
    loops = loops.__wrapped__ if plain else loops  # type: ignore[attr-defined]
    loops(vectors, values, moment, noises, scales, wide, tried, found)
    assert_allclose(np.diff(found), np.diff(expected), atol=1e-9)


def test_what_lies_outside_is_found_in_a_few_turns() -> None:
    """Of tasks that are well known along themselves: a start that is far too large is left behind."""
    rng = np.random.default_rng(3)
    basis = haar_basis(6, 2, rng)
    theta = unit_vectors(600, 2, rng) @ basis.T
    gram = 2000.0 * theta[:, :, None] * theta[:, None, :] + 8.0 * np.eye(6)
    noise = np.matvec(np.linalg.cholesky(gram), rng.standard_normal((600, 6)))
    fitted = np.vecdot(noise, np.linalg.solve(gram, noise[:, :, None])[:, :, 0])
    square = np.vecdot(theta, np.matvec(gram, theta) + 2.0 * noise) + fitted + rng.chisquare(1994, 600)
    moment = np.matvec(gram, theta) + noise
    statistics = GramStatistics(gram, moment, square, np.full(600, 2000.0))
    prior = FactorPrior(**GAUSSIAN)
    sampler = sampling._Sampler(learn_prior(statistics, prior, None), 1, prior)
    sampler.outside = sampler.tried = 0.1
    for _ in range(20):
        sampler.turn()
    assert sampler.outside < 0.02


def test_tails_noises_and_a_mean_are_those_of_a_chain_that_integrates_nothing_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the naive chain moves on a scale of logarithms, on which there is no 0
    monkeypatch.setattr(sampling, "NOTHING_OUTSIDE", 0.0)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((6, 5, 2))
    theta = np.array([2.0, -1.0]) + np.outer(rng.standard_normal(5), [1.5, 0.5])
    statistics = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((6, 5)))
    prior = FactorPrior(rank=1, mean="learned", alone=False, sweeps=8000)
    learned = replace(learn_prior(statistics, prior, None), worth=4.0)
    assert np.abs(learned.found.model.mean).max() > 0.5
    moments = averaged_moments(learned, prior)
    assert moments is not None
    mean, covariance = naive_gibbs(statistics, learned, 4.0, 12_000, seed=0)
    width = np.sqrt(np.einsum("tii->ti", covariance))
    # the slower chain is worth some hundred draws along its slowest directions: 0.1 of the width
    assert (np.abs(moments.means - mean) < 0.3 * width).all()
    assert_allclose(np.sqrt(np.einsum("tii->ti", moments.covariances)), width, rtol=0.25)


def test_it_is_the_likeliest_prior_where_there_is_little_doubt() -> None:
    x, y, _ = draw(0, n_tasks=60, n=60, dim=6)
    statistics = GramStatistics.of(x, y)
    averaged, plain = (FactorPrior(rank=2, sweeps=sweeps).fit(statistics) for sweeps in (120, 0))
    width = np.sqrt(np.einsum("tii->ti", plain.covariance))
    assert np.mean(np.abs(averaged.theta - plain.theta) / width) < 0.15
    assert not np.array_equal(averaged.theta, plain.theta)
    assert_allclose(np.sqrt(np.einsum("tii->ti", averaged.covariance)).mean(), width.mean(), rtol=0.15)


def coverage(prior: FactorPrior, seeds: range, **sizes: Any) -> tuple[float, float]:
    """Return the share of 90 % intervals of <x, theta> that hold the truth, and the mean squared error."""
    inside, errors = [], []
    for seed in seeds:
        x, y, theta = draw(seed, **sizes)
        estimate = prior.fit(GramStatistics.of(x, y))
        along = np.random.default_rng(seed).standard_normal((20, *theta.shape))
        off = np.abs(np.vecdot(along, estimate.theta - theta))
        inside.append(off <= COVERED * np.linalg.norm(np.vecmat(along, estimate.root), axis=-1))
        errors.append(np.mean((estimate.theta - theta) ** 2))
    return float(np.mean(inside)), float(np.mean(errors))


@pytest.mark.parametrize("rank", [2, "auto"])
def test_intervals_hold_what_they_promise_and_errors_are_smaller(rank: int | str) -> None:
    # 12 data sets: coverage varies by 0.01 between such dozens, so these bounds are 4 such errors away
    covered, error = coverage(FactorPrior(rank=rank), range(12), n_tasks=30, n=5)
    assert 0.85 < covered < 0.96
    plain, other = coverage(
        FactorPrior(rank=rank, sweeps=0, noise="shared", alone=False), range(12), n_tasks=30, n=5
    )
    assert plain < covered - 0.03
    assert error < 0.9 * other


def permuted(statistics: GramStatistics, order: IntArray) -> GramStatistics:
    return GramStatistics(
        statistics.gram[order], statistics.moment[order], statistics.square[order], statistics.count[order]
    )


def test_random_numbers_follow_the_data_and_not_the_order_of_tasks() -> None:
    x, y, _ = draw(2, n_tasks=12, n=8)
    statistics, order = GramStatistics.of(x, y), np.random.default_rng(0).permutation(12)
    straight, other = FactorPrior().fit(statistics), FactorPrior().fit(permuted(statistics, order))
    assert_allclose(other.theta, straight.theta[order], atol=1e-4)
    assert_allclose(other.covariance, straight.covariance[order], atol=1e-4)


def test_random_numbers_turn_with_the_features() -> None:
    x, y, _ = draw(2, n_tasks=12, n=8)
    turn = haar_basis(10, 10, np.random.default_rng(1))
    straight = FactorPrior().fit(GramStatistics.of(x, y))
    turned = FactorPrior().fit(GramStatistics.of(x @ turn, y))
    assert_allclose(turned.theta @ turn.T, straight.theta, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_rewards_and_features_do_not_matter(scale: float) -> None:
    x, y, _ = draw(4, n_tasks=12, n=8)
    plain = FactorPrior().fit(GramStatistics.of(x, y))
    for other, size in (
        (FactorPrior().fit(GramStatistics.of(x, scale * y)), scale),
        (FactorPrior().fit(GramStatistics.of(scale * x, y)), 1.0 / scale),
    ):
        assert_allclose(other.theta / size, plain.theta, atol=1e-3)
        assert_allclose(other.covariance / size**2, plain.covariance, atol=1e-3)


def test_a_seed_is_configuration() -> None:
    x, y, _ = draw(5, n_tasks=10, n=5)
    statistics = GramStatistics.of(x, y)
    first, again, other = (FactorPrior(seed=seed).fit(statistics).theta for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(ValueError, match=r"`seed` of FactorPrior must be an integer of at least 0\. Got -1"):
        FactorPrior(seed=-1)
    with pytest.raises(
        ValueError, match=r"`sweeps` of FactorPrior must be an integer of at least 0\. Got -3"
    ):
        FactorPrior(sweeps=-3)


def test_tasks_in_units_of_their_own_are_estimated_in_them() -> None:
    rng = np.random.default_rng(0)
    x, y, theta = draw(6, n_tasks=24, n=40, signal=3.0)
    units = np.geomspace(0.01, 100.0, 24)[rng.permutation(24)]
    plain = FactorPrior().fit(GramStatistics.of(x, y))
    scaled = FactorPrior().fit(GramStatistics.of(x, units * y))
    errors = [np.mean((found - theta) ** 2) for found in (plain.theta, scaled.theta / units[:, None])]
    assert errors[1] < 1.2 * errors[0]
    again = FactorPrior().refit(GramStatistics.of(x, units * y), scaled)
    assert_allclose(again.theta / units[:, None], scaled.theta / units[:, None], atol=0.15)
    width = np.sqrt(np.einsum("tii->ti", scaled.covariance)) / units[:, None]
    assert_allclose(
        width.mean(axis=1), np.sqrt(np.einsum("tii->ti", plain.covariance)).mean(axis=1), rtol=0.35
    )


def test_a_constant_feature_costs_nothing() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 30, 8)) / np.sqrt(8)
    theta = unit_vectors(30, 8, rng)
    theta[:, 0] = 5.0 + rng.standard_normal(30)
    x[..., 0] = 1.0
    rewards = np.vecdot(x, theta) + rng.standard_normal((30, 30))
    estimate = FactorPrior().fit(GramStatistics.of(x, rewards))
    # levels are not taken for a direction that tasks share
    assert estimate.rank == 0
    without = x[..., 1:] - x[..., 1:].mean(axis=0)
    centred = FactorPrior(rank=0).fit(GramStatistics.of(without, rewards - rewards.mean(axis=0)))
    errors = [np.mean((found - theta[:, 1:]) ** 2) for found in (estimate.theta[:, 1:], centred.theta)]
    assert errors[0] < 1.15 * errors[1]


def newcomers(estimate: FactorEstimate, theta: Array, n: int, seed: int) -> Array:
    """Return squared errors (m,) of new tasks theta (m, d) after n rounds, from the prior of an estimate."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, *theta.shape))
    fresh = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((n, len(theta))))
    return np.asarray(np.sum((estimate.prior.fit(fresh).theta - theta) ** 2, axis=1))


def test_newcomers_start_from_the_others_and_may_be_unlike_them() -> None:
    x, y, theta = draw(8, n_tasks=40, n=60, signal=2.0)
    estimate = FactorPrior().fit(GramStatistics.of(x, y))
    assert isinstance(estimate.prior, MixturePrior)
    basis = np.linalg.svd(theta)[2]
    rng = np.random.default_rng(9)
    alike, unlike = rng.standard_normal((50, 2)) @ basis[:2] * 2.0, rng.standard_normal((50, 8)) @ basis[2:]
    flat = FactorPrior(rank=0).fit(GramStatistics.of(x, y))
    assert newcomers(estimate, alike, 5, 0).mean() < 0.3 * newcomers(flat, alike, 5, 0).mean()
    # along directions that nobody had, sharing costs little once the newcomer's own rewards are heard
    assert newcomers(estimate, unlike, 30, 1).mean() < 1.3 * newcomers(flat, unlike, 30, 1).mean()


def test_a_mixture_of_priors_against_the_textbook() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3, 2))
    statistics = GramStatistics.of(x, rng.standard_normal((4, 3)))
    roots = rng.standard_normal((3, 2, 2))
    covariances, weights = roots @ roots.mT, np.array([0.5, 0.3, 0.2])
    noises = np.array([0.5, 2.0, 0.5])
    means = np.zeros((3, 2))
    prior = MixturePrior(weights=weights, means=means, covariances=covariances, noises=noises)
    estimate = prior.fit(statistics)
    for t in range(3):
        alone = statistics.take(np.arange(3) == t)
        parts = [log_likelihoods(alone, *part) for part in zip(covariances, noises.tolist(), strict=True)]
        logs = np.array([part[0] for part in parts]) + np.log(weights)
        mean, covariance = average(logs, *(np.array([part[i] for part in parts]) for i in (1, 2)))
        assert_allclose(estimate.theta[t], mean[0], rtol=1e-9)
        assert_allclose(estimate.covariance[t], covariance[0], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match=r"`weights` of MixturePrior must be shares that add up to 1"):
        MixturePrior(
            weights=np.array([0.5, 0.2]), means=means[:2], covariances=covariances[:2], noises=noises[:2]
        )
    with pytest.raises(ValueError, match=r"statistics for a MixturePrior must have its 2 features\. Got 3"):
        prior.fit(GramStatistics.zeros(1, 3))


@pytest.mark.slow
def test_the_proofs_in_short() -> None:
    found = cell(10, 5, 6, heavy=False, told=True, arms=False)
    # six data sets: coverage varies by 0.04 between such half-dozens
    assert 0.7 < found["covered"] < 1.0
    assert found["error, to the likeliest's"] < 1.0
    logs = np.array([log_ratios("unequal noise, unrelated", seed, late=200) for seed in range(2)])
    assert logs.shape == (2, 3, 2, 2)
    # rounds are few and tasks unrelated: shared regrets are those of playing alone, up to 0.1 or so
    assert np.abs(logs[:, :, 1, 0]).max() < 0.4
    assert set(summary(logs)) == {"greedy", "thompson", "ucb"}
    # shared with half as wide draws over alone: the product of over alone with them, and alone with them
    whole, small, alone = smaller_draws_ratios("intercept, unrelated", 0, late=60)
    assert_allclose(whole, small + alone)
    assert len(level_ratios("intercept, unrelated", 0, late=60)) == 4
    found = limits.cell(20, 2, 50, seed=0, horizon=500)
    problem = GaussianProblem.draw(n_tasks=50, dim=20, rank=2, seed=0)
    # at 500 rounds sharing has two fifths of the regret of playing alone, told the rank or not
    assert max(found.values()) < 0.5 * limits.regret(problem, IndependentGreedy(), 0, 500)
    played = limits.sphere(10, seed=0, horizon=100)
    assert set(played) == {"averaged", "likeliest"}
    assert played["averaged"] != played["likeliest"]


def test_estimates_mix_the_average_over_priors_with_standing_alone() -> None:
    x, y, _ = draw(3, n_tasks=12, n=12, signal=3.0)
    y[:, 0] += np.vecdot(x[:, 0], np.arange(10.0) - 4.5)
    estimate = FactorPrior().fit(GramStatistics.of(x, y))
    posterior = estimate.posterior
    assert isinstance(posterior, FactorPosterior)
    assert posterior.averaged is not None
    assert posterior.standing is not None
    alone, strengths = estimate.alone[:, None], posterior.standing.strengths
    assert alone.max() > 0.1
    own = [
        np.linalg.solve(gram + noise / (posterior.noise * strength) * np.eye(10), moment)
        for gram, moment, noise, strength in zip(
            posterior.statistics.gram, posterior.statistics.moment, estimate.noises, strengths, strict=True
        )
    ]
    mixed = (1 - alone) * posterior.averaged.means + alone * np.array(own)
    assert_allclose(estimate.theta, mixed, atol=1e-8)


def test_the_evidence_counts_the_units_of_tasks() -> None:
    x, y, _ = draw(6, n_tasks=24, n=40, signal=3.0)
    units = np.geomspace(0.01, 100.0, 24)
    plain, scaled = (FactorPrior(sweeps=0).fit(GramStatistics.of(x, y * u)) for u in (1.0, units))
    # noises of single tasks are learned, so it is not exact
    assert abs(scaled.evidence - (plain.evidence - 40 * np.log(units).sum())) < 15.0


def test_a_newcomer_has_the_width_of_tasks_that_were_seen() -> None:
    rng = np.random.default_rng(7)
    x, y, theta = draw(7, n_tasks=60, n=80, signal=2.0)
    units = np.exp(0.3 * rng.standard_normal(60))
    for size in (1.0, units):
        estimate = FactorPrior().fit(GramStatistics.of(x, 3.0 * size * y))
        posterior = estimate.posterior
        assert isinstance(posterior, FactorPosterior)
        _, root, deviation = posterior.newcomer().parts
        scaled = 3.0 * theta * np.reshape(size, (-1, 1))
        # tails and the few that may stand alone make it wider than the tasks are
        total = float(deviation[0] ** 2 * np.sum(root[0] ** 2))
        assert 0.8 < total / np.mean(np.sum(scaled**2, axis=1)) < 6.0
        assert 0.5 < deviation[0] ** 2 / np.mean(9.0 * np.square(size)) < 2.0
        components = np.einsum("mii->m", estimate.prior.covariances)
        assert components.min() < total < components.max()


def test_one_task_with_all_the_rewards() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((10, 5, 3)), np.zeros((10, 5))
        y[rng.integers(10), 0] = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isfinite(FactorPrior().fit(GramStatistics.of(x, y)).theta).all()


def test_a_feature_that_some_tasks_never_saw_has_the_prior_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linalg, "CHUNK_BYTES", 8 * 6 * 6 * 4)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 40, 6))
    x[:, 36:, 3] = 0.0
    y = np.vecdot(x, rng.standard_normal((40, 6))) + rng.standard_normal((12, 40))
    estimate = FactorPrior(rank=0).fit(GramStatistics.of(x, y))
    variances = np.einsum("tii->ti", estimate.covariance)
    assert (variances[36:, 3] > 3.0 * variances[:36, 3].mean()).all()


def test_units_of_features_do_not_matter_where_noises_differ() -> None:
    x, y, _ = draw(4, n_tasks=12, n=20)
    y *= np.geomspace(0.2, 5.0, 12)
    plain, scaled = (FactorPrior().fit(GramStatistics.of(x * size, y)) for size in (1.0, 3e5))
    assert_allclose(3e5 * scaled.theta, plain.theta, rtol=1e-3, atol=1e-3)


def test_the_order_of_many_tasks_does_not_choose_units() -> None:
    rng = np.random.default_rng(2)
    for level in (1.0, 2.0, 3.0):
        x = rng.standard_normal((8, 130, 3))
        x[..., 0] = 1.0
        theta = rng.standard_normal((130, 3))
        theta[:, 0] *= level
        statistics = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((8, 130)))
        assert Units.of(statistics) == Units.of(permuted(statistics, rng.permutation(130)))
    common = np.repeat(rng.standard_normal((20, 1, 5)), 10, axis=1)
    design = GramStatistics.of(common, rng.standard_normal((20, 10)))
    assert Units.of(design).plain


def test_a_refit_follows_the_settings_for_noise() -> None:
    x, y, _ = draw(4, n_tasks=12, n=20)
    statistics = GramStatistics.of(x, y * np.geomspace(0.2, 5.0, 12))
    own = FactorPrior().fit(statistics)
    assert np.ptp(own.noises) > 0
    shared = FactorPrior(noise="shared").refit(statistics, own)
    assert np.ptp(shared.noises) == 0.0


def test_newcomers_may_be_loud_or_quiet_and_count_in_units_of_their_own() -> None:
    rng = np.random.default_rng(0)
    x, y, theta = draw(1, n_tasks=30, n=60, dim=6, signal=2.0)
    levels = np.geomspace(0.2, 5.0, 30)[rng.permutation(30)]
    noisy = np.vecdot(x, theta) + levels * (y - np.vecdot(x, theta))
    basis = np.linalg.svd(theta)[2][:2]
    fresh = 2.0 * rng.standard_normal((40, 2)) @ basis / np.sqrt(3.0)
    for rewards, level, unit in ((noisy, 5.0, 1.0), (noisy, 0.2, 1.0), (levels * y, 0.2, 0.2)):
        estimate = FactorPrior().fit(GramStatistics.of(x, rewards))
        z = rng.standard_normal((20, 40, 6))
        reward = unit * np.vecdot(z, fresh) + level * rng.standard_normal((20, 40))
        statistics = GramStatistics.of(z, reward)
        informed, blank = estimate.prior.fit(statistics).theta, Ridge().fit(statistics).theta
        errors = [np.mean(np.sum((found - unit * fresh) ** 2, axis=1)) for found in (informed, blank)]
        assert errors[0] < errors[1]
