"""How close the learned prior comes to what can be had, where tasks are what it takes them for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from posse import (
    EllipsoidProblem,
    GaussianProblem,
    LearningPolicy,
    SharedGreedy,
    SharedThompson,
    simulate,
)
from posse.core.protocols import Policy, Problem

HORIZON = 10_000
# Regret per task of greedy play by a Gibbs sampler that is told the rank and the noise: d, k, T.
SAMPLER: Mapping[tuple[int, int, int], float] = {
    (20, 2, 50): 38.8,
    (30, 5, 50): 120.3,
    (20, 5, 10): 150.3,
    (20, 2, 10): 76.6,
    (30, 3, 20): 110.8,
}
SPHERE, SPHERE_TASKS = (10, 2), (10, 50, 200)


def regret(problem: Problem, policy: Policy, seed: int, horizon: int = HORIZON) -> float:
    """Return the regret per task of a policy after all rounds."""
    trace = simulate(problem, policy, horizon=horizon, seed=seed, final_state=False)
    return float(trace.regret_per_task[-1])


def cell(dim: int, rank: int, n_tasks: int, seed: int, horizon: int = HORIZON) -> dict[str, float]:
    """Return regrets of greedy play on lists of five arms, told the rank and not."""
    problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed)
    policies = {"told": SharedGreedy(rank=rank), "auto": SharedGreedy()}
    return {name: regret(problem, policy, seed, horizon) for name, policy in policies.items()}


def sphere(n_tasks: int, seed: int, horizon: int = HORIZON) -> dict[str, float]:
    """Return regrets of Thompson sampling on unit balls, told the rank, with averages over priors or not."""
    dim, rank = SPHERE
    problem = EllipsoidProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed)
    averaged = SharedThompson(rank=rank)
    likeliest = LearningPolicy(
        estimator=replace(averaged.estimator, sweeps=0), rule=averaged.rule, schedule=averaged.schedule
    )
    policies = {"averaged": averaged, "likeliest": likeliest}
    return {name: regret(problem, policy, seed, horizon) for name, policy in policies.items()}


def _means(found: list[dict[str, float]]) -> dict[str, Any]:
    """Return means over seeds with their standard errors."""
    summary = {}
    for name in found[0]:
        sample = np.array([one[name] for one in found])
        error = sample.std(ddof=1) / np.sqrt(len(sample))
        summary[name] = {"regret": round(float(sample.mean()), 1), "standard error": round(float(error), 1)}
    return summary


def prove(n_seeds: int = 8, horizon: int = HORIZON) -> dict[str, Any]:
    """Return regrets per task of all cells, and beside lists of arms those of the sampler."""
    jobs = Parallel(n_jobs=int(os.environ.get("JOBS", "2")))
    found: dict[str, Any] = {"seeds": n_seeds, "rounds": horizon}
    for key, best in SAMPLER.items():
        means = _means(jobs(delayed(cell)(*key, seed, horizon) for seed in range(n_seeds)))
        for one in means.values():
            one["to the sampler's"] = round(one["regret"] / best, 3)
        found["d = {}, k = {}, T = {}".format(*key)] = {"sampler": best, **means}
    for n_tasks in SPHERE_TASKS:
        played = jobs(delayed(sphere)(n_tasks, seed, horizon) for seed in range(n_seeds))
        found[f"unit balls, d = 10, k = 2, T = {n_tasks}"] = _means(played)
    return found
