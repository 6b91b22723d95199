"""What an agent begins with: nothing, or what a log has taught."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from posse.core.episode import anytime
from posse.core.learner import Learner
from posse.core.learner_state import LearnerState
from posse.core.model import Model
from posse.core.protocols import DecidesRows, Policy

# Tasks that nobody has asked for yet, for policies that need several to begin with.
UNUSED = "(unused "


def new_learner(policy: Policy, dim: int, rng: np.random.Generator) -> Learner:
    """Return a learner of as few tasks as the policy can do with, none of which has a name of its own yet.

    A policy that was told the rank of its tasks' parameters needs as many tasks as that.
    """
    n_tasks = 1
    while True:
        try:
            names = [f"{UNUSED}{number})" for number in range(n_tasks)]
            return Learner(policy, n_tasks=n_tasks, dim=dim, names=names, seed=rng)
        except ValueError:
            if n_tasks > dim:
                raise
            n_tasks += 1


def numbers_of(learner: Learner) -> tuple[dict[str, int], deque[int]]:
    """Return the numbers of tasks by their names, and numbers that no task has yet."""
    gone, numbers, unused = set(learner.retired.tolist()), {}, deque[int]()
    for number, name in enumerate(learner.names or ()):
        if name.startswith(UNUSED):
            unused.append(number)
        elif number not in gone:
            numbers[name] = number
    return numbers, unused


def warm_learner(policy: Policy, model: Model, rng: np.random.Generator) -> Learner:
    """Return a learner whose policy knows what a model knows, of its tasks and of new ones.

    Parameters
    ----------
    policy : Policy
        That learns by statistics.
    model : Model
        Fitted to a log; its rows count as any others, its estimate is where the first refit begins.
    rng : Generator
        That the learner draws from.
    """
    n_tasks, dim = model.statistics.moment.shape
    start: Any = policy.init(n_tasks, dim)
    if not isinstance(policy, DecidesRows) or not hasattr(start, "statistics"):
        raise ValueError(f"`policy` of Agent must learn from rows to begin with a model. Got {policy!r}.")
    kind: Any = policy.statistics
    known = kind.zeros(n_tasks, dim) + model.statistics
    state = replace(start, statistics=known, estimate=model.estimate)
    beliefs = policy.beliefs(state)
    seen = np.ceil(model.statistics.count)
    clock = float(seen.sum() / max(1, np.count_nonzero(seen)))
    saved = LearnerState(
        policy,
        state,
        *beliefs.parts,
        kind.zeros(n_tasks, dim),
        0.0,
        seen,
        np.zeros(n_tasks, dtype=np.bool_),
        model.tasks,
        clock,
        anytime(policy).next_after(clock),
    )
    return Learner.restore(saved, seed=rng)
