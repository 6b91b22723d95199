"""A live agent: what late rewards cost it, and alarms that are false or missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posse import GaussianProblem, Shared, SharedThompson, simulate
from posse.core.protocols import Policy
from posse.live import Agent
from posse.live.monitor import Monitor
from posse.live.records import DECIDED, Asked
from posse.live.status import LEAST_CHANCE
from posse.numerics.checks import Array

HORIZON, DELAY = 300, 100
# The alarm is looked at every so many decisions.
LOOK = 100
PROBLEMS = {"d = 20, k = 2, T = 20": (20, 2, 20), "d = 10, k = 3, T = 50": (10, 3, 50)}
POLICIES: Mapping[str, Policy] = {"Shared()": Shared(), "SharedThompson()": SharedThompson()}


def play(problem: Any, policy: Policy, delay: int, seed: int, horizon: int = HORIZON) -> float:
    """Return the regret per task of an agent whose rewards come up to so many decisions late."""
    rng = np.random.default_rng([seed, 1])
    agent = Agent(policy, floor=0.0, refits="inline", seed=seed)
    due: dict[int, list[tuple[str, float]]] = {}
    regret, number = 0.0, 0
    for _ in range(horizon):
        actions, noise = problem.actions(1, rng), problem.noise(1, rng)[0]
        offered = actions.arms
        scores = actions.scores(problem.theta)[0]
        for task in rng.permutation(problem.n_tasks):
            decision = agent.ask(str(task), offered[0, task])
            mean = scores[task, int(decision.arm)]
            regret += scores[task].max() - mean
            when = number + int(rng.integers(delay + 1))
            due.setdefault(when, []).append((decision.id, float(mean + noise[task])))
            for id, reward in due.pop(number, []):
                agent.tell(id, reward)
            number += 1
    return float(regret / problem.n_tasks)


def delays(policy: Policy, n_seeds: int, horizon: int = HORIZON) -> dict[str, Any]:
    """Return the regret of agents with late rewards in ratio to that of `simulate`, by problem."""
    found = {}
    for name, (dim, rank, n_tasks) in PROBLEMS.items():
        ratios = []
        for seed in range(n_seeds):
            problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed)
            late = play(problem, policy, DELAY, seed, horizon)
            trace = simulate(problem, policy, horizon=horizon, seed=seed, final_state=False)
            ratios.append(late / float(trace.regret_per_task[-1]))
        logs = np.log(ratios)
        half = 1.96 * logs.std(ddof=1) / np.sqrt(len(logs))
        found[name] = {
            "ratio": round(float(np.exp(logs.mean())), 3),
            "+-": round(float(half), 3),
            "worst seed": round(float(max(ratios)), 3),
        }
    return found


def best_too_low(p: Array) -> Array:
    """Return probabilities (n, K) with that of the best arm 20 % too low, and all others too high alike."""
    best = p.max(axis=1, keepdims=True)
    return np.where(p == best, 0.8 * p, p * (1.0 - 0.8 * best) / (1.0 - best))


# What is logged in the place of probabilities (n, 5), up to a factor.
ERRORS: Mapping[str, Callable[[Array], Array]] = {
    "none": lambda p: p,
    "one arm 20 % too high": lambda p: p * np.array([1.2, 1.0, 1.0, 1.0, 1.0]),
    "the best arm 20 % too low": best_too_low,
}


def alarms(n_runs: int, n_decisions: int = 20_000) -> dict[str, Any]:
    """Return how often the sample-ratio alarm is raised at any of many looks, by what is wrong, and when.

    The best arm is another row each time.
    """
    found = {}
    for error, logged_for in ERRORS.items():
        looks = [
            first_alarm(logged_for, np.random.default_rng([run, 7]), n_decisions) for run in range(n_runs)
        ]
        raised = [look for look in looks if look is not None]
        found[error] = {
            "raised": len(raised) / n_runs,
            "decisions, median": int(np.median(raised)) if raised else None,
            "decisions, most": max(raised, default=None),
        }
    return {"runs": n_runs, "decisions": n_decisions, "looks every": LOOK, "errors": found}


def first_alarm(logged_for: Callable[[Array], Array], rng: np.random.Generator, n: int) -> int | None:
    """Return after how many decisions an alarm is seen first; None if it is not within n."""
    p = rng.dirichlet(np.ones(5), size=n)
    logged = logged_for(p)
    logged /= logged.sum(axis=1, keepdims=True)
    arm = np.minimum((rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1), 4).tolist()
    monitor, x = Monitor(), np.zeros(1)
    for row, place in enumerate(arm, start=1):
        monitor.decided(
            Asked("", 0.0, "", place, None, logged[row - 1], x, None, 0, True, -1, False, DECIDED)
        )
        if row % LOOK == 0 and monitor.ratio_chance < LEAST_CHANCE:
            return row
    return None


def prove(n_seeds: int = 8, n_runs: int = 1000) -> dict[str, Any]:
    """Return what late rewards cost, and how often alarms are raised."""
    return {
        "late rewards": {name: delays(policy, n_seeds) for name, policy in POLICIES.items()},
        "sample-ratio alarms": alarms(n_runs),
    }
