"""One look at all rows of a table: encoded, checked, and summed by task; whatever is amiss is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.columns import LARGEST, CategoryColumn, NumberColumn
from posse.core.encoder import Encoder
from posse.logs.accumulate import Accumulator
from posse.logs.reading import Reading, reading, time_reading
from posse.logs.scanned import Ledger, Scanned
from posse.logs.sources import BATCH, Source
from posse.numerics.checks import Array, BoolArray, IntArray

MISSING = ("impute", "drop", "refuse")
ZONED, UNZONED = "times with a zone", "times without a zone"


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which column holds what.

    Attributes
    ----------
    task, reward : str
    weight, arm, propensity, time : str or None
    """

    task: str
    reward: str
    weight: str | None = None
    arm: str | None = None
    propensity: str | None = None
    time: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that have a role."""
        given = (self.task, self.reward, self.weight, self.arm, self.propensity, self.time)
        return tuple(name for name in given if name is not None)

    def where(self, types: Mapping[str, str]) -> str:
        """Return SQL for the rows that count: those with a task and a reward."""
        task = reading(self.task, types[self.task], "category").value
        reward = reward_reading(self.reward, types[self.reward]).value
        return f"{task} is not null and abs({reward}) <= {LARGEST}"


def reward_reading(name: str, type_name: str) -> Reading:
    """Return how a reward is read: as a number, which true and false are, too."""
    return reading(name, type_name, "number")


# Which part of a log rows are in: from the tasks (m,) and, in the order of tasks, the times (m,) of rows.
Parts = Callable[[IntArray, Array], IntArray]


class Scan:
    """Reads rows of a table by an encoder, and sums them by task.

    Parameters
    ----------
    types : mapping of str to str
        DuckDB's types of the columns, by name.
    roles : Roles
    encoder : Encoder
    missing : str
        What to do with rows that lack a feature: "impute" fills it with the mean, "drop" and "refuse" do
        not use the row.
    parts : callable, optional
        Which part of the log each row is in.
    n_parts : int
    """

    def __init__(
        self,
        types: Mapping[str, str],
        roles: Roles,
        encoder: Encoder,
        *,
        missing: str = "impute",
        parts: Parts | None = None,
        n_parts: int = 1,
    ) -> None:
        self.roles, self.encoder, self.missing = roles, encoder, missing
        self.parts, self.n_parts = parts, n_parts
        self.ledger, self.numbers = Ledger(), dict[str, int]()
        self.n_rows = self.n_used = 0
        kinds = {CategoryColumn: "category", NumberColumn: "number"}
        self.readings = [
            reading(column.name, types[column.name], kinds.get(type(column), "date"))
            for column in encoder.columns
        ]
        ways = dict.fromkeys(("reward", "weight", "propensity"), reward_reading) | {"time": time_reading}
        given = {role: (getattr(roles, role), way) for role, way in ways.items()}
        self.plain = {role: way(name, types[name]) for role, (name, way) in given.items() if name is not None}
        self.named = {
            role: reading(name, types[name], "category").value
            for role, name in (("task", roles.task), ("arm", roles.arm if encoder.arms else None))
            if name is not None
        }

    def select(self) -> str:
        """Return the SQL for what is read of each row."""
        asked = [f"{value} as {role}" for role, value in self.named.items()]
        for name, item in self._read().items():
            asked.append(f"{item.value} as {name}")
            if item.wrong is not None:
                asked.append(f"{item.wrong} as {name}_wrong")
            if item.zoned is not None:
                asked.append(f"{item.zoned} as {name}_zoned")
        return f"select {', '.join(asked)} from log"

    def _read(self) -> dict[str, Reading]:
        return self.plain | {f"c{place}": item for place, item in enumerate(self.readings)}

    def run(self, pieces: Iterable[Source], on_rows: Callable[[int], None] | None = None) -> Scanned:
        """Read a table, piece by piece; `on_rows` is told after every batch how many rows have been read."""
        width = len(self.encoder.arms) or 1
        sums = Accumulator(self.encoder.compact({c.name: _none(c) for c in self.encoder.columns}, 0).shape[1])
        for piece in pieces:
            for batch in piece.batches(self.select(), BATCH):
                self._add(batch, sums, width)
                self.n_rows += batch.num_rows
                if on_rows is not None:
                    on_rows(self.n_rows)
            n_rejected, first = piece.rejected
            if n_rejected:
                self.n_rows += n_rejected
                self.ledger.found["(file)", "lines that are no rows", "dropped"] = n_rejected, first
            if piece.unended:
                unended = "last lines without an end, as of a file that was cut off"
                self.ledger.found["(file)", unended, "kept"] = piece.unended, self.n_rows
        sums.grow(len(self.numbers) * self.n_parts * width)
        return Scanned(
            sums.statistics(), list(self.numbers), self.n_rows, self.n_used, self.ledger.findings()
        )

    def _add(self, batch: Any, sums: Accumulator, width: int) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        coded = columns["task"].dictionary_encode()
        codes = _codes(coded)
        keep = codes >= 0
        self._note(self.roles.task, "rows without a task", "rows dropped", ~keep)
        reward, fine = self._number("reward", columns)
        keep &= fine
        weight = np.ones(len(codes))
        if "weight" in self.plain:
            weight, fine = self._number("weight", columns)
            self._note(self.roles.weight or "", "negative weights", "rows dropped", fine & (weight < 0))
            keep &= fine & (weight >= 0)
        if "propensity" in self.plain:
            chance, fine = self._number("propensity", columns, done="rows kept")
            outside = fine & ~((chance > 0) & (chance <= 1))
            self._note(self.roles.propensity or "", "propensities outside ]0, 1]", "rows kept", outside)
        time = self._time(columns, keep) if "time" in self.plain else np.zeros(len(codes))
        arm = self._arms(columns, keep) if self.encoder.arms else np.zeros(len(codes), dtype=np.intp)
        raws = self._raws(columns, keep)
        features = self.encoder.compact(raws, len(codes))
        if not keep.all():
            features, reward, weight, codes = features[keep], reward[keep], weight[keep], codes[keep]
            arm, time = arm[keep], time[keep]
        task = self._tasks(coded, codes)
        part = np.zeros(len(task), dtype=np.intp) if self.parts is None else self.parts(task, time)
        cells = (task * self.n_parts + part) * width + arm
        sums.add(cells, features, reward, weight, len(self.numbers) * self.n_parts * width)
        self.n_used += len(task)

    def _note(self, column: str, what: str, done: str, where: BoolArray) -> None:
        self.ledger.note(column, what, done, where, self.n_rows)

    def _number(
        self, name: str, columns: Mapping[str, Any], done: str = "rows dropped"
    ) -> tuple[Array, BoolArray]:
        """Return the numbers (m,) of a column with a role, and where they can be used."""
        item = self._read()[name]
        values = columns[name].to_numpy(zero_copy_only=False)
        fine = np.abs(values) <= LARGEST
        if not fine.all():
            self._note_gaps(item, name, columns, values, done)
        return np.where(fine, values, 0.0), fine

    def _note_gaps(
        self, item: Reading, name: str, columns: Mapping[str, Any], values: Array, done: str
    ) -> None:
        """Count what is missing in a column: gaps, texts that are none of its kind, and numbers too large."""
        missing = np.isnan(values)
        if item.wrong is not None:
            wrong = _flags(columns[f"{name}_wrong"])
            self._note(item.name, f"texts that are no {item.kind}s", done, wrong)
            missing &= ~wrong
        self._note(item.name, "missing values", done, missing)
        self._note(item.name, "infinite values", done, np.isinf(values))
        with np.errstate(invalid="ignore"):
            self._note(
                item.name,
                f"values beyond {LARGEST:g}",
                done,
                np.isfinite(values) & (np.abs(values) > LARGEST),
            )

    def _note_zones(self, item: Reading, name: str, columns: Mapping[str, Any], there: BoolArray) -> None:
        """Count the times of a column in a zone, and those in none."""
        if item.zoned is not None:
            zoned = _flags(columns[f"{name}_zoned"])
            self._note(item.name, ZONED, "hours and days are those of UTC", there & zoned)
            self._note(item.name, UNZONED, "taken as UTC", there & ~zoned)

    def _time(self, columns: Mapping[str, Any], keep: BoolArray) -> Array:
        time, fine = self._number("time", columns)
        self._note_zones(self.plain["time"], "time", columns, fine)
        keep &= fine
        return time

    def _arms(self, columns: Mapping[str, Any], keep: BoolArray) -> IntArray:
        """Return the numbers of rows' arms; rows without a known one are not kept."""
        coded = columns["arm"].dictionary_encode()
        known = np.append(self.encoder.numbers_of_arms(coded.dictionary.to_pylist()), -1)
        codes = _codes(coded)
        arm = known[codes]
        name = self.roles.arm or ""
        self._note(name, "rows without an arm", "rows dropped", codes < 0)
        self._note(
            name, "rows of arms that the encoder does not know", "rows dropped", (codes >= 0) & (arm < 0)
        )
        keep &= arm >= 0
        return arm

    def _raws(self, columns: Mapping[str, Any], keep: BoolArray) -> dict[str, NDArray[Any]]:
        """Return what the encoder makes features of; where a value is missing rows may not be kept."""
        found: dict[str, NDArray[Any]] = {}
        for place, (item, column) in enumerate(zip(self.readings, self.encoder.columns, strict=True)):
            name = f"c{place}"
            if isinstance(column, CategoryColumn):
                coded = columns[name].dictionary_encode()
                known = np.append(column.raw(coded.dictionary.to_pylist()), -1)
                raw = found[item.name] = known[_codes(coded)]
                gaps = raw < 0
                self._note(item.name, "missing values", self._done("a level of its own", column), gaps)
                if not column.other:
                    new = raw == len(column.levels)
                    self._note(item.name, "values of unknown levels", column.fallback, new)
            else:
                raw = found[item.name] = columns[name].to_numpy(zero_copy_only=False)
                gaps = ~(np.abs(raw) <= LARGEST)
                self._note_zones(item, name, columns, ~gaps)
                if gaps.any():
                    filled = "filled with the mean"
                    self._note_gaps(item, name, columns, raw, self._done(filled, column))
            if self.missing != "impute":
                keep &= ~gaps
        return found

    def _done(self, filled: str, column: Any) -> str:
        if self.missing != "impute":
            return "rows dropped"
        if isinstance(column, CategoryColumn):
            return filled if column.missing else column.fallback
        return f"{filled}, and a feature says so" if column.missing else filled

    def _tasks(self, coded: Any, codes: IntArray) -> IntArray:
        """Return the numbers of rows' tasks, new ones among them, by their codes (m,) in a batch."""
        names = coded.dictionary.to_pylist()
        present = np.zeros(len(names), dtype=np.bool_)
        present[codes] = True
        known = np.full(len(names), -1, dtype=np.intp)
        for code in np.flatnonzero(present).tolist():
            known[code] = self.numbers.setdefault(names[code], len(self.numbers))
        return known[codes]


def _codes(coded: Any) -> IntArray:
    """Return the places (m,) of values in the dictionary of an Arrow array; -1 where there is none."""
    return np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)


def _flags(values: Any) -> BoolArray:
    return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _none(column: Any) -> NDArray[Any]:
    return np.zeros(0, dtype=np.intp if isinstance(column, CategoryColumn) else np.float64)
