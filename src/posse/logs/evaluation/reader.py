"""Reads a log as decisions: a row for each, or a row for every arm on offer; what is wrong is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.columns import LARGEST
from posse.core.encoder import Encoder
from posse.core.extras import extra
from posse.logs.evaluation.decisions import (
    DecisionColumns,
    Decisions,
    FeatureReader,
    codes_of,
    flag_expression,
)
from posse.logs.evaluation.faults import Faults
from posse.logs.reading import quoted, reading, time_reading
from posse.logs.scan import reward_reading
from posse.logs.sources import BATCH, Source
from posse.numerics.checks import Array, BoolArray, IntArray

with extra("logs"):
    import pyarrow as pa
    import pyarrow.compute as pc

# Propensities of all arms of a decision may be off by so much from a sum of 1, for rounding in the log.
SUM_TOLERANCE = 1e-3


class DecisionReader:
    """Reads decisions of a table, again and again in the same order.

    Parameters
    ----------
    source : Source
    columns : DecisionColumns
    encoder : Encoder
    others : mapping of str to Encoder
        Further encoders, by name, as those of models whose policies are evaluated.
    targets : sequence of str
        Columns that hold probabilities of targets.

    Attributes
    ----------
    numbers : dict of str to int
        The numbers of tasks: as they come up, unless they were known before.
    """

    def __init__(
        self,
        source: Source,
        columns: DecisionColumns,
        encoder: Encoder,
        others: Mapping[str, Encoder] | None = None,
        targets: Sequence[str] = (),
    ) -> None:
        types = source.columns
        self.source, self.columns, self.encoder = source, columns, encoder
        self.features = FeatureReader(encoder, types, "c")
        self.others = {
            name: FeatureReader(other, types, f"o{place}_")
            for place, (name, other) in enumerate((others or {}).items())
        }
        self.targets = tuple(targets)
        self.listed = {name: types[name].endswith("[]") for name in self.targets}
        self.numbers: dict[str, int] = {}
        self._types, self._rows = types, 0

    def read(self, faults: Faults | None = None) -> Iterator[Decisions]:
        """Yield all decisions, some at a time, in the order of the log; count what is wrong, if asked to."""
        self._rows = 0
        unnamed = faults is not None and self.columns.decision is None
        batches = self.source.batches(self._select(["hash(log) as print"] * unnamed), BATCH)
        if self.columns.long:
            for table in _whole_decisions(batches, "decision"):
                yield self._long(_arrays(table), table.num_rows, faults)
                self._rows += table.num_rows
            return
        for batch in batches:
            if batch.num_rows:
                yield self._wide(
                    dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows, faults
                )
                self._rows += batch.num_rows

    def _select(self, more: Sequence[str]) -> str:
        columns, types = self.columns, self._types
        asked = [f"{reading(columns.task, types[columns.task], 'category').value} as task"]
        asked.append(f"{reward_reading(columns.reward, types[columns.reward]).value} as reward")
        if columns.arm is not None:
            asked.append(f"{reading(columns.arm, types[columns.arm], 'category').value} as arm")
        if columns.propensity is not None:
            found = reading(columns.propensity, types[columns.propensity], "number")
            asked.append(f"{found.value} as propensity")
        if columns.time is not None:
            asked.append(f"{time_reading(columns.time, types[columns.time]).value} as time")
        if columns.decision is not None:
            asked.append(f"cast({quoted(columns.decision)} as varchar) as decision")
        if columns.offered is not None:
            asked.append(f"cast({quoted(columns.offered)} as varchar[]) as offered")
        for place, name in enumerate(self.targets):
            kind = "double[]" if self.listed[name] else "double"
            asked.append(f"try_cast({quoted(name)} as {kind}) as t{place}")
        for item in (self.features, *self.others.values()):
            asked += item.asked
        asked += more
        if columns.chosen is None:
            return f"select {', '.join(asked)} from log"
        asked.append(f"{flag_expression(columns.chosen)} as chosen")
        whose = quoted(columns.decision or "")
        return (
            "with numbered as (select *, row_number() over () as posse_row from log), "
            f"grouped as (select *, min(posse_row) over (partition by {whose}) as posse_first from numbered) "
            f"select {', '.join(asked)} from grouped order by posse_first, posse_row"
        )

    def _name_row(self, place: int) -> str:
        return f"row {self._rows + place + 1:,}"

    def _tasks(self, values: Any, faults: Faults | None, name: Callable[[int], str]) -> IntArray:
        coded = values.dictionary_encode()
        codes = codes_of(coded)
        if faults is not None:
            faults.note(self.columns.task, "rows without a task", codes < 0, name)
        names = coded.dictionary.to_pylist()
        known = np.zeros(len(names) + 1, dtype=np.intp)
        present = np.zeros(len(names) + 1, dtype=np.bool_)
        present[codes] = True
        for code in np.flatnonzero(present[:-1]).tolist():
            known[code] = self.numbers.setdefault(names[code], len(self.numbers))
        return known[codes]

    def _wide(self, batch: Mapping[str, Any], n_rows: int, faults: Faults | None) -> Decisions:
        coded = batch["arm"].dictionary_encode()
        known = np.append(self.encoder.numbers_of_arms(coded.dictionary.to_pylist()), -1)
        played = known[codes_of(coded)]
        n_arms = len(self.encoder.arms)
        name, arm = self._name_row, self.columns.arm or ""
        available = self._available(batch["offered"], n_rows) if "offered" in batch else NONE_MISSING
        if faults is not None:
            faults.note(arm, "rows without an arm", codes_of(coded) < 0, name)
            if available.size:
                missing = (played >= 0) & ~available[np.arange(n_rows), played]
                faults.note(arm, "arms that were played and not on offer", missing, name)
        return Decisions(
            tasks=self._tasks(batch["task"], faults, name),
            chosen=np.maximum(played, 0),
            rewards=self._rewards(_numbers(batch["reward"]), faults, name),
            propensities=self._propensities(batch, n_rows, faults, name),
            times=self._times(batch, n_rows, faults, name),
            features=self.features.compact(batch, n_rows)[:, None, :],
            arms=np.broadcast_to(np.arange(n_arms), (n_rows, n_arms)),
            available=available,
            columns={
                target: _target(batch[f"t{place}"], available, n_rows, n_arms, target)
                for place, target in enumerate(self.targets)
            },
            others={other: item.compact(batch, n_rows)[:, None, :] for other, item in self.others.items()},
            prints=batch["print"].to_numpy() if "print" in batch else NO_PRINTS,
        )

    def _available(self, lists: Any, n_rows: int) -> BoolArray:
        """Return which arms (m, K) of the encoder's are on offer, from lists of their names."""
        coded = lists.flatten().dictionary_encode()
        known = np.append(self.encoder.numbers_of_arms(coded.dictionary.to_pylist()), -1)
        numbers = known[codes_of(coded)]
        rows = np.repeat(np.arange(n_rows), pc.fill_null(pc.list_value_length(lists), 0).to_numpy())
        available = np.zeros((n_rows, len(self.encoder.arms)), dtype=np.bool_)
        available[rows[numbers >= 0], numbers[numbers >= 0]] = True
        return available

    def _rewards(self, values: Array, faults: Faults | None, name: Callable[[int], str]) -> Array:
        if faults is not None:
            fine = np.abs(values) <= LARGEST
            faults.note(self.columns.reward, "rewards that are missing or no finite numbers", ~fine, name)
        return values

    def _propensities(
        self, batch: Mapping[str, Any], n_rows: int, faults: Faults | None, name: Callable[[int], str]
    ) -> Array:
        if "propensity" not in batch:
            return np.full(n_rows, np.nan)
        values = _numbers(batch["propensity"])
        self._check_propensities(values, faults, name)
        return values

    def _check_propensities(self, values: Array, faults: Faults | None, name: Callable[[int], str]) -> None:
        if faults is not None:
            column = self.columns.propensity or ""
            faults.note(column, "missing propensities", np.isnan(values), name)
            faults.note(column, "propensities of 0 or below", values <= 0.0, name)
            faults.note(column, "propensities above 1", values > 1.0, name)

    def _times(
        self, batch: Mapping[str, Any], n_rows: int, faults: Faults | None, name: Callable[[int], str]
    ) -> Array:
        if "time" not in batch:
            return np.zeros(n_rows)
        values = _numbers(batch["time"])
        if faults is not None:
            faults.note(self.columns.time or "", "missing times", ~np.isfinite(values), name)
        return values

    def _long(self, rows: Mapping[str, Any], n_rows: int, faults: Faults | None) -> Decisions:
        decisions = rows["decision"].dictionary_encode()
        ids = codes_of(decisions)
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
        sizes = np.diff(np.append(starts, n_rows))
        n_arms = int(sizes.max())
        available = np.arange(n_arms) < sizes[:, None]
        places = np.where(available, starts[:, None] + np.arange(n_arms), starts[:, None])
        flags = np.asarray(rows["chosen"].fill_null(False).to_numpy(zero_copy_only=False))[places] & available
        names = decisions.dictionary.to_pylist()

        def name(place: int) -> str:
            code = ids[starts[place]]
            return f"decision {names[code]}" if code >= 0 else f"row {self._rows + starts[place] + 1:,}"

        chosen = np.argmax(flags, axis=1)
        first = places[np.arange(len(starts)), chosen]
        tasks = self._tasks(
            rows["task"], faults, lambda row: name(int(np.searchsorted(starts, row, "right")) - 1)
        )
        arms = self._long_arms(rows, n_rows)
        if faults is not None:
            self._note_long(faults, name, ids[starts] < 0, flags.sum(axis=1), tasks[places], available)
            if arms is not None:
                self._note_arms(faults, name, arms[places], available)
        logged, propensities = self._long_propensities(rows, places, first, available, faults, name)
        single = {
            key: value.take(pa.array(first)) for key, value in rows.items() if key in ("reward", "time")
        }
        return Decisions(
            tasks=tasks[starts],
            chosen=chosen,
            rewards=self._rewards(_numbers(single["reward"]), faults, name),
            propensities=propensities,
            times=self._times(single, len(starts), faults, name),
            features=self.features.compact(rows, n_rows)[places],
            arms=np.zeros_like(places) if arms is None else np.maximum(arms, 0)[places],
            available=available,
            logged=logged,
            columns={
                target: np.where(available, _numbers(rows[f"t{place}"])[places], 0.0)
                for place, target in enumerate(self.targets)
            },
            others={other: item.compact(rows, n_rows)[places] for other, item in self.others.items()},
        )

    def _note_long(
        self,
        faults: Faults,
        name: Callable[[int], str],
        nameless: BoolArray,
        n_chosen: IntArray,
        tasks: IntArray,
        available: BoolArray,
    ) -> None:
        """Count what may be wrong with decisions that have a row for every arm."""
        decision, chosen = self.columns.decision or "", self.columns.chosen or ""
        faults.note(decision, "rows without a decision", nameless, name)
        faults.note(chosen, "decisions without a chosen arm", n_chosen == 0, name)
        faults.note(chosen, "decisions with several chosen arms", n_chosen > 1, name)
        mixed = np.any((tasks != tasks[:, :1]) & available, axis=1)
        faults.note(self.columns.task, "decisions of several tasks", mixed, name)

    def _note_arms(
        self, faults: Faults, name: Callable[[int], str], arms: IntArray, available: BoolArray
    ) -> None:
        """Count decisions whose arms (m, K) are missing or stand there twice."""
        column = self.columns.arm or ""
        faults.note(
            column, "decisions with arms that are missing", np.any((arms < 0) & available, axis=1), name
        )
        faults.note(column, "decisions with an arm twice", _repeated(arms, available), name)

    def _long_arms(self, rows: Mapping[str, Any], n_rows: int) -> IntArray | None:
        if "arm" not in rows or not self.encoder.arms:
            return None
        coded = rows["arm"].dictionary_encode()
        known = np.append(self.encoder.numbers_of_arms(coded.dictionary.to_pylist()), -1)
        return known[codes_of(coded)]

    def _long_propensities(
        self,
        rows: Mapping[str, Any],
        places: IntArray,
        first: IntArray,
        available: BoolArray,
        faults: Faults | None,
        name: Callable[[int], str],
    ) -> tuple[Array, Array]:
        """Return the propensities of all arms (m, K), empty if the log has not all, and of those played."""
        if "propensity" not in rows:
            return np.zeros((0, 0)), np.full(len(first), np.nan)
        values = _numbers(rows["propensity"])
        self._check_propensities(values[first], faults, name)
        whole = np.where(available, values[places], 0.0)
        if not np.isfinite(whole).all():
            return np.zeros((0, 0)), values[first]
        if faults is not None:
            wrong = np.abs(whole.sum(axis=1) - 1.0) > SUM_TOLERANCE
            faults.note(
                self.columns.propensity or "", "decisions whose propensities do not add up to 1", wrong, name
            )
        return whole, values[first]


NONE_MISSING = np.zeros((0, 0), dtype=np.bool_)
NO_PRINTS = np.zeros(0, dtype=np.uint64)


def _arrays(table: Any) -> dict[str, Any]:
    return {
        name: column.combine_chunks() for name, column in zip(table.schema.names, table.columns, strict=True)
    }


def _numbers(values: Any) -> Array:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _whole_decisions(batches: Iterator[Any], name: str) -> Iterator[Any]:
    """Yield tables of whole decisions from batches of their rows, those of a decision side by side."""
    held = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        held = table if held is None else pa.concat_tables([held, table])
        ids = codes_of(held.column(name).combine_chunks().dictionary_encode())
        (changes,) = np.nonzero(ids[1:] != ids[:-1])
        if len(changes):
            yield held.slice(0, int(changes[-1]) + 1)
            held = held.slice(int(changes[-1]) + 1)
    if held is not None and held.num_rows:
        yield held


def _repeated(arms: NDArray[Any], available: BoolArray) -> BoolArray:
    """Return which rows of arms (m, K) have one twice among those available."""
    ordered = np.sort(np.where(available, arms, -1 - np.arange(arms.shape[1])), axis=1)
    return np.asarray((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))


def _target(values: Any, available: BoolArray, n_rows: int, n_arms: int, name: str) -> Array:
    """Return the probabilities of a target: of the arm played, (m,), or, from lists, of all arms (m, K)."""
    if not pa.types.is_list(values.type):
        return _numbers(values)
    sizes = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    if available.size or (sizes != n_arms).any():
        raise ValueError(
            f"lists of probabilities must have one for each of {n_arms} arms, in the order of their names; "
            f"where offers vary, use a table with a row for every arm. Got {name!r}."
        )
    return _numbers(values.flatten()).reshape(n_rows, n_arms)
