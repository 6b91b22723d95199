"""Theory beside practice: exponents of made-up power laws, verdicts on tables whose truth is known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from posse.lab.engines import Workers
from posse.lab.grid import play_seeds
from posse.paper import bounds, guarantees, scaling, theory
from posse.paper.exponents import Sweep, exponent_table, power, range_claim, with_interval
from posse.paper.guarantees import Guarantees, Sizes
from posse.paper.registry import DEFAULT, figures_named
from posse.paper.registry import FIGURES as NAMED
from posse.paper.reproduce import reproduce
from tables import FIGURES, experiment_of

Law = Callable[[str, dict[str, int]], float]


EXPONENTS = {"horizon": 0.4, "n_tasks": -0.3, "dim": 0.7, "rank": 0.6}


def make_table(name: str, law: Law, seeds: int = 5, noise: float = 0.01, draw: int = 0) -> pl.DataFrame:
    """Return final rows of a figure's cells, with regrets by a law and noise that multiplies them."""
    rng = np.random.default_rng(draw)
    experiment = experiment_of(FIGURES[name])
    rows = []
    for cell in experiment.cells:
        horizon = cell.get("horizon", experiment.horizon)
        sizes = {**cell, "horizon": horizon}
        for seed in range(seeds):
            for policy in experiment.names:
                regret = law(policy, sizes) * np.exp(noise * rng.standard_normal())
                own = {"seed": seed, "policy": policy, "round": horizon, "regret_per_task": regret}
                rows.append({**sizes, **own})
    return pl.DataFrame(rows)


def theorem(policy: str, cell: dict[str, int]) -> float:
    """The sum of Theorem 1's terms per task, times 3."""
    setting = theory.Setting(**{size: cell[size] for size in theory.SIZES})
    return 3 * theory.finite_upper(setting).value / setting.n_tasks


def powers(policy: str, cell: dict[str, int]) -> float:
    return float(7 * np.prod([cell[name] ** exponent for name, exponent in EXPONENTS.items()]))


def test_exponents_of_power_laws_are_found_exactly() -> None:
    table = make_table("scaling", powers, noise=0.0)
    for sweep in scaling.FINITE:
        assert_allclose(sweep.exponents(table, "mlingreedy"), EXPONENTS[sweep.along], atol=1e-12)
    assert power(np.array([1.0, 10.0, 1000.0]), 5 * np.array([1.0, 10.0, 1000.0]) ** -1.5) == pytest.approx(
        -1.5
    )


def test_intervals_cover_the_exponent_nineteen_times_in_twenty() -> None:
    """300 intervals that should cover with probability 0.95: fewer than 270 do with probability 0.001."""
    covered = []
    wanted = pl.col("along").replace_strict(EXPONENTS)
    for draw in range(20):
        table = make_table("scaling", powers, noise=0.1, draw=draw)
        policies = experiment_of(FIGURES["scaling"]).names
        found = exponent_table(table, scaling.FINITE, policies, theory.finite_upper)
        covered += found.select(wanted.is_between("ci_low", "ci_high")).to_series().to_list()
    assert len(covered) == 300
    assert sum(covered) >= 270


def test_the_theorem_bends_between_the_exponents_of_its_terms() -> None:
    for sweep in scaling.FINITE:
        low, high = sorted(sweep.term_exponents(theory.finite_upper))
        assert low - 1e-9 <= sweep.predicted_exponent(theory.finite_upper) <= high + 1e-9
    assert scaling.TASKS.term_exponents(theory.finite_upper) == (0.0, -0.5)
    assert scaling.SPHERE[2].term_exponents(theory.infinite_upper) == (1.5, 0.0)
    table = make_table("scaling", theorem, noise=0.0)
    assert_allclose(
        scaling.TASKS.exponents(table, "mlingreedy"), scaling.TASKS.predicted_exponent(theory.finite_upper)
    )


def test_a_sweep_takes_its_own_cells_alone() -> None:
    sweep = Sweep("n_tasks", (10, 50), {"horizon": 10_000, "dim": 20, "rank": 2})
    rows = sweep.of(make_table("scaling", powers, seeds=2))
    assert sorted(set(rows["n_tasks"])) == [10, 50]
    assert set(rows["rank"]) == {2}
    assert rows.height == 2 * 2 * 3
    assert sweep.title == "T, at N = 10,000, d = 20, k = 2"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.5, 0.51, 0.49], "holds"),
        ([0.9, 0.91, 0.89], "fails"),
        ([0.64, 0.66, 0.65], "undecided"),
        ([0.5], "undecided"),
    ],
)
def test_ranges(values: list[float], verdict: str) -> None:
    claim = range_claim({"here": np.array(values)}, 0.35, 0.65, statement="", measure="", reading="")
    assert claim.verdict == verdict


def test_with_interval() -> None:
    assert with_interval(np.array([1.0, 2.0, 3.0])) == "2.00 ± 2.48"
    assert with_interval(np.array([1.0, 1.001, 1.002])) == "1.001 ± 0.002"
    assert with_interval(np.array([1.0])) == "1.00"


def test_claims_of_scaling_are_decided_by_their_truth() -> None:
    right = make_table("scaling", theorem)
    wrong = make_table(
        "scaling", lambda policy, cell: cell["horizon"] * cell["n_tasks"] * cell["rank"] ** 2.0
    )
    for decide in FIGURES["scaling"].claims:
        assert decide(right).verdict == "holds"
        assert decide(wrong).verdict == "fails"
        assert decide(right.filter(pl.col("seed") == 0)).verdict == "undecided"

    def slow(policy: str, cell: dict[str, int]) -> float:
        return float(cell["horizon"] ** (0.1 if policy == "shared-greedy" else 0.3))

    assert scaling.posse_grows_slower(make_table("scaling_shared", slow)).verdict == "holds"
    assert scaling.posse_grows_slower(make_table("scaling_shared", powers)).verdict != "holds"

    def e2tc(policy: str, cell: dict[str, int]) -> float:
        if policy == "e2tc(subspace=spectral)":
            learning = cell["dim"] * (cell["rank"] * cell["horizon"] / cell["n_tasks"]) ** 0.5
            return float(learning + cell["rank"] * cell["horizon"] ** 0.5)
        return float(cell["rank"] * cell["horizon"] ** 0.5 * (1 + 30 / cell["n_tasks"] ** 0.5))

    for decide in FIGURES["scaling_sphere"].claims:
        assert decide(make_table("scaling_sphere", e2tc)).verdict == "holds"
        upside_down = make_table("scaling_sphere", lambda policy, cell: 1e9 / e2tc(policy, cell))
        assert decide(upside_down).verdict == "fails"


def test_claims_of_bounds_are_decided_by_their_truth() -> None:
    def above(policy: str, cell: dict[str, int]) -> float:
        return 1e5 * {"naive": 3.0, "independent-greedy": 2.0}.get(policy, 1.0)

    for name in ("bounds", "bounds_sphere"):
        for decide in FIGURES[name].claims:
            assert decide(make_table(name, above)).verdict == "holds"
            assert (
                decide(make_table(name, lambda policy, cell: 1e-9 / above(policy, cell))).verdict == "fails"
            )
    limits = bounds.lower_bounds(make_table("bounds_sphere", above), theory.infinite_lower, 1e-4)
    row = limits.filter(pl.col("n_tasks") == 100, pl.col("structure") == "half-axes").row(0, named=True)
    assert_allclose(row["terms"], [1e-4 * 10 * np.sqrt(2 * 1e4 / 100), 1e-4 * 2 * 100])


SMALL = Guarantees(
    predicted=Sizes(dim=5, rank=1, n_tasks=(4, 8), rounds=(20, 40)),
    represented=Sizes(dim=5, rank=1, n_tasks=(4, 8), rounds=(4000, 8000)),
)


def guarantee_table(in_sample: float, sine: float, seeds: int = 5) -> pl.DataFrame:
    """Return errors that are powers: of T and n relative to the bound, and of N_1 T."""
    rng = np.random.default_rng(0)
    rows = []
    for cell in Guarantees().cells:
        samples = cell["n_tasks"] * cell["rounds"]
        predicted = cell["measure"] == guarantees.IN_SAMPLE
        law = (100 * samples**in_sample, 100.0) if predicted else (20 * samples**sine, 0.5)
        for seed in range(seeds):
            for name in ("low-rank", "alone") if predicted else guarantees.SUBSPACES:
                error = law[0] * np.exp(0.01 * rng.standard_normal())
                rows.append({**cell, "seed": seed, "estimator": name, "error": error, "bound": law[1]})
    return pl.DataFrame(rows)


def test_claims_of_guarantees_are_decided_by_their_truth() -> None:
    in_sample, sine = FIGURES["guarantees"].claims
    assert in_sample(guarantee_table(-0.1, -0.5)).verdict == "holds"
    assert in_sample(guarantee_table(0.1, -0.5)).verdict == "fails"
    assert in_sample(guarantee_table(0.0, -0.5)).verdict == "undecided"
    assert sine(guarantee_table(-0.1, -0.5)).verdict == "holds"
    assert sine(guarantee_table(-0.1, -0.9)).verdict == "fails"
    assert sine(guarantee_table(-0.1, -0.5, seeds=1)).verdict == "undecided"
    assert_allclose(guarantees.sine_exponents(guarantee_table(0.0, -0.5), "pairs"), -0.5, atol=0.02)
    left, right = guarantees.errors_chart(guarantee_table(-0.1, -0.5, seeds=1)).panels
    assert {series.label for series in left.series} == {
        f"{label}, T = {n_tasks}" for label in ("low-rank", "alone") for n_tasks in (20, 60, 200)
    }
    assert [series.label for series in right.series][-1] == "bound of the moments"


def test_errors_are_measured_as_they_are_defined() -> None:
    table = play_seeds(SMALL, seeds=1)
    assert table.height == 4 * 2 + 4 * 3
    sines = table.filter(pl.col("measure") == guarantees.SINE)
    assert sines["error"].is_between(0.0, 1.0).all()
    errors = table.filter(pl.col("measure") == guarantees.IN_SAMPLE).pivot(
        "estimator", index=["n_tasks", "rounds"], values="error"
    )
    # of least squares alone it is chi-squared with T d degrees of freedom
    assert (errors["alone"] / (5 * errors["n_tasks"])).is_between(0.1, 3.0).all()
    assert (errors["low-rank"] < errors["alone"]).all()
    again = play_seeds(SMALL, seeds=1, workers=Workers(jobs=2))
    assert table.drop("seconds").equals(again.drop("seconds"))


def test_guarantees_are_a_figure_like_others(tmp_path: Path) -> None:
    figure = guarantees.figure(SMALL)
    progress: list[tuple[int, int]] = []
    reproduce([figure], seeds=1, out=tmp_path, known=())
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("guarantees/runs/*.parquet")}
    report = reproduce(
        [figure],
        seeds=2,
        out=tmp_path,
        known=(),
        on_progress=lambda state: progress.append((state.runs, state.total_runs)),
    )
    assert progress == [(done, 16) for done in range(8, 17)]
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert {path.name for path in (tmp_path / "guarantees").iterdir()} == {
        "runs", "results.parquet", "manifest.json", "errors.png", "errors.svg",
    }  # fmt: skip
    assert [claim.source for claim in report.claims["guarantees"]] == ["paper", "paper"]
    assert "posse reproduce guarantees --seeds 2" in report.path.read_text()


def test_ours_are_run_by_name_and_not_otherwise() -> None:
    assert {"scaling", "bounds", "guarantees", "armul", "boss"} == set(NAMED) - set(DEFAULT)
    names = [figure.name for figure in figures_named(("scaling", "bounds", "guarantees", "scaling"))]
    expected = ["scaling", "scaling_shared", "scaling_sphere", "bounds", "bounds_sphere", "guarantees"]
    assert names == expected
    for name in names:
        assert FIGURES[name].command[0] == name.partition("_")[0]
    with pytest.raises(ValueError, match=r"Got 'scalling'. Did you mean 'scaling'\? Known are fig1,"):
        figures_named(("scalling",))


def test_a_figure_of_sweeps_draws_what_is_there() -> None:
    sweep = Sweep("horizon", (30, 60), {"n_tasks": 3, "dim": 4, "rank": 1})
    study = replace(experiment_of(FIGURES["scaling_shared"]), cells=sweep.cells)
    table = play_seeds(study, seeds=2)
    chart = scaling.size_chart(
        table, "title", sweeps=(sweep,), policies=study.names, bound=theory.finite_upper
    )
    (panel,) = chart.panels
    assert panel.title == "N, at T = 3, d = 4, k = 1"
    assert [series.label for series in panel.series] == [
        "SharedGreedy", "MLinGreedy", "OracleGreedy", "Theorem 1, one constant",
    ]  # fmt: skip
    assert panel.note.startswith("exponent of N")
