"""A policy in the middle of a run, and the record that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from posse.core.episode import Episode
from posse.core.protocols import (
    FollowsTheta,
    MovesAtOnce,
    Policy,
    Problem,
    Repeats,
    StaticProblem,
    keeps_pace,
)
from posse.numerics.checks import Array, BoolArray, IntArray
from posse.numerics.compiled import working_seconds
from posse.play.dealing import Chunk, rounds_at_once
from posse.play.exact import ExactBlock, ExactRounds
from posse.problems import GaussianProblem


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The regret of one policy in one run.

    Attributes
    ----------
    rounds : (m,)
        Checkpoints, as numbers of rounds played.
    regret : (m, T)
        Cumulative regret of each task at each checkpoint.
    seconds : float
        Time to deal the rounds, added to the time to play them; the two overlap on two cores.
    path : "exact" or "contexts"
        How the rounds were played.
    episode : Episode, optional
        The policy at the end of the run, if that was to be kept.
    """

    rounds: IntArray
    regret: Array
    seconds: float
    path: str
    episode: Episode | None = None

    @cached_property
    def state(self) -> Any:
        """What the policy knows at the end, its last block included; that update is made when asked for.

        An error, if the run was made without `final_state`.
        """
        if self.episode is None:
            raise ValueError("a run must have `final_state=True` to be asked for its state. Got False.")
        with threadpool_limits(limits=1):
            return self.episode.policy.update(self.episode.state, self.episode.pending)

    @property
    def regret_per_task(self) -> Array:
        """Mean over tasks of the cumulative regret, (m,)."""
        return np.asarray(self.regret.mean(axis=1))

    def __repr__(self) -> str:
        final = f"{self.regret_per_task[-1]:.6g} after {self.rounds[-1]} rounds"
        return f"<Trace of {self.regret.shape[1]} tasks: regret per task {final}>"


class Player:
    """A policy in the middle of a run: it drives an episode by the summaries of what it played."""

    def __init__(
        self,
        problem: Problem,
        policy: Policy,
        horizon: int,
        marks: IntArray,
        rng: np.random.Generator,
        final_state: bool,
    ) -> None:
        prompt = isinstance(policy, MovesAtOnce) and policy.prompt is True
        self.episode = Episode(
            policy, n_tasks=problem.n_tasks, dim=problem.dim, horizon=horizon, prompt=prompt
        )
        self.problem, self.policy, self.rng, self.marks = problem, policy, rng, marks
        self.regret = np.zeros(problem.n_tasks)
        self.recorded: list[Array] = []
        self.seconds = 0.0
        self.final_state = final_state
        self.played = 0
        self.exact: ExactBlock | None = None

    def _rounds_before(self, stop: int) -> int:
        """Return how many of the rounds up to `stop` are played before the state changes."""
        episode = self.episode
        return 1 if episode.prompt else int(min(stop, episode.due_at)) - self.played

    def play(self, chunk: Chunk) -> None:
        """Play a chunk, and learn where a block ends."""
        clock = working_seconds()
        start, end = chunk.start, chunk.start + chunk.actions.n_rounds
        while self.played < end:
            done = self.played - start
            stop = done + self._rounds_before(end)
            offered = chunk.actions.rounds(done, stop)
            choice = self.policy.select(self.episode.state, offered, self.rng)
            means = self.problem.mean_rewards(offered, choice)
            seen = None
            if self._learns:
                rewards = self.problem.rewards(means, chunk.noise[done:stop])
                seen = self.policy.statistics.of(offered.features(choice), rewards, offered.active)
            self._record(chunk.best[done:stop] - means, offered.active)
            self._learn(seen)
        self.seconds += working_seconds() - clock

    def play_exact(self, problem: GaussianProblem, chunk: ExactRounds) -> None:
        """Play a chunk of rounds of which only coordinates are known, and learn where a block ends."""
        clock = working_seconds()
        start, end = self.played, self.played + len(chunk.noise)
        while self.played < end:
            if self.exact is None:
                theta = self.theta()
                assert theta is not None
                self.exact = ExactBlock(problem, theta, self._rounds_before(int(self.marks[-1])))
            done = self.played - start
            stop = done + min(end - self.played, self.exact.n_rounds - self.exact.n_played)
            self._record(self.exact.play(chunk.rounds(done, stop)), None)
            seen = None
            if self.exact.n_played == self.exact.n_rounds:
                seen = self.exact.statistics(self.rng) if self._learns else None
                self.exact = None
            self._learn(seen)
        self.seconds += working_seconds() - clock

    def theta(self) -> Array | None:
        """Return the theta that is maximised through the block, if the policy plays so."""
        policy = self.policy
        if not isinstance(policy, FollowsTheta):
            return None
        return policy.theta_of(self.episode.state) if keeps_pace(policy, "theta_of", "select") else None

    def play_alone(
        self, problem: StaticProblem, actions_rng: np.random.Generator, noise_rng: np.random.Generator
    ) -> None:
        """Play all rounds of a problem whose action sets never change, blocks of one action in one step."""
        clock = working_seconds()
        horizon, kind = int(self.marks[-1]), self.policy.statistics
        repeats = isinstance(kind, Repeats)
        best = problem.best_rewards(problem.actions(1, actions_rng))[0]
        while self.played < horizon:
            left = self._rounds_before(horizon)
            # at least two rounds, so that a choice of length one means one action for the whole block
            offered = problem.actions(min(left, max(2, rounds_at_once(problem))), actions_rng)
            choice = self.policy.select(self.episode.state, offered, self.rng)
            features = offered.features(choice)
            means = problem.mean_rewards(offered, choice)
            if len(choice) == 1 and repeats:
                total, square = problem.noise_totals(left, noise_rng)
                rewards = left * means[0] + total
                squares = left * means[0] ** 2 + 2 * means[0] * total + square
                seen = kind.repeated(features[0], left, rewards, squares)
                self._record(np.broadcast_to(best - means, (left, len(best))), None)
            else:
                rewards = problem.rewards(means, problem.noise(offered.n_rounds, noise_rng))
                seen = kind.of(features, rewards)
                self._record(np.broadcast_to(best - means, rewards.shape), None)
            self._learn(seen)
        self.seconds += working_seconds() - clock

    @property
    def _learns(self) -> bool:
        """Whether somebody will ask what this block had to tell."""
        return self.final_state or self.episode.prompt or self.episode.due_at < self.marks[-1]

    def _learn(self, seen: Any) -> None:
        """Absorb what the last rounds had to tell, and update where a block ends that is not the last."""
        if seen is not None:
            self.episode.absorb(seen, self.played)
        if self.played == self.episode.due_at < self.marks[-1]:
            self.episode.update()

    def _record(self, regret: Array, active: BoolArray | None) -> None:
        """Count the regret of the next rounds, (n, T)."""
        start, self.played = self.played, self.played + len(regret)
        if active is not None:
            regret = np.where(active, regret, 0.0)
        for mark in self.marks[(self.marks > start) & (self.marks <= self.played)]:
            self.recorded.append(self.regret + _total(regret[: mark - start]))
        self.regret = self.regret + _total(regret)

    def trace(self, dealing: float, path: str) -> Trace:
        """Return the record of the run; `dealing` is the time it took to deal the rounds."""
        kept = self.episode if self.final_state else None
        return Trace(self.marks, np.stack(self.recorded), dealing + self.seconds, path, kept)


def _total(regret: Array) -> Array:
    """Return the sum over rounds; in one step where all rounds are one and the same."""
    constant = len(regret) > 0 and regret.strides[0] == 0
    return np.asarray(len(regret) * regret[0] if constant else regret.sum(axis=0))
