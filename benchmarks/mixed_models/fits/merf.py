"""Mixed effects by expectation-maximisation, with a linear model of the fixed ones."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
from merf import MERF
from sklearn.linear_model import LinearRegression

from benchmarks.mixed_models.workload import Array, Workload


def linear(data: Workload) -> tuple[Array, Array]:
    logging.disable(logging.INFO)  # it writes a line for each iteration
    random = np.column_stack([np.ones(len(data.x)), data.x])
    model = MERF(LinearRegression()).fit(data.x, random, pd.Series(data.task), data.y)
    own = model.trained_b.sort_index().to_numpy()
    fixed = model.trained_fe_model
    return own[:, 1:] + fixed.coef_, own[:, 0] + fixed.intercept_
