"""How often a diagnosis of a simulated log is right, and how far its gain is from that on fresh rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posse import GramStatistics
from posse.logs.answer import answer
from posse.logs.contenders import fit_two
from posse.logs.diagnosis import Diagnosis, diagnose_parts
from posse.logs.held_out import squared_errors, total
from posse.numerics.checks import Array
from proofs.jobs import in_processes

TASKS, DIM, RANK, ARMS, PARTS = 40, 15, 3, 5, 10
LEAST_ROWS, MOST_ROWS = 20, 400
# Levels of tasks: there is no constant feature; or one, and tasks' levels are equal, or far apart.
LEVELS = ("none", "common", "own")
LOGGING = ("random", "greedy")
# Verdict, rank, gain with its ends, and the gain on fresh rows.
Outcome = tuple[str, int, float, float, float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedLog:
    """A log of T tasks in parts, and what fresh rows would tell.

    Attributes
    ----------
    parts : list of GramStatistics
        The rows of each task, spread over the parts at random and evenly.
    fresh : GramStatistics
        As many fresh rows of each task, chosen as those of the log were, with rewards that have no noise.
    intercept : int or None
        Which feature is constant.
    """

    parts: list[GramStatistics]
    fresh: GramStatistics
    intercept: int | None

    def diagnose(self) -> Diagnosis:
        """Return the diagnosis of the log."""
        n_tasks, dim = self.fresh.moment.shape
        return diagnose_parts(
            self.parts,
            tasks=[f"task {number}" for number in range(n_tasks)],
            features=[f"x{number}" for number in range(dim)],
            intercept=self.intercept,
        )

    def fresh_gain(self) -> float:
        """Return 1 - sum(shared) / sum(alone) over excess errors of tasks on fresh rows, from all rows."""
        theta = fit_two(total(self.parts), self.intercept).theta
        alone, shared = (
            float(np.mean(squared_errors(self.fresh, theta[name]) / self.fresh.count))
            for name in ("alone", "shared")
        )
        return 1.0 - shared / alone


def simulated_log(
    seed: int, *, related: bool, logging: str = "random", levels: str = "none", n_tasks: int = TASKS
) -> SimulatedLog:
    """Draw tasks and play them, from 20 to 400 rows each, by chance.

    Effects have unit length on average, in noise of variance 1; they lie in three dimensions if tasks are
    related, or are spherical and independent. In each round five arms are on offer, and one is taken:
    any, or the best for a ridge regression on the task's earlier rows.
    """
    rng = np.random.default_rng([seed, related, LOGGING.index(logging), LEVELS.index(levels)])
    effects = rng.standard_normal((n_tasks, DIM))
    if related:
        effects = rng.standard_normal((n_tasks, RANK)) @ rng.standard_normal((RANK, DIM))
    effects /= np.sqrt(np.mean(np.sum(effects**2, axis=1)))
    level = {"none": np.zeros(n_tasks), "common": np.full(n_tasks, 3.0)}.get(
        levels, 3.0 + 2.0 * rng.standard_normal(n_tasks)
    )
    constant = levels != "none"
    counts = rng.integers(LEAST_ROWS, MOST_ROWS + 1, n_tasks)
    theta = np.column_stack([level, effects]) if constant else effects
    x, fresh, y = _played(rng, theta, logging, constant=constant)
    there = np.arange(MOST_ROWS)[:, None] < counts
    deal = rng.permuted(np.tile(np.arange(PARTS)[:, None], (MOST_ROWS // PARTS, n_tasks)), axis=0)
    for task, count in enumerate(counts):  # evenly over the rows that are there
        deal[:count, task] = rng.permutation(np.arange(count) % PARTS)
    parts = [GramStatistics.of(x, y, ((deal == part) & there).astype(np.float64)) for part in range(PARTS)]
    return SimulatedLog(
        parts=parts,
        fresh=GramStatistics.of(fresh, np.vecdot(fresh, theta), there.astype(np.float64)),
        intercept=0 if constant else None,
    )


def _played(
    rng: np.random.Generator, theta: Array, logging: str, *, constant: bool
) -> tuple[Array, Array, Array]:
    """Return rows (n, T, d), rows chosen as they were from other arms, and rewards (n, T) of the first."""
    n_tasks, dim = theta.shape
    arms = rng.standard_normal((2, MOST_ROWS, n_tasks, ARMS, dim))
    if constant:
        arms[..., 0] = 1.0
    noise = rng.standard_normal((MOST_ROWS, n_tasks))
    if logging == "random":
        x, fresh = arms[..., 0, :]
        return x, fresh, np.vecdot(x, theta) + noise
    inverse, moment = np.tile(np.eye(dim), (n_tasks, 1, 1)), np.zeros((n_tasks, dim))
    rows, rewards = np.empty((2, MOST_ROWS, n_tasks, dim)), np.empty((MOST_ROWS, n_tasks))
    for number in range(MOST_ROWS):
        believed = np.matvec(inverse, moment)
        chosen = np.argmax(np.vecdot(arms[:, number], believed[:, None, :]), axis=-1)
        rows[:, number] = np.take_along_axis(arms[:, number], chosen[..., None, None], axis=-2)[..., 0, :]
        x = rows[0, number]
        rewards[number] = np.vecdot(x, theta) + noise[number]
        along = np.matvec(inverse, x)
        inverse -= along[:, :, None] * along[:, None, :] / (1.0 + np.vecdot(x, along))[:, None, None]
        moment += x * rewards[number][:, None]
    return rows[0], rows[1], rewards


def one(seed: int, **settings: Any) -> Outcome:
    """Return verdict, rank, gain with its ends, and the gain on fresh rows, of one log."""
    log = simulated_log(seed, **settings)
    found = answer(log.parts, log.intercept)
    gain = found.gain
    return found.verdict, found.rank, gain.value, gain.low, gain.high, log.fresh_gain()


def cells(
    name: str, one: Callable[..., Outcome], settings: Mapping[str, Mapping[str, Any]], n_seeds: int
) -> dict[str, Any]:
    """Return how often each verdict was given in each cell, and predicted gains beside those on fresh rows.

    Parameters
    ----------
    name : str
        Of the proof, for words about how far it is.
    one : callable
        Diagnoses one log, by its seed and settings.
    settings : mapping of str to mapping
        Of the logs of each cell.
    n_seeds : int
    """
    calls = [(one, seed, given) for given in settings.values() for seed in range(n_seeds)]
    outcomes = list(in_processes(name, _call, calls))
    return {
        cell: told(outcomes[place * n_seeds : (place + 1) * n_seeds]) for place, cell in enumerate(settings)
    }


def _call(one: Callable[..., Outcome], seed: int, settings: Mapping[str, Any]) -> Outcome:
    return one(seed, **settings)


def told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what outcomes of many logs tell; about gains on fresh rows only where they are known."""
    verdicts, ranks, *numbers = zip(*outcomes, strict=True)
    gain, low, high, fresh = (np.array(values) for values in numbers)
    found: dict[str, Any] = {
        "verdicts": dict(Counter(verdicts)),
        "ranks": {str(rank): times for rank, times in sorted(Counter(ranks).items())},
        "gain, predicted": round(float(gain.mean()), 3),
    }
    if np.isnan(fresh).any():
        return found
    return found | {
        "gain, fresh rows": round(float(fresh.mean()), 3),
        "predicted to fresh": round(float(gain.mean() / fresh.mean()), 3),
        "difference, mean": round(float((gain - fresh).mean()), 3),
        "difference, standard deviation": round(float((gain - fresh).std(ddof=1)), 3),
        "within a quarter": round(float(np.mean(np.abs(gain - fresh) <= 0.25 * np.abs(fresh))), 2),
        "interval holds the mean gain": round(
            float(np.mean((low <= fresh.mean()) & (fresh.mean() <= high))), 2
        ),
        "interval holds the log's gain": round(float(np.mean((low <= fresh) & (fresh <= high))), 2),
    }


def prove(n_seeds: int = 100) -> dict[str, Any]:
    """Return verdicts and gains for related and unrelated tasks, by logging and by levels."""
    settings = {
        f"{'low rank' if related else 'unrelated'}, {logging} logging, levels: {levels}": {
            "related": related,
            "logging": logging,
            "levels": levels,
        }
        for related in (True, False)
        for logging in LOGGING
        for levels in LEVELS
    }
    return {"seeds": n_seeds, **cells("diagnose", one, settings, n_seeds)}
