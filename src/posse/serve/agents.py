"""What a service asks of the agent of a space, which may learn in this process or in another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from posse.core.posterior import Beliefs
from posse.live.engine import Version
from posse.live.records import Asked, Decision
from posse.live.status import Status


class SpaceAgent(Protocol):
    """Decides for the tasks of a space; methods are those of `posse.Agent`."""

    def ask(
        self,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None = None,
        id: str | None = None,
        *,
        unit: str | None = None,
        shown: bool = True,
    ) -> Decision:
        """Decide for a task."""

    def ask_many(
        self,
        tasks: Sequence[str],
        arms: Sequence[Any],
        contexts: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Decide for many rows, all or none."""

    def tell(
        self,
        id: str,
        reward: float,
        event: str | None = None,
        at: float | None = None,
        *,
        played: int | str | None = None,
    ) -> None:
        """Tell a reward of a decision."""

    def tell_many(
        self,
        ids: Sequence[str],
        rewards: Sequence[float],
        events: Sequence[str | None] | None = None,
        ats: Sequence[float | None] | None = None,
    ) -> None:
        """Tell many rewards, all or none."""

    def activate(self, id: str) -> None:
        """Say that a decision was shown."""

    def find(self, id: str) -> Asked | None:
        """Return the record of a decision; None if the id is unknown."""

    def features(self) -> tuple[str, ...] | None:
        """Return the names of the features."""

    def tasks(self) -> dict[str, int]:
        """Return the names of tasks, with the rewards that each has learned from."""

    def beliefs(self) -> dict[str, Beliefs]:
        """Return what is believed of every task by name, and under "" what of a new one."""

    def versions(self) -> tuple[Version, ...]:
        """Return all versions of what tasks share, the oldest first."""

    def status(self) -> Status:
        """Return how the agent is doing."""

    def promote(self, version: int) -> None:
        """Decide by a version from now on."""

    def rollback(self, version: int) -> None:
        """Decide by an earlier version, and keep to it."""

    def freeze(self, on: bool = True) -> None:
        """Stop learning, or go on."""

    def close(self) -> None:
        """Give up the journal."""
