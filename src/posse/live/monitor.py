"""What is watched while an agent runs, in fixed memory: choices against probabilities, exploration, lift."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from posse.core.shipped import register
from posse.live.guards import bucket_of
from posse.live.records import Asked
from posse.live.settings import BUCKETS
from posse.numerics.checks import Array, IntArray
from posse.numerics.compiled import compiled

# Arms are watched by name or row number; from this many on, several share a slot.
SLOTS = 64
# A decision's weight in the running mean of entropies.
RATE = 1 / 500
# From so few decisions of the control group nothing is concluded.
FEW = 20
# Arms are watched by their probability as well, in bands that begin at these and at 0.
EDGES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
# The bets on each slot and band: that its odds are so many times those that its probability says.
ODDS = (1.02, 1.06, 1.2, 1.6, 3.0, 1 / 1.02, 1 / 1.06, 1 / 1.2, 1 / 1.6, 1 / 3.0)
# Half of the stake is on bets from the begin; every bet gets this share of the rest with every decision, so
# that an error that begins late is bet against, too.
PAID = 1e-9
# Nothing grows beyond this.
MOST_WON = 1e280
ROWS = SLOTS + len(EDGES) + 1


@dataclass(kw_only=True)
class Monitor:
    """Running sums over decisions and rewards.

    Attributes
    ----------
    slots : dict of str to int
        Of the first named arms; those that came later are in slots by their hash.
    won : (74, 10)
        What bets against the probabilities have grown to: by slot and, in the last 10 rows, by band of
        probability.
    stake : (1,)
        What is left to bet with.
    excess, variance : None
        What snapshots had that were made before there were bets; it is not used.
    held : (2,)
        Of decisions of the control group: the running mean of whether the arm was drawn, instead of given,
        and of their weights.
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
    won: Array = field(default_factory=lambda: np.full((ROWS, len(ODDS)), 0.5 / (ROWS * len(ODDS))))
    stake: Array = field(default_factory=lambda: np.full(1, 0.5))
    excess: Array | None = None
    variance: Array | None = None
    held: Array = field(default_factory=lambda: np.zeros(2))
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
        bet(chances, asked.arm, places, self.won, self.stake)
        if asked.control:
            self.held += RATE * ((chances[asked.arm] < 1.0, 1.0) - self.held)
        else:
            weigh(chances, self.moving)

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
    def drawn(self) -> float:
        """In which share of late decisions of the control group an arm was drawn; 0 while there are few."""
        return float(self.held[0] / self.held[1]) if self.held[1] > FEW * RATE else 0.0

    @property
    def ratio_chance(self) -> float:
        """The chance, at most, that right probabilities would ever come to look as wrong as these did.

        By a bet: what right probabilities make of a stake of 1 has mean 1 at all times, so that it ever
        reaches x with a chance of 1 / x at most (Ville), however often one looks.
        """
        return min(1.0, 1.0 / float(self.stake[0] + self.won.sum()))

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
def bet(chances: Array, arm: int, places: IntArray, won: Array, stake: Array) -> None:
    """Settle bets on a choice by its probabilities (K,), in the slots (K,) of its arms and in their bands.

    Where the arm comes from a slot of probability q, a bet on odds that are r times as high is multiplied by
    r / (1 + q (r - 1)), elsewhere by 1 / (1 + q (r - 1)): by 1 in the mean, if q is right.
    """
    by_row = np.zeros(ROWS)
    chosen_band, last = 0, 0
    for k in range(len(chances)):
        band = SLOTS
        for edge in EDGES:
            band += chances[k] >= edge
        if k == arm:
            chosen_band = band
        by_row[places[k]] += chances[k]
        by_row[band] += chances[k]
        last = max(last, places[k])
    paid = PAID * stake[0]
    for row in range(ROWS):
        if last < row < SLOTS:
            continue
        chosen = row in (places[arm], chosen_band)
        if by_row[row] == 0.0 and not chosen:
            continue
        stake[0] -= paid * len(ODDS)
        for tilt, odds in enumerate(ODDS):
            gain = (odds if chosen else 1.0) / (1.0 + by_row[row] * (odds - 1.0))
            won[row, tilt] = min(MOST_WON, (won[row, tilt] + paid) * gain)


@compiled
def weigh(chances: Array, moving: Array) -> None:
    """Count the entropy of a choice by its probabilities (K,)."""
    entropy = 0.0
    for chance in chances:
        if chance > 0.0:
            entropy -= chance * np.log(chance)
    if len(chances) > 1:
        moving[0] += RATE * (entropy / np.log(len(chances)) - moving[0])
        moving[1] += RATE * (1.0 - moving[1])
