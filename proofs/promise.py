"""Is anybody worse off for having shared? Regrets beside those of the same rule with each task alone.

python -m proofs.promise SECONDS [CASE ...]   # play so long, and keep it; again to go on
PROVE_SECONDS=0 python -m proofs promise      # store what is kept
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
from posse.suite.sharing import MEAN_LIMIT, WORST_LIMIT, Watch
from proofs import kept
from proofs.jobs import in_processes

RULES: Mapping[str, tuple[Policy, Policy]] = {
    "greedy": (SharedGreedy(), IndependentGreedy()),
    "thompson": (SharedThompson(), IndependentThompson()),
    "ucb": (SharedUCB(), IndependentUCB()),
}
EARLY, LATE, LATE_FIXED = 300, 3000, 5000
# Seeds of a case: so many more at a time, at the least and at the most; and of what explains a failure.
BATCH, LEAST_SEEDS, MOST_SEEDS, FEW_SEEDS = 2, 2, 48, 12
# Beyond this nothing is gained by more: half-widths of late ratios of all tasks.
CLOSE = 0.01
UNRELATED = {"structure": "unrelated"}
NOISE, UNITS = {"quietest": 0.2, "loudest": 5.0}, {"smallest": 0.1, "largest": 10.0}
NEWCOMERS, ONE_LONG = {"share": 0.8, "join": 500, "waves": 4}, {"share": 0.97, "join": 1500}
STRANGERS = {"share": 0.5, "join": 800, "structure": "half"}
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
    "unrelated newcomers among related tasks": ("late", STRANGERS),
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
    """Return logarithms of regrets, shared over alone: (rules, early and late, all tasks and worst-off).

    Early is 300 rounds after the start, or after the first newcomers have come.
    """
    problem = problem_of(case, seed)
    late = late or (LATE_FIXED if CASES[case][0] == "fixed-arms" else LATE)
    joins = getattr(problem, "joins", None)
    start = 0 if joins is None else int(joins[joins > 0].min())
    early, watch = min(start + EARLY, late // 2), Watch.of(problem)
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
    """Return ratios of a case (seeds, rules, early and late, all and worst-off), with half-widths of 95 %.

    A half-width is that of the logarithm of a late ratio.
    """
    ratio, half = np.exp(logs.mean(axis=0)), _half_widths(logs)
    return {
        rule: {
            "early": round(float(ratio[place, 0, 0]), 3),
            "worst-off early": round(float(ratio[place, 0, 1]), 3),
            "late": round(float(ratio[place, 1, 0]), 3),
            "+-": round(float(half[place, 1, 0]), 3),
            "worst-off": round(float(ratio[place, 1, 1]), 3),
            "worst-off +-": round(float(half[place, 1, 1]), 3),
        }
        for place, rule in enumerate(RULES)
    }


def kept_to(one: Mapping[str, float]) -> bool | None:
    """Return whether a pair of a case and a rule keeps the promise for sure, or surely not, else None.

    It does if the 95 % intervals of both late ratios, of all tasks and of the worst-off, end below their
    bounds, and does not if one of them begins above.

    Examples
    --------
    >>> kept_to({"late": 0.9, "+-": 0.1, "worst-off": 1.3, "worst-off +-": 0.1})
    False
    """
    limits = (("late", "+-", MEAN_LIMIT), ("worst-off", "worst-off +-", WORST_LIMIT))
    if all(one[ratio] * np.exp(one[half]) <= limit for ratio, half, limit in limits):
        return True
    return False if any(one[ratio] * np.exp(-one[half]) > limit for ratio, half, limit in limits) else None


def prior_of(level: float, spread: float, size: float, noise: float) -> GaussianPrior:
    """Return a prior of levels, N(level, spread^2), and of other parameters, of this length on average."""
    mean, variances = np.zeros(20), np.full(20, size**2 / 20)
    mean[0], variances[0] = level, spread**2
    return GaussianPrior(mean=mean, covariance=np.diag(variances), noise=noise)


def true_prior_ratios(case: str, seed: int, late: int | None = None) -> Array:
    """Return logarithms of regrets, of who is told the true prior over who learns alone: (rules,).

    Nobody shares anything in these cases, so that this is what the best prior of all would bring.
    """
    level, spread, size, noise = TRUE_PRIORS[case]
    problem, prior = problem_of(case, seed), prior_of(level, spread, size, noise)
    found = []
    for _, alone in RULES.values():
        told = replace(LearningPolicy(estimator=prior, schedule=Geometric()), rule=alone.rule)  # type: ignore[attr-defined]
        told_regret, regret = regrets(problem, {"told": told, "alone": alone}, seed, late)
        found.append(np.log(told_regret / regret))
    return np.array(found)


def regrets(
    problem: Problem, policies: Mapping[str, Policy], seed: int, late: int | None = None
) -> list[float]:
    """Return the regret per task of each policy after all rounds."""
    traces = simulate_all(problem, policies, horizon=late or LATE, seed=seed, final_state=False)
    return [float(trace.regret_per_task[-1]) for trace in traces.values()]


def level_ratios(case: str, seed: int, late: int | None = None) -> Array:
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
    found = regrets(problem, {"alone": alone, "true": true, "bold": bold}, seed, late)
    found += regrets(replace(problem, theta=theta), {"alone": alone, "true": flat}, seed, late)
    return np.log(np.array(found[1:]) / found[0])


def smaller_draws_ratios(case: str, seed: int, late: int | None = None) -> Array:
    """Return what half as wide draws do beside a level, as logarithms of regrets of Thompson sampling, (3,).

    Who shares with them, over who learns alone and over who does so with them; and who learns alone with them
    over who does without.
    """
    played = {
        "shared": SharedThompson(scale=0.5),
        "small": IndependentThompson(scale=0.5),
        "alone": IndependentThompson(),
    }
    shared, small, alone = regrets(problem_of(case, seed), played, seed, late)
    return np.log([shared / alone, shared / small, small / alone])


# What explains a failure: a function, and the names of what it returns.
EXPLANATIONS: Mapping[Callable[..., Array], tuple[str, ...]] = {
    true_prior_ratios: tuple(RULES),
    level_ratios: ("true prior", "five times too bold", "alone, no level", "true prior, no level"),
    smaller_draws_ratios: ("shared / alone", "shared / alone with them", "alone with them / alone"),
}
EXPLAINED: Mapping[str, tuple[Callable[..., Array], str]] = {
    **{f"the true prior, {case}": (true_prior_ratios, case) for case in TRUE_PRIORS},
    "Thompson sampling beside a level, relative to tasks alone": (level_ratios, "intercept, unrelated"),
    "Thompson sampling beside a level, draws half as wide": (smaller_draws_ratios, "intercept, unrelated"),
}


def explanation(names: Sequence[str], logs: Array) -> dict[str, Any]:
    """Return ratios, with half-widths of 95 %, from logarithms of some seeds, (seeds, names)."""
    ratio, half = np.exp(logs.mean(axis=0)), _half_widths(logs)
    return {
        "seeds": len(logs),
        **{
            name: {"late": round(float(ratio[place]), 3), "+-": round(float(half[place]), 3)}
            for place, name in enumerate(names)
        },
    }


def prove(
    seconds: float | None = None, folder: Path | None = None, late: int | None = None
) -> dict[str, Any]:
    """Return ratios of all cases, with the seeds that could be played in some seconds, and before.

    An hour, or PROVE_SECONDS. What is played is kept, and what was kept is not played again.
    """
    folder = folder or kept.folder_of(Path(__file__))
    seconds = float(os.environ.get("PROVE_SECONDS", "3600")) if seconds is None else seconds
    play_for(seconds, folder, late=late)
    logs = {case: kept.known(log_ratios, case, folder) for case in CASES}
    others = {name: kept.known(*explained, folder) for name, explained in EXPLAINED.items()}
    lacking = [name for name, some in {**logs, **others}.items() if len(some) < LEAST_SEEDS]
    if lacking:
        raise SystemExit(
            f"Fewer than {LEAST_SEEDS} seeds of: {'; '.join(lacking)}. Go on, from what is kept."
        )
    return {
        **{case: {"seeds": len(some), **summary(some)} for case, some in logs.items()},
        **{name: explanation(EXPLANATIONS[EXPLAINED[name][0]], some) for name, some in others.items()},
    }


def play_for(
    seconds: float, folder: Path, cases: Iterable[str] | None = None, *, late: int | None = None
) -> None:
    """Play some cases, or all, for some seconds, going on from what is kept in a folder, and keep it there.

    Two seeds of each come first, then what explains failures, then more seeds where it is not decided whether
    the promise holds, and then where ratios are not known to 1 %. A game that has begun is played to its end.
    """
    deadline = time.time() + seconds
    while time.time() < deadline and (wanted := _wanted(tuple(cases or CASES), folder)):
        calls = [(*call, late, folder, deadline) for call in wanted]
        for _ in in_processes("promise", kept.play, calls):
            pass


def _wanted(cases: Sequence[str], folder: Path) -> list[tuple[Callable[..., Array], str, int]]:
    """Return the next calls that are to be kept: a function, a case and a seed."""
    logs = {case: kept.known(log_ratios, case, folder) for case in cases}

    def more(some: Iterable[str], stop: Callable[[str], int]) -> list[tuple[Callable[..., Array], str, int]]:
        return [(log_ratios, case, seed) for case in some for seed in range(len(logs[case]), stop(case))]

    first = more(cases, lambda case: LEAST_SEEDS)
    explaining = [
        (function, case, seed)
        for function, case in EXPLAINED.values()
        if case in cases
        for seed in range(len(kept.known(function, case, folder)), FEW_SEEDS)
    ]
    if first or explaining:
        return first or explaining
    some = {case: one for case, one in logs.items() if len(one) < MOST_SEEDS}
    rules = {case: summary(one).values() for case, one in some.items()}
    undecided = [case for case in some if any(kept_to(one) is None for one in rules[case])]
    wide = [case for case, one in some.items() if _half_widths(one[:, :, 1, 0]).max() > CLOSE]
    return more(undecided or wide, lambda case: len(logs[case]) + BATCH)


def _half_widths(logs: Array) -> Array:
    """Return half-widths of 95 % intervals of means over seeds, the first axis, by Student's t."""
    wide = float(stats.t.ppf(0.975, len(logs) - 1))
    return np.asarray(wide * logs.std(axis=0, ddof=1) / np.sqrt(len(logs)))


def main(seconds: str, *cases: str) -> None:
    """Play for some seconds, all cases or those that are named, and say how many seeds are kept of each."""
    if unknown := set(cases) - set(CASES):
        raise SystemExit(f"No case is called {', '.join(sorted(unknown))}. There are: {'; '.join(CASES)}.")
    folder = kept.folder_of(Path(__file__))
    play_for(float(seconds), folder, cases)
    for case in cases or CASES:
        print(f"{len(kept.known(log_ratios, case, folder)):3} {case}")


if __name__ == "__main__":
    from proofs import promise  # as a module of its name, so that its functions can be sent to processes

    promise.main(*sys.argv[1:])
