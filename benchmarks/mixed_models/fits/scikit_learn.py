"""Each task alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV

from benchmarks.mixed_models.workload import Array, Workload


def ridge_cv(data: Workload) -> tuple[Array, Array]:
    return _each(RidgeCV(alphas=np.logspace(-2, 4, 13)), data)


def least_squares(data: Workload) -> tuple[Array, Array]:
    return _each(LinearRegression(), data)


def _each(model: Any, data: Workload) -> tuple[Array, Array]:
    coef, intercept = np.empty_like(data.theta), np.empty_like(data.level)
    for task in range(len(coef)):
        rows = data.task == task
        model.fit(data.x[rows], data.y[rows])
        coef[task], intercept[task] = model.coef_, model.intercept_
    return coef, intercept
