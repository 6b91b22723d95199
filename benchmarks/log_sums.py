"""Sums of a log by task: posse beside SQL in DuckDB and expressions in polars, from compressed Parquet."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from posse import Encoder
from posse.core.columns import NumberColumn
from posse.logs import LogSummary, summarise
from posse.numerics.checks import Array

# Rows and features of the logs, each of a thousand tasks.
SHAPES = ((2_000_000, 30), (300_000, 100))
N_TASKS = 1000
LARGE = (10_000_000, 30)
MANY_TASKS, MANY_DIM, ROWS_PER_TASK = (100_000, 300_000, 1_000_000), 10, 4
CHUNK = 200_000
TOLERANCE = 1e-10
RESULT = Path(__file__).parent / "results" / "logs.json"
PROBE = "from benchmarks.log_sums import probe; print(*probe({who!r}, {path!r}, {dim}, {checked}))"
Sums = tuple[Array, Array]


def write_log(path: Path, n_rows: int, dim: int, n_tasks: int) -> None:
    """Write a log of normal features and rewards, in random order of tasks, as Parquet with zstd."""
    rng = np.random.default_rng(0)
    kinds = [("task", pa.int64()), *((name, pa.float64()) for name in (*_names(dim), "y"))]
    with pq.ParquetWriter(path, pa.schema(kinds), compression="zstd") as writer:
        for start in range(0, n_rows, CHUNK):
            size = min(CHUNK, n_rows - start)
            tasks = rng.integers(n_tasks, size=size)
            values = 3.0 + rng.standard_normal((dim + 1, size))
            writer.write_table(pa.table([tasks, *values], schema=pa.schema(kinds)))


def _names(dim: int) -> list[str]:
    return [f"x{place}" for place in range(dim)]


def by_numpy(path: str, dim: int) -> Sums:
    """Return the products (T, d + 2, d + 2) of 1, x and y, summed by task, and the names of tasks."""
    found: dict[int, Array] = {}
    for batch in pq.ParquetFile(path).iter_batches(CHUNK):
        tasks = batch.column(0).to_numpy()
        order = np.argsort(tasks, kind="stable")
        rows = np.stack([np.ones(len(tasks)), *(column.to_numpy() for column in batch.columns[1:])], axis=1)
        tasks, starts = np.unique(tasks[order], return_index=True)
        for task, own in zip(tasks.tolist(), np.split(rows[order], starts[1:]), strict=True):
            found[task] = found.get(task, 0.0) + own.T @ own
    names = sorted(found, key=str)
    return np.array([found[task] for task in names]), np.array([str(task) for task in names])


def run_posse(path: str, dim: int, learned: bool) -> LogSummary:
    columns = tuple(NumberColumn(name=name) for name in _names(dim))
    return summarise(path, task="task", reward="y", encoder=None if learned else Encoder(columns=columns))


def run_duckdb(path: str, dim: int) -> pa.Table:
    names = [*_names(dim), "y"]
    asked = ["count(*)", *(f"sum({name})" for name in names)]
    asked += [f"sum({one} * {other})" for place, one in enumerate(names) for other in names[: place + 1]]
    connection = duckdb.connect(config={"threads": 2})
    connection.execute("set enable_progress_bar = false")
    asked = [f"{sums} as s{place}" for place, sums in enumerate(asked)]
    return connection.sql(f"select task, {', '.join(asked)} from '{path}' group by task").to_arrow_table()


def run_polars(path: str, dim: int) -> pl.DataFrame:
    columns = [pl.col(name) for name in (*_names(dim), "y")]
    asked = [pl.len(), *(column.sum() for column in columns)]
    asked += [(one * other).sum() for place, one in enumerate(columns) for other in columns[: place + 1]]
    named = [sums.alias(f"s{place}") for place, sums in enumerate(asked)]
    return pl.scan_parquet(path).group_by("task").agg(named).collect(engine="streaming")


CONTENDERS: dict[str, Callable[[str, int], Any]] = {
    "posse": lambda path, dim: run_posse(path, dim, False),
    "posse, encoder learned": lambda path, dim: run_posse(path, dim, True),
    "DuckDB": run_duckdb,
    "polars": run_polars,
}


def sums_of(found: Any, dim: int) -> Sums:
    """Return what a contender has found as `by_numpy` does; this is not timed."""
    if isinstance(found, LogSummary):
        return _of_summary(found)
    frame = pl.DataFrame(found)
    frame = frame.with_columns(pl.col("task").cast(pl.String)).sort("task")
    values = frame.drop("task").cast(pl.Float64).to_numpy()
    whole = np.empty((len(frame), dim + 2, dim + 2))
    whole[:, 0] = whole[:, :, 0] = values[:, : dim + 2]
    rows, columns = np.tril_indices(dim + 1)
    whole[:, rows + 1, columns + 1] = whole[:, columns + 1, rows + 1] = values[:, dim + 2 :]
    return whole, frame["task"].to_numpy()


def _of_summary(summary: LogSummary) -> Sums:
    seen, dim = summary.statistics, summary.encoder.dim - 1
    whole = np.empty((seen.n_tasks, dim + 2, dim + 2))
    whole[:, :-1, :-1], whole[:, -1, -1] = seen.gram, seen.square
    whole[:, :-1, -1] = whole[:, -1, :-1] = seen.moment
    back = np.eye(dim + 2)  # to the units of the log
    for place, column in enumerate(summary.encoder.columns, 1):
        assert isinstance(column, NumberColumn)
        back[place, place], back[place, 0] = column.scale, column.mean
    return back @ whole @ back.T, np.array(summary.tasks)


def probe(who: str, path: str, dim: int, checked: bool) -> tuple[float, float, float]:
    """Return the processor time, the time, and the peak memory in bytes, of one contender in this process."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.parquet")  # so that nothing has to be compiled or loaded any more
        write_log(small, 100, dim, 3)
        CONTENDERS[who](str(small), dim)
    cpu, wall = time.process_time(), time.perf_counter()
    found = CONTENDERS[who](path, dim)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if checked:
        expected, names = by_numpy(path, dim)
        sums, tasks = sums_of(found, dim)
        assert (tasks == names).all(), who
        assert np.abs(sums - expected).max() <= TOLERANCE * np.abs(expected).max(), who
    return cpu, wall, peak


def _probed(who: str, path: Path, dim: int, checked: bool) -> list[float]:
    """Return what `probe` finds in a process of its own."""
    code = PROBE.format(who=who, path=str(path), dim=dim, checked=checked)
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [float(word) for word in answer.stdout.split()]


def measure(repeats: int, large: bool) -> dict[str, Any]:
    """Measure posse beside others in turn, on many rows and on many tasks; all sums are equal to NumPy's."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    load = os.getloadavg()[0]
    found = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.strip(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "repeats": repeats,
        "beside others": [_beside_others(n_rows, dim, repeats) for n_rows, dim in SHAPES],
        "many rows": _probes(*LARGE, N_TASKS, ("posse", "posse, encoder learned"), 1) if large else None,
        "many tasks": [
            _probes(ROWS_PER_TASK * n_tasks, MANY_DIM, n_tasks, ("posse",), 1, checked=place == 0)
            for place, n_tasks in enumerate(MANY_TASKS if large else ())
        ],
    }
    return {**found, "load at the start and the end": [round(load, 1), round(os.getloadavg()[0], 1)]}


def _beside_others(n_rows: int, dim: int, repeats: int) -> dict[str, Any]:
    found = _probes(n_rows, dim, N_TASKS, tuple(CONTENDERS), repeats)
    cpu = {who: np.array(measured["processor seconds"]) for who, measured in found["measured"].items()}
    best = np.min([times for who, times in cpu.items() if not who.startswith("posse")], axis=0)
    ratios = {who: (best / times).round(2).tolist() for who, times in cpu.items() if who.startswith("posse")}
    return {**found, "times as fast as the better other": ratios}


def _probes(
    n_rows: int, dim: int, n_tasks: int, contenders: Sequence[str], repeats: int, *, checked: bool = True
) -> dict[str, Any]:
    """Return what contenders took, each in processes of its own, in turns."""
    found: dict[str, list[list[float]]] = {who: [] for who in contenders}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.parquet")
        write_log(path, n_rows, dim, n_tasks)
        for turn in range(repeats):
            for who, times in found.items():
                times.append(_probed(who, path, dim, checked=checked and turn == 0))
    measured = {
        who: {
            "processor seconds": [round(cpu, 2) for cpu, _, _ in times],
            "seconds": [round(wall, 2) for _, wall, _ in times],
            "peak memory, GB": round(max(peak for *_, peak in times) / 1e9, 2),
        }
        for who, times in found.items()
    }
    return {"rows": n_rows, "features": dim, "tasks": n_tasks, "measured": measured}


def keep(found: Mapping[str, Any]) -> None:
    """Store what was measured."""
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def markdown(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of the table of the documentation."""
    lines = [
        "| rows | features | tasks | by | processor time | time | memory | as fast as the better other |",
        "|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    logs = [*found["beside others"], *filter(None, [found["many rows"]]), *found["many tasks"]]
    for log in logs:
        size = f"{log['rows']:,} | {log['features']} | {log['tasks']:,}"
        for who, measured in log["measured"].items():
            ratios = log.get("times as fast as the better other", {}).get(who)
            beside = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""
            cpu, wall = min(measured["processor seconds"]), min(measured["seconds"])
            memory = measured["peak memory, GB"]
            lines.append(f"| {size} | {who} | {cpu:.2f} s | {wall:.1f} s | {memory:.2f} GB | {beside} |")
    return lines


def slope(found: Mapping[str, Any]) -> float:
    """Return the power of the number of tasks like which processor time grows."""
    times = [min(log["measured"]["posse"]["processor seconds"]) for log in found["many tasks"]]
    return float(np.polyfit(np.log([log["tasks"] for log in found["many tasks"]]), np.log(times), 1)[0])
