"""What was learned from a log, with all that is needed to use it: a model in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from posse.core.account import Account
from posse.core.columns import level_of
from posse.core.encoder import Encoder
from posse.core.estimate import Estimate
from posse.core.posterior import MovingPosterior
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray, IntArray


class Prediction(NamedTuple):
    """Mean rewards of n rows.

    Attributes
    ----------
    mean : (n,)
        The expected reward.
    deviation : (n,)
        How uncertain that expectation is, as a standard deviation: not the noise of a single reward.
    known : (n,)
        Whether the row's task is one that the model learned from.
    """

    mean: Array
    deviation: Array
    known: BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """Parameters of named tasks, learned from a log, and how rows of a table become features.

    Attributes
    ----------
    estimate : Estimate
        Of T tasks.
    statistics : GramStatistics
        That it was learned from.
    encoder : Encoder
    tasks : tuple of str
        The names of the T tasks.
    task, reward : str
        The columns that hold the task and the reward.
    arm : str or None
        The column that names the arm, if there is one.
    account : Account
        Of the log.
    """

    estimate: Estimate
    statistics: GramStatistics
    encoder: Encoder
    tasks: tuple[str, ...]
    task: str
    reward: str
    arm: str | None
    account: Account

    def __post_init__(self) -> None:
        expected = (len(self.tasks), self.encoder.dim)
        for name, found in (("estimate", self.estimate.theta), ("statistics", self.statistics.moment)):
            if found.shape != expected:
                raise ValueError(
                    f"`{name}` of Model must be of {expected[0]} tasks and {expected[1]} features. "
                    f"Got {found.shape}."
                )

    def __repr__(self) -> str:
        return f"<Model of {len(self.tasks)} tasks, {self.encoder.dim} features: {self.account.source}>"

    def predict(self, table: Mapping[str, Any]) -> Prediction:
        """Predict the mean reward of each row of a table.

        Parameters
        ----------
        table : mapping of str to (n,)
            Columns by name, as a dictionary or a frame: those of the encoder, the task and, where arms are
            named, the arm. A task that the model never saw is predicted from what is known of new tasks.
        """
        for column in filter(None, (self.task, self.arm if self.encoder.arms else None)):
            if column not in table:
                raise ValueError(f"a table to predict must have column {column!r}. Got {list(table)!r:.200}.")
        names = np.atleast_1d(np.asarray(table[self.task], dtype=object)).tolist()
        x = self.encoder.encode(table, table[self.arm] if self.arm and self.encoder.arms else None)
        return self.predict_rows(names, np.broadcast_to(x, (len(names), self.encoder.dim)))

    def predict_rows(self, tasks: list[Any], features: Array) -> Prediction:
        """Predict the mean rewards of rows, by the names of their tasks (n,) and their features (n, d)."""
        posterior = self.estimate.posterior
        assert isinstance(posterior, MovingPosterior)
        numbers = {name: number for number, name in enumerate(self.tasks)}
        index = np.array([numbers.get(level_of(name) or "", -1) for name in tasks], dtype=np.intp)
        known = index >= 0
        mean, deviation = np.empty(len(index)), np.empty(len(index))
        new = posterior.newcomer()
        mean[~known] = features[~known] @ new.theta[0]
        deviation[~known] = new.deviation[0] * np.linalg.norm(features[~known] @ new.root[0], axis=1)
        if known.any():
            mean[known] = np.vecdot(features[known], self.estimate.theta[index[known]])
            deviation[known] = self._deviations(features[known], index[known])
        return Prediction(mean, deviation, known)

    def _deviations(self, features: Array, index: IntArray) -> Array:
        """Return |R_t'x| for rows (n, d) of tasks (n,), a few rows at a time."""
        root, found = self.estimate.root, np.empty(len(features))
        for start in range(0, len(features), 4096):
            some = slice(start, start + 4096)
            found[some] = np.linalg.norm(np.vecmat(features[some], root[index[some]]), axis=1)
        return found
