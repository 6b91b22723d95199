"""Estimators for the world of scikit-learn: many related regressions that learn from each other."""

from posse.sklearn.factor_prior import FactorPriorRegressor as FactorPriorRegressor
from posse.sklearn.low_rank import LowRankRegressor as LowRankRegressor

__all__ = ["FactorPriorRegressor", "LowRankRegressor"]
