"""Disks that are full, fail or cannot be written, and a compiler without a cache: no answer is wrong."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.live_checks import check_after_death, crash, run_child, same_state

from posse.live import Agent, read_status
from posse.live.journal import JournalError
from posse.live.sqlite import SqliteJournal
from posse.live.states import States
from posse.numerics.compiled import compiled


@pytest.mark.skipif(sys.platform != "linux", reason="system calls are filtered by Linux")
@pytest.mark.parametrize(
    ("fault", "durability", "words"),
    [("sync", "power", "disk I/O error"), ("full", "power", "full"), ("full", "process", "full")],
)
def test_a_disk_that_fails_acknowledges_nothing_and_corrupts_nothing(
    tmp_path: Path, fault: str, durability: str, words: str
) -> None:
    path = tmp_path / "files" / "agent.db"
    path.parent.mkdir()
    child = run_child(path, durability, 1, fault)
    out, _ = child.communicate(timeout=120)
    lines = out.splitlines(keepends=True)
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
