"""Grouped random effects, one for the intercept and one for each feature."""

from __future__ import annotations

import gpboost
import numpy as np

from benchmarks.mixed_models.workload import Array, Workload


def random_coefficients(data: Workload) -> tuple[Array, Array]:
    dim = data.x.shape[1]
    model = gpboost.GPModel(
        group_data=data.task, group_rand_coef_data=data.x, ind_effect_group_rand_coef=[1] * dim
    )
    model.fit(y=data.y, X=np.column_stack([np.ones(len(data.x)), data.x]))
    fixed = np.asarray(model.get_coef())[0, : dim + 1]
    first = np.unique(data.task, return_index=True)[1]
    total = np.asarray(model.predict_training_data_random_effects())[first] + fixed
    return total[:, 1:], total[:, 0]
