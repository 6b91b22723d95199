"""Tasks with linear responses, related or not, and rows of them to fit and to hold out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]

SHARED_DIRECTIONS, OFF_SUBSPACE = 3, 0.1
HELD_OUT = 20  # rows of each task


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is drawn: T tasks, d features, n rows for each.

    Related tasks have coefficients in 3 directions, of variance 1 along each, and off them by 0.1 along
    every axis. Unrelated ones have independent coefficients of the total variance 3. Noise has variance 1,
    and intercepts are drawn from N(2, 1).
    """

    tasks: int
    dim: int
    rows: int
    related: bool


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Rows to fit, rows to predict, and the truth.

    Attributes
    ----------
    task : (T n,)
        Numbers from 0 to T - 1; so many rows for each, one task after another.
    x, y : (T n, d), (T n,)
    held_task, held_x, held_y : (T m,), (T m, d), (T m,)
        Fresh rows, with noise.
    theta, level : (T, d), (T,)
        The truth.
    spread : (d, d)
        The covariance from which coefficients were drawn.
    """

    task: IntArray
    x: Array
    y: Array
    held_task: IntArray
    held_x: Array
    held_y: Array
    theta: Array
    level: Array
    spread: Array

    def errors(self, coef: Array, intercept: Array) -> dict[str, float]:
        """Return root mean squares: of |coef - theta| over tasks, of y less prediction over fresh rows."""
        off = np.sum((coef - self.theta) ** 2, axis=1)
        predicted = intercept[self.held_task] + np.vecdot(self.held_x, coef[self.held_task])
        left = self.held_y - predicted
        return {"theta_error": float(np.sqrt(off.mean())), "held_out": float(np.sqrt(np.mean(left**2)))}

    def write(self, path: Path) -> None:
        """Write everything to a file of NumPy's."""
        np.savez(path, **asdict(self))

    @classmethod
    def read(cls, path: Path) -> Workload:
        """Read what `write` wrote."""
        with np.load(path) as stored:
            parts: dict[str, Any] = {name: stored[name] for name in stored.files}
        return cls(**parts)

    @classmethod
    def draw(cls, cell: Cell, seed: int) -> Workload:
        """Draw tasks and their rows."""
        rng = np.random.default_rng(seed)
        if cell.related:
            basis = np.linalg.qr(rng.standard_normal((cell.dim, SHARED_DIRECTIONS)))[0]
            spread = basis @ basis.T + OFF_SUBSPACE**2 * np.eye(cell.dim)
        else:
            spread = SHARED_DIRECTIONS / cell.dim * np.eye(cell.dim)
        theta = rng.standard_normal((cell.tasks, cell.dim)) @ np.linalg.cholesky(spread).T
        level = 2.0 + rng.standard_normal(cell.tasks)

        def rows(n: int) -> tuple[IntArray, Array, Array]:
            task = np.repeat(np.arange(cell.tasks), n)
            x = rng.standard_normal((len(task), cell.dim))
            noise = rng.standard_normal(len(task))
            return task, x, level[task] + np.vecdot(x, theta[task]) + noise

        task, x, y = rows(cell.rows)
        held_task, held_x, held_y = rows(HELD_OUT)
        held: dict[str, Any] = {"held_task": held_task, "held_x": held_x, "held_y": held_y}
        return cls(task=task, x=x, y=y, **held, theta=theta, level=level, spread=spread)
