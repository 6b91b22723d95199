"""Which policy to take: the one whose gain over the logged policy has the highest lower end."""

from __future__ import annotations

from collections.abc import Sequence

from posse.logs.evaluation.result import Choice, Gain
from posse.logs.evaluation.targets import LOGGED


def choose(gains: Sequence[Gain], tasks: Sequence[str], choosing: str, candidates: int) -> tuple[Choice, ...]:
    """Choose a policy by the lower end of its gain, for all tasks together or for each.

    Whoever looks at many policies finds one that looks good. So lower ends hold for all candidates at once
    (Bonferroni): the chance that any of them lies above its gain is at most 1 - level. If none is above 0,
    the logged policy stays.

    Parameters
    ----------
    gains : sequence of Gain
    tasks : sequence of str
    choosing : "pooled" or "tasks"
    candidates : int
        Of how many policies the gains are.

    Examples
    --------
    >>> one = Gain(policy="bold", task=None, gain=0.5, low=-0.1, high=1.1, sure=-0.2, chance_worse=0.05)
    >>> two = Gain(policy="calm", task=None, gain=0.3, low=0.2, high=0.4, sure=0.18, chance_worse=1e-9)
    >>> choose([one, two], [], "pooled", 2)[0].policy
    'calm'
    """
    wanted: list[str | None] = [None] if choosing == "pooled" else list(tasks)
    by_task: dict[str | None, list[Gain]] = {}
    for gain in gains:
        by_task.setdefault(gain.task, []).append(gain)
    return tuple(_best(task, by_task.get(task, []), candidates) for task in wanted)


def _best(task: str | None, gains: Sequence[Gain], candidates: int) -> Choice:
    """Return the choice among candidates of one task."""
    best = max(gains, key=lambda gain: gain.sure, default=None)
    if best is None or best.sure <= 0:
        return Choice(task=task, policy=LOGGED, low=0.0, chance_worse=0.0)
    worse = min(1.0, candidates * best.chance_worse)
    return Choice(task=task, policy=best.policy, low=best.sure, chance_worse=worse)
