"""Does sharing help here? An answer from statistics of a log in parts, by held-out error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from posse.core.account import Account
from posse.core.statistics import GramStatistics
from posse.estimators.statistics_checks import check_statistics
from posse.logs.answer import answer, learn
from posse.logs.contenders import fit_all
from posse.logs.directions import Direction, directions_of
from posse.logs.held_out import HeldOut, Noise, total
from posse.logs.learning_curve import (
    CurvePoint,
    RowsNeeded,
    curve_point,
    learning_curve,
    newcomers,
    rows_needed,
)
from posse.logs.levels import without_levels
from posse.logs.verdict import DO_NOT, SHARE, UNCLEAR, Gain, gain_over_tasks
from posse.numerics.checks import Array, check_integer

# The probability of standing alone from which on a task is said to.
ALONE = 0.5


@dataclass(frozen=True, kw_only=True)
class TaskGain:
    """What sharing does for one task.

    Attributes
    ----------
    name : str
    rows : float
        How many it has.
    gain : float, optional
        The part of its excess error that sharing saves, in [-1, 1]: of one task, so a rough number. None
        where no row could be held out.
    weight : float
        The weight of the shared prior in its estimate: 1 if it follows the others, 0 if it stands alone.
    error_alone, error_shared : float, optional
        Held-out mean squared errors, in squared units of the reward.
    noise : float
        The noise variance of its rewards.
    """

    name: str
    rows: float
    gain: float | None
    weight: float
    error_alone: float | None
    error_shared: float | None
    noise: float

    @property
    def saved(self) -> float | None:
        """By how much sharing lowers its held-out error, in units of its noise; None where it has none."""
        if self.error_alone is None or self.error_shared is None:
            return None
        return (self.error_alone - self.error_shared) / self.noise


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Whether sharing helps on a log, by how much, for which tasks, and along which directions.

    Errors are in units of each task's noise variance and are averaged over tasks, so that neither the
    loudest nor the longest task speaks for all; 1 is as good as can be. The excess error is what is beyond 1.

    Attributes
    ----------
    verdict : "share", "do not share" or "unclear"
        "do not share" if there is no shared direction or the gain is below 0.10 for sure, "share" if
        there is one and `gain_low` is above 0.
    reason : str
        Why, in two sentences.
    gain : float
        By which part the excess error of each task alone falls, if tasks share.
    gain_low, gain_high : float
        Ends of its interval over tasks, of about 95 %; -1 and 1 stand for anything beyond.
    rank : int
        How many directions tasks share: as many as the learned prior finds in all rows, and 0 if they do not
        predict held-out rows better than a prior without any, by more than a standard error over tasks.
    rows : float
        How many there are.
    features : tuple of str
        All of them, the constant one included.
    forward : bool
        Whether tests were forward in time: a window from all before it.
    errors : mapping of str to float
        The mean held-out error of every contender; empty where nothing could be held out.
    gains : mapping of str to Gain
        What `gain` is for the learned prior, with its interval, for every contender but each task alone.
    tasks : tuple of TaskGain
        In the order of the log.
    directions : tuple of Direction
        What tasks share.
    curve : tuple of CurvePoint
        Errors against rows per task, alone and shared.
    newcomers : tuple of CurvePoint
        Errors of a new task against its rows, alone and from what the other tasks share.
    rows_needed : tuple of RowsNeeded
        How many rows a new task needs.
    account : Account, optional
        What was read of the log, what was dropped or filled in, and why.
    """

    verdict: str
    reason: str
    gain: float = 0.0
    gain_low: float = 0.0
    gain_high: float = 0.0
    rank: int = 0
    rows: float
    features: tuple[str, ...]
    forward: bool
    errors: Mapping[str, float] = field(default_factory=dict)
    gains: Mapping[str, Gain] = field(default_factory=dict)
    tasks: tuple[TaskGain, ...]
    directions: tuple[Direction, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    newcomers: tuple[CurvePoint, ...] = ()
    rows_needed: tuple[RowsNeeded, ...] = ()
    account: Account | None = None

    @property
    def standing_alone(self) -> tuple[TaskGain, ...]:
        """The tasks that share nothing with the others, most sure of it first; none where nobody shares."""
        apart = [task for task in self.tasks if task.weight < 1 - ALONE] if self.rank else []
        return tuple(sorted(apart, key=lambda task: task.weight))

    @property
    def gaining_most(self) -> tuple[TaskGain, ...]:
        """The tasks with held-out rows, those whose error falls most in units of their noise first."""
        told = [(task.saved, task) for task in self.tasks if task.saved is not None]
        return tuple(task for _, task in sorted(told, key=lambda pair: -pair[0]))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as mappings, lists, numbers and texts."""
        return asdict(self)

    def to_json(self) -> str:
        """Return all of it as JSON text, without numbers that JSON has no word for."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def diagnose_parts(
    parts: Sequence[GramStatistics],
    *,
    tasks: Sequence[str],
    features: Sequence[str],
    intercept: int | None,
    forward: bool = False,
) -> Diagnosis:
    """Say whether sharing helps on a log that is given as statistics of its parts.

    Parameters
    ----------
    parts : sequence of GramStatistics
        P parts, 2 at the least, of T tasks and d features. The rows of every task are spread over them at
        random; or they are windows in the order of time.
    tasks : sequence of str
        The T names of the tasks.
    features : sequence of str
        The d names of the features.
    intercept : int, optional
        Which feature is constant. Its parameter, a task's level, is then the task's own for all contenders
        that count for the verdict: a level that tasks have in common is not called sharing.
    forward : bool
        Whether parts are windows in time: each is then tested by a fit to those before it.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, size = rng.standard_normal((10, 6, 30, 8)), rng.standard_normal(30)
    >>> y = 2 * x[..., 0] * size + rng.standard_normal((10, 6, 30))
    >>> parts = [GramStatistics.of(x[part], y[part]) for part in range(10)]
    >>> shops, columns = [f"shop {t}" for t in range(30)], [f"x{i}" for i in range(8)]
    >>> found = diagnose_parts(parts, tasks=shops, features=columns, intercept=None)
    >>> found.verdict, found.rank, found.directions[0].loadings[0][0]
    ('share', 1, 'x0')
    """
    everything = _checked(parts, tasks, features, intercept)
    inside = without_levels(everything, intercept)
    about: dict[str, Any] = {
        "rows": float(everything.count.sum()),
        "features": tuple(features),
        "forward": forward,
    }
    silent, nobody = _why_not(everything, inside, intercept), np.zeros(len(tasks))
    if silent:
        _, noise = learn(everything, intercept)
        listed = _tasks(tasks, everything, HeldOut(rows=nobody, errors={}), noise, nobody)
        return Diagnosis(verdict=DO_NOT, reason=silent, tasks=listed, **about)
    found = answer(parts, intercept, forward=forward, fit=fit_all)
    gain, rank, prior, noise, held = found.gain, found.rank, found.prior, found.noise, found.held
    excess = {name: held.excess(name, noise) for name in held.errors}
    errors = {name: 1.0 + float(values.mean()) for name, values in excess.items()}
    others = [name for place, name in enumerate(features) if place != intercept]
    new = newcomers(parts, intercept, noise)
    return Diagnosis(
        verdict=found.verdict,
        reason=_reason(found.verdict, gain, rank, errors),
        gain=gain.value,
        gain_low=gain.low,
        gain_high=gain.high,
        rank=rank,
        errors=errors,
        gains={
            name: gain_over_tasks(excess["alone"], values)
            for name, values in excess.items()
            if name != "alone"
        },
        tasks=_tasks(tasks, everything, held, noise, 1.0 - prior.alone if rank else nobody),
        directions=directions_of(prior, inside, others) if rank else (),
        curve=(
            *learning_curve(parts, intercept, noise, forward=forward),
            *_last_point(parts, everything, held, noise, forward=forward),
        ),
        newcomers=new,
        rows_needed=rows_needed(new),
        **about,
    )


def _last_point(
    parts: Sequence[GramStatistics], everything: GramStatistics, held: HeldOut, noise: Noise, *, forward: bool
) -> tuple[CurvePoint, ...]:
    """Return the end of the learning curve, all parts but one; forward in time it has no one size."""
    if forward:
        return ()
    mean = float(everything.count[held.rows > 0].mean()) * (1 - 1 / len(parts))
    return (curve_point(mean, held.excess("alone", noise), held.excess("shared", noise)),)


def _checked(
    parts: Sequence[GramStatistics], tasks: Sequence[str], features: Sequence[str], intercept: int | None
) -> GramStatistics:
    """Return the statistics of all parts together, or say what is wrong with them or with names."""
    if len(parts) < 2:
        raise ValueError(f"`parts` of diagnose_parts must be 2 or more statistics. Got {len(parts)}.")
    everything = total(parts)
    check_statistics(everything)
    shape = (len(tasks), len(features))
    if everything.moment.shape != shape:
        raise ValueError(
            f"`parts` must have the tasks and features that are named, {shape}. "
            f"Got {everything.moment.shape}."
        )
    if intercept is not None:
        check_integer("`intercept` of diagnose_parts", intercept, 0, len(features) - 1, high_name="d - 1")
        if len(features) == 1:
            raise ValueError("`features` must have one beside the constant. Got the constant alone.")
    if not everything.count.any():
        raise ValueError("`parts` must have rows. Got none.")
    n_tasks = np.count_nonzero(everything.count)
    if n_tasks > 1 and np.sum([part.count > 0 for part in parts], axis=0).max() < 2:
        raise ValueError(
            "`task` must be a column whose values come back: some task needs rows in two parts, to learn "
            f"from one and test on another. Got {everything.count.sum():g} rows of {n_tasks} tasks."
        )
    return everything


def _why_not(everything: GramStatistics, inside: GramStatistics, intercept: int | None) -> str:
    """Return in two sentences why there is nothing to measure, or nothing if there is."""
    if np.count_nonzero(everything.count) < 2:
        return "There is one task. Nobody is there to share with."
    if not inside.square.any():
        what = "Rewards are all 0." if intercept is None else "No task has rewards that differ."
        return f"{what} There is nothing that features could explain, alone or together."
    if not inside.gram.any():
        return "No feature varies within a task. All that is known of a task is its level, which is its own."
    return ""


def _tasks(
    names: Sequence[str], everything: GramStatistics, held: HeldOut, noise: Noise, weights: Array
) -> tuple[TaskGain, ...]:
    found = []
    for place, name in enumerate(names):
        alone = shared = gain = None
        if held.rows[place] > 0:
            alone, shared = float(held.errors["alone"][place]), float(held.errors["shared"][place])
            # the excess of one task is uncertain, and less than one parameter's worth is no measure
            least = noise.variances[place] / everything.count[place]
            excess = max(alone - float(noise.realised[place]), float(least))
            gain = float(np.clip((alone - shared) / excess, -1.0, 1.0))
        found.append(
            TaskGain(
                name=name,
                rows=float(everything.count[place]),
                gain=gain,
                weight=float(weights[place]),
                error_alone=alone,
                error_shared=shared,
                noise=float(noise.variances[place]),
            )
        )
    return tuple(found)


def _reason(verdict: str, gain: Gain, rank: int, errors: Mapping[str, float]) -> str:
    """Return why a verdict was reached, in two sentences."""
    held_out = (
        f"Held-out error is {errors['shared']:.3g} times the noise with sharing and {errors['alone']:.3g} "
        f"alone, and the gain of {gain.value:.0%} lies between {gain.low:.0%} and {gain.high:.0%}"
    )
    if rank == 0:
        strength = " and comes from how strongly estimates are shrunk" if gain.low > 0 else ""
        return f"No direction that tasks share predicts rows that were held out. {held_out}{strength}."
    shared = "1 shared direction" if rank == 1 else f"{rank} shared directions"
    return {
        SHARE: f"Tasks have {shared} that predict rows that were held out. {held_out}.",
        DO_NOT: f"{shared.capitalize()} gain less than a tenth of what a task alone loses. {held_out}.",
        UNCLEAR: f"{held_out}. More tasks, or more rows, would tell.",
    }[verdict]
