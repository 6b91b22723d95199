"""What a cautious choice among policies is worth: how often it harms, how often it finds what is better."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

from posse.logs import evaluate
from posse.logs.evaluation.answers import Intervals, gains_of
from posse.logs.evaluation.choose import choose
from posse.logs.evaluation.estimators import Evidence
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.models import SHARED
from posse.logs.evaluation.result import Gain
from posse.logs.evaluation.support import check_support
from posse.numerics.checks import Array, IntArray
from proofs.decision_logs import Chooser, World, lists, play, softmax
from proofs.evaluation import DIM, LEVEL, N_ARMS, PARTS, ROLES

# A choice is among so many candidates, by a log of so many decisions of each of so many tasks.
CANDIDATES, CHOICE_TASKS, CHOICE_ROWS = 20, 20, 100
# Of skewed rewards: how far the rare one lies from the usual, how rare it is; and effective decisions.
RARE = {"a loss": (-10.0, 0.1), "a win": (10.0, 0.1), "a great loss": (-100.0, 0.01)}
EFFECTIVE = (10, 50, 200)


def candidates(better: bool) -> dict[str, Chooser]:
    """Return policies to choose from: random preferences; in place of the last one that knows the truth."""
    found: dict[str, Chooser] = {
        f"random {seed}": partial(softmax, seed=seed, sharp=1.0) for seed in range(CANDIDATES)
    }
    if better:
        del found[f"random {CANDIDATES - 1}"]
        found["better"] = informed
    return found


def informed(world: World, tasks: IntArray, contexts: Array) -> Array:
    """Return the chances (n, K) of one who often plays what is best."""
    scores = np.exp(2.0 * world.means(tasks, contexts) / np.abs(world.theta).max())
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def choose_once(seed: int, size: float, *, better: bool) -> dict[str, Any]:
    """Return what is chosen by a log, its true gain, and by how many standard errors `better` is better."""
    world = World.draw(seed, CHOICE_TASKS, N_ARMS, DIM, size=size)
    played, choosers = play(world, CHOICE_ROWS, seed), candidates(better)
    table = played.table()
    for name, chooser in choosers.items():
        table = table.append_column(name, lists(chooser(world, played.tasks, played.contexts)))
    found = evaluate(
        table,
        {name: f"column:{name}" for name in choosers},
        **ROLES,
        features=[f"x{place}" for place in range(1, DIM + 1)],
        choosing="pooled",
        n_parts=PARTS,
    )
    logged = world.values(softmax).mean()
    gains = {name: float(world.values(chooser).mean() - logged) for name, chooser in choosers.items()}
    (choice,) = found.choices
    error = np.nan
    if better:
        row = found.pooled("better")["dr"]
        error = ((row.high or np.nan) - (row.low or np.nan)) / 2.0 / norm.ppf(0.5 + LEVEL / 2)
    return {
        "chosen": choice.policy,
        "gain": gains.get(choice.policy, 0.0),
        "errors": gains.get("better", np.nan) / error,
        "worse": sum(gain < 0 for gain in gains.values()),
    }


def choose_among_equals(seed: int, far: float, rare: float, effective: int, *, one_task: bool = False) -> str:
    """Return what is chosen where no policy is better: rewards are rare and far, whatever is played.

    Each candidate plays an arm that the logger plays by itself, rarely, so that about as many effective
    decisions are left as asked for. The model of rewards is perfect: it knows their mean.
    """
    rng = np.random.default_rng(seed)
    n_rows = CHOICE_TASKS * CHOICE_ROWS
    rewards = np.where(rng.random(n_rows) < rare, far, 0.0)
    tasks = Groups(np.arange(n_rows) % (1 if one_task else CHOICE_TASKS), 1 if one_task else CHOICE_TASKS)
    names = tuple(str(task) for task in range(tasks.n_groups))
    known, chance = np.full(n_rows, far * rare), effective / n_rows
    gains: list[Gain] = []
    for place in range(CANDIDATES):
        weights = (rng.random(n_rows) < chance) / chance
        given = Evidence(weights=weights, rewards=rewards, expected=known, predicted=known)
        nothing = np.zeros(tasks.n_groups)
        checked = check_support(str(place), weights, nothing, tasks, names, whole=False, certain=False)
        intervals = Intervals(kind="asymptotic", level=LEVEL, tasks=tasks)
        evidence = {"": given, SHARED: given}
        gains += gains_of(str(place), evidence, checked, intervals, names, CANDIDATES)
    return choose(gains, [], "pooled", CANDIDATES)[0].policy


def prove_choice(n_seeds: int = 100) -> dict[str, Any]:
    """Return how often a choice among 20 policies is worse than the logged one, and how often it finds one.

    The better policy is so by about four standard errors of its estimate: effects are of that size.
    """
    none = [choose_once(seed, 1.0, better=False) for seed in range(n_seeds)]
    size = _size_of_four_errors()
    one = [choose_once(seed, size, better=True) for seed in range(n_seeds)]
    return {
        "seeds": n_seeds,
        "candidates": CANDIDATES,
        "decisions": CHOICE_TASKS * CHOICE_ROWS,
        "random candidates": {
            "worse than the logged policy, of 20": float(np.mean([found["worse"] for found in none])),
            "chosen one is worse": sum(found["gain"] < 0 for found in none),
            "logged policy stays": sum(found["chosen"] == "logged" for found in none),
        },
        "one is better": {
            "size of effects": round(size, 3),
            "standard errors": round(float(np.mean([found["errors"] for found in one])), 2),
            "found": sum(found["chosen"] == "better" for found in one),
            "chosen one is worse": sum(found["gain"] < 0 for found in one),
            "logged policy stays": sum(found["chosen"] == "logged" for found in one),
        },
        "none is better, rewards are skewed": {
            f"{kind}, {effective} effective decisions": {
                "chosen although no better": sum(
                    choose_among_equals(seed, *law, effective) != "logged" for seed in range(n_seeds)
                )
            }
            for kind, law in RARE.items()
            for effective in EFFECTIVE
        },
    }


def _size_of_four_errors(n_seeds: int = 10) -> float:
    """Return the size of effects at which the better policy is so by four standard errors, by bisection."""
    low, high = 0.05, 4.0
    for _ in range(7):
        size = np.sqrt(low * high)
        errors = np.mean([choose_once(1000 + seed, size, better=True)["errors"] for seed in range(n_seeds)])
        low, high = (low, size) if errors > 4.0 else (size, high)
    return float(np.sqrt(low * high))
