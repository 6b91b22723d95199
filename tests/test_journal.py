"""Agents in files: nothing acknowledged is lost, and an agent that goes on is the one that stopped."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.children import children
from proofs.kills import kill_one_by_one
from proofs.live_checks import check_after_death, crash, same_state, statistics_of

from live_world import TASKS, Clock, arms, assert_same
from posse import Encoder, FactorPrior, GramStatistics, IndependentThompson, Model, Random, SharedThompson
from posse.core.account import Account
from posse.core.archive import write_archive
from posse.core.codec import encode, load
from posse.core.protocols import Policy
from posse.live import Agent, read_status
from posse.live.guards import bucket_of
from posse.live.journal import JournalError
from posse.live.packing import from_bytes


def live(agent: Agent, rng: np.random.Generator, clock: Clock, n: int) -> None:
    """Let all kinds of things happen."""
    for _ in range(n):
        clock.now += rng.exponential()
        shown = rng.random() < 0.9
        task, offered, id = str(rng.choice(TASKS)), arms(rng), f"{rng.integers(2**60):020d}"
        decision = agent.ask(task, offered, id=id, shown=bool(shown), unit=f"u{rng.integers(40)}")
        if not shown and rng.random() < 0.7:
            agent.activate(decision.id)
        for event in range(int(rng.integers(0, 3))):
            at = clock.now + rng.exponential(4.0)
            agent.tell(decision.id, float(rng.standard_normal()), f"e{event}", at)
        if rng.random() < 0.02:
            agent.forbid(str(rng.choice(TASKS)), [int(rng.integers(4))])
        if rng.random() < 0.02:
            agent.freeze(not agent.status().frozen)
        if rng.random() < 0.02 and agent.versions():
            agent.rollback(0)
        if rng.random() < 0.02:
            agent.promote(max(version.number for version in agent.versions()))


def opened(path: Path, clock: Clock, every: int = 10**9, control: Policy | None = None) -> Agent:
    return Agent.open(
        path,
        rewards="last",
        reward_wait=6.0,
        default_reward=0.1,
        refits="inline",
        control=0.2,
        control_arm=1 if control is None else None,
        control_policy=control,
        snapshot_every=every,
        seed=7,
        clock=clock,
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("every", [25, 10**9])
def test_an_agent_that_stopped_goes_on_bit_by_bit_as_one_that_never_did(
    tmp_path: Path, seed: int, every: int
) -> None:
    clock, other_clock = Clock(), Clock()
    control = IndependentThompson() if seed % 2 else None
    whole = opened(tmp_path / "whole.db", other_clock, control=control)
    whole.freeze()
    whole.freeze(seed > 1)
    for part in range(5):
        # one life goes on; the other ends by a crash or a close after every part
        rng = np.random.default_rng([seed, part])
        live(whole, rng, other_clock, 30)
        again = opened(tmp_path / "again.db", clock, every, control)
        if part == 0:
            again.freeze()
            again.freeze(seed > 1)
        live(again, np.random.default_rng([seed, part]), clock, 30)
        same_state(whole, again)
        crash(again) if part % 2 else again.close()
    again = opened(tmp_path / "again.db", clock, control=control)
    same_state(whole, again)
    assert again.versions()[1:] == () or again.versions()[-1].events > 0
    next_one = [agent.ask("a", np.eye(3), id="next") for agent in (whole, again)]
    assert next_one[0].arm == next_one[1].arm
    np.testing.assert_array_equal(next_one[0].propensities, next_one[1].propensities)
    crash(again)
    # all events from the first one on, and no state at all
    shutil.rmtree(tmp_path / "again.db-states")
    again = opened(tmp_path / "again.db", clock, control=control)
    same_state(whole, again)
    again.close()
    whole.close()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path) -> None:
    path = tmp_path / "files" / "agent.db"
    path.parent.mkdir()
    with children() as start:
        lines = kill_one_by_one(path, 20, 0, start, np.random.default_rng(5))
    assert sum(line.startswith("told") for line in lines) > 200
    check_after_death(path, lines)


def test_group_commits_serve_many_threads(tmp_path: Path) -> None:
    agent = Agent.open(tmp_path / "agent.db", durability="power", refits="never", seed=0)

    def work(name: str) -> None:
        for n in range(20):
            agent.tell(agent.ask(name, np.eye(2), id=f"{name}{n}").id, 1.0)
            agent.tell(f"{name}{n}", 1.0)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    crash(agent)
    assert read_status(tmp_path / "agent.db").rewards == 80


def test_a_second_process_is_refused_by_the_name_of_the_first_and_may_look(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = Agent.open(path, refits="never")
    agent.tell(agent.ask("a", np.eye(2)).id, 1.0)
    code = "import sys; from posse.live import Agent; Agent.open(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    second = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment, check=False
    )
    assert f"open in process {os.getpid()}" in second.stderr
    assert read_status(path).rewards == 1
    agent.tell(agent.ask("a", np.eye(2)).id, 1.0)
    assert read_status(path).rewards == 2
    agent.close()
    with pytest.raises(JournalError, match="was closed"):
        agent.ask("a", np.eye(2))


def test_files_that_are_no_journals_are_refused(tmp_path: Path) -> None:
    foreign, text, newer, cut = (tmp_path / name for name in ("foreign.db", "text.db", "newer.db", "cut.db"))
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(JournalError, match="a SQLite file of others"):
        Agent.open(foreign)
    text.write_text("hello " * 1000)
    with pytest.raises(JournalError, match="not a database"):
        Agent.open(text)
    assert text.read_text() == "hello " * 1000
    for path in (newer, cut):
        agent = Agent.open(path, refits="never")
        for n in range(200):
            agent.ask("a", np.eye(3), id=str(n))
        agent.close()
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(JournalError, match="Got 99: a later posse"):
        Agent.open(newer)
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    shutil.rmtree(tmp_path / "cut.db-states")
    with pytest.raises(JournalError, match="malformed"):
        Agent.open(cut)
    with pytest.raises(JournalError, match="no such file"):
        read_status(tmp_path / "nowhere.db")
    folder = tmp_path / "no" / "such"
    with pytest.raises(JournalError, match="No such file"):
        Agent.open(folder / "agent.db")


def test_a_damaged_state_is_made_anew_from_the_journal(tmp_path: Path) -> None:
    path, clock = tmp_path / "agent.db", Clock()
    agent = opened(path, clock, every=40)
    live(agent, np.random.default_rng(0), clock, 100)
    crash(agent)
    for state in (tmp_path / "agent.db-states").glob("*.posse"):
        state.write_bytes(state.read_bytes()[:1000])
    again = opened(path, clock)
    same_state(agent, again)
    again.close()


def test_strings_of_numpy_are_strings(tmp_path: Path) -> None:
    path, names = tmp_path / "agent.db", np.array(["shop", "red", "blue", "first", "sale"])
    agent = Agent.open(path, refits="never", seed=0)
    agent.ask(names[0], {names[1]: [1.0], names[2]: [2.0]}, id=names[3])
    agent.tell(names[3], 1.0, names[4])
    agent.ask_many(list(names[:1]), [{names[1]: [1.0]}], ids=list(names[1:2]))
    agent.close()
    again = Agent.open(path, seed=0)
    assert list((tmp_path / "agent.db-states").glob("snapshot-*"))
    same_state(agent, again)
    again.close()


def test_settings_that_say_what_was_learned_must_stay_and_others_may_change(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    Agent.open(path, SharedThompson(rank=2), reward_wait=60.0, refits="never").close()
    with pytest.raises(ValueError, match=r"`policy` of the agent in .* must be SharedThompson\(rank=2\)"):
        Agent.open(path, IndependentThompson())
    with pytest.raises(ValueError, match="`reward_wait` of the agent"):
        Agent.open(path, reward_wait=30.0)
    agent = Agent.open(path, floor=0.2)
    assert agent.ask("a", np.eye(2)).propensities.min() >= 0.2
    agent.close()
    agent = Agent.open(path)
    assert agent._desk.settings.floor == 0.2
    assert agent._desk.settings.policy == SharedThompson(rank=2)
    agent.close()
    with pytest.raises(ValueError, match="`durability` of open must be one of process, power"):
        Agent.open(path, durability="none")


def test_an_erased_task_is_gone_from_every_file(tmp_path: Path) -> None:
    path, clock = tmp_path / "agent.db", Clock()
    agent = Agent.open(path, refits="inline", seed=0, clock=clock)
    for n in range(60):
        agent.tell(agent.ask(("shop", "secret-shop", "other")[n % 3], np.eye(3)).id, float(n))
    agent.forbid("secret-shop", ["0"])
    agent.erase("secret-shop")
    agent.ask("shop", np.eye(3), id="last")
    crash(agent)
    for file in [path, *tmp_path.glob("agent.db-*"), *(tmp_path / "agent.db-states").iterdir()]:
        if file.is_file():
            assert b"secret-shop" not in file.read_bytes(), file
    again = Agent.open(path, seed=0, clock=clock, refits="inline")
    same_state(agent, again)
    assert again.status().tasks == 2
    with pytest.raises(ValueError, match="one that was seen"):
        again.erase("secret-shop")
    again.close()


def test_a_model_of_a_log_is_what_an_agent_begins_with(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    encoder = Encoder(arms=("red", "blue"))
    x = encoder.encode({}, ["red", "blue"] * 50)
    y = x[:, 1] - x[:, 2] + 0.1 * rng.standard_normal(100)
    statistics = GramStatistics.from_rows(np.repeat(np.arange(10), 10), x, y, 10)
    account = Account(source="log", rows=100, used=100)
    model = Model(
        estimate=FactorPrior().fit(statistics),
        statistics=statistics,
        encoder=encoder,
        tasks=("a", "b", "c", "secret-shop", *"efghij"),
        task="shop",
        reward="sales",
        arm="arm",
        account=account,
    )
    path = tmp_path / "agent.db"
    agent = Agent.open(path, model=model, refits="inline", seed=0)
    decision = agent.ask("a", ["blue", "red"])
    assert decision.propensities[1] > 0.9
    assert agent.versions()[0].source == "model"
    agent.ask("new", ["blue", "red"])
    agent.tell(decision.id, 1.0)
    assert_same(
        statistics_of(agent),
        statistics.padded(11) + GramStatistics.from_rows([0], encoder.encode({}, [decision.arm]), [1.0], 11),
    )
    crash(agent)
    again = Agent.open(path, refits="inline", seed=0)
    same_state(agent, again)
    again.erase("secret-shop")
    assert again.status().tasks == 10
    with pytest.raises(ValueError, match="one that was seen"):
        again.erase("secret-shop")
    crash(again)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"secret-shop" not in file.read_bytes(), file
    agent = Agent.open(path, model=model, refits="inline", seed=0)  # which is known by its digest
    same_state(agent, again)
    crash(agent)
    shutil.rmtree(tmp_path / "agent.db-states")  # so that all is learned anew, from what is left of the model
    agent = Agent.open(path, refits="inline", seed=0)
    assert statistics_of(agent).count[3] == 0.0
    assert "secret-shop" not in agent.tasks()
    agent.close()
    with pytest.raises(ValueError, match="must be that which it was made with"):
        Agent.open(path, model=replace(model, task="another"))


def test_old_decisions_are_archived_and_exported_as_a_table(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from posse.live.files import export

    path, clock = tmp_path / "agent.db", Clock()
    agent = opened(path, clock)
    live(agent, np.random.default_rng(0), clock, 60)
    middle = clock.now
    live(agent, np.random.default_rng(1), clock, 60)
    before = agent._desk.engine.state()
    assert export(path, tmp_path / "all.parquet") == 120
    table = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row["time"] for row in table] == sorted(row["time"] for row in table)
    total = sum(row["reward"] for row in table if row["reward"] is not None and row["task"] == "a")
    numbers = agent._desk.engine.numbers
    counted = sum(row["reward"] is not None for row in table)
    assert counted == statistics_of(agent).count.sum()
    squares = sum(row["reward"] ** 2 for row in table if row["reward"] is not None and row["task"] == "a")
    assert squares == pytest.approx(statistics_of(agent).square[numbers["a"]])
    assert np.isfinite(total)
    for row in table:
        assert row["propensities"][int(row["arm"])] == row["propensity"]
        assert sum(row["propensities"]) == pytest.approx(1.0)
    moved = agent.archive(tmp_path / "old.parquet", before=middle)
    assert 40 < moved <= 60
    assert parquet.read_table(tmp_path / "old.parquet").num_rows == moved
    assert export(path, tmp_path / "rest.parquet") == 120 - moved
    with pytest.raises(ValueError, match="unknown"):
        agent.tell(table[0]["id"], 1.0, "more")
    with pytest.raises(ValueError, match="must be new"):
        agent.archive(tmp_path / "old.parquet", before=middle)
    assert agent._desk.engine.state().counts == before.counts
    crash(agent)
    again = opened(path, clock)
    same_state(agent, again)
    again.close()


def test_a_snapshot_of_events_that_the_journal_has_lost_is_not_gone_on_from(tmp_path: Path) -> None:
    # a loss of power may take the last events of level "process", and leave a snapshot that has them
    path, clock = tmp_path / "agent.db", Clock()
    agent = Agent.open(path, refits="inline", seed=0, clock=clock)
    for number in range(40):
        agent.tell(agent.ask(TASKS[number % 3], np.eye(3)[:2], id=str(number)).id, float(number))
    agent.publish()
    (before,) = (tmp_path / "agent.db-states").glob("snapshot-*")
    kept = before.read_bytes()
    for number in range(40, 60):
        agent.tell(agent.ask("a", np.eye(3)[:2], id=str(number)).id, float(number))
    agent.close()
    with sqlite3.connect(path) as db:
        (last,) = db.execute("SELECT seq FROM decisions WHERE id = '45'").fetchone()
        for table in ("decisions", "rewards", "shown", "others"):
            db.execute(f"DELETE FROM {table} WHERE seq >= ?", (last,))
    db.close()
    assert before.read_bytes() == kept
    again = Agent.open(path, refits="inline", seed=0, clock=clock)
    assert (again.status().decisions, again.status().rewards) == (45, 45)
    for number in range(100, 130):  # these get the numbers of events that were lost
        again.tell(again.ask("b", np.eye(3)[:2], id=str(number)).id, 1.0)
    crash(again)
    third = Agent.open(path, refits="inline", seed=0, clock=clock)
    same_state(again, third)
    assert third.status().rewards == 75
    third.close()


def test_a_journal_that_was_made_before_there_were_bets_and_salts_goes_on(tmp_path: Path) -> None:
    path, names = tmp_path / "agent.db", [f"shop {number}" for number in range(12)]
    with Agent.open(path, Random(), control=0.5, control_arm=0, refits="never", seed=0) as agent:
        for name in names:
            agent.tell(agent.ask(name, np.eye(3)).id, 1.0)
        agent.archive(tmp_path / "old.parquet", before=1e12)  # from now on only the snapshot knows them
    (snapshot,) = (tmp_path / "agent.db-states").glob("snapshot-*")
    tree, arrays = encode(load(snapshot))
    monitor = tree["fields"]["monitor"]["fields"]
    for name in ("won", "stake", "held"):
        del monitor[name]
    monitor |= {"excess": {"array": "excess"}, "variance": {"array": "variance"}}
    arrays |= {"excess": np.ones(64), "variance": np.eye(64)}
    write_archive(snapshot, json.dumps({"format": 1, "posse": "0", "value": tree}), arrays)
    db = sqlite3.connect(path)
    (stored,) = db.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
    tree, arrays = encode(from_bytes(stored))
    del tree["fields"]["salt"]
    write_archive(tmp_path / "settings", json.dumps({"format": 1, "posse": "0", "value": tree}), arrays)
    db.execute("UPDATE meta SET value = ? WHERE key = 'settings'", [(tmp_path / "settings").read_bytes()])
    db.commit()
    db.close()
    with Agent.open(path, seed=1) as agent:
        status = agent.status()
        assert (status.decisions, status.rewards, status.alarms) == (12, 12, ())
        held = [agent.ask(name, np.eye(3)).propensity == 1.0 for name in names]
        assert held == [bucket_of(name) < 512 for name in names]


def test_agents_draw_control_groups_of_their_own_and_keep_them(tmp_path: Path) -> None:
    units = [f"user {number}" for number in range(60)]

    def group(agent: Agent) -> list[bool]:
        return [agent.ask("shop", np.eye(3), unit=unit).propensity == 1.0 for unit in units]

    def opened(name: str, **more: Any) -> Agent:
        return Agent.open(tmp_path / name, Random(), control=0.5, control_arm=0, refits="never", **more)

    with opened("one.db") as agent:
        first = group(agent)
        assert group(agent) == first
    with opened("one.db", seed=3) as agent:
        assert group(agent) == first
    for seed in (None, 0):  # groups that agree by chance are one in 10^17
        with opened(f"other {seed}.db", seed=seed) as agent:
            assert group(agent) != first
    same = [Agent(Random(), control=0.5, control_arm=0, refits="never", **way) for way in SAME_GROUPS]
    assert group(same[0]) == group(same[1]) != group(same[2]) == group(same[3])
    opened("salted.db", salt="").close()
    with pytest.raises(ValueError, match=r"`salt` of the agent in .* must be '', as it was made"):
        opened("salted.db", salt="spring")
    with pytest.raises(ValueError, match="`salt` of Agent must be text of at most 64 bytes"):
        Agent(salt="é" * 33)


SAME_GROUPS: list[dict[str, Any]] = [{"salt": "a"}, {"salt": "a", "seed": 5}, {"seed": 5}, {"seed": 5}]


def test_an_agent_whose_events_were_all_archived_goes_on_from_what_it_knew(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Agent.open(path, refits="never", seed=0) as agent:
        for number in range(20):
            agent.tell(agent.ask("shop", np.eye(3), id=str(number)).id, float(number))
        known = agent.beliefs()["shop"].theta
        assert agent.archive(tmp_path / "old.parquet", before=1e12) == 20
    for opening in range(2):
        with Agent.open(path, seed=0) as agent:
            assert (agent.status().decisions, agent.status().rewards) == (20 + opening, 20)
            if not opening:
                np.testing.assert_array_equal(agent.beliefs()["shop"].theta, known)
            agent.ask("shop", np.eye(3))
            crash(agent)
