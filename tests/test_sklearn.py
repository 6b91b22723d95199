"""The regressors for scikit-learn: its own checks, second roads to the same numbers, its tools, bad input."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posse import FactorPrior, GramStatistics
from posse.core.posterior import MovingPosterior
from posse.sklearn import FactorPriorRegressor, LowRankRegressor

BOTH = [FactorPriorRegressor(), LowRankRegressor()]
OWN_CHECKS = """
from sklearn.utils.estimator_checks import check_estimator
from posse.sklearn import FactorPriorRegressor, LowRankRegressor
for regressor in (FactorPriorRegressor(), FactorPriorRegressor(fit_intercept=False), LowRankRegressor()):
    done = check_estimator(regressor, on_skip=None, on_fail=None)
    print(len(done) > 50, [(c["check_name"], c["exception"]) for c in done if c["status"] != "passed"])
"""


class Tasks:
    """Tasks in two directions around a common mean, with levels, and rows of them."""

    def __init__(
        self, n_tasks: int = 25, dim: int = 4, n_rows: int = 12, *, mean: float = 1.0, seed: int = 0
    ):
        rng = np.random.default_rng(seed)
        self.theta = mean + rng.standard_normal((n_tasks, 2)) @ rng.standard_normal((2, dim))
        self.level = 30.0 + rng.standard_normal(n_tasks)
        self.number = rng.permutation(np.repeat(np.arange(n_tasks), n_rows))
        self.x, self.y = self.rows(self.number, rng)
        self.task = np.array([f"shop {number:03}" for number in self.number])
        self.frame = pd.DataFrame(self.x, columns=[f"feature {place}" for place in range(dim)])
        self.frame.insert(1, "shop", self.task)

    def rows(self, number: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        x = 5.0 + rng.standard_normal((len(number), self.theta.shape[1]))
        return x, self.level[number] + np.vecdot(x, self.theta[number]) + rng.standard_normal(len(number))


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_the_checks_of_scikit_learn_pass_and_none_is_skipped() -> None:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}  # without it one check is skipped
    done = subprocess.run(
        [sys.executable, "-c", OWN_CHECKS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["True []"] * 3, done.stderr


# What it computes.


def test_without_intercept_and_mean_it_is_factor_prior(tasks: Tasks) -> None:
    model = FactorPriorRegressor(fit_intercept=False, mean="zero").fit(tasks.x, tasks.y, task=tasks.task)
    seen = GramStatistics.from_rows(tasks.number, tasks.x, tasks.y, n_tasks=25)
    estimate = FactorPrior().fit(seen)
    assert np.array_equal(model.coef_, estimate.theta)
    assert np.array_equal(model.noise_, estimate.noises)
    assert model.rank_ == estimate.rank
    assert not model.intercept_.any()


def test_low_rank_without_restriction_is_least_squares_of_each_task(tasks: Tasks) -> None:
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(tasks.y))
    model = LowRankRegressor(rank=4).fit(tasks.x, tasks.y, task=tasks.task, sample_weight=weight)
    for number in range(25):
        rows = tasks.number == number
        alone = LinearRegression().fit(tasks.x[rows], tasks.y[rows], weight[rows])
        assert np.allclose(model.coef_[number], alone.coef_)
        assert np.isclose(model.intercept_[number], alone.intercept_)


def test_low_rank_leaves_intercepts_free() -> None:
    rng = np.random.default_rng(0)
    theta, level = rng.standard_normal((9, 1)) * rng.standard_normal(5), 100.0 * rng.standard_normal(9)
    task, x = np.repeat(np.arange(9), 5), 3.0 + rng.standard_normal((45, 5))
    model = LowRankRegressor(rank=1).fit(x, level[task] + np.vecdot(x, theta[task]), task=task)
    assert np.allclose(model.coef_, theta)
    assert np.allclose(model.intercept_, level)


@pytest.mark.parametrize("regressor", BOTH)
def test_predictions_follow_the_units_and_the_origin_of_y_and_x(regressor: Any, tasks: Tasks) -> None:
    asked = tasks.x[:50], np.append(tasks.task[:49], "a shop never seen")
    plain = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task).predict(asked[0], task=asked[1])
    moved = clone(regressor).fit(4.0 * tasks.x - 7.0, 8.0 * tasks.y + 1000.0, task=tasks.task)
    assert np.allclose(moved.predict(4.0 * asked[0] - 7.0, task=asked[1]), 8.0 * plain + 1000.0, rtol=1e-6)


@pytest.mark.parametrize("regressor", BOTH)
def test_neither_the_order_of_rows_nor_the_names_of_tasks_matter(regressor: Any, tasks: Tasks) -> None:
    order = np.random.default_rng(2).permutation(len(tasks.y))
    plain = clone(regressor).fit(tasks.x, tasks.y, task=tasks.number)
    mixed = clone(regressor).fit(tasks.x[order], tasks.y[order], task=tasks.task[order])
    assert np.allclose(plain.predict(tasks.x, task=tasks.number), mixed.predict(tasks.x, task=tasks.task))


@pytest.mark.parametrize("regressor", BOTH)
def test_a_weight_of_two_is_a_row_twice_and_zero_is_none(regressor: Any, tasks: Tasks) -> None:
    weight = np.random.default_rng(3).integers(0, 3, len(tasks.y))
    weight[tasks.number == 7] = 0
    again = np.repeat(np.arange(len(weight)), weight)
    weighted = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task, sample_weight=weight)
    repeated = clone(regressor).fit(tasks.x[again], tasks.y[again], task=tasks.task[again])
    assert len(weighted.tasks_) == 24
    assert np.array_equal(weighted.tasks_, repeated.tasks_)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert np.allclose(weighted.intercept_, repeated.intercept_, atol=1e-3)


def test_sharing_helps_tasks_with_few_rows() -> None:
    # 9 rows for 7 unknowns; over 60 seeds the ratio was between 0.05 and 0.33
    few = Tasks(n_tasks=40, dim=6, n_rows=9)
    errors = []
    for regressor in (FactorPriorRegressor(), LowRankRegressor(rank=6)):
        model = regressor.fit(few.x, few.y, task=few.number)
        errors.append(np.sqrt(np.mean((model.coef_ - few.theta) ** 2)))
    assert errors[0] < 0.4 * errors[1]


def test_a_mean_is_learned_where_it_pays() -> None:
    def fitted(data: Tasks, mean: str = "auto") -> Any:
        return FactorPriorRegressor(mean=mean).fit(data.x, data.y, task=data.number)

    # tasks around 3: a mean was learned in 60 of 60 seeds, and never with fewer than ten of them
    assert fitted(Tasks(mean=3.0)).estimate_.mean.any()
    assert not fitted(Tasks(n_tasks=9, mean=3.0)).estimate_.mean.any()
    # around 0 it may pay, too; here it gains 6.2, and its price is 10.6
    around_zero = Tasks(mean=0.0)
    auto, zero, learned = (fitted(around_zero, mean) for mean in ("auto", "zero", "learned"))
    assert 0.0 < learned.estimate_.evidence - zero.estimate_.evidence < 10.6
    assert np.array_equal(auto.coef_, zero.coef_)


def test_deviations_are_those_of_the_covariances_and_the_noise(tasks: Tasks) -> None:
    model = FactorPriorRegressor().fit(tasks.x, tasks.y, task=tasks.number)
    predicted, deviation = model.predict(tasks.x, task=tasks.number, return_std=True)
    assert np.array_equal(predicted, model.predict(tasks.x, task=tasks.number))
    rows = np.column_stack([tasks.x - tasks.x.mean(axis=0), np.ones(len(tasks.x))])
    covariances = model.estimate_.covariance[tasks.number]
    expected = np.einsum("ni,nij,nj->n", rows, covariances, rows) + model.noise_[tasks.number]
    assert np.allclose(deviation**2, expected)
    _, newcomer = model.predict(tasks.x[:3], task=[-1, -2, -2], return_std=True)
    assert isinstance(model.estimate_.posterior, MovingPosterior)
    _, (root,), (noise,) = model.estimate_.posterior.newcomer().parts
    expected = noise**2 * (1.0 + np.einsum("ni,ij,nj->n", rows[:3], root @ root.T, rows[:3]))
    assert np.allclose(newcomer**2, expected)


def test_deviations_cover_new_rows_of_tasks_that_were_seen_and_of_others() -> None:
    # Shares of 95 % intervals over 40 seeds: 0.948 to 0.998 for tasks seen, 0.852 to 1.000 for others
    data = Tasks(n_tasks=60, n_rows=30, seed=1)
    known = data.number < 40
    model = FactorPriorRegressor().fit(data.x[known], data.y[known], task=data.number[known])
    rng = np.random.default_rng(5)
    for low, high, least in ((0, 40, 0.94), (40, 60, 0.85)):
        number = rng.integers(low, high, 5000)
        x, y = data.rows(number, rng)
        predicted, deviation = model.predict(x, task=number, return_std=True)
        off = np.abs(y - predicted)
        assert np.mean(off < 1.96 * deviation) > least
        assert np.mean(off < 0.25 * deviation) < 0.9


@pytest.mark.parametrize("regressor", BOTH)
def test_tasks_never_seen_get_the_mean_of_the_others(regressor: Any, tasks: Tasks) -> None:
    model = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task)
    asked = np.repeat(tasks.x[:1], 25, axis=0)
    others = model.predict(asked, task=model.tasks_)
    assert np.isclose(model.predict(asked[:1], task=["a shop never seen"])[0], others.mean())


# Tables and tasks of all kinds.


@pytest.mark.parametrize("regressor", BOTH)
def test_tasks_are_found_in_a_column_of_any_table(regressor: Any, tasks: Tasks) -> None:
    plain = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task).predict(tasks.x, task=tasks.task)
    cells = tasks.frame.to_numpy(dtype=object)
    for table in (tasks.frame, pl.DataFrame(tasks.frame.to_dict("list")), cells, cells.tolist()):
        for column in ("shop", 1) if hasattr(table, "columns") else (1,):
            model = clone(regressor).set_params(task_column=column).fit(table, tasks.y)
            assert np.allclose(model.predict(table), plain, rtol=1e-5)
            assert np.isclose(model.score(table, tasks.y), r2_score(tasks.y, plain))
            assert model.n_features_in_ == 5
            assert model.coef_.shape == (25, 4)
            named = [f"feature {place}" for place in range(4)] if hasattr(table, "columns") else None
            assert model.get_feature_names_out().tolist() == (named or ["x0", "x2", "x3", "x4"])


@pytest.mark.parametrize(
    "convert",
    [
        lambda number: number.astype(np.int8),
        lambda number: number.astype(float),
        lambda number: pd.Series(number, index=number[::-1]).astype("category"),
        lambda number: pd.array(number, dtype="Int64"),
        lambda number: pl.Series(number).cast(pl.String).cast(pl.Categorical),
        lambda number: np.array(["a", 1, 2.5, (3, 4)], dtype=object)[number],
        lambda number: np.datetime64("2026-11-18") + number,
        lambda number: (number % 2 == 0).tolist(),
    ],
)
def test_anything_can_be_a_task(convert: Any) -> None:
    data = Tasks(n_tasks=4)
    task = convert(data.number)
    model = LowRankRegressor().fit(data.x, data.y, task=task)
    alike = pd.factorize(np.asarray([str(value) for value in np.asarray(task).tolist()]))[0]
    other = LowRankRegressor().fit(data.x, data.y, task=alike)
    assert len(model.tasks_) == len(set(alike))
    assert np.allclose(model.predict(data.x, task=task), other.predict(data.x, task=alike))


def test_names_of_features_are_kept_and_checked(tasks: Tasks) -> None:
    frame = tasks.frame.drop(columns="shop")
    model = FactorPriorRegressor().fit(frame, tasks.y, task=tasks.task)
    assert (
        model.feature_names_in_.tolist() == frame.columns.tolist() == model.get_feature_names_out().tolist()
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]], task=tasks.task)
    with pytest.raises(ValueError, match="input_features is not equal"):
        model.get_feature_names_out(["a", "b", "c", "d"])
    unnamed = FactorPriorRegressor().fit(tasks.x, tasks.y, task=tasks.task)
    assert unnamed.get_feature_names_out(["a", "b", "c", "d"]).tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="should have length equal to 4"):
        unnamed.get_feature_names_out(["a"])


# The tools of scikit-learn.


@pytest.mark.parametrize("regressor", BOTH)
def test_clones_and_pickles_are_the_same(regressor: Any, tasks: Tasks) -> None:
    model = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task)
    expected = model.predict(tasks.x, task=tasks.task)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(tasks.x, task=tasks.task), expected)
    with pytest.raises(NotFittedError):
        clone(model).predict(tasks.x, task=tasks.task)
    assert np.array_equal(clone(model).fit(tasks.x, tasks.y, task=tasks.task).coef_, model.coef_)


def test_random_states_are_those_of_scikit_learn(tasks: Tasks) -> None:
    def coef(state: Any) -> Any:
        return FactorPriorRegressor(random_state=state).fit(tasks.x, tasks.y, task=tasks.task).coef_

    assert np.array_equal(coef(3), coef(3))
    assert np.array_equal(coef(np.random.RandomState(3)), coef(np.random.RandomState(3)))


def test_a_pipeline_hands_on_pandas_frames_with_the_column_of_tasks(tasks: Tasks) -> None:
    features = [name for name in tasks.frame.columns if name != "shop"]
    scaled = make_column_transformer(
        (StandardScaler(), features), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = make_pipeline(scaled, FactorPriorRegressor(task_column="shop")).fit(tasks.frame, tasks.y)
    by_hand = FactorPriorRegressor().fit(StandardScaler().fit_transform(tasks.x), tasks.y, task=tasks.task)
    assert np.allclose(model[-1].coef_, by_hand.coef_)
    assert model[-1].get_feature_names_out().tolist() == features
    predicted, deviation = model.predict(tasks.frame, return_std=True)
    assert predicted.shape == deviation.shape == tasks.y.shape


def test_tasks_are_routed_through_a_pipeline_and_a_search(tasks: Tasks, routing: None) -> None:
    pipeline = make_pipeline(StandardScaler(), FactorPriorRegressor())
    grid = {"factorpriorregressor__mean": ["zero", "learned"], "factorpriorregressor__rank": [0, 2]}
    search = GridSearchCV(pipeline, grid, cv=GroupKFold(3))
    search.fit(tasks.x, tasks.y, task=tasks.task, groups=tasks.task)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_[-1].tasks_.shape == (25,)
    assert search.score(tasks.x, tasks.y, task=tasks.task) > 0.85
    assert search.best_estimator_.predict(tasks.x, task=tasks.task).shape == tasks.y.shape


@pytest.mark.parametrize("regressor", BOTH)
def test_scores_of_tasks_held_out_are_those_by_hand(regressor: Any, tasks: Tasks, routing: None) -> None:
    asked = clone(regressor).set_fit_request(task=True).set_score_request(task=True)
    folds, metadata = GroupKFold(3), {"task": tasks.task, "groups": tasks.task}
    scores = cross_val_score(asked, tasks.x, tasks.y, cv=folds, params=metadata)
    for score, (train, test) in zip(scores, folds.split(tasks.x, groups=tasks.task), strict=True):
        model = clone(regressor).fit(tasks.x[train], tasks.y[train], task=tasks.task[train])
        assert not set(tasks.task[test]) & set(model.tasks_)
        assert score == model.score(tasks.x[test], tasks.y[test], task=tasks.task[test])


def test_any_scorer_works_with_a_column_of_tasks(tasks: Tasks) -> None:
    model = FactorPriorRegressor(task_column="shop")
    scores = cross_val_score(
        model, tasks.frame, tasks.y, groups=tasks.task, cv=GroupKFold(3), scoring="neg_mean_absolute_error"
    )
    assert (scores < 0).all()
    predicted = cross_val_predict(model, tasks.frame, tasks.y, groups=tasks.task, cv=GroupKFold(3))
    assert np.isclose(
        np.abs(tasks.y - predicted).mean(), -scores.mean(), rtol=0.1
    )  # folds are of unequal size


# Bad input, and little of it.


@pytest.mark.parametrize("regressor", BOTH)
@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, {"task": ["a"] * 299}, r"`task` of \w+ must be one value for each of 300 rows. Got \(299,\)."),
        ({}, {"task": [["a"]] * 300}, r"must be one value for each of 300 rows. Got \(300, 1\)."),
        ({}, {"task": [*["a"] * 299, None]}, "must name a task in every row. Got None in row 299."),
        ({}, {"task": np.r_[0.0, np.nan, np.ones(298)]}, "Got nan in row 1."),
        ({}, {"task": [1, pd.NA, *[2] * 298]}, "Got <NA> in row 1."),
        ({}, {"task": pd.to_datetime(["NaT", *["2026-11-18"] * 299])}, "in row 0."),
        (
            {"task_column": "shop"},
            {"task": ["a"] * 300},
            "`task` of .* must not be given beside `task_column`",
        ),
        (
            {"task_column": "shop"},
            {},
            "must be the place of a column where X has no column names. Got 'shop'.",
        ),
        ({"task_column": 4}, {}, r"must be an integer in \[0, columns - 1=3\]. Got 4."),
        ({}, {"sample_weight": np.zeros(300)}, "weights of at least zero, and one above it. Got 0 to 0."),
        ({}, {"sample_weight": np.r_[-1.0, np.ones(299)]}, "Got -1 to 1."),
        ({}, {"sample_weight": np.ones(2)}, r"`sample_weight` of \w+ must have shape \(300\). Got \(2,\)."),
        ({"rank": 9}, {}, r"must be an integer in \[[01], min\("),
    ],
)
def test_what_cannot_be_fitted_is_said(
    regressor: Any, settings: dict[str, Any], arguments: dict[str, Any], message: str, tasks: Tasks
) -> None:
    with pytest.raises(ValueError, match=message):
        clone(regressor).set_params(**settings).fit(tasks.x, tasks.y, **arguments)


def test_a_column_that_is_not_there_suggests_another(tasks: Tasks) -> None:
    message = "`task_column` of LowRankRegressor must be a known name. Got 'shp'. Did you mean 'shop'?"
    with pytest.raises(ValueError, match=message):
        LowRankRegressor(task_column="shp").fit(tasks.frame, tasks.y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        LowRankRegressor(task_column=0).fit(tasks.y, tasks.y)


@pytest.mark.parametrize("regressor", BOTH)
def test_what_cannot_be_predicted_is_said(regressor: Any, tasks: Tasks) -> None:
    model = clone(regressor).fit(tasks.x, tasks.y, task=tasks.number)
    with pytest.raises(ValueError, match="must be given, as it was fitted with 25 tasks"):
        model.predict(tasks.x)
    with pytest.raises(ValueError, match=r"must be of the kind that was fitted, int. Got str."):
        model.predict(tasks.x, task=tasks.number.astype(str))
    with pytest.raises(ValueError, match="must be one value for each of 300 rows"):
        model.score(tasks.x, tasks.y, task=tasks.number[1:])
    together = clone(regressor).fit(tasks.x, tasks.y)
    assert together.tasks_.tolist() == [0]
    with pytest.raises(ValueError, match="must not be given where it was fitted without"):
        together.predict(tasks.x, task=tasks.number)


@pytest.mark.parametrize("regressor", BOTH)
def test_a_column_of_y_is_taken_as_one_and_several_are_refused(regressor: Any, tasks: Tasks) -> None:
    plain = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task)
    with pytest.warns(DataConversionWarning):
        column = clone(regressor).fit(tasks.x, tasks.y[:, None], task=tasks.task)
    assert np.array_equal(plain.coef_, column.coef_)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        clone(regressor).fit(tasks.x, np.column_stack([tasks.y, tasks.y]), task=tasks.task)


@pytest.mark.parametrize("regressor", BOTH)
@pytest.mark.parametrize(
    ("n_tasks", "n_rows", "dim"), [(30, 1, 4), (1, 50, 4), (5, 3, 20), (1, 1, 2), (2, 1, 1)]
)
def test_little_data_is_fitted_and_predictions_are_not_wild(
    regressor: Any, n_tasks: int, n_rows: int, dim: int
) -> None:
    data = Tasks(n_tasks=n_tasks, n_rows=n_rows, dim=dim)
    model = clone(regressor).fit(data.x, data.y, task=data.task)
    predicted = model.predict(data.x, task=data.task)
    assert np.abs(predicted - data.y.mean()).max() < 2.0 * np.abs(data.y - data.y.mean()).max() + 1e-9
    if isinstance(model, FactorPriorRegressor):
        assert (model.predict(data.x, task=data.task, return_std=True)[1] > 0.0).all()


@pytest.mark.parametrize("regressor", BOTH)
def test_a_constant_y_and_a_constant_column_are_no_harm(regressor: Any, tasks: Tasks) -> None:
    flat = clone(regressor).fit(tasks.x, np.full(300, 0.1), task=tasks.task)
    assert np.allclose(flat.predict(tasks.x, task=tasks.task), 0.1)
    plain = clone(regressor).fit(tasks.x, tasks.y, task=tasks.task)
    constant = np.column_stack([tasks.x, np.full(300, 7.0)])
    model = clone(regressor).fit(constant, tasks.y, task=tasks.task)
    assert np.allclose(model.coef_[:, 4], 0.0, atol=1e-12)
    off = model.predict(constant, task=tasks.task) - plain.predict(tasks.x, task=tasks.task)
    # a column more means other draws of the prior; noise has standard deviation 1
    assert np.sqrt(np.mean(off**2)) < 0.1
