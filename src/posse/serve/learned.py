"""What an agent has learned of a task, and from whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from posse.core.posterior import Beliefs
from posse.live.agent import Agent
from posse.numerics.checks import Array
from posse.serve.spaces import UnknownError

# So many of the tasks that are most like one are named.
NEIGHBOURS = 5


def tasks_of(agent: Agent) -> list[dict[str, Any]]:
    """Return the tasks of an agent by name, with the rewards that each has learned from."""
    return [{"name": name, "rewards": rewards} for name, rewards in sorted(agent.tasks().items())]


def learned(agent: Agent, task: str) -> dict[str, Any]:
    """Return what is believed of a task by feature, what of a new one, and which tasks are most like it.

    Parameters
    ----------
    agent : Agent
    task : str
        One that it has seen.
    """
    beliefs = agent.beliefs()
    if task not in beliefs or not task:
        raise UnknownError(f"the name of a task must be one that was seen. Got {task!r:.200}.")
    theta, deviation = beliefs[task].theta[0], deviations_of(beliefs[task])
    new_theta, new_deviation = beliefs[""].theta[0], deviations_of(beliefs[""])
    left = np.divide(deviation**2, new_deviation**2, out=np.ones(len(theta)), where=new_deviation > 0)
    weight = np.clip(1.0 - left, 0.0, 1.0)
    names = agent.features() or tuple(f"feature {i}" for i in range(len(theta)))
    effects = [
        {
            "feature": name,
            "estimate": float(theta[i]),
            "deviation": float(deviation[i]),
            "others": float(new_theta[i]),
            "others_deviation": float(new_deviation[i]),
            "weight": float(weight[i]),
        }
        for i, name in enumerate(names)
    ]
    return {
        "task": task,
        "rewards": agent.tasks()[task],
        "effects": effects,
        "alike": alike(task, theta, new_theta, {name: one.theta[0] for name, one in beliefs.items() if name}),
    }


def deviations_of(beliefs: Beliefs) -> Array:
    """Return the standard deviations (d,) of the parameters of one task."""
    return np.asarray(beliefs.deviation[0] * np.linalg.norm(beliefs.root[0], axis=1))


def alike(task: str, theta: Array, centre: Array, others: dict[str, Array]) -> list[dict[str, Any]]:
    """Return the tasks that differ from a new one in the same direction, the nearest first.

    Parameters
    ----------
    task : str
    theta, centre : (d,)
        Parameters of the task, and those expected of a task that was never seen.
    others : dict of str to (d,)
        Parameters of all tasks.

    Examples
    --------
    >>> import numpy as np
    >>> alike("a", np.array([1.0, 0.0]), np.zeros(2), {"a": np.ones(2), "b": np.array([2.0, 0.0])})
    [{'name': 'b', 'likeness': 1.0}]
    """
    own = theta - centre
    length = float(np.linalg.norm(own))
    found = []
    for name, other in others.items():
        away = other - centre
        scale = length * float(np.linalg.norm(away))
        if name != task and scale > 0.0:
            found.append({"name": name, "likeness": round(float(own @ away) / scale, 6)})
    return sorted(found, key=lambda one: -float(str(one["likeness"])))[:NEIGHBOURS]
