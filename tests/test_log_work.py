"""What sums of a log cost: work grows like the number of tasks; and the stored benchmark beside others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import log_sums

from posse.logs import summarise
from posse.logs.accumulate import Accumulator

ROWS_PER_TASK, DIM = 4, 3
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "performance.md"
MAKERS = ("zeros", "ones", "empty", "full", "append", "argsort", "where", "concatenate", "repeat")


def work(n_tasks: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many elements of arrays NumPy makes while a log of so many tasks is summed up."""
    rng = np.random.default_rng(0)
    columns = {f"x{place}": rng.standard_normal(n_tasks * ROWS_PER_TASK) for place in range(DIM + 1)}
    log = pa.table({"task": rng.permutation(np.arange(n_tasks * ROWS_PER_TASK) % n_tasks), **columns})
    made = 0

    def counted(make: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            nonlocal made
            found = make(*given, **named)
            made += np.size(found)
            return found

        return counting

    with monkeypatch.context() as patch:
        for name in MAKERS:
            patch.setattr(np, name, counted(getattr(np, name)))
        found = summarise(log, task="task", reward="x0")
    assert len(found.tasks) == n_tasks
    return made


def test_four_times_the_tasks_are_about_four_times_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert work(80_000, monkeypatch) < 6 * work(20_000, monkeypatch)


def test_the_count_of_work_shows_what_is_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    """An accumulator that moves house whenever a task is new."""

    def grow(self: Accumulator, n_cells: int) -> None:
        larger = self._room(max(n_cells, self.n_cells))
        for old, new in zip(self._parts, larger, strict=True):
            new[: len(old)] = old
        self._parts, self.n_cells = larger, len(larger[2])

    monkeypatch.setattr(Accumulator, "grow", grow)
    assert work(80_000, monkeypatch) > 7 * work(20_000, monkeypatch)


@pytest.mark.parametrize("who", log_sums.CONTENDERS)
def test_contenders_of_the_benchmark_find_what_numpy_does(who: str, tmp_path: Path) -> None:
    path = str(tmp_path / "log.parquet")
    log_sums.write_log(Path(path), 500, 4, 7)
    expected, names = log_sums.by_numpy(path, 4)
    found, tasks = log_sums.sums_of(log_sums.CONTENDERS[who](path, 4), 4)
    assert (tasks == names).all()
    assert found == pytest.approx(expected, rel=1e-10)


def test_the_page_says_what_the_benchmark_stored() -> None:
    stored = json.loads(log_sums.RESULT.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(log_sums.markdown(stored)) in page
    assert f"to the power {log_sums.slope(stored):.2f}" in page
    assert stored["date"] in page
    assert stored["commit"][:7] in page
    first, last = stored["load at the start and the end"]
    assert f"load {first} at the start and {last} at the end" in page


def test_the_default_call_is_as_fast_as_it_is_said_to_be() -> None:
    """By what is stored: 1.5 times as fast as the better of two others at 30 features, 2 times at 100."""
    stored = json.loads(log_sums.RESULT.read_text(encoding="utf-8"))
    for log in stored["beside others"]:
        for who, ratios in log["times as fast as the better other"].items():
            assert np.median(ratios) >= {30: 1.5, 100: 2.0}[log["features"]], who
    largest = stored["many rows"]["measured"]
    for measured in largest.values():
        assert min(measured["processor seconds"]) < 25
        assert measured["peak memory, GB"] < 1.5
