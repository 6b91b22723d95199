"""Verdicts on tables whose truth is known."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from posse.experiments.finite_claims import (
    advantage_grows_with_tasks,
    advantage_shrinks_with_rank,
    stronger_baseline,
)

Advantage = Callable[[int, int], float]


def make_table(
    advantage: Advantage, alone: float = 200.0, seeds: int = 6, noise: float = 1.0
) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for rank in (2, 3, 5):
        for n_tasks in (10, 20, 40):
            for seed in range(seeds):
                common = rng.normal(0, 50)  # what a seed does to all policies cancels in a paired contrast
                final = {
                    "naive": 400.0 + common,
                    "mlingreedy": 400.0 + common - advantage(rank, n_tasks) + noise * rng.standard_normal(),
                    "independent-greedy": alone + common,
                }
                for policy, regret in final.items():
                    for moment, share in ((5, 0.5), (10, 1.0)):
                        rows.append((rank, n_tasks, seed, policy, moment, 10, share * regret))
    names = ["rank", "n_tasks", "seed", "policy", "round", "horizon", "regret_per_task"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_true_claims_hold_with_the_right_numbers() -> None:
    table = make_table(lambda k, T: 30 * np.log2(T) - 10 * k, noise=1e-6)
    grows, shrinks = advantage_grows_with_tasks(table), advantage_shrinks_with_rank(table)
    assert (grows.verdict, shrinks.verdict) == ("holds", "holds")
    assert [e.where for e in grows.evidence] == ["k = 2", "k = 3", "k = 5"]
    assert [e.estimate for e in grows.evidence] == pytest.approx([30.0] * 3, abs=1e-4)
    assert [e.estimate for e in shrinks.evidence] == pytest.approx([-10.0] * 3, abs=1e-4)


def test_false_claims_fail() -> None:
    table = make_table(lambda k, T: -30 * np.log2(T) + 10 * k)
    assert advantage_grows_with_tasks(table).verdict == "fails"
    assert advantage_shrinks_with_rank(table).verdict == "fails"


def test_one_bad_rank_is_enough_to_fail() -> None:
    table = make_table(lambda k, T: (-30 if k == 5 else 30) * np.log2(T))
    assert advantage_grows_with_tasks(table).verdict == "fails"


def test_noise_is_undecided_and_so_is_one_seed() -> None:
    assert advantage_grows_with_tasks(make_table(lambda k, T: 0.0, noise=20)).verdict == "undecided"
    claim = advantage_grows_with_tasks(make_table(lambda k, T: 30 * np.log2(T), seeds=1))
    assert claim.verdict == "undecided"
    assert claim.evidence[0].ci_low is None


def test_a_claim_on_the_boundary_is_called_wrongly_in_at_most_five_percent() -> None:
    """No trend, 300 tables, one fixed seed: a right rule decides more than 8 % with probability 0.01."""
    rng = np.random.default_rng(0)
    base = make_table(lambda k, T: 0.0, noise=0.0)
    decided = 0
    for _ in range(300):
        jitter = pl.Series(rng.standard_normal(base.height))
        table = base.with_columns(pl.col("regret_per_task") + jitter)
        decided += advantage_grows_with_tasks(table).verdict != "undecided"
    assert decided <= 24


def test_the_stronger_baseline_is_counted_cell_by_cell() -> None:
    claim = stronger_baseline(make_table(lambda k, T: 250.0 if T > 10 else 150.0, noise=0.1))
    assert claim.verdict == "fails"
    assert claim.source == "posse"
    assert claim.tally == (6, 3)
    assert "its regret is 54% below the naive algorithm's, and 8% below" in claim.reading
    assert "Of 9 cells MLinGreedy wins 6, loses 3 and is level within the intervals in 0." in claim.reading
    assert stronger_baseline(make_table(lambda k, T: 250.0)).verdict == "holds"
