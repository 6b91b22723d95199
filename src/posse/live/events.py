"""What can happen to an agent: its journal is a list of these, and replaying it makes the agent anew."""

from __future__ import annotations

from typing import NamedTuple

from posse.live.records import Asked


class Joined(NamedTuple):
    """A task came that was never seen; the first one says how many features there are."""

    at: float
    task: str
    dim: int


class Told(NamedTuple):
    """A reward came; `played` is the place of the arm that was played in shadow mode, else -1."""

    id: str
    event: str
    at: float
    value: float
    played: int


class Shown(NamedTuple):
    """A decision that had been held back was shown."""

    at: float
    id: str


class Expired(NamedTuple):
    """Nobody waits for the rewards of these decisions any more."""

    at: float
    ids: tuple[str, ...]


class Began(NamedTuple):
    """A refit began, from all events so far."""

    at: float
    number: int


class Refitted(NamedTuple):
    """The refit under way ended; it is adopted, or kept as a version to be promoted."""

    at: float
    number: int
    adopted: bool


class Failed(NamedTuple):
    """The refit under way failed; what it was to learn from waits for the next one."""

    at: float
    number: int
    reason: str


class Turned(NamedTuple):
    """Decisions are made by another version from now on; automatic tells whether refits are adopted."""

    at: float
    number: int
    automatic: bool


class Frozen(NamedTuple):
    """Learning stopped, or went on."""

    at: float
    on: bool


class Forbade(NamedTuple):
    """These arms, and no others, are not to be played for a task."""

    at: float
    task: str
    arms: tuple[str, ...]


class Erased(NamedTuple):
    """A task was forgotten, by its number; its name is not kept."""

    at: float
    number: int


Other = Joined | Shown | Expired | Began | Refitted | Failed | Turned | Frozen | Forbade | Erased
Event = Asked | Told | Other

# What is kept in the journal's table of other events, by the name that it has there.
OTHERS: dict[str, type[Other]] = {
    kind.__name__.lower(): kind
    for kind in (Joined, Shown, Expired, Began, Refitted, Failed, Turned, Frozen, Forbade, Erased)
}
