"""From named columns to feature vectors: what a log, a model and a running policy have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.columns import Column, level_of
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, IntArray, check_choice

CONSTANT = "(constant)"


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a row of named values becomes a vector of features.

    Vectors hold, in this order: the constant 1; the features of columns and of interactions that count alike
    for all arms; and, for every named arm, a block of its own: its level, and the features of the columns in
    `own`. All but the block of the row's own arm is 0.

    Attributes
    ----------
    columns : tuple of NumberColumn, CategoryColumn or DateColumn
    intercept : bool
        Whether there is a constant feature.
    interactions : tuple of pairs of str
        Names of columns; all features of the first times all features of the second.
    arms : tuple of str
        Named arms with parameters of their own; none by default.
    own : tuple of str
        Columns whose parameters differ between arms. Those of all others are common to them.

    Examples
    --------
    >>> from posse.core.columns import CategoryColumn, NumberColumn
    >>> price = NumberColumn(name="price", mean=10.0, scale=2.0, missing=True)
    >>> colour = CategoryColumn(name="colour", levels=("red", "blue", "green"))
    >>> encoder = Encoder(columns=(price, colour))
    >>> encoder.features
    ('(constant)', 'price', 'price missing', 'colour=red', 'colour=blue', 'colour=green')
    >>> encoder.encode({"price": [12.0, None], "colour": ["blue", "red"]})
    array([[1., 1., 0., 0., 1., 0.],
           [1., 0., 1., 1., 0., 0.]])
    """

    columns: tuple[Column, ...] = ()
    intercept: bool = True
    interactions: tuple[tuple[str, str], ...] = ()
    arms: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError(f"`columns` of Encoder must have different names. Got {names!r}.")
        if len(set(self.arms)) < len(self.arms):
            raise ValueError(f"`arms` of Encoder must have different names. Got {self.arms!r:.200}.")
        for name in (*self.own, *(name for pair in self.interactions for name in pair)):
            check_choice("a column of Encoder", name, names)
        if self.own and not self.arms:
            raise ValueError(f"`own` of Encoder must be empty where there are no arms. Got {self.own!r}.")
        if not self.features:
            raise ValueError("Encoder must make at least one feature. Got no columns and no intercept.")

    @property
    def _shared(self) -> tuple[Column, ...]:
        """The columns whose parameters all arms share."""
        return tuple(column for column in self.columns if column.name not in self.own)

    @property
    def _owned(self) -> tuple[Column, ...]:
        """The columns with parameters of their own for each arm."""
        return tuple(column for column in self.columns if column.name in self.own)

    @cached_property
    def _common(self) -> tuple[str, ...]:
        """The names of the features that all arms share."""
        by_name = {column.name: column.features for column in self.columns}
        products = [
            f"{one} × {other}"
            for first, second in self.interactions
            for one in by_name[first]
            for other in by_name[second]
        ]
        named = [name for column in self._shared for name in column.features]
        return (*((CONSTANT,) if self.intercept else ()), *named, *products)

    @cached_property
    def _block(self) -> tuple[str, ...]:
        """The names of the features of an arm's own block; none if no arm is named."""
        if not self.arms:
            return ()
        return ("level", *(name for column in self._owned for name in column.features))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of all features, in the order of the vectors."""
        return (*self._common, *(f"{arm}: {name}" for arm in self.arms for name in self._block))

    @property
    def compact_features(self) -> tuple[str, ...]:
        """The names of compact features: those in common, then those of an arm's own block."""
        return (*self._common, *self._block)

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return len(self._common) + len(self.arms) * len(self._block)

    @property
    def constant(self) -> int | None:
        """The place of the constant feature; None if there is none."""
        return 0 if self.intercept else None

    def encode(self, table: Any, arm: Any = None) -> Array:
        """Return the feature vectors (n, d) of n rows.

        Parameters
        ----------
        table : mapping of str to (n,)
            The columns, by name, as a dictionary or a frame; others than the encoder's are not looked at.
            None and NaN are missing values.
        arm : (n,), optional
            The name of each row's arm, where the encoder has named arms.
        """
        raws = {}
        for column in self.columns:
            if column.name not in table:
                check_choice(
                    f"a table to encode must have column {column.name!r}: columns", column.name, table
                )
            raws[column.name] = column.raw(table[column.name])
        codes = self._arm_codes(arm)
        sizes = {len(raw) for raw in raws.values()} | (set() if codes is None else {len(codes)})
        if len(sizes) > 1:
            raise ValueError(f"columns to encode must be of one length. Got {sorted(sizes)}.")
        compact = self.compact(raws, sizes.pop() if sizes else 1)
        return compact if codes is None else self.placed(compact, codes)

    def _arm_codes(self, arm: Any) -> IntArray | None:
        if not self.arms:
            return None
        if arm is None:
            raise ValueError(f"`arm` must name each row's arm, of {', '.join(self.arms[:10])}. Got None.")
        codes = self.numbers_of_arms(
            [level_of(value) for value in np.atleast_1d(np.asarray(arm, dtype=object))]
        )
        if (codes < 0).any():
            wrong = np.atleast_1d(np.asarray(arm, dtype=object))[int(np.argmin(codes))]
            check_choice("`arm`", wrong, self.arms)
        return codes

    def numbers_of_arms(self, names: Sequence[str | None]) -> IntArray:
        """Return the numbers of arms by name, -1 for a name that the encoder does not know."""
        known = {arm: number for number, arm in enumerate(self.arms)}
        return np.array([known.get(name, -1) if name is not None else -1 for name in names], dtype=np.intp)

    def compact(self, raws: Mapping[str, NDArray[Any]], n_rows: int) -> Array:
        """Return features (n, m) before arms tell them apart: those in common, then those of a row's own arm.

        Parameters
        ----------
        raws : mapping of str to (n,)
            What `raw` of each column returns.
        n_rows : int
            n, as there may be no columns.
        """
        out = np.empty((n_rows, len(self._common) + len(self._block)))
        place = 0
        if self.intercept:
            out[:, 0], place = 1.0, 1
        place = self._fill(self._shared, raws, out, place)
        for first, second in self.interactions:
            product = (
                self._features_of(first, raws, n_rows)[:, :, None]
                * self._features_of(second, raws, n_rows)[:, None, :]
            )
            width = product.shape[1] * product.shape[2]
            out[:, place : place + width] = product.reshape(n_rows, width)
            place += width
        if self.arms:
            out[:, place], place = 1.0, place + 1
        self._fill(self._owned, raws, out, place)
        return out

    def _fill(
        self, columns: Sequence[Column], raws: Mapping[str, NDArray[Any]], out: Array, place: int
    ) -> int:
        for column in columns:
            width = len(column.features)
            column.fill(raws[column.name], out[:, place : place + width])
            place += width
        return place

    def _features_of(self, name: str, raws: Mapping[str, NDArray[Any]], n_rows: int) -> Array:
        column = next(column for column in self.columns if column.name == name)
        out = np.empty((n_rows, len(column.features)))
        column.fill(raws[name], out)
        return out

    def placed(self, compact: Array, codes: IntArray) -> Array:
        """Return vectors (n, d) from compact ones (n, m) and the numbers of their arms (n,)."""
        n_rows, n_common, width = len(compact), len(self._common), len(self._block)
        out = np.zeros((n_rows, self.dim))
        out[:, :n_common] = compact[:, :n_common]
        places = n_common + codes[:, None] * width + np.arange(width)
        np.put_along_axis(out, places, compact[:, n_common:], axis=1)
        return out

    def split(self, theta: Array) -> Array:
        """Return parameters (..., d) as those of each arm's compact features, (..., K, m).

        Without named arms K is 1, and they are as they were. What they give is what `placed` vectors give
        with parameters as a whole.
        """
        if not self.arms:
            return theta[..., None, :]
        n_common, shape = len(self._common), (*theta.shape[:-1], len(self.arms))
        common = np.broadcast_to(theta[..., None, :n_common], (*shape, n_common))
        return np.concatenate([common, theta[..., n_common:].reshape(*shape, len(self._block))], axis=-1)

    def expand(self, statistics: GramStatistics) -> GramStatistics:
        """Return the statistics of T tasks from those of all pairs of a task and an arm.

        Parameters
        ----------
        statistics : GramStatistics
            Of T x K cells, the arms of a task side by side, and compact features.

        Returns
        -------
        GramStatistics
            Of T tasks and d features; as it is, where no arms are named.
        """
        if not self.arms:
            return statistics
        n_arms, common, width = len(self.arms), len(self._common), len(self._block)
        n_tasks, m = statistics.n_tasks // n_arms, statistics.dim
        gram = statistics.gram.reshape(n_tasks, n_arms, m, m)
        moment = statistics.moment.reshape(n_tasks, n_arms, m)
        whole, slope = np.zeros((n_tasks, self.dim, self.dim)), np.zeros((n_tasks, self.dim))
        whole[:, :common, :common] = gram[:, :, :common, :common].sum(axis=1)
        slope[:, :common] = moment[:, :, :common].sum(axis=1)
        for arm in range(n_arms):
            block = slice(common + arm * width, common + (arm + 1) * width)
            whole[:, block, block] = gram[:, arm, common:, common:]
            whole[:, block, :common] = gram[:, arm, common:, :common]
            whole[:, :common, block] = gram[:, arm, :common, common:]
            slope[:, block] = moment[:, arm, common:]
        totals = (part.reshape(n_tasks, n_arms).sum(axis=1) for part in (statistics.square, statistics.count))
        return GramStatistics(whole, slope, *totals)
