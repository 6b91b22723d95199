"""MABWiser: LinGreedy with a single arm, which scores the arms on offer; the caller takes the best."""

from __future__ import annotations

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from benchmarks.peers.workload import Array, IntArray, OnePerTask, Player


class _OneTask:
    def __init__(self) -> None:
        self._mab = MAB(["x"], LearningPolicy.LinGreedy(epsilon=0, l2_lambda=1))
        self._fitted = False

    def choose(self, arms: Array) -> IntArray:
        n, n_arms, dim = arms.shape
        if not self._fitted:
            return np.zeros(n, dtype=np.int64)
        scores = self._mab.predict_expectations(arms.reshape(-1, dim))
        return np.asarray(np.reshape([score["x"] for score in scores], (n, n_arms)).argmax(axis=1))

    def learn(self, features: Array, rewards: Array) -> None:
        fit = self._mab.partial_fit if self._fitted else self._mab.fit
        fit(["x"] * len(features), rewards, features)
        self._fitted = True


def greedy(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _OneTask(), tasks)
