"""Who is measured, how exactly it is used, and in which environment."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.environments import environment

REQUIREMENTS = {"merf": ("merf",), "gpboost": ("gpboost",), "statsmodels": ("statsmodels",)}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One row of the tables.

    Attributes
    ----------
    name : str
    library : str
        Its name for pip, and that of its file in `fits`.
    fit : str
        The function in that file.
    does : str
        What it fits, exactly.
    """

    name: str
    library: str
    fit: str
    does: str


POSSE = Contender(
    name="FactorPriorRegressor",
    library="posse",
    fit="factor_prior",
    does="as it comes: `FactorPriorRegressor()`",
)
MERF = Contender(
    name="merf",
    library="merf",
    fit="linear",
    does="`MERF(LinearRegression())`, intercept and all features random, 20 iterations, its default",
)
TOLD = Contender(
    name="told the truth",
    library="posse",
    fit="told",
    does="the posterior mean under the distribution that tasks were drawn from: the least there is",
)
CONTENDERS = (
    POSSE,
    MERF,
    Contender(
        name="gpboost",
        library="gpboost",
        fit="random_coefficients",
        does="`GPModel`: fixed effects, random intercept and coefficients; it has no correlations of these",
    ),
    Contender(
        name="MixedLM",
        library="statsmodels",
        fit="mixed_lm",
        does="`MixedLM(y, X, groups, exog_re=X).fit()`: fixed effects and correlated random ones, by REML",
    ),
    Contender(
        name="RidgeCV per task",
        library="scikit-learn",
        fit="ridge_cv",
        does="`RidgeCV(alphas=np.logspace(-2, 4, 13))` on each task's rows, leave-one-out",
    ),
    Contender(
        name="least squares per task",
        library="scikit-learn",
        fit="least_squares",
        does="`LinearRegression()` on each task's rows",
    ),
    TOLD,
)


def interpreter(library: str) -> str:
    """Return the Python that has a library, after making an environment for it if there is none."""
    return environment(library, REQUIREMENTS[library]) if library in REQUIREMENTS else sys.executable
