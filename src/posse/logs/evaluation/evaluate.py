"""What policies would have earned on the traffic of a log, pooled and by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from posse.core.encoder import Encoder
from posse.logs.evaluation.answers import (
    INTERVALS,
    Intervals,
    gains_of,
    logged_rows,
    rows_of,
)
from posse.logs.evaluation.balance import Balance
from posse.logs.evaluation.choose import choose
from posse.logs.evaluation.decisions import DecisionColumns
from posse.logs.evaluation.estimators import Evidence, switch_threshold
from posse.logs.evaluation.gather import Logged, encoder_of, gather
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.models import SHARED, reward_models, taught_by
from posse.logs.evaluation.reader import DecisionReader
from posse.logs.evaluation.result import Evaluation, Gain, Row
from posse.logs.evaluation.score import Score, Scores, play_rates, score
from posse.logs.evaluation.support import Checked, Support, check_support, disagreements
from posse.logs.evaluation.targets import (
    Target,
    make_target,
    model_encoders,
    name_targets,
    target_columns,
)
from posse.logs.recipe import Recipe
from posse.logs.sources import open_source
from posse.logs.summarise import CONSTANT_SHARE
from posse.numerics.checks import Array, check_choice, check_integer, check_number

PARTS = 5
# As many policies are asked at once as have about this many numbers for all decisions.
MOST_NUMBERS = 60_000_000
# Numbers that are kept of each decision for each policy: its chance, support, and what two models predict.
NUMBERS = 4


def evaluate(
    log: Any,
    policies: Any,
    *,
    task: str,
    reward: str,
    arm: str | None = None,
    propensity: str | None = None,
    decision: str | None = None,
    chosen: str | None = None,
    offered: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    encoder: Encoder | Recipe | None = None,
    interval: str = "asymptotic",
    level: float = 0.95,
    direct: bool = False,
    choosing: str | None = None,
    n_parts: int = PARTS,
    seed: int = 0,
    on_rows: Callable[[int], None] | None = None,
) -> Evaluation:
    """Say what policies would have earned on the traffic of a log, beside the one that wrote it.

    Decisions are dealt to parts. Policies of posse's, and models of rewards, are learned for each part from
    all others; with `time` from those before it, as they would have run.

    Parameters
    ----------
    log
        A Parquet, CSV or dsjson file, a pattern, a folder or a list of them, a frame of pandas or polars, an
        Arrow table or stream, a DuckDB relation, or a SQL query. It has a row for each decision, with the arm
        that was played; or, if `chosen` is given, a row for every arm on offer.
    policies : sequence, or mapping of names
        What to evaluate: policies as `SharedThompson()`, which are trained on the log; a `Model`, which plays
        what it predicts to be best; or texts: "uniform", "arm:NAME", and "column:NAME" for probabilities that
        stand in the log, of the arm played or, in lists or a row for every arm, of all.
    task, reward : str
        The columns that hold the name of the task, and the reward.
    arm : str, optional
        The column that names the arm. Each then has parameters of its own.
    propensity : str, optional
        The column with the probability by which the arm was chosen. Without it propensities are estimated by
        how often tasks played arms, which is right if contexts had no part in the choice.
    decision, chosen : str, optional
        In a table with a row for every arm on offer: the columns that name the decision, and say whether the
        arm was the one played. `decision` alone lets duplicates be found.
    offered : str, optional
        The column with a list of the arms that were on offer, if these were not all.
    time : str, optional
        The column with the time. Parts are then windows, and the answer is about those after the first.
    features : sequence of str, optional
        The columns that are features; by default all that have no other part.
    encoder : Encoder or Recipe, optional
        How rows become features.
    interval : "asymptotic", "bootstrap", "bernstein" or "sequence"
        The kind of the intervals; see `ASSUMPTIONS`. The last needs `time`.
    level : float
        Their confidence.
    direct : bool
        Whether the direct method is to answer where a log has no support for a policy, without an interval.
    choosing : "pooled" or "tasks", optional
        Choose a policy by the lower end of its gain: one for all tasks, or one for each.
    n_parts : int
        How many parts, 2 or more.
    seed : int
        Of the deal, of policies that draw, and of the bootstrap.
    on_rows : callable, optional
        Is told, now and then, how many decisions have been read.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> log = pd.DataFrame({"shop": rng.choice(["oslo", "bergen"], 1000), "p": 0.5})
    >>> log["offer"] = rng.choice(["red", "blue"], 1000)
    >>> log["sold"] = 1.0 * (log["offer"] == "red") + 0.1 * rng.standard_normal(1000)
    >>> found = evaluate(
    ...     log, ["arm:red", "uniform"], task="shop", arm="offer", reward="sold", propensity="p"
    ... )
    >>> round(found.pooled("arm:red")["dr"].value, 2), round(found.pooled("logged")["mean"].value, 2)
    (1.01, 0.49)
    """
    check_choice("`interval`", interval, INTERVALS)
    check_number("`level`", level, 0.5, 0.9999)
    check_integer("`n_parts`", n_parts, 2)
    if choosing is not None:
        check_choice("`choosing`", choosing, ["pooled", "tasks"])
    if interval == "sequence" and time is None:
        raise ValueError(
            f"`time` must be the column with the time for `interval` = {interval!r}: that is about decisions "
            "in their order, and a log that is sorted by nothing has none. Got None."
        )
    named = name_targets(policies)
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
    logged = read_log(log, columns, named, features, encoder, n_parts, seed, on_rows)
    made = _Maker(logged, named, interval, level, seed, direct=direct, on_rows=on_rows)
    return made.evaluation(choosing)


def read_log(
    log: Any,
    columns: DecisionColumns,
    named: Mapping[str, Any],
    features: Sequence[str] | None,
    encoder: Encoder | Recipe | None,
    n_parts: int,
    seed: int,
    on_rows: Callable[[int], None] | None,
) -> Logged:
    """Open a log, find or take its encoder, and look at all decisions once."""
    source = open_source(log)
    columns.check(source.columns)
    targets = target_columns(named)
    for name in targets:
        check_choice("a column of probabilities", name, source.columns)
    found = encoder_of(source, columns, features, encoder, targets)
    reader = DecisionReader(source.in_order(), columns, found, model_encoders(named), targets)
    return gather(reader, n_parts, seed, on_rows)


class _Maker:
    """Makes the answer from a log that was looked at once."""

    def __init__(
        self,
        logged: Logged,
        named: Mapping[str, Any],
        interval: str,
        level: float,
        seed: int,
        *,
        direct: bool,
        on_rows: Callable[[int], None] | None,
    ) -> None:
        self.logged, self.named, self.seed, self.direct, self.on_rows = logged, named, seed, direct, on_rows
        self.estimated = logged.reader.columns.propensity is None
        encoder = logged.reader.encoder
        if self.estimated and not encoder.arms:
            raise ValueError(
                "`propensity` must be given where arms have no names, as propensities cannot be estimated "
                "then. Got None."
            )
        self.rewards = logged.of_counted(logged.rewards)
        self.tasks = Groups(logged.of_counted(logged.tasks.index), logged.tasks.n_groups)
        order = np.zeros(0, dtype=np.intp)
        if logged.times.size:
            order = np.argsort(logged.of_counted(logged.times), kind="stable")
        spread = np.nan_to_num(self.tasks.variances(self.rewards), nan=1.0)
        still = spread <= CONSTANT_SHARE * np.nan_to_num(self.tasks.means(self.rewards)) ** 2
        self.intervals = Intervals(
            kind=interval, level=level, tasks=self.tasks, still=still, order=order, seed=seed
        )
        self.models = reward_models(taught_by(logged.statistics, forward=logged.forward), encoder)
        self.rates = play_rates(logged) if self.estimated else None
        self.rows: list[Row] = []
        self.gains: list[Gain] = []
        self.support: list[Support] = []
        self.thresholds: dict[str, float | None] = {}
        self.wrong: str | None = None

    def evaluation(self, choosing: str | None) -> Evaluation:
        """Return the answer about all policies."""
        names = self.logged.names
        self.rows += logged_rows(self.rewards, self.intervals, names)
        notes = self._notes()
        for some in _groups(list(self.named), len(self.rewards)):
            self._add(some)
        notes += self._refusals()
        choices = choose(self.gains, names, choosing, len(self.named)) if choosing else ()
        return Evaluation(
            rows=tuple(sorted(self.rows, key=lambda row: row.task is not None)),
            gains=tuple(self.gains),
            support=tuple(self.support),
            choices=choices,
            decisions=len(self.rewards),
            tasks=names,
            arms=self.logged.reader.encoder.arms,
            interval=self.intervals.kind,
            level=self.intervals.level,
            forward=self.logged.forward,
            estimated=self.estimated,
            threshold=self.thresholds,
            notes=tuple(notes),
        )

    def _refusals(self) -> list[str]:
        """Return about which policies and tasks nothing can be said; raise if there is no answer at all."""
        refused = {one.policy: one.reason for one in self.support if one.task is None and one.reason}
        if all(one.reason for one in self.support) and not self.direct:
            listed = "; ".join(f"{policy}: {reason}" for policy, reason in refused.items())
            raise ValueError(f"a log must have an answer about some policy. Got none. {listed}.")
        notes = [self._about_all(policy, reason) for policy, reason in refused.items()]
        if self.direct and refused:
            notes.append("where nothing can be said, the direct method answers by the model alone")
        return [*notes, *_about_tasks(self.support)]

    def _about_all(self, policy: str, reason: str) -> str:
        """Return that nothing can be said about a policy, or about single tasks alone."""
        told = sum(one.policy == policy and one.task is not None and not one.reason for one in self.support)
        tasks = f" in all tasks together, but in {told:,} of {len(self.logged.names):,} tasks" * bool(told)
        return f"nothing can be said about {policy}{tasks}: {reason}"

    def _notes(self) -> list[str]:
        notes = []
        if self.logged.repeated:
            notes.append(
                f"{self.logged.repeated:,} rows stand in the log again, alike in all columns: if they are no "
                "decisions of their own they count twice, which a column that names decisions would show"
            )
        still = np.flatnonzero(self.intervals.still)
        if len(still):
            notes.append(
                f"rewards are all equal in {len(still):,} of {len(self.logged.names):,} tasks, as in "
                f"{self.logged.names[still[0]]}: they have no interval"
            )
        if self.estimated:
            notes.append(
                "the log has no propensities: they are estimated by how often each task played each arm on "
                "offer, which is right if the context had no part in the choice"
            )
        else:
            notes += disagreements(
                self.logged.played,
                self.logged.propensities,
                self.logged.tasks,
                self.logged.offers,
                self.logged.reader.encoder.arms,
                self.logged.names,
            )
        if len(self.logged.names) == 1:
            notes.append("there is one task: nobody is there to share with, and no interval over tasks")
        if self.logged.forward:
            notes.append(
                f"{len(self.logged.rewards) - len(self.rewards):,} decisions of the first window are there "
                "to learn from alone"
            )
        return notes

    def _target(self, name: str) -> Target:
        logged = self.logged
        return make_target(
            name,
            self.named[name],
            logged.statistics,
            logged.reader.encoder,
            tasks=logged.names,
            forward=logged.forward,
            seed=self.seed,
        )

    def _add(self, names: Sequence[str]) -> None:
        """Evaluate some policies, which are asked together."""
        targets = {name: self._target(name) for name in names}
        encoder, balance = self.logged.reader.encoder, None
        if self.wrong is None and encoder.arms:
            names_of = encoder.compact_features
            balance = Balance(len(self.logged.names), len(encoder.arms), len(names_of))
        found = score(
            self.logged, targets, self.models, rates=self.rates, balance=balance, on_rows=self.on_rows
        )
        if balance is not None:
            self._refuse(balance.disagreement(encoder.arms, names_of))
        certain = bool((found.propensities == 1.0).all())
        for name, one in found.targets.items():
            weights = one.chances / found.propensities
            checked = check_support(
                name,
                weights,
                one.unsupported,
                self.tasks,
                self.logged.names,
                whole=self.logged.whole,
                certain=certain,
                wrong=self.wrong or "",
            )
            self.support += [checked.pooled, *checked.tasks]
            self._answer(name, weights, one, found, checked)

    def _refuse(self, wrong: str) -> None:
        """Say that propensities are not those by which arms were chosen, if that is so."""
        self.wrong = wrong
        if not wrong or self.direct:
            return
        why = " They are estimated by frequency, and the context had a part in the choice." * self.estimated
        raise ValueError(
            "propensities must be those by which arms were chosen, or no weight is right. Got "
            f"{wrong}.{why} The direct method asks the model alone, if that is wanted."
        )

    def _answer(self, name: str, weights: Array, one: Score, found: Scores, checked: Checked) -> None:
        evidence = {"": Evidence(weights=weights, rewards=self.rewards, expected=weights, predicted=weights)}
        for model, expected in one.expected.items():
            evidence[model] = Evidence(
                weights=weights, rewards=self.rewards, expected=expected, predicted=found.predicted[model]
            )
        threshold = switch_threshold(evidence[SHARED]) if SHARED in evidence else np.inf
        self.thresholds[name] = threshold if np.isfinite(threshold) else None
        names = self.logged.names
        self.rows += rows_of(name, evidence, checked, self.intervals, names, threshold, direct=self.direct)
        self.gains += gains_of(name, evidence, checked, self.intervals, names, len(self.named))


def _groups(names: list[str], n_rows: int) -> list[list[str]]:
    """Return names in groups, such that what is kept of a group's policies fits into memory."""
    size = max(1, MOST_NUMBERS // (NUMBERS * n_rows))
    return [names[start : start + size] for start in range(0, len(names), size)]


def _about_tasks(support: Sequence[Support]) -> list[str]:
    """Return about how many tasks nothing can be said, for each policy, with an example."""
    notes = []
    for policy in dict.fromkeys(one.policy for one in support):
        lost = [one for one in support if one.policy == policy and one.task is not None and one.reason]
        total = sum(one.policy == policy and one.task is not None for one in support)
        if lost:
            notes.append(
                f"nothing can be said about {policy} in {len(lost):,} of {total:,} tasks, as in "
                f"{lost[0].task}: {lost[0].reason}"
            )
    return notes
