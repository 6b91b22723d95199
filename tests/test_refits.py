"""Refits beside an agent: decisions go on meanwhile, and a refit that fails harms nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from proofs.live_checks import crash, same_state, statistics_of

from live_world import TASKS, arms, assert_same
from posse import GramStatistics, LearningPolicy, Ridge, Shared, SharedThompson, Thompson
from posse.core.episode import Job
from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.live import Agent
from posse.live.events import Began, Failed
from posse.live.refits import BackgroundFitter, attempt

PATIENCE = 60.0


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for another process; a minute without it is a failure, not a measurement."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def feed(agent: Agent, start: int, n: int) -> None:
    for number in range(start, start + n):
        rng = np.random.default_rng(number)
        agent.ask(TASKS[number % 3], arms(rng)[:1], id=str(number))  # one arm: all agents learn from it
        agent.tell(str(number), float(rng.standard_normal()))


def test_a_refit_beside_the_agent_leads_where_one_in_the_call_does() -> None:
    inline = Agent(refits="inline", seed=0)
    feed(inline, 0, 15)
    assert inline.status().version == 1
    feed(inline, 15, 1)
    with Agent(refits="background", seed=0) as agent:
        feed(agent, 0, 15)
        wait_until(lambda: agent.status().version == 1)
        feed(agent, 15, 1)
        assert not agent.status().refitting
        same_state(agent, inline)


def test_what_is_believed_after_a_refit_is_worked_out_beside_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def here(self: Shared, state: object) -> Beliefs:
        raise AssertionError("beliefs were made in the process that decides")

    with Agent(refits="background", seed=0) as agent:
        feed(agent, 0, 14)
        monkeypatch.setattr(Shared, "beliefs", here)
        feed(agent, 14, 1)
        wait_until(lambda: not agent.status().refitting)
        assert (agent.status().version, agent.status().alarms) == (1, ())


class StuckFitter(BackgroundFitter):
    """A process that never answers."""

    def run(self, job: object, number: int, finished: object) -> None:
        self.job = job


def test_decisions_and_rewards_go_on_while_a_refit_is_under_way(tmp_path: Path) -> None:
    agent = Agent.open(tmp_path / "agent.db", refits="background", seed=0)
    stuck = StuckFitter()
    agent._desk.fitter.close()
    agent._desk.fitter = stuck
    feed(agent, 0, 60)
    assert agent.status().refitting
    assert (agent.status().version, agent.status().rewards) == (0, 60)
    crash(agent)
    stuck.close()
    # the refit that was under way is made after all, from the rewards that it had begun with
    again = Agent.open(tmp_path / "agent.db", refits="background", seed=0)
    wait_until(lambda: again.status().version >= 1)
    assert again.versions()[1].rows == 15
    wait_until(lambda: not again.status().refitting)
    plain = Agent(refits="never", seed=0)
    feed(plain, 0, 60)
    assert_same(statistics_of(again), statistics_of(plain))
    again.close()


def test_a_process_that_was_killed_is_replaced_and_its_refit_is_made_again() -> None:
    with Agent(refits="background", seed=0) as agent:
        feed(agent, 0, 15)
        wait_until(lambda: agent.status().version == 1)
        fitter = agent._desk.fitter
        assert isinstance(fitter, BackgroundFitter)
        assert fitter._process is not None
        fitter._process.kill()
        fitter._process.wait()
        feed(agent, 15, 30)
        wait_until(lambda: agent.status().version >= 2)
        assert agent.status().rewards == 45


@dataclass(frozen=True)
class Breaking:
    """An estimator that fails once it has seen enough."""

    gives_covariance = True

    def fit(self, statistics: GramStatistics) -> Estimate:
        if statistics.count.sum() > 15:
            raise FloatingPointError("it broke")
        return Ridge().fit(statistics)


@pytest.mark.parametrize("refits", ["inline", "background"])
def test_a_refit_that_fails_loses_nothing_and_is_reported(refits: str) -> None:
    with Agent(LearningPolicy(estimator=Breaking(), rule=Thompson()), refits=refits, seed=0) as agent:
        feed(agent, 0, 15)
        wait_until(lambda: agent.status().version == 1)
        feed(agent, 15, 20)
        wait_until(lambda: bool(agent.status().alarms))
        assert "FloatingPointError: it broke" in agent.status().alarms[0]
        feed(agent, 35, 5)
        wait_until(lambda: not agent.status().refitting)
        assert agent.status().version == 1
        assert statistics_of(agent).count.sum() == 40


def test_refits_wait_to_be_promoted_where_they_are_published_by_hand() -> None:
    agent = Agent(SharedThompson(), refits="inline", publish="manual", seed=0)
    feed(agent, 0, 60)
    status = agent.status()
    assert status.version == 0
    assert 2 < status.versions < 20
    rows = [version.rows for version in agent.versions()]
    assert rows == sorted(rows)
    agent.promote(agent.versions()[-1].number)
    feed(agent, 60, 60)
    assert agent.status().version == status.versions - 1
    assert statistics_of(agent).count.sum() == 120


def test_only_so_many_versions_are_kept_to_go_back_to(tmp_path: Path) -> None:
    agent = Agent.open(tmp_path / "agent.db", refits="inline", keep=2, seed=0)
    feed(agent, 0, 120)
    last = agent.status().version
    assert last > 4
    kept = sorted(path.name for path in (tmp_path / "agent.db-states").glob("version-*"))
    assert kept == [f"version-{number:08d}.posse" for number in (0, last - 1, last)]
    with pytest.raises(ValueError, match=rf"of \[0, {last - 1}, {last}\]\. Got 1"):
        agent.rollback(1)
    agent.close()


def stuck_agent(path: Path) -> tuple[Agent, Job]:
    """An agent whose refit is under way and never ends by itself."""
    agent = Agent.open(path, refits="background", seed=0)
    agent._desk.fitter.close()
    agent._desk.fitter = StuckFitter()
    feed(agent, 0, 40)
    job = agent._engine.job
    assert job is not None
    return agent, job


@pytest.mark.parametrize("turn", ["freeze", "rollback", "erase"])
def test_an_operator_gives_up_the_refit_under_way_and_its_result_is_not_adopted(
    tmp_path: Path, turn: str
) -> None:
    agent, job = stuck_agent(tmp_path / "agent.db")
    turns: dict[str, Callable[[], None]] = {
        "freeze": agent.freeze,
        "rollback": lambda: agent.rollback(0),
        "erase": lambda: agent.erase("b"),
    }
    turns[turn]()
    status = agent.status()
    assert (status.refitting, status.versions, status.version) == (False, 1, 0)
    before = agent._engine.state()
    agent._desk.finished(job, 1, attempt(job))  # which comes too late
    assert agent.status() == status
    assert before.learner is not None
    after = agent._engine.state().learner
    assert after is not None
    np.testing.assert_array_equal(before.learner.theta, after.theta)
    assert status.alarms == ()
    assert statistics_of(agent).count.sum() == (40 if turn != "erase" else 27)
    crash(agent)
    again = Agent.open(tmp_path / "agent.db", refits="never", seed=0)
    same_state(agent, again)
    again.close()


def test_the_version_that_decides_is_kept_however_many_come_after_it(tmp_path: Path) -> None:
    agent = Agent.open(tmp_path / "agent.db", refits="inline", keep=2, seed=0)
    feed(agent, 0, 60)
    pinned = agent.status().version
    agent.rollback(pinned)
    feed(agent, 60, 200)
    assert agent.versions()[-1].number > pinned + 3
    assert agent.status().version == pinned
    agent.rollback(pinned)
    crash(agent)
    again = Agent.open(tmp_path / "agent.db", refits="inline", seed=0)
    same_state(agent, again)
    again.close()


def test_a_refit_that_succeeds_ends_the_alarm_of_one_that_failed() -> None:
    agent = Agent(SharedThompson(), refits="inline", seed=0)
    feed(agent, 0, 40)
    agent._desk.record(Began(agent._desk.now(), 99), Failed(agent._desk.now(), 99, "it broke"))
    assert agent.status().alarms == ("refit: the last one failed: it broke",)
    feed(agent, 40, 200)
    assert agent.status().alarms == ()
