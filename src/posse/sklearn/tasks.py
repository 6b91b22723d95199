"""Which task each row of a table belongs to: values of any kind, read, listed and numbered."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.numerics.checks import IntArray, check_choice, check_integer


def split_column(owner: str, table: Any, column: str | int) -> tuple[Any, NDArray[Any]]:
    """Return a table (n, p) without one of its columns, and that column (n,).

    Parameters
    ----------
    owner : str
        Who asks, for messages.
    table : pandas or polars frame, or array-like (n, p)
    column : str or int
        The column's name, if the table has names, or its place from 0 on.

    Examples
    --------
    >>> rest, tasks = split_column("FactorPriorRegressor", [["a", 1.0], ["b", 2.0]], 0)
    >>> rest.tolist(), tasks.tolist()
    ([[1.0], [2.0]], ['a', 'b'])
    """
    if not hasattr(table, "columns"):
        table = np.asarray(table, dtype=None if hasattr(table, "dtype") else object)
        if table.ndim != 2:
            raise ValueError(f"Expected 2D array for {owner}, got {table.ndim}D array instead.")
    n_columns, name = table.shape[1], f"`task_column` of {owner}"
    if isinstance(column, str):
        names = [str(known) for known in getattr(table, "columns", ())]
        if not names:
            raise ValueError(
                f"{name} must be the place of a column where X has no column names. Got {column!r}."
            )
        place = names.index(check_choice(name, column, names))
    else:
        place = check_integer(name, column, 0, n_columns - 1, high_name="columns - 1")
    cells = table.iloc if hasattr(table, "iloc") else table
    return cells[:, [other for other in range(n_columns) if other != place]], np.asarray(cells[:, place])


def check_tasks(owner: str, tasks: Any, n_rows: int) -> NDArray[Any]:
    """Return the tasks of n rows, (n,), or say what is wrong with them.

    Examples
    --------
    >>> check_tasks("FactorPriorRegressor", ["north", None], 2)
    Traceback (most recent call last):
    ValueError: `task` of FactorPriorRegressor must name a task in every row. Got None in row 1.
    """
    values = np.asarray(tasks)
    if values.shape != (n_rows,):
        raise ValueError(
            f"`task` of {owner} must be one value for each of {n_rows} rows. Got {values.shape}."
        )
    if values.dtype.kind not in "iubSU":
        for row, value in enumerate(values.tolist()):
            if _is_missing(value) or (values.dtype.kind == "M" and np.isnat(values[row])):
                raise ValueError(
                    f"`task` of {owner} must name a task in every row. Got {value} in row {row}."
                )
    return values


def _is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, NaN, or what pandas has in their place."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def distinct_tasks(values: NDArray[Any]) -> NDArray[Any]:
    """Return the tasks that occur, (T,): sorted, or by first appearance where they have no order.

    Examples
    --------
    >>> distinct_tasks(np.array(["b", "a", "b"])).tolist()
    ['a', 'b']
    >>> distinct_tasks(np.array(["b", 2, "b"], dtype=object)).tolist()
    ['b', 2]
    """
    found = dict.fromkeys(values.tolist())
    try:
        ordered = sorted(found)
    except TypeError:
        ordered = list(found)
    tasks = np.empty(len(ordered), dtype=values.dtype)
    tasks[:] = ordered
    return tasks


def task_numbers(owner: str, values: NDArray[Any], tasks: NDArray[Any]) -> IntArray:
    """Return the place of each value among T tasks, (n,); -1 for one that is not among them.

    Examples
    --------
    >>> task_numbers("FactorPriorRegressor", np.array(["b", "x"]), np.array(["a", "b"])).tolist()
    [1, -1]
    """
    listed, known = values.tolist(), {task: number for number, task in enumerate(tasks.tolist())}
    texts = [isinstance(value, str) for value in listed], [isinstance(task, str) for task in known]
    if listed and len({*texts[0]}) == len({*texts[1]}) == 1 and texts[0][0] != texts[1][0]:
        kinds = type(next(iter(known))).__name__, type(listed[0]).__name__
        raise ValueError(
            f"`task` of {owner} must be of the kind that was fitted, {kinds[0]}. Got {kinds[1]}."
        )
    return np.fromiter((known.get(value, -1) for value in listed), dtype=np.intp, count=len(listed))
