"""Agents that decide in this process and learn in another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from posse.core.posterior import Beliefs
from posse.live.asker import Asker
from posse.live.controls import beliefs_by_name, rows_by_name
from posse.live.engine import Version
from posse.live.journal import JournalError
from posse.live.status import Status
from posse.serve.database import Account

# Seconds after which somebody should ask where the process is that learns.
LATE = 10.0


class Remote(Asker):
    """An asker that has the controls of an agent: another process does what they say.

    Parameters
    ----------
    address : str
        Of the schema of the agent.
    account : callable
        Returns how the agent is doing, and how many seconds ago that was so.
    order : callable
        Lets the other process do something, by its name and what it is about.
    durability : "process" or "power"
    clock : callable
        Returns seconds since 1970.
    """

    def __init__(
        self,
        address: str,
        account: Callable[[], tuple[float, Account]],
        order: Callable[..., Any],
        durability: str,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(address, durability=durability, refresh_every=None, queue_rewards=False, clock=clock)
        self.address, self._account, self._order = address, account, order
        self._last: Account | None = None

    def features(self) -> tuple[str, ...] | None:
        """Return the names of the features, in the order of parameters; None where they have no names."""
        encoder = self._settings.encoder
        return None if encoder is None else encoder.features

    def tasks(self) -> dict[str, int]:
        """Return the names of tasks, with the rewards that each had learned from when that was published."""
        with self._lock:
            return rows_by_name(self._learner, self._numbers)

    def beliefs(self) -> dict[str, Beliefs]:
        """Return what is believed of every task by name, and under "" what of a task that was never seen."""
        with self._lock:
            return beliefs_by_name(self._learner, self._numbers)

    def _look(self) -> tuple[str, Account]:
        """Return what is wrong with the way to the other process, and what that has said last."""
        try:
            age, self._last = self._account()
        except JournalError as error:
            if self._last is None:
                raise
            return f"database: {in_words(self.queued)} queued here: {error}", self._last
        late = f"learner: none has been at work for {age:.0f} s" if age > LATE else ""
        return late, self._last

    def status(self) -> Status:
        """Return how the agent is doing, as the other process said last; an alarm if that is long ago."""
        alarm, account = self._look()
        alarms = account.status.alarms + ((alarm,) if alarm else ())
        return replace(account.status, alarms=alarms)

    def versions(self) -> tuple[Version, ...]:
        """Return all versions of what tasks share, the oldest first."""
        return self._look()[1].versions

    def promote(self, version: int) -> None:
        """Decide by a version from now on."""
        self._order("promote", version=version)

    def rollback(self, version: int) -> None:
        """Decide by an earlier version, and keep to it until another one is promoted."""
        self._order("rollback", version=version)

    def freeze(self, on: bool = True) -> None:
        """Stop learning, or go on."""
        self._order("freeze", on=on)


def in_words(queued: int) -> str:
    """Return how many decisions are queued, as the begin of a sentence.

    Examples
    --------
    >>> in_words(0), in_words(1), in_words(2)
    ('it is away, and nothing is', '1 decision is', '2 decisions are')
    """
    if not queued:
        return "it is away, and nothing is"
    return "1 decision is" if queued == 1 else f"{queued} decisions are"
