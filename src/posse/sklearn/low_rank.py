"""Regressions whose coefficients lie in a subspace, by least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from posse.estimators.low_rank import LowRank
from posse.numerics.checks import Array
from posse.sklearn.base import Rows, TaskRegressor


class LowRankRegressor(TaskRegressor):
    """A linear regression for each task, with coefficients that lie in one subspace of rank k.

    Least squares over all tasks together. It takes the rank for known, and cannot say how uncertain it is:
    `FactorPriorRegressor` learns the rank, and gives standard deviations.

    Parameters
    ----------
    rank : int
        k, at most the number of features and of tasks.
    penalty : float
        Adds penalty times the squared norm of all coefficients.
    n_starts : int
        From how many starts to search at the most; the problem is not convex.
    fit_intercept : bool
        Whether tasks have intercepts. They are free: neither penalised nor part of the subspace.
    task_column : str or int, optional
        The column of X that holds the tasks, by name or place, if they do not come as `task`.

    Attributes
    ----------
    coef_ : (T, d)
        Coefficients of each task.
    intercept_ : (T,)
        Intercepts; 0 with `fit_intercept=False`.
    tasks_ : (T,)
        What the tasks are called, in the order of `coef_`: sorted, if they can be.
    rank_ : int
        The rank that was told.
    typical_coef_ : (d,)
        The mean of the tasks' coefficients, by which tasks that were not fitted are predicted.
    typical_intercept_ : float
        The mean of their intercepts.
    estimate_ : Estimate
        What `posse.LowRank` found, of rows less the means of their tasks.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : (n_features_in_,)
        Their names, if X had names that are strings.

    Notes
    -----
    `posse.LowRank` is the estimator beneath, on sums of rows. It says nothing of a task that was not fitted,
    so the mean of the tasks' coefficients predicts it, each task counting once. A fit to all rows together
    would let the tasks with most rows decide.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> user, X = np.repeat(np.arange(8), 6), rng.standard_normal((48, 5))
    >>> theta = rng.standard_normal((8, 1)) @ rng.standard_normal((1, 5))
    >>> model = LowRankRegressor(rank=1).fit(X, 3.0 + np.vecdot(X, theta[user]), task=user)
    >>> bool(np.allclose(model.coef_, theta)), model.intercept_.round(6).tolist()
    (True, [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    """

    def __init__(
        self,
        *,
        rank: int = 1,
        penalty: float = 0.0,
        n_starts: int = 160,
        fit_intercept: bool = True,
        task_column: str | int | None = None,
    ) -> None:
        self.rank = rank
        self.penalty = penalty
        self.n_starts = n_starts
        self.fit_intercept = fit_intercept
        self.task_column = task_column

    def predict(self, X: Any, task: ArrayLike | None = None) -> Array:
        """Predict y, (n,).

        Parameters
        ----------
        X : array-like or frame (n, d)
            As in `fit`.
        task : (n,), optional
            The task of each row. Tasks that were not fitted are predicted by the mean of the others.
        """
        return self._predicted(X, task)[0]

    def _learn(self, rows: Rows) -> None:
        features, rewards = rows.features, rows.rewards
        settings = LowRank(rank=self.rank, penalty=self.penalty, n_starts=self.n_starts)
        if self.fit_intercept:
            centers, levels = _task_means(rows, features), _task_means(rows, rewards)
            features, rewards = features - centers[rows.tasks], rewards - levels[rows.tasks]
        self.estimate_ = settings.fit(rows.statistics(features, rewards))
        self.rank_, self.coef_ = settings.rank, self.estimate_.theta
        self.intercept_ = np.zeros(rows.n_tasks)
        if self.fit_intercept:
            self.intercept_ = levels - np.vecdot(centers, self.coef_)


def _task_means(rows: Rows, values: Array) -> Array:
    """Return the weighted means of values (n, ...) over the rows of each task, (T, ...)."""
    places = rows.tasks, np.arange(len(values))
    shares = csr_array((rows.weights, places), shape=(rows.n_tasks, len(values)))
    totals = shares.sum(axis=1)
    return np.asarray((shares @ values).T / totals).T
