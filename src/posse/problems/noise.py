"""Noise of rewards: independent, mean 0, variance 1, 1-sub-Gaussian."""

from __future__ import annotations

import numpy as np

from posse.numerics.checks import Array
from posse.numerics.random import standard_normal

NOISE_KINDS = ("gaussian", "uniform", "rademacher")


def draw_noise(kind: str, n_rounds: int, n_tasks: int, rng: np.random.Generator) -> Array:
    """Draw noise round by round, (n, T); "uniform" is on [-sqrt(3), sqrt(3)]."""
    if kind == "gaussian":
        return standard_normal((n_rounds, n_tasks), rng)
    uniform = 2.0 * rng.random((n_rounds, n_tasks)) - 1.0
    return np.sqrt(3.0) * uniform if kind == "uniform" else np.where(uniform < 0, -1.0, 1.0)


def draw_noise_totals(
    kind: str, n_rounds: int, n_tasks: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw the sum and the sum of squares of n rounds of noise, (T,) each, exactly in law.

    Gaussian: the sum is sqrt(n) z and the squares are z^2 plus an independent chi-square of n - 1
    degrees. Rademacher: a binomial, and n. Uniform noise has no such form and is drawn round by round.
    """
    if kind == "gaussian":
        z = rng.standard_normal(n_tasks)
        rest = rng.chisquare(n_rounds - 1, n_tasks) if n_rounds > 1 else np.zeros(n_tasks)
        return float(np.sqrt(n_rounds)) * z, np.asarray(z**2 + rest)
    if kind == "rademacher":
        heads = rng.binomial(n_rounds, 0.5, n_tasks)
        total = np.asarray(2.0 * heads - n_rounds, dtype=np.float64)
        return total, np.full(n_tasks, float(n_rounds))
    total, square = np.zeros((2, n_tasks))
    for _ in range(n_rounds):
        noise = draw_noise(kind, 1, n_tasks, rng)[0]
        total += noise
        square += noise**2
    return total, square
