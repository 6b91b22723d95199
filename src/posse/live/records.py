"""Decisions and the rewards that belong to them: what of them counts is decided here, and nowhere else."""

from __future__ import annotations

import math
from typing import NamedTuple

from posse.live.settings import Settings
from posse.numerics.checks import Array

# Which arm was played, where that is no place among the arms on offer.
DECIDED, UNKNOWN = -1, -2


class Decision(NamedTuple):
    """What an agent decided, as it is told to the caller.

    Attributes
    ----------
    id : str
        By which rewards are told; ids that an agent makes are ordered in time.
    arm : int or str
        The arm to play: its name, or its row where arms were a matrix.
    task : str
    propensity : float
        The probability with which this arm was chosen, given all that came before: exactly.
    propensities : (K,)
        Those of all arms, in the order in which they were offered.
    version : int
        The version of what tasks share that the decision was made by.
    """

    id: str
    arm: int | str
    task: str
    propensity: float
    propensities: Array
    version: int


class Reward(NamedTuple):
    """A reward of a decision.

    Attributes
    ----------
    at : float
        When it came about, in seconds since 1970.
    event : str
        Which of the decision's rewards it is; "" if it has no name.
    value : float
    """

    at: float
    event: str
    value: float


class Asked:
    """A decision with all that is needed to learn from it; rewards are added as they come.

    Attributes
    ----------
    id, task : str
    at : float
        When it was made, in seconds since 1970.
    arm : int
        The place of the chosen arm among those offered.
    names : tuple of str, optional
        The names of the arms; None where they were a matrix.
    chances : (K,)
        Propensities.
    features : (d,)
        Of the arm that was chosen or, once that is known to be another, played.
    offered : (K, d), optional
        The features of all arms, where they are kept.
    version : int
    shown : bool
        Whether it was shown, or activated.
    unit : int
        The bucket of its unit; -1 where there is no control group.
    control : bool
        Whether it was made for the control group.
    expired : bool
        Whether nobody waits for its reward any more.
    played : int
        The place of the arm that was played, in shadow mode; UNKNOWN until it is told. DECIDED in live mode:
        the arm that was decided for.
    rewards : list of Reward
    """

    __slots__ = (
        "arm",
        "at",
        "chances",
        "control",
        "expired",
        "features",
        "id",
        "names",
        "offered",
        "played",
        "rewards",
        "shown",
        "task",
        "unit",
        "version",
    )

    def __init__(
        self,
        id: str,
        at: float,
        task: str,
        arm: int,
        names: tuple[str, ...] | None,
        chances: Array,
        features: Array,
        offered: Array | None,
        version: int,
        shown: bool,
        unit: int,
        control: bool,
        played: int,
    ) -> None:
        self.id, self.at, self.task, self.arm, self.names = id, at, task, arm, names
        self.chances, self.features, self.offered = chances, features, offered
        self.version, self.shown, self.unit, self.control = version, shown, unit, control
        self.played, self.expired = played, False
        self.rewards: list[Reward] = []

    @property
    def decision(self) -> Decision:
        """The decision as the caller got it."""
        arm = self.arm if self.names is None else self.names[self.arm]
        return Decision(
            self.id, arm, self.task, float(self.chances[self.arm]), self.chances.copy(), self.version
        )

    def play(self, place: int) -> None:
        """Take note of the arm that was played, by its place; DECIDED outside shadow mode."""
        if place >= 0:
            assert self.offered is not None
            self.played, self.features = place, self.offered[place]

    def told(self, event: str) -> Reward | None:
        """Return the reward of that name, None if there is none."""
        return next((reward for reward in self.rewards if reward.event == event), None)


def counted(asked: Asked, settings: Settings) -> float | None:
    """Return the reward that a decision counts with, as far as it is known; None if it does not count yet.

    It depends on which rewards there are, on their times and names, and not on the order in which they came.

    Examples
    --------
    >>> import numpy as np
    >>> from posse.policies import SharedThompson
    >>> decision = Asked("1", 0.0, "shop", 0, None, np.ones(1), np.ones(2), None, 0, True, -1, False, DECIDED)
    >>> decision.rewards += [Reward(5.0, "refund", -1.0), Reward(2.0, "sale", 4.0)]
    >>> [counted(decision, Settings(policy=SharedThompson(), rewards=by)) for by in ("first", "last", "sum")]
    [4.0, -1.0, 3.0]
    """
    if not asked.shown or asked.played == UNKNOWN:
        return None
    rewards = in_time(asked, settings.reward_wait)
    if not rewards:
        return settings.default_reward if asked.expired else None
    if settings.at_the_end and not asked.expired:
        return None
    if settings.rewards == "sum":
        return math.fsum(reward.value for reward in rewards)
    choose = min if settings.rewards == "first" else max
    return choose(rewards)[2]


def in_time(asked: Asked, wait: float | None) -> list[Reward]:
    """Return the rewards of a decision that came about within so many seconds, None being for ever."""
    if wait is None:
        return asked.rewards
    return [reward for reward in asked.rewards if reward.at <= asked.at + wait]
