"""What happened in every space over time, in fixed memory: the page draws it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

# What is noted of a space, by the names in its summary. Counts are totals so far.
NOTED = (
    "decisions",
    "rewards",
    "counted",
    "reward_total",
    "late",
    "expired",
    "pending",
    "entropy",
    "lift",
    "lift_low",
    "lift_high",
)


class Window(NamedTuple):
    """How far back is remembered, and how finely.

    Attributes
    ----------
    name : str
    step : float
        Seconds between rows.
    rows : int
        How many are kept.
    """

    name: str
    step: float
    rows: int


# The first one's step is how often somebody has to take note.
WINDOWS = (Window("hour", 2.0, 1800), Window("day", 120.0, 720), Window("month", 3600.0, 744))
STEP = WINDOWS[0].step
# So many rows of a window are shown at most.
SHOWN = 240


class History:
    """Totals of all spaces over the last hour, day and month, since the process began.

    Examples
    --------
    >>> history = History()
    >>> one = dict.fromkeys(NOTED, 0)
    >>> history.note({"default": one}, now=100.0)
    >>> history.note({"default": {**one, "decisions": 3}}, now=110.0)
    >>> [row[:2] for row in history.of("default")["windows"]["hour"]]
    [[100.0, 0], [110.0, 3]]
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, deque[list[Any]]]] = {}

    def note(self, spaces: Mapping[str, Mapping[str, Any]], now: float | None = None) -> None:
        """Take note of totals.

        Parameters
        ----------
        spaces : mapping
            Of `Service.summary`.
        now : float, optional
            Seconds since 1970.
        """
        now = time.time() if now is None else now
        for name, space in spaces.items():
            row = [now, *(space[key] for key in NOTED)]
            windows = self._rows.setdefault(name, {w.name: deque(maxlen=w.rows) for w in WINDOWS})
            for window in WINDOWS:
                kept = windows[window.name]
                # half a step early counts as in time: whoever takes note is never there to the millisecond
                if not kept or now - kept[-1][0] >= window.step - STEP / 2:
                    kept.append(row)

    def of(self, name: str) -> dict[str, Any]:
        """Return the names of columns, and rows (time, counts) by window, the oldest first.

        Parameters
        ----------
        name : str
            Of a space.
        """
        windows = self._rows.get(name, {})
        rows = {window.name: thinned(list(windows.get(window.name, ())), window.step) for window in WINDOWS}
        return {"columns": ["time", *NOTED], "windows": rows}


def thinned(rows: list[list[Any]], step: float) -> list[list[Any]]:
    """Return rows at about equal distances in time, and not many more than are shown; the last one is there.

    Which rows are left does not change while new ones come, so that a picture of them stands still.

    Examples
    --------
    >>> rows = [[2.0 * n] for n in range(1000)]
    >>> len(thinned(rows, 2.0)), thinned(rows, 2.0)[-2:], thinned(rows[:2], 2.0)
    (200, [[1988.0], [1998.0]], [[0.0], [2.0]])
    """
    if len(rows) <= SHOWN:
        return rows
    every = -(-len(rows) // SHOWN) * step
    return [row for row, after in pairwise(rows) if row[0] // every != after[0] // every] + rows[-1:]
