"""Least squares over parameters of low rank."""

from posse.estimators.low_rank.estimator import LowRank

__all__ = ["LowRank"]
