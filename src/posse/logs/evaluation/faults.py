"""What is wrong with a log to evaluate: counted, with examples, and said in one message before any number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posse.numerics.checks import BoolArray

MOST_EXAMPLES = 3


class Faults:
    """Counts what makes a log unfit to be evaluated, and remembers the first examples of each kind."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[int, list[str]]] = {}

    def note(self, column: str, what: str, where: BoolArray, name: Callable[[int], str]) -> None:
        """Count the rows of a mask (m,) that are at fault.

        Parameters
        ----------
        column : str
            Where the fault is.
        what : str
            What it is, in the plural.
        where : (m,)
        name : callable
            What a row is called, by its place in the mask.
        """
        if not where.any():
            return
        (places,) = np.nonzero(where)
        count, examples = self.found.get((column, what), (0, []))
        room = MOST_EXAMPLES - len(examples)
        examples = [*examples, *(name(int(place)) for place in places[:room])]
        self.found[column, what] = count + len(places), examples

    def refuse(self, source: str) -> None:
        """Raise if anything is at fault, with all that is."""
        if not self.found:
            return
        listed = "; ".join(
            f"{column}: {count:,} {what}, as {_in_a_row(examples)}"
            for (column, what), (count, examples) in self.found.items()
        )
        raise ValueError(
            f"a log to evaluate must be whole, as what is left out would count. Got {source} with {listed}. "
            "If they may be left out, name a query: select * from 'FILE' where ..."
        )


def _in_a_row(examples: list[str]) -> str:
    return ", ".join(examples)
