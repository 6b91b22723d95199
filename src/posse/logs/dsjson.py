"""Logs of Vowpal Wabbit and Personalizer, dsjson: a JSON object for each decision, to a row for every arm."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from posse.core.extras import extra

with extra("logs"):
    import pyarrow as pa

# What every decision has, beside the columns of contexts and actions.
OWN = ("decision", "time", "action", "chosen", "propensity", "reward")


def read_dsjson(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> pa.Table:
    """Return a log in dsjson as a table with a row for every action that was on offer.

    Its columns are `decision` (the EventId), `time` (the Timestamp, text), `action` (its number from 1, as
    text), `chosen`, `propensity`, `reward` (the cost of the label, negated; missing if there is none), and
    one for each feature of the context and of actions, named by its path, as User.id.

    Lines without a decision, as those of late rewards, and decisions that were never activated (`_skipLearn`)
    are left out.

    Parameters
    ----------
    files : path, or sequence of paths
        Text, or compressed by gzip if the name ends in .gz.

    Examples
    --------
    >>> import tempfile
    >>> line = '''{"EventId": "e1", "Timestamp": "2026-01-05T01:03:00Z", "_label_cost": -1, "a": [2, 1],
    ... "p": [0.8, 0.2], "c": {"User": {"age": 30}, "_multi": [{"item": {"x": 1}}, {"item": {"x": 2}}]}}'''
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write(line.replace(chr(10), "")), file.flush()
    ...     table = read_dsjson(file.name)
    >>> table.column_names[6:], table["chosen"].to_pylist(), table["propensity"].to_pylist()
    (['User.age', 'item.x'], [False, True], [0.2, 0.8])
    """
    rows: list[dict[str, Any]] = []
    for file in [files] if isinstance(files, str | os.PathLike) else files:
        rows += _rows_of(_lines(Path(file)), str(file))
    names = dict.fromkeys([*OWN, *(name for row in rows for name in row)])
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        yield from file


def _rows_of(lines: Iterable[str], name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"dsjson must have a JSON object in every line. Got line {number:,} of {name}: {error.msg}."
            ) from error
        if not isinstance(event, dict):
            raise ValueError(
                f"dsjson must have a JSON object in every line. Got line {number:,} of {name}: {line[:60]!r}."
            )
        if "c" in event and not event.get("_skipLearn"):
            yield from _decision(event, f"line {number:,} of {name}")


def _decision(event: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield a row for every action of a decision."""
    context, chance, actions = _checked(event, where)
    cost, played = event.get("_label_cost"), event.get("_label_Action", event["a"][0])
    common = dict(_flat("", {key: value for key, value in context.items() if key != "_multi"}))
    for number, action in enumerate(actions, 1):
        yield {
            "decision": event.get("EventId"),
            "time": event.get("Timestamp"),
            "action": str(number),
            "chosen": number == played,
            "propensity": chance[number],
            "reward": -cost if number == played and cost is not None else None,
            **common,
            **dict(_flat("", action)),
        }


def _checked(event: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], dict[int, float], list[Any]]:
    """Return the context of a decision, the probabilities of actions by their numbers, and the actions."""
    order, chances, context = event.get("a"), event.get("p"), event["c"]
    actions = context.get("_multi") if isinstance(context, dict) else None
    if not isinstance(actions, list) or not isinstance(order, list) or not isinstance(chances, list):
        raise ValueError(
            "a decision in dsjson must have actions in `c._multi`, their numbers in `a` and probabilities in "
            f"`p`. Got {where}, which has not."
        )
    if sorted(order) != list(range(1, len(actions) + 1)) or len(chances) != len(order):
        raise ValueError(
            f"`a` and `p` of a decision must be of all {len(actions)} actions. Got {order!r:.60} and "
            f"{chances!r:.60} in {where}."
        )
    if event.get("pdrop"):
        raise ValueError(
            "decisions must all be in a log in dsjson, as those left out would have to be weighed for. Got "
            f"`pdrop` = {event['pdrop']} in {where}."
        )
    return context, dict(zip(order, chances, strict=True)), actions


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the plain values in nested objects and lists, each with its path, parts joined by dots."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "_text" or not key.startswith("_"):
                yield from _flat(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _flat(path if isinstance(inner, Mapping) else f"{path}.{place}", inner)
    elif path in OWN:
        yield f"{path} (feature)", value
    else:
        yield path, value


def _column(values: list[Any]) -> Any:
    """Return values as a column: numbers, truths or texts; texts where they are of several kinds."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
