"""The second look at a log: what targets would have played, and what models predict for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from posse.logs.evaluation.balance import Balance
from posse.logs.evaluation.decisions import Decisions, predict_arms
from posse.logs.evaluation.gather import Logged
from posse.logs.evaluation.groups import ratio
from posse.logs.evaluation.targets import Target
from posse.numerics.checks import Array, BoolArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """What the decisions of a log that count, n of them, say about one target.

    Attributes
    ----------
    chances : (n,)
        The probability with which it plays the arm that was played.
    expected : mapping of str to (n,)
        The reward that each model predicts for it; empty where only the chances of arms played are known.
    unsupported : (T,)
        By task, the sum of its probabilities of arms that the logger never played there, or has a propensity
        of 0 for.
    """

    chances: Array
    expected: Mapping[str, Array]
    unsupported: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """What the decisions of a log that count, n of them, say about several targets.

    Attributes
    ----------
    propensities : (n,)
        Those of the log, or estimated ones.
    predicted : mapping of str to (n,)
        The reward that each model predicts for the arm that was played.
    targets : mapping of str to Score
    """

    propensities: Array
    predicted: Mapping[str, Array]
    targets: Mapping[str, Score]


def play_rates(logged: Logged) -> Array:
    """Return how often tasks play arms that are on offer, (T, A): a model of propensities for a log without.

    A task's rates are drawn towards those of all tasks by as many decisions as there are arms, so that none
    is 0 for an arm that others played.
    """
    n_arms = logged.plays.shape[1]
    usual = np.nan_to_num(ratio(logged.plays.sum(axis=0), logged.offers.sum(axis=0)))
    return np.asarray((logged.plays + n_arms * usual) / (logged.offers + n_arms))


def score(
    logged: Logged,
    targets: Mapping[str, Target],
    models: Mapping[str, Array],
    *,
    rates: Array | None = None,
    balance: Balance | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Scores:
    """Read the decisions of a log again, and ask targets and models about each.

    Parameters
    ----------
    logged : Logged
    targets : mapping of str to Target
    models : mapping of str to (P, T, A, c)
        Parameters of arms' compact features, by part and task.
    rates : (T, A), optional
        How often tasks play arms: propensities are then made from them.
    balance : Balance, optional
        Adds up contexts by propensities.
    on_rows : callable, optional
        Is told, now and then, how many decisions have been read.
    """
    counted = logged.counted
    n_rows = int(counted.sum())
    known = logged.of_counted(logged.propensities) if rates is None else np.empty(n_rows)
    table = _Tables(n_rows, logged.tasks.n_groups, targets, models, known)
    start = done = 0
    for decisions in logged.reader.read():
        rows = slice(start, start + len(decisions))
        _check_same(decisions, logged, rows)
        parts, kept = logged.parts[rows].astype(np.intp), counted[rows]
        into = slice(done, done + int(kept.sum()))
        propensities = logged.propensities[rows] if rates is None else _estimated(decisions, rates)
        if balance is not None:
            balance.add(decisions, propensities)
        if kept.any():
            if rates is not None:
                table.propensities[into] = propensities[kept]
            table.add(into, kept, decisions, parts, targets, logged)
        start, done = rows.stop, into.stop
        if on_rows is not None:
            on_rows(start)
    if start != len(counted):
        raise _changed(f"{len(counted):,} decisions at first and {start:,} when it was read again")
    return table.scores()


def _check_same(decisions: Decisions, logged: Logged, rows: slice) -> None:
    """Say if decisions that are read again are others than those that stood in their rows at first."""
    if rows.stop > len(logged.rewards):
        raise _changed(f"{len(logged.rewards):,} decisions at first and more when it was read again")
    other = decisions.tasks != logged.tasks.index[rows]
    other |= decisions.played != logged.played[rows]
    other |= decisions.rewards != logged.rewards[rows]
    if logged.reader.columns.propensity is not None:
        other |= decisions.propensities != logged.propensities[rows]
    if other.any():
        first = rows.start + int(np.argmax(other)) + 1
        raise _changed(
            f"decision {first:,} with another task, arm, reward or propensity when it was read again"
        )


def _changed(what: str) -> ValueError:
    return ValueError(
        f"a log must not change while it is read. Got {what}. A query that draws rows, or sorts them by what "
        "several have in common, can be written to a file first."
    )


class _Tables:
    """Room for what is found in all rows."""

    def __init__(
        self,
        n_rows: int,
        n_tasks: int,
        targets: Mapping[str, Target],
        models: Mapping[str, Array],
        propensities: Array,
    ) -> None:
        self.models = models
        self.propensities = propensities
        self.predicted = {name: np.empty(n_rows) for name in models}
        self.chances = {name: np.empty(n_rows) for name in targets}
        self.expected = {name: {model: np.empty(n_rows) for model in models} for name in targets}
        self.unsupported = {name: np.zeros(n_tasks) for name in targets}
        self.partly: set[str] = set()

    def add(
        self,
        into: slice,
        kept: BoolArray,
        decisions: Decisions,
        parts: IntArray,
        targets: Mapping[str, Target],
        logged: Logged,
    ) -> None:
        """Ask targets and models about some decisions, and keep the answers about those that count."""
        arms = np.ascontiguousarray(decisions.arms)
        predictions = {}
        for name, coefficients in self.models.items():
            found = np.empty(arms.shape)
            predict_arms(decisions.tasks, parts, arms, decisions.features, coefficients, found)
            predictions[name] = found
            self.predicted[name][into] = decisions.at_chosen(found)[kept]
        bare = _without_support(decisions, logged)
        for name, target in targets.items():
            chances = target.chances(decisions, parts)
            if chances.ndim == 1:
                self.partly.add(name)
                self.chances[name][into] = chances[kept]
                continue
            self.chances[name][into] = decisions.at_chosen(chances)[kept]
            lost = np.where(bare, chances, 0.0).sum(axis=1)[kept]
            self.unsupported[name] += np.bincount(
                decisions.tasks[kept], weights=lost, minlength=logged.tasks.n_groups
            )
            for model, found in predictions.items():
                self.expected[name][model][into] = np.vecdot(chances, found)[kept]

    def scores(self) -> Scores:
        """Return all of it."""
        return Scores(
            propensities=self.propensities,
            predicted=self.predicted,
            targets={
                name: Score(
                    chances=chances,
                    expected={} if name in self.partly else self.expected[name],
                    unsupported=self.unsupported[name],
                )
                for name, chances in self.chances.items()
            },
        )


def _estimated(decisions: Decisions, rates: Array) -> Array:
    """Return the propensities (m,) that follow from how often tasks play arms (T, A)."""
    some = np.where(decisions.offers, rates[decisions.tasks[:, None], decisions.arms], 0.0)
    return np.asarray(decisions.at_chosen(some) / some.sum(axis=1))


def _without_support(decisions: Decisions, logged: Logged) -> BoolArray:
    """Return which arms (m, K) the logger cannot have played: by their propensities, or as it never did."""
    if decisions.logged.size:
        return np.asarray(decisions.logged <= 0.0)
    if not logged.reader.encoder.arms:
        return np.zeros(decisions.arms.shape, dtype=np.bool_)
    return np.asarray(logged.plays[decisions.tasks[:, None], decisions.arms] == 0)
