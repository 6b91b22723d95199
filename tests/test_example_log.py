"""The example log: the same for the same seed, ugly where it says so, and true to its truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from posse.cli import app
from posse.logs import example_log, fit, summarise
from posse.logs.writing import write_table

ROLES: dict[str, Any] = {"task": "shop", "reward": "reward", "arm": "offer", "propensity": "propensity"}


def test_equal_seeds_give_equal_logs_and_others_do_not() -> None:
    one, same, other = (example_log(shops=6, rows=500, seed=seed) for seed in (3, 3, 4))
    assert one.table.equals(same.table)
    np.testing.assert_array_equal(one.means, same.means)
    assert not one.table.equals(other.table)


@pytest.mark.parametrize(("shops", "rows"), [(60, 12_000), (1, 1), (7, 7), (3, 61), (130, 4000)])
def test_rows_of_shops_add_up_and_are_unequal(shops: int, rows: int) -> None:
    log = example_log(shops=shops, rows=rows, clean=True)
    assert log.table.num_rows == len(log.means) == rows
    assert len(set(log.shops)) == len(log.shops) == shops
    counts = {item["values"]: item["counts"] for item in log.table.column("shop").value_counts().to_pylist()}
    assert set(counts) == set(log.shops)
    assert min(counts.values()) >= min(20, rows // shops)
    if rows == 12_000:
        assert min(counts.values()) == 20
        assert 3000 < max(counts.values()) < 4001


def test_what_is_wrong_with_it_and_nothing_else_differs_from_the_clean_one() -> None:
    ugly, clean = example_log(shops=20, rows=5000), example_log(shops=20, rows=5000, clean=True)
    np.testing.assert_array_equal(ugly.means, clean.means)
    shares = {}
    for name in clean.table.column_names:
        left, right = ugly.table.column(name).to_pylist(), clean.table.column(name).to_pylist()
        shares[name] = np.mean([one != other for one, other in zip(left, right, strict=True)])
    assert {name for name, share in shares.items() if share == 0} == {
        "order",
        "time",
        "currency",
        "propensity",
    }
    assert shares.pop("comment") == 1.0
    assert max(shares.values()) < 0.1
    missing = {name: ugly.table.column(name).null_count for name in ("shop", "offer", "reward", "stock")}
    assert all(missing.values())
    assert {"n/a"} < set(ugly.table.column("price").to_pylist())
    assert np.isinf(ugly.table.column("stock").drop_null().to_numpy()).sum() >= 1


def test_the_account_finds_what_was_put_in() -> None:
    log = example_log(shops=20, rows=5000)
    account = summarise(log, **ROLES).account
    found = {(item.column, item.what): item.count for item in account.findings}
    assert found["shop", "rows without a task"] == log.table.column("shop").null_count
    assert found["reward", "missing values"] == log.table.column("reward").null_count
    assert found["price", "texts that are no numbers"] == sum(
        text.startswith("NOK") for text in log.table.column("price").to_pylist()
    )
    assert {"order", "currency", "comment"} <= {
        item.column for item in account.findings if "left out" in item.done
    }
    lost = {name: log.table.column(name).is_null().to_numpy() for name in ("shop", "reward", "offer")}
    dropped = lost["shop"] | lost["reward"] | lost["offer"]
    assert account.rows - account.used == dropped.sum()


def test_rewards_are_their_means_and_noise() -> None:
    log = example_log(shops=20, rows=5000, clean=True)
    noise = log.table.column("reward").to_numpy() - log.means
    # a mean of 5000 is within five of its standard deviations but once in a million seeds
    assert abs(noise.mean()) < 5 * 2.0 / 5000**0.5
    assert noise.std() == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(("unrelated", "ranks"), [(False, {2, 3}), (True, {0})])
def test_shops_share_two_directions_or_none_and_a_fit_finds_out(unrelated: bool, ranks: set[int]) -> None:
    log = example_log(shops=40, rows=8000, unrelated=unrelated)
    around = log.theta.reshape(40, -1) - log.theta.reshape(40, -1).mean(axis=0)
    strengths = np.linalg.svd(around, compute_uv=False) ** 2
    assert (strengths[:2].sum() / strengths.sum() > 0.95) is not unrelated
    model = fit(log, **ROLES)
    assert model.estimate.rank in ranks  # type: ignore[attr-defined]
    clean = example_log(shops=40, rows=8000, unrelated=unrelated, clean=True).table
    predicted = model.predict({name: clean.column(name).to_pylist() for name in clean.column_names})
    error = predicted.mean - log.means
    assert np.mean(error**2) < (0.6 if unrelated else 0.3) < 0.2 * np.var(log.means)
    assert np.mean(np.abs(error) < 2 * predicted.deviation) > 0.85


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_hold_the_table(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / f"log.{ending}"
    example_log(shops=8, rows=2000).write(path)
    from_file, from_memory = summarise(path, **ROLES), summarise(example_log(shops=8, rows=2000), **ROLES)
    assert from_file.tasks == from_memory.tasks
    assert from_file.features == from_memory.features
    np.testing.assert_allclose(from_file.statistics.gram, from_memory.statistics.gram, rtol=1e-9, atol=1e-6)
    if ending == "parquet":
        assert pq.read_table(path).equals(example_log(shops=8, rows=2000).table)


def test_a_table_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})

    def broken() -> object:
        yield from table.to_batches()
        raise ValueError("no more")

    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match="no more"):
            write_table(tmp_path / name, table.schema, broken())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must end in .csv, .parquet, .pq. Got 't.txt'."):
        write_table("t.txt", table.schema, [])
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_it_and_says_what_it_cannot(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    options = ["--shops", "5", "--rows", "300", "--seed", "2"]
    done = CliRunner().invoke(app, ["example-log", str(path), *options])
    assert done.stdout == f"300 rows of 5 shops: {path}\n"
    example_log(shops=5, rows=300, seed=2).write(tmp_path / "again.csv")
    assert path.read_bytes() == (tmp_path / "again.csv").read_bytes()
    for wrong, message in (
        (["--rows", "4", "--shops", "5"], "--rows must be an integer of at least 5. Got 4."),
        (["--shops", "0"], "--shops must be an integer of at least 1. Got 0."),
        (["--seed", "-1"], "--seed must be an integer of at least 0. Got -1."),
    ):
        done = CliRunner().invoke(app, ["example-log", str(path), *wrong])
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    done = CliRunner().invoke(app, ["example-log", str(tmp_path / "log.xlsx")])
    assert done.exit_code == 2
    assert "must end in .csv, .parquet, .pq" in done.stderr
