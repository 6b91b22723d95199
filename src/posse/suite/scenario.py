"""A scenario of the league: one problem, and the policies that meet on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from posse.lab.entries import SYMBOLS
from posse.lab.experiment import Experiment
from posse.lab.registry import name_policies, problem_title

# The algorithms of the paper, one for each kind of action set.
PAPERS = ("mlingreedy", "e2tc")
# Where tasks may play: policies are ranked among those of one kind.
KINDS = ("lists of arms", "ellipsoids", "streams")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One problem of the suite, and the policies that are compared on it.

    Attributes
    ----------
    name : str
    group : str
        Where it stands in the picture.
    title : str
    reason : str
        One sentence: what is hard about it, or interesting.
    experiment : Experiment
        Of exactly one cell.
    kind : str
        What tasks play: one of `KINDS`. Policies are ranked among scenarios of one kind.
    newcomers : tuple of Experiment
        Further policies on the same problem, each a study of its own, so that one who joins plays alone.
    """

    name: str
    group: str
    title: str
    reason: str
    experiment: Experiment
    kind: str = KINDS[0]
    newcomers: tuple[Experiment, ...] = ()

    def __post_init__(self) -> None:
        found = len(self.experiment.cells)
        if found != 1:
            raise ValueError(f"`experiment` of Scenario must have exactly one cell. Got {found}.")

    def with_policies(self, policies: Sequence[Any] | Mapping[str, Any]) -> Scenario:
        """Return the scenario with further policies; those that it has already are not added twice."""
        if not policies:
            return self
        standing = (*self.experiment.names, *self.further)
        joined = tuple(
            replace(
                self.experiment,
                name=f"{self.experiment.name}_with_{_as_identifier(name)}",
                policies={name: policy},
            )
            for name, policy in name_policies(policies).items()
            if name not in standing
        )
        return replace(self, newcomers=(*self.newcomers, *joined))

    @property
    def further(self) -> tuple[str, ...]:
        """The names of policies that were asked for beside those of the scenario."""
        return tuple(name for study in self.newcomers for name in study.names)

    @property
    def studies(self) -> tuple[Experiment, ...]:
        """Whatever is played: the standing policies, then every newcomer."""
        return (self.experiment, *self.newcomers)

    @property
    def settings(self) -> dict[str, Any]:
        """What is played, by the symbols of the paper where it has them."""
        (cell,) = self.experiment.cells
        parameters = {SYMBOLS.get(name, name): value for name, value in cell.items()}
        return {"problem": problem_title(self.experiment.problem), **parameters, "N": self.experiment.horizon}

    @property
    def paper(self) -> str | None:
        """The algorithm of the paper that is played, if one is."""
        return next((name for name in PAPERS if name in self.experiment.names), None)


def _as_identifier(name: str) -> str:
    """Return a name with an underscore in place of whatever a folder might not like.

    Examples
    --------
    >>> _as_identifier("mine:Shy(share=0.5)")
    'mine_Shy_share_0_5'
    """
    return re.sub(r"\W+", "_", name).strip("_")
