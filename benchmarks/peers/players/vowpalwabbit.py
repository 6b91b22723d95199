"""Vowpal Wabbit: a contextual bandit with features of actions, greedy; it learns by gradient steps.

It is shown only the action played when it learns: with all five it takes longer and regrets more here.
"""

from __future__ import annotations

from vowpalwabbit import Workspace

from benchmarks.peers.workload import Array, OnePerTask, Player


class _OneTask:
    """One task: it may share its workspace with others, since its features have names of their own."""

    def __init__(self, workspace: Workspace, names: list[str]) -> None:
        self._workspace = workspace
        self._names = names

    def choose(self, arms: Array) -> list[int]:
        return [self._choose_one(offered) for offered in arms.tolist()]

    def _choose_one(self, offered: list[list[float]]) -> int:
        probabilities = self._workspace.predict([self._line(x) for x in offered])
        return int(probabilities.index(max(probabilities)))

    def learn(self, features: Array, rewards: Array) -> None:
        for x, y in zip(features.tolist(), rewards.tolist(), strict=True):
            self._workspace.learn([f"0:{-y}:1 {self._line(x)}"])

    def _line(self, x: list[float]) -> str:
        return "|a " + " ".join(map("%s:%.9g".__mod__, zip(self._names, x, strict=True)))


def _workspace(bits: int) -> Workspace:
    return Workspace(f"--cb_explore_adf --epsilon 0 --noconstant -b {bits} --quiet")


def greedy(tasks: int, dim: int) -> Player:
    names = [str(feature) for feature in range(dim)]
    return OnePerTask(lambda task: _OneTask(_workspace(12), names), tasks)


def one_workspace(tasks: int, dim: int) -> Player:
    shared = _workspace(18)
    return OnePerTask(
        lambda task: _OneTask(shared, [str(task * dim + feature) for feature in range(dim)]), tasks
    )
