"""What is answered about a service and its spaces, as types: its description is made from them."""

from __future__ import annotations

from typing import Any, get_type_hints

from posse.core.extras import extra
from posse.live.engine import Version
from posse.live.status import Status
from posse.serve.spaces import Space

with extra("serve"):
    from msgspec import Struct, defstruct


class KnownTask(Struct, kw_only=True):
    """A task, and how many rewards it has learned from."""

    name: str
    rewards: int


class Tasks(Struct, kw_only=True):
    """Tasks of a space, and how many there are in all."""

    total: int
    tasks: list[KnownTask]


class Effect(Struct, kw_only=True):
    """What is believed of a feature for a task and, `others`, for one that was never seen."""

    feature: str
    estimate: float | None
    deviation: float | None
    others: float | None
    others_deviation: float | None
    weight: float | None


class Alike(Struct, kw_only=True):
    """A task that differs from the mean of all in the same direction (1) or in the opposite one (-1)."""

    name: str
    likeness: float | None


class Learned(Struct, kw_only=True):
    """What a task has learned, and from whom."""

    task: str
    rewards: int
    effects: list[Effect]
    alike: list[Alike]


class Versions(Struct, kw_only=True):
    """Versions of what tasks share, which one decides, and whether newer ones are adopted by themselves."""

    version: int
    automatic: bool
    versions: list[Version]


class SpaceVersion(Struct, kw_only=True):
    """A space, and the number of its version."""

    version: int
    space: Space


class Spaces(Struct, kw_only=True):
    """The newest versions of all spaces."""

    spaces: list[SpaceVersion]


def _fields() -> list[tuple[str, Any]]:
    """Return the fields of a status; a number that is none is null."""
    hints = get_type_hints(Status)
    return [(name, float | None if kind is float else kind) for name, kind in hints.items()]


SpaceStatus = defstruct("SpaceStatus", [*_fields(), ("space_version", int)], kw_only=True)
SpaceStatus.__doc__ = "How a space is doing; counts are those of all its versions."


class ServiceStatus(Struct, kw_only=True):
    """Totals over all spaces, how each is doing, and what the caller may do."""

    tasks: int
    decisions: int
    rewards: int
    pending: int
    late: int
    expired: int
    defaults: int
    backlog: int
    alarms: list[str]
    spaces: dict[str, SpaceStatus]  # type: ignore[valid-type]
    roles: list[str]


class Traffic(Struct, kw_only=True):
    """Totals of a space over time: names of columns, and rows by window, the oldest first."""

    columns: list[str]
    windows: dict[str, list[list[float | None]]]
