"""How a service is doing: totals, and its spaces beneath."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from posse.live.status import Status

COUNTS = ("tasks", "decisions", "rewards", "pending", "late", "expired", "defaults", "backlog")


def summary_of(statuses: Mapping[tuple[str, int], Status]) -> dict[str, Any]:
    """Return totals over all spaces, and `spaces`: what each one's agents have seen and how it stands.

    Parameters
    ----------
    statuses : mapping of (name, version) to Status
        Of the agents of all versions of all spaces, the oldest of a space first.
    """
    spaces: dict[str, Any] = {}
    for name, version in statuses:
        own = [status for (other, _), status in statuses.items() if other == name]
        newest = asdict(own[-1])
        alarms = [alarm for status in own for alarm in status.alarms]
        spaces[name] = {**newest, **_summed(own), "alarms": alarms, "space_version": version}
    alarms = [f"{name}: {alarm}" for name, space in spaces.items() for alarm in space["alarms"]]
    return {**_summed(statuses.values()), "alarms": alarms, "spaces": spaces}


def _summed(statuses: Iterable[Status]) -> dict[str, int]:
    every = list(statuses)
    return {name: sum(getattr(status, name) for status in every) for name in COUNTS}
