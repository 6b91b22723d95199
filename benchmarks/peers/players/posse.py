"""posse, through its public interface."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.workload import Array, IntArray, OnePerTask, Player
from posse import Every, FiniteActions, Geometric, Learner, LearningPolicy, Ridge, SharedGreedy
from posse.policies import Learning


class _Policy(Player):
    """All tasks at once, as posse is meant to be used."""

    def __init__(self, policy: Learning, tasks: int, dim: int) -> None:
        self._policy = policy
        self._state = policy.init(tasks, dim)
        self._rng = np.random.default_rng(0)

    def choose(self, arms: Array) -> IntArray:
        return self._policy.select(self._state, FiniteActions(arms), self._rng)

    def learn(self, features: Array, rewards: Array) -> None:
        self._state = self._policy.update(self._state, self._policy.statistics.of(features, rewards))


class _OwnSchedule(_Policy):
    def blocks(self, rounds: int, batch: int) -> tuple[int, ...]:
        blocks: tuple[int, ...] = self._policy.schedule.blocks(rounds)
        return blocks


class _OneTask:
    """One task of a learner that serves all: a call for each decision, a call for each reward."""

    def __init__(self, learner: Learner, task: int) -> None:
        self._learner, self._task = learner, task

    def choose(self, arms: Array) -> IntArray:
        return self._learner.select([self._task] * len(arms), arms).arm

    def learn(self, features: Array, rewards: Array) -> None:
        self._learner.observe([self._task] * len(rewards), features, rewards)
        if self._learner.due:
            self._learner.update()


_RIDGE = LearningPolicy(estimator=Ridge(penalty=1.0), schedule=Every(1))


def ridge(tasks: int, dim: int) -> Player:
    return _Policy(_RIDGE, tasks, dim)


def one_by_one(tasks: int, dim: int) -> Player:
    learner = Learner(LearningPolicy(estimator=Ridge(penalty=1.0)), n_tasks=tasks, dim=dim, seed=0)
    return OnePerTask(lambda task: _OneTask(learner, task), tasks)


def shared(tasks: int, dim: int) -> Player:
    return _Policy(SharedGreedy(schedule=Every(10)), tasks, dim)


def shared_own_schedule(tasks: int, dim: int) -> Player:
    return _OwnSchedule(SharedGreedy(schedule=Geometric()), tasks, dim)
