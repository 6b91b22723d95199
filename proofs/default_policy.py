"""Which policy an agent has by default: regret over the scenarios, and how well its logs can be evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from posse import IndependentThompson, Shared, SharedGreedy, SharedThompson
from posse.core.actions import FiniteActions
from posse.core.protocols import Policy, Problem, deal_actions
from posse.live import Agent
from posse.suite.scenarios import SCENARIOS

HORIZON = 250
# Scenarios with lists of arms; some are shortened, as tasks join late in them.
NAMES = [name for name, one in SCENARIOS.items() if one.group not in ("infinite actions", "images")]
SHORTER = {"late": {"join": 100}, "one-long": {"join": 200}, "newcomers": {"join": 80}}
CANDIDATES: Mapping[str, tuple[Policy, float]] = {
    "Shared(scale=2)": (Shared(scale=2.0), 0.01),
    "Shared()": (Shared(), 0.01),
    "SharedGreedy()": (SharedGreedy(), 0.01),
    "SharedThompson()": (SharedThompson(), 0.01),
    "SharedThompson(scale=0.5)": (SharedThompson(scale=0.5), 0.01),
    "SharedThompson(), no floor": (SharedThompson(), 0.0),
    "IndependentThompson()": (IndependentThompson(), 0.01),
}
# Those that lost least of all, and about as much as each other.
CONTENDERS = ("Shared(scale=2)", "Shared()", "SharedGreedy()")
# What the others are compared with.
BASE = "Shared(scale=2)"


def problem_of(name: str, seed: int) -> Problem:
    """Draw the problem of a scenario."""
    experiment = SCENARIOS[name].experiment
    (cell,) = experiment.cells
    return experiment.draw({**cell, **SHORTER.get(name, {})}, seed)


def play(
    problem: Problem, policy: Policy, floor: float, seed: int, horizon: int
) -> tuple[float, float, float]:
    """Return what an agent loses in all rounds together, and how far its propensities are from 0.

    The loss is a share of what playing at random loses. Of propensities: the least one, and the mean of
    sum 1 / (K^2 p), by which the variance of an inverse-propensity estimate of playing at random exceeds that
    of having played at random.
    """
    streams = [np.random.default_rng([seed, number]) for number in range(2)]
    agent = Agent(policy, floor=floor, refits="inline", seed=seed)
    lost = chance = excess = 0.0
    least, n_decisions = 1.0, 0
    for start in range(horizon):
        actions = deal_actions(problem, start, 1, streams[0])
        assert isinstance(actions, FiniteActions)
        noise = problem.noise(1, streams[1])
        on_offer = np.ones(actions.shape[:3], dtype=bool) if actions.available is None else actions.available
        tasks = np.flatnonzero(on_offer[0].any(axis=1))
        rows = [np.flatnonzero(on_offer[0, task]) for task in tasks]
        offered = [actions.arms[0, task, own] for task, own in zip(tasks, rows, strict=True)]
        decisions = agent.ask_many([str(task) for task in tasks], offered)
        choice = np.full(actions.shape[:2], -1)
        for task, own, decision in zip(tasks, rows, decisions, strict=True):
            choice[0, task] = own[int(decision.arm)]
        means = problem.mean_rewards(actions, choice)
        best = problem.best_rewards(actions)
        rewards = problem.rewards(means, noise)
        agent.tell_many([decision.id for decision in decisions], rewards[0, tasks].tolist())
        lost += float((best - means)[0, tasks].sum())
        chance += _at_random(problem, actions, on_offer, best, tasks)
        for decision in decisions:
            p = decision.propensities
            least = min(least, float(p.min()))
            excess += min(1e6, float(np.sum(1 / np.maximum(p, 1e-12))) / len(p) ** 2)
        n_decisions += len(decisions)
    return lost / chance, least, excess / n_decisions


def _at_random(problem: Problem, actions: FiniteActions, on_offer: Any, best: Any, tasks: Any) -> float:
    """Return what playing at random loses in a round, in expectation."""
    total = np.zeros(len(tasks))
    for arm in range(actions.shape[2]):
        there = on_offer[0, tasks, arm]
        choice = np.where(on_offer[..., arm], arm, np.argmax(on_offer, axis=2))
        choice = np.where(on_offer.any(axis=2), choice, -1)
        means = problem.mean_rewards(actions, choice)
        total += np.where(there, (best - means)[0, tasks], 0.0)
    return float((total / on_offer[0, tasks].sum(axis=1)).sum())


def measure(candidates: Iterable[str], seeds: Iterable[int], horizon: int) -> dict[str, Any]:
    """Return by policy the loss over all scenarios, geometric means, and how near propensities are to 0."""
    found: dict[str, Any] = {}
    losses: dict[str, Any] = {}
    for name in candidates:
        policy, floor = CANDIDATES[name]
        runs = np.array(
            [
                [play(problem_of(scenario, seed), policy, floor, seed, horizon) for seed in seeds]
                for scenario in NAMES
            ]
        )
        losses[name] = np.log(runs[:, :, 0])
        ratios = (losses[name] - losses[BASE]).mean(axis=1)
        found[name] = {
            "floor": floor,
            "loss, random = 1": round(float(np.exp(losses[name].mean())), 3),
            f"ratio to {BASE}": round(float(np.exp(ratios.mean())), 3),
            "+-": round(float(1.96 * ratios.std(ddof=1) / np.sqrt(len(ratios))), 3),
            "worst ratio": [round(float(np.exp(ratios.max())), 2), NAMES[int(np.argmax(ratios))]],
            "least propensity": float(f"{runs[:, :, 1].min():.2g}"),
            "excess variance": round(float(np.mean(runs[:, :, 2])), 1),
            "loss by scenario": {
                scenario: round(float(np.exp(loss.mean())), 3)
                for scenario, loss in zip(NAMES, losses[name], strict=True)
            },
        }
    return found


def prove(horizon: int = HORIZON) -> dict[str, Any]:
    """Return what all candidates lose, with one seed for each scenario."""
    found = measure(CANDIDATES, [0], horizon)
    return {"rounds": horizon, "seeds": 1, "scenarios": len(NAMES), "policies": found}


def prove_again(seeds: tuple[int, ...] = (1, 2), horizon: int = HORIZON) -> dict[str, Any]:
    """Return what those lose that lost least, with fresh seeds: who won by chance does not win again."""
    found = measure(CONTENDERS, seeds, horizon)
    return {"rounds": horizon, "seeds": len(seeds), "scenarios": len(NAMES), "policies": found}
