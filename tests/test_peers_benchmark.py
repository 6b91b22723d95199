"""The benchmark beside other libraries: its loop, its check of regret, and a library that fails."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.environments import InstallError
from benchmarks.peers import __main__ as command
from benchmarks.peers.contenders import NUMPY, POSSE, Contender
from benchmarks.peers.players import numpy as by_hand
from benchmarks.peers.players import posse
from benchmarks.peers.report import BEGIN, END, Row, cells, markdown, tables, write_page
from benchmarks.peers.runner import measure
from benchmarks.peers.workload import OPENING, Player, Workload, write_data

BROKEN = Contender(name="broken", library="broken", player="greedy", plays="nothing")


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    write_data(tmp_path / "data.npz", rounds=60, tasks=4, dim=3, arms=3, rank=1, seed=0)
    return Workload.read(tmp_path / "data.npz")


def finished(contender: Contender, regret: float, rounds: int = 60) -> Row:
    run = {"processor_seconds": 2e-3, "decisions": 1000, "peak_mb": 90.0, "growth_mb": None}
    return Row(contender, 1, rounds, [{**run, "regret": regret, "version": "1.0"}])


@pytest.mark.parametrize("batch", [1, 7, 10])
def test_posse_and_numpy_make_the_same_choices(workload: Workload, batch: int) -> None:
    found = [measure(make, workload, batch) for make in (posse.ridge, posse.one_by_one, by_hand.AllTasks)]
    for result in found:
        assert result["decisions"] == 240
        assert result["regret"] == pytest.approx(found[0]["regret"], abs=1e-12)


def test_numpy_task_by_task_makes_them_too(workload: Workload) -> None:
    found = [measure(make, workload, 1)["regret"] for make in (by_hand.AllTasks, by_hand.one_by_one)]
    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_tasks_that_share_regret_less(workload: Workload) -> None:
    def random(tasks: int, dim: int) -> Player:
        return RandomPlayer()

    chance = measure(random, workload, 10)["regret"]
    for make in (posse.shared, posse.shared_own_schedule):
        regret = measure(make, workload, 10)["regret"]
        assert chance is not None
        assert regret is not None
        assert regret < chance


class RandomPlayer(Player):
    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def choose(self, arms: np.ndarray) -> np.ndarray:
        return self._rng.integers(arms.shape[2], size=arms.shape[:2])

    def learn(self, features: np.ndarray, rewards: np.ndarray) -> None:
        pass


def test_nobody_wins_or_loses_in_the_opening(workload: Workload) -> None:
    opening = workload.means[:OPENING]
    assert (opening == opening[:, :, :1]).all()
    assert workload.regret(workload.means.argmax(axis=2)) == 0


def test_a_library_that_pip_does_not_install_is_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(library: str) -> str:
        raise InstallError(f"pip did not install {library}")

    monkeypatch.setattr(command, "interpreter", refuse)
    row = Row(BROKEN, 1, 60)
    command.run(row, tmp_path / "data.npz")
    rows = [finished(POSSE, 0.1), row]
    assert cells(row, rows)[-1] == "pip did not install broken"
    assert "pip did not install broken" in markdown(rows, 3)
    assert [table.row_count for table in tables(rows)] == [2]
    assert row.record()["microseconds"] is None


def test_a_library_that_crashes_is_a_row(tmp_path: Path) -> None:
    row = Row(BROKEN, 1, 60)
    command.run(row, tmp_path / "data.npz")
    assert row.failure == "failed: ModuleNotFoundError: No module named 'benchmarks.peers.players.broken'"


def test_the_table_says_where_regret_is_not_that_of_exact_ridge() -> None:
    odd = Contender(name="odd", library="river", player="ridge", plays="ridge")
    other = Contender(name="other", library="river", player="ridge", plays="something else", exact=False)
    rows = [finished(POSSE, 0.1), finished(NUMPY, 0.1), finished(odd, 0.102), finished(other, 0.3)]
    notes = [cells(row, rows)[-1] for row in rows]
    assert notes == ["", "", "regret differs from NumPy's by +2.0e-03", ""]


def test_fewer_rounds_are_said_and_not_compared() -> None:
    rows = [finished(POSSE, 0.1), finished(NUMPY, 0.1), finished(BROKEN, 0.2, rounds=20)]
    assert cells(rows[2], rows)[-1] == "20 rounds: regret is not comparable"


def test_a_page_keeps_what_is_outside_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write_page(page, "new")
    assert page.read_text(encoding="utf-8") == f"before\n{BEGIN}\n\nnew\n{END}\nafter\n"
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold the lines"):
        write_page(page, "new")
