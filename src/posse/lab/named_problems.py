"""The problems that have a name. One of posse's own is added here, by one entry."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from posse.core.protocols import Problem
from posse.lab.entries import NamedProblem, linear_problem
from posse.problems import (
    ClassPairs,
    Clicks,
    EllipsoidProblem,
    FixedArms,
    GaussianProblem,
    GreedyTrap,
    LateTasks,
    MovingBasis,
    NarrowContexts,
    StreamProblem,
    UnevenTasks,
)
from posse.problems.images import IMAGE_SETS, load_images

PLAYED = ("shared-greedy", "mlingreedy", "naive", "independent-greedy", "oracle-greedy", "random")
ON_ELLIPSOIDS = ("shared-thompson", "e2tc", "e2tc(subspace=spectral)", "pege", "oracle-commit", "random")
ON_IMAGES = ("mlingreedy", "naive", "independent-greedy(schedule=epochs)", "independent-greedy", "random")
# Of which those are played that suit what is offered.
ON_STREAMS = (
    *("shared-thompson", "shared-ucb", "baron", "bress", "seqrepl"),
    *("independent-thompson", "independent-ucb", "pege-tau", "pege-oracle", "oracle-thompson", "random"),
)
EXPLORING = (
    *("shared-greedy", "shared-thompson", "shared-ucb", "mlingreedy"),
    *("independent-greedy", "independent-thompson", "independent-ucb"),
)
AND_ORACLES = (*EXPLORING, "oracle-greedy", "oracle-thompson")
AND_FORGETFUL = (
    *EXPLORING,
    "shared-greedy(schedule=100, memory=0.9995)",
    "independent-greedy(schedule=100, memory=0.9995)",
)


CONDITION = "Condition number of ellipsoids; 1 is unit balls."


def _class_pairs(name: str, *, n_classes: int, scaling: str, seed: int) -> Problem:
    """Make the problem of an image set; it is the same under every seed."""
    chosen = load_images(name)
    return ClassPairs(
        images=chosen.images,
        labels=chosen.labels,
        brightest=chosen.brightest,
        n_classes=n_classes,
        scaling=scaling,
    )


def _n_pairs(cell: Mapping[str, Any]) -> int:
    return int(cell["n_classes"]) * (int(cell["n_classes"]) - 1) // 2


def _joins_in_time(cell: Mapping[str, Any], horizon: int) -> None:
    last = cell["join"] * cell["waves"]
    if last >= horizon and cell["share"] > 0:
        waves = "" if cell["waves"] == 1 else f" over the {cell['waves']} waves"
        raise ValueError(
            f"`join` of LateTasks must be below the number of rounds, {horizon}{waves}, or nobody joins. "
            f"Got {cell['join']}."
        )


def _uneven(summary: str, **defaults: Any) -> NamedProblem:
    """Return the entry of an `UnevenTasks` that is uneven in one way by default, and in others if asked."""
    return linear_problem(
        summary,
        partial(UnevenTasks.draw, **defaults),
        AND_ORACLES,
        quietest="Least standard deviation of a task's rewards, on a problem with uneven tasks.",
        loudest="Largest standard deviation of a task's rewards.",
        smallest="Least factor of a task's parameters and noise: its unit.",
        largest="Largest factor of a task's parameters and noise.",
        intercept="The first feature is the constant 1.",
        level="Mean of the tasks' intercepts, where there are any.",
        stretch="Factor of every fifth feature; the parameters are divided by it.",
    )


def _suited_to_stream(cell: Mapping[str, Any]) -> tuple[str, ...]:
    return ("any", "finite") if cell["offer"] == "arms" else ("any", "streams", "ellipsoids")


def _images_problem(name: str) -> NamedProblem:
    images = IMAGE_SETS[name]
    return NamedProblem(
        summary=f"pairs of classes as tasks, the larger class pays 1: {images.summary}",
        draw=partial(_class_pairs, name),
        parameters={"n_classes": 10, "scaling": "norm"},
        policies=ON_IMAGES,
        work=lambda cell: _n_pairs(cell) * images.n_pixels**2 // 4,
        options=lambda cell: {"rank": max(1, min(5, _n_pairs(cell))), "penalty": 1e-3},
        help={
            "n_classes": "The first C classes of an image set; their pairs are the tasks.",
            "scaling": "Scale of images: unit brings pixels to [0, 1], norm gives images length 1.",
        },
        images=name,
    )


PROBLEMS: Mapping[str, NamedProblem] = MappingProxyType(
    {
        "gaussian": linear_problem(
            "K arms drawn from N(0, Sigma_t) each round, theta_t = B w_t (Assumption 2)",
            GaussianProblem.draw,
            PLAYED,
            covariance="Covariance of a gaussian problem's arms: isotropic (I/d), unit (I) or random.",
        ),
        "ellipsoid": linear_problem(
            "all of an ellipsoid, the same each round; at condition 1 the unit ball (Assumption 3)",
            EllipsoidProblem.draw,
            ON_ELLIPSOIDS,
            actions="ellipsoids",
            condition=CONDITION,
        ),
        "fixed-arms": linear_problem(
            "K arms for every task that never change: no diversity of contexts", FixedArms.draw, AND_ORACLES
        ),
        "narrow": linear_problem(
            "the arms of each task lie in a few directions of its own",
            NarrowContexts.draw,
            AND_ORACLES,
            n_directions="m, the directions that each task of a narrow problem sees.",
        ),
        "trap": linear_problem(
            "a safe arm and a risky one in every round, built against greedy play",
            GreedyTrap.draw,
            AND_ORACLES,
        ),
        "late": linear_problem(
            "a gaussian problem some of whose tasks join later",
            LateTasks.draw,
            AND_ORACLES,
            check=_joins_in_time,
            share="Share of a late problem's tasks that join later.",
            join="Round at which a late problem's first late tasks join.",
            waves="In how many groups they join, one after the other.",
        ),
        "moving": linear_problem(
            "a shared representation that turns slowly",
            MovingBasis.draw,
            AND_FORGETFUL,
            turn="Turn of a moving problem's representation, in radians per 1000 rounds.",
        ),
        "unequal-noise": _uneven("tasks from quiet to loud", quietest=0.2, loudest=5.0),
        "own-units": _uneven(
            "every task's parameters and noise in a unit of its own", smallest=0.1, largest=10.0
        ),
        "intercept": _uneven("the first feature of every arm is the constant 1", intercept=True),
        "scaled-features": _uneven("every fifth feature a thousand times as large", stretch=1000.0),
        "clicks": linear_problem(
            "rewards of 0 or 1, with a probability linear in the features",
            Clicks.draw,
            AND_ORACLES,
            rate="Mean probability of a reward of a clicks problem.",
            strength="Factor of the parameters of a clicks problem beside the base rate.",
        ),
        "stream": linear_problem(
            "tasks that keep coming, in groups that start and end; nothing is kept of finished ones",
            StreamProblem.draw,
            ON_STREAMS,
            actions="any",
            suited=_suited_to_stream,
            order="Order of a stream's tasks: diverse, late, adversary or unrelated.",
            batch="Tasks of a stream that start and end together.",
            overlap="Groups of a stream's tasks that are played at a time.",
            offer="What a stream's tasks may play: ball, or arms.",
            condition=CONDITION,
            shortest="Least length of a stream's parameters; the largest is 1.",
        ),
        **{name: _images_problem(name) for name in IMAGE_SETS},
    }
)
