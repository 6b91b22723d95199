"""bayesianbandits: its regression alone, for which the caller takes the best arm, and its agent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bayesianbandits import (
    Arm,
    EpsilonGreedy,
    FunctionArmFeaturizer,
    LipschitzContextualAgent,
    NormalRegressor,
)

from benchmarks.peers.workload import N_ARMS, Array, IntArray, OnePerTask, Player


class _Regression:
    def __init__(self) -> None:
        self._model = NormalRegressor(alpha=1.0, beta=1.0)

    def choose(self, arms: Array) -> IntArray:
        n, n_arms, dim = arms.shape
        predicted = self._model.predict(arms.reshape(-1, dim))
        return np.asarray(predicted.reshape(n, n_arms).argmax(axis=1))

    def learn(self, features: Array, rewards: Array) -> None:
        self._model.partial_fit(features, rewards)


class _Agent:
    """A context is the features of all arms in one row; to learn, it is those of the arm played."""

    def __init__(self, dim: int, seed: int) -> None:
        def features(contexts: Array, tokens: Sequence[int]) -> Array:
            return contexts.reshape(len(contexts), -1, dim).transpose(0, 2, 1)[:, :, list(tokens)]

        self._agent = LipschitzContextualAgent(
            [Arm(token) for token in range(N_ARMS)],
            EpsilonGreedy(epsilon=0.0),
            FunctionArmFeaturizer(features),
            NormalRegressor(alpha=1.0, beta=1.0),
            random_seed=seed,
        )

    def choose(self, arms: Array) -> list[int]:
        tokens: list[int] = self._agent.pull(arms.reshape(len(arms), -1))
        return tokens

    def learn(self, features: Array, rewards: Array) -> None:
        self._agent.select_for_update(0).update(features, rewards)


def ridge(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _Regression(), tasks)


def agent(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _Agent(dim, task), tasks)
