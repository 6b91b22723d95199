"""From what decisions say about policies to estimates with intervals, pooled and by task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from posse.logs.evaluation import estimators as by
from posse.logs.evaluation.estimators import Evidence
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.intervals import (
    FEW_ROWS,
    Interval,
    bernstein,
    bootstrap,
    by_task,
    pooled,
    span_of,
)
from posse.logs.evaluation.models import ALONE, SHARED
from posse.logs.evaluation.result import Gain, Row
from posse.logs.evaluation.sequence import last_of, sequence, sequence_by_task
from posse.logs.evaluation.support import Checked
from posse.logs.evaluation.targets import LOGGED
from posse.numerics.checks import Array, BoolArray, IntArray

# With fewer effective decisions than this the normal law is no guide in a task, however many rows it has.
FEW_EFFECTIVE = 50.0
Terms = Callable[[Evidence, Groups, float], Array]


@dataclass(frozen=True)
class Estimator:
    """How an estimate is made.

    Attributes
    ----------
    terms : callable
        From evidence, groups of rows and the threshold of Switch-DR to terms.
    title : str
        What it is, for tables and pages.
    model : str
        Which model of rewards it asks; "" if none.
    base : str
        Whose interval it has, made longer where its own value lies outside; "" for one of its own. An
        estimator that trades bias for variance has none: its terms do not show the bias.
    """

    terms: Terms
    title: str
    model: str = ""
    base: str = ""


ESTIMATORS: Mapping[str, Estimator] = {
    "dm": Estimator(lambda rows, groups, most: by.direct(rows), "direct method", SHARED, "dr"),
    "ips": Estimator(lambda rows, groups, most: by.ips(rows), "inverse propensity"),
    "snips": Estimator(lambda rows, groups, most: by.snips(rows, groups), "self-normalised"),
    "dr": Estimator(lambda rows, groups, most: by.dr(rows), "doubly robust", SHARED),
    "sndr": Estimator(
        lambda rows, groups, most: by.sndr(rows, groups), "doubly robust, self-normalised", SHARED
    ),
    "switch-dr": Estimator(lambda rows, groups, most: by.switch_dr(rows, most), "Switch-DR", SHARED, "dr"),
    "ips-clipped": Estimator(
        lambda rows, groups, most: by.ips_clipped(rows, groups.spread(by.clipping(groups))),
        "inverse propensity, clipped",
        "",
        "ips",
    ),
    "dr-clipped": Estimator(
        lambda rows, groups, most: by.dr_clipped(rows, groups.spread(by.clipping(groups))),
        "doubly robust, clipped",
        SHARED,
        "dr",
    ),
    "dm-alone": Estimator(
        lambda rows, groups, most: by.direct(rows), "direct method, each task alone", ALONE, "dr-alone"
    ),
    "dr-alone": Estimator(lambda rows, groups, most: by.dr(rows), "doubly robust, each task alone", ALONE),
}
# The estimator that gains over the logged policy are told by; without a model, the next.
USUAL, WITHOUT_MODEL = "dr", "snips"
INTERVALS = ("asymptotic", "bootstrap", "bernstein", "sequence")


@dataclass(frozen=True, eq=False, kw_only=True)
class Intervals:
    """How intervals are made of terms.

    Attributes
    ----------
    kind : str
    level : float
    tasks : Groups
        Of the n decisions.
    still : (T,), or empty
        Tasks whose rewards are all equal: what others would have been is not in the log.
    order : (n,), or empty
        The decisions in the order of time, for kinds that need it.
    seed : int
        Of the bootstrap.
    """

    kind: str
    level: float
    tasks: Groups
    still: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    order: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    seed: int = 0

    def of_all(self, terms: Array, *, doubtful: bool, least: float = 0.0) -> Interval:
        """Return the interval of the mean of terms (n,), a cautious one if it is doubtful or they are few.

        Their variance is taken for `least` at the least.
        """
        if self.kind == "bootstrap":
            return bootstrap(terms, self.tasks, self.level, np.random.default_rng(self.seed))
        if self.kind == "sequence":
            low, high = sequence(terms[self.order], self.level, span_of(terms), least)
            counts = np.array([float(len(terms))])
            return last_of(np.array([terms.mean()]), low[-1:], high[-1:], counts, self.level)
        if self.kind == "bernstein" or doubtful or len(terms) < FEW_ROWS:
            return bernstein(terms, Groups.one(len(terms)), self.level, span_of(terms), least)
        return pooled(terms, self.tasks, self.level, least)

    def of_tasks(self, terms: Array, doubtful: BoolArray, least: Array | float = 0.0) -> Interval:
        """Return the interval of the mean of terms (n,) of each task; doubtful ones (T,) are cautious.

        Variances are taken for `least`, (T,) or one number, at the least. Where rewards are all equal there
        is none.
        """
        found = self._of_tasks(terms, doubtful, least)
        if not self.still.any():
            return found
        low, high = (np.where(self.still, np.nan, end) for end in (found.low, found.high))
        return replace(found, low=low, high=high)

    def _of_tasks(self, terms: Array, doubtful: BoolArray, least: Array | float) -> Interval:
        if self.kind == "bernstein":
            return bernstein(terms, self.tasks, self.level, span_of(terms), least)
        if self.kind == "sequence":
            return sequence_by_task(terms, self.tasks, self.order, self.level, least)
        return by_task(terms, self.tasks, self.level, doubtful, least)


def rows_of(
    policy: str,
    evidence: Mapping[str, Evidence],
    checked: Checked,
    intervals: Intervals,
    names: tuple[str, ...],
    threshold: float,
    *,
    direct: bool,
) -> Iterator[Row]:
    """Yield all estimates of a policy: pooled, then by task; without numbers where nothing can be said.

    Parameters
    ----------
    policy : str
    evidence : mapping of str to Evidence
        By the model that it was predicted by; under "" there is one without a model.
    checked : Checked
        Where something can be said.
    intervals : Intervals
    names : tuple of str
        Of tasks.
    threshold : float
        Of Switch-DR.
    direct : bool
        Whether the direct method is to answer where nothing can be said.
    """
    doubts = Doubts.of(checked)
    one, each = intervals_of(evidence, intervals, doubts, threshold)
    told = checked.told
    for name in (name for name in ESTIMATORS if name in one):
        says = _says(name, checked.pooled.reason is None, direct=direct)
        yield _row(policy, name, None, one[name], 0, checked.pooled.ess, says)
    for place, task in enumerate(names):
        for name in (name for name in ESTIMATORS if name in each):
            says = _says(name, bool(told[place]), direct=direct)
            yield _row(policy, name, task, each[name], place, checked.tasks[place].ess, says)


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubts:
    """Where the normal law is no guide: a policy has few effective decisions, or plays what nobody tried.

    Attributes
    ----------
    pooled : bool
        Of all tasks together; arms that nobody tried in one of many do not count.
    tasks : (T,)
    """

    pooled: bool
    tasks: BoolArray

    @classmethod
    def of(cls, checked: Checked) -> Doubts:
        """Return them from what was looked at before."""
        tasks = [one.unsupported > 0 or one.ess < FEW_EFFECTIVE for one in checked.tasks]
        pooled = checked.pooled.ess < FEW_EFFECTIVE or (len(tasks) == 1 and tasks[0])
        return cls(pooled=pooled, tasks=np.array(tasks, dtype=np.bool_))


def intervals_of(
    evidence: Mapping[str, Evidence], intervals: Intervals, doubts: Doubts, threshold: float
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return the intervals of all estimators that there is evidence for: pooled, and by task."""
    everyone, tasks = Groups.one(len(intervals.tasks.index)), intervals.tasks
    one: dict[str, Interval] = {}
    each: dict[str, Interval] = {}
    for name in sorted(ESTIMATORS, key=lambda name: ESTIMATORS[name].base != ""):  # bases first
        made = ESTIMATORS[name]
        if made.model not in evidence:
            continue
        rows = evidence[made.model]
        terms, own = made.terms(rows, everyone, threshold), made.terms(rows, tasks, threshold)
        if made.base:
            one[name] = one[made.base].stretched(everyone.means(terms))
            each[name] = each[made.base].stretched(tasks.means(own))
        else:
            one[name] = intervals.of_all(terms, doubtful=doubts.pooled)
            each[name] = intervals.of_tasks(own, doubts.tasks)
    return one, each


def _says(name: str, told: bool, *, direct: bool) -> str:
    """Return what is said: "all" with an interval, the "value" alone, or "nothing"."""
    if told:
        return "all"
    return "value" if direct and name == "dm" else "nothing"


def _row(
    policy: str, estimator: str, task: str | None, found: Interval, place: int, ess: float, says: str
) -> Row:
    value, low, high = (
        float(part[place]) if np.isfinite(part[place]) else None
        for part in (found.value, found.low, found.high)
    )
    if says != "all":
        low = high = None
        value = value if says == "value" else None
    return Row(policy=policy, estimator=estimator, task=task, value=value, low=low, high=high, ess=float(ess))


def logged_rows(rewards: Array, intervals: Intervals, names: tuple[str, ...]) -> Iterator[Row]:
    """Yield what the logged policy earned: pooled, then by task."""
    tasks = intervals.tasks
    one = intervals.of_all(rewards, doubtful=False)
    each = intervals.of_tasks(rewards, np.zeros(tasks.n_groups, dtype=np.bool_))
    yield _row(LOGGED, "mean", None, one, 0, float(len(rewards)), "all")
    for place, task in enumerate(names):
        says = "all" if tasks.counts[place] else "nothing"
        yield _row(LOGGED, "mean", task, each, place, tasks.counts[place], says)


def gains_of(
    policy: str,
    evidence: Mapping[str, Evidence],
    checked: Checked,
    intervals: Intervals,
    names: tuple[str, ...],
    candidates: int,
) -> Iterator[Gain]:
    """Yield by how much a policy is better than the logged one: pooled, then by task, where known.

    The candidates of a choice are so many.
    """
    name = USUAL if ESTIMATORS[USUAL].model in evidence else WITHOUT_MODEL
    made = ESTIMATORS[name]
    rows = evidence[made.model]
    everyone, tasks = Groups.one(len(rows.rewards)), intervals.tasks
    left = rows.left if made.model else rows.rewards
    least, floors = (_least_variances(rows.weights, left, groups) for groups in (everyone, tasks))
    del left  # a log may be long
    doubts = Doubts.of(checked)
    # of two sides a level leaves alpha / candidates above
    sure = replace(intervals, level=max(0.5, 1.0 - 2.0 * (1.0 - intervals.level) / candidates))
    if checked.pooled.reason is None:
        beyond = made.terms(rows, everyone, np.inf) - rows.rewards
        both = (
            one.of_all(beyond, doubtful=doubts.pooled, least=float(least[0])) for one in (intervals, sure)
        )
        yield from _gains(policy, [None], [0], *both)
    beyond = made.terms(rows, tasks, np.inf) - rows.rewards
    np.nan_to_num(beyond, copy=False)
    both = (one.of_tasks(beyond, doubts.tasks, np.nan_to_num(floors)) for one in (intervals, sure))
    yield from _gains(policy, names, np.flatnonzero(checked.told).tolist(), *both)


def _least_variances(weights: Array, left: Array, groups: Groups) -> Array:
    """Return the least variances (G,) that are believed of gains, from weights (n,) and residuals (n,).

    A gain is (w - 1) (r - q), but for what a model says. Rare rewards meet heavy weights so seldom that a log
    may show none of them together, and scatter far too small; but both are seen apart: were they independent,
    the variance would be the product of their mean squares.
    """
    return np.asarray(groups.means((weights - 1.0) ** 2) * groups.means(groups.deviations(left) ** 2))


def _gains(
    policy: str, names: Sequence[str | None], places: Sequence[int], found: Interval, sure: Interval
) -> Iterator[Gain]:
    for place in places:
        if np.isfinite(found.low[place]):
            yield Gain(
                policy=policy,
                task=names[place],
                gain=float(found.value[place]),
                low=float(found.low[place]),
                high=float(found.high[place]),
                sure=float(sure.low[place]),
                chance_worse=float(found.chance[place]),
            )
