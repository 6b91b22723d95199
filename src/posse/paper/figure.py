"""What a figure is: runs, drawings of them, and claims that they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.figure import Figure as MatplotlibFigure

from posse.lab.grid import Experiment
from posse.paper.claims import Claim


@dataclass(frozen=True)
class Drawing:
    """A picture of a figure's results.

    Attributes
    ----------
    stem : str
        Names its files.
    draw : callable
        Takes the long table and a title.
    explore : callable
        Makes the panels of a chart of the same, for browsers.
    caption : str
    reading : callable
        Takes the long table, and says what the picture shows of the theory; most say nothing.
    """

    stem: str
    draw: Callable[[pl.DataFrame, str], MatplotlibFigure]
    explore: Callable[[pl.DataFrame], list[Any]]
    caption: str
    reading: Callable[[pl.DataFrame], str] = lambda table: ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the paper, or one of ours beside it: what is run for it, and what it is said to show.

    Attributes
    ----------
    title : str
    experiment : Experiment
    claims : tuple of functions
        Each decides a claim from the long table of results.
    drawings : tuple of Drawing
    setting : mapping
        What all runs have in common, in words.
    remark : str
        What a reader must know to judge the figure fairly.
    columns : mapping
        What tells the cells of the experiment apart: columns of the table, and their headings.
    """

    title: str
    experiment: Experiment
    claims: tuple[Callable[[pl.DataFrame], Claim], ...]
    drawings: tuple[Drawing, ...]
    setting: Mapping[str, str]
    remark: str
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Claims that need the tables of several figures."""

    figures: tuple[str, ...]
    title: str
    claims: tuple[Callable[[dict[str, pl.DataFrame]], Claim], ...]
