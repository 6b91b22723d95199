"""Tasks by number or by name, and arrays of numbers from whatever a caller has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posse.numerics.checks import Array, IntArray, check_integer
from posse.numerics.compiled import compiled


class TaskNames:
    """How many tasks there are, and what they are called, if they have names.

    Parameters
    ----------
    n_tasks : int
        The number of tasks.
    names : sequence of str, optional
        A name for each.
    """

    def __init__(self, n_tasks: int, names: Sequence[str] | None = None) -> None:
        self.n_tasks = 0
        self._numbers: dict[str, int] | None = None
        if names is None:
            self.n_tasks = n_tasks
        else:
            if isinstance(names, str) or len(names) != n_tasks:
                raise ValueError(f"`names` must be one for each of {n_tasks} tasks. Got {names!r:.200}.")
            self._numbers = {}
            self.add(names)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The tasks' names, in order; None if they have none."""
        return None if self._numbers is None else tuple(self._numbers)

    def check_new(self, tasks: int | Sequence[str]) -> int:
        """Return how many tasks are to be added; they are counted, or named, as the others are."""
        known = self._numbers
        if known is None:
            if not isinstance(tasks, int | np.integer):
                raise ValueError(
                    f"tasks to add must be counted, as the others have no names. Got {tasks!r:.200}."
                )
            return check_integer("`tasks` of add", tasks, 1)
        if isinstance(tasks, str | int | np.integer) or not all(isinstance(name, str) for name in tasks):
            raise ValueError(f"names of tasks must be a list of strings. Got {tasks!r:.200}.")
        new = set(map(str, tasks))
        if not new or len(new) < len(tasks) or new & known.keys():
            raise ValueError(f"names of tasks must each be of one task alone. Got {list(tasks)[:10]!r}.")
        return len(new)

    def add(self, tasks: int | Sequence[str]) -> IntArray:
        """Add so many tasks, or tasks of these names, and return their numbers."""
        first, n_new = self.n_tasks, self.check_new(tasks)
        if self._numbers is not None and isinstance(tasks, Iterable):
            self._numbers.update({str(name): first + place for place, name in enumerate(tasks)})
        self.n_tasks += n_new
        return np.arange(first, self.n_tasks)

    def rename(self, number: int, name: str) -> None:
        """Call a task by another name, where tasks have names; its number stays."""
        if self._numbers is not None:
            names = list(self._numbers)
            names[number] = name
            self._numbers = {item: place for place, item in enumerate(names)}

    def numbers(self, tasks: ArrayLike) -> IntArray:
        """Return the numbers of tasks (m,), given by number or by name, or say which is unknown."""
        index = np.asarray(tasks)
        if index.dtype.kind in "UO" and self._numbers is not None:
            index = _look_up(index, self._numbers)
        if index.ndim != 1 or index.dtype.kind not in "iu" or not index.size:
            kind = "numbers" if self._numbers is None else "names or numbers"
            raise ValueError(f"`tasks` must be a list of {kind} of tasks. Got {tasks!r:.200}.")
        if index.dtype != np.intp:
            index = index.astype(np.intp)
        wrong = find_unknown(index, self.n_tasks)
        if wrong >= 0:
            last, number = self.n_tasks - 1, int(index[wrong])
            raise ValueError(f"tasks must be numbers from 0 to {last}, or be added first. Got {number}.")
        return index


def _look_up(names: NDArray[Any], numbers: Mapping[str, int]) -> IntArray:
    """Return the numbers of names, in their shape, or say which is unknown."""
    listed = names.ravel().tolist()
    unknown = [name for name in listed if name not in numbers]
    if unknown:
        raise ValueError(f"a task must be known, or be added first. Got {unknown[0]!r}.")
    return np.array([numbers[name] for name in listed], dtype=np.intp).reshape(names.shape)


def as_numbers(name: str, values: ArrayLike, hint: str = "") -> Array:
    """Return an array of float64 in one piece, or say that values are not numbers or of unequal lengths."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.flags.c_contiguous:
        return values
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"`{name}` must have rows of equal length{hint}. Got some that differ.") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must be numbers. Got {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.float64)


@compiled
def find_unknown(tasks: IntArray, n_tasks: int) -> int:
    """Return the first place of tasks (m,) that holds no number of a task; -1 for none."""
    for n in range(len(tasks)):
        if tasks[n] < 0 or tasks[n] >= n_tasks:
            return n
    return -1
