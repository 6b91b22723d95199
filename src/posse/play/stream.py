"""One run of a stream: groups of tasks start and end, a policy plays them, regret is counted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from posse.core.protocols import Policy, Problem
from posse.core.streams import CarriesOver, Course, Stream
from posse.numerics.checks import Array, IntArray, check_integer
from posse.numerics.compiled import working_seconds
from posse.play.ball import play_ball
from posse.play.dealing import generator
from posse.play.player import Player, Trace
from posse.play.rounds import play_rounds
from posse.problems import EllipsoidProblem

# The regret of every task is kept for a uniform sample of so many of them.
KEPT_TASKS = 1000
# How regret grows over tasks is recorded about so many times.
GROWTH_POINTS = 60


@dataclass(frozen=True, eq=False, repr=False)
class StreamTrace(Trace):
    """The regret of one policy on a stream.

    `rounds` are rounds of each task's own, and `regret` (m, s) is that of a uniform sample of 1000 tasks, or
    of all if there are fewer, so that memory does not grow with the stream.

    Attributes
    ----------
    mean : (m,)
        The mean over all tasks of their regret after so many rounds of their own.
    tasks : (c,)
        Numbers of tasks, as they started.
    total : (c,)
        The regret of so many tasks, all their rounds, added up.
    memory : object
        What the policy has carried over at the end; None if it carries nothing.
    """

    mean: Array = None  # type: ignore[assignment]
    tasks: IntArray = None  # type: ignore[assignment]
    total: Array = None  # type: ignore[assignment]
    memory: Any = None

    @property
    def regret_per_task(self) -> Array:
        """Mean over all tasks of the regret up to a round of their own, (m,)."""
        return self.mean

    @property
    def state(self) -> Any:
        """What the policy has carried over at the end, all tasks included; None if it carries nothing."""
        return self.memory


def play_stream(
    stream: Stream, policy: Policy, horizon: int, seed: int, marks: IntArray, path: str
) -> StreamTrace:
    """Play a policy on all tasks of a stream, `horizon` rounds each.

    A policy that carries over is asked for a policy for every group, and told how that ended once the group
    has. Any other plays each group afresh. Tasks, noise and ties of a group depend on the seed and its number
    alone, so all policies meet the same.

    Parameters
    ----------
    stream : Stream
    policy : Policy
    horizon : int
        N, the rounds of each task.
    seed : int
    marks : (m,)
        Rounds of a task's own after which regret is recorded, the last of which is the horizon.
    path : {"auto", "exact", "contexts"}
        How rounds of Gaussian contexts are played; see `simulate_all`.
    """
    clock, run = working_seconds(), _Run(stream, policy, horizon, seed, marks, path)
    for number in range(stream.n_groups):
        run.play(number)
    while run.under_way:
        run.finish()
    return run.trace(working_seconds() - clock)


def course_of(stream: Stream, horizon: int) -> Course:
    """Return what a policy is told of a stream whose tasks have `horizon` rounds each.

    A stream without a task is an error.
    """
    owner = type(stream).__name__
    if stream.n_tasks < 1 or stream.n_groups < 1:
        raise ValueError(f"a stream must have at least one task. Got none in {owner}.")
    check_integer(f"`overlap` of {owner}", stream.overlap, 1)
    first = stream.group(0)
    return Course(
        n_tasks=stream.n_tasks,
        group_size=first.n_tasks,
        dim=stream.dim,
        rounds=horizon,
        finite=not isinstance(first, EllipsoidProblem),
    )


class _Run:
    """A policy in the middle of a stream."""

    def __init__(
        self, stream: Stream, policy: Policy, horizon: int, seed: int, marks: IntArray, path: str
    ) -> None:
        self.stream, self.policy, self.horizon, self.path = stream, policy, horizon, path
        self.marks = marks
        tasks_seed, own_seed, kept_seed = np.random.SeedSequence(seed).spawn(3)
        self.tasks_seed, self.rng, self.kept_rng = tasks_seed, generator(own_seed), generator(kept_seed)
        self.under_way: deque[tuple[Policy, Any]] = deque()
        self.played = "contexts"
        self.sums, self.n_played = np.zeros(len(marks)), 0
        self.kept: list[Array] = []
        self.growth: list[tuple[int, float]] = []
        self.record_at = np.unique(
            np.round(np.linspace(1, stream.n_groups, min(GROWTH_POINTS, stream.n_groups)))
        )
        course = course_of(stream, horizon)
        self.memory = policy.begin(course) if isinstance(policy, CarriesOver) else None

    def play(self, number: int) -> None:
        """Play a group, once those have ended that make room for it."""
        while len(self.under_way) >= self.stream.overlap:
            self.finish()
        problem = self.stream.group(number)
        if problem.dim != self.stream.dim:
            raise ValueError(
                f"a newcomer must have the features of all tasks before it, dim={self.stream.dim}. "
                f"Got a task with {problem.dim}."
            )
        policy = self.policy
        if isinstance(policy, CarriesOver):
            policy = policy.next_policy(self.memory, number, self.rng)
        regret, state = self._play_group(problem, policy, number)
        if isinstance(self.policy, CarriesOver):
            self.under_way.append((policy, state))
        self._record(regret, number)

    def finish(self) -> None:
        """Let the policy learn from the group that started first of those under way."""
        assert isinstance(self.policy, CarriesOver)
        self.memory = self.policy.finish(self.memory, *self.under_way.popleft(), self.rng)

    def _play_group(self, problem: Problem, policy: Policy, number: int) -> tuple[Array, Any]:
        """Return the regret of a group at the marks, (m, T), and the state that its policy ended in."""
        key = (*self.tasks_seed.spawn_key, number)
        *dealers, own = np.random.SeedSequence(self.tasks_seed.entropy, spawn_key=key).spawn(3)
        swift = play_ball(problem, policy, self.marks, generator(dealers[1]), generator(own))
        if swift is not None:
            return swift
        learns = isinstance(self.policy, CarriesOver)
        player = Player(problem, policy, self.horizon, self.marks, generator(own), learns)
        _, self.played = play_rounds(problem, {"": player}, self.horizon, self.path, *dealers)
        episode = player.episode
        state = policy.update(episode.state, episode.pending) if learns else None
        return np.stack(player.recorded), state

    def _record(self, regret: Array, number: int) -> None:
        self.sums += regret.sum(axis=1)
        for row in regret.T:
            self.n_played += 1
            if len(self.kept) < KEPT_TASKS:
                self.kept.append(row.copy())
                continue
            place = int(self.kept_rng.integers(self.n_played))
            if place < KEPT_TASKS:
                self.kept[place] = row.copy()
        if number + 1 in self.record_at:
            self.growth.append((self.n_played, float(self.sums[-1])))

    def trace(self, seconds: float) -> StreamTrace:
        """Return the record of the run."""
        tasks, total = zip(*self.growth, strict=True)
        return StreamTrace(
            self.marks,
            np.stack(self.kept, axis=1),
            seconds,
            self.played,
            mean=self.sums / self.n_played,
            tasks=np.array(tasks, dtype=np.intp),
            total=np.array(total),
            memory=self.memory,
        )
