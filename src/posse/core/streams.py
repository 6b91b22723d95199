"""Tasks that keep coming: what a stream of them is, and what is asked of a policy that learns across it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from posse.core.protocols import Policy, Problem


@runtime_checkable
class Stream(Protocol):
    """Groups of tasks that start and end over time, each task played for as many rounds as all others.

    Tasks of a group start and end together. Groups may overlap: group g starts when group g - `overlap` ends.
    """

    @property
    def n_tasks(self) -> int:
        """The number of tasks in all groups together."""

    @property
    def dim(self) -> int:
        """The number of features, d, of every task."""

    @property
    def n_groups(self) -> int:
        """The number of groups."""

    @property
    def overlap(self) -> int:
        """How many groups are played at a time."""

    def group(self, number: int) -> Problem:
        """Return the tasks of a group, counted from 0, as a problem of their own."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """What a policy is told of a stream before it begins.

    Attributes
    ----------
    n_tasks : int
        The number of tasks in all groups together.
    group_size : int
        The number of tasks in the first group.
    dim : int
        d, the number of features.
    rounds : int
        N, the rounds of each task.
    finite : bool
        Whether tasks play lists of arms, and not ellipsoids.
    """

    n_tasks: int
    group_size: int
    dim: int
    rounds: int
    finite: bool


@runtime_checkable
class CarriesOver(Policy, Protocol):
    """A policy for streams: what finished tasks have taught is carried over to those that come.

    It chooses a policy for every group of tasks, and learns from what that knew when the group had ended. It
    sees finished tasks through that state alone. A policy that is none of these plays every group afresh.
    """

    def begin(self, course: Course) -> Any:
        """Return what is known before the first task."""

    def next_policy(self, memory: Any, number: int, rng: np.random.Generator) -> Policy:
        """Return the policy that plays a group, counted from 0, by what is known when it starts."""

    def finish(self, memory: Any, policy: Policy, state: Any, rng: np.random.Generator) -> Any:
        """Return what is known once a group has ended, whose policy ended in a state."""
