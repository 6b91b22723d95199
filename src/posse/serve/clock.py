"""One time for all machines of a service: that of its database."""

from __future__ import annotations

import time


class DatabaseClock:
    """A clock that goes evenly, and is put right by the clock of a database.

    That of the machine may jump, or differ from those of other machines, without anybody taking note.

    Examples
    --------
    >>> clock = DatabaseClock()
    >>> clock.put_right(1_000.0)
    >>> 1_000.0 <= clock() < 1_060.0
    True
    """

    def __init__(self) -> None:
        self.put_right(time.time())

    def put_right(self, now: float) -> None:
        """Take over the time of another clock, in seconds since 1970."""
        self._ahead = now - time.monotonic()

    def __call__(self) -> float:
        """Return the time in seconds since 1970."""
        return time.monotonic() + self._ahead
