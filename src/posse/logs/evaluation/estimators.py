"""Estimators of what a policy would have earned, each a function from rows to terms.

A term of a row is a number such that the mean of terms is the estimate, and their scatter says how uncertain
it is. For estimates that are no plain means terms are linearised: those of a ratio are the ratio and what
each row adds to it. With w the weight pi(a | x) / p(a | x) of a row, r its reward, q the reward that a model
predicts for the arm that was played, and v what it predicts for the policy, sum_a pi(a | x) q(x, a):

    direct              v
    ips                 w r
    ips_clipped         min(w, c) r
    snips               R + w / W (r - R),              R the ratio of sums of w r and w, W the mean of w
    dr                  v + w (r - q)
    dr_clipped          v + min(w, c) (r - q)
    sndr                v + C + w / W (r - q - C),      C the ratio of sums of w (r - q) and w
    switch_dr           v + w (r - q) where w <= s, else v
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.logs.evaluation.groups import Groups, ratio
from posse.numerics.checks import Array

# Thresholds that Switch-DR chooses from are these quantiles of the weights above 0, and none at all.
QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
# Rows are looked at for these quantiles, so that they need not be sorted, however many there are.
MOST_SORTED = 1_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What n decisions of a log say about a policy.

    Attributes
    ----------
    weights : (n,)
        The probability by which the policy plays the arm that was played, by that with which it was played.
    rewards : (n,)
    expected : (n,)
        The reward that a model predicts for the policy.
    predicted : (n,)
        The reward that it predicts for the arm that was played.
    """

    weights: Array
    rewards: Array
    expected: Array
    predicted: Array

    @property
    def left(self) -> Array:
        """What rewards are beyond the model's predictions, (n,)."""
        return self.rewards - self.predicted


def direct(evidence: Evidence) -> Array:
    """Return the terms (n,) of the direct method: the model is taken at its word."""
    return evidence.expected


def ips(evidence: Evidence) -> Array:
    """Return the terms (n,) of inverse propensity scoring (Horvitz and Thompson 1952).

    Examples
    --------
    >>> rows = Evidence(
    ...     weights=np.array([2.0, 0.0]), rewards=np.array([1.0, 5.0]),
    ...     expected=np.zeros(2), predicted=np.zeros(2),
    ... )
    >>> ips(rows).mean(), snips(rows, Groups.one(2)).mean()
    (np.float64(1.0), np.float64(1.0))
    """
    return np.asarray(evidence.weights * evidence.rewards)


def ips_clipped(evidence: Evidence, most: Array | float) -> Array:
    """Return the terms (n,) of inverse propensity scoring with weights of at most `most` (Ionides 2008)."""
    return np.asarray(np.minimum(evidence.weights, most) * evidence.rewards)


def snips(evidence: Evidence, groups: Groups) -> Array:
    """Return the terms (n,) of self-normalised inverse propensity scoring (Hajek 1971), by groups of rows."""
    return _normalised(evidence.weights, evidence.rewards, groups)


def dr(evidence: Evidence) -> Array:
    """Return the terms (n,) of the doubly robust estimator (Dudik, Langford and Li 2011)."""
    return np.asarray(evidence.expected + evidence.weights * evidence.left)


def dr_clipped(evidence: Evidence, most: Array | float) -> Array:
    """Return the terms (n,) of the doubly robust estimator with weights clipped (Su et al. 2020)."""
    return np.asarray(evidence.expected + np.minimum(evidence.weights, most) * evidence.left)


def sndr(evidence: Evidence, groups: Groups) -> Array:
    """Return the terms (n,) of the self-normalised doubly robust estimator, by groups of rows.

    The correction is normalised, the model's part is not (Thomas and Brunskill 2016).
    """
    return np.asarray(evidence.expected + _normalised(evidence.weights, evidence.left, groups))


def switch_dr(evidence: Evidence, threshold: float) -> Array:
    """Return the terms (n,) of Switch-DR (Wang, Agarwal and Dudik 2017).

    Rows whose weight is above the threshold are left to the model.
    """
    kept = evidence.weights <= threshold
    return np.asarray(evidence.expected + np.where(kept, evidence.weights * evidence.left, 0.0))


def _normalised(weights: Array, values: Array, groups: Groups) -> Array:
    """Return linearised terms (n,) of the ratio of sums of weights times values and of weights.

    What a row adds is divided by 1 - h, h being its share of the weights: as if the ratio were that of all
    other rows (the jackknife). Without it a row that has most of the weight would seem certain.
    """
    totals = groups.sums(weights)
    ratios = ratio(groups.sums(weights * values), totals)
    share = weights * groups.spread(ratio(np.ones_like(totals), totals))
    added = (values - groups.spread(ratios)) * share  # in place from here on: logs may be long
    np.divide(added, 1.0 - share, out=added, where=share < 1.0)
    added *= groups.spread(groups.counts)
    added += groups.spread(ratios - groups.means(added))
    return np.asarray(added)


def clipping(groups: Groups) -> Array:
    """Return the largest weight that clipped estimators let pass in each group, (G,): the root of its rows.

    The root of n is where the bias of truncation vanishes faster than the error (Ionides 2008).
    """
    return np.sqrt(groups.counts)


def effective_sample_size(weights: Array, groups: Groups) -> Array:
    """Return (sum w)^2 / sum w^2 of the weights (n,) in each group, (G,): 0 where all weights are 0 (Kish).

    Examples
    --------
    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 9.0]), Groups(np.array([0, 0, 0, 1]), 2))
    array([2., 1.])
    """
    return np.nan_to_num(ratio(groups.sums(weights) ** 2, groups.sums(weights**2)))


def switch_threshold(evidence: Evidence) -> float:
    """Return the threshold of Switch-DR that a log itself speaks for.

    Of a few quantiles of the weights, and none at all, it is the one of the least estimated mean squared
    error: the variance, and the squared difference from the estimate without a threshold as far as that is
    more than chance.

    Examples
    --------
    >>> rows = Evidence(
    ...     weights=np.array([1.0, 0.0, 1.0]), rewards=np.ones(3), expected=np.ones(3), predicted=np.ones(3)
    ... )
    >>> switch_threshold(rows)
    inf
    """
    weights = evidence.weights[:: 1 + len(evidence.weights) // MOST_SORTED]
    positive = weights[weights > 0]
    levels = np.unique(np.quantile(positive, QUANTILES)) if len(positive) else np.zeros(0)
    whole = switch_dr(evidence, np.inf)
    chosen, least = np.inf, _variance_of_mean(whole)
    for threshold in levels.tolist():
        terms = switch_dr(evidence, threshold)
        bias = float(np.mean(terms - whole)) ** 2 - _variance_of_mean(terms - whole)
        error = _variance_of_mean(terms) + max(bias, 0.0)
        if error < least:
            chosen, least = threshold, error
    return float(chosen)


def _variance_of_mean(terms: Array) -> float:
    return float(np.var(terms)) / len(terms)
