"""What a look at rows of a log has found, on one machine or on many: it adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from posse.core.account import Finding
from posse.core.shipped import register
from posse.core.statistics import GramStatistics
from posse.logs.accumulate import Accumulator
from posse.numerics.checks import BoolArray

# Statistics travel in pieces of about so many bytes, and in at most so many pieces.
PIECE_BYTES, MOST_PIECES = 2**20, 256


class Ledger:
    """Counts what is found amiss, by column and kind, and remembers the first row of each."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], tuple[int, int]] = {}

    def note(self, column: str, what: str, done: str, where: BoolArray, start: int) -> None:
        """Count rows of a batch that begins with row `start`, where a mask (m,) is True."""
        count = int(np.count_nonzero(where))
        if count:
            key = column, what, done
            before, first = self.found.get(key, (0, start + int(np.argmax(where)) + 1))
            self.found[key] = before + count, first

    def findings(self) -> list[Finding]:
        """Return what was found, one entry for each column and kind."""
        return [
            Finding(column=column, what=what, count=count, done=done, first=first)
            for (column, what, done), (count, first) in self.found.items()
        ]


@register
@dataclass(frozen=True, eq=False)
class Scanned:
    """What a look at a table, or at a part of one, has found.

    Attributes
    ----------
    statistics : GramStatistics
        Of tasks x parts x arms cells, those of a task side by side, with compact features.
    tasks : list of str
    rows, used : int
    findings : list of Finding
    """

    statistics: GramStatistics
    tasks: list[str]
    rows: int
    used: int
    findings: list[Finding]

    def pieces(self) -> Iterator[tuple[int, Scanned]]:
        """Yield the tasks in groups by their names; rows and findings are those of the first group."""
        size = self.statistics.gram.nbytes
        n_pieces = 1
        while n_pieces < MOST_PIECES and n_pieces * PIECE_BYTES < size:
            n_pieces *= 2
        groups = np.array([crc32(name.encode()) for name in self.tasks], dtype=np.intp) % n_pieces
        width = self.statistics.n_tasks // max(len(self.tasks), 1)
        rows, used, findings = self.rows, self.used, self.findings
        for group in range(n_pieces):
            (places,) = np.nonzero(groups == group)
            cells = (places[:, None] * width + np.arange(width)).ravel()
            names = [self.tasks[place] for place in places.tolist()]
            yield group, Scanned(_taken(self.statistics, cells), names, rows, used, findings)
            rows, used, findings = 0, 0, []


def _taken(statistics: GramStatistics, cells: np.ndarray) -> GramStatistics:
    parts = statistics.gram, statistics.moment, statistics.square, statistics.count
    return GramStatistics(*(part[cells] for part in parts))


def joined(parts: Iterable[Scanned]) -> Scanned:
    """Return what was found in a table from what was found in its parts, of which there must be one.

    One part is in memory at a time. Findings have no first row, as the parts have no order.
    """
    sums: Accumulator | None = None
    numbers: dict[str, int] = {}
    counted: dict[tuple[str, str, str], int] = {}
    rows = used = 0
    for part in parts:
        seen = part.statistics
        sums = sums or Accumulator(seen.dim)
        width = seen.n_tasks // max(len(part.tasks), 1)
        places = np.array([numbers.setdefault(name, len(numbers)) for name in part.tasks], dtype=np.intp)
        sums.add_cells((places[:, None] * width + np.arange(width)).ravel(), seen, len(numbers) * width)
        for item in part.findings:
            key = item.column, item.what, item.done
            counted[key] = counted.get(key, 0) + item.count
        rows, used = rows + part.rows, used + part.used
    assert sums is not None
    findings = [Finding(column=c, what=w, done=d, count=n) for (c, w, d), n in counted.items()]
    return Scanned(sums.statistics(), list(numbers), rows, used, findings)
