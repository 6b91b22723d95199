"""Policies by name on a grid of problems: the study that most grids play."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from posse.core.extras import extra
from posse.core.protocols import Policy, Problem
from posse.lab.entries import NamedProblem, PolicyOptions
from posse.lab.registry import POLICIES, PROBLEMS, build_policies, draw_problem
from posse.numerics.checks import IntArray, check_choice
from posse.play import Trace, simulate_all
from posse.play.simulation import PATHS, default_checkpoints
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
    """Policies by name on a grid of problems, all of which play the same rounds.

    Its table has a row per policy and checkpoint: `policy`, `round`, `regret_per_task`, the mean over tasks;
    `regret_by_task`, a list of all tasks' regrets at five checkpoints, the last among them, null elsewhere;
    `path`, how rounds were played; and `seconds`, the time of the policy's whole run.

    Parameters
    ----------
    name : str
        Names the folder of its results.
    problem : str
        The kind of problem, a name of `posse list`.
    cells : tuple of mappings
        Parameters of each problem in the grid.
    policies : tuple of str
        Names of `posse list`. All of them play the same rounds.
    horizon : int
        N, the rounds of each run. A cell may have a horizon of its own.
    options : mapping
        What policies are told, by the names of `PolicyOptions`, if not the problem's rank and
        defaults. A cell may have options, too.
    path : {"auto", "exact", "contexts"}
        How rounds are played: "contexts" draws the features of every arm, "exact" only what greedy play on a
        gaussian problem depends on, "auto" is exact where it can.
    """

    name: str
    problem: str
    cells: tuple[Mapping[str, Any], ...]
    policies: tuple[str, ...]
    horizon: int
    options: Mapping[str, Any] = field(default_factory=dict)
    path: str = "auto"

    measured: ClassVar = ("policy", "round", "regret_per_task", "regret_by_task", "path", "seconds")

    def __post_init__(self) -> None:
        check_choice("`path` of Experiment", self.path, PATHS)
        if not self.name.isidentifier():
            raise ValueError(f"`name` of Experiment must be an identifier. Got {self.name!r}.")
        for name in ("cells", "policies"):
            entries = getattr(self, name)
            if not entries or any(entries.count(entry) > 1 for entry in entries):
                raise ValueError(f"`{name}` of Experiment must be some different entries. Got {entries!r}.")
        check_choice("`problem` of Experiment", self.problem, PROBLEMS)
        for name in self.policies:
            check_choice("policy", name, POLICIES)
        for name in self.options:
            check_choice("option of Experiment", name, OPTIONS)
        self._check_cells()

    def _check_cells(self) -> None:
        known = [*self._kind.parameters, *OPTIONS, "horizon"]
        for name in {name: None for cell in self.cells for name in cell}:
            check_choice("parameter of a cell", name, known)
            if name in self.options and name != "rank":
                raise ValueError(f"{name} must be an option of Experiment or of its cells. Got both.")

    @property
    def _kind(self) -> NamedProblem:
        return PROBLEMS[self.problem]

    @property
    def images(self) -> str | None:
        """The image set that the problem is made of, if it is made of one."""
        return self._kind.images

    def parameters(self) -> dict[str, Any]:
        """Return the fields as JSON has them, and what policies are told by default."""
        told = [self._kind.options({**self._kind.parameters, **cell}) for cell in self.cells]
        settings: dict[str, Any] = json.loads(json.dumps({**asdict(self), "default_options": told}))
        return settings

    def columns(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cell's parameters and its horizon."""
        return {**cell, "horizon": self._horizon(cell)}

    def work(self, cell: Mapping[str, Any]) -> int:
        """Return the numbers that its rounds consist of."""
        return self._kind.work({**self._kind.parameters, **cell}) * self._horizon(cell)

    def draw(self, cell: Mapping[str, Any], seed: int) -> Problem:
        """Draw the problem of a cell and a seed."""
        own = {name: cell.get(name, default) for name, default in self._kind.parameters.items()}
        return draw_problem(self.problem, **own, seed=seed)

    def build(self, cell: Mapping[str, Any], problem: Problem) -> dict[str, Policy]:
        """Build the policies of a cell for its problem."""
        told = {name: value for name, value in cell.items() if name in OPTIONS}
        default = self._kind.options({**self._kind.parameters, **cell})
        return build_policies(self.policies, problem, PolicyOptions(**{**default, **told, **self.options}))

    def check(self, cell: Mapping[str, Any]) -> None:
        """Raise what is wrong with a cell, without playing it."""
        self._kind.check({**self._kind.parameters, **cell}, self._horizon(cell))
        problem = self.draw(cell, 0)
        for name, policy in self.build(cell, problem).items():
            meant = POLICIES[name].actions
            if meant not in ("any", self._kind.actions):
                raise ValueError(
                    f"{POLICIES[name].label} is made for {ACTION_SETS[meant]}, and the problem "
                    f"{self.problem} has {ACTION_SETS[self._kind.actions]}. Got the policy {name!r}."
                )
            policy.blocks(self._horizon(cell), problem.n_tasks, problem.dim)
            policy.init(problem.n_tasks, problem.dim)

    def play(self, cell: Mapping[str, Any], seed: int) -> pl.DataFrame:
        """Draw the problem of a cell and a seed, and play all policies on it."""
        problem = self.draw(cell, seed)
        policies = self.build(cell, problem)
        tables = []
        # policies of one call share the dealt rounds, and hold their statistics at the same time
        together = max(1, STATISTICS_VALUES // (problem.n_tasks * problem.dim**2))
        for start in range(0, len(policies), together):
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


ACTION_SETS = {"finite": "finite action sets", "ellipsoids": "ellipsoids"}


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
