"""The regressor that is measured, and the best that anybody could do."""

from __future__ import annotations

import numpy as np

from benchmarks.mixed_models.workload import Array, Workload
from posse import GaussianPrior, GramStatistics
from posse.sklearn import FactorPriorRegressor


def factor_prior(data: Workload) -> tuple[Array, Array]:
    model = FactorPriorRegressor().fit(data.x, data.y, task=data.task)
    return model.coef_, model.intercept_


def told(data: Workload) -> tuple[Array, Array]:
    dim = data.x.shape[1]
    spread = np.eye(dim + 1)
    spread[:dim, :dim] = data.spread
    prior = GaussianPrior(mean=np.append(np.zeros(dim), 2.0), covariance=spread, noise=1.0)
    rows = np.column_stack([data.x, np.ones(len(data.x))])
    theta = prior.fit(GramStatistics.from_rows(data.task, rows, data.y, len(data.theta))).theta
    return theta[:, :dim], theta[:, dim]
