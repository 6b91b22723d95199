"""Changes of what a learner has learned from: another reward, an earlier state, a task that is forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posse.core.learner import Learner
from posse.core.rows import LARGEST, WRONG
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array


def amend(learner: Learner, task: int, features: Array, old: float, new: float) -> None:
    """Count a reward as `new` that was counted as `old`, as if it had never been another.

    That is exact where all rows count alike, whether or not the policy has learned from the row already.

    Parameters
    ----------
    learner : Learner
        Of a policy that remembers all rows.
    task : int
        The number of the task.
    features : (d,)
        Of the row as it was observed, at weight 1.
    old, new : float
    """
    if getattr(learner.policy, "memory", "all") != "all":
        raise ValueError(f"a policy must remember all rows to amend one. Got {learner.policy!r}.")
    if not -LARGEST <= new <= LARGEST:
        raise ValueError(f"{WRONG[2]}. Got {new}.")
    beliefs = learner._beliefs if learner.prompt else None
    learner._pending.amend(task, features, old, new, beliefs)


def rebase(learner: Learner, state: Any) -> None:
    """Let a learner decide by another state of its policy, and by all rows that this has not learned from.

    Parameters
    ----------
    learner : Learner
        Of a policy that remembers all rows; no update may be under way.
    state : object
        That the policy was in before, or could have been: learned from a part of the rows so far.
    """
    if getattr(learner.policy, "memory", None) != "all":
        raise ValueError(f"a policy must remember all rows to go back to a state. Got {learner.policy!r}.")
    learner._hand_over()
    episode, n_tasks = learner._episode, learner.n_tasks
    known = learner.state.statistics.padded(n_tasks)
    total = known if episode.pending is None else known + episode.pending
    learned = state.statistics.padded(n_tasks)
    left = GramStatistics(
        total.gram - learned.gram,
        total.moment - learned.moment,
        total.square - learned.square,
        total.count - learned.count,
    )
    episode.state, episode.pending = state, None
    learner._pending.resume(left.padded(learner._pending.room), 0.0, learner._pending.seen)
    learner._decide_anew()


def erase(learner: Learner, task: int) -> None:
    """Let a learner forget a task: its rows, its name and what is believed of it.

    The number is not given to another task. What other tasks learned from it stays until the next update.

    Parameters
    ----------
    learner : Learner
        No update may be under way.
    task : int
        The number of the task.
    """
    learner._hand_over()
    learner._tasks.rename(task, f"(erased {task})")
    learner._pending.erase(task)
    episode = learner._episode
    if episode.pending is not None:
        episode.pending = without(episode.pending, task)
    if isinstance(getattr(learner.state, "statistics", None), GramStatistics):
        episode.state = replace(learner.state, statistics=without(learner.state.statistics, task))
    newcomer = learner.policy.newcomer(learner.state)
    for own, new in zip(learner._beliefs.parts, newcomer.parts, strict=True):
        own[task] = new[0]
    learner.retire([task])


def without(statistics: GramStatistics, task: int) -> GramStatistics:
    """Return statistics in which a task, given by its number, has no rows.

    Examples
    --------
    >>> seen = GramStatistics.from_rows([0, 1], [[1.0], [5.0]], [2.0, 1.0], n_tasks=2)
    >>> without(seen, 1).count
    array([1., 0.])
    """
    if task >= statistics.n_tasks:
        return statistics
    parts = {name: getattr(statistics, name).copy() for name in ("gram", "moment", "square", "count")}
    for part in parts.values():
        part[task] = 0.0
    return replace(statistics, **parts)
