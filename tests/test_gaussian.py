"""The Gaussian problem: its laws, and the parameters that users can pass."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from posse import GaussianProblem
from posse.numerics.random import haar_basis, unit_vectors


def arms(problem: GaussianProblem, n: int, seed: int = 0) -> np.ndarray:
    return problem.actions(n, np.random.default_rng(seed)).arms


def test_parameters_lie_in_a_subspace_and_have_length_one() -> None:
    problem = GaussianProblem.draw(n_tasks=30, dim=10, rank=3, seed=0)
    assert np.linalg.matrix_rank(problem.theta) == 3
    assert_allclose(np.linalg.norm(problem.theta, axis=1), 1.0)
    assert_allclose(problem.basis.T @ problem.basis, np.eye(3), atol=1e-12)
    assert_allclose(problem.theta @ problem.basis @ problem.basis.T, problem.theta, atol=1e-12)


def test_basis_is_haar_and_weights_are_uniform() -> None:
    # Fixed seed. Under the law, a squared entry of a Haar column is Beta(1/2, (d-1)/2); alarm rate 1e-3 each.
    rng = np.random.default_rng(0)
    entries = np.array([haar_basis(6, 2, rng)[3, 1] for _ in range(2000)])
    assert stats.kstest(entries**2, stats.beta(0.5, 2.5).cdf).pvalue > 1e-3
    for i, j in ((3, 1), (0, 0)):  # a corner shows a QR whose signs were not set free
        positive = sum(haar_basis(6, 2, rng)[i, j] > 0 for _ in range(2000))
        assert stats.binomtest(int(positive), 2000).pvalue > 1e-3
    coordinates = unit_vectors(2000, 4, rng)[:, 0]
    assert stats.kstest(coordinates**2, stats.beta(0.5, 1.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("covariance", ["isotropic", "unit", "random", "shared"])
def test_contexts_have_the_stated_covariance(covariance: str) -> None:
    dim, n = 4, 40_000
    shared = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.3
    problem = GaussianProblem.draw(
        n_tasks=2,
        dim=dim,
        rank=1,
        seed=1,
        n_arms=2,
        covariance=shared if covariance == "shared" else covariance,
    )
    drawn = arms(problem, n)
    for t in range(2):
        if isinstance(problem.covariance, str):
            sigma = np.eye(dim) / (dim if covariance == "isotropic" else 1)
        else:
            sigma = problem.covariance[t] if problem.covariance.ndim == 3 else problem.covariance
        found = np.cov(drawn[:, t].reshape(-1, dim).T)
        # standard error of an entry is at most sigma_max * sqrt(2 / (n K)); 5 of them
        assert_allclose(found, sigma, atol=5 * sigma.max() * np.sqrt(2 / (2 * n)))
        if covariance == "random":
            values = np.linalg.eigvalsh(sigma)
            assert values.min() >= 0.5 / dim - 1e-12
            assert values.max() <= 2 / dim + 1e-12
            assert values.max() > 1.2 * values.min()
    if covariance == "random":
        assert not np.allclose(problem.covariance[0], problem.covariance[1])


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        ("gaussian", stats.norm()),
        ("uniform", stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))),
        ("rademacher", None),
    ],
)
def test_noise_has_its_law_and_unit_variance(kind: str, law: object) -> None:
    # Fixed seed; each check fails a fresh seed with probability about 1e-3.
    problem = GaussianProblem.draw(n_tasks=5, dim=3, rank=1, seed=0, noise_kind=kind)
    noise = problem.noise(4000, np.random.default_rng(2)).ravel()
    assert abs(noise.mean()) < 3.3 / np.sqrt(noise.size)
    if law is None:
        assert set(np.unique(noise)) == {-1.0, 1.0}
    else:
        assert stats.kstest(noise, law.cdf).pvalue > 1e-3  # type: ignore[attr-defined]


def test_own_factors_and_parameters_are_used() -> None:
    rng = np.random.default_rng(0)
    basis, weights = rng.standard_normal((6, 2)), rng.standard_normal((4, 2))
    problem = GaussianProblem.draw(n_tasks=4, dim=6, rank=2, seed=0, basis=basis, weights=weights)
    assert_allclose(problem.theta, weights @ basis.T)
    own = GaussianProblem(theta=problem.theta, n_arms=3)
    actions = own.actions(5, rng)
    choice = actions.argmax(own.theta, rng)
    assert_allclose(own.mean_rewards(actions, choice), own.best_rewards(actions))


def test_bad_input_is_named() -> None:
    draw = GaussianProblem.draw
    with pytest.raises(ValueError, match=r"`rank` .* \[1, min\(dim=4, n_tasks=9\)=4\]. Got 5"):
        draw(n_tasks=9, dim=4, rank=5, seed=0)
    with pytest.raises(ValueError, match=r"min\(dim=9, n_tasks=2\)=2\]. Got 3"):
        draw(n_tasks=2, dim=9, rank=3, seed=0)
    with pytest.raises(ValueError, match=r"`n_tasks` .* Got 0"):
        draw(n_tasks=0, dim=4, rank=1, seed=0)
    with pytest.raises(ValueError, match=r"`n_arms` .* Got 0"):
        draw(n_tasks=2, dim=4, rank=1, seed=0, n_arms=0)
    with pytest.raises(ValueError, match=r"Did you mean 'isotropic'"):
        draw(n_tasks=2, dim=4, rank=1, seed=0, covariance="isotopic")
    with pytest.raises(ValueError, match=r"`noise_kind` .* Got 'cauchy'"):
        draw(n_tasks=2, dim=4, rank=1, seed=0, noise_kind="cauchy")
    with pytest.raises(ValueError, match=r"must be symmetric"):
        draw(n_tasks=2, dim=2, rank=1, seed=0, covariance=[[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"positive definite. Got eigenvalue -1"):
        draw(n_tasks=2, dim=2, rank=1, seed=0, covariance=[[1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(ValueError, match=r"`basis` .* shape \(4, 1\). Got \(3, 1\)"):
        draw(n_tasks=2, dim=4, rank=1, seed=0, basis=np.ones((3, 1)))
    with pytest.raises(ValueError, match=r"`theta` .* Got nan at index \(0, 1\)"):
        GaussianProblem(theta=np.array([[1.0, np.nan]]))


def test_the_basis_has_the_rank_of_the_parameters() -> None:
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((9, 2)) @ np.diag([1.0, 1e-3]) @ rng.standard_normal((2, 5))
    assert GaussianProblem(theta=theta).basis.shape == (5, 2)
    assert GaussianProblem(theta=np.eye(3)).basis.shape == (3, 3)


def test_seeds_are_checked() -> None:
    for seed in (-1, 1.5, None, True):
        with pytest.raises(ValueError, match=r"`seed` of GaussianProblem .* Got"):
            GaussianProblem.draw(n_tasks=2, dim=3, rank=1, seed=seed)  # type: ignore[arg-type]
    first, again = (
        GaussianProblem.draw(n_tasks=2, dim=3, rank=1, seed=seed).theta
        for seed in (3, np.random.default_rng(3))
    )
    assert_allclose(first, again)
