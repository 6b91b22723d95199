"""Who predicts held-out rewards: each task alone, all as one, and several ways to share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from posse.core.errors import NoDataWarning
from posse.core.estimate import ConvergenceWarning
from posse.core.statistics import GramStatistics
from posse.estimators import FactorEstimate, FactorPrior, LowRank, OracleBasis, Ridge
from posse.logs.levels import with_levels, without_levels
from posse.numerics.checks import Array

# What each contender is, for tables and pages. All but the last have a level of each task's own.
CONTENDERS: Mapping[str, str] = {
    "alone": "each task alone",
    "pooled": "one regression for all",
    "strength": "a shared strength, no direction",
    "low_rank": "hard low rank",
    "shared": "the learned prior",
    "shared_levels": "the learned prior, levels too",
}
# Descents of the hard low rank; its error is measured, so a better end would only show there.
STARTS = 8


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What contenders learned from one set of rows.

    Attributes
    ----------
    theta : mapping of str to (T, d)
        The parameters of all tasks, by contender.
    prior : FactorEstimate
        The learned prior, of features without the constant one.
    """

    theta: Mapping[str, Array]
    prior: FactorEstimate


@contextmanager
def measured_anyway() -> Iterator[None]:
    """Let fits pass that stopped early or had no data: what they are worth is measured on held-out rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", NoDataWarning)
        yield


def fit_two(statistics: GramStatistics, intercept: int | None) -> Fitted:
    """Fit each task alone and the learned prior, both with a level of each task's own.

    Alone is ridge regression with the penalty of largest evidence, found from the task's own rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((50, 8, 3))
    >>> x[..., 0] = 1.0
    >>> seen = GramStatistics.of(x, x[..., 0] * 9.0 + x[..., 1] + rng.standard_normal((50, 8)))
    >>> {name: theta.mean(axis=0)[:2].round() for name, theta in fit_two(seen, 0).theta.items()}
    {'alone': array([9., 1.]), 'shared': array([9., 1.])}
    """
    inside = without_levels(statistics, intercept)
    with measured_anyway():
        prior = FactorPrior().fit(inside)
        effects = {"alone": Ridge().fit(inside).theta, "shared": prior.theta}
    theta = {name: with_levels(values, statistics, intercept) for name, values in effects.items()}
    return Fitted(theta=theta, prior=prior)


def fit_deciding(statistics: GramStatistics, intercept: int | None) -> Fitted:
    """Fit the contenders that decide a verdict: alone, the learned prior, and one without directions.

    Where the learned prior found no direction, it is the one without.
    """
    two = fit_two(statistics, intercept)
    strength = two.theta["shared"]
    if two.prior.rank:
        with measured_anyway():
            effects = FactorPrior(rank=0, alone=True).fit(without_levels(statistics, intercept)).theta
        strength = with_levels(effects, statistics, intercept)
    return Fitted(theta={**two.theta, "strength": strength}, prior=two.prior)


def fit_all(statistics: GramStatistics, intercept: int | None) -> Fitted:
    """Fit every contender of `CONTENDERS`.

    The hard low rank is told the rank that the learned prior found in these rows, 1 at least; each task's
    weights in its basis have the penalty of largest evidence, lest few rows make them explode. The contender
    that shares levels, too, is the prior that models of logs are fitted by; it needs a constant feature.
    """
    deciding = fit_deciding(statistics, intercept)
    inside = without_levels(statistics, intercept)
    rank = min(max(deciding.prior.rank, 1), inside.dim, inside.n_tasks)
    with measured_anyway():
        effects = {
            "pooled": np.repeat(Ridge().fit(_one_task(inside)).theta, inside.n_tasks, axis=0),
            "low_rank": _fit_low_rank(inside, rank),
        }
        levels = FactorPrior(mean="level").fit(statistics).theta if intercept is not None else None
    theta = {name: with_levels(values, statistics, intercept) for name, values in effects.items()}
    found = {**deciding.theta, **theta} | ({} if levels is None else {"shared_levels": levels})
    return Fitted(theta={name: found[name] for name in CONTENDERS if name in found}, prior=deciding.prior)


def _fit_low_rank(statistics: GramStatistics, rank: int) -> Array:
    """Return parameters (T, d) that lie in the subspace of least squares."""
    basis = LowRank(rank=rank, n_starts=STARTS).fit(statistics).basis
    assert basis is not None
    return OracleBasis(basis=basis).fit(statistics).theta


def _one_task(statistics: GramStatistics) -> GramStatistics:
    """Return statistics of all rows as if they were of one task."""
    return GramStatistics(
        *(
            part.sum(axis=0, keepdims=True)
            for part in (statistics.gram, statistics.moment, statistics.square, statistics.count)
        )
    )
