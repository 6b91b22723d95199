"""The answer itself: gain, rank and verdict, from what was held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from posse.core.statistics import GramStatistics
from posse.estimators import FactorEstimate, FactorPrior
from posse.logs.contenders import Fitted, fit_deciding, measured_anyway
from posse.logs.held_out import HeldOut, Noise, estimate_noise, hold_out, splits, total
from posse.logs.levels import without_levels
from posse.logs.verdict import Gain, decide, gain_over_tasks, is_better


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether sharing helps, and what it rests on.

    Attributes
    ----------
    verdict : "share", "do not share" or "unclear"
    gain : Gain
    rank : int
        The number of directions that the learned prior finds in all rows; 0 if they do not predict held-out
        rows better than a prior without any by more than a standard error.
    prior : FactorEstimate
        The learned prior of all rows, of features without the constant one.
    noise : Noise
    held : HeldOut
        The errors of all contenders that were fitted.
    """

    verdict: str
    gain: Gain
    rank: int
    prior: FactorEstimate
    noise: Noise
    held: HeldOut


def learn(statistics: GramStatistics, intercept: int | None) -> tuple[FactorEstimate, Noise]:
    """Return the prior that all rows teach, with a level of each task's own, and how loud tasks are."""
    with measured_anyway():
        prior = FactorPrior().fit(without_levels(statistics, intercept))
    return prior, estimate_noise(statistics, intercept, prior.noises)


def answer(
    parts: Sequence[GramStatistics],
    intercept: int | None,
    *,
    forward: bool = False,
    fit: Callable[[GramStatistics, int | None], Fitted] = fit_deciding,
) -> Answer:
    """Hold out each part in turn, and decide.

    Parameters
    ----------
    parts : sequence of GramStatistics
    intercept : int, optional
        Which feature is constant.
    forward : bool
        Whether parts are windows in time, each predicted from those before it.
    fit : callable
        Fits contenders, those of `fit_deciding` at the least.
    """
    prior, noise = learn(total(parts), intercept)
    held = hold_out(splits(parts, forward=forward), lambda train: fit(train, intercept))
    alone, shared, strength = (held.excess(name, noise) for name in ("alone", "shared", "strength"))
    gain = gain_over_tasks(alone, shared)
    rank = prior.rank if is_better(shared, strength) else 0
    return Answer(verdict=decide(gain, rank), gain=gain, rank=rank, prior=prior, noise=noise, held=held)
