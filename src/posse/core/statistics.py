"""What a task has seen, in fixed memory: X'X, X'y, y'y and the number of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from posse.numerics.checks import Array, IntArray, check_array, check_finite, check_integer
from posse.numerics.compiled import compiled

# Up to this many features a product of few rows is faster by a loop than by a call to BLAS for each task.
SMALL = 128
# What is left of a task at less weight than this is forgotten altogether, before some of it underflows.
FORGOTTEN = 1e-100


@dataclass(frozen=True, eq=False)
class GramStatistics:
    """Sufficient statistics of T linear regressions, one per task.

    They add up: the statistics of two blocks of rounds, added, are the statistics of both, with
    `zeros` as neutral element. No method changes its object; the arrays are read-only.

    Attributes
    ----------
    gram : (T, d, d)
        X_t'X_t.
    moment : (T, d)
        X_t'y_t.
    square : (T,)
        y_t'y_t.
    count : (T,)
        Rounds played, as a total of weights.
    rows : (n, T, d), optional
        X_t itself, each row times the root of its weight, where the rounds summarised are few: an estimate
        may then be brought up to date by d^2 for each of them. X'X is made when it is asked for.

    Examples
    --------
    >>> x = np.array([[[1.0, 0.0]], [[0.0, 2.0]]])        # 2 rounds, 1 task, 2 features
    >>> seen = GramStatistics.of(x, np.array([[3.0], [4.0]]))
    >>> seen.moment
    array([[3., 8.]])
    >>> (seen + seen).count
    array([4.])
    """

    gram: Array
    moment: Array
    square: Array
    count: Array
    rows: ClassVar[Array | None] = None

    def __post_init__(self) -> None:
        for name in ("gram", "moment", "square", "count"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        n_tasks, dim = self.moment.shape
        for name, shape in (("gram", (n_tasks, dim, dim)), ("square", (n_tasks,)), ("count", (n_tasks,))):
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"`{name}` of GramStatistics must have shape {shape}. Got {getattr(self, name).shape}."
                )

    @classmethod
    def zeros(cls, n_tasks: int, dim: int) -> GramStatistics:
        """Return the statistics of no data: the neutral element of addition."""
        check_integer("`n_tasks` of GramStatistics", n_tasks, 1)
        check_integer("`dim` of GramStatistics", dim, 1)
        return cls(
            np.zeros((n_tasks, dim, dim)), np.zeros((n_tasks, dim)), np.zeros(n_tasks), np.zeros(n_tasks)
        )

    @classmethod
    def of(cls, features: ArrayLike, rewards: ArrayLike, weights: ArrayLike | None = None) -> GramStatistics:
        """Summarise n rounds of all tasks.

        Parameters
        ----------
        features : (n, T, d)
            The actions played.
        rewards : (n, T)
        weights : (n, T), optional
            How much each round counts. Zero, or False, marks a task that sat the round out: what
            its features and rewards then hold does not matter.
        """
        x = np.asarray(features, dtype=np.float64)
        y = np.asarray(rewards, dtype=np.float64)
        if x.ndim != 3 or y.shape != x.shape[:2]:
            raise ValueError(
                "`features` and `rewards` of GramStatistics must have shapes (n, T, d) and (n, T). "
                f"Got {x.shape} and {y.shape}."
            )
        weighted = x
        count = np.full(x.shape[1], float(x.shape[0]))
        if weights is not None:
            w = check_array("`weights` of GramStatistics", weights, x.shape[:2])
            if w.min() < 0:
                raise ValueError(f"`weights` of GramStatistics must not be negative. Got {w.min()}.")
            x = np.where(w[..., None] > 0, x, 0.0)
            y = np.where(w > 0, y, 0.0)
            weighted = w[..., None] * x
            count = w.sum(axis=0)
        square = np.einsum("nt,nt->t", y, y if weights is None else y * w)
        if 0 < 2 * len(x) <= x.shape[2]:
            rows = x.copy() if weights is None else np.sqrt(w)[..., None] * x
            found = cls._of_rows(rows, np.einsum("nti,nt->ti", weighted, y), square, count)
            diagonal = np.einsum("nti,nti->ti", rows, rows)
        else:
            by_task = weighted.transpose(1, 2, 0)
            gram = by_task @ x.transpose(1, 0, 2)
            found = cls(gram, (by_task @ y.T[:, :, None])[..., 0], square, count)
            diagonal = np.einsum("tii->ti", gram)
        # by Cauchy-Schwarz all is finite if the diagonal and the squares are
        if not (np.isfinite(diagonal).all() and np.isfinite(square).all()):
            check_finite("`features` of GramStatistics", x)
            check_finite("`rewards` of GramStatistics", y)
            largest = max(np.abs(x).max(), np.abs(y).max())
            raise ValueError(f"`features` and `rewards` must be small enough to square. Got {largest:.3g}.")
        return found

    @classmethod
    def _of_rows(cls, rows: Array, moment: Array, square: Array, count: Array) -> GramStatistics:
        """Return statistics without X'X, which `__getattr__` makes from the rows (n, T, d)."""
        found = object.__new__(cls)
        for name, values in (("rows", rows), ("moment", moment), ("square", square), ("count", count)):
            object.__setattr__(found, name, read_only(values))
        return found

    def __getattr__(self, name: str) -> Any:
        if name != "gram" or self.rows is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        gram = read_only(self._added_to(np.zeros((self.n_tasks, self.dim, self.dim))))
        object.__setattr__(self, "gram", gram)
        return gram

    @classmethod
    def from_rows(
        cls,
        tasks: ArrayLike,
        features: ArrayLike,
        rewards: ArrayLike,
        n_tasks: int,
        weights: ArrayLike | None = None,
    ) -> GramStatistics:
        """Summarise rows of a log: a task, features and a reward each.

        Parameters
        ----------
        tasks : (m,)
            The number of each row's task, from 0 to n_tasks - 1.
        features : (m, d)
        rewards : (m,)
        n_tasks : int
            T; tasks without rows get zeros.
        weights : (m,), optional
            How much each row counts, not negative.

        Examples
        --------
        >>> seen = GramStatistics.from_rows([0, 2, 0], [[1.0], [5.0], [3.0]], [2.0, 1.0, 2.0], n_tasks=3)
        >>> seen.count, seen.moment[:, 0]
        (array([2., 0., 1.]), array([8., 0., 5.]))
        """
        check_integer("`n_tasks` of GramStatistics", n_tasks, 1)
        index, x, y, w = check_rows(tasks, features, rewards, weights)
        if len(index) and not (index.min() >= 0 and index.max() < n_tasks):
            raise ValueError(
                f"`tasks` must be numbers in [0, n_tasks - 1={n_tasks - 1}]. "
                f"Got {index.min()} to {index.max()}."
            )
        dim = x.shape[1]
        parts = np.zeros((n_tasks, dim, dim)), np.zeros((n_tasks, dim)), np.zeros(n_tasks), np.zeros(n_tasks)
        add_rows(index, x, y, w, *parts)
        if not (np.isfinite(np.einsum("tii->ti", parts[0])).all() and np.isfinite(parts[2]).all()):
            largest = max(np.abs(x).max(), np.abs(y).max())
            raise ValueError(f"`features` and `rewards` must be small enough to square. Got {largest:.3g}.")
        return cls(*parts)

    @classmethod
    def repeated(cls, features: Array, n_rounds: int, total: Array, square: Array) -> GramStatistics:
        """Summarise n rounds in which every task played one action.

        Parameters
        ----------
        features : (T, d)
        n_rounds : int
        total, square : (T,)
            Sums of the rewards and of their squares.
        """
        gram = n_rounds * features[:, :, None] * features[:, None, :]
        return cls(gram, total[:, None] * features, square, np.full(len(features), float(n_rounds)))

    @property
    def n_tasks(self) -> int:
        """The number of tasks, T."""
        return int(self.moment.shape[0])

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.moment.shape[1])

    def __add__(self, other: GramStatistics) -> GramStatistics:
        if self.moment.shape != other.moment.shape:
            raise ValueError(
                "statistics to add must have equal numbers of tasks and features. "
                f"Got {self.moment.shape} and {other.moment.shape}."
            )
        return GramStatistics(
            other._added_to(self.gram),
            self.moment + other.moment,
            self.square + other.square,
            self.count + other.count,
        )

    def _added_to(self, gram: Array) -> Array:
        """Return X'X added to other matrices (T, d, d), by way of the rows if there are any."""
        if self.rows is None:
            return np.asarray(gram + self.gram)
        if self.dim > SMALL:
            return np.asarray(gram + self.rows.transpose(1, 2, 0) @ self.rows.transpose(1, 0, 2))
        total = np.empty_like(gram)
        add_outer_products(gram, self.rows, total)
        return total

    def discount(self, factor: ArrayLike) -> GramStatistics:
        """Return these statistics at `factor` times their weight, one number or one for each task (T,).

        1 keeps all, 0 forgets all.
        """
        share = np.asarray(factor, dtype=np.float64)
        if share.shape not in ((), (self.n_tasks,)) or not ((share >= 0) & (share <= 1)).all():
            raise ValueError(
                f"`factor` of discount must lie in [0, 1], for all or each task. Got {factor!r}."
            )
        share = np.where(share * self.count < FORGOTTEN, 0.0, share)  # all of a task's parts together
        return GramStatistics(
            share[:, None, None] * self.gram,
            share[:, None] * self.moment,
            share * self.square,
            share * self.count,
        )

    def padded(self, n_tasks: int) -> GramStatistics:
        """Return these statistics with further tasks at the end, up to `n_tasks`, that have no data."""
        missing = check_integer("`n_tasks` of padded", n_tasks, self.n_tasks) - self.n_tasks
        if missing == 0:
            return self
        return GramStatistics(
            *(
                np.concatenate([part, np.zeros((missing, *part.shape[1:]))])
                for part in (self.gram, self.moment, self.square, self.count)
            )
        )

    def take(self, tasks: ArrayLike) -> GramStatistics:
        """Return the statistics of some tasks, given as indices or as a mask, in that order."""
        index = np.asarray(tasks)
        if index.ndim != 1 or index.dtype.kind not in "iub":
            raise ValueError(f"`tasks` must be a list of task indices or a mask. Got {tasks!r}.")
        if index.dtype.kind == "b" and index.shape != (self.n_tasks,):
            raise ValueError(f"a mask of tasks must have length n_tasks={self.n_tasks}. Got {index.size}.")
        if index.dtype.kind != "b" and index.size and not (index.min() >= 0 and index.max() < self.n_tasks):
            raise ValueError(
                f"`tasks` must lie in [0, {self.n_tasks - 1}]. Got {index.min()} to {index.max()}."
            )
        return GramStatistics(self.gram[index], self.moment[index], self.square[index], self.count[index])


def check_rows(
    tasks: ArrayLike, features: ArrayLike, rewards: ArrayLike, weights: ArrayLike | None
) -> tuple[IntArray, Array, Array, Array]:
    """Return the tasks (m,), features (m, d), rewards (m,) and weights (m,) of rows, or say what is wrong.

    Weights are 1 where none are given.
    """
    index = np.asarray(tasks)
    x, y = np.asarray(features, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
    w = np.ones(y.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if index.ndim != 1 or (index.dtype.kind not in "iu" and index.size):
        raise ValueError(f"`tasks` of rows must be a list of task numbers. Got {tasks!r}.")
    if x.ndim != 2 or not len(index) == len(x) or y.shape != index.shape or w.shape != index.shape:
        raise ValueError(
            "rows must have tasks (m,), features (m, d), rewards (m,) and weights (m,). "
            f"Got {index.shape}, {x.shape}, {y.shape} and {w.shape}."
        )
    for name, values in (("features", x), ("rewards", y), ("weights", w)):
        check_finite(f"`{name}` of rows", values)
    if w.size and w.min() < 0:
        raise ValueError(f"`weights` of rows must not be negative. Got {w.min()}.")
    return index.astype(np.intp), np.ascontiguousarray(x), y, w


def read_only(values: Array) -> Array:
    """Return a view of float64 that cannot be written to."""
    view = np.asarray(values, dtype=np.float64).view()
    view.setflags(write=False)
    return view


@dataclass(frozen=True, eq=False)
class MomentTotals:
    """X'y alone: all that is needed where every direction is played equally often.

    Attributes
    ----------
    moment : (T, d)
    """

    moment: Array

    @classmethod
    def zeros(cls, n_tasks: int, dim: int) -> MomentTotals:
        """Return the totals of no data."""
        return cls(np.zeros((n_tasks, dim)))

    @classmethod
    def of(cls, features: Array, rewards: Array, weights: Array | None = None) -> MomentTotals:
        """Summarise n rounds of all tasks: features (n, T, d), rewards and, optionally, weights (n, T)."""
        return cls(GramStatistics.of(features, rewards, weights).moment)

    @classmethod
    def repeated(cls, features: Array, n_rounds: int, total: Array, square: Array) -> MomentTotals:
        """Summarise n rounds of one action (T, d), by the sums of rewards and of their squares, (T,)."""
        return cls(total[:, None] * features)

    def __add__(self, other: MomentTotals) -> MomentTotals:
        return MomentTotals(self.moment + other.moment)


@compiled
def add_outer_products(gram: Array, rows: Array, total: Array) -> None:
    """Fill `total` (T, d, d) with `gram` and the sum of x x' over the rows (n, T, d)."""
    n_rounds, n_tasks, dim = rows.shape
    for t in range(n_tasks):
        for i in range(dim):
            for j in range(dim):
                total[t, i, j] = gram[t, i, j] + rows[0, t, i] * rows[0, t, j]
            for n in range(1, n_rounds):
                for j in range(dim):
                    total[t, i, j] += rows[n, t, i] * rows[n, t, j]


@compiled
def add_rows(
    tasks: IntArray,
    features: Array,
    rewards: Array,
    weights: Array,
    gram: Array,
    moment: Array,
    square: Array,
    count: Array,
) -> None:
    """Add rows, tasks (m,), features (m, d), rewards and weights (m,), to the statistics of their tasks."""
    dim = features.shape[1]
    for n in range(len(tasks)):
        t, y, w = tasks[n], rewards[n], weights[n]
        for i in range(dim):
            x = w * features[n, i]
            moment[t, i] += x * y
            for j in range(dim):
                gram[t, i, j] += x * features[n, j]
        square[t] += w * y * y
        count[t] += w
