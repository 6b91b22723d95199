"""A linear mixed model with correlated random effects."""

from __future__ import annotations

import numpy as np
from statsmodels.regression.mixed_linear_model import MixedLM

from benchmarks.mixed_models.workload import Array, Workload


def mixed_lm(data: Workload) -> tuple[Array, Array]:
    design = np.column_stack([np.ones(len(data.x)), data.x])
    found = MixedLM(data.y, design, groups=data.task, exog_re=design).fit()
    own = np.array([found.random_effects[task] for task in range(len(data.theta))])
    total = own + found.fe_params
    return total[:, 1:], total[:, 0]
