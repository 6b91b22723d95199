"""The claims of Figures 3 and 4, on pairs of image classes, and what their margin is made of."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from posse.lab.results import errors_by_rounds, final_rounds
from posse.numerics.checks import Array
from posse.paper.claims import Claim, Evidence, extremes, signed_claim, simultaneous

RANKS = (1, 2, 5, 10)


def beats_naive(table: pl.DataFrame) -> Claim:
    """Decide "our algorithm significantly outperforms the naive algorithm for all k"."""
    evidence = _saved(table, "naive")
    n_tasks = _n_tasks(table)
    same = f" With k = T = {n_tasks} the rank is no restriction and the two are one: that k is left out."
    return signed_claim(
        evidence,
        1,
        statement="MLinGreedy beats the naive algorithm for every k.",
        source="paper",
        measure="regret per task of NaiveGreedy minus that of MLinGreedy",
        reading=extremes("MLinGreedy saves", evidence) + (same if n_tasks in RANKS else ""),
    )


def advantage_does_not_shrink(table: pl.DataFrame) -> Claim:
    """Decide "the advantage of our algorithm does not decrease as we increase k", step by step."""
    regrets = _by_policy(final_rounds(table))
    steps = {
        f"k = {small} to {large}": regrets[f"mlingreedy-{small}"] - regrets[f"mlingreedy-{large}"]
        for small, large in pairwise(_ranks(table))
    }
    evidence = simultaneous(steps)
    return signed_claim(
        evidence,
        1,
        statement="The advantage of MLinGreedy over the naive algorithm does not shrink as k grows.",
        source="paper",
        measure="change of the advantage in regret per task from one k to the next",
        reading=extremes("From one k to the next the advantage changes by", evidence),
    )


def beats_ridge(table: pl.DataFrame) -> Claim:
    """Decide whether MLinGreedy also beats tasks alone that keep their data and a penalty."""
    evidence = _saved(table, "independent-epochs")
    return signed_claim(
        evidence,
        1,
        statement="For every k MLinGreedy also beats tasks played alone, in the same epochs, with ridge and "
        "all their data.",
        source="posse",
        measure="regret per task of IndependentGreedy in the paper's epochs minus that of MLinGreedy",
        reading=extremes("MLinGreedy saves", evidence),
    )


def greedy_is_trapped(table: pl.DataFrame) -> Claim:
    """Decide whether frequent updates without exploration do harm."""
    regrets = _by_policy(final_rounds(table))
    often, seldom = regrets["independent-greedy"], regrets["independent-epochs"]
    evidence = simultaneous({"frequent updates minus the paper's epochs": often - seldom})
    return signed_claim(
        evidence,
        1,
        statement="Greedy play that re-estimates often from its first rounds on is trapped: its regret is "
        "larger than with the paper's few, long epochs.",
        source="posse",
        measure="regret per task of IndependentGreedy minus that of the same in the paper's epochs",
        reading=f"Regret per task is {often.mean():.0f} with frequent updates and {seldom.mean():.0f} with "
        "the paper's epochs. Ties are broken at random here: who has not been paid yet tries both classes.",
    )


def interpolation_peak(table: pl.DataFrame, *, dim: int) -> Claim:
    """Decide whether least squares without a ridge gets worse with more data, up to about n = d."""
    curve = _errors(table, "commit-exact")
    few, *others = curve
    evidence = simultaneous({f"n = {few} to {n}": 100 * (curve[n] - curve[few]) for n in others})
    signs = [item.sign for item in evidence]
    worst = max(others, key=lambda n: float(curve[n].mean()))
    ridge = _errors(table, "commit-naive")[worst].mean()
    return Claim(
        statement="With more random rounds to learn from, least squares without a ridge at first gets worse: "
        "it has a peak of interpolation.",
        source="posse",
        measure="rise of the share of wrong choices, in percentage points; one rise is enough",
        verdict="holds" if 1 in signs else "fails" if signs.count(-1) == len(signs) else "undecided",
        tally=(signs.count(1), signs.count(-1)),
        reading=f"It chooses wrongly in {curve[few].mean():.1%} after {few} rounds and in "
        f"{curve[worst].mean():.1%} after {worst}, with {dim} features. A small ridge makes it {ridge:.1%}.",
        evidence=evidence,
    )


def one_sided_rounds(table: pl.DataFrame, *, dim: int) -> Claim:
    """Decide whether the baseline fails by learning from its own choices alone."""
    random, own, both, shared = (
        _errors(table, name)
        for name in ("commit-naive", "relearn-naive", "relearn-all", "relearn-mlingreedy")
    )
    near = min(own, key=lambda n: abs(n - 1.15 * dim))
    evidence = simultaneous({f"own minus random rounds, n = {near}": 100 * (own[near] - random[near])})
    return signed_claim(
        evidence,
        1,
        statement="The naive algorithm fails because it learns from its own greedy choices alone: the same "
        "least squares, from about as many random rounds, does not.",
        source="posse",
        measure="share of wrong choices after learning from its own greedy rounds minus that after random "
        "rounds, in percentage points",
        reading=f"After {near} rounds it chooses wrongly in {own[near].mean():.1%} having learned from its "
        f"own greedy rounds, whose rewards are nearly all 1, but in {random[near].mean():.1%} from random "
        f"ones, and in {both[near].mean():.1%} if the {dim // 8} random rounds before are not forgotten. "
        f"Low-rank least squares, which shares, has {shared[near].mean():.1%} from its own greedy rounds.",
    )


def _errors(table: pl.DataFrame, policy: str) -> dict[int, Array]:
    """Return the share of wrong choices by round of the last estimate, in order of seeds."""
    rows = errors_by_rounds(table).filter(pl.col("policy") == policy).sort("explore", "seed")
    return {n: group["error"].to_numpy() for (n,), group in rows.group_by("explore", maintain_order=True)}


def _saved(table: pl.DataFrame, baseline: str) -> tuple[Evidence, ...]:
    regrets = _by_policy(final_rounds(table))
    return simultaneous({f"k = {k}": regrets[baseline] - regrets[f"mlingreedy-{k}"] for k in _ranks(table)})


def _n_tasks(table: pl.DataFrame) -> int:
    n_classes = int(table["n_classes"][0])
    return n_classes * (n_classes - 1) // 2


def _ranks(table: pl.DataFrame) -> list[int]:
    """Return the ranks that restrict: with k = T, low-rank least squares is least squares."""
    return [k for k in RANKS if k < _n_tasks(table)]


def _by_policy(rows: pl.DataFrame) -> dict[str, Array]:
    """Return each policy's regret, in order of seeds."""
    return {
        str(policy): group.sort("seed")["regret_per_task"].to_numpy()
        for (policy,), group in rows.group_by("policy", maintain_order=True)
    }
