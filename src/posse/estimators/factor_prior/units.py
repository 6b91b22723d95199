"""Powers of two that keep the squares of very large or small features and rewards within double precision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.evidence import FactorModel

# Exponents of sizes that need no other units.
ORDINARY = 64


@dataclass(frozen=True)
class Units:
    """Features are counted in units of 2^features, rewards in units of 2^rewards: no digit changes."""

    features: int
    rewards: int

    @classmethod
    def of(cls, statistics: GramStatistics) -> Units:
        """Return units in which the largest sums of squares are about 1; plain ones for ordinary sizes."""
        largest = np.einsum("tii->ti", statistics.gram).max(), statistics.square.max()
        exponents = [int(np.frexp(value)[1]) // 2 for value in largest]
        return cls(*(0 if abs(exponent) <= ORDINARY else exponent for exponent in exponents))

    @property
    def size(self) -> float:
        """The unit of theta."""
        return float(np.ldexp(1.0, self.rewards - self.features))

    def statistics_in(self, statistics: GramStatistics) -> GramStatistics:
        """Return statistics in these units; nothing is copied if they are plain."""
        if not (self.features or self.rewards):
            return statistics
        return GramStatistics(
            np.ldexp(statistics.gram, -2 * self.features),
            np.ldexp(statistics.moment, -self.features - self.rewards),
            np.ldexp(statistics.square, -2 * self.rewards),
            statistics.count,
        )

    def model_in(self, model: FactorModel) -> FactorModel:
        """Return a model in these units, from plain ones."""
        return self._moved(model, 1)

    def model_out(self, model: FactorModel) -> FactorModel:
        """Return a model in plain units, from these."""
        return self._moved(model, -1)

    def _moved(self, model: FactorModel, sign: int) -> FactorModel:
        if not (self.features or self.rewards):
            return model
        return replace(
            model,
            factors=np.ldexp(model.factors, sign * self.features),
            log_ratio=model.log_ratio + 2.0 * sign * self.features * float(np.log(2.0)),
            mean=np.ldexp(model.mean, sign * (self.features - self.rewards)),
            strength=float(np.ldexp(model.strength, 2 * sign * self.features)),
        )
