"""Policies on a grid of problems: the study that most grids play."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from posse.core.extras import extra
from posse.core.protocols import Policy, Problem
from posse.lab.entries import NamedProblem, PolicyOptions
from posse.lab.foreign import failing_as, placing_errors
from posse.lab.registry import (
    build_policies,
    describe_policy,
    describe_problem,
    find_policy,
    find_problem,
    is_named,
    name_policies,
    problem_title,
)
from posse.numerics.checks import IntArray, check_choice, check_integer
from posse.play import Trace, check_start, simulate_all
from posse.play.rounds import PATHS
from posse.play.simulation import default_checkpoints
from posse.policies import DoublyExponential

with extra("lab"):
    import polars as pl

OPTIONS = tuple(item.name for item in fields(PolicyOptions))
# Policies play side by side as long as one set of statistics of each has fewer values than this.
STATISTICS_VALUES = 2**26
# The regret of every task is kept at the first checkpoints after these shares of the rounds.
KEPT_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Policies on a grid of problems, all of which play the same rounds.

    Its table has a row per policy and checkpoint: `policy`, `round`, `regret_per_task`, the mean over tasks;
    `regret_by_task`, a list of all tasks' regrets at five checkpoints, the last among them, null elsewhere;
    `path`, how rounds were played; and `seconds`, the time of the policy's whole run.

    Parameters
    ----------
    name : str
        Names the folder of its results.
    problem : str, Problem or callable
        The kind of problem: a name of `posse list`; "module:NAME"; a problem; or a function
        `draw(*, seed, ...)` that draws one, whose signature says the parameters.
    policies : sequence, or mapping of names
        Each is a name of `posse list`, such as "naive", or one with parameters, such as "mlingreedy(rank=5)";
        "module:NAME"; a policy; or, in a mapping, a function of the problem that makes one. The table calls a
        policy by its name in the mapping, by its text, or by what it prints as. All of them play the same
        rounds.
    horizon : int
        N, the rounds of each run. A cell may have a horizon of its own.
    cells : tuple of mappings
        Parameters of each problem in the grid; by default one, with the defaults of its kind.
    options : mapping
        What policies are told, by the names of `PolicyOptions`, if not the problem's rank and
        defaults. A cell may have options, too.
    path : {"auto", "exact", "contexts"}
        How rounds are played: "contexts" draws the features of every arm, "exact" only what greedy play on a
        gaussian problem depends on, "auto" is exact where it can.
    """

    name: str
    problem: Any
    policies: Sequence[Any] | Mapping[str, Any]
    horizon: int
    cells: tuple[Mapping[str, Any], ...] = ({},)
    options: Mapping[str, Any] = field(default_factory=dict)
    path: str = "auto"

    measured: ClassVar = ("policy", "round", "regret_per_task", "regret_by_task", "path", "seconds")

    def __post_init__(self) -> None:
        check_choice("`path` of Experiment", self.path, PATHS)
        if not self.name.isidentifier():
            raise ValueError(f"`name` of Experiment must be an identifier. Got {self.name!r}.")
        check_integer("`horizon` of Experiment", self.horizon, 1)
        object.__setattr__(self, "cells", _alike(self.cells))
        find_problem(self.problem, "`problem` of Experiment")
        name_policies(self.policies)
        for name in self.options:
            check_choice("option of Experiment", name, OPTIONS)
        self._check_cells()

    def _check_cells(self) -> None:
        kind = self._kind
        known = list(dict.fromkeys([*kind.parameters, *kind.required, *OPTIONS, "horizon"]))
        for name in {name: None for cell in self.cells for name in cell}:
            check_choice("parameter of a cell", name, known)
            if name in self.options and name != "rank":
                raise ValueError(f"{name} must be an option of Experiment or of its cells. Got both.")
        for name in kind.required:
            if any(name not in cell for cell in self.cells):
                raise ValueError(
                    f"a cell must say {name}: problem {problem_title(self.problem)} has no default for it. "
                    "Got none."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its policies, as the table has them."""
        return tuple(name_policies(self.policies))

    @property
    def _kind(self) -> NamedProblem:
        return find_problem(self.problem)

    @property
    def images(self) -> str | None:
        """The image set that the problem is made of, if it is made of one."""
        return self._kind.images

    def parameters(self) -> dict[str, Any]:
        """Return the fields as JSON has them, and what policies are told by default."""
        settings = {
            "name": self.name,
            "problem": describe_problem(self.problem),
            "cells": [dict(cell) for cell in self.cells],
            "policies": [
                describe_policy(name, value) for name, value in name_policies(self.policies).items()
            ],
            "horizon": self.horizon,
            "options": dict(self.options),
            "path": self.path,
            "default_options": [self._kind.options({**self._kind.parameters, **cell}) for cell in self.cells],
        }
        as_json: dict[str, Any] = json.loads(json.dumps(settings))
        return as_json

    def columns(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cell's parameters and its horizon."""
        return {**cell, "horizon": self._horizon(cell)}

    def work(self, cell: Mapping[str, Any]) -> int:
        """Return the numbers that its rounds consist of."""
        return self._kind.work({**self._kind.parameters, **cell}) * self._horizon(cell)

    def draw(self, cell: Mapping[str, Any], seed: int) -> Problem:
        """Draw the problem of a cell and a seed."""
        kind = self._kind
        own = {name: cell.get(name, default) for name, default in kind.parameters.items()}
        return kind.draw(**own, **{name: cell[name] for name in kind.required}, seed=seed)

    def build(self, cell: Mapping[str, Any], problem: Problem) -> dict[str, Policy]:
        """Build the policies of a cell for its problem."""
        told = {name: value for name, value in cell.items() if name in OPTIONS}
        default = self._kind.options({**self._kind.parameters, **cell})
        return build_policies(self.policies, problem, PolicyOptions(**{**default, **told, **self.options}))

    def check(self, cell: Mapping[str, Any]) -> None:
        """Raise what is wrong with a cell, without playing it."""
        kind = self._kind
        kind.check({**kind.parameters, **cell}, self._horizon(cell))
        problem = self.draw(cell, 0)
        built = self.build(cell, problem)
        for name, value in name_policies(self.policies).items():
            own = isinstance(value, str) and is_named(value)
            if own:
                _check_actions(value, problem_title(self.problem), kind.suits(cell))
            with nullcontext() if own else failing_as(f"the policy {name} fails before the first round"):
                check_start(problem, built[name], self._horizon(cell))

    def play(self, cell: Mapping[str, Any], seed: int) -> pl.DataFrame:
        """Draw the problem of a cell and a seed, and play all policies on it."""
        problem = self.draw(cell, seed)
        policies = self.build(cell, problem)
        tables = []
        # policies of one call share the dealt rounds, and hold their statistics at the same time
        together = max(1, STATISTICS_VALUES // (problem.n_tasks * problem.dim**2))
        for start in range(0, len(policies), together):
            with placing_errors():
                traces = simulate_all(
                    problem,
                    dict(list(policies.items())[start : start + together]),
                    horizon=self._horizon(cell),
                    seed=seed,
                    checkpoints=self._checkpoints(cell),
                    path=self.path,
                    final_state=False,
                )
            tables += [_measurements(name, trace) for name, trace in traces.items()]
        return pl.concat(tables)

    def _horizon(self, cell: Mapping[str, Any]) -> int:
        return int(cell.get("horizon", self.horizon))

    def _checkpoints(self, cell: Mapping[str, Any]) -> IntArray:
        """Return rounds on a logarithmic scale, the ends of the paper's epochs, and the last estimate."""
        horizon = self._horizon(cell)
        epochs = np.cumsum(DoublyExponential().blocks(horizon))
        explored = min(cell.get("explore", horizon), horizon)
        return np.concatenate([default_checkpoints(horizon), epochs, [explored]])


def _alike(cells: Any) -> tuple[dict[str, Any], ...]:
    """Return cells with their parameters in one order, if they are different and say the same parameters."""
    if isinstance(cells, Mapping) or not all(isinstance(cell, Mapping) for cell in cells):
        raise ValueError(f"`cells` of Experiment must be a tuple of mappings. Got {cells!r}.")
    if not cells or any(list(cells).count(cell) > 1 for cell in cells):
        raise ValueError(f"`cells` of Experiment must be some different entries. Got {cells!r}.")
    if any(cell.keys() != cells[0].keys() for cell in cells):
        raise ValueError(f"`cells` of Experiment must all say the same parameters. Got {cells!r}.")
    return tuple({name: cell[name] for name in cells[0]} for cell in cells)


ACTION_SETS = {
    "finite": "finite action sets",
    "ellipsoids": "ellipsoids",
    "streams": "streams of tasks on ellipsoids",
}


def _check_actions(policy: str, problem: str, suited: tuple[str, ...]) -> None:
    """Raise if a policy with a name is made for other action sets than a problem's, if these are known."""
    entry, _ = find_policy(policy)
    if suited and entry.actions not in suited:
        raise ValueError(
            f"{entry.label} is made for {ACTION_SETS[entry.actions]}, and the problem {problem} has "
            f"{ACTION_SETS[suited[-1]]}. Got the policy {policy!r}."
        )


def _measurements(policy: str, trace: Trace) -> pl.DataFrame:
    kept = set(np.searchsorted(trace.rounds, np.ceil(np.array(KEPT_SHARES) * trace.rounds[-1])).tolist())
    by_task = [row.tolist() if place in kept else None for place, row in enumerate(trace.regret)]
    return pl.DataFrame(
        {
            "policy": policy,
            "round": trace.rounds,
            "regret_per_task": trace.regret_per_task,
            "regret_by_task": pl.Series(by_task, dtype=pl.List(pl.Float32)),
            "path": trace.path,
            "seconds": trace.seconds,
        }
    )
