"""A second world for agents: what should have been learned, worked out from all events at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posse import GramStatistics
from posse.live import Agent
from posse.numerics.checks import Array

D, K, TASKS = 3, 4, ("a", "b", "c")


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Story:
    """Decisions with all of their rewards: (id, event, at, value)."""

    asked: dict[str, tuple[float, str, Array]] = field(default_factory=dict)
    rewards: list[tuple[str, str, float, float]] = field(default_factory=list)


def statistics_of(agent: Agent) -> GramStatistics:
    """All that an agent has counted, whether or not a refit has seen it."""
    saved = agent._desk.engine.state().learner
    assert saved is not None
    total: GramStatistics = saved.state.statistics.padded(len(saved.seen)) + saved.pending
    return total


def naive(
    story: Story,
    tasks: list[str],
    *,
    rewards: str = "first",
    wait: float | None = None,
    default: float | None = None,
) -> GramStatistics:
    """Statistics of decisions whose time is over, by sorting what there is."""
    rows = []
    for id, (asked_at, task, x) in story.asked.items():
        own = {(at, event): value for other, event, at, value in story.rewards if other == id}
        timely = [own[key] for key in sorted(own) if wait is None or key[0] <= asked_at + wait]
        if timely:
            value = {"first": timely[0], "last": timely[-1], "sum": sum(timely)}[rewards]
        elif wait is not None and default is not None:
            value = default
        else:
            continue
        rows.append((tasks.index(task), x, value))
    if not rows:
        return GramStatistics.zeros(len(tasks), D)
    numbers, features, values = zip(*rows, strict=True)
    return GramStatistics.from_rows(numbers, features, values, len(tasks))


def arms(rng: np.random.Generator) -> Array:
    return rng.standard_normal((K, D))


def assert_same(one: Any, other: Any, tolerance: float = 1e-9) -> None:
    for name in ("gram", "moment", "square", "count"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=tolerance, rtol=tolerance)


def same_state(one: Agent, other: Agent) -> None:
    """Agents whose beliefs, statistics, counts and watches are equal, bit by bit."""
    first, second = one._desk.engine.state(), other._desk.engine.state()
    assert first.counts == second.counts
    assert first.waiting.tobytes() == second.waiting.tobytes()
    assert (first.live, first.frozen, first.forbidden) == (second.live, second.frozen, second.forbidden)
    for name in ("excess", "variance", "moving", "lift_counts", "lift_totals", "shadow"):
        assert getattr(first.monitor, name).tobytes() == getattr(second.monitor, name).tobytes(), name
    left, right = first.learner, second.learner
    assert left is not None
    assert right is not None
    assert left.names == right.names
    for name in ("theta", "root", "deviation", "seen", "retired"):
        assert getattr(left, name).tobytes() == getattr(right, name).tobytes(), name
    for part in ("gram", "moment", "square", "count"):
        assert getattr(left.pending, part).tobytes() == getattr(right.pending, part).tobytes(), part
        ours, theirs = left.state.statistics, right.state.statistics
        assert getattr(ours, part).tobytes() == getattr(theirs, part).tobytes(), part
