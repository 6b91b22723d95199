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
    EllipsoidProblem,
    FixedArms,
    GaussianProblem,
    GreedyTrap,
    LateTasks,
    MovingBasis,
    NarrowContexts,
)
from posse.problems.images import IMAGE_SETS, load_images

PLAYED = ("shared-greedy", "mlingreedy", "naive", "independent-greedy", "oracle-greedy", "random")
ON_ELLIPSOIDS = ("shared-thompson", "e2tc", "e2tc(subspace=spectral)", "pege", "oracle-commit", "random")
ON_IMAGES = ("mlingreedy", "naive", "independent-greedy(schedule=epochs)", "independent-greedy", "random")
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
    if cell["join"] >= horizon and cell["share"] > 0:
        raise ValueError(
            f"`join` of LateTasks must be below the number of rounds, {horizon}, or nobody joins. "
            f"Got {cell['join']}."
        )


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
            condition="Condition number of an ellipsoid problem's sets; 1 is unit balls.",
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
            join="Round at which a late problem's late tasks join.",
        ),
        "moving": linear_problem(
            "a shared representation that turns slowly",
            MovingBasis.draw,
            AND_FORGETFUL,
            turn="Turn of a moving problem's representation, in radians per 1000 rounds.",
        ),
        **{name: _images_problem(name) for name in IMAGE_SETS},
    }
)
