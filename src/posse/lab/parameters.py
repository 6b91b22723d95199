"""Parameters that several policies with a name have, and how those that learn are built from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posse.core.protocols import Policy, Problem, Schedule
from posse.lab.entries import Parameter
from posse.policies import DoublyExponential, Every, Geometric

RANK = Parameter(help="k, the rank that it is told.", option="rank", symbol="k")
SCHEDULE = Parameter(
    help="When it re-estimates: geometric (when rounds have grown by a fifth), epochs (the paper's), or a "
    "number of rounds.",
    default="geometric",
)
MEMORY = Parameter(
    help="What it learns from: all (rounds), epoch (the last one), or a number below 1 by which each round "
    "discounts those before it.",
    default="all",
)
PROMPT = Parameter(help="True, if every reward is to move its own task's posterior at once.", default=False)
LEARNING = {"schedule": SCHEDULE, "memory": MEMORY, "prompt": PROMPT}
THOMPSON_SCALE = Parameter(
    help="How many times the posterior's standard deviation its draws have.", default=1.0
)
UCB_SCALE = Parameter(help="How many standard deviations it is optimistic by.", default=1.0)


def schedule_of(value: Any) -> Schedule:
    """Return the schedule that a text or a number stands for.

    Examples
    --------
    >>> schedule_of(100)
    Every(rounds=100)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return Every(value)
    if value not in ("geometric", "epochs"):
        raise ValueError(
            f"schedule must be geometric, epochs, or a number of rounds of at least 1. Got {value!r}."
        )
    return DoublyExponential() if value == "epochs" else Geometric()


def learning(policy: Callable[..., Policy], **parameters: Parameter) -> dict[str, Any]:
    """Return how a policy with a schedule, and perhaps `prompt`, is built, and its parameters."""

    def build(problem: Problem, *, schedule: Any, **values: Any) -> Policy:
        if values.get("prompt") is False:
            values["prompt"] = None
        return policy(schedule=schedule_of(schedule), **values)

    return {"build": build, "parameters": parameters}
