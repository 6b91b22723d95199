"""What sharing does to those who could lose by it: the worst-off fifth of tasks, and the promise to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posse.core.extras import extra
from posse.core.protocols import Problem
from posse.lab.experiment import Experiment
from posse.lab.registry import family_of
from posse.lab.results import final_rounds, mean_and_ends
from posse.numerics.checks import Array, IntArray

with extra("lab"):
    import polars as pl

# Beyond these ratios to the same rule with each task alone somebody is worse off for having shared.
MEAN_LIMIT, WORST_LIMIT = 1.03, 1.10
# Of the tasks, how many are the worst off, where nobody is known to be beforehand.
WORST_SHARE = 0.2
ALONE = "each task alone"
# What the policies of a rule are called where each task is alone. `shared` fits its rule to the actions.
SAME_RULE = {
    "greedy": ("independent-greedy",),
    "thompson": ("independent-thompson",),
    "ucb": ("independent-ucb",),
    "shared": ("independent-ucb", "independent-thompson"),
}


@dataclass(frozen=True)
class Watch:
    """How the regrets of a problem's tasks are to be looked at.

    Attributes
    ----------
    tasks : (m,) integers, optional
        The problem's `worst_off`: tasks that sharing could hurt, known beforehand.
    units : (T,), optional
        What the regrets of tasks are divided by before they are compared: the problem's `units`.

    Examples
    --------
    >>> Watch(units=np.array([1.0, 10.0])).worst(np.array([3.0, 20.0]))
    3.0
    >>> Watch(tasks=np.array([1])).worst(np.array([3.0, 20.0]))
    20.0
    """

    tasks: IntArray | None = None
    units: Array | None = None

    @classmethod
    def of(cls, problem: Problem) -> Watch:
        """Return what a problem says of its tasks, nothing if it does not know."""
        return cls(getattr(problem, "worst_off", None), getattr(problem, "units", None))

    def mean(self, regrets: Array) -> float:
        """Return the mean over all tasks of regrets (T,), in their units."""
        return float(self._in_units(regrets).mean())

    def worst(self, regrets: Array) -> float:
        """Return the mean of regrets (T,), in their units, over the watched tasks, or the largest fifth."""
        comparable = self._in_units(regrets)
        if self.tasks is not None:
            return float(comparable[self.tasks].mean())
        return float(np.sort(comparable)[-fifth(comparable.size) :].mean())

    def _in_units(self, regrets: Array) -> Array:
        return regrets if self.units is None else regrets / self.units

    def in_words(self, n_tasks: int) -> str:
        """Return who is the worst-off fifth: so many tasks known beforehand, or those of the most regret."""
        if self.tasks is not None:
            return f"{self.tasks.size} of {n_tasks} tasks, known beforehand"
        return f"the {fifth(n_tasks)} of {n_tasks} tasks with the most regret"


def fifth(n_tasks: int) -> int:
    """Return a fifth of the tasks, rounded, and at least one."""
    return max(1, round(WORST_SHARE * n_tasks))


def watches(experiment: Experiment, seeds: Iterable[int]) -> dict[int, Watch]:
    """Return what the problem of each seed says of its tasks: it is drawn again, nothing is played.

    If the first seed's problem has nothing to say, the others are not drawn.
    """
    (cell,) = experiment.cells
    found: dict[int, Watch] = {}
    for seed in seeds:
        first = next(iter(found.values()), None)
        silent = first is not None and first.tasks is None and first.units is None
        found[seed] = Watch() if silent else Watch.of(experiment.draw(cell, seed))
    return found


def worst_off_regrets(table: pl.DataFrame, experiment: Experiment) -> pl.DataFrame:
    """Return the regret of the worst-off fifth under each policy, and ratios to the same rule, tasks alone.

    The worst-off are the problem's `worst_off`, tasks fixed before anything is played; where it names none,
    the fifth of the tasks that has the most regret under the policy in question. The reference of a policy is
    the one that learns each task alone by the same rule, greedy, Thompson or UCB, and the best such policy
    where there is none. Ratios are taken within seeds, and averaged as those of `relative_regrets`. Where
    tasks have units of their own, regrets are divided by them first.

    Parameters
    ----------
    table : DataFrame
        The long table of one problem.
    experiment : Experiment
        Whose table it is; its problems are drawn again to ask for their worst-off.

    Returns
    -------
    DataFrame
        A row per policy, in the order of the table: `policy`; `watched`, who is the worst-off fifth;
        `worst_off`, their mean regret; `same_rule`, the reference; `mean_to_same`, the ratio of the regrets
        of all tasks, and `worst_to_same`, that of the worst-off; each with `..._low` and `..._high`. Null is
        what cannot be said, as what concerns single tasks where the table does not have their regrets.
    """
    means, worst, watched = _samples(table, experiment)
    alone = [name for name in means if family_of(name) == ALONE]
    best = min(alone, key=lambda name: float(means[name].mean()), default=None)
    rows = []
    for policy in means:
        reference = same_rule(policy, alone, best)
        row: dict[str, Any] = {"policy": policy, "watched": watched, "same_rule": reference}
        row |= _ends("worst_off", mean_and_ends(worst[policy]) if worst else NOTHING)
        for name, samples in {"mean_to_same": means, "worst_to_same": worst}.items():
            known = reference is not None and bool(samples)
            row |= _ends(name, paired_ratio(samples[policy], samples[reference]) if known else NOTHING)  # type: ignore[index]
        rows.append(row)
    words = ("policy", "watched", "same_rule")
    return pl.DataFrame(rows, schema={name: pl.String if name in words else pl.Float64 for name in rows[0]})


def same_rule(policy: str, alone: Sequence[str], best: str | None) -> str | None:
    """Return the policy among those that learn each task alone which plays by the rule of another, or `best`.

    Examples
    --------
    >>> alone = ["independent-greedy", "independent-ucb"]
    >>> same_rule("shared-ucb", alone, "independent-greedy"), same_rule("e2tc", alone, "independent-greedy")
    ('independent-ucb', 'independent-greedy')
    """
    if policy in alone:
        return policy
    kind = policy.partition("(")[0]
    rule = next((rule for rule in SAME_RULE if kind.endswith(rule)), "")
    likest = (policy.replace("shared", "independent", 1), *SAME_RULE.get(rule, ()))
    return next((name for name in likest if name in alone), best)


def worse_off(data: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a comparison whose shared policy left somebody worse off, by the point estimate.

    That is a mean ratio to the same rule alone above 1.03, or one of the worst-off fifth above 1.10.
    """
    return [
        row
        for row in data.to_dicts()
        if family_of(row["policy"]) == "posse"
        and ((row["mean_to_same"] or 0.0) > MEAN_LIMIT or (row["worst_to_same"] or 0.0) > WORST_LIMIT)
    ]


def promise(data: pl.DataFrame) -> str:
    """Return a line that says whether somebody is worse off for having shared, and where, with intervals.

    Parameters
    ----------
    data : DataFrame
        What `compare_scenarios` returns.
    """
    shared = [row for row in data.to_dicts() if family_of(row["policy"]) == "posse"]
    judged = [row for row in shared if row["mean_to_same"] is not None]
    if not judged:
        return "Whether anybody was worse off for having shared: there is nothing to judge it by."
    broken = worse_off(data)
    n_scenarios = len({row["scenario"] for row in judged})
    cases = f"{len(judged)} pairs of a shared policy and a scenario, {n_scenarios} scenarios"
    if not broken:
        return (
            f"Nobody was worse off for having shared (mean at most {MEAN_LIMIT:.2f}, worst-off fifth "
            f"{WORST_LIMIT:.2f}) in any of {cases}, by point estimates; the largest ratios were "
            f"{_largest(judged)}."
        )
    found = "; ".join(_in_words(row) for row in broken)
    return (
        f"Somebody was worse off for having shared (mean above {MEAN_LIMIT:.2f}, or worst-off fifth above "
        f"{WORST_LIMIT:.2f}) in {len(broken)} of {cases}, by point estimates: {found}."
    )


def paired_ratio(sample: Array, reference: Array) -> tuple[float | None, float | None, float | None]:
    """Return the geometric mean over seeds of sample / reference, (n,) each, and the ends of its interval.

    The interval is Student's t, of the logarithms, None for one seed. All are None where a value is not
    above 0.

    Examples
    --------
    >>> ratio, low, high = paired_ratio(np.array([1.0, 4.0]), np.array([1.0, 1.0]))
    >>> round(ratio, 6)
    2.0
    """
    if min(sample.min(), reference.min()) <= 0:
        return NOTHING
    mean, low, high = mean_and_ends(np.log(sample / reference))
    return math.exp(mean), None if low is None else math.exp(low), None if high is None else math.exp(high)


def ratio_of_means(sample: Array, reference: Array) -> tuple[float | None, float | None, float | None]:
    """Return mean(sample) / mean(reference) of paired values, (n,) each, and the ends of its interval.

    By the delta method: the logarithm of the ratio varies as the mean of the paired differences of the
    values, each divided by its own mean. Ends are None for one seed; all is None where a mean is not above 0.

    Examples
    --------
    >>> ratio_of_means(np.array([1.0, 5.0]), np.array([0.5, 2.5]))
    (2.0, 2.0, 2.0)
    """
    means = float(sample.mean()), float(reference.mean())
    if min(means) <= 0:
        return NOTHING
    ratio = means[0] / means[1]
    _, low, high = mean_and_ends(sample / means[0] - reference / means[1])
    return (
        ratio,
        None if low is None else ratio * math.exp(low),
        None if high is None else ratio * math.exp(high),
    )


NOTHING = (None, None, None)


def _samples(
    table: pl.DataFrame, experiment: Experiment
) -> tuple[dict[str, Array], dict[str, Array], str | None]:
    """Return for each policy the mean and the worst-off regrets by seed, and who the worst-off are.

    Where the table does not have the regrets of single tasks there is nothing about the worst-off.
    """
    final = final_rounds(table).sort("seed", maintain_order=True)
    order = final["policy"].unique(maintain_order=True).to_list()
    groups = {policy: final.filter(policy=policy) for policy in order}
    if "regret_by_task" not in final.columns or final["regret_by_task"].null_count():
        return {name: some["regret_per_task"].to_numpy() for name, some in groups.items()}, {}, None
    found = watches(experiment, final["seed"].unique().sort().to_list())
    means, worst = {}, {}
    for name, some in groups.items():
        regrets = [
            (found[seed], np.array(values, dtype=np.float64))
            for seed, values in some.select("seed", "regret_by_task").rows()
        ]
        means[name] = np.array([watch.mean(values) for watch, values in regrets])
        worst[name] = np.array([watch.worst(values) for watch, values in regrets])
    n_tasks = len(final["regret_by_task"][0])
    return means, worst, next(iter(found.values())).in_words(n_tasks)


def _ends(name: str, found: tuple[float | None, float | None, float | None]) -> dict[str, float | None]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def _largest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the largest ratio of means among rows, and the largest of the worst-off, in words."""
    names = ("mean_to_same", "worst_to_same")
    return " and ".join(f"{max(row[name] or 0.0 for row in rows):.2f}" for name in names)


def _in_words(row: Mapping[str, Any]) -> str:
    parts = []
    for name, called in (("mean_to_same", "mean"), ("worst_to_same", "worst-off")):
        middle, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
        if middle is not None:
            parts.append(f"{called} {middle:.2f}" + ("" if low is None else f" [{low:.2f}, {high:.2f}]"))
    return f"{row['policy']} in {row['scenario']}: {', '.join(parts)}"
