"""What LowRank is measured against: SciPy's L-BFGS on (B, W) jointly, and instances to solve."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from posse import GaussianProblem, GramStatistics
from posse.validation import Array


def instance(dim: int, rank: int, n_tasks: int, n_rounds: int, seed: int) -> GramStatistics:
    """Return the statistics of random play on a random problem of the paper's kind."""
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed, n_arms=1)
    rng = np.random.default_rng([dim, rank, n_tasks, n_rounds, seed])
    statistics = GramStatistics.zeros(n_tasks, dim)
    for _ in range(0, n_rounds, 20):
        actions = problem.actions(20, rng)
        choice = np.zeros((20, n_tasks), dtype=np.intp)
        rewards = problem.rewards(problem.mean_rewards(actions, choice), problem.noise(20, rng))
        statistics += GramStatistics.of(actions.features(choice), rewards)
    return statistics


def joint_lbfgs(
    statistics: GramStatistics, basis: Array, weights: Array, *, ftol: float = 1e-15, gtol: float = 1e-7
) -> OptimizeResult:
    """Minimise the residual sum of squares over (B, W) together, from a given start."""
    gram, moment, total = statistics.gram, statistics.moment, statistics.square.sum()
    n_tasks, (dim, rank) = len(moment), basis.shape
    size = dim * rank

    def objective(flat: Array) -> tuple[float, Array]:
        B, W = flat[:size].reshape(dim, rank), flat[size:].reshape(n_tasks, rank)
        theta = W @ B.T
        error = (gram @ theta[:, :, None])[:, :, 0] - moment
        value = float(np.vdot(theta, error - moment) + total)
        error *= 2.0
        return value, np.concatenate([(error.T @ W).ravel(), (error @ B).ravel()])

    start = np.concatenate([basis.ravel(), weights.ravel()])
    options = {"maxiter": 20_000, "maxfun": 80_000, "ftol": ftol, "gtol": gtol}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options)


def best_of_restarts(statistics: GramStatistics, rank: int, restarts: int, seed: int) -> float:
    """Return the least objective that L-BFGS finds from random starts."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(restarts):
        basis = np.linalg.qr(rng.standard_normal((statistics.dim, rank)))[0]
        values.append(joint_lbfgs(statistics, basis, least_squares_weights(statistics, basis)).fun)
    return float(min(values))


def least_squares_weights(statistics: GramStatistics, basis: Array) -> Array:
    """Return the best weights for a basis."""
    inside = basis.T @ statistics.gram @ basis
    return np.asarray(np.linalg.solve(inside, (statistics.moment @ basis)[:, :, None])[:, :, 0])
