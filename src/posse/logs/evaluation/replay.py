"""What a policy would have learned, and earned on the way: decisions of a log drive a learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posse.core.encoder import Encoder
from posse.core.learner import Learner
from posse.core.protocols import DecidesRows
from posse.logs.evaluation.decisions import DecisionColumns, Decisions
from posse.logs.evaluation.evaluate import read_log
from posse.logs.evaluation.gather import Logged
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.intervals import asymptotic
from posse.logs.evaluation.targets import name_targets
from posse.logs.reading import time_reading
from posse.logs.recipe import Recipe
from posse.logs.sources import Source, open_source
from posse.numerics.checks import Array, IntArray, check_integer, check_number

# Parts that the first look deals decisions to: replay has no use for them, and gather asks for two.
PARTS = 2
# Decisions that must be expected to be kept for a curve to say anything.
FEW_KEPT = 50


@dataclass(frozen=True, kw_only=True)
class Point:
    """One stretch of a learning curve.

    Attributes
    ----------
    decision : int
        How many decisions had been kept at its end.
    reward : float
        The mean reward of the decisions of the stretch.
    low, high : float
        The ends of its normal interval.
    """

    decision: int
    reward: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Replayed:
    """What one policy would have earned while it learned.

    Attributes
    ----------
    policy : str
    kept : int
        How many decisions of the log it was given: they are as if it had run for so long.
    reward, low, high : float
        The mean reward of these decisions, and the ends of its normal interval.
    curve : tuple of Point
        Stretches of equally many decisions.
    tasks : mapping of str to (int, float)
        How many decisions of each task were kept, and their mean reward; tasks without any are left out.
    learner : Learner
        What it has learned: it decides by `select` from here on, and `snapshot` saves it.
    """

    policy: str
    kept: int
    reward: float
    low: float
    high: float
    curve: tuple[Point, ...]
    tasks: Mapping[str, tuple[int, float]]
    learner: Learner


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """What policies would have earned while they learned from a log.

    Attributes
    ----------
    policies : mapping of str to Replayed
    decisions : int
        Of the log.
    logged : float
        The mean reward of all its decisions.
    share : float
        The share of decisions that a policy is given, on average: the least propensity of the log.
    encoder : Encoder
        By which rows of the log become the features that learners know.
    """

    policies: Mapping[str, Replayed]
    decisions: int
    logged: float
    share: float
    encoder: Encoder


def replay(
    log: Any,
    policies: Any,
    *,
    task: str,
    reward: str,
    propensity: str,
    arm: str | None = None,
    decision: str | None = None,
    chosen: str | None = None,
    offered: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    encoder: Encoder | Recipe | None = None,
    level: float = 0.95,
    n_points: int = 10,
    seed: int = 0,
    on_rows: Callable[[int], None] | None = None,
) -> Replay:
    """Let the decisions of a log drive learners, and return what each would have earned on the way.

    A learner is asked about every decision, in order: with which probability q would it have played what was
    played? The logger did so with probability p. With probability c q / p the learner is given the decision
    and its reward, c being the least p of the log; all others it never sees. So every arm comes to it with
    probability c q, whatever the logger preferred: what it is given is, exactly, what it would have met if it
    had run itself, on a share c of the traffic (Li et al. 2011; Mandel et al. 2016). Where arms were played
    at random c is 1 / K, and a decision counts if learner and logger agree.

    Parameters
    ----------
    log
        A log of decisions, as `evaluate` reads it.
    policies : sequence, or mapping of names
        Policies that decide for single tasks, as `SharedThompson()`.
    task, reward, propensity : str
        The columns that hold the name of the task, the reward, and the probability of the choice.
    arm : str, optional
        The column that names the arm. Each then has parameters of its own.
    decision, chosen, offered : str, optional
        The columns that name decisions, say which of their rows was played, or list the arms on offer.
    time : str, optional
        The column with the time, by which decisions are put in order; else they come as they stand.
    features : sequence of str, optional
        The columns that are features; by default all that have no other part.
    encoder : Encoder or Recipe, optional
        How rows become features.
    level : float
        The confidence of intervals.
    n_points : int
        Of each learning curve.
    seed : int
        Of learners, and of which decisions they are given.
    on_rows : callable, optional
        Is told, now and then, how many decisions have been read.

    Returns
    -------
    Replay

    Examples
    --------
    >>> import pandas as pd
    >>> from posse import IndependentGreedy
    >>> rng = np.random.default_rng(0)
    >>> log = pd.DataFrame({"shop": rng.choice(["oslo", "bergen"], 2000), "p": 0.5})
    >>> log["offer"] = rng.choice(["red", "blue"], 2000)
    >>> log["sold"] = 1.0 * (log["offer"] == "red") + 0.1 * rng.standard_normal(2000)
    >>> policies = {"greedy": IndependentGreedy()}
    >>> found = replay(log, policies, task="shop", arm="offer", reward="sold", propensity="p")
    >>> found.share, round(found.logged, 2), round(found.policies["greedy"].curve[-1].reward, 2)
    (0.5, 0.51, 0.99)
    """
    check_number("`level`", level, 0.5, 0.9999)
    check_integer("`n_points`", n_points, 1)
    columns = DecisionColumns(
        task=task,
        reward=reward,
        arm=arm,
        propensity=propensity,
        decision=decision,
        chosen=chosen,
        offered=offered,
        time=time,
    )
    named = _learning(name_targets(policies))
    source = open_source(log)
    columns.check(source.columns)
    logged = read_log(_in_order(source, time), columns, {}, features, encoder, PARTS, seed, on_rows)
    share = float(logged.propensities.min())
    expected = share * len(logged.rewards)
    if expected < FEW_KEPT:
        raise ValueError(
            f"a log to replay must have propensities from which {FEW_KEPT} decisions at least are left. Got "
            f"{len(logged.rewards):,} with a least propensity of {share:.3g}, which leaves {expected:.0f}; "
            "`evaluate` weighs decisions and needs none to match."
        )
    return Replay(
        policies={
            name: _replay(name, policy, logged, share, level, n_points, seed)
            for name, policy in named.items()
        },
        decisions=len(logged.rewards),
        logged=float(logged.rewards.mean()),
        share=share,
        encoder=logged.reader.encoder,
    )


def _learning(named: Mapping[str, Any]) -> Mapping[str, DecidesRows]:
    """Return policies that learn, or say which does not."""
    for name, policy in named.items():
        if not isinstance(policy, DecidesRows):
            raise ValueError(
                "a policy to replay must be one that learns, as SharedThompson(); `evaluate` is for those "
                f"that do not. Got {name}."
            )
    return named


def _in_order(source: Source, time: str | None) -> Source:
    """Return a log by its times, if it has any."""
    if time is None:
        return source
    value = time_reading(time, source.columns[time]).value
    ordered = source.ask(f"select * from log order by {value}")
    return Source(ordered, source.name, source.typed, source.connection)


def _replay(
    name: str, policy: DecidesRows, logged: Logged, share: float, level: float, n_points: int, seed: int
) -> Replayed:
    encoder = logged.reader.encoder
    rng = np.random.default_rng(seed)
    learner = Learner(policy, n_tasks=len(logged.names), dim=encoder.dim, names=logged.names, seed=rng)
    tasks: list[int] = []
    rewards: list[float] = []
    for decisions in logged.reader.read():
        for row in _given(learner, decisions, encoder, share, rng):
            tasks.append(int(decisions.tasks[row]))
            rewards.append(float(decisions.rewards[row]))
    if len(rewards) < 2:
        raise ValueError(f"a log to replay must leave decisions to learn from. Got {len(rewards)}: {name}.")
    return _summary(name, learner, np.array(tasks), np.array(rewards), logged.names, level, n_points)


def _given(
    learner: Learner, decisions: Decisions, encoder: Encoder, share: float, rng: np.random.Generator
) -> list[int]:
    """Ask a learner about decisions one by one; teach it by those it is given, and return their rows."""
    vectors = decisions.vectors(encoder, slice(None))
    found = []
    for row in range(len(decisions)):
        task, arms = decisions.tasks[row : row + 1], vectors[row : row + 1]
        available = decisions.available[row : row + 1] if decisions.available.size else None
        played = decisions.chosen[row]
        chance = learner.select(task, arms, available).probabilities[0, played]
        if rng.random() * decisions.propensities[row] < share * chance:
            learner.observe(task, arms[:, played], decisions.rewards[row : row + 1])
            if learner.due:
                learner.update()
            found.append(row)
    return found


def _summary(
    name: str,
    learner: Learner,
    tasks: IntArray,
    rewards: Array,
    names: Sequence[str],
    level: float,
    n_points: int,
) -> Replayed:
    n_points = min(n_points, len(rewards) // 2)
    stretches = Groups(np.arange(len(rewards)) * n_points // len(rewards), n_points)
    ends = np.cumsum(stretches.counts).astype(int).tolist()
    curve = asymptotic(rewards, stretches, level)
    one, own = asymptotic(rewards, Groups.one(len(rewards)), level), Groups(tasks, len(names))
    means = own.means(rewards)
    return Replayed(
        policy=name,
        kept=len(rewards),
        reward=float(one.value[0]),
        low=float(one.low[0]),
        high=float(one.high[0]),
        curve=tuple(
            Point(decision=end, reward=value, low=low, high=high)
            for end, value, low, high in zip(
                ends, curve.value.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True
            )
        ),
        tasks={
            task: (int(count), float(mean))
            for task, count, mean in zip(names, own.counts, means, strict=True)
            if count
        },
        learner=learner,
    )
