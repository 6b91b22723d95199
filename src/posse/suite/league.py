"""The league's tables: ranks over scenarios, what is settled, and the default policy's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from posse.core.extras import extra
from posse.lab.registry import family_of
from posse.numerics.checks import Array

with extra("lab"):
    import polars as pl

# The policy that a user gets who does not choose, and what is asked of it.
DEFAULT = "shared"
NEAR, MOST, SHARE = 1.10, 1.30, 0.80
LEVEL = 0.05
ORACLES = "oracles"
# Regrets of 0 have a logarithm all the same.
TINY = 1e-12


@dataclass(frozen=True)
class Standing:
    """How one policy does over the scenarios of a kind.

    Attributes
    ----------
    policy : str
    rank : float
        Its mean rank over scenarios by regret, 1 for the least.
    worst_off_rank : float, optional
        The mean of its ranks by the regret of the worst-off fifth of tasks; None where that is not known.
    near : float
        The share of scenarios in which its regret is within 10 % of the least.
    largest : float
        The largest ratio of its regret to the least.
    where : str
        The scenario of that.
    seconds : float
        Of a run, the mean over scenarios.
    """

    policy: str
    rank: float
    worst_off_rank: float | None
    near: float
    largest: float
    where: str
    seconds: float


@dataclass(frozen=True)
class Table:
    """The standings of those who play in all scenarios of a kind, and what is settled between them.

    Attributes
    ----------
    kind : str
    scenarios : tuple of str
    standings : tuple of Standing
        The least mean rank first.
    p_equal : float, optional
        How likely ranks as different are if all policies are alike; None from fewer than two scenarios.
    p_values : (m, m)
        Of each pair of policies, in the order of `standings`: see `pairwise`.
    critical : float, optional
        Nemenyi's critical difference of mean ranks, by which older studies judge.
    """

    kind: str
    scenarios: tuple[str, ...]
    standings: tuple[Standing, ...]
    p_equal: float | None
    p_values: Array
    critical: float | None

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """First and last place of the largest runs of neighbours no two of whom are told apart."""
        return alike(self.p_values)

    @property
    def can_tell(self) -> bool:
        """Whether so many scenarios can tell any pair apart, even if one policy wins all of them."""
        n_pairs = len(self.standings) * (len(self.standings) - 1) // 2
        return n_pairs * 0.5 ** (len(self.scenarios) - 1) <= LEVEL


@dataclass(frozen=True)
class Verdict:
    """Whether the default policy is as near the best as is asked of it.

    Attributes
    ----------
    rows : tuple of mappings
        Its rows of a comparison, the largest ratio to the best first.
    """

    rows: tuple[Mapping[str, Any], ...]

    @property
    def far(self) -> tuple[Mapping[str, Any], ...]:
        """Its rows where it is not within 10 % of the best."""
        return tuple(row for row in self.rows if row["to_best"] > NEAR)

    @property
    def near(self) -> int:
        """In how many scenarios it is within 10 % of the best."""
        return len(self.rows) - len(self.far)

    @property
    def largest(self) -> float:
        """The largest ratio of its regret to the least."""
        return float(self.rows[0]["to_best"])

    @property
    def holds(self) -> bool:
        """Whether it is within 10 % in four fifths of the scenarios, and within 30 % in all."""
        return self.near >= SHARE * len(self.rows) and self.largest <= MOST


def verdict(data: pl.DataFrame) -> Verdict | None:
    """Return how near the default policy is to the best, None if it was not played.

    Parameters
    ----------
    data : DataFrame
        What `compare_scenarios` returns.
    """
    mine = data.filter(pl.col("policy") == DEFAULT, pl.col("to_best").is_not_null())
    return Verdict(tuple(mine.sort("to_best", descending=True).to_dicts())) if mine.height else None


def league_tables(data: pl.DataFrame) -> tuple[Table, ...]:
    """Return a table for each kind of scenarios, of the policies that play in all of them, oracles left out.

    Parameters
    ----------
    data : DataFrame
        What `compare_scenarios` returns.
    """
    kinds = data["kind"].unique(maintain_order=True)
    return tuple(_table(kind, data.filter(kind=kind)) for kind in kinds)


def _table(kind: str, data: pl.DataFrame) -> Table:
    scenarios = data["scenario"].unique(maintain_order=True).to_list()
    counts = data.group_by("policy", maintain_order=True).len().filter(len=len(scenarios))
    policies = [name for name in counts["policy"] if family_of(name) != ORACLES]
    some = data.filter(pl.col("policy").is_in(policies))
    regrets = _matrix(some, "regret_per_task", policies)
    ranks = mean_ranks(regrets)
    order = np.argsort(ranks, kind="stable")
    worst = _matrix(some, "worst_off", policies)
    worst_ranks = [None] * len(policies) if np.isnan(worst).any() else mean_ranks(worst).tolist()
    standings = tuple(
        _standing(policies[i], float(ranks[i]), worst_ranks[i], some.filter(policy=policies[i]))
        for i in order
    )
    return Table(
        kind,
        tuple(scenarios),
        standings,
        all_alike(regrets),
        pairwise(regrets[:, order]),
        critical_difference(len(policies), len(scenarios)),
    )


def _matrix(data: pl.DataFrame, value: str, policies: Sequence[str]) -> Array:
    """Return a value by scenario and policy, (n, m), NaN where it is not known."""
    wide = data.pivot("policy", index="scenario", values=value, maintain_order=True)
    return wide.select(policies).cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _standing(policy: str, rank: float, worst: float | None, rows: pl.DataFrame) -> Standing:
    ratios = rows.filter(pl.col("to_best").is_not_null()).sort("to_best", descending=True)
    return Standing(
        policy,
        rank,
        worst,
        near=sum(ratio <= NEAR for ratio in ratios["to_best"]) / max(1, ratios.height),
        largest=ratios["to_best"][0] if ratios.height else float("nan"),
        where=ratios["scenario"][0] if ratios.height else "",
        seconds=sum(rows["seconds"]) / rows.height,
    )


def mean_ranks(regrets: Array) -> Array:
    """Return the mean over scenarios of the ranks of policies, (m,), from their regrets (n, m).

    Examples
    --------
    >>> mean_ranks(np.array([[1.0, 2.0, 2.0], [5.0, 4.0, 9.0]]))
    array([1.5 , 1.75, 2.75])
    """
    return np.asarray(stats.rankdata(regrets, axis=1).mean(axis=0))


def all_alike(regrets: Array) -> float | None:
    """Return how likely ranks as different as those of regrets (n, m) are if all policies are alike.

    Friedman's test with the correction of Iman and Davenport: from chi-square with m - 1 degrees of freedom,
    (n - 1) chi / (n (m - 1) - chi) is F with m - 1 and (m - 1)(n - 1). None below two scenarios or three
    policies.
    """
    n, m = regrets.shape
    if n < 2 or m < 3:
        return None
    chi = float(stats.friedmanchisquare(*regrets.T).statistic)
    left = n * (m - 1) - chi
    return 0.0 if left <= 0 else float(stats.f.sf((n - 1) * chi / left, m - 1, (m - 1) * (n - 1)))


def pairwise(regrets: Array) -> Array:
    """Return how likely differences as large are of each pair of policies, (m, m), from regrets (n, m).

    Wilcoxon's signed-rank test, over the scenarios, of the logarithms of the ratios, so that a factor counts
    for as much whether regrets are large or small; by Holm's rule, for all pairs together. Pairs are judged
    by themselves, since differences of mean ranks depend on who else plays.

    References
    ----------
    A. Benavoli, G. Corani, F. Mangili, Should we really use post-hoc tests based on mean-ranks? JMLR 17(5),
    2016. S. Garcia, F. Herrera, An extension on "Statistical comparisons of classifiers over multiple data
    sets" for all pairwise comparisons, JMLR 9, 2008.
    """
    n_policies = regrets.shape[1]
    logs = np.log(np.maximum(regrets, TINY))
    pairs = list(combinations(range(n_policies), 2))
    found = np.eye(n_policies)
    if pairs:
        raw = [_signed_rank(logs[:, i] - logs[:, j]) for i, j in pairs]
        for (i, j), value in zip(pairs, holm(np.array(raw)), strict=True):
            found[i, j] = found[j, i] = value
    return found


def _signed_rank(differences: Array) -> float:
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def holm(values: Array) -> Array:
    """Return p-values (n,) of tests that are made together, by Holm's rule.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(values)
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    found = np.empty_like(values)
    found[order] = np.minimum(stepped, 1.0)
    return found


def alike(p_values: Array) -> tuple[tuple[int, int], ...]:
    """Return first and last place of the largest runs of neighbours no two of whom are told apart.

    Examples
    --------
    >>> alike(np.array([[1.0, 0.5, 0.01], [0.5, 1.0, 0.6], [0.01, 0.6, 1.0]]))
    ((0, 1), (1, 2))
    """
    runs: list[tuple[int, int]] = []
    for first in range(len(p_values)):
        last = first
        while last + 1 < len(p_values) and (p_values[first : last + 1, last + 1] > LEVEL).all():
            last += 1
        if last > first and not (runs and runs[-1][1] >= last):
            runs.append((first, last))
    return tuple(runs)


def critical_difference(n_policies: int, n_scenarios: int) -> float | None:
    """Return Nemenyi's critical difference of mean ranks at 5 %, None for fewer than two policies.

    q sqrt(m (m + 1) / (6 n)), q the quantile of the studentised range of m over the root of 2.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    if n_policies < 2:
        return None
    quantile = stats.studentized_range.ppf(1 - LEVEL, n_policies, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_policies * (n_policies + 1) / (6 * n_scenarios)))
