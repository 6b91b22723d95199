"""The algorithms of other papers: each by a second road, and what is wrong with what they are told."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from posse import (
    DoublyExponential,
    GaussianPrior,
    GaussianProblem,
    Geometric,
    GramStatistics,
    IndependentUCB,
    LearningPolicy,
    LowRank,
    MLinGreedy,
    NaiveGreedy,
    Ridge,
    simulate_all,
)
from posse.core.protocols import Estimator, Policy
from posse.estimators import (
    Armul,
    ArmulEstimate,
    Clubs,
    EmpiricalPrior,
    HierarchicalPrior,
    OracleBasis,
    SpectralShrinkage,
    TraceNorm,
)
from posse.estimators.armul import STRUCTURES
from posse.estimators.noise import pooled_variance
from posse.estimators.pulled import Pulled
from posse.estimators.spectral import shortened
from posse.estimators.trace_norm import duality_gap
from posse.lab.registry import POLICIES, PolicyOptions, build_policies, family_of
from posse.numerics.checks import Array
from posse.policies import (
    ArmulGreedy,
    Club,
    EbmThompson,
    EbmUCB,
    HierThompson,
    SpectralGreedy,
    Thompson,
    TraceNormGreedy,
)
from posse.testing import DIM, N_TASKS, check_estimator, check_policy

ESTIMATORS: list[Estimator] = [
    TraceNorm(),
    *(Armul(rank=2, structure=structure) for structure in STRUCTURES),
    SpectralShrinkage(),
    SpectralShrinkage(rank=2, outliers=0.2),
    HierarchicalPrior(),
    EmpiricalPrior(),
    Clubs(),
]
RIVALS: list[Policy] = [
    TraceNormGreedy(),
    ArmulGreedy(2),
    SpectralGreedy(2),
    HierThompson(),
    EbmThompson(),
    EbmUCB(),
    Club(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimators_keep_their_promises(estimator: Estimator) -> None:
    check_estimator(estimator)


@pytest.mark.parametrize("policy", RIVALS, ids=repr)
def test_policies_keep_their_promises(policy: Policy) -> None:
    check_policy(policy)


def data(
    seed: int, n: int, theta: Array, scales: Array | float = 1.0, noise: float = 1.0
) -> tuple[GramStatistics, Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, *theta.shape)) * scales
    y = np.vecdot(x, theta) + noise * rng.standard_normal((n, len(theta)))
    return GramStatistics.of(x, y), x, y


def low_rank(seed: int, n_tasks: int, dim: int, rank: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal((n_tasks, rank)) @ rng.standard_normal((rank, dim)))


# Pulled towards points


@pytest.mark.parametrize("weight", [0.0, 1e-3, 1.0, 30.0, 1e4])
def test_pulled_tasks_are_where_the_subgradient_vanishes(weight: float) -> None:
    seen, _, _ = data(0, 30, low_rank(1, 8, 5, 3), scales=np.array([1.0, 1.0, 3.0, 0.01, 1.0]))
    points = np.random.default_rng(2).standard_normal((8, 5))
    theta = Pulled.of(seen).towards(points, np.full(8, weight))
    slope = seen.moment - np.matvec(seen.gram, theta)
    lengths = np.linalg.norm(theta - points, axis=1)
    stays = lengths == 0.0
    assert_array_equal(stays, np.linalg.norm(seen.moment - np.matvec(seen.gram, points), axis=1) <= weight)
    direction = (theta - points)[~stays] / lengths[~stays, None]
    assert_allclose(slope[~stays], weight * direction, atol=1e-9)


def test_pulled_tasks_by_an_independent_optimiser() -> None:
    seen, x, y = data(3, 12, low_rank(4, 3, 4, 2))
    points, weights = np.full((3, 4), 0.3), np.array([0.5, 2.0, 5.0])
    theta = Pulled.of(seen).towards(points, weights)
    for t in range(3):

        def value(v: Array, t: int = t) -> float:
            away = np.linalg.norm(v - points[t])
            return float(0.5 * np.sum((y[:, t] - x[:, t] @ v) ** 2) + weights[t] * away)

        found = minimize(value, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-9, "maxiter": 8000})
        assert value(theta[t]) <= found.fun + 1e-9
        assert_allclose(theta[t], found.x, atol=1e-3)


# Trace norm


def test_trace_norm_by_factors() -> None:
    """min lambda (|U|^2 + |V|^2) / 2 over Theta = U V' of full rank has the same minimum, and is smooth."""
    seen, x, y = data(5, 15, low_rank(6, 7, 4, 2))
    estimate = TraceNorm(scale=0.4).fit(seen)
    assert estimate.certificate is not None
    largest = np.linalg.eigvalsh(seen.gram).max()
    penalty = 0.4 * np.sqrt(pooled_variance(seen) * (7 + 4) * largest)

    def value(flat: Array) -> tuple[float, Array]:
        left, right = flat[:28].reshape(7, 4), flat[28:].reshape(4, 4)
        theta = left @ right.T
        gradient = np.matvec(seen.gram, theta) - seen.moment
        loss = 0.5 * np.sum((y - np.vecdot(x, theta)) ** 2) + 0.5 * penalty * np.sum(flat**2)
        slopes = [gradient @ right + penalty * left, gradient.T @ left + penalty * right]
        return float(loss), np.concatenate([part.ravel() for part in slopes])

    start = np.random.default_rng(0).standard_normal(44)
    found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 9999, "gtol": 1e-10})
    theta = found.x[:28].reshape(7, 4) @ found.x[28:].reshape(4, 4).T
    assert_allclose(estimate.theta, theta, atol=2e-3)
    objective = 0.5 * np.sum((y - np.vecdot(x, estimate.theta)) ** 2)
    objective += penalty * np.linalg.norm(estimate.theta, "nuc")
    assert objective <= found.fun + 1e-6 * np.sum(y**2)


def test_the_gap_bounds_how_far_any_point_is_from_the_least() -> None:
    seen, x, y = data(7, 20, low_rank(8, 6, 5, 1))
    penalty, rng = 12.0, np.random.default_rng(0)
    values = []
    for _ in range(200):
        theta = rng.standard_normal((6, 5)) * rng.uniform(0, 2)
        gap, objective = duality_gap(seen, penalty, theta)
        by_hand = 0.5 * np.sum((y - np.vecdot(x, theta)) ** 2) + penalty * np.linalg.norm(theta, "nuc")
        assert objective == pytest.approx(by_hand)
        values.append((objective - gap, objective))
    assert max(low for low, _ in values) <= min(high for _, high in values)


def test_trace_norm_of_one_task_is_a_pull_towards_zero() -> None:
    """A matrix of one row has one singular value, its length."""
    seen, _, _ = data(9, 25, np.array([[1.0, -2.0, 0.5]]))
    penalty = 0.7 * np.sqrt(pooled_variance(seen) * 4 * np.linalg.eigvalsh(seen.gram).max())
    assert_allclose(
        TraceNorm(scale=0.7).fit(seen).theta,
        Pulled.of(seen).towards(np.zeros((1, 3)), np.array([penalty])),
        atol=1e-3,
    )


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    early, _, _ = data(10, 20, low_rank(11, 9, 5, 2))
    seen = early + data(12, 20, low_rank(11, 9, 5, 2))[0]
    cold, warm = TraceNorm().fit(seen), TraceNorm().refit(seen, TraceNorm().fit(early))
    assert_allclose(warm.theta, cold.theta, atol=5e-3)


# ARMUL


def alternated(seen: GramStatistics, weights: Array, rank: int, structure: str, sweeps: int) -> Array:
    """Return theta by turns: tasks given prototypes, prototypes by least squares given how tasks differ."""
    pulled = Pulled.of(seen)
    points = LowRank(rank=rank).fit(seen).theta if structure == "low-rank" else np.zeros_like(seen.moment)
    for _ in range(sweeps):
        away = points - pulled.towards(points, weights)
        moment = seen.moment + np.matvec(seen.gram, away)
        square = seen.square + 2 * np.vecdot(away, seen.moment)
        square = square + np.vecdot(away, np.matvec(seen.gram, away))
        moved = GramStatistics(seen.gram, moment, square, seen.count)
        if structure == "low-rank":
            points = LowRank(rank=rank).fit(moved).theta
        else:
            one = np.linalg.solve(seen.gram.sum(axis=0), moment.sum(axis=0))
            points = np.tile(one, (len(seen.count), 1))
    return pulled.towards(points, weights)


@pytest.mark.parametrize("structure", ["low-rank", "mean"])
def test_armul_by_turns(structure: str) -> None:
    lengths = np.linspace(-4.0, 4.0, 10) if structure == "low-rank" else np.ones(10)
    theta = np.outer(lengths, [1.0, 0.0, -1.0, 2.0, 0.5])
    theta[0] = [2.0, -3.0, 2.0, 0.0, -2.0]
    seen, _, _ = data(14, 40, theta)
    weights = 0.8 * np.sqrt(pooled_variance(seen) * np.einsum("tii->t", seen.gram))
    estimate = Armul(rank=1, structure=structure, scale=0.8).fit(seen)
    assert estimate.certificate is not None
    assert estimate.certificate.converged
    other = alternated(seen, weights, 1, structure, 200)
    assert_allclose(estimate.theta, other, atol=1e-3)
    away = np.linalg.norm(estimate.theta - estimate.prototypes, axis=1)
    assert away[0] > 1.0
    assert (away[1:] < 0.5).all()


def test_armul_without_a_pull_is_each_task_alone_and_with_all_of_it_its_prototype() -> None:
    seen, _, _ = data(15, 30, low_rank(16, 8, 5, 2))
    alone, joined = Armul(rank=2, scale=0.0).fit(seen), Armul(rank=2, scale=100.0).fit(seen)
    assert_allclose(alone.theta, Ridge(penalty=0.0).fit(seen).theta, atol=1e-8)
    assert_allclose(joined.theta, LowRank(rank=2).fit(seen).theta, atol=1e-4)
    one = Armul(rank=1, structure="mean", scale=100.0).fit(seen)
    pooled = np.linalg.solve(seen.gram.sum(axis=0), seen.moment.sum(axis=0))
    assert_allclose(one.theta, np.tile(pooled, (8, 1)), atol=1e-5)


def test_armul_finds_clusters() -> None:
    theta = np.repeat(3.0 * np.eye(5)[:3], 4, axis=0)
    seen, _, _ = data(17, 40, theta)
    estimate = Armul(rank=3, structure="clusters", scale=2.0).fit(seen)
    for start in range(0, 12, 4):
        group = slice(start, start + 4)
        pooled = np.linalg.solve(seen.gram[group].sum(axis=0), seen.moment[group].sum(axis=0))
        assert_allclose(estimate.theta[group], np.tile(pooled, (4, 1)), atol=1e-4)


def test_armul_goes_on_from_earlier_prototypes() -> None:
    theta = low_rank(18, 12, 6, 2)
    early, seen = data(19, 30, theta)[0], data(20, 60, theta)[0]
    known = Armul(rank=2).fit(early)
    again = Armul(rank=2).refit(seen, known)
    assert_allclose(again.theta, Armul(rank=2).fit(seen).theta, atol=1e-3)
    more = Armul(rank=2).refit(data(21, 30, np.vstack([theta, theta[:1]]))[0], known)
    assert isinstance(more, ArmulEstimate)
    assert more.prototypes.shape == (13, 6)


# Tian, Gu and Feng


def test_the_spectral_method_between_its_two_ends() -> None:
    seen, _, _ = data(22, 50, low_rank(23, 9, 6, 2))
    alone = Ridge(penalty=0.0).fit(seen).theta
    assert_allclose(SpectralShrinkage(rank=2, scale=0.0).fit(seen).theta, alone, atol=1e-8)
    basis = np.linalg.svd(alone)[2][:2].T
    inside = OracleBasis(basis=basis, penalty=0.0).fit(seen).theta
    assert_allclose(SpectralShrinkage(rank=2, scale=1e6).fit(seen).theta, inside, atol=1e-8)
    full = SpectralShrinkage(rank=6, scale=1.0).fit(seen).theta
    assert_allclose(full, alone, atol=1e-8)  # the whole space is no restriction


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_the_spectral_method_finds_the_rank_in_any_unit(unit: float) -> None:
    seen, _, _ = data(24, 100, low_rank(25, 40, 12, 3) / unit, scales=unit)
    estimate = SpectralShrinkage().fit(seen)
    assert estimate.basis is not None
    assert estimate.basis.shape == (12, 3)


def test_the_spectral_method_by_an_independent_optimiser() -> None:
    """Every step from its definition, with features whose X'X is n I: the rank, B, and the pull to it."""
    rng = np.random.default_rng(40)
    theta = low_rank(41, 12, 4, 2)
    theta[0] *= 20.0  # an outlier
    x = np.tile(np.eye(4), (25, 1))[:, None] * np.full((1, 12, 1), 2.0)  # n = 100 rows, X'X = 100 I
    y = np.vecdot(x, theta) + rng.standard_normal((100, 12))
    seen = GramStatistics.of(x, y)
    alone = np.stack([np.linalg.lstsq(x[:, t], y[:, t])[0] for t in range(12)])
    noise = np.sqrt(sum(np.sum((y[:, t] - x[:, t] @ alone[t]) ** 2) for t in range(12)) / (12 * 96))
    lengths = np.linalg.norm(alone, axis=1)
    clipped = alone.copy()
    clipped[np.argmax(lengths)] *= np.sort(lengths)[-2] / lengths.max()
    _, values, right = np.linalg.svd(clipped)
    longest = np.sort(lengths)[-2]
    limit = 0.5 * noise * np.sqrt((4 + np.log(12)) / 100) + 0.25 * longest * np.sqrt(1 / 12)
    rank = int(np.sum(values / np.sqrt(12) > limit))
    assert 1 <= rank < 4
    estimate = SpectralShrinkage(scale=0.7, outliers=1 / 12).fit(seen)
    assert estimate.basis is not None
    assert estimate.basis.shape == (4, rank)
    weight = 0.7 * noise * np.sqrt(100 * (4 + np.log(12)))
    for t in range(12):
        inside = right[:rank].T @ np.linalg.lstsq(x[:, t] @ right[:rank].T, y[:, t])[0]

        def value(v: Array, t: int = t, inside: Array = inside) -> float:
            return float(0.5 * np.sum((y[:, t] - x[:, t] @ v) ** 2) + weight * np.linalg.norm(v - inside))

        found = minimize(value, alone[t], method="Nelder-Mead", options={"xatol": 1e-9, "maxiter": 4000})
        assert value(estimate.theta[t]) <= found.fun + 1e-6
        assert_allclose(estimate.theta[t], found.x, atol=1e-3)


def test_only_the_longest_are_shortened() -> None:
    theta = np.random.default_rng(0).standard_normal((20, 3))
    lengths = np.linalg.norm(theta, axis=1)
    found = np.linalg.norm(shortened(theta, 0.1, np.ones(20, dtype=bool)), axis=1)
    assert_allclose(np.sort(found)[:18], np.sort(lengths)[:18])
    assert_allclose(np.sort(found)[18:], np.sort(lengths)[17])


# Hierarchical priors


def joint_posterior(
    x: Array, y: Array, centre: Array, spread: Array, noise: float
) -> tuple[Array, list[Array]]:
    """Means and covariances of all tasks by conditioning one Gaussian of (theta_1, ..., theta_T) on all y."""
    n, n_tasks, dim = x.shape
    prior = np.kron(np.ones((n_tasks, n_tasks)), centre) + np.kron(np.eye(n_tasks), spread)
    design = np.zeros((n * n_tasks, n_tasks * dim))
    for t in range(n_tasks):
        design[t * n : (t + 1) * n, t * dim : (t + 1) * dim] = x[:, t]
    rewards = y.T.ravel()
    gain = prior @ design.T @ np.linalg.inv(design @ prior @ design.T + noise * np.eye(len(rewards)))
    covariance = prior - gain @ design @ prior
    blocks = [covariance[t * dim : (t + 1) * dim, t * dim : (t + 1) * dim] for t in range(n_tasks)]
    return (gain @ rewards).reshape(n_tasks, dim), blocks


def test_the_hierarchical_posterior_by_conditioning_one_large_gaussian() -> None:
    seen, x, y = data(26, 6, low_rank(27, 4, 3, 3), noise=0.7)
    estimate = HierarchicalPrior(centre=2.0, spread=0.5, noise=0.49).fit(seen)
    theta, covariances = joint_posterior(x, y, 4.0 / 3 * np.eye(3), 0.25 / 3 * np.eye(3), 0.49)
    assert_allclose(estimate.theta, theta, atol=1e-9)
    assert_allclose(estimate.covariance, covariances, atol=1e-9)


def test_a_mean_that_is_surely_zero_leaves_each_task_to_its_own_prior() -> None:
    seen, _, _ = data(28, 6, low_rank(29, 4, 3, 3))
    hierarchical = HierarchicalPrior(centre=1e-6, spread=2.0, noise=1.0).fit(seen)
    alone = GaussianPrior(mean=np.zeros(3), covariance=4.0 / 3 * np.eye(3), noise=1.0).fit(seen)
    assert_allclose(hierarchical.theta, alone.theta, atol=1e-9)
    assert_allclose(hierarchical.covariance, alone.covariance, atol=1e-9)


def test_a_newcomer_is_believed_to_be_what_a_task_without_rows_is() -> None:
    _, x, y = data(30, 8, low_rank(31, 5, 3, 3))
    weights = np.ones((8, 5))
    weights[:, 4] = 0.0
    seen = GramStatistics.of(x, y, weights)
    for estimator in (HierarchicalPrior(), EmpiricalPrior()):
        estimate = estimator.fit(seen)
        newcomer = estimate.posterior.newcomer()  # type: ignore[union-attr]
        assert_allclose(newcomer.theta[0], estimate.theta[4], atol=1e-9)
        root = newcomer.deviation[0] * newcomer.root[0]
        assert_allclose(root @ root.T, estimate.covariance[4], atol=1e-9)


def restricted_deviance(x: Array, y: Array, covariance: Array, noise: float) -> float:
    """Minus twice the log likelihood of all rewards, with the mean integrated over a flat prior."""
    n, n_tasks, dim = x.shape
    total, precision, slope = 0.0, np.zeros((dim, dim)), np.zeros(dim)
    for t in range(n_tasks):
        spread = x[:, t] @ covariance @ x[:, t].T + noise * np.eye(n)
        total -= 2 * multivariate_normal(np.zeros(n), spread).logpdf(y[:, t])
        inverse = np.linalg.inv(spread)
        precision += x[:, t].T @ inverse @ x[:, t]
        slope += x[:, t].T @ inverse @ y[:, t]
    return float(total - slope @ np.linalg.solve(precision, slope) + np.linalg.slogdet(precision)[1])


def test_no_other_covariance_makes_the_rewards_likelier() -> None:
    rng = np.random.default_rng(32)
    theta = np.array([1.0, 2.0]) + rng.standard_normal((30, 2)) @ np.array([[1.0, 0.5], [0.0, 0.4]])
    seen, x, y = data(33, 15, theta)
    estimate = EmpiricalPrior(max_iter=2000).fit(seen)
    found = restricted_deviance(x, y, estimate.prior_covariance, estimate.noise)

    def deviance(flat: Array) -> float:
        root = np.array([[flat[0], 0.0], [flat[1], flat[2]]])
        return restricted_deviance(x, y, root @ root.T, float(np.exp(flat[3])))

    best = minimize(deviance, np.array([1.0, 0.3, 0.5, 0.0]), method="Nelder-Mead", options={"maxiter": 2000})
    assert found <= best.fun + 0.1


# CLUB


def test_clubs_of_tasks_far_apart_are_each_task_alone() -> None:
    seen, _, _ = data(34, 200, 50.0 * np.eye(4))
    estimate = Clubs(penalty=2.0).fit(seen)
    assert len(set(estimate.clusters)) == 4
    assert_allclose(estimate.theta, Ridge(penalty=2.0).fit(seen).theta)
    expected = np.log1p(200) * np.linalg.inv(seen.gram + 2.0 * np.eye(4))
    assert_allclose(estimate.covariance, expected, atol=1e-10)


def test_clubs_of_equal_tasks_are_one_task_with_all_rows() -> None:
    seen, x, y = data(35, 50, np.tile([1.0, -1.0, 0.5], (6, 1)))
    estimate = Clubs(separation=2.0).fit(seen)
    one = GramStatistics.of(x.reshape(-1, 1, 3), y.reshape(-1, 1))
    assert set(estimate.clusters) == {0}
    assert_allclose(estimate.theta, np.tile(Ridge(penalty=1.0).fit(one).theta, (6, 1)))


def test_edges_of_clubs_by_a_loop_over_pairs() -> None:
    """Features of length 1 and tasks with unequal numbers of rounds, at a factor that cuts some edges."""
    rng = np.random.default_rng(42)
    theta = 0.4 * rng.standard_normal((9, 3))
    x = rng.standard_normal((80, 9, 3))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    y = np.vecdot(x, theta) + 0.5 * rng.standard_normal((80, 9))
    counts = np.arange(9) * 9 + 8
    weights = (np.arange(80)[:, None] < counts).astype(float)
    seen = GramStatistics.of(x, y, weights)
    own, squares = np.empty((9, 3)), 0.0
    for t, n in enumerate(counts):
        rows, rewards = x[:n, t], y[:n, t]
        own[t] = np.linalg.solve(rows.T @ rows + np.eye(3), rows.T @ rewards)
        squares += np.sum((rewards - rows @ np.linalg.lstsq(rows, rewards)[0]) ** 2)
    noise = np.sqrt(squares / (counts.sum() - 9 * 3))
    error = noise * np.sqrt(3 * 3) * np.sqrt((1 + np.log(1 + counts)) / (1 + counts))  # d / (1 / d) = 9
    graph = Clubs(separation=0.3).fit(seen).graph
    expected = [
        [np.linalg.norm(own[i] - own[j]) <= 0.3 * (error[i] + error[j]) for j in range(9)] for i in range(9)
    ]
    assert_array_equal(graph, expected)
    assert 9 < graph.sum() < 81


def test_what_clubs_disconnected_stays_so() -> None:
    apart, _, _ = data(36, 100, np.repeat([[5.0, 0.0], [0.0, 5.0]], 2, axis=0))
    equal, _, _ = data(37, 100_000, np.tile([1.0, 1.0], (4, 1)))
    known = Clubs().fit(apart)
    assert not known.graph[0, 2]
    assert Clubs(separation=5.0).fit(equal).graph.all()
    assert not Clubs(separation=5.0).refit(equal, known).graph[0, 2]
    added = Clubs().refit(data(38, 100, np.tile([1.0, 1.0], (5, 1)))[0], known)
    assert added.graph.shape == (5, 5)


def test_a_task_without_rows_holds_no_clusters_together() -> None:
    theta = np.array([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
    _, x, y = data(39, 100, theta)
    weights = np.ones((100, 3))
    weights[:, 2] = 0.0
    clusters = Clubs().fit(GramStatistics.of(x, y, weights)).clusters
    assert len(set(clusters.tolist())) == 3


# Policies that equal others


def equal_play(*pairs: tuple[Policy, Policy], tolerance: float = 0.0) -> None:
    problem = GaussianProblem.draw(n_tasks=8, dim=6, rank=2, seed=1)
    for mine, other in pairs:
        traces = simulate_all(problem, {"mine": mine, "other": other}, horizon=400, seed=1)
        assert_allclose(traces["mine"].regret_per_task, traces["other"].regret_per_task, rtol=tolerance)


def test_special_cases_are_other_policies() -> None:
    alone = NaiveGreedy()
    prior = GaussianPrior(mean=np.zeros(6), covariance=4.0 / 6 * np.eye(6), noise=1.0)
    equal_play(
        (ArmulGreedy(2, scale=0.0), alone),
        (SpectralGreedy(2, scale=0.0), alone),
        (SpectralGreedy(6), alone),
        (HierThompson(centre=1e-7, spread=2.0), LearningPolicy(estimator=prior, rule=Thompson())),
        (EbmUCB(scale=0.0), LearningPolicy(estimator=EmpiricalPrior())),
        (EbmThompson(scale=0.5), LearningPolicy(estimator=EmpiricalPrior(), rule=Thompson(scale=0.5))),
        tolerance=1e-6,
    )
    equal_play((ArmulGreedy(2, scale=1e3), MLinGreedy(2)), tolerance=1e-2)


def test_a_club_of_strangers_is_optimism_alone() -> None:
    """With edges cut at once and no bonus left, CLUB is greedy ridge regression for each task alone."""
    equal_play((Club(separation=1e-9, scale=0.0), LearningPolicy(estimator=Ridge(penalty=1.0))))
    assert IndependentUCB().rule != Club().rule


# Names and bad input


def test_names_build_what_they_say() -> None:
    problem = GaussianProblem.draw(n_tasks=N_TASKS, dim=DIM, rank=2, seed=0)
    names = [name for name in POLICIES if family_of(name) == "rivals"]
    built = build_policies(
        (*names, "armul(schedule=geometric, memory=all)", "tian-spectral(rank=auto, outliers=0.1)"),
        problem,
        PolicyOptions(rank=2),
    )
    expected = dict(zip(names[:7], RIVALS, strict=True))
    assert {name: built[name] for name in expected} == expected
    strong = built["armul(schedule=geometric, memory=all)"]
    assert strong == ArmulGreedy(2, schedule=Geometric(), memory="all")
    assert built["armul"].schedule == DoublyExponential()  # type: ignore[attr-defined]
    assert built["tian-spectral(rank=auto, outliers=0.1)"] == SpectralGreedy(outliers=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TraceNorm(scale=-1.0), r"`scale` of TraceNorm must be a finite number above 0. Got -1.0."),
        (
            lambda: TraceNormGreedy(scale=0.0),
            r"`scale` of TraceNorm must be a finite number above 0. Got 0.0.",
        ),
        (lambda: Armul(rank=0), r"`rank` of Armul must be an integer of at least 1. Got 0."),
        (lambda: ArmulGreedy(2, scale=-0.5), r"`scale` of Armul must be a finite number of at least 0."),
        (
            lambda: Armul(rank=1, structure="tree"),
            r"`structure` of Armul must be one of low-rank, mean, clust",
        ),
        (
            lambda: SpectralShrinkage(rank="all"),
            r"`rank` of SpectralShrinkage, if not an integer, must be one",
        ),
        (lambda: SpectralShrinkage(outliers=0.7), r"`outliers` of SpectralShrinkage must be .* at most 0.5"),
        (
            lambda: HierThompson(spread=-1.0),
            r"`spread` of HierarchicalPrior must be .* of at least 0. Got -1",
        ),
        (lambda: HierThompson(noise=0.0), r"`noise` of HierarchicalPrior must be a finite number above 0."),
        (lambda: Club(separation=0.0), r"`separation` of Clubs must be a finite number above 0. Got 0.0."),
        (
            lambda: EmpiricalPrior(max_iter=0),
            r"`max_iter` of EmpiricalPrior must be an integer of at least 1",
        ),
    ],
)
def test_what_they_cannot_be_told(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make().__repr__()  # type: ignore[operator]


@pytest.mark.parametrize("policy", [ArmulGreedy(7), SpectralGreedy(7)], ids=repr)
def test_an_impossible_rank_is_one_message(policy: Policy) -> None:
    with pytest.raises(
        ValueError, match=r"`rank` of \w+ must be an integer in \[1, min\(dim=5, n_tasks=9\)=5\]"
    ):
        policy.init(9, 5)
