"""A second world for agents: what should have been learned, worked out from all events at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posse import GramStatistics
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
