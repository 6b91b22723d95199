"""Packages that only some parts of posse need: a missing one is one sentence that says how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtraError(ImportError):
    """A package that this part of posse needs is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import packages of an extra; if one is missing, say which extra of posse brings it.

    Parameters
    ----------
    name : str
        An extra of posse, as in `pip install "posse[lab]"`.

    Examples
    --------
    >>> with extra("lab"):
    ...     import no_such_package
    Traceback (most recent call last):
    posse.core.extras.MissingExtraError: this needs no_such_package, which is not installed. ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "a package").partition(".")[0]
        raise MissingExtraError(
            f'this needs {missing}, which is not installed. Get it by: pip install "posse[{name}]"'
        ) from None
