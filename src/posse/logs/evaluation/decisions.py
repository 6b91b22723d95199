"""Decisions of a log, some at a time: what was on offer, what was played, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.columns import CategoryColumn, NumberColumn
from posse.core.encoder import Encoder
from posse.logs.reading import quoted, reading
from posse.numerics.checks import Array, BoolArray, IntArray, check_choice
from posse.numerics.compiled import compiled

NOTHING = np.zeros((0, 0))


@dataclass(frozen=True, kw_only=True)
class DecisionColumns:
    """Which column of a log of decisions holds what.

    Attributes
    ----------
    task, reward : str
    arm : str or None
        The name of the arm: that was played, or, in a table with a row for every arm on offer, of that row.
    propensity : str or None
        The probability by which the arm was chosen.
    decision : str or None
        What a decision is called; rows of one name are the arms that were on offer in one decision.
    chosen : str or None
        Whether the arm of a row was the one played, in a table with a row for every arm on offer.
    offered : str or None
        A list of the names of the arms on offer, in a table with a row for every decision.
    time : str or None
    """

    task: str
    reward: str
    arm: str | None = None
    propensity: str | None = None
    decision: str | None = None
    chosen: str | None = None
    offered: str | None = None
    time: str | None = None

    @property
    def long(self) -> bool:
        """Whether a decision has a row for every arm that was on offer."""
        return self.chosen is not None

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that have a part."""
        return tuple(name for name in vars(self).values() if name is not None)

    def check(self, types: Mapping[str, str]) -> None:
        """Say if a column is not there, has two parts, or has one that does not go with the others."""
        for role, column in vars(self).items():
            if column is not None:
                check_choice(f"`{role}`", column, types)
        if len(set(self.named)) < len(self.named):
            raise ValueError(f"columns with a part of their own must differ. Got {', '.join(self.named)}.")
        if self.long and self.decision is None:
            raise ValueError(
                "`decision` must name each decision where `chosen` says which row was played. Got None."
            )
        if self.long and self.offered is not None:
            raise ValueError(
                f"`offered` must be None where every arm on offer has a row. Got {self.offered!r}."
            )
        if not self.long and self.arm is None:
            raise ValueError(
                "`arm` must be the column that names the arm played; or `decision` and `chosen` those of a "
                "table with a row for every arm on offer. Got None."
            )
        if self.offered is not None and not types[self.offered].endswith("[]"):
            raise ValueError(
                f"`offered` must be a column of lists of names. Got {self.offered!r}, which holds "
                f"{types[self.offered].lower()}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """A batch of a log's decisions, m of them in order, each between at most K arms.

    Attributes
    ----------
    tasks : (m,)
        Numbers of tasks.
    chosen : (m,)
        The place of the arm that was played among those on offer.
    rewards : (m,)
    propensities : (m,)
        NaN where the log has none.
    times : (m,)
        0 where the log has none.
    features : (m, 1 or K, c)
        Compact features of the decision, or of each of its arms.
    arms : (m, K)
        Numbers of arms that have names; all of them 0 where they have none.
    available : (m, K), or empty if all arms are on offer
    logged : (m, K), or empty
        The propensities of all arms, where the log has them.
    columns : mapping of str to (m,) or (m, K)
        Probabilities of targets that are columns of the log: of the arm played, or of all arms.
    others : mapping of str to (m, 1 or K, c')
        Compact features by other encoders, as those of models.
    prints : (m,), or empty
        Fingerprints of whole rows, by which those are found that stand there twice.
    """

    tasks: IntArray
    chosen: IntArray
    rewards: Array
    propensities: Array
    times: Array
    features: Array
    arms: IntArray
    available: BoolArray
    logged: Array = field(default_factory=lambda: NOTHING)
    columns: Mapping[str, Array] = field(default_factory=dict)
    others: Mapping[str, Array] = field(default_factory=dict)
    prints: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def offers(self) -> BoolArray:
        """Which arms are on offer, (m, K)."""
        return self.available if self.available.size else np.ones(self.arms.shape, dtype=np.bool_)

    @property
    def played(self) -> IntArray:
        """The numbers (m,) of the arms that were played."""
        return self.at_chosen(self.arms)

    @property
    def played_features(self) -> Array:
        """Compact features (m, c) of the arms that were played."""
        if self.features.shape[1] == 1:
            return self.features[:, 0]
        return self.features[np.arange(len(self)), self.chosen]

    def at_chosen(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return those of some values (m, K) that belong to the arms played, (m,)."""
        return np.take_along_axis(values, self.chosen[:, None], axis=1)[:, 0]

    def vectors(self, encoder: Encoder, rows: slice) -> Array:
        """Return whole feature vectors (n, K, d) of all arms of a slice of decisions."""
        arms = self.arms[rows]
        n_rows, n_arms = arms.shape
        compact = np.broadcast_to(self.features[rows], (n_rows, n_arms, self.features.shape[2]))
        flat = compact.reshape(n_rows * n_arms, -1)
        vectors = encoder.placed(flat, arms.ravel()) if encoder.arms else flat
        return np.ascontiguousarray(vectors.reshape(n_rows, n_arms, encoder.dim))


class FeatureReader:
    """Reads the columns of an encoder from batches of a table, and makes compact features of them.

    Parameters
    ----------
    encoder : Encoder
    types : mapping of str to str
        DuckDB's types of the columns of the table.
    prefix : str
        What the columns are called in batches, before their numbers.
    """

    def __init__(self, encoder: Encoder, types: Mapping[str, str], prefix: str) -> None:
        self.encoder, self.prefix = encoder, prefix
        kinds = {CategoryColumn: "category", NumberColumn: "number"}
        self.readings = [
            reading(column.name, types[column.name], kinds.get(type(column), "date"))
            for column in encoder.columns
        ]

    @property
    def asked(self) -> list[str]:
        """SQL for what is read."""
        return [f"{item.value} as {self.prefix}{place}" for place, item in enumerate(self.readings)]

    def compact(self, columns: Mapping[str, Any], n_rows: int) -> Array:
        """Return the compact features (n, c) of the rows of a batch, by its columns."""
        raws: dict[str, NDArray[Any]] = {}
        for place, column in enumerate(self.encoder.columns):
            values = columns[f"{self.prefix}{place}"]
            if isinstance(column, CategoryColumn):
                coded = values.dictionary_encode()
                known = np.append(column.raw(coded.dictionary.to_pylist()), -1)
                raws[column.name] = known[codes_of(coded)]
            else:
                raws[column.name] = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
        return self.encoder.compact(raws, n_rows)


def codes_of(coded: Any) -> IntArray:
    """Return the places (m,) of values in the dictionary of an Arrow array; -1 where there is none."""
    return np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)


def flag_expression(name: str) -> str:
    """Return SQL for whether a column says yes: true, 1, or a text that means one of them."""
    column = quoted(name)
    return (
        f"coalesce(try_cast(cast({column} as varchar) as boolean), "
        f"try_cast(cast({column} as varchar) as double) <> 0)"
    )


def probabilities_of(decisions: Decisions, names: Sequence[str]) -> Mapping[str, Array]:
    """Return the probabilities of targets that are columns, by name: of the arm played, (m,)."""
    return {
        name: decisions.columns[name]
        if decisions.columns[name].ndim == 1
        else decisions.at_chosen(decisions.columns[name])
        for name in names
    }


@compiled
def predict_arms(
    tasks: IntArray,
    parts: IntArray,
    arms: IntArray,
    features: Array,
    coefficients: Array,
    out: Array,
) -> None:
    """Fill `out` (m, K) with the rewards that a model predicts for all arms.

    Parameters
    ----------
    tasks, parts : (m,)
        Which of the models it is.
    arms : (m, K)
    features : (m, 1 or K, c)
    coefficients : (P, T, A, c)
        The parameters of each part's model, by task and arm.
    """
    n_rows, n_arms = arms.shape
    n_sets, dim = features.shape[1], features.shape[2]
    for n in range(n_rows):
        t, p = tasks[n], parts[n]
        for k in range(n_arms):
            a = arms[n, k]
            row = k if n_sets > 1 else 0
            total = 0.0
            for i in range(dim):
                total += features[n, row, i] * coefficients[p, t, a, i]
            out[n, k] = total
