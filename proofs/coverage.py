"""How often 90 % intervals hold the truth, of the learned prior and of ridge, and what averaging saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from posse import Estimate, FactorPrior, GramStatistics, Ridge
from posse.estimators.ridge import RidgePosterior
from posse.estimators.ridge_evidence import PENALTY_GRID
from posse.numerics.checks import Array

DIM, RANK = 10, 2
TASKS, ROWS = (10, 30, 100), (5, 20, 100)
TWO_SIDED = float(stats.norm.ppf(0.95))
ELLIPSOID = float(stats.chi2(DIM).ppf(0.9))
# The likeliest prior of one noise for all, with nobody alone: today's code with these parts switched off.
LIKELIEST: dict[str, Any] = {"noise": "shared", "alone": False, "sweeps": 0}
# Mean squares of rewards without noise, in units of the noise variance, and tasks of a cell for ridge.
STRENGTHS, ALONE = (0.25, 1.0, 2.0, 4.0), 500


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


def covered(estimate: Estimate, x: Array, theta: Array, seed: int, *, arms: bool) -> Array:
    """Return shares of intervals and of ellipsoids that hold the truth, and the mean squared error, (3,).

    Intervals are of <x, theta_t> for twenty random x, or for the rows that were played if these are arms.
    """
    error = estimate.theta - theta
    along = x[:20] if arms else np.random.default_rng(seed).standard_normal((20, *theta.shape))
    inside = np.abs(np.vecdot(along, error)) <= TWO_SIDED * np.linalg.norm(
        np.vecmat(along, estimate.root), axis=-1
    )
    lengths = np.vecdot(error, np.linalg.solve(estimate.covariance, error[:, :, None])[:, :, 0])
    return np.array([inside.mean(), np.mean(lengths <= ELLIPSOID), np.mean(error**2)])


def cell(n_tasks: int, n_rows: int, n_seeds: int, *, heavy: bool, told: bool, arms: bool) -> dict[str, Any]:
    """Return coverage with its standard error, that of ellipsoids, and errors relative to the likeliest's."""
    averaged: list[Array] = []
    likeliest: list[Array] = []
    rank = RANK if told else "auto"
    for seed in range(n_seeds):
        x, y, theta = draw(seed, n_tasks, n_rows, heavy=heavy, n_arms=8 if arms else 0)
        for found, settings in ((averaged, {}), (likeliest, LIKELIEST)):
            estimate = FactorPrior(rank=rank, **settings).fit(GramStatistics.of(x, y))
            found.append(covered(estimate, x, theta, seed, arms=arms))
    return summary(np.array(averaged), np.array(likeliest))


def alone_cell(strength: float | None, n_rows: int, n_seeds: int) -> dict[str, Any]:
    """Return coverage of ridge averaged over its penalty and noise, and relative to the likeliest of both.

    theta_t ~ N(0, strength / d I), in noise of variance 1. Without a strength each task has its own, whose
    logarithm has Cauchy's distribution around 0, as far as the penalties of ridge reach.
    """
    averaged, likeliest = [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng([seed, n_rows])
        strengths = DIM / PENALTY_GRID
        if strength is None:
            chances = 1.0 / (1.0 + np.log(strengths) ** 2)
            strengths = rng.choice(strengths, size=(ALONE, 1), p=chances / chances.sum())
        else:
            strengths = np.full((ALONE, 1), strength)
        theta = np.sqrt(strengths / DIM) * rng.standard_normal((ALONE, DIM))
        x = rng.standard_normal((n_rows, ALONE, DIM))
        statistics = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((n_rows, ALONE)))
        estimate = Ridge().fit(statistics)
        assert isinstance(estimate.posterior, RidgePosterior)
        plain = RidgePosterior(statistics, estimate.theta, estimate.posterior.penalties, 1.0)
        averaged.append(covered(estimate, x, theta, seed, arms=False))
        likeliest.append(covered(Estimate(estimate.theta, posterior=plain), x, theta, seed, arms=False))
    return summary(np.array(averaged), np.array(likeliest))


def summary(found: Array, other: Array) -> dict[str, Any]:
    """Return means over data sets of what `covered` returned, (seeds, 3), averaged and likeliest."""
    return {
        "covered": round(float(found[:, 0].mean()), 3),
        "+-": round(float(found[:, 0].std(ddof=1) / np.sqrt(len(found))), 3),
        "ellipsoids": round(float(found[:, 1].mean()), 3),
        "error": round(float(found[:, 2].mean()), 4),
        "error, to the likeliest's": round(float(found[:, 2].mean() / other[:, 2].mean()), 3),
        "covered, likeliest": round(float(other[:, 0].mean()), 3),
    }


def prove(n_seeds: int = 60) -> dict[str, Any]:
    """Return coverage in all cells: tasks, rows, tails, rank told or not; of fixed arms; and of ridge."""
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
    return {"data sets": n_seeds, **dict(zip(cells, found, strict=True)), **alone(n_seeds // 6)}


def alone(n_seeds: int = 10) -> dict[str, Any]:
    """Return coverage of ridge, each task alone: strengths of all tasks, or drawn for each; and rows."""
    cells = [(strength, n_rows) for strength in (None, *STRENGTHS) for n_rows in ROWS]
    found = Parallel(n_jobs=2)(delayed(alone_cell)(*cell, n_seeds) for cell in cells)
    return {
        f"alone, strength {strength or 'drawn'}, n = {n_rows}": values
        for (strength, n_rows), values in zip(cells, found, strict=True)
    }
