"""The answer: what policies would have earned, with intervals, and what speaks against it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from posse.logs.evaluation.support import Support


@dataclass(frozen=True, kw_only=True)
class Row:
    """One estimate.

    Attributes
    ----------
    policy : str
        "logged" for the policy that wrote the log.
    estimator : str
        "mean" for the logged policy.
    task : str or None
        None for all tasks together.
    value, low, high : float or None
        The mean reward of a decision and the ends of its interval; None where nothing can be said.
    ess : float
        The effective sample size.
    """

    policy: str
    estimator: str
    task: str | None
    value: float | None
    low: float | None
    high: float | None
    ess: float


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a policy would have earned beyond the logged one, per decision.

    Attributes
    ----------
    policy : str
    task : str or None
        None for all tasks together.
    gain, low, high : float
        Of the paired difference, decision by decision.
    sure : float
        A lower end that holds for all policies asked about at once, by which a choice is made.
    chance_worse : float
        At most this is the chance of a difference as large if the policy were no better than the logged one.
    """

    policy: str
    task: str | None
    gain: float
    low: float
    high: float
    sure: float
    chance_worse: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which policy to take, by the lower end of its gain's interval.

    Attributes
    ----------
    task : str or None
        None for all tasks together.
    policy : str
        "logged" if the lower end of nobody's gain is above 0.
    low : float
        The lower end of its gain: with the confidence asked for, no gain of any candidate lies below its own
        lower end. 0 for the logged policy.
    chance_worse : float
        At most this is the chance of choosing it if no candidate were better than the logged policy.
    """

    task: str | None
    policy: str
    low: float
    chance_worse: float


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What policies would have earned on the traffic of a log.

    Attributes
    ----------
    rows : tuple of Row
        Pooled ones first, then by task.
    gains : tuple of Gain
        Of every policy over the logged one, by the doubly robust estimator.
    support : tuple of Support
        How much the log has to say about each policy, pooled and by task.
    choices : tuple of Choice
        Empty unless a choice was asked for.
    decisions : int
        How many the answer is about.
    tasks : tuple of str
    arms : tuple of str
        Names of arms, if they have any.
    interval : str
        The kind of the intervals.
    level : float
        Their confidence.
    forward : bool
        Whether policies and models were learned from earlier windows alone.
    estimated : bool
        Whether propensities are estimates, as the log has none.
    threshold : mapping of str to float or None
        The weight above which Switch-DR leaves a decision to the model, for each policy; None for never.
    notes : tuple of str
        What a reader should know before the numbers.
    """

    rows: tuple[Row, ...]
    gains: tuple[Gain, ...]
    support: tuple[Support, ...]
    choices: tuple[Choice, ...] = ()
    decisions: int
    tasks: tuple[str, ...]
    arms: tuple[str, ...]
    interval: str
    level: float
    forward: bool
    estimated: bool
    threshold: dict[str, float | None]
    notes: tuple[str, ...] = ()

    def pooled(self, policy: str) -> dict[str, Row]:
        """Return the estimates of a policy for all tasks together, by estimator."""
        return {row.estimator: row for row in self.rows if row.policy == policy and row.task is None}

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, the logged one first."""
        return tuple(dict.fromkeys(row.policy for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as mappings, lists, numbers and texts."""
        return asdict(self)

    def to_json(self) -> str:
        """Return all of it as JSON text, without numbers that JSON has no word for."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)
