"""Events as rows of tables, and back."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from posse.live.events import OTHERS, Event, Shown, Told
from posse.live.records import DECIDED, UNKNOWN, Asked

SHOWN, CONTROL, SHADOW, ALL_ARMS = 1, 2, 4, 8


@lru_cache(maxsize=1024)
def _as_json(names: tuple[str, ...]) -> str:
    return json.dumps(names)


@lru_cache(maxsize=1024)
def _from_json(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def row_of(event: Event, number: int) -> tuple[str, tuple[Any, ...]]:
    """Return the table that an event of that number belongs to, and its row."""
    if isinstance(event, Asked):
        shadow = event.played != DECIDED
        flags = SHOWN * event.shown + CONTROL * event.control + SHADOW * shadow
        features = event.features
        if event.offered is not None:
            flags, features = flags + ALL_ARMS, event.offered
        return "decisions", (
            number,
            event.id,
            event.at,
            event.task,
            event.arm,
            None if event.names is None else _as_json(event.names),
            event.chances.tobytes(),
            features.tobytes(),
            event.version,
            flags,
            event.unit,
        )
    if isinstance(event, Told):
        return "rewards", (number, *event)
    if isinstance(event, Shown):
        return "shown", (number, event.id, event.at)
    return "others", (number, type(event).__name__.lower(), json.dumps(event))


def decision_of(row: tuple[Any, ...]) -> Asked:
    """Return a decision from its row, as it was made."""
    _, id, at, task, arm, names, chances, features, version, flags, unit = row
    p = np.frombuffer(chances)
    x = np.frombuffer(features)
    offered = x.reshape(len(p), -1) if flags & ALL_ARMS else None
    return Asked(
        id,
        at,
        task,
        arm,
        None if names is None else _from_json(names),
        p,
        x if offered is None else offered[arm],
        offered,
        version,
        bool(flags & SHOWN),
        unit,
        bool(flags & CONTROL),
        UNKNOWN if flags & SHADOW else DECIDED,
    )


def event_of(table: str, row: tuple[Any, ...]) -> Event:
    """Return an event from its row."""
    if table == "decisions":
        return decision_of(row)
    if table == "rewards":
        return Told(*row[1:])
    if table == "shown":
        return Shown(row[2], row[1])
    values = [tuple(value) if isinstance(value, list) else value for value in json.loads(row[2])]
    kind: Any = OTHERS[row[1]]
    event: Event = kind(*values)
    return event
