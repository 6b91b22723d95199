"""Off-policy evaluation of a large log: time and memory, from a file to estimates with intervals."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from posse import SharedGreedy
from posse.logs import Evaluation, evaluate

N_ROWS, N_TASKS, N_ARMS, DIM = 10_000_000, 1000, 5, 10
CHUNK = 200_000
TARGETS: dict[str, Any] = {"one arm": "arm:a0", "SharedGreedy, learned": SharedGreedy()}
PROBE = "from benchmarks.evaluation import probe; print(*probe({path!r}, {who!r}))"


def write_decisions(path: Path, n_rows: int, n_tasks: int = N_TASKS, seed: int = 0) -> None:
    """Write a log of decisions of a logger that prefers some arms in some contexts, as Parquet with zstd."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((n_tasks, 2)) @ rng.standard_normal((2, N_ARMS * DIM)) / np.sqrt(2 * DIM)
    theta = theta.reshape(n_tasks, N_ARMS, DIM)
    lean = 0.3 * rng.standard_normal((DIM, N_ARMS))
    names = [f"x{place}" for place in range(DIM)]
    kinds = [("task", pa.int64()), ("arm", pa.string())]
    kinds += [(name, pa.float64()) for name in ("propensity", "reward", *names)]
    with pq.ParquetWriter(path, pa.schema(kinds), compression="zstd") as writer:
        for start in range(0, n_rows, CHUNK):
            size = min(CHUNK, n_rows - start)
            tasks, x = rng.integers(n_tasks, size=size), rng.standard_normal((size, DIM))
            chances = np.exp(x @ lean)
            chances /= chances.sum(axis=1, keepdims=True)
            arms = (rng.random(size)[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
            rewards = np.vecdot(x, theta[tasks, arms]) + rng.standard_normal(size)
            played = pa.DictionaryArray.from_arrays(arms, [f"a{arm}" for arm in range(N_ARMS)])
            values = [tasks, played.cast(pa.string()), chances[np.arange(size), arms], rewards, *x.T]
            writer.write_table(pa.table(values, schema=pa.schema(kinds)))


def run(path: str, who: str) -> Evaluation:
    """Evaluate one target on a log that `write_decisions` wrote."""
    policies = {who: TARGETS[who]}
    return evaluate(path, policies, task="task", arm="arm", reward="reward", propensity="propensity")


def probe(path: str, who: str) -> tuple[float, float, float]:
    """Return processor time, time, and peak memory in bytes, of one evaluation in this process."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.parquet")  # so that nothing has to be compiled or loaded any more
        write_decisions(small, 2000, 3)
        run(str(small), who)
    cpu, wall = time.process_time(), time.perf_counter()
    run(path, who)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu, wall, 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def large(n_rows: int = N_ROWS) -> Table:
    """Measure deterministic targets on ten million decisions."""
    title = f"Evaluation on {n_rows:,} decisions of {N_TASKS} tasks, {N_ARMS} arms, {DIM} features"
    table = Table("target", "processor time", "time", "peak memory", title=title)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.parquet")
        write_decisions(path, n_rows)
        for who in TARGETS:
            code = PROBE.format(path=str(path), who=who)
            answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            cpu, wall, peak = map(float, answer.stdout.split())
            table.add_row(who, f"{cpu:.1f} s", f"{wall:.1f} s", f"{peak / 1e9:.2f} GB")
    return table
