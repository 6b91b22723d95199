"""The algorithms of other papers that have a name. One is added here, by one entry, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from posse.core.protocols import Policy
from posse.lab.entries import Look, NamedPolicy, Parameter
from posse.lab.parameters import (
    LEARNING,
    MEMORY,
    RANK,
    SCHEDULE,
    THOMPSON_SCALE,
    UCB_SCALE,
    learning,
)
from posse.policies import (
    ArmulGreedy,
    Club,
    EbmThompson,
    EbmUCB,
    HierThompson,
    SpectralGreedy,
    TraceNormGreedy,
)
from posse.viz.style import BLACK, BLUE, GREEN, RED, SKY, YELLOW, Style

ALL_DATA: dict[str, Any] = {"schedule": "geometric", "memory": "all"}
IN_EPOCHS = {"schedule": replace(SCHEDULE, default="epochs"), "memory": replace(MEMORY, default="epoch")}
RANK_OR_AUTO = replace(RANK, help="k, the rank that it is told; auto finds out.")


def _scale(help: str, policy: Any) -> Parameter:
    return Parameter(help=help, default=policy.scale, symbol="scale")


def _greedy(policy: Callable[..., Policy], **own: Parameter) -> dict[str, Any]:
    """Return how a greedy policy is built, and its parameters."""
    return learning(policy, **own, schedule=SCHEDULE, memory=MEMORY)


def _in_epochs(policy: Callable[..., Policy], **own: Parameter) -> dict[str, Any]:
    """Return how a policy is built that learns from the last of the paper's epochs, and its parameters."""
    return learning(policy, **own, **IN_EPOCHS)


RIVALS: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "trace-norm": NamedPolicy(
            "TraceNormGreedy",
            "trace-norm penalty, all data, greedy; needs no rank (Cella et al. 2023)",
            "rivals",
            Style(SKY, "square"),
            **_greedy(TraceNormGreedy, scale=_scale("c in its penalty.", TraceNormGreedy)),
            actions="finite",
        ),
        "armul": NamedPolicy(
            "ArmulGreedy",
            "tasks pulled towards prototypes of rank k, in the paper's epochs (ARMUL, Duan and Wang 2023)",
            "rivals",
            Style(GREEN, "hexagon"),
            **_in_epochs(ArmulGreedy, rank=RANK, scale=_scale("C in its penalty.", ArmulGreedy)),
            actions="finite",
            looks=(
                Look(
                    "ArmulGreedy, all data",
                    "ArmulGreedy strengthened: all data, frequent updates",
                    Style(GREEN, "triangle"),
                    ALL_DATA,
                ),
            ),
        ),
        "tian-spectral": NamedPolicy(
            "SpectralGreedy",
            "singular vectors of the tasks' own estimates, tasks free to leave, in epochs (Tian et al. 2025)",
            "rivals",
            Style(YELLOW, "diamond"),
            **_in_epochs(
                SpectralGreedy,
                rank=RANK_OR_AUTO,
                scale=_scale("C in its penalty.", SpectralGreedy),
                outliers=Parameter(help="The share of tasks that may be outliers.", default=0.0),
            ),
            actions="finite",
            looks=(
                Look(
                    "SpectralGreedy, all data",
                    "SpectralGreedy strengthened: all data, frequent updates",
                    Style(YELLOW, "triangle"),
                    ALL_DATA,
                ),
            ),
        ),
        "hier-thompson": NamedPolicy(
            "HierThompson",
            "tasks around a common mean, a prior that is told, Thompson sampling (HierTS, Hong et al. 2022)",
            "rivals",
            Style(BLACK, "square"),
            **learning(
                HierThompson,
                centre=Parameter(help="The length that the mean is expected to have.", default=1.0),
                spread=Parameter(help="The distance from it that tasks are expected to have.", default=1.0),
                noise=Parameter(help="The variance of the noise.", default=1.0),
                scale=THOMPSON_SCALE,
                **LEARNING,
            ),
        ),
        "ebm-thompson": NamedPolicy(
            "EbmThompson",
            "a prior of learned mean and covariance, Thompson sampling (ebmTS, Jiang, Zhu 2025)",
            "rivals",
            Style(BLUE, "diamond"),
            **learning(EbmThompson, scale=THOMPSON_SCALE, **LEARNING),
        ),
        "ebm-ucb": NamedPolicy(
            "EbmUCB",
            "a prior of learned mean and covariance, upper confidence bounds (ebmUCB, Jiang, Zhu 2025)",
            "rivals",
            Style(BLUE, "square"),
            **learning(EbmUCB, scale=replace(UCB_SCALE, default=EbmUCB.scale), **LEARNING),
            actions="finite",
        ),
        "club": NamedPolicy(
            "Club",
            "clusters of tasks, one until they differ, upper confidence bounds (CLUB, Gentile et al. 2014)",
            "rivals",
            Style(RED, "circle"),
            **learning(
                Club,
                scale=_scale("By how much it is optimistic.", Club),
                separation=Parameter(
                    help="How many times their expected errors two tasks must be apart.",
                    default=Club.separation,
                ),
                **LEARNING,
            ),
            actions="finite",
        ),
    }
)
