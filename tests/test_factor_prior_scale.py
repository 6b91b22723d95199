"""The learned prior for many tasks: in pieces, from some of them to all, and in bounded memory."""

import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posse import FactorPrior, GramStatistics
from posse.estimators.factor_prior import learning as factor_learning
from posse.estimators.factor_prior import posterior as factor_posterior
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.estimators.factor_prior.ranks import spaced_tasks
from posse.estimators.factor_prior.search import maximise_evidence
from posse.numerics import linalg
from posse.numerics.checks import Array
from posse.numerics.linalg import inverse_and_log_determinant, inverse_root
from posse.numerics.random import haar_basis


def draw(
    n_tasks: int, *, dim: int = 6, rank: int = 2, n: int = 30, outside: float = 0.0, seed: int = 0
) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((n_tasks, rank)) @ haar_basis(dim, rank, rng).T
    theta += outside * rng.standard_normal((n_tasks, dim))
    x = rng.standard_normal((n, n_tasks, dim))
    return x, np.vecdot(x, theta) + 0.5 * rng.standard_normal((n, n_tasks))


def some_model(n_tasks: int, dim: int, rank: int, seed: int = 1) -> FactorModel:
    rng = np.random.default_rng(seed)
    factors, scales = rng.standard_normal((dim, rank)), 0.5 * rng.standard_normal(n_tasks)
    return FactorModel(factors, -0.7, scales, 0.2 * rng.standard_normal(dim), degrees=3.0, strength=2.0)


def one_task_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linalg, "CHUNK_BYTES", 1)


@pytest.mark.parametrize("rank", [0, 2])
def test_tasks_in_pieces_are_tasks_together(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    statistics, model = GramStatistics.of(*draw(50)), some_model(50, 6, rank)
    together = FactorEvidence(statistics)
    value, slope = together.deviance(model)
    log_evidence = together.log_evidence(model)
    one_task_at_a_time(monkeypatch)
    apart = FactorEvidence(statistics)
    again, other = apart.deviance(model)
    assert_allclose(again, value, rtol=1e-12)
    for name in ("factors", "log_ratio", "log_scales", "mean"):
        assert_allclose(getattr(other, name), getattr(slope, name), rtol=1e-8, atol=1e-9)
    assert_allclose(apart.log_evidence(model), log_evidence, rtol=1e-10)


@pytest.mark.parametrize("hard", [False, True])
def test_roots_in_pieces(hard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = FactorPrior(rank=2, hard=hard).fit(GramStatistics.of(*draw(20)))
    assert estimate.posterior is not None
    together = estimate.posterior.roots()
    one_task_at_a_time(monkeypatch)
    apart = estimate.posterior.roots()
    assert_allclose(apart, together, atol=1e-12)
    monkeypatch.setattr(factor_posterior, "MOST_SIDE_BY_SIDE", 10)
    small = estimate.posterior.roots()
    assert small.shape == (20, 6, 6)
    assert_allclose(small @ small.mT, together @ together.mT, atol=1e-12)


@pytest.mark.parametrize("rank", [2, "auto"])
@pytest.mark.parametrize("outside", [0.0, 0.2])
def test_from_some_tasks_to_all(rank: int | str, outside: float, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = draw(240, outside=outside)
    early, late = GramStatistics.of(x[:20], y[:20]), GramStatistics.of(x, y)
    prior = FactorPrior(rank=rank)
    direct = prior.fit(late)
    monkeypatch.setattr(factor_learning, "MANY", 80)
    found = prior.fit(late)
    again = prior.refit(late, prior.fit(early))
    for estimate in (found, again):
        assert estimate.rank == direct.rank == 2
        assert_allclose(estimate.evidence, direct.evidence, rtol=1e-4)
        assert_allclose(estimate.theta, direct.theta, atol=1e-2)
        assert estimate.certificate is not None
        assert estimate.certificate.converged


def test_the_order_of_many_tasks_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = draw(120)
    order = np.random.default_rng(2).permutation(120)
    monkeypatch.setattr(factor_learning, "MANY", 50)
    prior = FactorPrior(rank=2)
    straight, mixed = (prior.fit(GramStatistics.of(x[:, p], y[:, p])) for p in (np.arange(120), order))
    assert_allclose(mixed.theta, straight.theta[order], atol=1e-3)


def test_some_tasks_are_spaced_by_size_and_have_data() -> None:
    x, y = draw(100)
    weights = np.ones(y.shape)
    weights[:, ::2] = 0
    statistics = GramStatistics.of(x, y, weights)
    some = spaced_tasks(statistics, 10)
    assert len(set(some.tolist())) == 10
    assert (statistics.count[some] > 0).all()
    sizes = np.sort(statistics.square[1::2])
    chosen = np.sort(statistics.square[some])
    assert chosen[0] == sizes[0]
    assert chosen[-1] == sizes[-1]
    assert set(range(1, 100, 2)) < set(spaced_tasks(statistics, 80).tolist())


def test_few_of_many_tasks_have_data(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = draw(100)
    weights = np.zeros(y.shape)
    weights[:, :3] = 1
    monkeypatch.setattr(factor_learning, "MANY", 40)
    estimate = FactorPrior(rank=5).fit(GramStatistics.of(x, y, weights))
    assert estimate.rank == 5
    assert np.isfinite(estimate.theta).all()
    assert not estimate.theta[3:].any()


@pytest.mark.skipif(sys.version_info[:3] == (3, 13, 0), reason="tracemalloc of Python 3.13.0 crashes here")
@pytest.mark.filterwarnings("ignore::posse.core.estimate.ConvergenceWarning")
def test_memory_is_the_eigenvectors_and_little_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor_learning, "MANY", 200)
    statistics = GramStatistics.of(*draw(2000, dim=30, n=20))
    prior = FactorPrior(rank=2)
    prior.fit(statistics.take(np.arange(300)))
    tracemalloc.start()
    try:
        estimate = prior.fit(statistics)
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert estimate.rank == 2
    # the eigenvectors take as much as the statistics, and chunks, scales and their history the rest
    assert peak < 2.0 * statistics.gram.nbytes
    # the estimate itself keeps none of them
    assert left < 0.2 * statistics.gram.nbytes


def test_features_that_a_task_never_sees_drop_out(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = draw(8, n=12)
    x[:, ::2, 1] = 0.0
    x[:, 1::2, 3:5] = 0.0
    statistics, model = GramStatistics.of(x, y), replace(some_model(8, 6, 2), mean=np.zeros(6))
    together = FactorEvidence(statistics).deviance(model)
    one_task_at_a_time(monkeypatch)
    apart = FactorEvidence(statistics)
    assert apart.values.shape == (8, 5)
    assert_allclose(apart.deviance(model)[0], together[0], rtol=1e-12)
    assert_allclose(apart.deviance(model)[1].factors, together[1].factors, rtol=1e-9, atol=1e-9)


def test_a_ratio_that_vanished_comes_back() -> None:
    statistics = GramStatistics.of(*draw(60, outside=0.3))
    prior = FactorPrior(rank=2)
    found = prior.fit(statistics)
    assert found.model is not None
    lost = replace(found, model=replace(found.model, log_ratio=found.model.log_ratio - 12.0))
    assert_allclose(prior.refit(statistics, lost).evidence, found.evidence, atol=1e-3)


def test_a_climb_that_cannot_reach_its_goal_is_given_up() -> None:
    statistics = GramStatistics.of(*draw(60, rank=3))
    evidence = FactorEvidence(statistics)
    start = replace(some_model(60, 6, 1), mean=np.zeros(6))
    found = maximise_evidence(evidence, start)
    assert found.converged
    given_up = maximise_evidence(evidence, start, goal=found.deviance - 1e6)
    assert not given_up.converged
    assert given_up.n_iter < found.n_iter
    within_reach = maximise_evidence(evidence, start, goal=found.deviance + 1.0)
    assert_allclose(within_reach.deviance, found.deviance, rtol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 5, 20])
@pytest.mark.parametrize("n", [1, 100])
def test_inverses_of_many_matrices(rank: int, n: int) -> None:
    half = np.random.default_rng(3).standard_normal((n, rank, rank + 2))
    matrices = np.eye(rank) + half @ half.mT
    inverse, log_determinant = inverse_and_log_determinant(matrices)
    assert_allclose(inverse, np.linalg.inv(matrices), rtol=1e-9, atol=1e-12)
    assert_allclose(log_determinant, np.linalg.slogdet(matrices)[1], rtol=1e-12, atol=1e-12)
    if rank > 0:
        root = inverse_root(matrices)
        assert_allclose(root @ root.mT, inverse, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gaussian", [True, False])
def test_many_tasks_tell_how_heavy_their_tails_are(gaussian: bool) -> None:
    rng, n_tasks, dim, rank = np.random.default_rng(0), factor_learning.TELLING, 8, 2
    theta = rng.standard_normal((n_tasks, rank)) @ haar_basis(dim, rank, rng).T
    if not gaussian:
        theta /= np.sqrt(rng.chisquare(3, (n_tasks, 1)) / 3)
    x = rng.standard_normal((20, n_tasks, dim))
    y = np.vecdot(x, theta) + rng.standard_normal((20, n_tasks))
    prior, degrees = FactorPrior(), np.inf if gaussian else 3.0
    few = prior.fit(GramStatistics.of(x[:15], y[:15]))
    more = prior.refit(GramStatistics.of(x, y), few)
    for estimate in (few, more):
        assert estimate.model is not None
        assert estimate.model.degrees == degrees
    if gaussian:
        assert few.rank == more.rank == rank


def test_tails_of_fewer_tasks_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = GramStatistics.of(*draw(60))
    estimates = {}
    for telling in (61, 60):
        monkeypatch.setattr(factor_learning, "TELLING", telling)
        estimates[telling] = FactorPrior(sweeps=0).fit(statistics).model
    assert estimates[61] is not None
    assert estimates[61].degrees == 3.0
    assert estimates[60] is not None
    assert estimates[60].degrees == np.inf
