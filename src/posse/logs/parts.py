"""A log in parts: rows of each task dealt at random, or windows forward in time, for what is held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from posse.core.columns import LARGEST
from posse.core.encoder import Encoder
from posse.core.statistics import GramStatistics
from posse.logs.prepare import Request
from posse.logs.reading import time_reading
from posse.logs.recipe import Recipe
from posse.logs.scan import Parts, Roles
from posse.logs.sources import Source
from posse.logs.summarise import LogSummary, summary_of
from posse.logs.tables import LocalTable
from posse.numerics.checks import Array, IntArray, check_integer


def summarise_parts(
    source: Any,
    roles: Roles,
    *,
    features: Sequence[str] | None = None,
    encoder: Encoder | Recipe | None = None,
    missing: str = "impute",
    n_parts: int = 10,
    seed: int = 0,
    on_rows: Callable[[int], None] | None = None,
) -> tuple[LogSummary, tuple[GramStatistics, ...]]:
    """Sum up a log as a whole and in parts, which add up to the whole.

    Parameters
    ----------
    source
        Whatever `summarise` takes, read by this process.
    roles : Roles
        Which column holds what. With a column of times parts are windows, from the earliest to the latest,
        of about equally many rows; without one the rows of each task are dealt to parts at random.
    features, encoder, missing, on_rows
        As `summarise` takes them.
    n_parts : int
        P, 2 or more.
    seed : int
        Of the deal.

    Returns
    -------
    summary : LogSummary
    parts : tuple of P GramStatistics
        Of the tasks and features of the summary.
    """
    check_integer("`n_parts`", n_parts, 2)
    table = LocalTable(source)
    prepared = Request(table, roles, features, encoder, missing).prepare()
    time = roles.time
    parts: Parts = RandomParts(n_parts, seed) if time is None else _windows(table.source, time, n_parts)
    scanned = prepared.scan(parts, n_parts, on_rows)
    arms = len(prepared.encoder.arms) or 1
    cells = scanned.statistics
    shape = (len(scanned.tasks), n_parts, arms)
    numbers = np.arange(cells.n_tasks).reshape(shape)
    found = [cells.take(numbers[:, part].ravel()) for part in range(n_parts)]
    whole = found[0]
    for part in found[1:]:
        whole = whole + part
    summary = summary_of(prepared, replace(scanned, statistics=whole))
    order = np.argsort(np.array(scanned.tasks))
    return summary, tuple(prepared.encoder.expand(part).take(order) for part in found)


def _windows(source: Source, time: str, n_parts: int) -> Windows:
    """Return windows of about equally many rows, from the times of all rows that have one."""
    value = time_reading(time, source.columns[time]).value
    shares = ", ".join(str(share / n_parts) for share in range(1, n_parts))
    asked = f"select quantile_cont({value}, [{shares}]), count(distinct {value}) from log "
    asked += f"where abs({value}) <= {LARGEST}"
    ((ends, n_times),) = source.rows(source.ask(asked))
    if n_times < n_parts:
        raise ValueError(
            f"`time` must have {n_parts} different times at least. Got {time!r}, which has {n_times}."
        )
    return Windows(np.array(ends, dtype=np.float64))


class RandomParts:
    """Deals the rows of each task to P parts: every P rows of a task go to P different parts, at random.

    Parameters
    ----------
    n_parts : int
        P.
    seed : int
    """

    def __init__(self, n_parts: int, seed: int = 0) -> None:
        self.n_parts, self.seed = check_integer("`n_parts`", n_parts, 2), seed
        self.dealt = np.zeros(0, dtype=np.intp)

    def __call__(self, tasks: IntArray, times: Array) -> IntArray:
        """Return the parts (m,) of the next rows, by their tasks (m,)."""
        if len(tasks) == 0:
            return tasks
        if tasks.max() >= len(self.dealt):
            self.dealt = np.append(self.dealt, np.zeros(2 * tasks.max() + 1 - len(self.dealt), dtype=np.intp))
        order = np.argsort(tasks, kind="stable")
        ranked = tasks[order]
        starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        place = np.empty(len(tasks), dtype=np.intp)
        place[order] = np.arange(len(tasks)) - np.repeat(starts, np.diff(np.append(starts, len(tasks))))
        place += self.dealt[tasks]
        np.add.at(self.dealt, tasks, 1)
        turn = _mixed(tasks, place // self.n_parts, self.seed)
        return np.asarray((place + turn) % self.n_parts, dtype=np.intp)


def _mixed(tasks: IntArray, blocks: IntArray, seed: int) -> IntArray:
    """Return numbers (m,) that look random, from tasks and blocks: splitmix64, modulo 2^31."""
    with np.errstate(over="ignore"):
        z = tasks.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + blocks.astype(np.uint64)
        z = (z + np.uint64(seed)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((z ^ (z >> np.uint64(31))) % np.uint64(2**31), dtype=np.intp)


class Windows:
    """Puts rows into windows of time, by the times at which windows end.

    Parameters
    ----------
    ends : (P - 1,)
        In the units of the times, seconds since 1970-01-01 for dates; the last window has no end.
    """

    def __init__(self, ends: Array) -> None:
        self.ends = ends

    def __call__(self, tasks: IntArray, times: Array) -> IntArray:
        """Return the windows (m,) of rows, by their times (m,)."""
        return np.searchsorted(self.ends, times, side="right")
