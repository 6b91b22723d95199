"""How an estimate becomes a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posse.actions import Actions
from posse.estimators import Estimate


class Rule(Protocol):
    """An estimate and action sets in, a choice out."""

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Choose an action for every round and task."""


@dataclass(frozen=True)
class Greedy:
    """Play what looks best; equal actions are chosen between at random."""

    def choose(self, estimate: Estimate, actions: Actions, rng: np.random.Generator) -> NDArray[Any]:
        """Return argmax <x, theta_t>."""
        return actions.argmax(estimate.theta, rng)
