"""What must hold of an agent whose process died: for a proof that kills many, and for tests that kill few."""

from __future__ import annotations

import shutil
from pathlib import Path

from posse import Agent, GramStatistics
from posse.core.learner_state import LearnerState
from posse.live.sqlite import SqliteJournal


def statistics_of(agent: Agent) -> GramStatistics:
    """All that an agent has counted, whether or not a refit has seen it."""
    saved = agent._desk.engine.state().learner
    assert saved is not None
    total: GramStatistics = saved.state.statistics.padded(len(saved.seen)) + saved.pending
    return total


def same_state(one: Agent, other: Agent) -> None:
    """Agents whose beliefs, statistics, counts and watches are equal, bit by bit."""
    first, second = one._desk.engine.state(), other._desk.engine.state()
    assert first.counts == second.counts
    assert first.waiting.tobytes() == second.waiting.tobytes()
    assert (first.live, first.frozen, first.forbidden) == (second.live, second.frozen, second.forbidden)
    for name in ("won", "stake", "held", "moving", "lift_counts", "lift_totals", "shadow"):
        assert getattr(first.monitor, name).tobytes() == getattr(second.monitor, name).tobytes(), name
    assert first.learner is not None
    assert second.learner is not None
    same_learner(first.learner, second.learner)
    assert (first.control is None) == (second.control is None)
    if first.control is not None and second.control is not None:
        same_learner(first.control, second.control)


def same_learner(left: LearnerState, right: LearnerState) -> None:
    """Learners whose beliefs and statistics are equal, bit by bit."""
    assert left.names == right.names
    for name in ("theta", "root", "deviation", "seen", "retired"):
        assert getattr(left, name).tobytes() == getattr(right, name).tobytes(), name
    for part in ("gram", "moment", "square", "count"):
        assert getattr(left.pending, part).tobytes() == getattr(right.pending, part).tobytes(), part
        ours, theirs = left.state.statistics, right.state.statistics
        assert getattr(ours, part).tobytes() == getattr(theirs, part).tobytes(), part


def crash(agent: Agent) -> None:
    """Leave the file as a killed process would."""
    journal = agent._desk.journal
    assert isinstance(journal, SqliteJournal)
    journal.states.wait()
    journal._db.close()
    assert journal._lock is not None
    journal._lock.release()


def check_after_death(path: Path, lines: list[str]) -> None:
    """No acknowledged decision or reward is lost, none is doubled, and states are those of a replay."""
    agent = Agent.open(path, refits="inline")
    for line in lines:
        if line.startswith("asked") and line.endswith("\n"):
            assert agent._desk.engine.find(line.split()[1]) is not None, line
        if line.startswith("told") and line.endswith("\n"):
            _, id, reward = line.split()
            found = agent._desk.engine.find(id)
            assert found is not None
            assert [told.value for told in found.rewards] == [float(reward)]
    total = statistics_of(agent)
    status = agent.status()
    assert total.count.sum() == status.rewards + status.defaults
    crash(agent)
    shutil.copytree(path.parent, path.parent.with_name(path.parent.name + "-copy"), dirs_exist_ok=True)
    copy = path.parent.with_name(path.parent.name + "-copy") / path.name
    shutil.rmtree(copy.with_name(copy.name + "-states"))
    replayed, agent = Agent.open(copy, refits="inline"), Agent.open(path, refits="inline")
    same_state(replayed, agent)
    crash(replayed)
    agent.close()
    shutil.rmtree(copy.parent)
