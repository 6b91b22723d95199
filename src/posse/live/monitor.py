"""What is watched while an agent runs, in fixed memory: choices against probabilities, exploration, lift."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import chdtrc, stdtrit

from posse.core.shipped import register
from posse.live.guards import BUCKETS, bucket_of
from posse.live.records import Asked
from posse.numerics.checks import Array, IntArray
from posse.numerics.compiled import compiled

# Arms are watched by name or row number; from this many on, several share a slot.
SLOTS = 64
# A decision's weight in the running mean of entropies.
RATE = 1 / 500
# Slots of less variance than this are watched together: a chi-square needs some counts.
LEAST_VARIANCE = 5.0


@dataclass(kw_only=True)
class Monitor:
    """Running sums over decisions and rewards.

    Attributes
    ----------
    slots : dict of str to int
        Of the first named arms; those that came later are in slots by their hash.
    excess : (64,)
        Choices less probabilities, by slot.
    variance : (64, 64)
        Of the excess.
    moving : (2,)
        Running means of the entropies of decisions outside the control group, in units of the largest
        possible, and of their weights.
    rewards : (2,)
        Decisions that count, and the total of what they count with.
    lift_counts, lift_totals : (2, 1024)
        Decisions with a reward and the totals of these, treated and in control, by bucket of their units.
    shadow : (5,)
        Of decisions in shadow mode: how many were played, how many of these as decided; the totals of their
        rewards, all and as decided, and of squares of the latter.
    """

    slots: dict[str, int] = field(default_factory=dict)
    excess: Array = field(default_factory=lambda: np.zeros(SLOTS))
    variance: Array = field(default_factory=lambda: np.zeros((SLOTS, SLOTS)))
    moving: Array = field(default_factory=lambda: np.zeros(2))
    rewards: Array = field(default_factory=lambda: np.zeros(2))
    lift_counts: Array = field(default_factory=lambda: np.zeros((2, BUCKETS)))
    lift_totals: Array = field(default_factory=lambda: np.zeros((2, BUCKETS)))
    shadow: Array = field(default_factory=lambda: np.zeros(5))

    def __post_init__(self) -> None:
        self._places: dict[tuple[str, ...], IntArray] = {}
        self._rows = np.arange(SLOTS)

    def decided(self, asked: Asked) -> None:
        """Count a decision."""
        chances = asked.chances
        if asked.names is None:
            if len(chances) > len(self._rows):
                self._rows = np.arange(len(chances)) % SLOTS
            places = self._rows
        else:
            known = self._places.get(asked.names)
            places = self._new_places(asked.names) if known is None else known
        tally(chances, asked.arm, places, self.excess, self.variance, self.moving, not asked.control)

    def _new_places(self, names: tuple[str, ...]) -> IntArray:
        slots = self.slots
        for name in names:
            if len(slots) < SLOTS:
                slots.setdefault(name, len(slots))
        found = [slots[name] if name in slots else bucket_of(name) % SLOTS for name in names]
        places = np.array(found, dtype=np.intp)
        if len(self._places) < BUCKETS:
            self._places[names] = places
        return places

    def rewarded(self, asked: Asked, old: float | None, new: float) -> None:
        """Count the reward of a decision as `new`, in the place of `old` if that was counted."""
        first, change = float(old is None), new - (old or 0.0)
        self.rewards[0] += first
        self.rewards[1] += change
        if asked.unit >= 0:
            self.lift_counts[int(asked.control), asked.unit] += first
            self.lift_totals[int(asked.control), asked.unit] += change
        if asked.played >= 0:
            same = float(asked.played == asked.arm)
            square = new * new - (old or 0.0) ** 2
            self.shadow += (first, first * same, change, change * same, square * same)

    @property
    def entropy(self) -> float:
        """The mean entropy of late decisions, 1 for choices at random and 0 for none; NaN without any."""
        return float(self.moving[0] / self.moving[1]) if self.moving[1] > 0.0 else float("nan")

    @property
    def ratio_chance(self) -> float:
        """The chance of choices as far from their probabilities as these, by a chi-square test."""
        return ratio_chance(self.excess, self.variance)

    @property
    def control_reward(self) -> float | None:
        """The mean reward of the control group; None if there is none."""
        count = self.lift_counts[1].sum()
        return float(self.lift_totals[1].sum() / count) if count else None

    @property
    def lift(self) -> tuple[float, float, float] | None:
        """The mean reward less that of the control group, and its 95 % interval; None if one is unknown."""
        return lift(self.lift_counts, self.lift_totals)

    @property
    def matched(self) -> tuple[float, float, float] | None:
        """The mean reward of what was played as decided in shadow mode, and its 95 % interval, if known."""
        _, count, _, total, squares = self.shadow.tolist()
        if count < 2.0:
            return None
        mean = total / count
        variance = max(0.0, (squares - count * mean * mean) / (count - 1.0))
        half = float(stdtrit(count - 1.0, 0.975)) * (variance / count) ** 0.5
        return mean, mean - half, mean + half


register(Monitor, name="posse.live.Monitor")


def ratio_chance(excess: Array, variance: Array) -> float:
    """Return the chance of an excess (n,) of choices over probabilities as large as this or larger.

    A chi-square test by its covariance (n, n); slots with a variance below 5 are taken together.
    """
    diagonal = np.diag(variance)
    few, many = np.flatnonzero(diagonal < LEAST_VARIANCE), np.flatnonzero(diagonal >= LEAST_VARIANCE)
    groups = np.zeros((len(many) + 1, len(excess)))
    groups[np.arange(len(many)), many] = 1.0
    groups[-1, few] = 1.0
    z, v = groups @ excess, groups @ variance @ groups.T
    values, vectors = np.linalg.eigh(v)
    kept = values > max(LEAST_VARIANCE / 2, 1e-9 * values[-1])
    if not kept.any():
        return 1.0
    along = vectors[:, kept].T @ z
    return float(chdtrc(kept.sum(), np.sum(along**2 / values[kept])))


def lift(counts: Array, totals: Array) -> tuple[float, float, float] | None:
    """Return the difference of two mean rewards and its 95 % interval, units being clusters.

    Parameters
    ----------
    counts, totals : (2, n)
        Decisions and the totals of their rewards, by clusters of units: first those that were treated.
    """
    means, variances, sizes = [], [], []
    for count, total in zip(counts, totals, strict=True):
        n_units = int((count > 0).sum())
        if n_units < 2:
            return None
        mean = total.sum() / count.sum()
        left = np.where(count > 0, total - mean * count, 0.0)
        means.append(mean)
        variances.append(float(n_units / (n_units - 1) * np.sum(left**2) / count.sum() ** 2))
        sizes.append(n_units - 1)
    found, variance = float(means[0] - means[1]), sum(variances)
    if variance == 0.0:
        return found, found, found
    freedom = variance**2 / sum(one**2 / size for one, size in zip(variances, sizes, strict=True))
    half = float(stdtrit(freedom, 0.975)) * variance**0.5
    return found, found - half, found + half


@compiled
def tally(
    chances: Array, arm: int, places: IntArray, excess: Array, variance: Array, moving: Array, free: bool
) -> None:
    """Count a choice by its probabilities (K,), in the slots (K,) of its arms; its entropy if free."""
    n_arms, n_slots = len(chances), len(excess)
    entropy = 0.0
    by_slot = np.zeros(n_slots)
    last = 0
    for k in range(n_arms):
        by_slot[places[k]] += chances[k]
        last = max(last, places[k])
        if chances[k] > 0.0:
            entropy -= chances[k] * np.log(chances[k])
    excess[places[arm]] += 1.0
    for i in range(last + 1):
        p = by_slot[i]
        excess[i] -= p
        variance[i, i] += p
        for j in range(last + 1):
            variance[i, j] -= p * by_slot[j]
    if free and n_arms > 1:
        moving[0] += RATE * (entropy / np.log(n_arms) - moving[0])
        moving[1] += RATE * (1.0 - moving[1])
