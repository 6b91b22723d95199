"""Arms as callers have them, to features: a matrix, names with features, or names with a context."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from numbers import Real
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from posse.core.columns import NumberColumn
from posse.core.encoder import Encoder
from posse.core.tasks import as_numbers
from posse.numerics.checks import Array

# Larger numbers cannot be squared and summed.
LARGEST = 1e75
# Offers of names without a context are made once each, up to this many.
MOST_OFFERS = 256


class Offer(NamedTuple):
    """What is on offer.

    Attributes
    ----------
    names : tuple of str, optional
        Of the arms; None where they are rows of a matrix.
    features : (K, d)
    """

    names: tuple[str, ...] | None
    features: Array


class Offers:
    """Turns arms into features, by the encoder if there is one.

    Parameters
    ----------
    encoder : Encoder, optional
    check : callable, optional
        Raises if arms must not be named, or must be: it is told whether they are.

    Examples
    --------
    >>> Offers(None).read({"red": [1.0, 0.0], "blue": [0.0, 1.0]}, None, known=2)
    Offer(names=('red', 'blue'), features=array([[1., 0.], [0., 1.]]))
    >>> Offers(Encoder(arms=("red", "blue"))).read(["blue"], None, known=3)
    Offer(names=('blue',), features=array([[1., 0., 1.]]))
    """

    def __init__(self, encoder: Encoder | None, check: Callable[[bool], None] | None = None) -> None:
        self.encoder, self._check = encoder, check
        self._known: dict[tuple[str, ...], Offer] = {}
        self._names: set[tuple[str, ...]] = set()
        self._plain = None if encoder is None else PlainNumbers.of(encoder)

    def read(self, arms: Any, context: Mapping[str, Any] | None, known: int | None) -> Offer:
        """Return an offer, or say what is wrong with it.

        Parameters
        ----------
        arms : (K, d), mapping of str to (d,) or to columns, or sequence of str
        context : mapping, optional
            Values of columns that all arms have in common, for the encoder.
        known : int, optional
            d, once it is known; an encoder knows it from the begin.
        """
        offer = self._read(arms, context, known)
        if self._check is not None:
            self._check(offer.names is not None)
        return offer

    def _read(self, arms: Any, context: Mapping[str, Any] | None, known: int | None) -> Offer:
        dim = known if self.encoder is None else self.encoder.dim
        if isinstance(arms, np.ndarray) and arms.dtype.kind != "U":
            return Offer(None, self._checked(arms, None, context, dim))
        if isinstance(arms, Mapping):
            return self._read_mapping(arms, context, dim)
        if not isinstance(arms, Sequence | np.ndarray) or isinstance(arms, str) or not len(arms):
            raise ValueError(f"`arms` must be a matrix, a mapping or a list of names. Got {arms!r:.200}.")
        if isinstance(arms[0], str):
            return self._read_names(_checked_names(arms), context)
        return Offer(None, self._checked(arms, None, context, dim))

    def read_many(self, many: Sequence[Any], known: int | None) -> tuple[list[Offer], Array] | None:
        """Return offers without a context, and their features below each other, read in one go.

        None if arms are not all named, and all given in one way, or something is wrong with them: then `read`
        says what.

        Parameters
        ----------
        many : sequence
            Of arms, as `read` takes them.
        known : int, optional
            As of `read`.
        """
        if not all(type(arms) is dict and arms for arms in many):
            return None
        if self._check is not None:
            self._check(True)
        rows = list(chain.from_iterable(arms.values() for arms in many))
        features = self._features(rows, known)
        if features is None or not np.abs(features).max() <= LARGEST:
            return None
        offers, begin = [], 0
        for arms in many:
            names, begin = self._named(arms), begin + len(arms)
            offers.append(Offer(names, features[begin - len(names) : begin]))
        return offers, features

    def _features(self, rows: list[Any], known: int | None) -> Array | None:
        """Return features of rows that are all lists, or all numbers by name; None if they are not."""
        kinds = set(map(type, rows))
        if kinds == {dict} and self._plain is not None:
            return self._plain.read(rows)
        dim = known if self.encoder is None else self.encoder.dim
        return packed(rows, len(rows[0]) if dim is None else dim) if kinds == {list} else None

    def _named(self, arms: Iterable[str]) -> tuple[str, ...]:
        """Return names of arms as they are, once they were found to be right."""
        names = tuple(arms)
        if names not in self._names:
            names = _checked_names(names)
            if len(self._names) < MOST_OFFERS:
                self._names.add(names)
        return names

    def _read_mapping(
        self, arms: Mapping[str, Any], context: Mapping[str, Any] | None, dim: int | None
    ) -> Offer:
        names = self._named(arms)
        rows = list(arms.values())
        if not isinstance(rows[0], Mapping):
            return Offer(names, self._checked(rows, names, context, dim))
        encoder = self._encoder("features that are named")
        if self._plain is not None and context is None:
            features = self._plain.read(rows)
            if features is not None:
                return Offer(names, self._checked(features, names, None, encoder.dim))
        return Offer(names, self._encoded(encoder, arms, {} if context is None else context))

    def _encoded(self, encoder: Encoder, arms: Mapping[str, Any], common: Mapping[str, Any]) -> Array:
        names, rows = list(arms), list(arms.values())
        wanted = [column.name for column in encoder.columns]
        table = {}
        for column in wanted:
            missing = [name for name, row in arms.items() if column not in row and column not in common]
            if missing:
                raise ValueError(
                    f"arm {missing[0]!r} must have column {column!r}. Got {list(arms[missing[0]])!r}."
                )
            table[column] = [row[column] if column in row else common[column] for row in rows]
        check_numbers(encoder, table)
        features = encoder.encode(table, names if encoder.arms else None)
        return np.ascontiguousarray(np.broadcast_to(features, (len(names), encoder.dim)))

    def _read_names(self, names: tuple[str, ...], context: Mapping[str, Any] | None) -> Offer:
        known = self._known.get(names)
        if known is not None and context is None:
            return known
        encoder = self._encoder("names of arms")
        if not encoder.arms:
            raise ValueError(f"`encoder` of Agent must name the arms. Got none for {list(names)!r:.200}.")
        common = {} if context is None else context
        for column in encoder.columns:
            if column.name not in common:
                raise ValueError(
                    f"`context` of ask must have column {column.name!r}. Got {list(common)!r:.200}."
                )
        table = {name: [value] * len(names) for name, value in common.items()}
        check_numbers(encoder, table)
        offer = Offer(names, np.ascontiguousarray(encoder.encode(table, list(names))))
        if context is None and len(self._known) < MOST_OFFERS:
            self._known[names] = offer
        return offer

    def _encoder(self, what: str) -> Encoder:
        if self.encoder is None:
            raise ValueError(f"{what} need an `encoder` of Agent, or a model with one. Got None.")
        return self.encoder

    def _checked(self, arms: Any, names: tuple[str, ...] | None, context: object, dim: int | None) -> Array:
        if context is not None:
            raise ValueError("`context` must be None where arms are given by their features. Got a context.")
        features = matrix_of(arms)
        if features.ndim != 2 or not features.size or (dim is not None and features.shape[1] != dim):
            wanted = "d" if dim is None else f"d={dim}, as before"
            raise ValueError(f"`arms` must have shape (K, {wanted}). Got {features.shape}.")
        if not np.abs(features).max() <= LARGEST:  # so that NaN is refused, too
            row = int(np.argmin((np.abs(features) <= LARGEST).all(axis=1)))
            name = row if names is None else repr(names[row])
            raise ValueError(f"`arms` must be numbers of at most 1e75. Got {features[row]} for arm {name}.")
        return features


class PlainNumbers:
    """Reads rows of named numbers, each of which is a feature: what most requests are.

    Parameters
    ----------
    encoder : Encoder
        Of numbers alone.
    """

    def __init__(self, encoder: Encoder) -> None:
        columns: Any = encoder.columns
        self._values = itemgetter(*(column.name for column in columns))
        self._mean = np.array([column.mean for column in columns])
        self._scale = np.array([column.scale for column in columns])
        self._constant = int(encoder.intercept)

    @classmethod
    def of(cls, encoder: Encoder) -> PlainNumbers | None:
        """Return a reader for an encoder; None where that has more to do than to standardise numbers."""
        plain = all(isinstance(column, NumberColumn) and not column.missing for column in encoder.columns)
        if not plain or encoder.arms or encoder.interactions or len(encoder.columns) < 2:
            return None
        return cls(encoder)

    def read(self, rows: list[Any]) -> Array | None:
        """Return features (K, d); None if a row is not one of numbers, so that others say what is wrong."""
        try:
            found = packed(list(map(self._values, rows)), len(self._mean))
        except (KeyError, TypeError):
            return None
        if found is None:
            return None
        features = np.empty((len(rows), self._constant + found.shape[1]))
        features[:, : self._constant] = 1.0
        np.subtract(found, self._mean, out=found)
        np.divide(found, self._scale, out=features[:, self._constant :])
        return features


def matrix_of(arms: Any) -> Array:
    """Return rows of numbers as an array, or say that they are not."""
    if type(arms) is list and arms and set(map(type, arms)) == {list}:
        features = packed(arms, len(arms[0]))
        if features is not None:
            return features
    return as_numbers("arms", arms, ": one number for each feature")


def packed(rows: Sequence[Sequence[Any]], width: int) -> Array | None:
    """Return rows of numbers as an array (n, width), in half the time that NumPy takes; None if they are not.

    Examples
    --------
    >>> packed([[1.0, 2], (3, True)], 2)
    array([[1., 2.],
           [3., 1.]])
    >>> packed([[1.0, 2.0], [3.0, "4"]], 2), packed([[1.0], [2.0, 3.0, 4.0]], 2)
    (None, None)
    """
    if not width or set(map(len, rows)) != {width}:
        return None
    found = np.empty((len(rows), width))
    try:
        struct.pack_into(f"{found.size}d", found.data, 0, *chain.from_iterable(rows))
    except (struct.error, OverflowError):  # no numbers, or larger ones than there are
        return None
    return found


def check_numbers(encoder: Encoder, table: Mapping[str, Sequence[Any]]) -> None:
    """Refuse text and numbers out of bounds where an encoder has a number: a log may have them, no request.

    What is missing, None or NaN, is for the encoder.
    """
    for column in encoder.columns:
        if isinstance(column, NumberColumn):
            for value in table[column.name]:
                large = isinstance(value, Real) and abs(float(value)) > LARGEST
                if large or isinstance(value, str | bytes):
                    raise ValueError(
                        f"column {column.name!r} must be numbers of at most 1e75. Got {value!r:.200}."
                    )


def _checked_names(arms: Iterable[str]) -> tuple[str, ...]:
    names = tuple(arms)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"names of arms must be strings, each once. Got {list(names)!r:.200}.")
    return tuple(map(str, names))  # and not strings of NumPy, which files do not hold
