"""What a figure is: runs, charts of them, and claims that they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from posse.core.extras import extra
from posse.lab.experiment import Experiment
from posse.lab.registry import look_of
from posse.lab.results import final_rounds
from posse.lab.study import Study
from posse.paper.claims import Claim
from posse.viz.chart import Chart

with extra("lab"):
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the paper, or one of ours beside it: what is run for it, and what it is said to show.

    Attributes
    ----------
    title : str
    study : Study
        What is run; its name is the figure's.
    claims : tuple of functions
        Each decides a claim from the long table of results.
    charts : callable
        Describes the pictures of the long table of results.
    setting : mapping
        What all runs have in common, in words.
    remark : str
        What a reader must know to judge the figure fairly.
    columns : mapping
        What tells the cells apart: columns of the table, and their headings.
    command : tuple of str
        The arguments with which `posse reproduce` runs it.
    value : str
        The column that is measured.
    estimators : mapping
        For a study that is not of policies: what its column `estimator` holds, as label and summary.
    """

    title: str
    study: Study
    claims: tuple[Callable[[pl.DataFrame], Claim], ...]
    charts: Callable[[pl.DataFrame], tuple[Chart, ...]]
    setting: Mapping[str, str]
    remark: str
    columns: Mapping[str, str]
    command: tuple[str, ...]
    value: str = "regret_per_task"
    estimators: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its study, which is that of its folder of results."""
        return self.study.name

    @property
    def contestants(self) -> Mapping[str, tuple[str, str]]:
        """Label and summary of all that is compared, by the name that it has in the table."""
        if isinstance(self.study, Experiment):
            looks = {name: look_of(name) for name in self.study.names}
            return {name: (look.label, look.summary) for name, look in looks.items()}
        return self.estimators

    @property
    def contest(self) -> str:
        """The column that tells contestants apart."""
        return "estimator" if self.estimators else "policy"

    def final(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a long table that count: those of the last rounds, where there are rounds."""
        return final_rounds(table) if "horizon" in table.columns else table


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Claims that need the tables of several figures.

    Attributes
    ----------
    figures : tuple of str
        Names of the figures.
    title : str
    claims : tuple of functions
        Each decides a claim from the long tables, by the figures' names.
    """

    figures: tuple[str, ...]
    title: str
    claims: tuple[Callable[[Mapping[str, pl.DataFrame]], Claim], ...]

    @property
    def name(self) -> str:
        """The names of its figures, joined by a plus."""
        return "+".join(self.figures)
