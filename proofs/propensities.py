"""The probabilities that a learner states are those by which it plays, and weights by them are unbiased."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from posse import (
    UCB,
    Greedy,
    IndependentThompson,
    Learner,
    LearningPolicy,
    Random,
    Ridge,
    SharedThompson,
    SharedUCB,
    Thompson,
)
from posse.core.protocols import Policy

N_TASKS, DIM, N_ARMS = 6, 4, 5
BATCH = 500
POLICIES: Mapping[str, Policy] = {
    "greedy": LearningPolicy(estimator=Ridge(penalty=1.0), rule=Greedy()),
    "ucb": LearningPolicy(estimator=Ridge(penalty=1.0), rule=UCB()),
    "thompson": LearningPolicy(estimator=Ridge(penalty=1.0), rule=Thompson()),
    "thompson, one draw": LearningPolicy(estimator=Ridge(penalty=1.0), rule=Thompson(draws=1)),
    "thompson, floor": LearningPolicy(estimator=Ridge(penalty=1.0), rule=Thompson(draws=16, floor=0.05)),
    "shared thompson": SharedThompson(),
    "shared ucb": SharedUCB(),
    "random": Random(),
}


def taught(policy: Policy, seed: int) -> Learner:
    """Return a learner that has seen some rows of most tasks."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((N_TASKS, DIM))
    learner = Learner(policy, n_tasks=N_TASKS, dim=DIM, seed=seed)
    for _ in range(3):
        tasks = rng.integers(N_TASKS - 1, size=40)
        x = rng.standard_normal((40, DIM))
        learner.observe(tasks, x, np.vecdot(x, theta[tasks]) + rng.standard_normal(40))
        learner.update()
    return learner


def frequencies(policy: Policy, n_selects: int, seed: int = 0) -> float:
    """Return the p-value of the difference between choices and their probabilities, over many decisions.

    Given what was drawn, the indicators of a choice less its probabilities have mean 0 and covariance
    diag(p) - p p'. Their sum Z over decisions is asymptotically normal with the sum C of covariances, so
    that Z'C^+ Z is chi-square with as many degrees as C has ranks. Arms are on offer at random, some twice,
    so that there are ties.
    """
    learner, rng = taught(policy, seed), np.random.default_rng(seed + 1)
    total, covariance = np.zeros(N_ARMS), np.zeros((N_ARMS, N_ARMS))
    for _ in range(n_selects // BATCH):
        arms = rng.standard_normal((BATCH, N_ARMS, DIM))
        arms[:, 1] = arms[:, 0]
        available = rng.random((BATCH, N_ARMS)) < 0.8
        available[:, 4] = True
        choice = learner.select(rng.integers(N_TASKS, size=BATCH), arms, available)
        p = choice.probabilities
        assert (p[~available] == 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        total += np.eye(N_ARMS)[choice.arm].sum(axis=0) - p.sum(axis=0)
        covariance += np.diag(p.sum(axis=0)) - p.T @ p
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values[-1]
    return float(chi2.sf(((vectors[:, kept].T @ total) ** 2 / values[kept]).sum(), kept.sum()))


def weighted_value(n_runs: int, n_rounds: int = 60, seed: int = 0) -> Mapping[str, float]:
    """Return truth, estimate, standard error and p-value of an inverse-propensity estimate.

    A Thompson learner plays fixed arms and learns as it goes; what the last arm would have earned is
    estimated from its log. The estimate is a mean of terms with the right mean each, whatever was learned.
    """
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((N_TASKS, N_ARMS, DIM)) / np.sqrt(DIM)
    theta = rng.standard_normal((N_TASKS, DIM))
    truth = float(np.vecdot(arms[:, -1], theta).mean())
    every = np.arange(N_TASKS)
    estimates = np.empty(n_runs)
    policy = IndependentThompson(draws=8, floor=0.02)
    for run in range(n_runs):
        learner = Learner(policy, n_tasks=N_TASKS, dim=DIM, seed=rng)
        earned = 0.0
        for _ in range(n_rounds):
            choice = learner.select(every, arms)
            x = arms[every, choice.arm]
            y = np.vecdot(x, theta) + rng.standard_normal(N_TASKS)
            weight = (choice.arm == N_ARMS - 1) / choice.probabilities[:, -1]
            earned += float((weight * y).mean())
            learner.observe(every, x, y)
            if learner.due:
                learner.update()
        estimates[run] = earned / n_rounds
    error = float(estimates.std(ddof=1) / np.sqrt(n_runs))
    mean = float(estimates.mean())
    p = float(2 * norm.sf(abs(mean - truth) / error))
    return {"truth": truth, "estimate": mean, "standard error": error, "p": p}


def prove(n_selects: int = 1_000_000, n_runs: int = 4000) -> dict[str, Any]:
    """Return p-values of all rules over a million decisions each, and the estimate by weights."""
    return {
        "decisions": n_selects,
        "p of frequencies": {name: frequencies(policy, n_selects) for name, policy in POLICIES.items()},
        "inverse propensity": {"runs": n_runs, **weighted_value(n_runs)},
    }
