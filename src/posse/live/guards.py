"""Who is held back, and how often every arm is played at least: what stands between a policy and a choice."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from posse.core.learner import Learner
from posse.core.rows import Choice
from posse.live.holdback import Holdback
from posse.live.offers import Offer
from posse.live.records import DECIDED, UNKNOWN, Asked
from posse.live.settings import BUCKETS, Settings
from posse.numerics.checks import Array, IntArray

# Floors of all arms together take this share of the choices at most.
MOST_FLOOR = 0.5


class Chosen(NamedTuple):
    """A choice for one row.

    Attributes
    ----------
    arm : int
        Its place among the arms on offer.
    chances : (K,)
        The probabilities it was drawn with.
    unit : int
        The bucket of the unit; -1 without a control group.
    control : bool
        Whether the unit is in the control group.
    """

    arm: int
    chances: Array
    unit: int
    control: bool


def bucket_of(unit: str, salt: str = "") -> int:
    """Return the bucket that a unit is in, for ever and in every process.

    Parameters
    ----------
    unit : str
    salt : str
        With another one units are in other buckets, as if they were drawn anew.

    Examples
    --------
    >>> bucket_of("shop 1"), bucket_of("shop 2"), bucket_of("shop 2", "spring")
    (502, 251, 358)
    """
    return int.from_bytes(blake2b(unit.encode(), digest_size=2, key=salt.encode()).digest(), "big") % BUCKETS


def floors_of(settings: Settings, offer: Offer, allowed: Array | None) -> Array | float:
    """Return the least probability of every arm on offer, (K,) or one number for all.

    Together they are at most 1/2: a floor that many arms would have is made smaller.
    """
    floor, n_arms = settings.floor, len(offer.features)
    if not isinstance(floor, dict):
        if allowed is None or floor == 0.0:
            return min(float(floor), MOST_FLOOR / n_arms)
        least = floor * allowed
    elif offer.names is None:  # then there are no floors: others are refused with rows of a matrix
        return 0.0
    else:
        least = np.array([floor.get(name, 0.0) for name in offer.names])
        least = least if allowed is None else least * allowed
    total = least.sum()
    return np.asarray(least * (MOST_FLOOR / total) if total > MOST_FLOOR else least)


class Guard:
    """Decides by a learner within an agent's settings.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._held, self._salt = settings.n_held, settings.salt

    def choose(
        self,
        learner: Learner,
        holdback: Holdback | None,
        task: str,
        number: int,
        offer: Offer,
        unit: str,
        forbidden: frozenset[str] | None,
        rng: np.random.Generator,
    ) -> Chosen:
        """Return a choice for a task.

        Parameters
        ----------
        learner : Learner
        holdback : Holdback, optional
            Decides for the control group.
        task : str
        number : int
            Of the task, in the learner.
        offer : Offer
        unit : str
            What is in the control group or not, as a whole.
        forbidden : frozenset of str, optional
            Names of arms, or row numbers as text, that are not to be played.
        rng : Generator
            That the learner draws from, too.
        """
        allowed = None if not forbidden else _allowed(offer, forbidden)
        bucket = bucket_of(unit, self._salt) if self._held else -1
        mask = None if allowed is None else allowed[None] > 0
        if 0 <= bucket < self._held:
            if holdback is None:
                return self._held_back(offer, allowed, bucket, rng)
            arm, chances = holdback.select(task, offer.features[None], mask)
            return Chosen(int(arm[0]), chances[0], bucket, True)
        choice = learner.select(np.array([number]), offer.features[None], mask)
        arm, chances = mixed(choice, floors_of(self.settings, offer, allowed), rng)
        return Chosen(int(arm[0]), chances[0], bucket, False)

    def record(
        self, id: str, at: float, task: str, offer: Offer, chosen: Chosen, version: int, shown: bool
    ) -> Asked:
        """Return a choice as a decision, made at a time by a version, with all that is to be kept of it."""
        return Asked(
            id,
            at,
            task,
            chosen.arm,
            offer.names,
            chosen.chances,
            offer.features[chosen.arm].copy(),
            offer.features.copy() if self.settings.keeps_offers else None,
            version,
            shown,
            chosen.unit,
            chosen.control,
            UNKNOWN if self.settings.mode == "shadow" else DECIDED,
        )

    def _held_back(
        self, offer: Offer, allowed: Array | None, bucket: int, rng: np.random.Generator
    ) -> Chosen:
        """Play the control arm; where there is none on offer, any, with equal probabilities."""
        n_arms, wanted = len(offer.features), self.settings.control_arm
        place = -1
        if offer.names is None and isinstance(wanted, int) and 0 <= wanted < n_arms:
            place = wanted
        elif offer.names is not None and wanted in offer.names:
            place = offer.names.index(str(wanted))
        if place >= 0 and (allowed is None or allowed[place]):
            chances = np.zeros(n_arms)
            chances[place] = 1.0
            return Chosen(place, chances, bucket, True)
        open_to = np.ones(n_arms) if allowed is None else allowed
        chances = open_to / open_to.sum()
        return Chosen(int(drawn(chances, rng)), chances, bucket, True)


def mixed(choice: Choice, floors: Array | float, rng: np.random.Generator) -> tuple[IntArray, Array]:
    """Return arms (m,) and their probabilities f + (1 - sum f) p (m, K), from arms that were drawn by p.

    Parameters
    ----------
    choice : Choice
        Of m rows.
    floors : (K,) or float
        f, of every arm, or of all alike.
    rng : Generator
    """
    arm, chances = choice
    n_rows, n_arms = chances.shape
    if isinstance(floors, float) and floors == 0.0:
        return arm, chances
    at = np.asarray(rng.random(n_rows))
    if isinstance(floors, float):
        total, other = n_arms * floors, np.minimum((at / floors).astype(np.intp), n_arms - 1)
    else:
        total = float(floors.sum())
        last = int(np.flatnonzero(floors)[-1]) if total else 0
        other = np.minimum(np.searchsorted(np.cumsum(floors), at, side="right"), last)
    return np.where(at < total, other, arm), floors + (1.0 - total) * chances


def drawn(chances: Array, rng: np.random.Generator) -> int:
    """Return the place of an arm drawn by probabilities (K,)."""
    place = int(np.searchsorted(np.cumsum(chances), rng.random(), side="right"))
    return min(place, int(np.flatnonzero(chances)[-1]))


def _allowed(offer: Offer, forbidden: frozenset[str]) -> Array:
    names = range(len(offer.features)) if offer.names is None else offer.names
    allowed = np.array([float(str(name) not in forbidden) for name in names])
    if not allowed.any():
        raise ValueError(f"an arm on offer must be allowed for the task. Got {list(names)!r:.200} alone.")
    return allowed
