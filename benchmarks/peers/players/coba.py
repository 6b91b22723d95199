"""coba: LinUCBLearner on the features of actions, without a bonus."""

from __future__ import annotations

from coba.learners import LinUCBLearner

from benchmarks.peers.workload import Array, OnePerTask, Player


class _OneTask:
    def __init__(self) -> None:
        self._learner = LinUCBLearner(alpha=0, features=["a"])

    def choose(self, arms: Array) -> list[int]:
        return [self._choose_one(offered) for offered in arms]

    def _choose_one(self, offered: Array) -> int:
        actions = list(map(tuple, offered.tolist()))
        action, *_ = self._learner.predict(None, actions)
        return actions.index(action)

    def learn(self, features: Array, rewards: Array) -> None:
        for x, y in zip(features.tolist(), rewards.tolist(), strict=True):
            self._learner.learn(None, tuple(x), y, 1.0)


def greedy(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _OneTask(), tasks)
