"""contextualbandits: its online ridge regression; the caller takes the best arm."""

from __future__ import annotations

import numpy as np
from contextualbandits.linreg import LinearRegression

from benchmarks.peers.workload import Array, IntArray, OnePerTask, Player


class _OneTask:
    def __init__(self) -> None:
        self._model = LinearRegression(lambda_=1.0, fit_intercept=False, method="sm", use_float=False)

    def choose(self, arms: Array) -> IntArray:
        n, n_arms, dim = arms.shape
        if not self._model.is_fitted_:
            return np.zeros(n, dtype=np.int64)
        predicted = self._model.predict(arms.reshape(-1, dim))
        return np.asarray(predicted.reshape(n, n_arms).argmax(axis=1))

    def learn(self, features: Array, rewards: Array) -> None:
        self._model.partial_fit(features, rewards)


def ridge(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _OneTask(), tasks)
