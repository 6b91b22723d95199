"""What the regressors have in common: rows of a table and their tasks in, predictions out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posse.core.estimate import Estimate
from posse.core.extras import extra
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, IntArray, check_array
from posse.sklearn.tasks import check_tasks, distinct_tasks, split_column, task_numbers

with extra("sklearn"):
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.metrics import r2_score
    from sklearn.utils import check_array as check_table
    from sklearn.utils import check_X_y
    from sklearn.utils.validation import check_is_fitted, validate_data


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Rows of a table, each of a task.

    Attributes
    ----------
    features : (n, d)
    rewards, weights : (n,)
        What is predicted, and how much each row counts, above 0.
    tasks : (n,)
        The number of each row's task.
    n_tasks : int
    """

    features: Array
    rewards: Array
    weights: Array
    tasks: IntArray
    n_tasks: int

    def statistics(self, features: Array, rewards: Array) -> GramStatistics:
        """Return the statistics of these rows with other features (n, d) and rewards (n,)."""
        return GramStatistics.from_rows(self.tasks, features, rewards, self.n_tasks, self.weights)


class TaskRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A linear regression for each task of a table, learned together.

    Subclasses say how: `_learn` sets `estimate_`, `rank_`, `coef_` and `intercept_`.
    """

    # A router hands on what is called `task` without being told by `set_fit_request(task=True)`.
    __metadata_request__fit: ClassVar = {"task": True}
    __metadata_request__predict: ClassVar = {"task": True}
    __metadata_request__score: ClassVar = {"task": True}

    fit_intercept: bool
    task_column: str | int | None
    estimate_: Estimate
    rank_: int
    tasks_: NDArray[Any]
    coef_: Array
    intercept_: Array
    typical_coef_: Array
    typical_intercept_: float
    n_features_in_: int

    @abstractmethod
    def _learn(self, rows: Rows) -> None:
        """Set what was learned from rows."""

    def fit(
        self, X: Any, y: ArrayLike, task: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn a regression for each task, all of them together.

        Parameters
        ----------
        X : array-like or frame (n, d)
            Features; with `task_column` the tasks are among its columns.
        y : (n,)
            What is to be predicted.
        task : (n,), optional
            The task of each row: strings, integers, or anything that can be a key. Without it, and without
            `task_column`, all rows are of one task.
        sample_weight : (n,), optional
            How much each row counts. A row of weight 2 is two rows, one of weight 0 is none.
        """
        self._with_tasks = task is not None or self.task_column is not None
        features, rewards, values = self._read_to_fit(X, y, task)
        weights = self._weights(sample_weight, len(features))
        used = weights > 0
        features, rewards, values, weights = features[used], rewards[used], values[used], weights[used]
        self.tasks_ = distinct_tasks(values)
        tasks = task_numbers(type(self).__name__, values, self.tasks_)
        self._learn(
            Rows(
                features=features,
                rewards=rewards,
                weights=weights,
                tasks=tasks,
                n_tasks=len(self.tasks_),
            )
        )
        self.typical_coef_ = self.coef_.mean(axis=0)
        self.typical_intercept_ = float(self.intercept_.mean())
        return self

    def score(
        self, X: Any, y: ArrayLike, task: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the share of the variance of y that predictions explain, R^2, over all rows together.

        Parameters
        ----------
        X : array-like or frame (n, d)
        y : (n,)
        task : (n,), optional
            The task of each row, as in `predict`.
        sample_weight : (n,), optional
            How much each row counts.
        """
        predicted, _, _ = self._predicted(X, task)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names (d,) of the columns of `coef_`: those of X, without that of the tasks.

        Parameters
        ----------
        input_features : (n_features_in_,), optional
            Names of the columns of X, if it had none; "x0", "x1" and so on otherwise.
        """
        check_is_fitted(self)
        unnamed = np.array([f"x{place}" for place in range(self.n_features_in_)], dtype=object)
        own = getattr(self, "feature_names_in_", None)
        names = np.asarray(unnamed if input_features is None else input_features, dtype=object)
        if own is not None and input_features is not None and not np.array_equal(own, names):
            raise ValueError("input_features is not equal to feature_names_in_")
        names = names if own is None else own
        if names.shape != (self.n_features_in_,):
            raise ValueError(f"input_features should have length equal to {self.n_features_in_}")
        if self.task_column is None:
            return names
        return np.asarray(split_column(type(self).__name__, names[None], self._task_place(names))[0][0])

    def _task_place(self, names: NDArray[np.object_]) -> int:
        column = self.task_column
        assert column is not None
        return names.tolist().index(column) if isinstance(column, str) else column

    def _predicted(self, X: Any, task: ArrayLike | None) -> tuple[Array, Array, IntArray]:
        """Return predictions (n,), the features (n, d), and numbers of tasks (n,), -1 for unseen ones."""
        check_is_fitted(self)
        owner = type(self).__name__
        if not self._with_tasks and task is not None:
            raise ValueError(
                f"`task` of {owner} must not be given where it was fitted without. Got {task!r:.80}."
            )
        if self._with_tasks and self.task_column is None and task is None:
            raise ValueError(
                f"`task` of {owner} must be given, as it was fitted with {len(self.tasks_)} tasks."
            )
        features, values = self._read_to_predict(X, task)
        tasks = task_numbers(owner, values, self.tasks_)
        coef = np.vstack([self.coef_, self.typical_coef_])
        intercept = np.append(self.intercept_, self.typical_intercept_)
        return intercept[tasks] + np.vecdot(features, coef[tasks]), features, tasks

    def _read_to_fit(self, X: Any, y: ArrayLike, task: ArrayLike | None) -> tuple[Array, Array, NDArray[Any]]:
        """Return features (n, d), rewards (n,) and tasks (n,), or say what is wrong."""
        if self.task_column is None:
            features, rewards = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        else:
            table, task = self._split(X, task, reset=True)
            features, rewards = check_X_y(table, y, dtype=np.float64, y_numeric=True, estimator=self)
        return features, np.asarray(rewards, dtype=np.float64), self._tasks_of(features, task)

    def _read_to_predict(self, X: Any, task: ArrayLike | None) -> tuple[Array, NDArray[Any]]:
        """Return features (n, d) and tasks (n,), or say what is wrong."""
        if self.task_column is None:
            features = validate_data(self, X, reset=False, dtype=np.float64)
        else:
            table, task = self._split(X, task, reset=False)
            features = check_table(table, dtype=np.float64, estimator=self)
        return features, self._tasks_of(features, task)

    def _split(self, X: Any, task: ArrayLike | None, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        """Return X without its column of tasks, and that column."""
        owner, column = type(self).__name__, self.task_column
        if task is not None:
            raise ValueError(f"`task` of {owner} must not be given beside `task_column`. Got both.")
        assert column is not None
        validate_data(self, X, reset=reset, skip_check_array=True)
        return split_column(owner, X, column)

    def _tasks_of(self, features: Array, task: ArrayLike | None) -> NDArray[Any]:
        """Return the tasks of rows, (n,): 0 for all where there are none."""
        if task is None:
            return np.zeros(len(features), dtype=np.intp)
        return check_tasks(type(self).__name__, task, len(features))

    def _weights(self, sample_weight: ArrayLike | None, n_rows: int) -> Array:
        """Return how much each row counts, (n,)."""
        if sample_weight is None:
            return np.ones(n_rows)
        name = f"`sample_weight` of {type(self).__name__}"
        weights = check_array(name, sample_weight, (n_rows,))
        if weights.min() < 0 or weights.max() == 0:
            found = f"{weights.min():g} to {weights.max():g}"
            raise ValueError(f"{name} must be weights of at least zero, and one above it. Got {found}.")
        return weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = self.task_column is not None
        return tags
