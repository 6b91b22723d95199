"""A live agent: what late rewards cost it, and alarms that are false or missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posse import GaussianProblem, Shared, SharedThompson, simulate
from posse.core.protocols import Policy
from posse.live import Agent
from posse.live.monitor import Monitor
from posse.live.records import DECIDED, Asked
from posse.live.status import LEAST_CHANCE

HORIZON, DELAY = 300, 100
PROBLEMS = {"d = 20, k = 2, T = 20": (20, 2, 20), "d = 10, k = 3, T = 50": (10, 3, 50)}
POLICIES: Mapping[str, Policy] = {"Shared()": Shared(), "SharedThompson()": SharedThompson()}


def play(problem: Any, policy: Policy, delay: int, seed: int) -> float:
    """Return the regret per task of an agent whose rewards come up to so many decisions late."""
    rng = np.random.default_rng([seed, 1])
    agent = Agent(policy, floor=0.0, refits="inline", seed=seed)
    due: dict[int, list[tuple[str, float]]] = {}
    regret, number = 0.0, 0
    for _ in range(HORIZON):
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


def delays(policy: Policy, n_seeds: int) -> dict[str, Any]:
    """Return the regret of agents with late rewards in ratio to that of `simulate`, by problem."""
    found = {}
    for name, (dim, rank, n_tasks) in PROBLEMS.items():
        ratios = []
        for seed in range(n_seeds):
            problem = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=seed)
            late = play(problem, policy, DELAY, seed)
            trace = simulate(problem, policy, horizon=HORIZON, seed=seed, final_state=False)
            ratios.append(late / float(trace.regret_per_task[-1]))
        logs = np.log(ratios)
        half = 1.96 * logs.std(ddof=1) / np.sqrt(len(logs))
        found[name] = {
            "ratio": round(float(np.exp(logs.mean())), 3),
            "+-": round(float(half), 3),
            "worst seed": round(float(max(ratios)), 3),
        }
    return found


def alarms(n_runs: int, n_decisions: int = 20_000) -> dict[str, float]:
    """Return how often the sample-ratio alarm is raised: wrongly, and with one arm logged 20 % too high."""
    raised = {0.0: 0, 0.2: 0}
    for run in range(n_runs):
        rng = np.random.default_rng([run, 7])
        for wrong in raised:
            p = rng.dirichlet(np.ones(5), size=64)
            logged = p * np.array([1.0 + wrong, 1.0, 1.0, 1.0, 1.0])
            logged /= logged.sum(axis=1, keepdims=True)
            ends = np.cumsum(p, axis=1)
            monitor, x = Monitor(), np.zeros(1)
            kind = rng.integers(64, size=n_decisions)
            arm = np.minimum((rng.random(n_decisions)[:, None] > ends[kind]).sum(axis=1), 4)
            for row, place in zip(kind.tolist(), arm.tolist(), strict=True):
                monitor.decided(
                    Asked("", 0.0, "", place, None, logged[row], x, None, 0, True, -1, False, DECIDED)
                )
            raised[wrong] += monitor.ratio_chance < LEAST_CHANCE
    return {"false": raised[0.0] / n_runs, "caught": raised[0.2] / n_runs}


def prove(n_seeds: int = 8, n_runs: int = 1000) -> dict[str, Any]:
    """Return what late rewards cost, and how often alarms are raised."""
    return {
        "late rewards": {name: delays(policy, n_seeds) for name, policy in POLICIES.items()},
        "sample-ratio alarms": alarms(n_runs),
    }
