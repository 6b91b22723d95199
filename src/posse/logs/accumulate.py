"""Sums over rows of a table: X'X, X'y, y'y and weights of every cell, in one compiled loop."""

from __future__ import annotations

import numpy as np

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, IntArray
from posse.numerics.compiled import compiled

LEAST_ROOM = 256
# Counting rows of cells is faster than sorting them, if there are not many more cells than rows.
CELLS_PER_ROW = 8


class Accumulator:
    """Statistics of cells, such as tasks, that grow in number and in rows.

    Parameters
    ----------
    dim : int
        The number of features.
    """

    def __init__(self, dim: int) -> None:
        self.dim, self.n_cells = dim, 0
        self._parts = self._room(0)

    def _room(self, n_cells: int) -> tuple[Array, Array, Array, Array]:
        shapes = (n_cells, self.dim, self.dim), (n_cells, self.dim), (n_cells,), (n_cells,)
        gram, moment, square, count = (np.zeros(shape) for shape in shapes)
        return gram, moment, square, count

    def add(self, cells: IntArray, features: Array, rewards: Array, weights: Array, n_cells: int) -> None:
        """Add rows: their cells (m,), features (m, d), rewards and weights (m,); there are n cells by now."""
        self.grow(n_cells)
        if len(cells) * CELLS_PER_ROW >= n_cells:
            order, ends = np.empty(len(cells), dtype=np.intp), np.zeros(n_cells + 1, dtype=np.intp)
            count_and_order(cells, order, ends)
        else:
            order = np.argsort(cells, kind="stable")
        add_ordered(order, cells, features, rewards, weights, *self._parts)

    def add_cells(self, cells: IntArray, statistics: GramStatistics, n_cells: int) -> None:
        """Add statistics of cells (m,), which differ from each other; there are n cells by now."""
        self.grow(n_cells)
        added = statistics.gram, statistics.moment, statistics.square, statistics.count
        for sums, values in zip(self._parts, added, strict=True):
            sums[cells] += values

    def grow(self, n_cells: int) -> None:
        """Make room for n cells."""
        room = len(self._parts[2])
        if n_cells > room:
            larger = self._room(max(LEAST_ROOM, n_cells, 2 * room))
            for old, new in zip(self._parts, larger, strict=True):
                new[:room] = old
            self._parts = larger
        self.n_cells = max(n_cells, self.n_cells)

    def statistics(self) -> GramStatistics:
        """Return the statistics of all cells; nothing may be added afterwards."""
        gram, moment, square, count = (part[: self.n_cells] for part in self._parts)
        mirror(gram)
        return GramStatistics(gram, moment, square, count)


@compiled
def count_and_order(cells: IntArray, order: IntArray, ends: IntArray) -> None:
    """Fill `order` (m,) with the rows, those of a cell side by side; `ends` (C + 1,) must be zeros."""
    for n in range(len(cells)):
        ends[cells[n] + 1] += 1
    for c in range(1, len(ends)):
        ends[c] += ends[c - 1]
    for n in range(len(cells)):
        order[ends[cells[n]]] = n
        ends[cells[n]] += 1


def _add_ordered(
    order: IntArray,
    cells: IntArray,
    features: Array,
    rewards: Array,
    weights: Array,
    gram: Array,
    moment: Array,
    square: Array,
    count: Array,
) -> None:
    """Add rows to their cells, four of a cell at a time; of X'X only what is on and below the diagonal.

    Parameters
    ----------
    order : (m,)
        Rows, those of a cell side by side.
    cells, rewards, weights : (m,)
    features : (m, d)
    gram, moment, square, count : (C, d, d), (C, d), (C,), (C,)
        Are added to.
    """
    n_rows, dim = features.shape
    nothing = np.zeros(dim)
    n = 0
    while n < n_rows:
        row = order[n]
        cell = cells[row]
        x0, w0, y0 = features[row], weights[row], rewards[row]
        x1, w1, y1 = nothing, 0.0, 0.0
        x2, w2, y2 = nothing, 0.0, 0.0
        x3, w3, y3 = nothing, 0.0, 0.0
        n += 1
        if n < n_rows and cells[order[n]] == cell:
            row = order[n]
            x1, w1, y1 = features[row], weights[row], rewards[row]
            n += 1
            if n < n_rows and cells[order[n]] == cell:
                row = order[n]
                x2, w2, y2 = features[row], weights[row], rewards[row]
                n += 1
                if n < n_rows and cells[order[n]] == cell:
                    row = order[n]
                    x3, w3, y3 = features[row], weights[row], rewards[row]
                    n += 1
        count[cell] += w0 + w1 + w2 + w3
        square[cell] += w0 * y0 * y0 + w1 * y1 * y1 + w2 * y2 * y2 + w3 * y3 * y3
        for i in range(dim):
            c0, c1, c2, c3 = w0 * x0[i], w1 * x1[i], w2 * x2[i], w3 * x3[i]
            moment[cell, i] += c0 * y0 + c1 * y1 + c2 * y2 + c3 * y3
            for j in range(i + 1):
                gram[cell, i, j] += c0 * x0[j] + c1 * x1[j] + c2 * x2[j] + c3 * x3[j]


add_ordered = compiled(_add_ordered, any_order=True)


@compiled
def mirror(gram: Array) -> None:
    """Copy what is below the diagonals of matrices (C, d, d) to above them."""
    n_cells, dim, _ = gram.shape
    for c in range(n_cells):
        for i in range(dim):
            for j in range(i):
                gram[c, j, i] = gram[c, i, j]
