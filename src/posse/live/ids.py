"""Ids that are ordered in time, across restarts."""

from __future__ import annotations

import secrets
from contextlib import suppress

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
    r"""Return a name or id of 1 to 200 characters that files can hold, or say what was found.

    Examples
    --------
    >>> check_text("`id` of ask", "\ud800")
    Traceback (most recent call last):
    ValueError: `id` of ask must be a string of 1 to 200 characters of Unicode. Got '\ud800'.
    """
    if isinstance(value, str) and 0 < len(value) <= MOST_LENGTH and "\x00" not in value:
        with suppress(UnicodeEncodeError):  # half of a surrogate pair is no character
            value.encode()
            return str(value)  # and not a string of NumPy, which files do not hold
    raise ValueError(
        f"{name} must be a string of 1 to {MOST_LENGTH} characters of Unicode. Got {value!r:.200}."
    )
