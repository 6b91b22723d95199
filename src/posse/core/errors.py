"""Errors that are not the fault of an argument, and that a user can mend."""

from __future__ import annotations


class PosseError(RuntimeError):
    """Something outside the program went wrong; the message says what, and what can be done."""


class NoDataWarning(UserWarning):
    """An estimator was given statistics of no rows at all."""
