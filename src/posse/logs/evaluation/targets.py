"""Policies to evaluate: what each would have played, as probabilities of the arms on offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posse.core.encoder import Encoder
from posse.core.model import Model
from posse.core.posterior import Beliefs, MovingPosterior
from posse.core.protocols import DecidesRows, FollowsTheta, keeps_pace
from posse.core.statistics import GramStatistics
from posse.logs.contenders import measured_anyway
from posse.logs.evaluation.decisions import Decisions, predict_arms
from posse.logs.evaluation.models import taught_by
from posse.logs.levels import counted_from, usual_level
from posse.numerics.checks import Array, IntArray, check_choice

LOGGED, UNIFORM, ARM, COLUMN = "logged", "uniform", "arm:", "column:"
# Arms are turned into vectors for as many decisions at once as have about this many values.
FEW_VALUES = 2**20


class Target(Protocol):
    """What a policy would have played."""

    def chances(self, decisions: Decisions, parts: IntArray) -> Array:
        """Return the probability (m, K) of every arm; (m,) of the arms played, if no more is known."""


@dataclass(frozen=True)
class Uniform:
    """Plays every arm on offer equally often."""

    def chances(self, decisions: Decisions, parts: IntArray) -> Array:
        """Return 1 / K for every arm on offer, (m, K)."""
        offers = decisions.offers
        return np.asarray(offers / offers.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class OneArm:
    """Plays one arm, always.

    Attributes
    ----------
    name : str
    number : int
        Its number in the encoder of the log.
    """

    name: str
    number: int

    def chances(self, decisions: Decisions, parts: IntArray) -> Array:
        """Return 1 for the arm, (m, K), or say that it was not on offer."""
        found = (decisions.arms == self.number) & decisions.offers
        missing = ~found.any(axis=1)
        if missing.any():
            raise ValueError(
                f"the arm of a policy must have been on offer in every decision. Got {ARM}{self.name}, which "
                f"was not in {missing.sum():,} of {len(missing):,} decisions of a batch."
            )
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class OfColumn:
    """Plays by probabilities that stand in a column of the log."""

    name: str

    def chances(self, decisions: Decisions, parts: IntArray) -> Array:
        """Return the probabilities of the arms played, (m,), or of all arms, (m, K)."""
        found = decisions.columns[self.name]
        wrong = ~((found >= 0.0) & (found <= 1.0))
        if found.ndim == 2:
            wrong = wrong.any(axis=1) | (np.abs(found.sum(axis=1) - 1.0) > 1e-6)
        if wrong.any():
            raise ValueError(
                f"probabilities of a policy must lie in [0, 1] and, those of all arms, add up to 1. Got "
                f"{wrong.sum():,} decisions in column {self.name!r} where that is not so."
            )
        return found


@dataclass(frozen=True, eq=False)
class Trained:
    """Plays by a policy of posse's that was taught by other parts of the log.

    Attributes
    ----------
    policy : DecidesRows
    beliefs : tuple of P Beliefs
        What it believes in each part.
    encoder : Encoder
    rng : Generator
        For policies that draw.
    follows : (P, T, A, c), optional
        Parameters of arms' compact features that it maximises, if it is greedy: that is faster.
    """

    policy: DecidesRows
    beliefs: tuple[Beliefs, ...]
    encoder: Encoder
    rng: np.random.Generator
    follows: Array | None

    def chances(self, decisions: Decisions, parts: IntArray) -> Array:
        """Return the probability (m, K) with which the policy plays every arm."""
        if self.follows is not None:
            return _best(decisions, parts, decisions.features, self.follows, decisions.tasks)
        found = np.empty(decisions.arms.shape)
        at_once = max(1, FEW_VALUES // (decisions.arms.shape[1] * self.encoder.dim))
        for start in range(0, len(decisions), at_once):
            rows = slice(start, start + at_once)
            arms, offers = decisions.vectors(self.encoder, rows), np.ascontiguousarray(decisions.offers[rows])
            some, tasks = found[rows], decisions.tasks[rows]
            for part in np.unique(parts[rows]):
                here = parts[rows] == part
                some[here] = self.policy.chances(
                    self.beliefs[part], tasks[here], arms[here], offers[here], self.rng
                )
        return found


@dataclass(frozen=True, eq=False)
class OfModel:
    """Plays the arm of the largest reward that a model predicts.

    Attributes
    ----------
    name : str
        Under which decisions have the features of its encoder.
    coefficients : (1, T + 1, A, c)
        Its parameters by task and arm; the last task is one that it never saw.
    tasks : (T',)
        The number of each of the log's tasks among those of the model.
    """

    name: str
    coefficients: Array
    tasks: IntArray

    def chances(self, decisions: Decisions, parts: IntArray) -> Array:
        """Return equal probabilities for the best arms, (m, K)."""
        features = decisions.others[self.name]
        return _best(
            decisions, np.zeros_like(parts), features, self.coefficients, self.tasks[decisions.tasks]
        )


def _best(
    decisions: Decisions, parts: IntArray, features: Array, coefficients: Array, tasks: IntArray
) -> Array:
    """Return equal probabilities (m, K) for the arms on offer that are predicted to be best, 0 for others."""
    scores = np.empty(decisions.arms.shape)
    predict_arms(tasks, parts, np.ascontiguousarray(decisions.arms), features, coefficients, scores)
    if decisions.available.size:
        scores = np.where(decisions.available, scores, -np.inf)
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def name_targets(policies: Any) -> dict[str, Any]:
    """Return policies by their names; one without a name is called what it prints as, or what it is as text.

    Examples
    --------
    >>> from posse import SharedGreedy
    >>> list(name_targets(["uniform", SharedGreedy(rank=2)])), list(name_targets({"mine": SharedGreedy()}))
    (['uniform', 'SharedGreedy(rank=2)'], ['mine'])
    """
    if isinstance(policies, str) or not isinstance(policies, Sequence | Mapping):
        policies = [policies]
    if not isinstance(policies, Mapping):
        names = [item if isinstance(item, str) else repr(item) for item in policies]
        if len(set(names)) < len(names):
            raise ValueError(f"`policies` must differ. Got {names!r:.300}.")
        policies = dict(zip(names, policies, strict=True))
    if not policies:
        raise ValueError("`policies` must be one policy at least. Got none.")
    for name, value in policies.items():
        check_target(name, value)
    return dict(policies)


def check_target(name: str, value: Any) -> None:
    """Say if something is no policy that can be evaluated."""
    if name == LOGGED:
        raise ValueError(f"a policy must not be called {LOGGED!r}: what was logged is always in the answer.")
    if isinstance(value, str):
        if value != UNIFORM and not value.startswith((ARM, COLUMN)):
            raise ValueError(
                f"a policy, if a text, must be {UNIFORM}, {ARM}NAME or {COLUMN}NAME. Got {value!r}."
            )
        return
    if isinstance(value, Model):
        return
    if not isinstance(value, DecidesRows) or not keeps_pace(value, "chances", "select"):
        raise ValueError(
            "a policy must be one that decides for single tasks, as SharedThompson(), a Model, or a text. "
            f"Got {value!r:.200}."
        )


def target_columns(policies: Mapping[str, Any]) -> list[str]:
    """Return the columns of a log that hold probabilities of policies."""
    return [
        value.removeprefix(COLUMN)
        for value in policies.values()
        if isinstance(value, str) and value.startswith(COLUMN)
    ]


def make_target(
    name: str,
    value: Any,
    parts: Sequence[GramStatistics],
    encoder: Encoder,
    *,
    tasks: Sequence[str],
    forward: bool,
    seed: int,
) -> Target:
    """Return a policy ready to say what it would have played.

    Parameters
    ----------
    name : str
    value
        A text, a Model or a policy.
    parts : sequence of P GramStatistics
        It is taught by all parts but the one that it is asked about, or, forward in time, by those before.
    encoder : Encoder
    tasks : sequence of str
        The names of the log's tasks, by number.
    forward : bool
        Whether parts are windows in time: a policy then learns window by window, and may forget.
    seed : int
        Of policies that draw.
    """
    if isinstance(value, Model):
        return _of_model(name, value, encoder, tasks)
    if isinstance(value, str):
        if value == UNIFORM:
            return Uniform()
        if value.startswith(COLUMN):
            return OfColumn(value.removeprefix(COLUMN))
        arm = value.removeprefix(ARM)
        if not encoder.arms:
            raise ValueError(
                f"arms must have names, in a column `arm`, to be asked for by one. Got {value!r}."
            )
        return OneArm(arm, encoder.arms.index(check_choice(f"an arm after {ARM}", arm, encoder.arms)))
    if not forward and not (getattr(value, "memory", "all") == "all"):
        raise ValueError(
            f"a policy that forgets must be evaluated forward in time, by a column `time`. Got {value!r}."
        )
    taught = parts if forward else taught_by(parts, forward=False)
    return _trained(value, taught, encoder, forward=forward, seed=seed)


def _trained(
    policy: DecidesRows, parts: Sequence[GramStatistics], encoder: Encoder, *, forward: bool, seed: int
) -> Trained:
    """Teach a policy: from scratch for every part, or forward in time window by window.

    Rewards are counted from their usual level, which all arms have in common: that of the rows a policy is
    taught by, or of the first window.
    """
    state = fresh = policy.init(parts[0].n_tasks, parts[0].dim)
    states, first = [], usual_level(parts[0], encoder.constant)
    with measured_anyway():
        for part in parts:
            level = first if forward else usual_level(part, encoder.constant)
            inside = counted_from(part, level, encoder.constant)
            if forward:
                states.append(state)
                state = policy.update(state, inside)
            else:
                states.append(policy.update(fresh, inside))
    theta = [policy.theta_of(one) if isinstance(policy, FollowsTheta) else None for one in states]
    known = [one for one in theta if one is not None]
    follows = np.ascontiguousarray(encoder.split(np.stack(known))) if len(known) == len(states) else None
    beliefs = () if follows is not None else tuple(policy.beliefs(one) for one in states)
    return Trained(policy, beliefs, encoder, np.random.default_rng(seed), follows)


def _of_model(name: str, model: Model, encoder: Encoder, tasks: Sequence[str]) -> OfModel:
    posterior = model.estimate.posterior
    assert isinstance(posterior, MovingPosterior)
    if model.encoder.arms != encoder.arms:
        raise ValueError(
            f"a model must have the arms of the log, {', '.join(encoder.arms[:20])}. Got "
            f"{', '.join(model.encoder.arms[:20]) or 'none'}."
        )
    known = {task: number for number, task in enumerate(model.tasks)}
    theta = np.concatenate([model.estimate.theta, posterior.newcomer().theta])
    return OfModel(
        name,
        np.ascontiguousarray(model.encoder.split(theta)[None]),
        np.array([known.get(task, len(model.tasks)) for task in tasks], dtype=np.intp),
    )


def model_encoders(policies: Mapping[str, Any]) -> dict[str, Encoder]:
    """Return the encoders of policies that are models, by name."""
    return {name: value.encoder for name, value in policies.items() if isinstance(value, Model)}
