"""Verdicts on tables whose truth is known."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from posse.paper import figures_5_6 as sphere
from posse.paper.claims import final_regrets
from posse.paper.figures_1_2 import (
    advantage_grows_with_tasks,
    advantage_shrinks_with_rank,
    posse_beats_paper,
    stronger_baseline,
)

Advantage = Callable[[int, int], float]


def make_table(
    advantage: Advantage, alone: float = 200.0, ours: float = 100.0, seeds: int = 6, noise: float = 1.0
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
                    "shared-greedy": ours + common,
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


@pytest.mark.parametrize(("ours", "verdict"), [(100.0, "holds"), (150.0, "undecided"), (180.0, "fails")])
def test_posse_beside_the_paper(ours: float, verdict: str) -> None:
    claim = posse_beats_paper(make_table(lambda k, T: 250.0, ours=ours, noise=0.5))
    assert (claim.verdict, claim.source) == (verdict, "posse")
    assert f"its regret is {1 - ours / 150:.0%} below MLinGreedy's" in claim.reading


Regret = Callable[[str, int], float]
TASKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def sphere_table(regret: Regret, rank: int = 2, seeds: int = 5, noise: float = 0.1) -> pl.DataFrame:
    rng = np.random.default_rng(rank)
    policies = (
        "e2tc(exponent=0.5)",
        "e2tc(exponent=1)",
        "e2tc",
        "e2tc(exponent=2)",
        "e2tc(subspace=spectral)",
        "pege",
    )
    rows = [
        (rank, n_tasks, seed, policy, 10, 10, regret(policy, n_tasks) + noise * rng.standard_normal())
        for n_tasks in TASKS
        for seed in range(seeds)
        for policy in policies
    ]
    names = ["rank", "n_tasks", "seed", "policy", "round", "horizon", "regret_per_task"]
    return pl.DataFrame(rows, schema=names, orient="row")


def like_the_paper(policy: str, n_tasks: int) -> float:
    if policy == "pege":
        return 1800.0
    start = {
        "e2tc(exponent=0.5)": 9000,
        "e2tc(exponent=1)": 8000,
        "e2tc": 6000,
        "e2tc(exponent=2)": 12_000,
        "e2tc(subspace=spectral)": 3000,
    }[policy]
    return float(250 + start / np.sqrt(n_tasks))


def upside_down(policy: str, n_tasks: int) -> float:
    return 6000.0 - like_the_paper(policy, n_tasks)


def test_claims_of_the_sphere_are_decided_by_their_truth() -> None:
    decisions = (
        sphere.regret_falls_with_tasks,
        sphere.regret_flattens,
        sphere.few_tasks_lose,
        sphere.spectral_lowers_regret,
    )
    for decide in decisions:
        assert decide(sphere_table(like_the_paper)).verdict == "holds"
        assert decide(sphere_table(upside_down)).verdict == "fails"
        assert decide(sphere_table(like_the_paper, seeds=1)).verdict == "undecided"
    falls = sphere.regret_falls_with_tasks(sphere_table(lambda policy, T: -7.0 * np.log2(T)))
    assert [item.estimate for item in falls.evidence] == pytest.approx([-7.0] * 4, abs=0.1)
    loses = sphere.few_tasks_lose(sphere_table(like_the_paper))
    assert loses.evidence[2].estimate == pytest.approx(250 + 6000 / np.sqrt(10) - 1800, abs=0.3)
    best = sphere.best_exponent(sphere_table(like_the_paper))
    assert best.verdict == "holds"

    def swapped(policy: str, n_tasks: int) -> float:
        return like_the_paper(
            {"e2tc": "e2tc(exponent=2)", "e2tc(exponent=2)": "e2tc"}.get(policy, policy), n_tasks
        )

    assert sphere.best_exponent(sphere_table(swapped)).verdict == "fails"
    assert "At 9 of 9 values of T" in best.reading
    saved = sphere.spectral_lowers_regret(sphere_table(like_the_paper))
    assert saved.tally == (9, 0)
    assert [item.where for item in saved.evidence][:2] == ["T = 10", "T = 20"]


@pytest.mark.parametrize("noise", [0.0, 0.1, 5.0])
def test_help_is_bounded_only_where_the_curve_levels_off(noise: float) -> None:
    """A curve that falls like 1 / sqrt(T) for ever fails; what levels off is found with its level."""

    def for_ever(policy: str, n_tasks: int) -> float:
        return float(12_000 / np.sqrt(n_tasks))

    assert sphere.regret_flattens(sphere_table(for_ever, noise=noise)).verdict == "fails"
    flat = sphere.regret_flattens(sphere_table(like_the_paper, noise=noise))
    assert flat.verdict == "holds"
    points = np.array(TASKS, dtype=float)
    levels, falls, worst = sphere.levels_off(points, (250 + 6000 / np.sqrt(points))[None])
    assert (levels[0], falls[0]) == pytest.approx((250.0, 6000.0))
    assert worst < 1e-9
    if noise < 1:
        assert "levels off at a = 250" in flat.reading
    assert sphere.regret_flattens(sphere_table(like_the_paper, seeds=1)).verdict == "undecided"


def test_claims_across_ranks() -> None:
    def worse(policy: str, n_tasks: int) -> float:
        return like_the_paper(policy, n_tasks) * (1.0 if policy == "pege" else 1.5)

    tables = {"fig6": sphere_table(like_the_paper, rank=2), "fig5": sphere_table(worse, rank=3)}
    assert sphere.larger_for_smaller_rank(tables).verdict == "holds"
    assert sphere.pege_ignores_rank(tables).verdict == "holds"
    swapped = {"fig6": tables["fig5"], "fig5": tables["fig6"]}
    assert sphere.larger_for_smaller_rank(swapped).verdict == "fails"


@pytest.mark.parametrize(
    ("shift", "noise", "expected"),
    [(0.0, 1.0, "holds"), (10.0, 1.0, "holds"), (200.0, 1.0, "fails"), (0.0, 200.0, "undecided")],
)
def test_no_difference_is_a_claim_that_must_be_shown(shift: float, noise: float, expected: str) -> None:
    tables = {
        "fig6": sphere_table(like_the_paper, rank=2, noise=noise),
        "fig5": sphere_table(lambda policy, T: like_the_paper(policy, T) + shift, rank=3, noise=noise),
    }
    assert sphere.pege_ignores_rank(tables).verdict == expected


def test_the_tasks_that_it_takes_to_win() -> None:
    """A curve that crosses PEGE halfway between T = 20 and T = 50 on the logarithmic scale."""

    def crossing(policy: str, n_tasks: int) -> float:
        height = {"e2tc(exponent=2)": 1e9, "e2tc(exponent=0.5)": -1e9}.get(policy, 0.0)
        return 100.0 if policy == "pege" else 100.0 + height - (np.log2(n_tasks) - np.log2(np.sqrt(20 * 50)))

    regrets = final_regrets(sphere_table(crossing, noise=0.0))
    assert sphere.doublings_to_win(regrets, "e2tc") == pytest.approx([np.log2(np.sqrt(1000))] * 5)
    assert sphere.doublings_to_win(regrets, "e2tc(exponent=2)") == pytest.approx([np.log2(5000)] * 5)
    assert sphere.doublings_to_win(regrets, "e2tc(exponent=0.5)") == pytest.approx([np.log2(10)] * 5)
