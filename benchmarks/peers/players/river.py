"""River: BayesianLinearRegression; the caller takes the best arm."""

from __future__ import annotations

from river.linear_model import BayesianLinearRegression

from benchmarks.peers.workload import Array, OnePerTask, Player


class _OneTask:
    def __init__(self) -> None:
        self._model = BayesianLinearRegression(alpha=1, beta=1)

    def choose(self, arms: Array) -> list[int]:
        return [self._choose_one(offered) for offered in arms.tolist()]

    def _choose_one(self, offered: list[list[float]]) -> int:
        scores = [self._model.predict_one(dict(enumerate(x))) for x in offered]
        return scores.index(max(scores))

    def learn(self, features: Array, rewards: Array) -> None:
        for x, y in zip(features.tolist(), rewards.tolist(), strict=True):
            self._model.learn_one(dict(enumerate(x)), y)


def ridge(tasks: int, dim: int) -> Player:
    return OnePerTask(lambda task: _OneTask(), tasks)
