"""Is anybody worse off for having shared? Regrets beside those of the same rule with each task alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from posse import (
    GaussianPrior,
    Geometric,
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    LearningPolicy,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    Thompson,
    simulate_all,
)
from posse.core.protocols import Policy, Problem
from posse.lab.registry import draw_problem
from posse.numerics.checks import Array
from posse.problems.uneven import UnevenTasks
from posse.suite.sharing import Watch

RULES: Mapping[str, tuple[Policy, Policy]] = {
    "greedy": (SharedGreedy(), IndependentGreedy()),
    "thompson": (SharedThompson(), IndependentThompson()),
    "ucb": (SharedUCB(), IndependentUCB()),
}
EARLY, LATE, LATE_FIXED = 300, 3000, 5000
BATCH, LEAST_SEEDS = 4, 8
UNRELATED = {"structure": "unrelated"}
NOISE, UNITS = {"quietest": 0.2, "loudest": 5.0}, {"smallest": 0.1, "largest": 10.0}
NEWCOMERS, ONE_LONG = {"share": 0.8, "join": 500, "waves": 4}, {"share": 0.97, "join": 1500}
# What differs from d = 20, k = 2, T = 30 and five arms.
CASES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "low rank": ("gaussian", {}),
    "low rank, T = 10": ("gaussian", {"n_tasks": 10}),
    "rank 8, T = 10": ("gaussian", {"rank": 8, "n_tasks": 10}),
    "unrelated": ("gaussian", UNRELATED),
    "unrelated, T = 10": ("gaussian", {"n_tasks": 10, **UNRELATED}),
    "unequal noise": ("unequal-noise", NOISE),
    "unequal noise, unrelated": ("unequal-noise", {**NOISE, **UNRELATED}),
    "own units": ("own-units", UNITS),
    "own units, unrelated": ("own-units", {**UNITS, **UNRELATED}),
    "intercept": ("intercept", {}),
    "intercept, unrelated": ("intercept", UNRELATED),
    "clicks": ("clicks", {}),
    "clicks, unrelated": ("clicks", UNRELATED),
    "features x 1000": ("scaled-features", {"stretch": 1e3}),
    "features x 1000, unrelated": ("scaled-features", {"stretch": 1e3, **UNRELATED}),
    "features / 1000, unrelated": ("scaled-features", {"stretch": 1e-3, **UNRELATED}),
    "clusters": ("gaussian", {"rank": 5, "structure": "clusters"}),
    "half unrelated": ("gaussian", {"structure": "half"}),
    "a giant": ("gaussian", {"structure": "giant"}),
    "outliers, T = 50": ("gaussian", {"n_tasks": 50, "structure": "outliers"}),
    "approximate": ("gaussian", {"structure": "approximate"}),
    "common mean": ("gaussian", {"structure": "common-mean"}),
    "newcomers": ("late", NEWCOMERS),
    "newcomers, unrelated": ("late", {**NEWCOMERS, **UNRELATED}),
    "one long task": ("late", ONE_LONG),
    "fixed arms, T = 10": ("fixed-arms", {"n_tasks": 10, "n_arms": 10}),
    "fixed arms, unrelated, T = 10": ("fixed-arms", {"n_tasks": 10, "n_arms": 10, **UNRELATED}),
    "fixed arms, unrelated, T = 20": ("fixed-arms", {"n_tasks": 20, "n_arms": 10, **UNRELATED}),
}
# The mean of the levels, their standard deviation, the length of the other parameters, and the noise.
TRUE_PRIORS = {"intercept, unrelated": (2.0, 1.0, 1.0, 1.0), "clicks, unrelated": (0.5, 0.1, 0.5, 0.22)}


def problem_of(case: str, seed: int) -> Problem:
    """Return the problem of a case and a seed."""
    name, different = CASES[case]
    return draw_problem(name, seed=seed, **{"dim": 20, "rank": 2, "n_tasks": 30, "n_arms": 5, **different})


def log_ratios(case: str, seed: int, late: int | None = None) -> Array:
    """Return logarithms of regrets, shared over alone: (rules, early and late, all tasks and worst-off)."""
    problem = problem_of(case, seed)
    late = late or (LATE_FIXED if CASES[case][0] == "fixed-arms" else LATE)
    early, watch = min(EARLY, late // 2), Watch.of(problem)
    found = []
    for pair in RULES.values():
        played = {"shared": pair[0], "alone": pair[1]}
        traces = simulate_all(
            problem, played, horizon=late, seed=seed, checkpoints=[early, late], final_state=False
        )
        shared, alone = (
            [[watch.mean(regret), watch.worst(regret)] for regret in trace.regret]
            for trace in traces.values()
        )
        tiny = np.finfo(float).tiny  # newcomers have no regret before they come
        found.append(np.log(np.maximum(shared, tiny) / np.maximum(alone, tiny)))
    return np.array(found)


def summary(logs: Array) -> dict[str, Any]:
    """Return ratios of a case (seeds, rules, early and late, all and worst-off), with half-widths of 95 %."""
    ratio, half = np.exp(logs.mean(axis=0)), _half_widths(logs)
    return {
        rule: {
            "early": round(float(ratio[place, 0, 0]), 3),
            "late": round(float(ratio[place, 1, 0]), 3),
            "+-": round(float(half[place, 1, 0]), 3),
            "worst-off": round(float(ratio[place, 1, 1]), 3),
            "worst-off +-": round(float(half[place, 1, 1]), 3),
        }
        for place, rule in enumerate(RULES)
    }


def prior_of(level: float, spread: float, size: float, noise: float) -> GaussianPrior:
    """Return a prior of levels, N(level, spread^2), and of other parameters, of this length on average."""
    mean, variances = np.zeros(20), np.full(20, size**2 / 20)
    mean[0], variances[0] = level, spread**2
    return GaussianPrior(mean=mean, covariance=np.diag(variances), noise=noise)


def true_prior_ratios(case: str, seed: int) -> Array:
    """Return logarithms of regrets, of who is told the true prior over who learns alone: (rules, 2).

    Nobody shares anything in these cases, so that this is what the best prior of all would bring: early and
    late, over all tasks.
    """
    level, spread, size, noise = TRUE_PRIORS[case]
    problem, prior = problem_of(case, seed), prior_of(level, spread, size, noise)
    found = []
    for _, alone in RULES.values():
        told = replace(LearningPolicy(estimator=prior, schedule=Geometric()), rule=alone.rule)  # type: ignore[attr-defined]
        traces = simulate_all(
            problem,
            {"told": told, "alone": alone},
            horizon=LATE,
            seed=seed,
            checkpoints=[EARLY, LATE],
            final_state=False,
        )
        found.append(np.log(traces["told"].regret_per_task / traces["alone"].regret_per_task))
    return np.array(found)


def true_priors(n_seeds: int = 12) -> dict[str, Any]:
    """Return what the true prior would bring in cases with a level: ratios with half-widths of 95 %."""
    found = {}
    for case in TRUE_PRIORS:
        logs = np.array(_play(true_prior_ratios, case, range(n_seeds)))
        ratio, half = np.exp(logs.mean(axis=0)), _half_widths(logs)
        found[f"the true prior, {case}"] = {
            rule: {
                "early": round(float(ratio[place, 0]), 3),
                "late": round(float(ratio[place, 1]), 3),
                "+-": round(float(half[place, 1]), 3),
            }
            for place, rule in enumerate(RULES)
        }
    return found


def level_ratios(case: str, seed: int) -> Array:
    """Return what a level does to Thompson sampling where nobody shares: logarithms of regrets, (4,).

    Each is relative to that of tasks that learn alone in a case with levels: of who is told the true prior;
    of who is told it with parameters beside the level five times too variable; and, if all levels are 0 and
    who is told a prior knows that, of tasks alone and of who is told the true prior.
    """
    level, spread, size, noise = TRUE_PRIORS[case]
    problem = problem_of(case, seed)
    assert isinstance(problem, UnevenTasks)
    theta = problem.theta.copy()
    theta[:, 0] = 0.0
    alone = RULES["thompson"][1]
    true, bold, flat = (
        LearningPolicy(estimator=prior_of(*settings), schedule=Geometric(), rule=Thompson())
        for settings in (
            (level, spread, size, noise),
            (level, spread, np.sqrt(5.0) * size, noise),
            (0.0, 1e-4, size, noise),
        )
    )
    regrets: list[float] = []
    for played, policies in (
        (problem, {"alone": alone, "true": true, "bold": bold}),
        (replace(problem, theta=theta), {"alone": alone, "true": flat}),
    ):
        traces = simulate_all(played, policies, horizon=LATE, seed=seed, final_state=False)
        regrets += [trace.regret_per_task[-1] for trace in traces.values()]
    return np.log(np.array(regrets[1:]) / regrets[0])


def levels(n_seeds: int = 12, case: str = "intercept, unrelated") -> dict[str, Any]:
    """Return what a level does to Thompson sampling where nobody shares: ratios with half-widths of 95 %."""
    return level_summary(np.array(_play(level_ratios, case, range(n_seeds))))


def level_summary(logs: Array) -> dict[str, Any]:
    """Return ratios, with half-widths of 95 %, from what `level_ratios` found with some seeds, (seeds, 4)."""
    ratio, half = np.exp(logs.mean(axis=0)), _half_widths(logs)
    names = "true prior", "five times too bold", "alone, no level", "true prior, no level"
    return {
        name: {"late": round(float(ratio[place]), 3), "+-": round(float(half[place]), 3)}
        for place, name in enumerate(names)
    }


def prove(most_seeds: int = 48, close: float = 0.01, seconds: float = 3600.0) -> dict[str, Any]:
    """Return ratios of all cases, each with seeds until half-widths are close, or there are too many.

    Seeds come in fours, to all cases that need them, until the time is over: eight at the least.
    """
    logs: dict[str, list[Array]] = {case: [] for case in CASES}
    clock = time.perf_counter()
    for first in range(0, most_seeds, BATCH):
        for case, known in logs.items():
            if len(known) >= LEAST_SEEDS and _half_width(np.array(known)) <= close:
                continue
            if first >= LEAST_SEEDS and time.perf_counter() - clock > seconds:
                break
            known += _play(log_ratios, case, range(first, first + BATCH))
    return {
        **{case: {"seeds": len(known), **summary(np.array(known))} for case, known in logs.items()},
        **true_priors(),
        "Thompson sampling beside a level, relative to tasks alone": levels(),
    }


def _play(ratios: Callable[[str, int], Array], case: str, seeds: range) -> list[Array]:
    """Return what a function makes of a case and each of some seeds, in as many processes as JOBS says."""
    jobs = int(os.environ.get("JOBS", "2"))
    return list(Parallel(n_jobs=jobs)(delayed(ratios)(case, seed) for seed in seeds))


def _half_width(logs: Array) -> float:
    """Return the largest half-width of the rules' late ratios of all tasks."""
    return float(_half_widths(logs[:, :, 1, 0]).max())


def _half_widths(logs: Array) -> Array:
    """Return half-widths of 95 % intervals of means over seeds, the first axis, by Student's t."""
    wide = float(stats.t.ppf(0.975, len(logs) - 1))
    return np.asarray(wide * logs.std(axis=0, ddof=1) / np.sqrt(len(logs)))
