"""The benchmark beside mixed models: its data, its errors, its tables, and the page of the stored run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.environments import InstallError
from benchmarks.mixed_models import __main__ as command
from benchmarks.mixed_models.contenders import CONTENDERS, MERF, POSSE, TOLD, Contender
from benchmarks.mixed_models.fits import posse, scikit_learn
from benchmarks.mixed_models.report import cells_of, markdown, table, targets
from benchmarks.mixed_models.runner import measure
from benchmarks.mixed_models.workload import Cell, Workload
from benchmarks.peers.report import BEGIN, END

RELATED = Cell(tasks=60, dim=8, rows=20, related=True)
BROKEN = Contender(name="broken", library="broken", fit="nothing", does="nothing")


def run(contender: Contender, seed: int, error: float, seconds: float, **more: Any) -> dict[str, Any]:
    cell = {"tasks": 60, "dim": 8, "rows": 20, "related": more.pop("related", True)}
    found = {"theta_error": error, "held_out": error, "processor_seconds": seconds, "unconverged": False}
    return {**cell, "seed": seed, "contender": contender.name, "version": "1.0", **found, **more}


def test_errors_are_those_of_the_truth_and_of_the_noise() -> None:
    data = Workload.draw(RELATED, 0)
    exact = data.errors(data.theta, data.level)
    assert exact["theta_error"] == 0.0
    assert exact["held_out"] == pytest.approx(1.0, abs=0.1)  # 1200 rows: four standard deviations are 0.08
    off = data.errors(data.theta + 0.5, data.level)
    assert off["theta_error"] == pytest.approx(0.5 * np.sqrt(8))


def test_tasks_are_related_or_not_and_of_equal_length_on_average() -> None:
    for related in (True, False):
        theta = Workload.draw(Cell(tasks=4000, dim=8, rows=1, related=related), 0).theta
        strengths = np.linalg.eigvalsh(theta.T @ theta / 4000)
        assert strengths.sum() == pytest.approx(3.0, rel=0.1)
        assert (strengths[-4] < 0.02) == related


def test_a_workload_is_read_as_it_was_written(tmp_path: Path) -> None:
    data = Workload.draw(RELATED, 1)
    data.write(tmp_path / "data.npz")
    assert np.array_equal(Workload.read(tmp_path / "data.npz").held_x, data.held_x)


def test_who_shares_is_better_and_who_is_told_the_truth_is_best() -> None:
    data = Workload.draw(RELATED, 0)
    fits = (posse.told, posse.factor_prior, scikit_learn.ridge_cv, scikit_learn.least_squares)
    errors = [measure(fit, data)["theta_error"] for fit in fits]
    assert errors == sorted(errors)


def test_a_contender_that_fails_or_does_not_end_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workload.draw(RELATED, 0).write(tmp_path / "data.npz")
    failed = command.run_once(BROKEN, tmp_path / "data.npz", 60)
    assert failed["failure"].startswith(
        "failed: ModuleNotFoundError: No module named 'benchmarks.mixed_models"
    )
    assert command.run_once(POSSE, tmp_path / "data.npz", 0)["failure"] == "did not end in 0 s"

    def refuse(library: str) -> str:
        raise InstallError(f"pip did not install {library}")

    monkeypatch.setattr(command, "interpreter", refuse)
    assert command.run_once(MERF, tmp_path / "data.npz", 60)["failure"] == "pip did not install merf"


def test_ratios_are_taken_seed_by_seed() -> None:
    late = {**run(MERF, 0, 0.0, 0.0), "failure": "did not end in 300 s"}
    runs = [run(POSSE, seed, 1.0 + seed, 2.0) for seed in range(2)]
    others = [contender for contender in CONTENDERS if contender not in (POSSE, MERF)]
    runs += [run(other, seed, 2.0 + 2.0 * seed, 5.0) for other in others for seed in range(2)]
    stored = {"runs": [*runs, late]}
    (cell,) = cells_of(stored)
    rows = {row[0]: row[1:] for row in table(stored, cell)}
    assert rows[POSSE.name] == ["1.581", "1", "1.581", "2", "1", ""]
    assert rows[MERF.name] == ["–", "–", "–", "–", "–", "did not end in 300 s"]
    assert rows["gpboost"] == ["3.162", "2.000 ± 0.000", "3.162", "5", "2.5", ""]
    assert rows[TOLD.name][3:5] == ["–", "–"]


def test_targets_compare_with_merf_and_with_the_best_on_unrelated_tasks() -> None:
    errors = {POSSE.name: 1.0, MERF.name: 2.0, TOLD.name: 0.5}
    runs = [
        run(contender, 0, errors.get(contender.name, 1.25), 1.0 + (contender is MERF), related=related)
        for related in (True, False)
        for contender in CONTENDERS
    ]
    assert targets({"runs": runs}) == {
        "error relative to merf": 0.5,
        "told the truth relative to merf": 0.25,
        "times faster than merf": 2.0,
        "unrelated, relative to the best": 0.8,
    }


def test_the_page_shows_the_stored_run() -> None:
    stored = json.loads(command.RESULTS.read_text(encoding="utf-8"))
    page = command.PAGE.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == markdown(stored).strip()
    found = targets(stored)
    for text in (
        f"{found['error relative to merf']:.3f} of merf's",
        f"{found['told the truth relative to merf']:.3f} of it",
        f"{found['times faster than merf']:.0f} times",
        f"{found['unrelated, relative to the best']:.3f} times",
    ):
        assert text in " ".join(page.split()), text
