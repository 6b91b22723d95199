"""Algorithm 2 and PEGE on the unit sphere, round by round: raw histories, plain loops, no shared code.

Used to compare regret in law: every round draws its own noise.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def e2tc(theta: Array, rank: int, exponent: float, n_rounds: int, rng: np.random.Generator) -> float:
    """Play Algorithm 2 on every task and return the regret per task."""
    n_tasks, dim = theta.shape
    n_explore = round(dim**exponent * rank * math.sqrt(n_rounds / n_tasks))
    n_each = round(math.sqrt(n_rounds))
    best = [math.sqrt(float(v @ v)) for v in theta]
    regret = 0.0
    moment = np.zeros((dim, dim))
    for t in range(n_tasks):
        for _ in range(n_explore):
            direction = rng.standard_normal(dim)
            x = direction / np.linalg.norm(direction)
            mean = float(x @ theta[t])
            reward = mean + float(rng.standard_normal())
            moment += reward**2 * np.outer(x, x) / (n_explore * n_tasks)
            regret += best[t] - mean
    left, _, _ = np.linalg.svd(moment)
    basis = left[:, :rank]
    for t in range(n_tasks):
        design, rewards = [], []
        for column in basis.T:
            for _ in range(n_each):
                mean = float(column @ theta[t])
                design.append(column @ basis)
                rewards.append(mean + rng.standard_normal())
                regret += best[t] - mean
        weights = np.linalg.lstsq(np.array(design), np.array(rewards))[0]
        action = basis @ weights / np.linalg.norm(basis @ weights)
        for _ in range(n_rounds - n_explore - rank * n_each):
            regret += best[t] - float(action @ theta[t])
    return float(regret / n_tasks)


def pege(theta: Array, n_rounds: int, rng: np.random.Generator) -> float:
    """Play cycles of exploring every axis once and exploiting c rounds; return the regret per task."""
    n_tasks, dim = theta.shape
    regret = 0.0
    for t in range(n_tasks):
        best = math.sqrt(float(theta[t] @ theta[t]))
        sums, cycle, played = np.zeros(dim), 0, 0
        while played < n_rounds:
            cycle += 1
            for axis in range(dim):
                if played == n_rounds:
                    break
                sums[axis] += theta[t, axis] + rng.standard_normal()
                regret += best - float(theta[t, axis])
                played += 1
            estimate = sums / cycle
            action = estimate / np.linalg.norm(estimate)
            for _ in range(cycle):
                if played == n_rounds:
                    break
                regret += best - float(action @ theta[t])
                played += 1
    return float(regret / n_tasks)
