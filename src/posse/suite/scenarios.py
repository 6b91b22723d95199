"""The benchmark suite: named scenarios, each one problem that a good policy must cope with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from posse.lab.entries import SYMBOLS
from posse.lab.experiment import Experiment
from posse.lab.registry import name_policies, problem_title

HORIZON = 10_000
# Where tasks are uneven: short enough that what is learned from others still matters.
UNEVEN_HORIZON = 3000
SHARED = ("shared-greedy", "shared-thompson", "shared-ucb")
INDEPENDENT = ("independent-greedy", "independent-thompson", "independent-ucb")
NO_ORACLE = (*SHARED, "mlingreedy", *INDEPENDENT)
FINITE = (*NO_ORACLE, "oracle-greedy", "oracle-thompson")
SPHERE = (
    "shared-greedy",
    "shared-thompson",
    "e2tc",
    "e2tc(subspace=spectral)",
    "pege",
    "independent-greedy",
    "independent-thompson",
    "oracle-thompson",
    "oracle-commit",
)
IMAGES = (
    "shared-greedy",
    "shared-thompson",
    "mlingreedy",
    "independent-greedy",
    "independent-thompson",
    "naive",
)
# The algorithms of the paper, one for each kind of action set.
PAPERS = ("mlingreedy", "e2tc")


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
    further : tuple of str
        The names of policies that were asked for beside those of the scenario.
    """

    name: str
    group: str
    title: str
    reason: str
    experiment: Experiment
    further: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = len(self.experiment.cells)
        if found != 1:
            raise ValueError(f"`experiment` of Scenario must have exactly one cell. Got {found}.")

    def with_policies(self, policies: Sequence[Any] | Mapping[str, Any]) -> Scenario:
        """Return the scenario with further policies; those that it has already are not added twice."""
        if not policies:
            return self
        further = name_policies(policies)
        together = {**name_policies(self.experiment.policies), **further}
        return replace(self, experiment=replace(self.experiment, policies=together), further=tuple(further))

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


def _scenario(
    name: str,
    title: str,
    reason: str,
    *,
    group: str,
    problem: str,
    policies: tuple[str, ...] = FINITE,
    horizon: int = HORIZON,
    **cell: Any,
) -> Scenario:
    experiment = Experiment(
        name=f"compare_{name.replace('-', '_')}",
        problem=problem,
        cells=(cell,),
        policies=policies,
        horizon=horizon,
    )
    return Scenario(name=name, group=group, title=title, reason=reason, experiment=experiment)


def _gaussian(name: str, title: str, reason: str, *, group: str, **cell: Any) -> Scenario:
    sizes = {"dim": 20, "rank": 2, "n_tasks": 50, "n_arms": 5}
    return _scenario(name, title, reason, group=group, problem="gaussian", **{**sizes, **cell})


def _hard(name: str, title: str, reason: str, *, policies: tuple[str, ...] = FINITE, **cell: Any) -> Scenario:
    sizes = {"dim": 20, "rank": 2, "n_tasks": 50}
    return _scenario(
        name, title, reason, group="contexts and time", problem=name, policies=policies, **sizes, **cell
    )


def _uneven(name: str, title: str, reason: str, *, problem: str = "", **cell: Any) -> Scenario:
    sizes = {"dim": 20, "rank": 2, "n_tasks": 30, "n_arms": 5}
    return _scenario(
        name,
        title,
        reason,
        group="where real data live",
        problem=problem or name,
        horizon=UNEVEN_HORIZON,
        **{**sizes, **cell},
    )


def _sphere(name: str, n_tasks: int, reason: str) -> Scenario:
    return _scenario(
        name,
        f"{n_tasks} tasks on the sphere",
        reason,
        group="infinite actions",
        problem="ellipsoid",
        policies=SPHERE,
        dim=10,
        rank=2,
        n_tasks=n_tasks,
    )


_ALL = (
    _gaussian(
        "few-tasks",
        "10 tasks of rank 2",
        "Ten tasks have little to tell each other: does sharing pay as early as this?",
        group="low rank",
        n_tasks=10,
    ),
    _gaussian(
        "many-tasks",
        "50 tasks of rank 2",
        "The home ground of sharing: many tasks, and a representation of two dimensions in twenty.",
        group="low rank",
    ),
    _gaussian(
        "high-rank-few",
        "10 tasks of rank 5",
        "The representation has more than half as many unknowns as all tasks together have on their own.",
        group="low rank",
        dim=30,
        rank=5,
        n_tasks=10,
    ),
    _gaussian(
        "high-rank-many",
        "100 tasks of rank 5",
        "A larger representation, and tasks enough to learn it.",
        group="low rank",
        dim=30,
        rank=5,
        n_tasks=100,
    ),
    _gaussian(
        "unrelated-few",
        "10 unrelated tasks",
        "Nothing is shared, so whoever shares by force pays for it; MLinGreedy is told the rank 2.",
        group="other structures",
        n_tasks=10,
        structure="unrelated",
    ),
    _gaussian(
        "unrelated",
        "50 unrelated tasks",
        "Nothing is shared, and many tasks are more to be misled by; MLinGreedy is told the rank 2.",
        group="other structures",
        structure="unrelated",
    ),
    _gaussian(
        "outliers",
        "one outlier in five",
        "Every fifth task has nothing to do with the representation that the others share.",
        group="other structures",
        structure="outliers",
    ),
    _gaussian(
        "approximate",
        "nearly of rank 2",
        "Beside the shared part of length 1 each task has one of its own, of length 0.3.",
        group="other structures",
        structure="approximate",
    ),
    _gaussian(
        "common-mean",
        "around a common mean",
        "The tasks share a point rather than a subspace, and differ from it in all directions; MLinGreedy is "
        "told the rank 2.",
        group="other structures",
        structure="common-mean",
    ),
    _hard(
        "late",
        "half of the tasks join late",
        "Half of the tasks join at round 2000: can a newcomer use what the others have learned?",
        n_arms=5,
        share=0.5,
        join=2000,
    ),
    _hard(
        "moving",
        "a representation that turns",
        "The representation turns by 0.1 radians every 1000 rounds, so that old rounds mislead; there is no "
        "oracle.",
        policies=(
            *NO_ORACLE,
            "shared-greedy(schedule=100, memory=0.9995)",
            "independent-greedy(schedule=100, memory=0.9995)",
        ),
        n_arms=5,
        turn=0.1,
    ),
    _hard(
        "fixed-arms",
        "arms that never change",
        "Greedy play that has settled on an arm learns nothing about the others.",
        n_arms=10,
    ),
    _hard(
        "narrow",
        "three directions per task",
        "A task has three numbers to learn, and sees too little to show the representation by itself.",
        n_arms=5,
        n_directions=3,
    ),
    _hard(
        "trap",
        "a trap for greedy play",
        "A good arm that was unlucky looks worse than the safe one, and greedy play never tries it again.",
    ),
    _uneven(
        "unequal-noise",
        "from quiet to loud",
        "Standard deviations from 0.2 to 5: a quiet task knows itself, and must not be drowned by loud ones.",
        quietest=0.2,
        loudest=5.0,
    ),
    _uneven(
        "unequal-unrelated",
        "from quiet to loud, unrelated",
        "The same noise and nothing in common, so that quiet tasks can only lose; MLinGreedy is told the "
        "rank 2.",
        problem="unequal-noise",
        structure="unrelated",
        quietest=0.2,
        loudest=5.0,
    ),
    _uneven(
        "own-units",
        "each task in its own unit",
        "Parameters and noise of each task have a factor of their own, from 0.1 to 10, as prices have.",
        smallest=0.1,
        largest=10.0,
    ),
    _uneven(
        "intercept",
        "with an intercept",
        "The first feature is the constant 1, and tasks differ in it around 2: it decides nothing, and is to "
        "be learned all the same.",
        level=2.0,
    ),
    _uneven(
        "clicks",
        "rewards of 0 or 1",
        "The noise depends on the mean, and the mean is linear only between 0 and 1.",
        rate=0.5,
        strength=0.5,
    ),
    _uneven(
        "scaled-features",
        "one feature in five is large",
        "Every fifth feature is a thousand times as large as the others, as raw data have it.",
        stretch=1000.0,
    ),
    _uneven(
        "clusters",
        "five tight clusters",
        "The tasks of a cluster are nearly the same, and clusters have nothing in common.",
        problem="gaussian",
        rank=5,
        structure="clusters",
    ),
    _uneven(
        "half",
        "half of them unrelated",
        "One half shares a representation of rank 2, the other shares nothing with anyone.",
        problem="gaussian",
        structure="half",
    ),
    _uneven(
        "giant",
        "a giant among them",
        "One unrelated task has parameters ten times as long, and pulls what is estimated from all.",
        problem="gaussian",
        structure="giant",
    ),
    _uneven(
        "one-long",
        "one task before all others",
        "A single task plays from the start, and all others join at half time: what can one tell?",
        problem="late",
        share=0.97,
        join=1500,
    ),
    _uneven(
        "newcomers",
        "newcomers in four waves",
        "Six tasks play from the start, and six more join every 500 rounds: do newcomers start better?",
        problem="late",
        share=0.8,
        join=500,
        waves=4,
    ),
    _sphere("sphere-few", 10, "Exploring has a price in every round, and ten tasks have little to share."),
    _sphere(
        "sphere", 50, "Every direction must be explored on purpose, at a price that fifty tasks can share."
    ),
    _sphere("sphere-many", 200, "So many tasks that the representation costs each of them almost nothing."),
    _scenario(
        "digits",
        "pairs of digits",
        "Images: no linear predictor is exact, and no true representation is there to be told.",
        group="images",
        problem="digits",
        policies=IMAGES,
        n_classes=5,
        scaling="norm",
    ),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
