"""The yardstick: greedy ridge by hand, in NumPy alone."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.workload import Array, IntArray, OnePerTask, Player


class AllTasks(Player):
    """All tasks at once; inverses are kept and updated by Sherman-Morrison, or by Woodbury for a batch."""

    def __init__(self, tasks: int, dim: int) -> None:
        self._inverse = np.tile(np.eye(dim), (tasks, 1, 1))
        self._theta = np.zeros((tasks, dim))

    def choose(self, arms: Array) -> IntArray:
        """Play the best arm by the estimate."""
        return np.asarray(np.vecdot(arms, self._theta[:, None, :]).argmax(axis=2))

    def learn(self, features: Array, rewards: Array) -> None:
        """Update inverses and estimates."""
        if len(features) == 1:
            self._learn_one(features[0], rewards[0])
        else:
            self._learn_many(np.ascontiguousarray(features.transpose(1, 0, 2)), rewards.T)

    def _learn_one(self, x: Array, y: Array) -> None:
        turned = np.matvec(self._inverse, x)
        gain = turned / (1 + np.vecdot(turned, x))[:, None]
        self._inverse -= turned[:, :, None] * gain[:, None, :]
        self._theta += gain * (y - np.vecdot(x, self._theta))[:, None]

    def _learn_many(self, x: Array, y: Array) -> None:
        turned = x @ self._inverse
        gain = np.linalg.inv(np.eye(x.shape[1]) + turned @ x.transpose(0, 2, 1)) @ turned
        self._inverse -= turned.transpose(0, 2, 1) @ gain
        self._theta += np.vecmat(y - np.matvec(x, self._theta), gain)


class _OneTask:
    """One task, one round at a time, by Sherman-Morrison."""

    def __init__(self, dim: int) -> None:
        self._inverse = np.eye(dim)
        self._theta = np.zeros(dim)

    def choose(self, arms: Array) -> IntArray:
        return np.asarray((arms @ self._theta).argmax(axis=1))

    def learn(self, features: Array, rewards: Array) -> None:
        (x,), (y,) = features, rewards
        turned = self._inverse @ x
        gain = turned / (1 + turned @ x)
        self._inverse -= np.outer(turned, gain)
        self._theta += gain * (y - x @ self._theta)


def one_by_one(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _OneTask(dim), tasks)
