"""Units, powers of two, in which features and rewards are of ordinary and comparable size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.alone import STRENGTHS
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.estimators.factor_prior.ranks import spaced_tasks
from posse.estimators.noise import noise_variance
from posse.numerics.checks import IntArray
from posse.numerics.linalg import WIDE

# Exponents of sizes that need no other units.
ORDINARY = 64
# A feature's unit follows its size, in powers of two, but for so many.
SLACK = 2.0
# So many tasks decide whether features have units of their own.
MOST_TASKS = 64
# Mean squares that differ by less than this share are the same.
SAME = 1e-9
# No more features than this are taken for constants.
MOST_CONSTANT = 2
# The unit of a constant feature changes by so many powers of two in a step, and by so many steps at the most.
STEP, LARGEST_STEPS = 2, 4
# How much likelier rewards must be, in nats, before a constant feature has its own unit, and a further step.
PRICE, FURTHER_PRICE = 3.0, 0.5


@dataclass(frozen=True)
class Units:
    """Features are counted in units of 2^features, rewards in units of 2^rewards: no digit changes.

    Attributes
    ----------
    features : int, or tuple of d int
        For all features, or for each.
    rewards : int
    """

    features: Any
    rewards: int

    @classmethod
    def of(cls, statistics: GramStatistics) -> Units:
        """Return units in which the largest sums of squares are about 1; plain ones for ordinary sizes.

        Where features are of very different sizes each has its own, if that makes rewards likelier.
        """
        largest = np.einsum("tii->ti", statistics.gram).max(), statistics.square.max()
        exponents = [int(np.frexp(value)[1]) // 2 for value in largest]
        plain = cls(*(0 if abs(exponent) <= ORDINARY else exponent for exponent in exponents))
        own = _feature_units(plain.statistics_in(statistics))
        if not own.any():
            return plain
        return replace(plain, features=tuple(int(unit) + plain.features for unit in own))

    @property
    def plain(self) -> bool:
        """Whether nothing changes in these units."""
        return not (np.any(self.features) or self.rewards)

    @property
    def size(self) -> Any:
        """The unit of theta, or of each of its entries, (d,)."""
        return np.ldexp(1.0, self.rewards - np.asarray(self.features))

    def statistics_in(self, statistics: GramStatistics) -> GramStatistics:
        """Return statistics in these units; nothing is copied if they are plain."""
        if self.plain:
            return statistics
        features = np.broadcast_to(self.features, statistics.dim)
        return GramStatistics(
            np.ldexp(statistics.gram, -features[:, None] - features),
            np.ldexp(statistics.moment, -features - self.rewards),
            np.ldexp(statistics.square, -2 * self.rewards),
            statistics.count,
        )

    def model_in(self, model: FactorModel, before: Units) -> FactorModel:
        """Return a model in these units, from those that it had before.

        Variances outside of F were alike for all features, and become so again: at their middle.
        """
        if self == before:
            return model
        grown = np.broadcast_to(np.subtract(self.features, before.features), len(model.mean))
        middle = float(np.median(grown))
        return replace(
            model,
            factors=np.ldexp(model.factors, grown[:, None]),
            log_ratio=model.log_ratio + 2.0 * middle * float(np.log(2.0)),
            mean=np.ldexp(model.mean, grown - self.rewards + before.rewards),
            strength=model.strength * 4.0**middle,
        )


def _feature_units(statistics: GramStatistics) -> IntArray:
    """Return a power of two for each feature, (d,): 0 unless features are very different.

    Units bring the root mean squares of features to within a factor of their median. And a constant feature,
    whose parameters are levels, has the unit that fits these. Each has to make rewards likelier.
    """
    none = np.zeros(statistics.dim, dtype=np.intp)
    played = np.flatnonzero(statistics.count > 0)
    if statistics.dim >= WIDE or not len(played):
        return none
    sizes, constant = _sizes(statistics), constant_features(statistics)
    if not (sizes.any() or len(constant)):
        return none
    some = statistics.take(np.intersect1d(played, spaced_tasks(statistics, min(MOST_TASKS, len(played)))))
    starts = [none, sizes] if sizes.any() else [none]
    return max((_levelled(start, constant, some) for start in starts), key=lambda found: found[1])[0]


def constant_features(statistics: GramStatistics) -> IntArray:
    """Return the numbers (m,) of features that have one size in all rows of all tasks, up to their sign.

    It is seen by mean squares that all tasks have in common, so one task cannot tell; and if many features
    have that, it is because of a design that all tasks share, or of columns standardised in each task.
    """
    if np.count_nonzero(statistics.count) < 2:
        return np.zeros(0, dtype=np.intp)
    squares = np.einsum("tii->ti", statistics.gram)
    means = np.divide(squares.T, statistics.count, out=np.zeros(squares.T.shape), where=statistics.count > 0)
    means = means[:, statistics.count > 0]
    alike = np.flatnonzero((np.ptp(means, axis=1) <= SAME * means.max(axis=1)) & (means.max(axis=1) > 0))
    return alike if len(alike) <= MOST_CONSTANT else alike[:0]


def _sizes(statistics: GramStatistics) -> IntArray:
    """Return the exponents of features' root mean squares that are far from their median, (d,); else 0."""
    squares = np.einsum("tii->i", statistics.gram)
    used = squares > 0
    sizes = 0.5 * np.log2(np.where(used, squares, 1.0))
    apart = np.where(used, sizes - np.median(sizes[used]), 0.0) if used.any() else sizes
    return np.asarray(np.rint(np.sign(apart) * np.maximum(np.abs(apart) - SLACK, 0.0)).astype(np.intp))


def _levelled(start: IntArray, constant: IntArray, statistics: GramStatistics) -> tuple[IntArray, float]:
    """Return units (d,) to which a start leads, and how likely they make rewards.

    Units of constant features, (m,), are changed in steps, as long as that makes rewards likelier; the first
    time by more than a price.
    """
    own, likely = start, _unshared_likelihood(Units(tuple(start), 0).statistics_in(statistics))
    for feature in constant:
        for step in (-STEP, STEP):
            price = PRICE
            while abs(own[feature] - start[feature]) < LARGEST_STEPS * STEP:
                moved = own.copy()
                moved[feature] += step
                further = _unshared_likelihood(Units(tuple(moved), 0).statistics_in(statistics))
                if further < likely + price:
                    break
                own, likely, price = moved, further, FURTHER_PRICE
    return own, likely


def _unshared_likelihood(statistics: GramStatistics) -> float:
    """Return how likely all rewards are, up to a constant, if tasks share a strength, one of a list."""
    evidence = FactorEvidence(statistics)
    tried = STRENGTHS / evidence.unit
    gains = 1.0 + tried[:, None] * evidence.values.ravel()
    explained = tried * np.sum(evidence.moment.ravel() ** 2 / gains, axis=1)
    square, count = np.array(evidence.square), np.array(evidence.total)
    noises = np.maximum(noise_variance(square - explained, square, count), np.finfo(float).tiny)
    return float(np.max(-0.5 * (count * np.log(noises) + np.log(gains).sum(axis=1))))
