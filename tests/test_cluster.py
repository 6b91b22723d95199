"""Runs on a Dask cluster: the same to the last bit, whatever dies."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster
from typer.testing import CliRunner

from posse.cli import app
from posse.lab import cluster as dask_engine
from posse.lab.engines import GivenUp, GridError, Workers, in_parallel
from posse.lab.experiment import Experiment
from posse.lab.grid import Progress, play_seeds, run_experiments

pytestmark = pytest.mark.slow

SMALL = Experiment(
    name="small",
    problem="gaussian",
    cells=tuple({"dim": 6, "rank": 2, "n_tasks": T, "n_arms": 3} for T in (6, 7)),
    policies=("mlingreedy", "naive"),
    horizon=60,
)


def wait_until(condition: Callable[[], Any]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("waited for a minute")


def workers_of(cluster: LocalCluster) -> Workers:
    return Workers(engine="dask", address=cluster.scheduler_address)


def test_a_killed_worker_changes_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    long = replace(SMALL, horizon=30_000)
    scheduler: Any = cluster.scheduler

    def lost_runs() -> int:
        return sum(prefix.suspicious for prefix in scheduler.task_prefixes.values())

    def kill_a_busy_worker(progress: Progress) -> None:
        busy = [worker for worker in list(scheduler.workers.values()) if worker.processing]
        if progress.runs == 0 or lost_runs() or not busy:
            return
        address = busy[0].address
        pids = {nanny.worker_address: nanny.pid for nanny in cluster.workers.values()}
        os.kill(pids[address], signal.SIGKILL)
        wait_until(lambda: address not in scheduler.workers)

    killed = run_experiments(
        [long],
        seeds=5,
        out=tmp_path,
        workers=workers_of(cluster),
        on_progress=kill_a_busy_worker,
    )["small"]
    assert lost_runs() >= 1
    alone = play_seeds(long, seeds=5)
    assert killed.drop("seconds").equals(alone.drop("seconds"))
    assert len(list(tmp_path.glob("small/runs/*.parquet"))) == 10


def test_a_call_that_kills_its_workers_is_given_up(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_last(number: int) -> int:
        if number == 5:
            while len(list(tmp_path.iterdir())) < 5:
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    calls = [(number,) for number in range(6)]
    found: list[Any] = []
    for result in in_parallel(die_last, calls, workers_of(cluster)):
        (tmp_path / str(len(found))).touch()
        found.append(result)
    assert sorted(found[:5]) == [0, 1, 2, 3, 4]
    assert found[5:] == [GivenUp((5,), "1 times a worker died in it (killed, or out of memory)")]


def test_a_failed_run_is_named_and_the_others_are_kept(cluster: LocalCluster, tmp_path: Path) -> None:
    bad = replace(SMALL, cells=(*SMALL.cells, {"dim": 5, "rank": 9, "n_tasks": 3, "n_arms": 3}))
    with pytest.raises(GridError, match=r"1 of 3 runs failed; .*rank=9.*Got 9"):
        run_experiments([bad], seeds=1, out=tmp_path, workers=workers_of(cluster))
    assert len(list(tmp_path.glob("small/runs/*.parquet"))) == 2


def test_a_disk_that_cannot_be_written_ends_it_and_leaves_the_cluster_alone(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "runs").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="runs"):
        run_experiments([SMALL], seeds=3, out=tmp_path, workers=workers_of(cluster))
    scheduler: Any = cluster.scheduler
    wait_until(lambda: not scheduler.tasks)


def test_a_cluster_of_our_own_is_gone_afterwards() -> None:
    before = set(active_children())
    table = play_seeds(SMALL, seeds=2, workers=Workers(engine="dask"))
    assert table.drop("seconds").equals(play_seeds(SMALL, seeds=2).drop("seconds"))
    assert set(active_children()) <= before


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from posse.cli import main; main()", "reproduce", "fig2"]
    command += ["--seeds", "1", "--jobs", "2", "--engine", "dask", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: list(tmp_path.glob("fig2/runs/*.parquet")))
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "the same command goes on from there" in stderr
    assert "Traceback" not in stderr

    def alone() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(alone)


@pytest.mark.parametrize("listening", [False, True])
def test_an_address_without_a_scheduler_is_an_error_and_nothing_is_lost(
    listening: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "ANSWER_SECONDS", 0.5)
    run_experiments([SMALL], seeds=1, out=tmp_path)
    kept = sorted(tmp_path.glob("small/runs/*.parquet"))
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        if listening:
            stranger.listen()
        address = f"127.0.0.1:{stranger.getsockname()[1]}"
        with pytest.raises(GridError, match=f"no Dask scheduler answers at {address}"):
            run_experiments([SMALL], seeds=2, out=tmp_path, workers=Workers(engine="dask", address=address))
        result = CliRunner().invoke(
            app, ["simulate", "--seeds", "1", "--rounds", "50", "--engine", "dask", "--address", address]
        )
    assert result.exit_code == 1
    assert "no Dask scheduler answers at" in result.stderr
    assert sorted(tmp_path.glob("small/runs/*.parquet")) == kept


def test_a_scheduler_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "ANSWER_SECONDS", 60.0)  # it is only starting
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"127.0.0.1:{port}"
    scheduler, workers = (
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command, "--no-dashboard"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in (
            ["scheduler", "--host", "127.0.0.1", "--port", port],
            ["worker", address, "--nthreads", "1"],
        )
    )

    def end(progress: Progress) -> None:
        if progress.runs == 2:
            scheduler.kill()

    try:
        with pytest.raises(GridError, match=r"the Dask scheduler is gone. Runs that were saved are kept"):
            run_experiments(
                [replace(SMALL, horizon=20_000)],
                seeds=10,
                out=tmp_path,
                workers=Workers(engine="dask", address=address),
                on_progress=end,
            )
    finally:
        for process in (workers, scheduler):
            process.kill()
            process.wait()
    assert 2 <= len(list(tmp_path.glob("small/runs/*.parquet"))) < 20


class Client:
    """Stands for a client whose workers are as told."""

    def __init__(self, threads: int, found: object) -> None:
        self.threads, self.found = threads, found

    def wait_for_workers(self, n_workers: int, timeout: float) -> None:
        if self.threads == 0:
            raise TimeoutError

    def nthreads(self) -> dict[str, int]:
        return {"tcp://far:1": self.threads}

    def run(self, function: object, package: str, on_error: str) -> dict[str, object]:
        return {"tcp://far:1": self.found}


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (Client(0, ""), r"the Dask scheduler at near:1 has no workers. Start some: dask worker near:1"),
        (Client(4, ""), r"workers must have one thread each \(--nthreads 1\). Got 4 at tcp://far:1."),
        (Client(1, "0.0.9"), r"posse must be \S+ on all workers, as here. Got 0.0.9 at tcp://far:1."),
        (
            Client(1, PackageNotFoundError("posse")),
            r"posse must be \S+ on all workers, as here. Got none at",
        ),
    ],
)
def test_workers_that_would_play_otherwise_are_refused(client: Any, message: str) -> None:
    with pytest.raises(GridError, match=message):
        dask_engine._check_workers(client, "near:1")
