"""Random numbers that depend on a seed and on the number of the decision, and on nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from posse.numerics.checks import make_generator

# PCG64 is a linear congruence modulo 2^128 with this multiplier.
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
MODULUS = 2**128
# A decision has so many numbers to itself before those of the next one begin.
STRIDE = 2**64


class Dice:
    """A generator that is put at the place of each decision: an agent that stopped goes on as if it had not.

    Parameters
    ----------
    seed : int, optional
        Fresh by default.

    Attributes
    ----------
    rng : Generator

    Examples
    --------
    >>> one, other = Dice(7), Dice(7)
    >>> one.place(3)
    >>> _ = one.rng.random(100)
    >>> one.place(4), other.place(4)
    (None, None)
    >>> bool(one.rng.random() == other.rng.random())
    True
    """

    def __init__(self, seed: int | None) -> None:
        made = np.random.default_rng() if seed is None else make_generator("`seed` of Agent", seed)
        self.rng = made
        self._bits = made.bit_generator
        self._state: Any = self._bits.state
        self._start = self._state["state"]["state"]
        self._times, self._plus = _jump(self._state["state"]["inc"], STRIDE)
        self._number, self._at = 0, self._start

    def place(self, number: int) -> None:
        """Put the generator where the numbers of a decision begin."""
        if number != self._number + 1:
            times, plus = _jump(self._state["state"]["inc"], STRIDE * number)
            self._at = (times * self._start + plus) % MODULUS
        else:
            self._at = (self._times * self._at + self._plus) % MODULUS
        self._number = number
        self._state["state"]["state"] = self._at
        self._bits.state = self._state


def _jump(increment: int, steps: int) -> tuple[int, int]:
    """Return a and b so that so many steps lead from s to a s + b, modulo 2^128."""
    times, plus, one, more = 1, 0, MULTIPLIER, increment
    while steps > 0:
        if steps & 1:
            times, plus = times * one % MODULUS, (plus * one + more) % MODULUS
        one, more = one * one % MODULUS, more * (one + 1) % MODULUS
        steps >>= 1
    return times, plus
