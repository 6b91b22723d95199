"""How often 90 % intervals of the learned prior hold the truth, and how much averaging over priors saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from posse import FactorPrior, GramStatistics
from posse.numerics.checks import Array

DIM, RANK = 10, 2
TASKS, ROWS = (10, 30, 100), (5, 20, 100)
TWO_SIDED = float(stats.norm.ppf(0.95))
ELLIPSOID = float(stats.chi2(DIM).ppf(0.9))
# The likeliest prior of one noise for all, with nobody alone: what there was before averages over priors.
BEFORE: dict[str, Any] = {"noise": "shared", "alone": False, "sweeps": 0}


def draw(seed: int, n_tasks: int, n_rows: int, *, heavy: bool, n_arms: int = 0) -> tuple[Array, Array, Array]:
    """Return rows (n, T, d), rewards (n, T) and parameters (T, d) of the prior's own model.

    theta_t = F w_t, with entries of F from N(0, 1/d) and w_t from N(0, I), or from Student's t with three
    degrees if tails are heavy. Rows are N(0, I), or, if there are arms, each one of so many of the task's.
    """
    rng = np.random.default_rng([seed, n_tasks, n_rows])
    factors = rng.standard_normal((DIM, RANK)) / np.sqrt(DIM)
    weights = rng.standard_normal((n_tasks, RANK))
    if heavy:
        weights /= np.sqrt(rng.chisquare(3.0, (n_tasks, 1)) / 3.0)
    theta = weights @ factors.T
    x = rng.standard_normal((n_rows, n_tasks, DIM))
    if n_arms:
        arms = rng.standard_normal((n_tasks, n_arms, DIM))
        x = arms[np.arange(n_tasks), rng.integers(n_arms, size=(n_rows, n_tasks))]
    return x, np.vecdot(x, theta) + rng.standard_normal((n_rows, n_tasks)), theta


def covered(prior: FactorPrior, x: Array, y: Array, theta: Array, seed: int, *, arms: bool) -> Array:
    """Return shares of intervals and of ellipsoids that hold the truth, and the mean squared error, (3,).

    Intervals are of <x, theta_t> for twenty random x, or for the rows that were played if these are arms.
    """
    estimate = prior.fit(GramStatistics.of(x, y))
    error = estimate.theta - theta
    along = x[:20] if arms else np.random.default_rng(seed).standard_normal((20, *theta.shape))
    inside = np.abs(np.vecdot(along, error)) <= TWO_SIDED * np.linalg.norm(
        np.vecmat(along, estimate.root), axis=-1
    )
    lengths = np.vecdot(error, np.linalg.solve(estimate.covariance, error[:, :, None])[:, :, 0])
    return np.array([inside.mean(), np.mean(lengths <= ELLIPSOID), np.mean(error**2)])


def cell(n_tasks: int, n_rows: int, n_seeds: int, *, heavy: bool, told: bool, arms: bool) -> dict[str, Any]:
    """Return coverage with its standard error, that of ellipsoids, and errors relative to those before."""
    now, before = [], []
    rank = RANK if told else "auto"
    for seed in range(n_seeds):
        data = draw(seed, n_tasks, n_rows, heavy=heavy, n_arms=8 if arms else 0)
        now.append(covered(FactorPrior(rank=rank), *data, seed, arms=arms))
        before.append(covered(FactorPrior(rank=rank, **BEFORE), *data, seed, arms=arms))
    found, other = np.array(now), np.array(before)
    return {
        "covered": round(float(found[:, 0].mean()), 3),
        "+-": round(float(found[:, 0].std(ddof=1) / np.sqrt(n_seeds)), 3),
        "ellipsoids": round(float(found[:, 1].mean()), 3),
        "error": round(float(found[:, 2].mean()), 4),
        "error, before": round(float(found[:, 2].mean() / other[:, 2].mean()), 3),
        "covered, before": round(float(other[:, 0].mean()), 3),
    }


def prove(n_seeds: int = 60) -> dict[str, Any]:
    """Return coverage in all cells: tasks, rows, tails, rank told or not; and of fixed arms."""
    cells: Mapping[str, dict[str, Any]] = {
        f"{kind}, {'told' if told else 'auto'}, T = {n_tasks}, n = {n_rows}": {
            "n_tasks": n_tasks,
            "n_rows": n_rows,
            "n_seeds": n_seeds if n_tasks < 100 else n_seeds // 3,
            "heavy": kind == "Student tasks",
            "told": told,
            "arms": kind == "fixed arms",
        }
        for kind in ("Gaussian tasks", "Student tasks", "fixed arms")
        for told in (True, False)
        for n_tasks in TASKS
        for n_rows in ROWS
    }
    found = Parallel(n_jobs=2)(delayed(cell)(**settings) for settings in cells.values())
    return {"data sets": n_seeds, **dict(zip(cells, found, strict=True))}
