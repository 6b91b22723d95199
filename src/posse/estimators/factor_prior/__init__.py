"""The learned prior."""

from posse.estimators.factor_prior.estimator import FactorEstimate, FactorPrior

__all__ = ["FactorEstimate", "FactorPrior"]
