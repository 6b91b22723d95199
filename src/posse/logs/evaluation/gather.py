"""The first look at a log: is it whole, who are its tasks, and the statistics of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from posse.core.encoder import Encoder
from posse.core.statistics import GramStatistics
from posse.logs.accumulate import Accumulator
from posse.logs.evaluation.decisions import (
    DecisionColumns,
    Decisions,
    flag_expression,
)
from posse.logs.evaluation.faults import MOST_EXAMPLES, Faults
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.reader import DecisionReader
from posse.logs.parts import RandomParts, Windows
from posse.logs.prepare import Request
from posse.logs.reading import quoted, time_reading
from posse.logs.recipe import Recipe
from posse.logs.scan import Roles
from posse.logs.sources import Source
from posse.logs.summarise import CONSTANT_SHARE
from posse.logs.tables import LocalTable
from posse.numerics.checks import Array, BoolArray, IntArray

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, kw_only=True, eq=False)
class Logged:
    """What a log holds, n decisions of T tasks in P parts, but for what was on offer.

    Attributes
    ----------
    reader : DecisionReader
        By which decisions are read again, in their order.
    names : tuple of str
        Of the T tasks, in their order.
    tasks : Groups
    rewards, propensities : (n,)
    played : (n,)
        The numbers of the arms that were played.
    times : (n,), or empty
    parts : (n,)
        Which part of the log a decision is in.
    statistics : tuple of P GramStatistics
        Of the arms that were played.
    plays, offers : (T, A)
        How often each named arm was played, and on offer.
    forward : bool
        Whether parts are windows in time, the first of which is there to learn from alone.
    whole : bool
        Whether the log has the propensities of all arms on offer.
    repeated : int
        How many rows stood in the log before, alike in all columns, if decisions have no names.
    """

    reader: DecisionReader
    names: tuple[str, ...]
    tasks: Groups
    rewards: Array
    propensities: Array
    played: IntArray
    times: Array
    parts: IntArray
    statistics: tuple[GramStatistics, ...]
    plays: Array
    offers: Array
    forward: bool
    whole: bool
    repeated: int = 0

    @property
    def counted(self) -> BoolArray:
        """Which decisions (n,) the answer is about: all, or forward in time those after the first window."""
        return self.parts > 0 if self.forward else np.ones(len(self.parts), dtype=np.bool_)

    def of_counted(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return those of values (n,) that are of decisions which count; without a copy, if all do."""
        return values[self.counted] if self.forward else values


def encoder_of(
    source: Source,
    columns: DecisionColumns,
    features: Sequence[str] | None,
    encoder: Encoder | Recipe | None,
    others: Sequence[str],
) -> Encoder:
    """Return the encoder of a log, learned from the arms that were played unless it is given.

    Parameters
    ----------
    source : Source
    columns : DecisionColumns
    features : sequence of str, optional
        The columns that are features; by default all that have no other part.
    encoder : Encoder or Recipe, optional
    others : sequence of str
        Columns that are no features, as probabilities of targets.
    """
    if columns.long:
        where = flag_expression(columns.chosen or "")
        source = Source(
            source.ask(f"select * from log where {where}"), source.name, source.typed, source.connection
        )
    taken = {*columns.named, *others}
    used = [name for name in source.columns if name not in taken] if features is None else features
    roles = Roles(task=columns.task, reward=columns.reward, arm=columns.arm)
    return Request(LocalTable(source), roles, used, encoder, "impute").prepare().encoder


def gather(
    reader: DecisionReader, n_parts: int, seed: int, on_rows: Callable[[int], None] | None = None
) -> Logged:
    """Look at all decisions of a log once, or say what is wrong with it.

    Parameters
    ----------
    reader : DecisionReader
    n_parts : int
        P. With a column of times parts are windows of about equally many decisions; else the decisions of
        each task are dealt to parts at random.
    seed : int
        Of the deal.
    on_rows : callable, optional
        Is told, now and then, how many decisions have been read.
    """
    time = reader.columns.time
    parts = RandomParts(n_parts, seed) if time is None else _windows(reader.source, reader.columns, n_parts)
    look, faults = _Look(reader, n_parts), Faults()
    _note_duplicates(reader.source, reader.columns, faults)
    for decisions in reader.read(faults):
        look.add(decisions, parts(decisions.tasks, decisions.times))
        if on_rows is not None:
            on_rows(look.n_rows)
    faults.refuse(reader.source.name)
    if look.n_rows == 0:
        raise ValueError(f"a log to evaluate must have decisions. Got {reader.source.name}, which has none.")
    found = look.found(forward=time is not None)
    _refuse_equal_rewards(found.rewards, reader.columns.reward)
    return found


def _refuse_equal_rewards(rewards: Array, column: str) -> None:
    middle = float(rewards.mean())
    if float(np.mean((rewards - middle) ** 2)) <= CONSTANT_SHARE * max(middle**2, 1e-300):
        raise ValueError(
            f"rewards must differ, or every policy earns the same. Got {len(rewards):,} rewards of "
            f"{middle:g} in column {column!r}."
        )


def _note_duplicates(source: Source, columns: DecisionColumns, faults: Faults) -> None:
    """Count decisions that stand in a log more than once; one with a row for every arm is checked by arm."""
    if columns.decision is None or columns.long:
        return
    name = quoted(columns.decision)
    asked = f"select cast({name} as varchar) as id from log group by id having count(*) > 1 order by id"
    repeated = source.rows(source.ask(f"select count(*) from ({asked})"))[0][0]
    if repeated:
        shown = source.rows(source.ask(f"{asked} limit {MOST_EXAMPLES}"))
        key = (columns.decision, "decisions that stand in several rows")
        faults.found[key] = int(repeated), [str(row[0]) for row in shown]


def _windows(source: Source, columns: DecisionColumns, n_parts: int) -> Windows:
    """Return windows of about equally many decisions, from their times."""
    time = columns.time or ""
    value = time_reading(time, source.columns[time]).value
    where = f" where {flag_expression(columns.chosen)}" if columns.chosen is not None else ""
    shares = ", ".join(str(share / n_parts) for share in range(1, n_parts))
    asked = f"select quantile_cont({value}, [{shares}]), count(distinct {value}) from log{where}"
    ((ends, n_times),) = source.rows(source.ask(asked))
    if n_times < n_parts:
        raise ValueError(
            f"`time` must have {n_parts} different times at least, or decisions are in no order. "
            f"Got {time!r}, which has {n_times}."
        )
    return Windows(np.array(ends, dtype=np.float64))


class _Look:
    """Keeps what is needed of decisions as they are read."""

    def __init__(self, reader: DecisionReader, n_parts: int) -> None:
        self.reader, self.n_parts, self.n_rows = reader, n_parts, 0
        self.kept: dict[str, list[Any]] = {
            name: [] for name in ("tasks", "rewards", "propensities", "played", "times", "parts", "prints")
        }
        self.sums: Accumulator | None = None
        self.n_arms = len(reader.encoder.arms) or 1
        self.plays, self.offers, self.whole = np.zeros((0, self.n_arms)), np.zeros((0, self.n_arms)), True

    def add(self, decisions: Decisions, parts: IntArray) -> None:
        """Take in some decisions and the parts (m,) that they are in."""
        n_tasks = len(self.reader.numbers)
        self.sums = self.sums or Accumulator(decisions.features.shape[2])
        played = decisions.played
        cells = (decisions.tasks * self.n_parts + parts) * self.n_arms + played
        usable = np.isfinite(decisions.rewards)
        rewards = np.where(usable, decisions.rewards, 0.0)
        self.sums.add(
            cells,
            np.ascontiguousarray(decisions.played_features),
            rewards,
            usable.astype(np.float64),
            n_tasks * self.n_parts * self.n_arms,
        )
        self._count(decisions, played, n_tasks)
        self.whole = self.whole and bool(decisions.logged.size)
        kept: Mapping[str, Any] = {
            "tasks": decisions.tasks.astype(np.int32),
            "rewards": decisions.rewards,
            "propensities": decisions.propensities,
            "played": played.astype(np.int32),
            "times": decisions.times if self.reader.columns.time else np.zeros(0),
            "parts": parts.astype(np.int16),
            "prints": decisions.prints,
        }
        for name, values in kept.items():
            self.kept[name].append(values)
        self.n_rows += len(decisions)

    def _count(self, decisions: Decisions, played: IntArray, n_tasks: int) -> None:
        more = max(n_tasks - len(self.plays), 0)
        self.plays, self.offers = (np.pad(part, ((0, more), (0, 0))) for part in (self.plays, self.offers))
        size, cells = n_tasks * self.n_arms, decisions.tasks * self.n_arms
        self.plays += np.bincount(cells + played, minlength=size).reshape(n_tasks, self.n_arms)
        if decisions.available.size:
            rows, places = np.nonzero(decisions.available)
            where = cells[rows] + decisions.arms[rows, places]
            self.offers += np.bincount(where, minlength=size).reshape(n_tasks, self.n_arms)
        else:
            self.offers += np.bincount(decisions.tasks, minlength=n_tasks)[:, None]

    def found(self, *, forward: bool) -> Logged:
        """Return all of it."""
        assert self.sums is not None
        order = np.argsort(np.array(list(self.reader.numbers)))
        names = tuple(sorted(self.reader.numbers))
        self.reader.numbers = {name: number for number, name in enumerate(names)}
        parts, n_tasks = self.n_parts, len(names)
        self.sums.grow(n_tasks * parts * self.n_arms)
        cells = self.sums.statistics()
        self.sums = None
        repeated = _repeated(self.kept.pop("prints"))
        numbers = np.arange(cells.n_tasks).reshape(n_tasks, parts, self.n_arms)[order]
        arrays = {name: np.concatenate(self.kept.pop(name)) for name in list(self.kept)}  # never all twice
        return Logged(
            reader=self.reader,
            names=names,
            tasks=Groups(np.argsort(order)[arrays["tasks"]], n_tasks),
            rewards=arrays["rewards"],
            propensities=arrays["propensities"],
            played=arrays["played"],
            times=arrays["times"],
            parts=arrays["parts"],
            statistics=tuple(
                self.reader.encoder.expand(cells.take(numbers[:, part].ravel())) for part in range(parts)
            ),
            plays=self.plays[order],
            offers=self.offers[order],
            forward=forward,
            whole=self.whole,
            repeated=repeated,
        )


def _repeated(prints: list[NDArray[np.uint64]]) -> int:
    """Return how many of the fingerprints of rows stood there before."""
    found = np.concatenate(prints)
    prints.clear()
    found.sort()
    return int(np.sum(found[1:] == found[:-1]))
