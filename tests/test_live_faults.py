"""Disks that are full, fail or cannot be written, and a compiler without a cache: no answer is wrong."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.children import Children, children
from proofs.live_checks import check_after_death, crash, same_state, statistics_of

from live_world import TASKS, Clock, arms
from posse import Encoder, FactorPrior, GramStatistics, Model
from posse.core.account import Account
from posse.live import Agent, read_status
from posse.live.journal import JournalError
from posse.live.sqlite import SqliteJournal
from posse.live.states import States, sync
from posse.numerics.compiled import compiled


@pytest.fixture(scope="module")
def start() -> Iterator[Children]:
    """What starts processes."""
    with children() as started:
        yield started


@pytest.mark.skipif(sys.platform != "linux", reason="system calls are filtered by Linux")
@pytest.mark.parametrize(
    ("fault", "durability", "words"),
    [("sync", "power", "disk I/O error"), ("full", "power", "full"), ("full", "process", "full")],
)
def test_a_disk_that_fails_acknowledges_nothing_and_corrupts_nothing(
    tmp_path: Path, start: Children, fault: str, durability: str, words: str
) -> None:
    path = tmp_path / "files" / "agent.db"
    path.parent.mkdir()
    lines = start.start("proofs.live_child", path, durability, 1, fault).wait()
    assert lines[-1].startswith("error")
    assert words in lines[-1]
    assert ("must be opened again" in lines[-1]) == (durability == "power")
    assert sum(line.startswith("told") for line in lines) == 20
    assert sum(line.startswith("asked") for line in lines) == 20
    check_after_death(path, lines)


def test_a_full_disk_acknowledges_nothing_and_the_agent_goes_on_when_there_is_room(tmp_path: Path) -> None:
    agent = Agent.open(tmp_path / "agent.db", refits="never", seed=0)
    agent.ask("a", np.eye(3), id="first")
    journal = agent._desk.journal
    assert isinstance(journal, SqliteJournal)
    (pages,) = journal._db.execute("PRAGMA page_count").fetchone()
    journal._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    asked = 0
    with pytest.raises(JournalError, match="full"):  # noqa: PT012
        for n in range(10_000):
            agent.ask("a", np.eye(3), id=f"n{n}")
            asked += 1
    assert agent.status().decisions == asked + 1
    with pytest.raises(JournalError, match="full"):  # noqa: PT012
        for n in range(10_000):
            agent.tell(f"n{n % asked}", 1.0, f"event {n}")
    before = agent.status().rewards
    journal._db.execute(f"PRAGMA max_page_count = {2**30}")
    agent.tell("first", 2.0)
    assert agent.status().rewards == before + 1
    copy = Agent.open(tmp_path / "other.db", refits="never", seed=0)
    crash(copy)
    crash(agent)
    again = Agent.open(tmp_path / "agent.db", refits="never", seed=0)
    same_state(agent, again)
    again.close()


class BrokenDisk:
    """A connection to SQLite on which no transaction begins, once that is said."""

    def __init__(self, db: Any) -> None:
        self._db, self.broken = db, False

    def execute(self, text: str, *values: Any) -> Any:
        if self.broken and text.startswith(("BEGIN", "INSERT")):
            raise OSError("the disk is gone")
        return self._db.execute(text, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def test_a_thread_that_waits_for_others_is_not_told_that_all_is_well_when_their_write_failed(
    tmp_path: Path,
) -> None:
    agent = Agent.open(tmp_path / "agent.db", durability="power", refits="never", seed=0)
    agent.tell(agent.ask("a", np.eye(2), id="settled").id, 1.0)
    journal = agent._desk.journal
    assert isinstance(journal, SqliteJournal)
    disk = BrokenDisk(journal._db)
    journal._db = disk  # type: ignore[assignment]
    disk.broken = True
    with agent._lock:
        agent._decide("a", np.eye(2), None, "mine", None, True)  # recorded, and not acknowledged yet
    with pytest.raises(JournalError, match="the disk is gone"):
        agent.tell("settled", 1.0)  # looks into the file, and writes what waits: that fails
    disk.broken = False
    with pytest.raises(JournalError, match="opened again"):
        agent._desk.acknowledge()
    with pytest.raises(JournalError, match="opened again"):
        agent.ask("a", np.eye(2), id="mine")
    crash(agent)
    assert read_status(tmp_path / "agent.db").decisions == 1


def test_events_are_not_removed_where_there_is_no_room_for_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    agent = Agent.open(tmp_path / "agent.db", refits="inline", seed=0)
    for number in range(60):
        agent.tell(agent.ask("ab"[number % 2], np.eye(3), id=str(number)).id, float(number))

    def full(self: States, number: int, state: Any, alone: bool) -> None:
        return None  # as where the disk is full

    with monkeypatch.context() as away:
        away.setattr(States, "_write", full)
        with pytest.raises(JournalError, match="room for a snapshot"):
            agent.archive(tmp_path / "old.parquet", before=1e12)
        with pytest.raises(JournalError, match="room for a snapshot"):
            agent.erase("b")
    assert not (tmp_path / "old.parquet").exists()
    agent.erase("a")
    crash(agent)
    again = Agent.open(tmp_path / "agent.db", refits="inline", seed=0)
    same_state(agent, again)
    again.close()


@contextmanager
def without_privileges() -> Iterator[None]:
    """Whoever runs the tests has no rights for a while that others have not."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can look into, and go to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_folder_that_cannot_be_written_is_named_and_its_agent_can_be_looked_at(folder: Path) -> None:
    Agent.open(folder / "agent.db", refits="never").close()
    for file in folder.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    folder.chmod(0o555)
    with without_privileges():
        with pytest.raises(JournalError, match=r"agent\.db-lock' must be a file that can be written: Perm"):
            Agent.open(folder / "agent.db")
        with pytest.raises(JournalError, match=r"new\.db-lock' must be a file that can be written: Perm"):
            Agent.open(folder / "new.db")
        assert read_status(folder / "agent.db").decisions == 0
    folder.chmod(0o755)


def test_code_is_compiled_where_the_compiler_has_no_place_for_its_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    def double(x: float) -> float:
        return 2.0 * x

    with pytest.raises(RuntimeError, match="no locator"):
        pytest.importorskip("numba").njit(cache=True)(double)
    assert compiled(double)(4.0) == 8.0


def test_decisions_are_in_the_journal_or_in_the_archive_when_a_process_dies_in_between(
    tmp_path: Path, start: Children
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, clock, rng = tmp_path / "files" / "agent.db", Clock(0.0), np.random.default_rng(3)
    path.parent.mkdir()
    agent = Agent.open(path, refits="inline", seed=0, clock=clock)
    for number in range(600):
        clock.now += 1.0
        agent.tell(agent.ask(TASKS[number % 3], arms(rng), id=f"{number}").id, float(rng.standard_normal()))
    before = agent.status()
    crash(agent)
    every, archived = {str(number) for number in range(600)}, set()
    interrupted = in_both = 0
    for life in range(12):
        out = tmp_path / f"{life}.parquet"
        child = start.start("proofs.archiving_child", path, out, 50.0 * (life + 1))
        if life % 3 == 0:
            lines = child.wait()
        else:
            child.wait_for(1)
            end = time.monotonic() + rng.uniform(0.0, 0.03)
            while time.monotonic() < end or (life % 3 == 2 and child.alive and not out.exists()):
                pass
            lines = child.kill()
        interrupted += len(lines) < 2
        if out.exists():  # whole, or not there at all
            archived |= set(parquet.read_table(out, columns=["id"])["id"].to_pylist())
        agent = Agent.open(path, refits="inline", clock=clock)
        kept = {number for number in every if agent.find(number) is not None}
        assert kept | archived == every
        in_both += bool(kept & archived)
        if len(lines) == 2:
            assert not kept & {str(number) for number in range(50 * (life + 1) - 1)}
        assert agent.status() == before
        crash(agent)
    assert 0 < interrupted <= 8
    assert in_both > 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which file it is")
def test_a_new_file_is_on_the_disk_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, plain = [], os.fsync

    def noted(file: int) -> None:
        seen.append(os.readlink(f"/proc/self/fd/{file}"))
        plain(file)

    monkeypatch.setattr(os, "fsync", noted)
    (tmp_path / "new").touch()
    sync(tmp_path / "new")
    assert seen == [str(tmp_path / "new"), str(tmp_path)]


@pytest.mark.parametrize("stage", ["drop_version", "save_state", "erase", "set_meta"])
def test_a_task_is_erased_to_the_end_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    path, encoder = tmp_path / "agent.db", Encoder(arms=("red", "blue"))
    x = encoder.encode({}, ["red", "blue"] * 20)
    statistics = GramStatistics.from_rows(np.repeat(np.arange(4), 10), x, x[:, 1] - x[:, 2], 4)
    model = Model(
        estimate=FactorPrior().fit(statistics),
        statistics=statistics,
        encoder=encoder,
        tasks=("one", "two", "secret-shop", "three"),
        task="shop",
        reward="sales",
        arm="arm",
        account=Account(source="log", rows=40, used=40),
    )
    agent = Agent.open(path, model=model, refits="inline", seed=0)
    for number in range(40):
        agent.tell(agent.ask(("one", "secret-shop")[number % 2], ["red", "blue"]).id, float(number))
    agent.publish()

    class KilledError(Exception):
        """The process ends here."""

    def end(*arguments: object, **named: object) -> None:
        raise KilledError

    with monkeypatch.context() as away:
        away.setattr(SqliteJournal, stage, end)
        with pytest.raises(KilledError):
            agent.erase("secret-shop")
    crash(agent)
    again = Agent.open(path, refits="inline", seed=0)
    assert "secret-shop" not in again.tasks()
    again.erase("secret-shop")
    with pytest.raises(ValueError, match="one that was seen"):
        again.erase("secret-shop")
    assert statistics_of(again).count.tolist() == [10.0 + 20.0, 10.0, 0.0, 10.0]
    crash(again)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"secret-shop" not in file.read_bytes(), file
    agent = Agent.open(path, refits="inline", seed=0)
    same_state(agent, again)
    agent.close()
