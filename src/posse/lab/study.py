"""What a grid plays: a study has cells, each is played under many seeds, and what is measured is a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from posse.core.extras import extra

with extra("lab"):
    import polars as pl


class Study(Protocol):
    """Cells that can be played under a seed, independently of each other: see `Experiment`."""

    @property
    def name(self) -> str:
        """Names the folder of its results: an identifier."""

    @property
    def cells(self) -> tuple[Mapping[str, Any], ...]:
        """The parameters of each cell, by name; no two cells are equal."""

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns of what is measured, beside those of `columns` and `seed`."""

    @property
    def images(self) -> str | None:
        """The image set that it needs, if it needs one."""

    def parameters(self) -> dict[str, Any]:
        """Return all that decides what its results are, as JSON has it."""

    def columns(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is the same in all rows of a cell's table."""

    def work(self, cell: Mapping[str, Any]) -> int:
        """Return the size of a cell, in numbers to handle."""

    def check(self, cell: Mapping[str, Any]) -> None:
        """Raise what is wrong with a cell, without playing it."""

    def play(self, cell: Mapping[str, Any], seed: int) -> pl.DataFrame:
        """Play a cell under a seed and return the columns of `measured`."""


@dataclass(frozen=True)
class Run:
    """One cell of a study under one seed: the unit of work that is saved and resumed."""

    study: Study
    cell: Mapping[str, Any]
    seed: int

    @property
    def id(self) -> str:
        """A name that people can read, unique in the study."""
        return ",".join(f"{key}={value}" for key, value in {**self.cell, "seed": self.seed}.items())

    @property
    def work(self) -> int:
        """The size of the run, in numbers to handle."""
        return self.study.work(self.cell)

    @property
    def columns(self) -> dict[str, Any]:
        """What is the same in all rows of its table."""
        return {**self.study.columns(self.cell), "seed": self.seed}

    def path(self, out: Path) -> Path:
        """Return where the finished run lies, in a folder of results."""
        return out / self.study.name / "runs" / f"{self.id}.parquet"

    def play(self) -> pl.DataFrame:
        """Play it, and return its table."""
        measured = self.study.play(self.cell, self.seed)
        same = (pl.lit(value).alias(name) for name, value in self.columns.items())
        return measured.select(*same, *self.study.measured)
