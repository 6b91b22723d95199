"""Do propensities fit the contexts? Weighted by 1 / p, an arm's plays must look like all its offers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from posse.logs.evaluation.decisions import Decisions
from posse.logs.evaluation.groups import ratio
from posse.logs.evaluation.support import MATTERS
from posse.numerics.checks import Array, BoolArray, IntArray
from posse.numerics.compiled import compiled

# The chance by the law of large logs that one with right propensities is refused, such that it is 1 in 1,000
# at most where that law is rough; and directions of features that are none.
FALSE_ALARM, FLAT = 1e-4, 1e-9
# An arm has to have so many effective plays, and for each feature, or the chi-squared law is no guide.
PLAYS, PLAYS_PER_FEATURE = 50.0, 5.0


class Balance:
    """Adds up features of arms that were played, weighted by 1 / p, and of arms that were on offer.

    With right propensities p the sum of f / p over the plays of an arm is the sum of f over its offers, but
    for chance, for any feature f of the context: here less its mean in the task.

    Parameters
    ----------
    n_tasks, n_arms, dim : int
        T, A, and the number of compact features, c.
    """

    def __init__(self, n_tasks: int, n_arms: int, dim: int) -> None:
        self.offers = np.zeros((n_tasks, n_arms))
        self.sums, self.squares = np.zeros((n_tasks, n_arms, dim)), np.zeros((n_arms, dim))
        # of plays, by 1 / p and by the variance (1 - p) / p^2 that each adds
        self.weights, self.spreads = np.zeros((2, n_tasks, n_arms))
        self.weighted, self.spread = np.zeros((2, n_tasks, n_arms, dim))
        self.products, self.powers = np.zeros((n_arms, dim, dim)), np.zeros((n_arms, 2))

    def add(self, decisions: Decisions, propensities: Array) -> None:
        """Take in some decisions with their propensities (m,)."""
        features, arms = np.ascontiguousarray(decisions.features), np.ascontiguousarray(decisions.arms)
        offers = np.ascontiguousarray(decisions.offers)
        add_offers(decisions.tasks, arms, offers, features, self.offers, self.sums, self.squares)
        own = np.ascontiguousarray(decisions.played_features)
        sums = self.weights, self.spreads, self.weighted, self.spread, self.products, self.powers
        add_plays(decisions.tasks, np.ascontiguousarray(decisions.played), own, propensities, *sums)

    def disagreement(self, arms: Sequence[str], features: Sequence[str]) -> str:
        """Return how propensities disagree with contexts; nothing if they do not.

        An arm's differences of all features are tested at once, by their chi-squared (Hotelling's law for as
        many plays as the variance of the weights rests on), and arms by Bonferroni, such that a log with
        right propensities is refused once in a thousand times at most. Arms with few such plays, or where no
        feature is off by 0.05 standard deviations, are let pass. Variances are taken for those of weights
        that have nothing to do with features, at the least: heavy ones are seldom seen.

        Parameters
        ----------
        arms : sequence of str
            Names of the A arms.
        features : sequence of str
            Names of the c compact features.
        """
        means = np.nan_to_num(self.sums / np.maximum(self.offers, 1.0)[:, :, None])
        off = self.weighted.sum(axis=0) - np.einsum("ta,tac->ac", self.weights, means)
        mixed = np.einsum("tac,tad->acd", self.spread, means)
        variances = self.products - mixed - mixed.swapaxes(1, 2)
        variances += np.einsum("ta,tac,tad->acd", self.spreads, means, means)
        counts = self.offers.sum(axis=0)
        within = self.squares - np.einsum("ta,tac->ac", self.offers, means**2)
        deviations = np.sqrt(np.maximum(within, 0.0) / np.maximum(counts, 1.0)[:, None])
        flat = deviations <= FLAT * (1.0 + np.abs(means).max(axis=0))
        plays = ratio(self.powers[:, 0] ** 2, self.powers[:, 1])
        found = []
        for arm in range(len(arms)):
            far = ratio(np.where(flat[arm], 0.0, off[arm]), deviations[arm] * counts[arm])
            worst = int(np.argmax(np.abs(np.nan_to_num(far))))
            least = self.spreads[:, arm].sum() * deviations[arm] ** 2
            np.fill_diagonal(variances[arm], np.maximum(np.diag(variances[arm]), least))
            some = np.ix_(~flat[arm], ~flat[arm])
            chance = _chance(off[arm][~flat[arm]], variances[arm][some], plays[arm])
            if chance < FALSE_ALARM / len(arms) and abs(far[worst]) > MATTERS:
                found.append((abs(far[worst]), far[worst], arms[arm], features[worst], counts[arm]))
        if not found:
            return ""
        _, far_off, name, feature, count = max(found)
        return (
            f"propensities that disagree with contexts for {len(found)} of {len(arms)} arms: the plays of "
            f"arm {name}, weighted by 1 / p, have a mean of {feature} that is {far_off:+.2f} standard "
            f"deviations off that of the {count:,.0f} decisions in which it was on offer"
        )


def _chance(off: Array, variances: Array, plays: float) -> float:
    """Return the chance of sums as far off (c,), by their variances (c, c), from so many effective plays."""
    scale = np.sqrt(np.maximum(np.diag(variances), 0.0))
    known = scale > 0
    if not known.any() or not plays > PLAYS + PLAYS_PER_FEATURE * known.sum():
        return 1.0
    scale, off = scale[known], off[known]
    values, vectors = np.linalg.eigh(variances[np.ix_(known, known)] / np.outer(scale, scale))
    used = values > 1e-8 * len(values)
    squared = float(np.sum((vectors[:, used].T @ (off / scale)) ** 2 / values[used]))
    free = float(used.sum())
    return float(fdtrc(free, plays - free, squared * (plays - free) / (free * (plays - 1.0))))


@compiled
def add_offers(
    tasks: IntArray,
    arms: IntArray,
    offers: BoolArray,
    features: Array,
    counts: Array,
    sums: Array,
    squares: Array,
) -> None:
    """Add the features (m, 1 or K, c) of arms (m, K) on offer to sums (T, A, c) and squares (A, c)."""
    n_rows, n_arms = arms.shape
    n_sets, dim = features.shape[1], features.shape[2]
    for n in range(n_rows):
        t = tasks[n]
        for k in range(n_arms):
            if offers[n, k]:
                a, row = arms[n, k], k if n_sets > 1 else 0
                counts[t, a] += 1.0
                for i in range(dim):
                    value = features[n, row, i]
                    sums[t, a, i] += value
                    squares[a, i] += value * value


@compiled
def add_plays(
    tasks: IntArray,
    played: IntArray,
    features: Array,
    propensities: Array,
    weights: Array,
    spreads: Array,
    weighted: Array,
    spread: Array,
    products: Array,
    powers: Array,
) -> None:
    """Add the features (m, c) of the arms that were played to what `Balance` keeps of plays."""
    n_rows, dim = features.shape
    for n in range(n_rows):
        t, a, p = tasks[n], played[n], propensities[n]
        w = 1.0 / p
        v = (1.0 - p) * w * w
        weights[t, a] += w
        spreads[t, a] += v
        powers[a, 0] += w**2
        powers[a, 1] += w**4
        for i in range(dim):
            x = features[n, i]
            weighted[t, a, i] += w * x
            spread[t, a, i] += v * x
            for j in range(dim):
                products[a, i, j] += v * x * features[n, j]
