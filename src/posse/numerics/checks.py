"""Checks at the border: every message names the argument, what it must be, and the value found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
# A message names so many of the values that would have been right.
MOST_NAMED = 50


def check_integer(name: str, value: Any, low: int, high: int | None = None, high_name: str = "") -> int:
    """Return `value` as an int in [low, high], or say what was found.

    Examples
    --------
    >>> check_integer("`rank` of LowRank", 25, 1, 20, high_name="dim")
    Traceback (most recent call last):
    ValueError: `rank` of LowRank must be an integer in [1, dim=20]. Got 25.
    """
    if high is None:
        allowed = f"an integer of at least {low}"
    else:
        allowed = f"an integer in [{low}, {high_name + '=' if high_name else ''}{high}]"
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {allowed}. Got {value!r}.")
    return int(value)


def check_number(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> float:
    """Return `value` as a finite float in [low, high] (or ]low, high]), or say what was found.

    Examples
    --------
    >>> check_number("`penalty` of Ridge", -1, 0)
    Traceback (most recent call last):
    ValueError: `penalty` of Ridge must be a finite number of at least 0. Got -1.
    """
    real = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not real or value < low or (open_low and value == low) or value > high:
        bound = f"above {low:g}" if open_low else f"of at least {low:g}"
        ceiling = "" if np.isinf(high) else f" and at most {high:g}"
        raise ValueError(f"{name} must be a finite number {bound}{ceiling}. Got {value!r}.")
    return float(value)


def check_array(name: str, value: ArrayLike, shape: tuple[int | str, ...]) -> Array:
    """Return `value` as a finite float array whose shape matches; letters stand for any length.

    Examples
    --------
    >>> check_array("`theta`", [[1.0, float("nan")]], ("T", 2))
    Traceback (most recent call last):
    ValueError: `theta` must be finite. Got nan at index (0, 1).
    >>> check_array("`theta`", [1.0, 2.0], ("T", 2))
    Traceback (most recent call last):
    ValueError: `theta` must have shape (T, 2). Got (2,).
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers. Got {value!r}.") from None
    expected = [size if isinstance(size, int) else None for size in shape]
    matches = array.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(expected, array.shape, strict=True)
    )
    if not matches:
        raise ValueError(f"{name} must have shape ({', '.join(map(str, shape))}). Got {array.shape}.")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty. Got shape {array.shape}.")
    check_finite(name, array)
    return array


def check_positive_definite(name: str, matrices: Array) -> float:
    """Return the least eigenvalue of some symmetric matrices, or say why one is not positive definite.

    Examples
    --------
    >>> check_positive_definite("`covariance`", np.diag([1.0, -2.0]))
    Traceback (most recent call last):
    ValueError: `covariance` must be positive definite. Got eigenvalue -2.
    """
    asymmetry = np.abs(matrices - matrices.mT).max()
    if asymmetry > 1e-8 * np.abs(matrices).max():
        raise ValueError(f"{name} must be symmetric. Got entries that differ by {asymmetry:.3g}.")
    least = float(np.linalg.eigvalsh(matrices).min())
    if least <= 0:
        raise ValueError(f"{name} must be positive definite. Got eigenvalue {least:.3g}.")
    return least


def check_orthonormal(name: str, matrices: Array) -> None:
    """Say if columns of some matrices (..., d, k) are not orthonormal.

    Examples
    --------
    >>> check_orthonormal("`basis`", np.ones((2, 1)))
    Traceback (most recent call last):
    ValueError: `basis` must have orthonormal columns. Got products that are off by 1.
    """
    gap = np.abs(matrices.mT @ matrices - np.eye(matrices.shape[-1])).max()
    if gap > 1e-8:
        raise ValueError(f"{name} must have orthonormal columns. Got products that are off by {gap:.3g}.")


def make_generator(name: str, seed: Any) -> np.random.Generator:
    """Return a generator for a seed of at least 0, or the generator that is passed.

    Examples
    --------
    >>> make_generator("`seed`", -1)
    Traceback (most recent call last):
    ValueError: `seed` must be an integer of at least 0. Got -1.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_integer(name, seed, 0))


def check_finite(name: str, array: Array) -> None:
    """Raise on the first NaN or infinite entry, with its place."""
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite. Got {array[where]} at index {where}.")


def check_choice(name: str, value: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`; otherwise suggest the nearest, and list them, up to 50.

    Examples
    --------
    >>> check_choice("policy", "navie", ["pege", "naive"])
    Traceback (most recent call last):
    ValueError: policy must be a known name. Got 'navie'. Did you mean 'naive'? Known are pege, naive.
    >>> check_choice("`path`", "fast", ["auto", "exact"])
    Traceback (most recent call last):
    ValueError: `path` must be one of auto, exact. Got 'fast'.
    """
    options = list(options)
    if value not in options:
        near = difflib.get_close_matches(str(value), options, n=1)
        known = ", ".join(options[:MOST_NAMED])
        if len(options) > MOST_NAMED:
            known += f" and {len(options) - MOST_NAMED:,} more"
        if near:
            raise ValueError(
                f"{name} must be a known name. Got {value!r}. Did you mean {near[0]!r}? Known are {known}."
            )
        raise ValueError(f"{name} must be one of {known}. Got {value!r}.")
    return value
