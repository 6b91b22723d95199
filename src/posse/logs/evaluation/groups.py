"""Rows in groups, such as tasks: sums, means and variances of each group in one look."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posse.numerics.checks import Array, IntArray


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each of n rows is in.

    Attributes
    ----------
    index : (n,)
        The number of each row's group.
    n_groups : int
        G; a group may have no rows.

    Examples
    --------
    >>> rows = Groups(np.array([0, 1, 1]), 3)
    >>> rows.counts, rows.means(np.array([5.0, 1.0, 3.0]))
    (array([1., 2., 0.]), array([ 5.,  2., nan]))
    """

    index: IntArray
    n_groups: int

    @classmethod
    def one(cls, n_rows: int) -> Groups:
        """Return n rows as one group."""
        return cls(np.zeros(n_rows, dtype=np.intp), 1)

    @cached_property
    def counts(self) -> Array:
        """The number of rows of each group, (G,)."""
        return np.bincount(self.index, minlength=self.n_groups).astype(np.float64)

    def sums(self, values: Array) -> Array:
        """Return the sum of values (n,) in each group, (G,)."""
        if self.n_groups == 1:
            return np.array([values.sum()])
        found = np.bincount(self.index, weights=values, minlength=self.n_groups)
        return np.asarray(found, dtype=np.float64)

    def means(self, values: Array) -> Array:
        """Return the mean of values (n,) in each group, (G,); NaN where there is no row."""
        return ratio(self.sums(values), self.counts)

    def deviations(self, values: Array) -> Array:
        """Return values (n,) less the mean of their group, (n,)."""
        return np.asarray(values - self.spread(self.means(values)))

    def variances(self, values: Array) -> Array:
        """Return the variance of values (n,) in each group, (G,), of n - 1 degrees; NaN below two rows."""
        return ratio(self.sums(self.deviations(values) ** 2), self.counts - 1.0)

    def spread(self, values: Array) -> Array:
        """Return the value (G,) of its group for each row, (n,)."""
        return values[0] if self.n_groups == 1 else values[self.index]


def ratio(above: Array, below: Array) -> Array:
    """Return quotients, NaN where the denominator is not above 0.

    Examples
    --------
    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    array([0.5, nan])
    """
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
