"""The league's scenarios: each one problem that a good policy must cope with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from posse.lab.experiment import Experiment
from posse.suite.contestants import (
    AND_ORACLES,
    FORGETFUL,
    ON_ELLIPSOIDS,
    ON_LISTS,
    ON_STREAMS_OF_BALLS,
)
from posse.suite.scenario import KINDS, Scenario

HORIZON = 10_000
# Where tasks are uneven: short enough that what is learned from others still matters.
UNEVEN_HORIZON = 3000
# d, k and T of the paper's first two figures, beside those of the scenarios of low rank.
PAPER_CELLS = (*product((20, 30), (2, 3, 5), (20,)), (20, 3, 50), (20, 5, 50), (30, 3, 50))
# Of each task of a stream, and how many tasks there are.
STREAM_HORIZON, STREAM_TASKS = 1000, 200


def _scenario(
    name: str,
    title: str,
    reason: str,
    *,
    group: str,
    problem: str,
    policies: tuple[str, ...] = AND_ORACLES,
    horizon: int = HORIZON,
    kind: str = KINDS[0],
    **cell: Any,
) -> Scenario:
    experiment = Experiment(
        name=f"compare_{name.replace('-', '_')}",
        problem=problem,
        cells=(cell,),
        policies=policies,
        horizon=horizon,
        path="contexts",  # whoever joins, or plays a stream by itself, meets the rounds that all others meet
    )
    return Scenario(name=name, group=group, title=title, reason=reason, experiment=experiment, kind=kind)


def _gaussian(name: str, title: str, reason: str, *, group: str, **cell: Any) -> Scenario:
    sizes = {"dim": 20, "rank": 2, "n_tasks": 50, "n_arms": 5}
    return _scenario(name, title, reason, group=group, problem="gaussian", **{**sizes, **cell})


def _hard(
    name: str, title: str, reason: str, *, policies: tuple[str, ...] = AND_ORACLES, **cell: Any
) -> Scenario:
    sizes = {"dim": 20, "rank": 2, "n_tasks": 50, **cell}
    return _scenario(name, title, reason, group="contexts and time", problem=name, policies=policies, **sizes)


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


def _sphere(name: str, n_tasks: int, reason: str, *, title: str = "", **cell: Any) -> Scenario:
    return _scenario(
        name,
        title or f"{n_tasks} tasks on the sphere",
        reason,
        group="infinite actions",
        problem="ellipsoid",
        policies=ON_ELLIPSOIDS,
        kind=KINDS[1],
        **{"dim": 10, "rank": 2, "n_tasks": n_tasks, **cell},
    )


def _paper(dim: int, rank: int, n_tasks: int) -> Scenario:
    return _gaussian(
        f"paper-{dim}-{rank}-{n_tasks}",
        f"d = {dim}, k = {rank}, T = {n_tasks}",
        "A cell of the paper's first two figures.",
        group="the paper's cells",
        dim=dim,
        rank=rank,
        n_tasks=n_tasks,
    )


def _stream(name: str, title: str, reason: str, *, policies: tuple[str, ...], **cell: Any) -> Scenario:
    sizes = {"dim": 10, "rank": 3, "n_tasks": STREAM_TASKS}
    return _scenario(
        name,
        title,
        reason,
        group="streams of tasks",
        problem="stream",
        policies=policies,
        horizon=STREAM_HORIZON,
        kind=KINDS[0] if "offer" in cell else KINDS[2],
        **{**sizes, **cell},
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
    *(_paper(*cell) for cell in PAPER_CELLS),
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
        policies=(*ON_LISTS, *FORGETFUL),
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
    _sphere(
        "sphere-wide",
        50,
        "A representation of five dimensions in twenty takes four times as long to explore.",
        title="50 tasks, d = 20, k = 5",
        dim=20,
        rank=5,
    ),
    _sphere(
        "ellipsoid",
        50,
        "Some directions pay ten times as much as others, and the best action is not along the parameter.",
        title="50 tasks on ellipsoids",
        condition=10.0,
    ),
    _stream(
        "stream-diverse",
        "one by one, diverse",
        "Tasks on the unit ball come one after the other, and soon show all of the representation.",
        policies=ON_STREAMS_OF_BALLS,
    ),
    _stream(
        "stream-late",
        "one by one, columns late",
        "Each direction of the representation appears after a twelfth of all tasks, when exploring was over.",
        policies=ON_STREAMS_OF_BALLS,
        order="late",
    ),
    _stream(
        "stream-adversary",
        "one by one, an adversary",
        "Tasks whose number is a square show one direction, all others what is revealed late.",
        policies=ON_STREAMS_OF_BALLS,
        order="adversary",
    ),
    _stream(
        "stream-unrelated",
        "one by one, unrelated",
        "What finished tasks have shown is of no use to the next; the rank 3 is told all the same.",
        policies=ON_STREAMS_OF_BALLS,
        order="unrelated",
    ),
    _stream(
        "stream-batches",
        "batches of ten, diverse",
        "Ten tasks at a time on the unit ball, all of which end before the next ten start.",
        policies=ON_STREAMS_OF_BALLS,
        batch=10,
    ),
    _stream(
        "stream-lists",
        "batches of ten, lists of arms",
        "Ten tasks at a time choose among arms, and end: does the next batch start better?",
        policies=AND_ORACLES,
        batch=10,
        offer="arms",
    ),
    _scenario(
        "digits",
        "pairs of digits",
        "Images: no linear predictor is exact, and no true representation is there to be told.",
        group="images",
        problem="digits",
        policies=ON_LISTS,
        n_classes=5,
        scaling="norm",
    ),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
