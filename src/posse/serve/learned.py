"""What an agent has learned of a task, and from whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from posse.core.posterior import Beliefs
from posse.numerics.checks import Array
from posse.serve.agents import SpaceAgent
from posse.serve.spaces import UnknownError

# So many of the tasks that are most like one are named.
NEIGHBOURS = 5


def tasks_of(agent: SpaceAgent) -> list[dict[str, Any]]:
    """Return the tasks of an agent by name, with the rewards that each has learned from."""
    return [{"name": name, "rewards": rewards} for name, rewards in sorted(agent.tasks().items())]


def narrowed(tasks: list[dict[str, Any]], find: str, most: str | None) -> dict[str, Any]:
    """Return tasks of a name and a number, and how many there are in all.

    Parameters
    ----------
    tasks : list of dict
        With `name` and `rewards`.
    find : str
        What names must contain, in small letters or capitals.
    most : str, optional
        So many tasks at most, those with the most rewards; all by default.

    Examples
    --------
    >>> narrowed([{"name": "Oslo", "rewards": 2}, {"name": "Bergen", "rewards": 3}], "O", "1")
    {'total': 2, 'tasks': [{'name': 'Oslo', 'rewards': 2}]}
    """
    found = [task for task in tasks if find.casefold() in task["name"].casefold()]
    if most is not None:
        if not (most.isascii() and most.isdecimal() and len(most) < 10):
            raise ValueError(f"`most` must be a number of tasks. Got {most!r:.200}.")
        found = sorted(found, key=lambda task: -task["rewards"])[: int(most)]
    return {"total": len(tasks), "tasks": found}


def learned(agent: SpaceAgent, task: str) -> dict[str, Any]:
    """Return what is believed of a task by feature, what of a new one, and which tasks are most like it.

    Parameters
    ----------
    agent : SpaceAgent
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
        "alike": alike(task, {name: one.theta[0] for name, one in beliefs.items() if name}),
    }


def deviations_of(beliefs: Beliefs) -> Array:
    """Return the standard deviations (d,) of the parameters of one task."""
    return np.asarray(beliefs.deviation[0] * np.linalg.norm(beliefs.root[0], axis=1))


def alike(task: str, thetas: dict[str, Array]) -> list[dict[str, Any]]:
    """Return the tasks that differ from the mean of all in the same direction, the most alike first.

    Parameters
    ----------
    task : str
    thetas : dict of str to (d,)
        Parameters of all tasks.

    Examples
    --------
    >>> import numpy as np
    >>> corners = {"a": [1.0, 0.0], "b": [2.0, 0.0], "c": [-3.0, 0.0]}
    >>> alike("a", {name: np.array(theta) for name, theta in corners.items()})
    [{'name': 'b', 'likeness': 1.0}, {'name': 'c', 'likeness': -1.0}]
    """
    away = np.stack(list(thetas.values()))
    away -= away.mean(axis=0)
    lengths = np.linalg.norm(away, axis=1)
    place = list(thetas).index(task)
    scale = lengths * lengths[place]
    likeness = np.divide(away @ away[place], scale, out=np.zeros(len(scale)), where=scale > 0)
    found = [
        {"name": name, "likeness": round(float(one), 6)}
        for name, one, length in zip(thetas, likeness, scale, strict=True)
        if name != task and length > 0.0
    ]
    return sorted(found, key=lambda one: -float(str(one["likeness"])))[:NEIGHBOURS]
