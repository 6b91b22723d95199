"""Tables, intervals, and files that are whole or absent."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from posse.core.files import write_atomically, write_json
from posse.lab.results import final_rounds, mean_interval, summarise, write_table


def test_interval_agrees_with_scipy() -> None:
    values = np.random.default_rng(0).standard_normal(9)
    mean, low, high = mean_interval(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((values.mean(), expected.low, expected.high))
    assert mean_interval([3.0]) == (3.0, -np.inf, np.inf)


def test_interval_covers_at_its_stated_rate() -> None:
    """2000 intervals from one fixed seed: a correct rule leaves [0.93, 0.97] with probability below 1e-4."""
    rng = np.random.default_rng(1)
    inside = sum(
        low <= 0 <= high for _, low, high in (mean_interval(rng.standard_normal(5)) for _ in range(2000))
    )
    assert 0.93 <= inside / 2000 <= 0.97


def test_summarise_groups_and_sorts() -> None:
    table = pl.DataFrame(
        {
            "policy": ["b", "a", "b", "a", "c"],
            "seed": [0, 0, 1, 1, 0],
            "regret_per_task": [4.0, 1.0, 6.0, 3.0, 9.0],
        }
    )
    summary = summarise(table, by=["policy"])
    assert summary["policy"].to_list() == ["a", "b", "c"]
    assert summary["regret_per_task"].to_list() == [2.0, 5.0, 9.0]
    assert summary["n_seeds"].to_list() == [2, 2, 1]
    assert summary["ci_low"][2] is None
    assert summary["ci_high"][0] == pytest.approx(mean_interval([1.0, 3.0])[2])


def test_final_rounds() -> None:
    table = pl.DataFrame({"round": [1, 10, 1, 20], "horizon": [10, 10, 20, 20]})
    assert final_rounds(table)["round"].to_list() == [10, 20]


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_json(path, {"a": 1})

    def fail(temporary: Path) -> None:
        temporary.write_text("half of it")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, fail)
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]
    assert '"a": 1' in path.read_text()
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, float("nan"))


def test_tables_round_trip(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [1.5, 2.5], "policy": ["a", "b"]})
    write_table(tmp_path / "new" / "t.parquet", table)
    assert pl.read_parquet(tmp_path / "new" / "t.parquet").equals(table)
