"""Units, powers of two, in which features and rewards are of ordinary size: no digit changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.alone import OwnPriors
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.numerics.checks import IntArray
from posse.numerics.linalg import WIDE

# Exponents of sizes that need no other units.
ORDINARY = 64
# A feature's unit follows its size, in powers of two, but for so many.
SLACK = 2.0
# So many tasks decide whether features have units of their own.
MOST_TASKS = 64


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
    """Return a power of two for each feature, (d,): 0 unless features are of very different sizes.

    Units bring the root mean squares of features to within a factor of their median, if that makes rewards
    likelier.
    """
    dim = statistics.dim
    squares = np.einsum("tii->i", statistics.gram)
    used, none = squares > 0, np.zeros(dim, dtype=np.intp)
    if dim >= WIDE or not used.any():
        return none
    sizes = 0.5 * np.log2(np.where(used, squares, 1.0))
    apart = np.where(used, sizes - np.median(sizes[used]), 0.0)
    own = np.rint(np.sign(apart) * np.maximum(np.abs(apart) - SLACK, 0.0)).astype(np.intp)
    if not own.any():
        return none
    played = np.flatnonzero(statistics.count > 0)
    some = statistics.take(played[np.linspace(0, len(played) - 1, MOST_TASKS).astype(np.intp)])
    return own if _likely(Units(tuple(own), 0).statistics_in(some)) > _likely(some) else none


def _likely(statistics: GramStatistics) -> float:
    """Return how likely all rewards are if tasks share nothing and each has a strength of its own."""
    evidence = FactorEvidence(statistics)
    model = evidence.start()
    noise, usual = evidence.noise(evidence.solve(model)), float(np.exp(model.log_ratio))
    return float(OwnPriors.of(evidence, model.mean, noise, usual).log_evidences.sum())
