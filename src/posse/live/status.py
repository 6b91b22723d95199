"""How an agent is doing, at a glance."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posse.live.engine import Version

if TYPE_CHECKING:
    from posse.live.desk import Desk

# A mean entropy below this says that an agent has stopped exploring; so many decisions are needed to say it.
LEAST_ENTROPY, ENOUGH = 0.01, 500
# Choices as far from their probabilities as this have something wrong with them.
LEAST_CHANCE = 0.001
# The control group's arm is a wrong one if it cannot be played in more than this share of its decisions.
MOST_DRAWN = 0.5
# Seconds by which clocks are put right every now and then.
LEAST_BACKWARDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Status:
    """What has happened to an agent so far.

    Attributes
    ----------
    tasks : int
    decisions : int
    rewards : int
        Decisions that count with a reward that was told.
    pending : int
        Decisions that wait for a reward.
    late : int
        Rewards that came about after `reward_wait`; they do not count.
    expired : int
        Decisions that nobody waits for any more.
    defaults : int
        Expired decisions that count with the default reward.
    counted : int
        Decisions that count, with their rewards or the default.
    reward_total : float
        The total of what they count with.
    versions : int
        How many there have been.
    version : int
        The one that decisions are made by.
    backlog : int
        Decisions and rewards of other processes that the one that learns has not taken yet.
    refitting, frozen, automatic : bool
        Whether a refit is under way, learning has stopped, and refits are adopted by themselves.
    mode : "live" or "shadow"
    entropy : float
        Of late decisions, 1 for choices at random and 0 for none.
    sample_ratio : float
        The chance, at most, that right probabilities would ever come to look as wrong as these did.
    control_reward : float, optional
        The mean reward of the control group.
    lift : float, optional
        The mean reward less that of the control group.
    lift_low, lift_high : float, optional
        Its 95 % interval, with units as clusters.
    match_rate : float, optional
        In shadow mode: how often the agent decided for what was played.
    reward_played, reward_matched : float, optional
        In shadow mode: the mean reward, and that where the agent decided for what was played. The latter is
        what the agent would have earned if the caller plays at random, with equal probabilities; else it is
        that of decisions on which both agree.
    matched_low, matched_high : float, optional
        The 95 % interval of `reward_matched`.
    alarms : tuple of str
        What somebody should look at.
    """

    tasks: int
    decisions: int
    rewards: int
    pending: int
    late: int
    expired: int
    defaults: int
    counted: int
    reward_total: float
    versions: int
    version: int
    backlog: int
    refitting: bool
    frozen: bool
    automatic: bool
    mode: str
    entropy: float | None
    sample_ratio: float
    control_reward: float | None
    lift: float | None
    lift_low: float | None
    lift_high: float | None
    match_rate: float | None
    reward_played: float | None
    reward_matched: float | None
    matched_low: float | None
    matched_high: float | None
    alarms: tuple[str, ...]


def status_of(desk: Desk) -> Status:
    """Return how the agent at a desk is doing."""
    engine = desk.engine
    monitor, counts = engine.monitor, engine.counts
    entropy = None if math.isnan(monitor.entropy) else monitor.entropy
    lift = monitor.lift or (None, None, None)
    played, matched, reward, *_ = monitor.shadow.tolist()
    agreed = monitor.matched or (None, None, None)
    return Status(
        tasks=len(engine.numbers),
        **counts,
        pending=len(engine.waiting),
        counted=int(monitor.rewards[0]),
        reward_total=float(monitor.rewards[1]),
        versions=len(engine.versions),
        version=engine.live,
        backlog=desk.journal.backlog,
        refitting=engine.job is not None,
        frozen=engine.frozen,
        automatic=engine.automatic,
        mode=desk.settings.mode,
        entropy=entropy,
        sample_ratio=monitor.ratio_chance,
        control_reward=monitor.control_reward,
        lift=lift[0],
        lift_low=lift[1],
        lift_high=lift[2],
        match_rate=matched / played if played else None,
        reward_played=reward / played if played else None,
        reward_matched=agreed[0],
        matched_low=agreed[1],
        matched_high=agreed[2],
        alarms=tuple(alarms_of(desk)),
    )


def alarms_of(desk: Desk) -> list[str]:
    """Return what somebody should look at, a sentence each."""
    engine, found = desk.engine, []
    monitor = engine.monitor
    if engine.counts["decisions"] >= ENOUGH and monitor.entropy < LEAST_ENTROPY:
        found.append(f"entropy: it has stopped exploring, at {monitor.entropy:.4f} of choices at random")
    chance = monitor.ratio_chance
    if chance < LEAST_CHANCE:
        found.append(f"sample ratio: choices do not agree with their probabilities, chance {chance:.1e}")
    if engine.failure and engine.failure != "given up":
        found.append(f"refit: the last one failed: {engine.failure}")
    if engine.holdback is not None and engine.holdback.failure:
        found.append(f"control: the last refit of its policy failed: {engine.holdback.failure}")
    arm = desk.settings.control_arm
    if arm is not None and monitor.drawn > MOST_DRAWN:
        found.append(f"control: its arm {arm!r} could not be played in {monitor.drawn:.0%} of late decisions")
    if desk.backwards >= LEAST_BACKWARDS:
        found.append(f"clock: it went backwards by {desk.backwards:.3f} s")
    return found


def versions_of(desk: Desk) -> tuple[Version, ...]:
    """Return all versions of the agent at a desk, the oldest first."""
    under_way = {desk.engine.begun} if desk.engine.job is not None else set()
    versions = desk.engine.versions
    return tuple(versions[number] for number in sorted(versions) if number not in under_way)


def read_status(path: str | os.PathLike[str]) -> Status:
    """Return how the agent of a journal is doing, whether or not a process has it open.

    Parameters
    ----------
    path : path
        The file that `Agent.open` has made, or the address of a PostgreSQL database.
    """
    from posse.live.files import read_desk

    desk = read_desk(path)
    try:
        return status_of(desk)
    finally:
        desk.journal.close()
