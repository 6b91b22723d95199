"""Regressions that share as much as their rows say they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posse.core.extras import extra
from posse.core.posterior import MovingPosterior
from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior import FactorEstimate, FactorPrior
from posse.numerics.checks import Array, IntArray, check_choice
from posse.numerics.linalg import chunks
from posse.sklearn.base import Rows, TaskRegressor

with extra("sklearn"):
    from sklearn.utils import check_random_state

# With fewer tasks than this a mean of their coefficients is too uncertain to be taken for known.
LEAST_TASKS = 10


class FactorPriorRegressor(TaskRegressor):
    """A linear regression for each task, under a prior that all tasks learn together.

    Tasks are groups of rows: shops, patients, schools. Each has coefficients and an intercept of its own.
    What tasks have in common is learned: a common mean, directions along which they vary, and how far; and
    so is who has nothing in common with the others. A task with few rows leans on it, one with many hardly.

    Parameters
    ----------
    rank : "auto" or int
        The number of directions along which tasks vary together. 0: none, and coefficients have one strength.
    mean : "auto", "zero" or "learned"
        Whether coefficients of tasks scatter around 0 or around a common mean. "auto" takes a mean if there
        are at least 10 tasks, and it makes y likelier by more than its price.
    degrees : float
        Of freedom of Student's t, for tasks that are larger than others. Infinity makes tails Gaussian.
    hard : bool
        Whether no task that shares the directions leaves them.
    noise : "own" or "shared"
        Whether each task has a noise variance of its own.
    alone : "auto" or bool
        Whether a task may have nothing in common with the others. "auto" is yes, unless the rank is told.
    sweeps : int
        How many draws of the prior to average over, at the most. 0 takes the likeliest one for certain.
    fit_intercept : bool
        Whether tasks have intercepts. They scatter around the level of all rows, which is not shrunk.
    task_column : str or int, optional
        The column of X that holds the tasks, by name or place, if they do not come as `task`.
    random_state : int, RandomState or None
        Of the draws. With an integer two fits to the same rows are equal.

    Attributes
    ----------
    coef_ : (T, d)
        Coefficients of each task.
    intercept_ : (T,)
        Intercepts; 0 with `fit_intercept=False`.
    tasks_ : (T,)
        What the tasks are called, in the order of `coef_`: sorted, if they can be.
    noise_ : (T,)
        The noise variance of each task.
    rank_ : int
        The number of shared directions that were found; levels of tasks may be one of them.
    typical_coef_ : (d,)
        The mean of the tasks' coefficients, by which tasks that were not fitted are predicted.
    typical_intercept_ : float
        The mean of their intercepts.
    estimate_ : FactorEstimate
        What `posse.FactorPrior` found, of features less `center_` and a constant 1 behind them.
    center_ : (d,)
        The mean of all rows of X; 0 without intercepts.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : (n_features_in_,)
        Their names, if X had names that are strings.

    Notes
    -----
    `posse.FactorPrior` is the estimator beneath, on sums of rows. All directions that tasks do not share have
    one prior variance, so features should be of comparable size; put `StandardScaler` before it if they are
    not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shop = rng.choice(["north", "south", "west"], size=60)
    >>> X = rng.standard_normal((60, 2))
    >>> y = 5.0 + X @ [1.0, -1.0] + (shop == "west") + 0.1 * rng.standard_normal(60)
    >>> model = FactorPriorRegressor().fit(X, y, task=shop)
    >>> model.tasks_.tolist(), model.intercept_.round(1).tolist()
    (['north', 'south', 'west'], [5.0, 5.0, 6.0])
    >>> model.predict([[1.0, 0.0], [1.0, 0.0]], task=["west", "east"]).round(1).tolist()
    [7.0, 6.3]
    """

    def __init__(
        self,
        *,
        rank: int | str = "auto",
        mean: str = "auto",
        degrees: float = 3.0,
        hard: bool = False,
        noise: str = "own",
        alone: bool | str = "auto",
        sweeps: int = 120,
        fit_intercept: bool = True,
        task_column: str | int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.rank = rank
        self.mean = mean
        self.degrees = degrees
        self.hard = hard
        self.noise = noise
        self.alone = alone
        self.sweeps = sweeps
        self.fit_intercept = fit_intercept
        self.task_column = task_column
        self.random_state = random_state

    estimate_: FactorEstimate

    def predict(self, X: Any, task: ArrayLike | None = None, return_std: bool = False) -> Any:
        """Predict y.

        Parameters
        ----------
        X : array-like or frame (n, d)
            As in `fit`.
        task : (n,), optional
            The task of each row. Tasks that were not fitted are predicted by the mean of the others.
        return_std : bool
            Whether to return standard deviations, too.

        Returns
        -------
        predicted : (n,)
        deviation : (n,), if asked for
            The standard deviation of a new y around its prediction, as in scikit-learn's `BayesianRidge`:
            what is not known of the coefficients, and the noise of a row of weight 1. For a task that was
            not fitted both are the prior's, as one Gaussian, around 0 or around the mean if one was learned.
            That of the expected y alone is the root of deviation^2 less the task's `noise_`.
        """
        predicted, features, tasks = self._predicted(X, task)
        if not return_std:
            return predicted
        rows = self._design(features)
        return predicted, np.sqrt(self._uncertainty(rows, tasks))

    def _learn(self, rows: Rows) -> None:
        check_choice("`mean` of FactorPriorRegressor", self.mean, ["auto", "zero", "learned"])
        dim, level = rows.features.shape[1], 0.0
        self.center_ = np.zeros(dim)
        if self.fit_intercept:
            self.center_ = np.average(rows.features, axis=0, weights=rows.weights)
            level = float(np.average(rows.rewards, weights=rows.weights))
        statistics = rows.statistics(self._design(rows.features), rows.rewards - level)
        self.estimate_ = self._estimate(statistics)
        self.coef_ = self.estimate_.theta[:, :dim].copy()
        if (
            self.fit_intercept
        ):  # no row tells of a column that never varies, and draws leave their noise there
            self.coef_[:, np.ptp(rows.features, axis=0) == 0.0] = 0.0
        own = self.estimate_.theta[:, dim] if self.fit_intercept else np.zeros(rows.n_tasks)
        self.intercept_ = level + own - self.coef_ @ self.center_
        self.noise_, self.rank_ = self.estimate_.noises, self.estimate_.rank

    def _design(self, features: Array) -> Array:
        """Return what the estimator learns from: features (n, d) around their mean, and a constant."""
        if not self.fit_intercept:
            return features
        return np.column_stack([features - self.center_, np.ones(len(features))])

    def _estimate(self, statistics: GramStatistics) -> FactorEstimate:
        """Return the estimate, around 0 or around a learned mean."""
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        settings = FactorPrior(
            rank=self.rank,
            mean="zero" if self.mean == "auto" else self.mean,
            degrees=self.degrees,
            hard=self.hard,
            noise=self.noise,
            alone=self.alone,
            sweeps=self.sweeps,
            seed=int(seed),
        )
        around_zero = settings.fit(statistics)
        n_tasks = statistics.n_tasks
        if self.mean != "auto" or n_tasks < LEAST_TASKS:
            return around_zero
        around_mean = replace(settings, mean="learned").refit(statistics, around_zero)
        # what a mean of nothing would gain by chance, and as much as Schwarz's criterion asks for
        price = 0.5 * statistics.dim * (n_tasks * np.log(n_tasks / (n_tasks - 1)) + np.log(n_tasks))
        return around_mean if around_mean.evidence - around_zero.evidence > price else around_zero

    def _uncertainty(self, rows: Array, tasks: IntArray) -> Array:
        """Return the variance (n,) of a new y, for rows (n, d) of tasks (n,), which are -1 where unseen."""
        posterior, roots = self.estimate_.posterior, self.estimate_.root
        assert isinstance(posterior, MovingPosterior)
        # as one Gaussian: the variance of the prior's mixture is mostly that of its few largest components
        _, root, (noise,) = posterior.newcomer().parts
        unseen = noise**2 * (1.0 + np.sum((rows @ root[0]) ** 2, axis=1))
        variance = np.where(tasks < 0, unseen, self.noise_[tasks])
        seen = np.flatnonzero(tasks >= 0)
        for some in chunks(len(seen), rows.shape[1]):
            part = seen[some]
            variance[part] += np.sum(np.vecmat(rows[part], roots[tasks[part]]) ** 2, axis=1)
        return np.asarray(variance)
