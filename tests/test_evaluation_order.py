"""A log is read several times: its rows come in one order, and one that changes meanwhile is refused."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.evaluation import write_decisions

from posse.logs import Evaluation, evaluate, fit
from posse.logs.evaluation.decisions import DecisionColumns
from posse.logs.evaluation.gather import encoder_of
from posse.logs.evaluation.reader import DecisionReader
from posse.logs.predict import Predictions
from posse.logs.sources import open_source

ROLES: dict[str, Any] = {"task": "task", "arm": "arm", "propensity": "propensity", "reward": "reward"}
N_ROWS, N_TASKS = 500_000, 20
# To DuckDB a list of five or more is a hash join: with several threads its rows come in no order.
JOINED = "select * from '{}' where arm in ('a0', 'a1', 'a2', 'a3', 'a4', 'a5')"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_decisions(path, N_ROWS, N_TASKS)
    assert pq.ParquetFile(path).num_row_groups == 3
    return path


@pytest.fixture(scope="module")
def table(file: Path) -> pa.Table:
    return pq.read_table(file)


def run(log: Any) -> Evaluation:
    return evaluate(log, ["arm:a0", "uniform"], **ROLES, features=["x0"], n_parts=2)


def sources(file: Path, folder: Path) -> dict[str, Any]:
    """Return one log as a file, several files, text, a table, queries, and a relation of others."""
    table = pq.read_table(file)
    for place in range(3):
        pq.write_table(table.slice(place * 200_000, 200_000), folder / f"part-{place}.parquet")
    duckdb.sql(f"copy (select * from '{file}') to '{folder / 'log.csv'}'")
    return {
        "file": file,
        "files": str(folder / "part-*.parquet"),
        "text": folder / "log.csv",
        "table": table,
        "query": JOINED.format(file),
        "relation": duckdb.sql(f"select * from '{file}'"),
    }


def test_a_log_is_read_in_its_own_order_every_time(file: Path, table: pa.Table, tmp_path: Path) -> None:
    columns = DecisionColumns(**ROLES)
    encoder = encoder_of(open_source(table), columns, ["x0"], None, [])
    for name, log in sources(file, tmp_path).items():
        reader = DecisionReader(open_source(log).in_order(), columns, encoder)
        for _ in range(2):
            some = list(reader.read())
            for role in ("propensity", "reward"):
                kept = "propensities" if role == "propensity" else "rewards"
                found = np.concatenate([getattr(one, kept) for one in some])
                np.testing.assert_array_equal(found, table[role].to_numpy(), err_msg=name)


def test_an_evaluation_of_half_a_million_rows_is_that_of_numpy(file: Path, table: pa.Table) -> None:
    weights = np.equal(table["arm"], "a0") / table["propensity"].to_numpy()
    rewards, found = table["reward"].to_numpy(), run(file).pooled("arm:a0")
    assert found["ips"].value == pytest.approx(np.mean(weights * rewards), rel=1e-12)
    assert found["snips"].value == pytest.approx(np.sum(weights * rewards) / np.sum(weights), rel=1e-12)


def test_predictions_come_in_the_order_of_rows(file: Path, table: pa.Table) -> None:
    model = fit(table.slice(0, 2000), task="task", reward="reward", arm="arm", features=["x0"])
    for log in (file, JOINED.format(file)):
        found = Predictions(model, log).table()
        np.testing.assert_array_equal(found["reward"].to_numpy(), table["reward"].to_numpy())


@pytest.mark.parametrize("change", ["order by random()", "where random() < 0.5"])
def test_a_log_that_changes_while_it_is_read_is_refused(file: Path, change: str) -> None:
    with pytest.raises(ValueError, match=r"must not change while it is read\. Got .* when it was read again"):
        run(f"select * from '{file}' {change}")
