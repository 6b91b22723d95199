"""Sums of a log of plain numbers in one look: in units of its first rows, then in those of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from posse.core.columns import NumberColumn
from posse.core.encoder import Encoder
from posse.core.statistics import GramStatistics
from posse.logs.prepare import Prepared, Request
from posse.logs.profile import ColumnProfile, Profile, Spread, learn_profile
from posse.logs.reading import kind_of
from posse.logs.recipe import CONSTANT_SHARE
from posse.logs.scan import Scan
from posse.logs.scanned import Scanned
from posse.logs.sources import BATCH
from posse.logs.tables import LocalTable
from posse.numerics.checks import Array, IntArray
from posse.numerics.compiled import compiled

# Sums around first rows that lie so many standard deviations off lose its square of their 10^16.
FAR = 100.0


class _GapError(Exception):
    """A number is missing, so that features are other than was thought."""


def scan_once(
    request: Request, on_rows: Callable[[int], None] | None = None
) -> tuple[Prepared, Scanned] | None:
    """Learn the encoder and sum rows by task in one look, or return None where that cannot be.

    It can where the table is read by this process, all features are columns of numbers, and none of these is
    missing: then features are those of the first rows' units, but for an affine map, which sums follow.
    """
    table = request.table
    if not isinstance(table, LocalTable) or not _is_plain(request):
        return None
    columns = _of_first_rows(request, table)
    scan = Scan(table.columns, request.roles, Encoder(columns=columns))

    def check(n_rows: int) -> None:
        if any(column in request.used for column, _, _ in scan.ledger.found):
            raise _GapError
        if on_rows is not None:
            on_rows(n_rows)

    try:
        scanned = scan.run([table.source], check)
    except _GapError:
        return None
    spreads = _spreads(scanned.statistics, columns)
    if spreads is None:
        return None
    found = {
        column.name: ColumnProfile(numbers=spread) for column, spread in zip(columns, spreads, strict=True)
    }
    encoder, findings = request.cook(Profile(scanned.used, found))
    moved = _moved(scanned.statistics, columns, encoder)
    return request.prepared(encoder, findings), replace(scanned, statistics=moved)


def _is_plain(request: Request) -> bool:
    """Return whether features are numbers, one for each column, of which every row counts alike."""
    recipe, types = request.recipe, request.table.columns
    chosen = request.encoder, recipe.categories, recipe.interactions, request.roles.arm, request.roles.weight
    return not any(chosen) and all(kind_of(types[name]) == "number" for name in request.used)


def _of_first_rows(request: Request, table: LocalTable) -> tuple[NumberColumn, ...]:
    """Return columns in units of the first rows."""
    head = LocalTable(replace(table.source, relation=table.source.relation.limit(BATCH)))
    found = learn_profile(head, request.used, (), request.rows).columns
    return tuple(
        NumberColumn(name=name, mean=found[name].numbers.mean, scale=found[name].numbers.scale or 1.0)
        for name in request.used
    )


def _spreads(statistics: GramStatistics, columns: tuple[NumberColumn, ...]) -> list[Spread] | None:
    """Return how the numbers of each column spread, or None if sums do not say it to full precision."""
    count, found = int(statistics.count.sum()), list[Spread]()
    if count == 0:
        return None
    total = statistics.gram.sum(axis=0)
    for place, column in enumerate(columns, 1):
        off, around = float(total[0, place]) / count, float(total[place, place])
        mean = column.mean + column.scale * off
        squares = around - count * off * off
        if around * column.scale**2 <= count * (CONSTANT_SHARE * mean) ** 2:
            squares = 0.0
        elif not off * off * count <= FAR**2 * squares:
            return None
        found.append(Spread(count, mean, squares * column.scale**2))
    return found


def _moved(statistics: GramStatistics, columns: tuple[NumberColumn, ...], encoder: Encoder) -> GramStatistics:
    """Return the statistics (T, d) of an encoder's features from those of a constant and c other units."""
    places = {column.name: place for place, column in enumerate(columns, 1)}
    place = np.zeros(encoder.dim, dtype=np.intp)
    shift, scale = np.zeros(encoder.dim), np.ones(encoder.dim)
    for row, column in enumerate(encoder.columns, int(encoder.intercept)):
        assert isinstance(column, NumberColumn)
        place[row] = places[column.name]
        before = columns[place[row] - 1]
        shift[row] = (before.mean - column.mean) / column.scale
        scale[row] = before.scale / column.scale
    gram = np.empty((statistics.n_tasks, encoder.dim, encoder.dim))
    _move(statistics.gram, place, shift, scale, gram)
    moment = scale * statistics.moment[:, place] + shift * statistics.moment[:, :1]
    return replace(statistics, gram=gram, moment=moment)


@compiled
def _move(gram: Array, place: IntArray, shift: Array, scale: Array, out: Array) -> None:
    """Fill `out` (T, d, d) with products of scale * z[place] + shift from those of z; z[0] is 1."""
    n_tasks, dim, _ = out.shape
    for t in range(n_tasks):
        own = gram[t]
        for i in range(dim):
            a = place[i]
            for j in range(i + 1):
                b = place[j]
                mixed = scale[i] * shift[j] * own[a, 0] + shift[i] * scale[j] * own[b, 0]
                out[t, i, j] = scale[i] * scale[j] * own[a, b] + mixed + shift[i] * shift[j] * own[0, 0]
                out[t, j, i] = out[t, i, j]
