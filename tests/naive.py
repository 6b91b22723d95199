"""The finite-action experiments once more, written to be checked by eye: raw histories, plain loops.

It shares no code with posse. It reads its random numbers in the order that posse documents (three
streams of one seed; contexts and noise round by round, one number for every tie), so that both meet
the same rounds and their regrets can be compared run by run, not only on average.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]
Fit = Callable[[Array, Array, int], Array]
"""(contexts played (T, n, d), rewards (T, n), first round of the last block) -> theta (T, d)."""


@dataclass
class World:
    """One bandit instance, its horizon, and its streams of random numbers."""

    theta: Array
    basis: Array
    n_rounds: int
    n_arms: int
    contexts: np.random.Generator
    noise: np.random.Generator
    player: np.random.Generator


def epoch_ends(n_rounds: int) -> list[int]:
    """Last rounds G_1 < ... < G_M = N of the epochs of Algorithm 1."""
    n_epochs = math.ceil(math.log2(math.log2(n_rounds)))
    return [*(round(n_rounds ** (1 - 2.0**-m)) for m in range(1, n_epochs)), n_rounds]


def geometric_ends(n_rounds: int, first: int, ratio: float) -> list[int]:
    """Last rounds of blocks: `first`, then each total ceil(total * ratio), up to N."""
    ends, total = [], first
    while total < n_rounds:
        ends.append(total)
        total = max(total + 1, math.ceil(total * ratio))
    return [*ends, n_rounds]


def play(world: World, ends: list[int], fit: Fit) -> float:
    """Play greedily, refitting after every block but the last; return the regret per task."""
    n_tasks, dim = len(world.theta), len(world.basis)
    played = np.zeros((n_tasks, world.n_rounds, dim))
    rewards = np.zeros((n_tasks, world.n_rounds))
    estimate = np.zeros((n_tasks, dim))
    regret, start = 0.0, 0
    for end in ends:
        for n in range(start, end):
            normals = world.contexts.standard_normal((n_tasks, world.n_arms, dim))
            contexts = normals / math.sqrt(dim)
            noise = world.noise.standard_normal(n_tasks)
            for t in range(n_tasks):
                scores = contexts[t] @ estimate[t]
                best = np.flatnonzero(scores == scores.max())
                arm = best[0] if best.size == 1 else best[int(world.player.random() * best.size)]
                means = contexts[t] @ world.theta[t]
                regret += means.max() - means[arm]
                played[t, n] = contexts[t, arm]
                rewards[t, n] = means[arm] + noise[t]
        if end < world.n_rounds:
            estimate = fit(played[:, :end], rewards[:, :end], start)
        start = end
    return regret / n_tasks


def least_squares(x: Array, y: Array) -> Array:
    """Minimum-norm ordinary least squares of each task alone: theta (T, d)."""
    return np.array([np.linalg.lstsq(x_t, y_t)[0] for x_t, y_t in zip(x, y, strict=True)])


def ridge(x: Array, y: Array, penalty: float) -> Array:
    """Each task's minimiser of |y - x theta|^2 + penalty |theta|^2, by appended pseudo-data."""
    n_tasks, _, dim = x.shape
    extra = np.broadcast_to(math.sqrt(penalty) * np.eye(dim), (n_tasks, dim, dim))
    zeros = np.zeros((n_tasks, dim))
    return least_squares(np.concatenate([x, extra], axis=1), np.concatenate([y, zeros], axis=1))


def low_rank_loss(flat: Array, x: Array, y: Array, rank: int) -> tuple[float, Array]:
    """Mean squared residual of theta_t = B w_t on the raw data, and its gradient in (B, W)."""
    n_tasks, _, dim = x.shape
    b = flat[: dim * rank].reshape(dim, rank)
    w = flat[dim * rank :].reshape(n_tasks, rank)
    loss = 0.0
    grad_b, grad_w = np.zeros_like(b), np.zeros_like(w)
    for t in range(n_tasks):
        residual = x[t] @ (b @ w[t]) - y[t]
        loss += float(residual @ residual)
        grad_theta = 2 * (residual @ x[t])
        grad_b += np.outer(grad_theta, w[t])
        grad_w[t] = grad_theta @ b
    return loss / y.size, np.concatenate([grad_b.ravel(), grad_w.ravel()]) / y.size


def low_rank_starts(rng: np.random.Generator, x: Array, y: Array, rank: int, n_restarts: int) -> list[Array]:
    """Flat (B, W) from the SVD of the per-task estimates, then `n_restarts` perturbations of it."""
    theta = least_squares(x, y)
    left, values, _ = np.linalg.svd(theta.T)
    values = np.pad(values, (0, max(0, rank - values.size)))[:rank]
    b = left[:, :rank] * np.sqrt(values)
    w = theta @ left[:, :rank] / np.sqrt(np.maximum(values, 1e-12))
    svd_start = np.concatenate([b.ravel(), w.ravel()])
    noise = np.std(svd_start) * rng.standard_normal((n_restarts, svd_start.size))
    return [svd_start, *(svd_start + noise)]


def low_rank_least_squares(x: Array, y: Array, rank: int, n_restarts: int) -> Array:
    """Best L-BFGS solution over the starts of the joint rank-k least squares: theta (T, d)."""
    n_tasks, _, dim = x.shape
    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-12, "gtol": 1e-7}
    restarts = np.random.default_rng(0)
    fits = [
        minimize(low_rank_loss, s, (x, y, rank), "L-BFGS-B", jac=True, options=options)
        for s in low_rank_starts(restarts, x, y, rank, n_restarts)
    ]
    flat = min(fits, key=lambda f: float(f.fun)).x
    b = flat[: dim * rank].reshape(dim, rank)
    theta: Array = flat[dim * rank :].reshape(n_tasks, rank) @ b.T
    return theta


def random_play(world: World) -> float:
    """Every arm at random: the greedy rule on an estimate that stays zero."""
    return play(world, [world.n_rounds], lambda x, y, start: np.zeros_like(world.theta))


def naive_greedy(world: World) -> float:
    """The paper's baseline: per-task ordinary least squares on the last epoch, greedy."""

    def fit(x: Array, y: Array, start: int) -> Array:
        return least_squares(x[:, start:], y[:, start:])

    return play(world, epoch_ends(world.n_rounds), fit)


def mlin_greedy(world: World, n_restarts: int = 3) -> float:
    """Algorithm 1 (MLinGreedy): joint low-rank least squares on the last epoch, greedy."""
    rank = world.basis.shape[1]

    def fit(x: Array, y: Array, start: int) -> Array:
        return low_rank_least_squares(x[:, start:], y[:, start:], rank, n_restarts)

    return play(world, epoch_ends(world.n_rounds), fit)


def independent_greedy(world: World, penalty: float, first: int = 20, ratio: float = 1.5) -> float:
    """Each task alone: ridge on all its data so far, refitted at geometric rounds, greedy."""
    ends = geometric_ends(world.n_rounds, first, ratio)
    return play(world, ends, lambda x, y, start: ridge(x, y, penalty))


def oracle_greedy(world: World, penalty: float, first: int = 20, ratio: float = 1.5) -> float:
    """As `independent_greedy`, but the ridge regression is on x'B with the true B."""
    ends = geometric_ends(world.n_rounds, first, ratio)
    b = world.basis
    return play(world, ends, lambda x, y, start: ridge(x @ b, y, penalty) @ b.T)


def world(theta: Array, basis: Array, seed: int, n_rounds: int, n_arms: int) -> World:
    """Return an instance whose random numbers are those of posse's run with the same seed."""
    streams = (
        np.random.Generator(np.random.SFC64(stream)) for stream in np.random.SeedSequence(seed).spawn(3)
    )
    return World(theta, basis, n_rounds, n_arms, *streams)
