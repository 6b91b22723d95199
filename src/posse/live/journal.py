"""Where events are kept, and what is asked of such a place; and one in memory, for agents without a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from posse.core.errors import PosseError
from posse.live.events import Event
from posse.live.records import Asked

if TYPE_CHECKING:
    from posse.live.engine import EngineState

# An agent without a file knows so many decisions that wait for nothing any more.
REMEMBERED = 20_000
# Under this key a journal keeps the number of the last event that it had when some were removed: numbers go
# on from there, and the snapshot that knows what was removed is none of a later time.
LAST = "last"


class JournalError(PosseError):
    """The journal could not be read or written; what was asked for has not been done."""


class Journal(Protocol):
    """A list of events, each with a number; and states beside it, which save replaying all of them.

    Attributes
    ----------
    shared : bool
        Whether other processes decide by the states that are saved.
    """

    shared: ClassVar[bool]

    @property
    def backlog(self) -> int:
        """How many events of other processes have no number yet."""

    def append(self, events: Sequence[Event]) -> int:
        """Keep events, all or none, and return the number of the last one."""

    def new(self, most: int) -> list[Event]:
        """Return events that other processes wrote, which `append` gives their numbers; at most so many."""

    def acknowledge(self) -> None:
        """Return when all events that were appended are as durable as was promised."""

    def find(self, id: str, before: int | None = None) -> Asked | None:
        """Return a decision with the rewards it had before the event of that number; None if unknown."""

    def settled(self, asked: Asked) -> None:
        """Take note of a decision that waits for nothing any more."""

    def save_version(self, number: int, state: Any) -> None:
        """Keep the state of a version."""

    def load_version(self, number: int) -> Any:
        """Return the state of a version, None if it was not kept."""

    def drop_version(self, number: int) -> None:
        """Forget the state of a version."""

    def save_state(self, state: EngineState, *, wait: bool = False, alone: bool = False) -> bool:
        """Save a snapshot, unless one is being written; alone: and forget all others."""

    def load_state(self) -> EngineState | None:
        """Return the last snapshot; None if there is none."""

    def knows(self, task: str) -> bool:
        """Return whether there are decisions of a task."""

    def erase(self, task: str, number: int) -> None:
        """Forget all decisions of a task, their rewards and its name."""

    def replay(self, after: int) -> Iterator[tuple[int, Event]]:
        """Go through all events after a number, in order."""

    def close(self) -> None:
        """Give up the file."""


class LastingJournal(Journal, Protocol):
    """A journal that is there when the process is not."""

    def meta(self, key: str) -> bytes | None:
        """Return what is kept under a key; None if nothing is."""

    def set_meta(self, key: str, value: bytes) -> None:
        """Keep something under a key."""

    def copy(self, numbered: Sequence[tuple[int, Event]]) -> None:
        """Write events of another journal with the numbers that they have, which come after all others."""

    def decisions(self, before: float = ...) -> Iterator[Asked]:
        """Go through all decisions made before a time, with their rewards, in order."""

    def remove(self, ids: Sequence[str]) -> None:
        """Remove decisions and their rewards."""


class MemoryJournal:
    """A journal that keeps nothing but the last decisions that were settled, and the states of versions.

    Examples
    --------
    >>> MemoryJournal().append([])
    0
    """

    shared: ClassVar[bool] = False
    backlog = 0

    def __init__(self) -> None:
        self._last = 0
        self._settled: OrderedDict[str, Asked] = OrderedDict()
        self._versions: dict[int, Any] = {}

    def append(self, events: Sequence[Event]) -> int:
        """Count events, and return the number of the last one."""
        self._last += len(events)
        return self._last

    def new(self, most: int) -> list[Event]:
        """Return nothing: no other process can write here."""
        return []

    def acknowledge(self) -> None:
        """Return at once: nothing is promised."""

    def find(self, id: str, before: int | None = None) -> Asked | None:
        """Return a decision that was settled lately."""
        return self._settled.get(id)

    def settled(self, asked: Asked) -> None:
        """Remember a decision, and forget the one that was settled longest ago if there are many."""
        self._settled[asked.id] = asked
        if len(self._settled) > REMEMBERED:
            self._settled.popitem(last=False)

    def save_version(self, number: int, state: Any) -> None:
        """Keep the state of a version."""
        self._versions[number] = state

    def load_version(self, number: int) -> Any:
        """Return the state of a version, None if it was not kept."""
        return self._versions.get(number)

    def drop_version(self, number: int) -> None:
        """Forget the state of a version."""
        self._versions.pop(number, None)

    def save_state(self, state: EngineState, *, wait: bool = False, alone: bool = False) -> bool:
        """Save nothing: there is no file."""
        return True

    def load_state(self) -> None:
        """Return None: there is no file."""

    def knows(self, task: str) -> bool:
        """Return False: what is forgotten here is forgotten at once."""
        return False

    def erase(self, task: str, number: int) -> None:
        """Forget the decisions of a task."""
        for id in [id for id, asked in self._settled.items() if asked.task == task]:
            del self._settled[id]

    def replay(self, after: int) -> Iterator[tuple[int, Event]]:
        """Go through nothing: no event is kept."""
        return iter(())

    def close(self) -> None:
        """Do nothing: there is no file."""
