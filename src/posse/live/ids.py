"""Ids that are ordered in time, across restarts."""

from __future__ import annotations

import secrets

from posse.numerics.checks import check_integer

MOST_LENGTH = 200


class Ids:
    """Makes ids of 29 hexadecimal digits: microseconds since 1970, and 64 bits that no other process has.

    Examples
    --------
    >>> ids = Ids()
    >>> first, second, third = ids.next(1.0), ids.next(1.0), ids.next(2.0)
    >>> first < second < third
    True
    """

    def __init__(self) -> None:
        self._micros = 0
        self._low = secrets.randbits(63)

    def next(self, now: float) -> str:
        """Return an id that comes after all others, `now` being in seconds since 1970."""
        micros = int(now * 1e6)
        if micros > self._micros:
            self._micros, self._low = micros, secrets.randbits(63)
        else:
            self._low += 1
        return f"{self._micros:013x}{self._low:016x}"


def time_of(id: str) -> float:
    """Return when an agent made an id, in seconds since 1970."""
    return check_integer("microseconds of an id", int(id[:13], 16), 0) / 1e6


def check_text(name: str, value: object) -> str:
    """Return a name or id of 1 to 200 characters, or say what was found."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_LENGTH or "\x00" in value:
        raise ValueError(f"{name} must be a string of 1 to {MOST_LENGTH} characters. Got {value!r:.200}.")
    return str(value)  # and not a string of NumPy, which files do not hold
