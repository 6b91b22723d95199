"""Tasks with noise, units and directions of their own: nobody is worse off for having shared."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from posse import FactorPrior, GramStatistics, Ridge
from posse.estimators.factor_prior.alone import STRENGTHS, WIDTH, OwnPriors, stand_alone
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.estimators.factor_prior.information import prices
from posse.estimators.factor_prior.ranks import RankSearch
from posse.estimators.noise import moderated_variances
from posse.numerics.checks import Array
from posse.numerics.random import haar_basis, unit_vectors


def draw(
    seed: int = 0,
    *,
    n: int = 100,
    n_tasks: int = 20,
    dim: int = 8,
    rank: int = 2,
    noise: Array | float = 1.0,
    unrelated: int = 0,
) -> tuple[Array, Array, Array]:
    """Return features, rewards and parameters of tasks, of which the first may be unrelated to the others."""
    rng = np.random.default_rng(seed)
    theta = unit_vectors(n_tasks, rank, rng) @ haar_basis(dim, rank, rng).T
    theta[:unrelated] = unit_vectors(unrelated, dim, rng)
    x = rng.standard_normal((n, n_tasks, dim))
    return x, np.vecdot(x, theta) + noise * rng.standard_normal((n, n_tasks)), theta


def test_moderated_variances_are_the_likeliest_under_their_model() -> None:
    rng = np.random.default_rng(0)
    freedoms = rng.integers(3, 60, 80).astype(float)
    variances = 6.0 / rng.chisquare(6.0, 80)
    misfits = variances * rng.chisquare(freedoms)
    found = moderated_variances(misfits, freedoms)

    def minus_log_likelihood(point: Array) -> float:
        usual, worth = np.exp(point)
        ratio = misfits / (freedoms * usual)
        return -float(np.sum(stats.f(freedoms, worth).logpdf(ratio) - np.log(usual)))

    best = optimize.minimize(minus_log_likelihood, np.zeros(2), method="Nelder-Mead")
    # the worth is one of a list, four to a decade
    assert abs(np.log(found.worth) - best.x[1]) < np.log(10) / 8 + 0.02
    # a draw of 80 tasks: both roads have the same data, and the truth is near
    assert np.corrcoef(np.log(found.variances), np.log(variances))[0, 1] > 0.85
    plain = np.mean((np.log(misfits / freedoms) - np.log(variances)) ** 2)
    assert np.mean((np.log(found.variances) - np.log(variances)) ** 2) < plain


def test_equal_noise_is_shared_and_a_task_without_rewards_has_the_usual() -> None:
    rng = np.random.default_rng(1)
    freedoms = np.append(np.full(200, 30.0), 0.0)
    found = moderated_variances(2.0 * rng.chisquare(np.maximum(freedoms, 1)) * (freedoms > 0), freedoms)
    assert found.worth > 100
    assert_allclose(found.variances, 2.0, rtol=0.15)
    assert found.variances[-1] == found.usual
    nothing = moderated_variances(np.zeros(3), np.zeros(3))
    assert_allclose(nothing.variances, 1.0)


def test_own_evidence_is_an_average_over_strengths() -> None:
    x, y, _ = draw(n=12, n_tasks=3, dim=4)
    mean = np.array([0.3, -0.2, 0.1, 0.0])
    noises = np.array([1.0, 2.0, 0.5])
    evidence = FactorEvidence(GramStatistics.of(x, y), noises)
    own = OwnPriors.of(evidence, mean, 0.7, 0.5)
    ends = np.log(STRENGTHS[[0, -1]])
    for t in range(3):

        def density(offset: float, t: int = t) -> float:
            spread = 0.5 * np.exp(offset) * x[:, t] @ x[:, t].T + noises[t] * np.eye(12)
            likely = stats.multivariate_normal(x[:, t] @ mean, 0.7 * spread).pdf(y[:, t])
            return float(likely / (1.0 + (offset / WIDTH) ** 2))

        total = integrate.quad(density, *ends, limit=200)[0]
        total /= WIDTH * (np.arctan(ends[1] / WIDTH) - np.arctan(ends[0] / WIDTH))
        assert_allclose(own.log_evidences[t], np.log(total), atol=0.02)
        precision = x[:, t].T @ x[:, t] / noises[t] + np.eye(4) / own.strengths[t]
        moved = np.linalg.solve(precision, x[:, t].T @ (y[:, t] - x[:, t] @ mean) / noises[t])
        assert_allclose(own.means[t], mean + moved, atol=1e-10)


def test_the_price_is_what_is_lost_where_a_task_is_left_out() -> None:
    # the sum over tasks of log p(y_t | F from all) - log p(y_t | F from the others), at a fixed tau
    x, y, _ = draw(3, n=40, n_tasks=40, dim=6, rank=1)
    statistics = GramStatistics.of(x, y)
    settings: dict[str, Any] = {"rank": 1, "noise": "shared", "alone": False, "degrees": np.inf}
    whole = FactorPrior(**settings).fit(statistics)
    evidence = FactorEvidence(statistics)
    assert whole.model is not None
    solved = evidence.solve(whole.model)
    claimed = prices(evidence, whole.model, solved).sum()
    lost = 0.0
    for t in range(40):
        others = np.arange(40) != t
        model = FactorPrior(**settings).fit(statistics.take(others)).model
        assert model is not None
        moved = replace(whole.model, factors=model.factors)
        lost += float(
            evidence.log_likelihoods(solved)[t] - evidence.log_likelihoods(evidence.solve(moved))[t]
        )
    # to first order, and by the expected curvature
    assert 0.6 * claimed < lost < 1.6 * claimed


def test_probabilities_to_stand_alone_are_a_fixed_point() -> None:
    odds = np.array([-3.0, 0.0, 2.0, 8.0, -1.0])
    alone, share = stand_alone(odds)
    assert_allclose(alone, 1 / (1 + np.exp(-odds) * (1 - share) / share), rtol=1e-6)
    assert 0 < share < 1


def test_noises_are_learned_task_by_task() -> None:
    deviations = np.geomspace(0.2, 5.0, 20)
    x, y, theta = draw(noise=deviations, n=200)
    estimate = FactorPrior().fit(GramStatistics.of(x, y))
    assert estimate.rank == 2
    # 200 rewards tell a variance to 10 %, and the least of 20 is not more than 3.5 such errors away
    assert_allclose(np.sqrt(estimate.noises), deviations, rtol=0.18)
    shared = FactorPrior(noise="shared", alone=False).fit(GramStatistics.of(x, y))
    quiet = slice(0, 4)
    errors = [np.sum((found.theta[quiet] - theta[quiet]) ** 2) for found in (estimate, shared)]
    assert errors[0] < 0.3 * errors[1]


def test_who_is_unrelated_stands_alone_and_the_others_do_not_suffer() -> None:
    x, y, theta = draw(unrelated=3, n=1000)
    y[:, 0] += 9.0 * np.vecdot(x[:, 0], theta[0])
    theta[0] *= 10.0
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior().fit(statistics)
    assert (estimate.alone[:3] > 0.9).all()
    assert (estimate.alone[3:] < 0.1).all()
    alone = Ridge().fit(statistics)
    errors = [np.sum((found.theta - theta) ** 2, axis=1) for found in (estimate, alone)]
    assert errors[0][:3].sum() < 1.1 * errors[1][:3].sum()
    others = FactorPrior().fit(statistics.take(np.arange(20) > 2))
    assert_allclose(estimate.theta[3:], others.theta, atol=0.05)


def test_the_posterior_of_a_mixture_has_its_moments() -> None:
    x, y, _ = draw(unrelated=2, n=30, n_tasks=10)
    statistics = GramStatistics.of(x, y)
    estimate = FactorPrior().fit(statistics)
    uncertain = int(np.argmin(np.abs(estimate.alone - 0.5)))
    share = estimate.alone[uncertain]
    assert 0.01 < share < 0.99
    posterior: Any = estimate.posterior
    standing, without = posterior.standing, replace(posterior, standing=None)
    shared = without.roots()[uncertain] @ without.roots()[uncertain].T
    gram = statistics.gram[uncertain] / posterior.noises[uncertain]
    own = posterior.noise * np.linalg.inv(gram + np.eye(8) / standing.strengths[uncertain])
    shift = standing.shift[uncertain]
    expected = (1 - share) * shared + share * own + share * (1 - share) * np.outer(shift, shift)
    assert_allclose(estimate.covariance[uncertain], expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_some_features_in_other_units(scale: float) -> None:
    x, y, theta = draw(4, n=60)
    units = np.ones(8)
    units[2] = scale
    plain = FactorPrior().fit(GramStatistics.of(x, y))
    scaled = FactorPrior().fit(GramStatistics.of(x * units, y))
    assert scaled.rank == plain.rank == 2
    error, other = np.sum((plain.theta - theta) ** 2), np.sum((scaled.theta * units - theta) ** 2)
    assert other < 1.3 * error
    again = FactorPrior().refit(GramStatistics.of(x * units, y), scaled)
    assert_allclose(again.theta * units, scaled.theta * units, atol=0.02)


def test_directions_that_pay_together_are_found_though_none_of_the_first_pays_alone() -> None:
    rng = np.random.default_rng(0)
    basis, weights = haar_basis(10, 4, rng), unit_vectors(300, 4, rng)
    x = (rng.standard_normal((200, 300, 4)) @ basis.T + 0.2 * rng.standard_normal((200, 300, 10))) / np.sqrt(
        10
    )
    y = np.vecdot(x, weights @ basis.T) + rng.standard_normal((200, 300))
    search = RankSearch(FactorEvidence(GramStatistics.of(x, y)), FactorPrior(), None)
    assert search.run().model.rank == max(search.scores, key=search.scores.__getitem__)
    assert {4, 5} <= set(search.scores)


def bad(kind: str, n_tasks: int, dim: int) -> tuple[GramStatistics, Array]:
    """Return statistics of a kind, and parameters (T, d)."""
    rng = np.random.default_rng(6)
    n_tasks = {"one task": 1, "two tasks": 2, "three tasks": 3}.get(kind, n_tasks)
    n = {"one row each": 1, "fewer rows than features": dim // 2, "ten rows, and a million": 10}.get(kind, 30)
    x = rng.standard_normal((n, n_tasks, dim))
    theta = unit_vectors(n_tasks, dim, rng)
    if kind == "identical rows":
        x[:] = x[0]
    y = np.vecdot(x, theta) + rng.standard_normal((n, n_tasks))
    if kind == "constant rewards":
        y[:, :4] = 2.0
    elif kind.startswith("no noise"):
        if kind == "no noise, related":
            theta = rng.standard_normal((n_tasks, 2)) @ rng.standard_normal((2, dim))
        y = np.vecdot(x, theta)
    elif kind == "equal tasks":
        x[:], y[:] = x[:, :1], y[:, :1]
    statistics = GramStatistics.of(x, y)
    if kind == "ten rows, and a million":
        # as a million rows of which each feature has mean square 1, and no two features go together
        many, noise = 1e6, 1e3 * rng.standard_normal(dim)
        gram, moment, square, count = (
            np.array(part)
            for part in (statistics.gram, statistics.moment, statistics.square, statistics.count)
        )
        gram[0], moment[0], count[0] = many * np.eye(dim), many * theta[0] + noise, many
        square[0] = theta[0] @ (moment[0] + noise) + many
        statistics = GramStatistics(gram, moment, square, count)
    return statistics, theta


@pytest.mark.parametrize(
    "kind",
    [
        "one row each",
        "identical rows",
        "constant rewards",
        "no noise",
        "no noise, related",
        "equal tasks",
        "one task",
        "two tasks",
        "three tasks",
        "fewer rows than features",
        "ten rows, and a million",
    ],
)
@pytest.mark.parametrize("rank", ["auto", 1])
@pytest.mark.parametrize(("n_tasks", "dim"), [(8, 6), (10, 20)])
def test_hard_data_give_numbers_a_width_and_no_warning(
    kind: str, rank: int | str, n_tasks: int, dim: int
) -> None:
    statistics, theta = bad(kind, n_tasks, dim)
    prior = FactorPrior(rank=rank)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = prior.fit(statistics)
        again = prior.refit(statistics, estimate)
    for found in (estimate, again):
        assert np.isfinite(found.theta).all()
        assert (found.noises > 0).all()
        widths = np.linalg.eigvalsh(found.covariance)
        # within a task: without noise one may know itself far better than another
        assert (widths[:, 0] > 1e-9 * widths[:, -1]).all()
        assert (widths[:, 0] > 0.0).all()
        # tasks do not have one direction, and some rewards are not of these parameters
        if rank == "auto" and kind not in ("constant rewards", "equal tasks"):
            off = np.abs(found.theta - theta) / np.sqrt(np.einsum("tii->ti", found.covariance))
            assert np.mean(off < 2.0) > 0.8


@pytest.mark.parametrize("deviation", [0.0, 1e-2, 0.1])
def test_quiet_rewards_are_not_taken_for_noise(deviation: float) -> None:
    # noise far below one part in all rewards, which one further reward of their size would hide
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 10, 20))
    theta = rng.standard_normal((10, 2)) @ rng.standard_normal((2, 20))
    y = np.vecdot(x, theta) + deviation * rng.standard_normal((30, 10))
    statistics = GramStatistics.of(x, y)
    shared, own = FactorPrior().fit(statistics), Ridge().fit(statistics)
    error, alone = (float(np.sqrt(np.mean((one.theta - theta) ** 2))) for one in (shared, own))
    assert error < 0.5 * alone
    if deviation:
        assert (np.abs(np.log(np.sqrt(shared.noises) / deviation)) < np.log(2.0)).all()


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"`noise` of FactorPrior must be one of own, shared\. Got 'none'"):
        FactorPrior(noise="none")


def test_a_model_of_members_only_is_told_who_they_are() -> None:
    x, y, _ = draw()
    evidence = FactorEvidence(GramStatistics.of(x, y))
    some = np.arange(20) < 15
    model = FactorModel(np.eye(8)[:, :2], -1.0, np.zeros(20), np.zeros(8))
    parts = evidence.take(some), evidence.take(~some)
    whole = evidence.solve(model)
    for mask, part in zip((some, ~some), parts, strict=True):
        solved = part.solve(replace(model, log_scales=np.zeros(int(mask.sum()))))
        assert_allclose(solved.misfits, whole.misfits[mask])
        assert_allclose(solved.log_determinants, whole.log_determinants[mask])
