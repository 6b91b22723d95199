"""Predictions for tables of any size: read in batches, each row given back with what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from posse.core.account import Account, Finding
from posse.core.columns import LARGEST, CategoryColumn, Column, NumberColumn
from posse.core.extras import extra
from posse.core.model import Model
from posse.logs.reading import Reading, reading
from posse.logs.scanned import Ledger
from posse.logs.sources import BATCH, open_source
from posse.numerics.checks import BoolArray

with extra("logs"):
    import pyarrow as pa

ADDED = {"prediction": pa.float64(), "deviation": pa.float64(), "known_task": pa.bool_()}
# Names of what is read beside the table's own columns begin so.
PREFIX = "posse_read_"


class Predictions:
    """The rows of a table, in order, with what a model expects of them: batches of Arrow, made as one reads.

    Columns are those of the table and three more: `prediction`, the expected reward; `deviation`, how
    uncertain that expectation is, not the noise of a single reward; `known_task`, whether the model has seen
    the row's task. Unseen tasks are predicted from what is known of new ones, features that are missing are
    filled as they were in the log, and a row without a known arm has no prediction. Times with a zone are the
    same moments in the zone of this machine, as DuckDB gives them.

    Parameters
    ----------
    model : Model
    source
        Whatever `summarise` takes, read by this process: a file, a pattern, a frame, a query. Its columns are
        those of the log that the model was learned from; rewards need not be there.
    on_rows : callable, optional
        Is told after every batch how many rows have been read.

    Examples
    --------
    >>> import pandas as pd
    >>> from posse.logs import fit
    >>> log = pd.DataFrame({"shop": ["oslo", "bergen"] * 20, "price": [1.0, 2.0, 3.0, 4.0] * 10})
    >>> model = fit(log.assign(sold=9.0 - log["price"]), task="shop", reward="sold")
    >>> predicted = Predictions(model, pd.DataFrame({"shop": ["oslo", "hamar"], "price": [1.0, None]}))
    >>> predicted.table().column("known_task").to_pylist()
    [True, False]
    >>> print(predicted.account)
    DataFrame of 2 rows: 2 rows read, 2 used, 0 dropped.
    - price: 1 missing values, first in row 2: filled with the mean
    - shop: 1 rows of unseen tasks, first in row 2: predicted from what is known of new tasks
    """

    def __init__(self, model: Model, source: Any, *, on_rows: Callable[[int], None] | None = None) -> None:
        self.model, self.source, self.on_rows = model, open_source(source), on_rows
        if self.source.connection is not None:  # the rows of others' relations would be copied
            self.source.in_order()
        types = self.source.columns
        names = (model.task, model.arm) if model.arm and model.encoder.arms else (model.task,)
        _check_columns([*(column.name for column in model.encoder.columns), *names], types, self.source.name)
        kinds = {CategoryColumn: "category", NumberColumn: "number"}
        self._columns = [
            (column, reading(column.name, types[column.name], kinds.get(type(column), "date")))
            for column in model.encoder.columns
        ]
        self._names = [reading(name, types[name], "category") for name in names]
        self._ledger, self._rows, self._unpredicted = Ledger(), 0, 0
        self._rejected: tuple[Finding, ...] = ()

    @property
    def schema(self) -> Any:
        """The Arrow schema of the batches."""
        empty = self.source.ask("select * from log limit 0").to_arrow_table().schema
        for name, kind in ADDED.items():
            empty = empty.append(pa.field(name, kind))
        return empty

    @property
    def account(self) -> Account:
        """What was found, in the rows that have been read so far; rows used are those with a prediction."""
        used = self._rows - self._unpredicted
        findings = (*self._ledger.findings(), *self._rejected)
        rows = self._rows + sum(item.count for item in self._rejected)
        return Account(source=self.source.name, rows=rows, used=used, findings=findings)

    def table(self) -> Any:
        """Return all rows as one Arrow table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def __iter__(self) -> Iterator[Any]:
        self._ledger, self._rows, self._unpredicted, self._rejected = Ledger(), 0, 0, ()
        schema = self.schema
        for batch in self.source.batches(self._select(), BATCH):
            yield self._predicted(batch, schema)
            self._rows += batch.num_rows
            if self.on_rows is not None:
                self.on_rows(self._rows)
        n_rejected, first = self.source.rejected
        if n_rejected:
            what = {"column": "(file)", "what": "lines that are no rows", "done": "dropped"}
            self._rejected = (Finding(count=n_rejected, first=first, **what),)

    def _select(self) -> str:
        asked = [f"{item.value} as {PREFIX}n{place}" for place, item in enumerate(self._names)]
        for place, (_, item) in enumerate(self._columns):
            asked.append(f"{item.value} as {PREFIX}c{place}")
            if item.wrong is not None:
                asked.append(f"{item.wrong} as {PREFIX}c{place}_wrong")
        return f"select *, {', '.join(asked)} from log"

    def _predicted(self, batch: Any, schema: Any) -> Any:
        """Return a batch with its predictions in the place of what was read for them."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        values = {
            column.name: self._values(column, item, f"{PREFIX}c{place}", columns)
            for place, (column, item) in enumerate(self._columns)
        }
        tasks = columns[f"{PREFIX}n0"].to_pylist()
        arms, lost = self._arms(columns, batch.num_rows)
        features = np.broadcast_to(self.model.encoder.encode(values, arms), (len(tasks), self._dim))
        found = self.model.predict_rows(tasks, features)
        nameless = np.array([name is None for name in tasks], dtype=np.bool_)
        done = "predicted from what is known of new tasks"
        self._note(self.model.task, "rows without a task", done, nameless)
        self._note(self.model.task, "rows of unseen tasks", done, ~found.known & ~nameless)
        added = (
            pa.array(found.mean, mask=lost),
            pa.array(found.deviation, mask=lost),
            pa.array(found.known),
        )
        kept = [columns[name] for name in schema.names[: -len(ADDED)]]
        return pa.RecordBatch.from_arrays([*kept, *added], schema=schema)

    @property
    def _dim(self) -> int:
        return self.model.encoder.dim

    def _note(self, column: str, what: str, done: str, where: BoolArray) -> None:
        self._ledger.note(column, what, done, where, self._rows)

    def _values(self, column: Column, item: Reading, name: str, columns: dict[str, Any]) -> Any:
        """Return the values (m,) of a column as the encoder takes them; gaps are counted."""
        if isinstance(column, CategoryColumn):
            texts = np.array(columns[name].to_pylist(), dtype=object)
            level = column.raw(texts)
            filled = "a level of its own" if column.missing else column.fallback
            self._note(item.name, "missing values", filled, level < 0)
            known = len(column.levels) + column.other
            self._note(item.name, "values of unknown levels", column.fallback, level >= known)
            return texts
        values = columns[name].to_numpy(zero_copy_only=False)
        gaps = ~(np.abs(values) <= LARGEST)
        wrong = np.zeros(len(gaps), dtype=np.bool_)
        if item.wrong is not None:
            wrong = columns[f"{name}_wrong"].fill_null(False).to_numpy(zero_copy_only=False)
            self._note(item.name, f"texts that are no {item.kind}s", "filled with the mean", wrong)
        self._note(item.name, "missing values", "filled with the mean", np.isnan(values) & ~wrong)
        self._note(item.name, "values that are too large", "filled with the mean", gaps & ~np.isnan(values))
        if item.kind == "number":
            return np.where(gaps, np.nan, values)
        return np.rint(1e6 * np.where(gaps, np.nan, values)).astype("datetime64[us]")

    def _arms(self, columns: dict[str, Any], n_rows: int) -> tuple[Any, BoolArray]:
        """Return the arms (m,) of rows, any where none is known, and where that is so; None for no arms."""
        encoder = self.model.encoder
        if not encoder.arms:
            return None, np.zeros(n_rows, dtype=np.bool_)
        names = columns[f"{PREFIX}n1"].to_pylist()
        numbers = encoder.numbers_of_arms(names)
        lost = numbers < 0
        what = f"rows without an arm of the model's, {', '.join(encoder.arms[:10])}"
        self._note(self.model.arm or "", what, "no prediction", lost)
        self._unpredicted += int(lost.sum())
        return np.array(encoder.arms, dtype=object)[numbers], lost


def _check_columns(needed: list[str], found: Mapping[str, str], name: str) -> None:
    """Say if a table lacks a column that is needed, or has one already that is to be added."""
    lacking = [column for column in needed if column not in found]
    if lacking:
        raise ValueError(
            f"a table to predict must have the model's columns, {', '.join(needed)}. "
            f"Got {name}, which lacks {', '.join(lacking)} and has {', '.join(found)}."
        )
    taken = [column for column in found if column in ADDED or column.startswith(PREFIX)]
    if taken:
        raise ValueError(
            f"a table to predict must not have columns {', '.join(ADDED)} yet. Got {', '.join(taken)}."
        )
