"""What a learner is, as data: saved, loaded, and gone on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posse.core.protocols import Policy
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray


@dataclass(frozen=True, eq=False)
class LearnerState:
    """All that a `Learner` is, but for its random numbers: what is saved, and what it goes on from.

    Attributes
    ----------
    policy : Policy
    state : object
        What the policy learned at its last update.
    theta, root, deviation : (T, d), (T, d, d), (T,)
        What is believed of every task now; see `Beliefs`.
    pending : Summary
        Rows that the policy has not learned from yet.
    elapsed : float
        Rounds of the clock by which these have yet to fade.
    seen : (T,)
        Rows of each task so far.
    retired : (T,)
        Tasks that are not served any more.
    names : tuple of str, optional
        The tasks' names.
    updated_at, due_at : float
        The readings of the clock at the last update, or the least since then, and at the next one.
    """

    policy: Policy
    state: Any
    theta: Array
    root: Array
    deviation: Array
    pending: Any
    elapsed: float
    seen: Array
    retired: BoolArray
    names: tuple[str, ...] | None
    updated_at: float
    due_at: float

    def __post_init__(self) -> None:
        n_tasks, dim = self.theta.shape if np.ndim(self.theta) == 2 else (0, 0)
        shapes = {"theta": (n_tasks, dim), "root": (n_tasks, dim, dim), "deviation": (n_tasks,)}
        for name, shape in {**shapes, "seen": (n_tasks,), "retired": (n_tasks,)}.items():
            part, kind = np.asarray(getattr(self, name)), "b" if name == "retired" else "f"
            if part.shape != shape or part.dtype.kind != kind or not part.size:
                raise ValueError(
                    f"`{name}` of LearnerState must be an array of shape {shape}. "
                    f"Got {part.dtype} of shape {part.shape}."
                )
        pending = self.pending
        if not isinstance(pending, GramStatistics) or pending.moment.shape != (n_tasks, dim):
            found = type(pending).__name__
            raise ValueError(
                f"`pending` of LearnerState must be statistics of {n_tasks} tasks in {dim} dimensions. "
                f"Got {found}."
            )
