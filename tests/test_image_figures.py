"""Figures 3 and 4 and what their margin is made of: settings, claims, pictures, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from posse import NaiveGreedy
from posse.cli import app
from posse.lab.experiment import Experiment
from posse.lab.grid import play_seeds
from posse.lab.registry import draw_problem
from posse.paper.claims import Claim
from posse.paper.figures_3_4 import (
    advantage_does_not_shrink,
    beats_naive,
    beats_ridge,
    greedy_is_trapped,
    regret_by_rank,
    variant,
)
from posse.paper.margin import error_by_rounds, errors_by_rounds, interpolation_peak, one_sided_rounds
from posse.paper.reproduce import reproduce
from posse.viz.chart import Chart, Series
from tables import FIGURES, experiment_of

SEEDS = 6


def final_table(regrets: dict[str, float]) -> pl.DataFrame:
    """Return final regrets that differ between seeds by the same amount for all policies."""
    return pl.DataFrame(
        [
            (5, 10_000, seed, policy, 10_000, regret + seed + 0.1 * (seed * place % 3))
            for seed in range(SEEDS)
            for place, (policy, regret) in enumerate(regrets.items())
        ],
        schema=["n_classes", "horizon", "seed", "policy", "round", "regret_per_task"],
        orient="row",
    )


def error_table(errors: dict[str, dict[int, float]], horizon: int = 1000) -> pl.DataFrame:
    """Return regrets in which a policy errs at a known rate after round `explore`."""
    rows = []
    for policy, by_rounds in errors.items():
        for n, error in by_rounds.items():
            for seed in range(SEEDS):
                after = (error + 0.001 * seed) * (horizon - n)
                rows += [
                    (n, horizon, seed, policy, n, n / 2),
                    (n, horizon, seed, policy, horizon, n / 2 + after),
                ]
    schema = ["explore", "horizon", "seed", "policy", "round", "regret_per_task"]
    return pl.DataFrame(rows, schema=schema, orient="row")


REGRETS = {
    "mlingreedy(rank=1)": 1500.0,
    "mlingreedy(rank=2)": 800.0,
    "mlingreedy(rank=5)": 300.0,
    "mlingreedy(rank=10)": 400.0,
    "naive": 500.0,
    "independent-greedy(schedule=epochs)": 100.0,
    "independent-greedy": 70.0,
}
ERRORS = {
    "commit(penalty=0)": {100: 0.01, 400: 0.3, 900: 0.04},
    "commit": {100: 0.01, 400: 0.02, 900: 0.006},
    "relearn": {100: 0.01, 400: 0.2, 900: 0.15},
    "relearn(estimator=low-rank)": {100: 0.01, 400: 0.1, 900: 0.08},
    "relearn(memory=all)": {100: 0.01, 400: 0.02, 900: 0.015},
}


def estimates(claim: Claim) -> dict[str, float]:
    return {item.where: item.estimate for item in claim.evidence}


def test_claims_about_regret_are_decided_by_the_contrasts_they_name() -> None:
    table = final_table(REGRETS)
    beats = beats_naive(table)
    assert beats.verdict == "fails"
    assert beats.tally == (1, 2)
    assert_allclose(list(estimates(beats).values()), [-1000, -300, 200], atol=1.0)
    assert "k = T = 10" in beats.reading
    grows = advantage_does_not_shrink(table)
    assert grows.verdict == "holds"
    assert_allclose(list(estimates(grows).values()), [700, 500], atol=1.0)
    assert beats_ridge(table).tally == (0, 3)
    many = table.with_columns(n_classes=pl.lit(10))  # 45 tasks: k = 10 restricts, too
    assert beats_naive(many).tally == (2, 2)
    assert advantage_does_not_shrink(many).verdict == "fails"
    assert_allclose(list(estimates(advantage_does_not_shrink(many)).values()), [700, 500, -100], atol=1.0)
    trapped = greedy_is_trapped(table)
    assert trapped.verdict == "fails"
    assert_allclose(trapped.evidence[0].estimate, -30, atol=1.0)


def test_claims_hold_when_the_runs_say_so() -> None:
    better = {f"mlingreedy(rank={k})": 90.0 - k for k in (1, 2, 5, 10)}
    table = final_table({**REGRETS, **better, "independent-greedy": 3000.0})
    for decide in (beats_naive, advantage_does_not_shrink, beats_ridge, greedy_is_trapped):
        assert decide(table).verdict == "holds"


def test_claims_about_errors() -> None:
    table = error_table(ERRORS)
    peak = interpolation_peak(table, dim=784)
    assert peak.verdict == "holds"
    assert estimates(peak) == pytest.approx({"n = 100 to 400": 29.0, "n = 100 to 900": 3.0}, abs=0.1)
    sided = one_sided_rounds(table, dim=784)
    assert sided.verdict == "holds"
    assert estimates(sided) == pytest.approx({"own minus random rounds, n = 900": 14.4}, abs=0.1)
    flat = {policy: dict.fromkeys((100, 400, 900), 0.01) for policy in ERRORS}
    assert one_sided_rounds(error_table(flat), dim=784).verdict == "undecided"
    falling = {**flat, "commit(penalty=0)": {100: 0.05, 400: 0.02, 900: 0.01}}
    assert interpolation_peak(error_table(falling), dim=784).verdict == "fails"
    risen = {**flat, "commit(penalty=0)": {100: 0.02, 400: 0.3, 900: 0.01}}
    assert interpolation_peak(error_table(risen), dim=784).verdict == "holds"


def test_errors_are_counted_after_the_last_estimate_only() -> None:
    errors = errors_by_rounds(error_table(ERRORS)).filter(pl.col("seed") == 0)
    found = {(row["policy"], row["explore"]): row["error"] for row in errors.to_dicts()}
    expected = {(policy, n): error for policy, curve in ERRORS.items() for n, error in curve.items()}
    assert found == pytest.approx(expected)


def series_of(chart: Chart) -> dict[str, Series]:
    (panel,) = chart.panels
    return {series.label: series for series in panel.series}


def test_the_pictures_show_the_table() -> None:
    mean = 2.5 + 0.1 * np.mean([seed * place % 3 for seed in range(SEEDS) for place in [0]])
    chart = regret_by_rank(final_table(REGRETS), "title")
    curves = series_of(chart)
    assert list(curves) == ["MLinGreedy", "NaiveGreedy", "IndependentGreedy", "IndependentGreedy, epochs"]
    assert curves["MLinGreedy"].x == (1, 2, 5, 10)
    assert_allclose(curves["MLinGreedy"].y, np.array([1500, 800, 300, 400]) + mean, atol=0.2)
    assert chart.panels[0].x.ticks == (1, 2, 5, 10)
    level = curves["NaiveGreedy"]
    assert (level.kind, level.x) == ("line", (1, 10))
    assert_allclose(level.y, 500 + mean, atol=0.2)
    chart = error_by_rounds(error_table(ERRORS), "title", dim=784)
    exact = series_of(chart)["from random rounds, no ridge"]
    assert exact.x == (100, 400, 900)
    assert_allclose(exact.y, 100 * (np.array([0.01, 0.3, 0.04]) + 0.0025))
    assert chart.panels[0].line == (784, "n = d = 784")
    assert chart.panels[0].y.scale == "symlog"


def test_the_figures_are_the_papers() -> None:
    for name, n_classes in (("fig3", 5), ("fig4", 10)):
        for images in ("mnist", "digits", "fashion"):
            experiment = experiment_of(FIGURES[variant(name, images)])
            assert experiment.problem == experiment.images == images
            assert experiment.horizon == 10_000
            assert experiment.cells == ({"n_classes": n_classes, "scaling": "norm"},)
            assert {f"mlingreedy(rank={k})" for k in (1, 2, 5, 10)} | {"naive"} <= set(experiment.names)
    assert variant("fig3", "mnist") == "fig3"
    assert variant("fig3", "digits") == "fig3_digits"


def test_policies_too_large_to_play_together_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"n_classes": 3, "scaling": "norm", "explore": 37}
    policies = ("commit", "relearn(memory=all)", "independent-greedy(schedule=epochs)")
    experiment = Experiment(name="small", problem="digits", cells=(cell,), policies=policies, horizon=200)
    together = experiment.play(cell, 0)
    assert {14, 200, 37} <= set(together["round"])  # 14 = 200^(1/2), the end of the first epoch
    monkeypatch.setattr("posse.lab.experiment.STATISTICS_VALUES", 1)
    alone = experiment.play(cell, 0)
    assert together.drop("seconds").equals(alone.drop("seconds"))


def test_options_come_from_the_experiment_the_cell_and_the_problem_in_that_order() -> None:
    cell = {"n_classes": 3, "scaling": "norm"}
    experiment = Experiment(name="small", problem="digits", cells=(cell,), policies=("naive",), horizon=200)
    problem = experiment.draw(cell, 0)
    told = replace(experiment, options={"penalty": 0.5})
    celled = {**cell, "penalty": 0.25}
    for some, own, penalty in ((experiment, cell, 1e-3), (told, cell, 0.5), (experiment, celled, 0.25)):
        assert some.build(own, problem)["naive"] == NaiveGreedy(penalty=penalty)


def test_learning_on_images_beats_guessing() -> None:
    cell = {"n_classes": 4, "scaling": "norm"}
    policies = ("independent-greedy", "random")
    experiment = Experiment(name="small", problem="digits", cells=(cell,), policies=policies, horizon=400)
    final = play_seeds(experiment, seeds=2).filter(pl.col("round") == 400)
    regrets = dict(final.group_by("policy").agg(pl.col("regret_per_task").mean()).iter_rows())
    # 2 seeds x 6 tasks x 400 rounds of a fair coin: 8 standard deviations are 8 * 0.5 / sqrt(4800) * 400
    assert abs(regrets["random"] - 200) < 8 * 0.5 / np.sqrt(4800) * 400
    assert regrets["independent-greedy"] < 40


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_simulate_on_images() -> None:
    code, out, err = run(
        "simulate", "--problem", "digits", "--classes", "3", "--rounds", "60", "--seeds", "2",
        "--jobs", "1", "--policy", "naive", "--policy", "random", "--json",
    )  # fmt: skip
    assert code == 0, err
    settings = json.loads(out)["settings"]
    assert settings["images"] == "Small digits (1,797 images of 8 x 8)"
    assert (settings["classes"], settings["scaling"], settings["penalty"]) == (3, "norm", 0.001)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--classes", "1"], "--classes must be an integer in [2, classes=10]. Got 1."),
        (["--classes", "11"], "--classes must be an integer in [2, classes=10]. Got 11."),
        (
            ["--rank", "3"],
            "--rank is not an option of --problem digits, which has --classes, --scaling. Got 3.",
        ),
        (["--scaling", "log"], "--scaling must be one of unit, norm. Got 'log'."),
        (
            ["--classes", "3", "--policy-rank", "4"],
            "--policy-rank must be an integer in [1, min(dim=64, tasks=3)=3]. Got 4.",
        ),
        (["--policy", "oracle-greedy"], "oracle policies need a problem with a true representation."),
        (["--penalty", "-1"], "--penalty must be a finite number of at least 0. Got -1.0."),
    ],
)
def test_bad_input_on_images(arguments: list[str], message: str) -> None:
    code, _, err = run("simulate", "--problem", "digits", "--rounds", "30", "--jobs", "1", *arguments)
    assert code == 2
    assert message in " ".join(err.split())


def test_images_that_cannot_be_loaded_are_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "posse").mkdir()
    (tmp_path / "posse" / "mnist.bin").write_bytes(b"something else")
    for arguments in (["simulate", "--problem", "mnist"], ["reproduce", "fig3", "--data", "mnist"]):
        code, _, err = run(*arguments, "--jobs", "1")
        assert code == 1
        assert "mnist.bin cannot be used: it has 14 bytes" in " ".join(err.split())
        assert "Traceback" not in err


def test_results_say_which_images_they_are_of(tmp_path: Path) -> None:
    name = "margin_digits"
    cells = tuple({"n_classes": 3, "scaling": "norm", "explore": n} for n in (16, 72))
    small = replace(experiment_of(FIGURES[name]), cells=cells, horizon=120, options={"rank": 2})
    report = reproduce([replace(FIGURES[name], study=small)], seeds=2, out=tmp_path, known=())
    assert {path.name for path in tmp_path.iterdir()} == {name, "claims.json", "report.html"}
    page = report.path.read_text()
    assert "Small digits (1,797 images of 8 x 8)" in page
    assert "posse reproduce margin --data digits --seeds 2" in page
    assert (tmp_path / name / "error-by-rounds.png").exists()


@pytest.mark.slow
def test_the_command_says_which_images_it_uses(tmp_path: Path) -> None:
    code, out, err = run("reproduce", "margin", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path))
    assert code == 0, err
    assert "Images: Small digits (1,797 images of 8 x 8)" in err
    assert "margin_digits, 1 seed: 10/10 runs, 100% of the work" in " ".join(err.split())
    assert "Questions of ours" in out
    assert "Claims of the paper" not in out


def test_the_default_rank_is_no_larger_than_the_number_of_tasks() -> None:
    for classes, rank in (("2", 1), ("3", 3), ("5", 5)):
        code, out, err = run(
            "simulate", "--problem", "digits", "--classes", classes, "--rounds", "20", "--seeds", "1",
            "--jobs", "1", "--policy", "mlingreedy", "--json", "--penalty", "0",
        )  # fmt: skip
        assert code == 0, err
        settings = json.loads(out)["settings"]
        assert (settings["policy_rank"], settings["penalty"]) == (rank, 0)


def test_data_for_figures_without_images_is_refused() -> None:
    code, _, err = run("reproduce", "fig1", "--data", "mnist")
    assert code == 2
    assert "--data is for fig3, fig4, margin, which are not run. Got 'mnist'." in " ".join(err.split())


@pytest.mark.parametrize("command", ["simulate", "reproduce"])
def test_help_shows_the_defaults(command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    text = " ".join(out.replace("│", " ").split())
    wanted = {"simulate": "0.001 for images", "reproduce": "digits, which need no download"}
    assert f"(default: {'0, as in the paper; ' if command == 'simulate' else ''}{wanted[command]}" in text


def test_cells_and_options_are_checked() -> None:
    cell = {"n_classes": 3, "scaling": "norm"}
    common = {"name": "small", "problem": "digits", "policies": ("naive",), "horizon": 50}
    with pytest.raises(ValueError, match=r"parameter of a cell must be .* n_classes, scaling, rank"):
        Experiment(cells=({**cell, "dim": 3},), **common)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="explore must be an option of Experiment or of its cells"):
        Experiment(cells=({**cell, "explore": 3},), options={"explore": 5}, **common)  # type: ignore[arg-type]
    told = Experiment(cells=({**cell, "rank": 1},), **common)  # type: ignore[arg-type]
    assert told.draw(told.cells[0], 0).n_tasks == 3


def test_the_two_images_of_a_round_are_drawn_independently() -> None:
    problem = draw_problem("digits", n_classes=2, scaling="norm", seed=0)
    index = np.sort(problem.actions(4000, np.random.default_rng(0)).index[:, 0], axis=1)  # type: ignore[attr-defined]
    # a correlation of 0 has standard deviation 1/sqrt(4000); 5 of them are passed once in two million
    assert abs(np.corrcoef(index.T)[0, 1]) < 5 / np.sqrt(4000)
