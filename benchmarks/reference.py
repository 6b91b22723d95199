"""What LowRank is measured against: SciPy's L-BFGS on (B, W) jointly, and problems to solve."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import OptimizeResult, minimize

from posse import GaussianProblem, GramStatistics
from posse.numerics.checks import Array
from posse.problems import ClassPairs
from posse.problems.images import DataError, load_images


def instance(dim: int, rank: int, n_tasks: int, n_rounds: int, seed: int) -> GramStatistics:
    """Return the statistics of random play on a random problem of the paper's kind."""
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed, n_arms=1)
    rng = np.random.default_rng([dim, rank, n_tasks, n_rounds, seed])
    statistics = GramStatistics.zeros(n_tasks, dim)
    for first in range(0, n_rounds, 20):
        n = min(20, n_rounds - first)
        actions = problem.actions(n, rng)
        choice = np.zeros((n, n_tasks), dtype=np.intp)
        rewards = problem.rewards(problem.mean_rewards(actions, choice), problem.noise(n, rng))
        statistics += GramStatistics.of(actions.features(choice), rewards)
    return statistics


def many_tasks(n_tasks: int, dim: int = 50, rank: int = 5, n_rounds: int = 100) -> GramStatistics:
    """Return the statistics of random play, made from a few hundred tasks at a time."""
    rng = np.random.default_rng([n_tasks, dim, rank, n_rounds])
    basis = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
    gram, moment, square = np.empty((n_tasks, dim, dim)), np.empty((n_tasks, dim)), np.empty(n_tasks)
    for first in range(0, n_tasks, 250):
        tasks = slice(first, min(first + 250, n_tasks))
        features = rng.normal(0.0, dim**-0.5, (tasks.stop - first, n_rounds, dim))
        theta = rng.standard_normal((tasks.stop - first, rank)) @ basis.T
        rewards = (features @ theta[:, :, None])[:, :, 0] + rng.standard_normal(features.shape[:2])
        gram[tasks] = features.mT @ features
        moment[tasks] = (features.mT @ rewards[:, :, None])[:, :, 0]
        square[tasks] = (rewards**2).sum(axis=1)
    return GramStatistics(gram, moment, square, np.full(n_tasks, float(n_rounds)))


def image_pairs() -> tuple[ClassPairs, str]:
    """Return the 45 pairs of MNIST's digits, or of blurred noise where MNIST cannot be had, and which."""
    try:
        found = load_images("mnist")
    except DataError:
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(10), 300)
        fields = 4.0 * rng.standard_normal((10, 28, 28))[labels] + rng.standard_normal((3000, 28, 28))
        fields = gaussian_filter(fields, (0, 2, 2)).reshape(3000, 784)
        images = np.clip(fields - np.quantile(fields, 0.7), 0.0, None)
        return ClassPairs(images=images, labels=labels, scaling="norm"), "blurred noise"
    return ClassPairs(images=found.images, labels=found.labels, scaling="norm"), found.title


def random_play(problem: ClassPairs, n_rounds: int, seed: int) -> GramStatistics:
    """Return the statistics of arms chosen at random."""
    rng = np.random.default_rng(seed)
    statistics = GramStatistics.zeros(problem.n_tasks, problem.dim)
    for _ in range(0, n_rounds, 100):
        actions = problem.actions(100, rng)
        choice = rng.integers(2, size=(100, problem.n_tasks))
        statistics += GramStatistics.of(actions.features(choice), problem.mean_rewards(actions, choice))
    return statistics


def joint_lbfgs(
    statistics: GramStatistics,
    basis: Array,
    weights: Array,
    *,
    penalty: float = 0.0,
    goal: float = -np.inf,
    max_iter: int = 20_000,
    ftol: float = 1e-15,
    gtol: float = 1e-7,
) -> OptimizeResult:
    """Minimise LowRank's objective over (B, W) together, from a given start, until it is at most `goal`."""
    gram, moment, total = statistics.gram, statistics.moment, statistics.square.sum()
    n_tasks, (dim, rank) = len(moment), basis.shape
    size = dim * rank

    def objective(flat: Array) -> tuple[float, Array]:
        B, W = flat[:size].reshape(dim, rank), flat[size:].reshape(n_tasks, rank)
        theta = W @ B.T
        error = (gram @ theta[:, :, None])[:, :, 0] + penalty * theta - moment
        value = float(np.vdot(theta, error - moment) + total)
        error *= 2.0
        return value, np.concatenate([(error.T @ W).ravel(), (error @ B).ravel()])

    def stop(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun <= goal:
            raise StopIteration

    start = np.concatenate([basis.ravel(), weights.ravel()])
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": ftol, "gtol": gtol}
    return minimize(objective, start, jac=True, method="L-BFGS-B", callback=stop, options=options)


def best_of_restarts(statistics: GramStatistics, rank: int, restarts: int, seed: int) -> float:
    """Return the least objective that L-BFGS finds from random starts."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(restarts):
        basis = np.linalg.qr(rng.standard_normal((statistics.dim, rank)))[0]
        values.append(joint_lbfgs(statistics, basis, least_squares_weights(statistics, basis)).fun)
    return float(min(values))


def least_squares_weights(statistics: GramStatistics, basis: Array, penalty: float = 0.0) -> Array:
    """Return the best weights for an orthonormal basis."""
    inside = basis.T @ statistics.gram @ basis + penalty * np.eye(basis.shape[1])
    return np.asarray(np.linalg.solve(inside, (statistics.moment @ basis)[:, :, None])[:, :, 0])
