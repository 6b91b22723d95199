"""Logs on Spark and Dask: equal to the log read here, whatever dies."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster

from posse import GramStatistics
from posse.core.account import Finding
from posse.logs import LogSummary, Recipe, spark, summarise
from posse.logs.profile import MOST_COUNTED
from posse.logs.scanned import PIECE_BYTES, Scanned, joined
from posse.logs.wire import packed, unpacked

pytestmark = pytest.mark.slow

N_ROWS = 4000
WITH_ARMS: dict[str, Any] = {
    "task": "shop",
    "reward": "reward",
    "weight": "weight",
    "arm": "offer",
    "propensity": "chance",
    "encoder": Recipe(interactions=(("price", "colour"),), own=("price",)),
}
PLAIN: dict[str, Any] = {"task": "shop", "reward": "reward", "features": ["price", "colour", "visits"]}


def ugly_log(seed: int = 0) -> pd.DataFrame:
    """A log with gaps in most columns, numbers as text, rare levels, dates with and without a zone, arms."""
    rng = np.random.default_rng(seed)

    def gaps(values: Any, share: float = 0.03) -> Any:
        found = pd.Series(values).astype(object)
        found[rng.random(N_ROWS) < share] = None
        return found

    minutes = pd.to_timedelta(rng.integers(0, 400 * 1440, N_ROWS), unit="min")
    price = rng.normal(100, 20, N_ROWS)
    price[rng.random(N_ROWS) < 0.05] = np.nan
    price[17], price[1234] = np.inf, -1e80
    texts = np.where(rng.random(N_ROWS) < 0.02, "unknown", rng.integers(0, 500, N_ROWS).astype(str))
    levels, odds = ["red", "blue", "green", "odd"], [0.5, 0.3, 0.197, 0.003]
    return pd.DataFrame(
        {
            "shop": gaps([f"shop-{i**2 // 40}" for i in rng.integers(22, size=N_ROWS)]).astype("string"),
            "price": price,
            "visits": rng.integers(0, 50, N_ROWS),
            "stock": gaps(texts).astype("string"),
            "colour": gaps(rng.choice(levels, N_ROWS, p=odds)).astype("string"),
            "loyal": gaps(rng.random(N_ROWS) < 0.3).astype("boolean"),
            "at": (pd.Timestamp("2024-01-01") + minutes).astype("datetime64[us]"),
            "sent": (pd.Timestamp("2024-01-01", tz="Europe/Oslo") + minutes).astype(
                "datetime64[us, Europe/Oslo]"
            ),
            "reward": gaps(rng.normal(size=N_ROWS)).astype("Float64"),
            "weight": rng.random(N_ROWS) - 0.01,
            "chance": rng.random(N_ROWS) * 1.01,
            "offer": gaps(rng.choice(["ham", "jam"], N_ROWS)).astype("string"),
        }
    )


LOG = ugly_log()


def dask_frame(log: pd.DataFrame, npartitions: int) -> Any:
    """Return a frame of Dask, rows in the order of a frame of pandas."""
    from_pandas: Any = dd.from_pandas
    return from_pandas(log, npartitions=npartitions, sort=False)


def assert_equal(found: LogSummary, expected: LogSummary) -> None:
    """Check that two summaries differ by rounding alone; on a cluster no row is the first."""
    assert found.tasks == expected.tasks
    for one, other in zip(found.encoder.columns, expected.encoder.columns, strict=True):
        assert same_column(one) == same_column(other)
        for name in ("mean", "scale"):
            assert getattr(one, name, 1.0) == pytest.approx(getattr(other, name, 1.0), rel=1e-10)
    plain = [replace(summary.encoder, columns=expected.encoder.columns) for summary in (found, expected)]
    assert plain[0] == plain[1]
    for name in ("gram", "moment", "square", "count"):
        values = getattr(expected.statistics, name)
        largest = np.abs(values).reshape(len(values), -1).max(axis=1)
        gap = np.abs(getattr(found.statistics, name) - values).reshape(len(values), -1).max(axis=1)
        assert (gap <= 1e-10 * largest).all()
    assert (found.account.rows, found.account.used) == (expected.account.rows, expected.account.used)
    assert all(item.first is None for item in found.account.findings)
    assert counted(found) == counted(expected)


def same_column(column: Any) -> Any:
    return replace(column, mean=0.0, scale=1.0) if hasattr(column, "scale") else column


def counted(summary: LogSummary) -> dict[tuple[str, str, str], int]:
    return {(item.column, item.what, item.done): item.count for item in summary.account.findings}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ugly log in five Parquet files, one of them without rows."""
    folder = tmp_path_factory.mktemp("log")
    table = pa.Table.from_pandas(LOG, preserve_index=False)
    for number, (start, end) in enumerate([(0, 900), (900, 900), (900, 1000), (1000, 3500), (3500, N_ROWS)]):
        pq.write_table(table.slice(start, end - start), folder / f"{number}.parquet")
    return folder


# Spark


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, which is not on this machine: nothing about Spark is tested")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        "spark.sql.session.timeZone": "America/Lima",
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it does not live long
    }
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]")  # a task may fail three times
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    yield session
    session.stop()
    os.environ.pop("PYSPARK_PYTHON") if before is None else os.environ.update(PYSPARK_PYTHON=before)


pandas_is_new = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pandas_is_new
def test_spark_is_equal_to_local(session: Any, folder: Path) -> None:
    expected = summarise(folder, **WITH_ARMS)
    found = summarise(str(folder), engine="spark", **WITH_ARMS)
    assert_equal(found, expected)
    assert len(expected.account.findings) > 12
    assert found.account.source == repr(str(folder))

    given = WITH_ARMS | {"encoder": expected.encoder, "missing": "drop"}
    frame = session.read.parquet(str(folder)).repartition(7, "shop")  # of which some are empty
    assert_equal(summarise(frame, engine="spark", **given), summarise(folder, **given))


@pandas_is_new
def test_a_killed_python_worker_changes_nothing(session: Any, folder: Path, tmp_path: Path) -> None:
    def kill_once(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        marker = tmp_path / f"{context.stageId()}-{context.partitionId()}-{context.attemptNumber()}"
        marker.touch()
        for number, batch in enumerate(batches):
            if number == 2 and context.attemptNumber() == 0:
                others = Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split()
                victims = [os.getpid()] if context.partitionId() else [int(pid) for pid in others]
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
            yield batch

    frame = session.read.parquet(str(folder)).coalesce(1).repartition(2)
    dying = frame.mapInArrow(kill_once, frame.schema)
    found = summarise(dying, engine="spark", **PLAIN)
    assert_equal(found, summarise(folder, **PLAIN))
    again = [path.name.split("-") for path in tmp_path.iterdir() if not path.name.endswith("-0")]
    assert {partition for _, partition, _ in again} == {"0", "1"}
    assert (
        len({stage for stage, _, _ in again}) == 2
    )  # while the encoder was learned, and while rows were summed


@pandas_is_new
def test_large_partitions_are_looked_at_in_pieces(session: Any) -> None:
    n_rows = spark.PIECE_ROWS + 12_345
    frame = (
        session.range(n_rows).selectExpr("id % 700 as shop", "id % 11 as x", "id % 5 as reward").coalesce(1)
    )
    found = summarise(frame, task="shop", reward="reward", engine="spark")
    ids = np.arange(n_rows)
    log = pa.table({"shop": ids % 700, "x": ids % 11, "reward": ids % 5})
    assert_equal(found, summarise(log, task="shop", reward="reward"))

    batches = pa.table({"x": np.arange(10_000)}).to_batches(max_chunksize=1000)
    sizes = [table.num_rows for table in spark._regrouped(batches * 40)]
    assert sum(sizes) == 400_000
    assert spark.PIECE_ROWS <= sizes[0] < spark.PIECE_ROWS + 1000


@pandas_is_new
def test_tables_without_rows_and_odd_names(session: Any) -> None:
    frame = session.createDataFrame([], "shop string, `a.b` double, `c``d` double, reward double")
    with pytest.raises(ValueError, match=r"must have rows with a task and a reward. Got a Spark DataFrame"):
        summarise(frame, task="shop", reward="reward", engine="spark")
    rows = [("oslo", 1.0, 2.0, 3.0), ("oslo", 2.0, 1.0, 4.0), ("bergen", 2.0, 5.0, 3.0)]
    frame = session.createDataFrame(rows, frame.schema)
    local = pd.DataFrame(rows, columns=frame.columns)
    found = summarise(frame, task="shop", reward="reward", engine="spark")
    assert_equal(found, summarise(local, task="shop", reward="reward"))
    assert "a.b" in found.features


@pandas_is_new
def test_spark_says_what_is_amiss(session: Any, folder: Path, tmp_path: Path) -> None:
    roles: dict[str, Any] = {"task": "shop", "reward": "reward", "engine": "spark"}
    with pytest.raises(ValueError, match=r"Got '.*nowhere.parquet': .*does not exist"):
        summarise(tmp_path / "nowhere.parquet", **roles)
    with pytest.raises(ValueError, match=r"must be a Spark DataFrame, or the name or path of a table. Got 3"):
        summarise(3, **roles)
    with pytest.raises(
        ValueError, match=r"`reward` must be a known name. Got 'rewards'. Did you mean 'reward'"
    ):
        summarise(str(folder), task="shop", reward="rewards", engine="spark")
    with pytest.raises(ValueError, match=r"must have different names, whatever their case. Got shop, Shop"):
        summarise(session.sql("select 'a' as shop, 'b' as Shop, 1 as reward"), **roles)
    with pytest.raises(ValueError, match=r"`on_rows` must be None where others read the log"):
        summarise(str(folder), on_rows=print, **roles)

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        raise KeyError("the tea is cold")

    frame = session.read.parquet(str(folder))
    with pytest.raises(ValueError, match=r"^a Spark DataFrame cannot be read by Spark: 'the tea is cold'$"):
        summarise(frame.mapInArrow(fail, frame.schema), **roles)


@pytest.fixture
def without_posse(tmp_path: Path) -> Path:
    """A folder that hides posse from a Python whose path begins with it."""
    (tmp_path / "posse").mkdir()
    hidden = "raise ModuleNotFoundError(\"No module named 'posse'\", name='posse')"
    (tmp_path / "posse" / "__init__.py").write_text(hidden)
    return tmp_path


@pandas_is_new
def test_spark_workers_without_posse_are_named(
    session: Any, folder: Path, without_posse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = without_posse / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{without_posse}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(python))
    with pytest.raises(ValueError, match=r"^Spark's workers must have posse\[spark\].*no module named posse"):
        summarise(str(folder), task="shop", reward="reward", engine="spark")


def test_a_name_without_a_session() -> None:
    code = "from posse.logs import summarise; summarise('log', task='a', reward='b', engine='spark')"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    expected = "to open 'log' with engine 'spark' there must be a Spark session. Got none"
    assert expected in answer.stderr.splitlines()[-1]


# Dask


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, which Dask uses to read Parquet
def test_dask_is_equal_to_local(folder: Path) -> None:
    expected = summarise(folder, **WITH_ARMS)
    frame = dd.read_parquet(folder)
    assert_equal(summarise(frame, engine="dask", **WITH_ARMS), expected)
    some = (
        frame[frame.visits < 49].dropna(subset="shop").set_index("shop")
    )  # an index without a name here, and with one there
    few = LOG[LOG.visits < 49].dropna(subset="shop")
    assert_equal(summarise(some, engine="dask", **PLAIN), summarise(few, **PLAIN))


def test_frames_of_unlike_kinds_and_types() -> None:
    log = LOG.assign(visits=LOG["visits"].astype(object), code=[3, "x", None, 2.5] * (N_ROWS // 4))
    log.loc[: N_ROWS // 2, "code"] = None
    log["colour"] = log["colour"].astype("category")
    cut = [0, 0, 700, 1900, N_ROWS]
    parts = [log.iloc[start:end] for start, end in pairwise(cut)]
    frames = [parts[0], parts[1], pl.from_pandas(parts[2].assign(code=None)), parts[3]]
    given = PLAIN | {"features": [*PLAIN["features"], "code"]}
    found = summarise([delayed(frame) for frame in frames], engine="dask", **given)
    assert_equal(found, summarise(log, **given))
    assert found.account.source == "4 frames of Dask"


def test_a_killed_dask_worker_changes_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    def die_once(frame: Any) -> Any:
        marker = tmp_path / "died"
        if len(frame) == 1000 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return frame

    parts = [LOG.iloc[:300], LOG.iloc[300:1300], LOG.iloc[1300:]]
    with Client(cluster):
        found = summarise([delayed(die_once)(part) for part in parts], engine="dask", **PLAIN)
    assert (tmp_path / "died").exists()
    assert_equal(found, summarise(LOG, **PLAIN))


def test_dask_workers_without_posse_are_named(without_posse: Path) -> None:
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            cluster.scheduler_address,
            "--no-nanny",
        ]
        path = os.pathsep.join([str(without_posse), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        worker = subprocess.Popen([*command, "--nthreads", "1"], env=environment, stderr=subprocess.DEVNULL)
        try:
            client.wait_for_workers(1, timeout=60)
            with pytest.raises(
                ValueError, match=r"^Dask's workers must have posse.*No module named 'posse' at"
            ):
                summarise(dask_frame(LOG, 2), engine="dask", **PLAIN)
        finally:
            worker.kill()
            worker.wait()


def test_dask_says_what_is_amiss() -> None:
    roles: dict[str, Any] = {"task": "shop", "reward": "reward", "engine": "dask"}
    with pytest.raises(ValueError, match=r"must be a Dask DataFrame or a list of delayed frames. Got 'log'"):
        summarise("log", **roles)
    with pytest.raises(ValueError, match=r"must be a Dask DataFrame or a list of delayed frames"):
        summarise([], **roles)
    frame = dask_frame(LOG, 2)
    with pytest.raises(ValueError, match=r"`task` must be a known name. Got 'shp'. Did you mean 'shop'"):
        summarise(frame, task="shp", reward="reward", engine="dask")
    with pytest.raises(ValueError, match=r"must have rows with a task and a reward. Got a Dask DataFrame"):
        summarise(frame[frame.visits > 1000], **roles)
    with pytest.raises(
        ValueError, match=r"partitions of one log must have the same columns. Got shop, price"
    ):
        summarise([delayed(LOG), delayed(LOG.drop(columns="price"))], **roles)
    with pytest.raises(ValueError, match=r"`engine` must be a known name. Got 'desk'. Did you mean 'dask'"):
        summarise(frame, task="shop", reward="reward", engine="desk")


# What both have in common


def test_levels_of_many_are_counted_though_most_are_rare() -> None:
    rare = [f"level {i}" for i in range(3 * MOST_COUNTED)]
    colour = np.array([*rare, *["blue", "Berlin's"] * (2 * MOST_COUNTED)])
    colour[: len(rare) : 17] = "blue"  # too seldom to be among the most common of a partition
    colour[8 : len(rare) : 5000] = "Berlin's"
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"shop": rng.choice(["a", "b"], len(colour)), "colour": colour, "reward": 1.0})
    log["reward"] = rng.normal(size=len(log))
    roles: dict[str, Any] = {"task": "shop", "reward": "reward"}
    found = summarise(dask_frame(log, 6), engine="dask", **roles)
    assert_equal(found, summarise(log, **roles))
    features = ("colour=blue", "colour=Berlin's", "colour=(other)")
    assert [column.features for column in found.encoder.columns] == [features]


def test_what_was_found_travels_in_pieces() -> None:
    rng = np.random.default_rng(0)
    n_tasks, dim, width = 500, 30, 2
    gram = rng.normal(size=(n_tasks * width, dim, dim))
    gram += np.swapaxes(gram, 1, 2)
    cells = n_tasks * width
    seen = GramStatistics(gram, rng.normal(size=(cells, dim)), rng.random(cells), rng.random(cells))
    finding = Finding(column="price", what="missing values", count=3, done="rows dropped", first=7)
    whole = Scanned(seen, [f"shop {i}" for i in range(n_tasks)], 1000, 900, [finding])
    pieces = list(whole.pieces())
    assert len(pieces) == 8
    assert all(piece.statistics.gram.nbytes < 2 * PIECE_BYTES for _, piece in pieces)
    again = joined(unpacked(packed(piece)) for _, piece in reversed(pieces))
    assert (again.rows, again.used, again.findings) == (1000, 900, [replace(finding, first=None)])
    order = [again.tasks.index(name) for name in whole.tasks]
    for name in ("gram", "moment", "square", "count"):
        values = getattr(again.statistics, name)
        values = values.reshape(n_tasks, width, *values.shape[1:])[order]
        assert (values.reshape(getattr(seen, name).shape) == getattr(seen, name)).all()
