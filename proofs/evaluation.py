"""How often intervals of off-policy estimates hold the truth, and what sharing saves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posse.logs.evaluation.answers import ESTIMATORS, Doubts, Intervals, intervals_of
from posse.logs.evaluation.decisions import DecisionColumns
from posse.logs.evaluation.estimators import Evidence, switch_threshold
from posse.logs.evaluation.gather import encoder_of, gather
from posse.logs.evaluation.groups import Groups
from posse.logs.evaluation.intervals import FEW_ROWS, Interval, span_of
from posse.logs.evaluation.models import ALONE, SHARED, reward_models, taught_by
from posse.logs.evaluation.reader import DecisionReader
from posse.logs.evaluation.score import score
from posse.logs.evaluation.sequence import FIRST, sequence
from posse.logs.evaluation.support import check_support
from posse.logs.evaluation.targets import make_target
from posse.logs.sources import open_source
from posse.numerics.checks import Array, BoolArray, IntArray
from proofs.decision_logs import LOGGERS, Played, World, aim, learning_logs, lists, play
from proofs.jobs import in_processes

LEVEL, N_TASKS, N_ARMS, DIM = 0.95, 50, 3, 2
# Parts of a log: each has models that were learned from the other; forward in time two of three count.
PARTS, WINDOWS = 2, 3
ROLES: dict[str, Any] = {"task": "shop", "reward": "sold", "arm": "offer", "propensity": "chance"}
AIM = "column:aim"
ROWS = (20, 200, 2000)
# So many logs are counted in one call of a process.
BATCH = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """What a log says about the policy `aim`, before any interval.

    Attributes
    ----------
    evidence : mapping of str to Evidence
        By model.
    tasks : Groups
        Of the n decisions.
    order : (n,)
        The decisions in the order of time.
    doubts : Doubts
        Where intervals are cautious.
    told : (T,)
        Tasks about which something can be said.
    threshold : float
        Of Switch-DR.
    """

    evidence: Mapping[str, Evidence]
    tasks: Groups
    order: IntArray
    doubts: Doubts
    told: BoolArray
    threshold: float

    def intervals(self, kind: str, seed: int = 0) -> tuple[dict[str, Interval], dict[str, Interval]]:
        """Return the intervals of all estimators, of all tasks together and of each."""
        made = Intervals(kind=kind, level=LEVEL, tasks=self.tasks, order=self.order, seed=seed)
        return intervals_of(self.evidence, made, self.doubts, self.threshold)


def look(world: World, played: Played, *, forward: bool, parts: int = PARTS) -> Case:
    """Return what a log says about the policy `aim`, with all that `evaluate` does on the way."""
    chances = aim(world, played.tasks, played.contexts)
    source = open_source(played.table().append_column("aim", lists(chances)))
    columns = DecisionColumns(**ROLES, time="time" if forward else None)
    features = [f"x{place}" for place in range(1, played.contexts.shape[1])]
    encoder = encoder_of(source, columns, features, None, ["aim"])
    reader = DecisionReader(source, columns, encoder, targets=["aim"])
    logged = gather(reader, WINDOWS if forward else parts, 0)
    taught = taught_by(logged.statistics, forward=forward)
    target = make_target(AIM, AIM, logged.statistics, encoder, tasks=logged.names, forward=forward, seed=0)
    found = score(logged, {AIM: target}, reward_models(taught, encoder))
    one, rewards = found.targets[AIM], logged.rewards[logged.counted]
    weights = one.chances / found.propensities
    tasks = Groups(logged.tasks.index[logged.counted], logged.tasks.n_groups)
    checked = check_support(AIM, weights, one.unsupported, tasks, logged.names, whole=False, certain=False)
    evidence = {
        model: Evidence(
            weights=weights, rewards=rewards, expected=one.expected[model], predicted=found.predicted[model]
        )
        for model in (SHARED, ALONE)
    }
    return Case(
        evidence={**evidence, "": evidence[SHARED]},
        tasks=tasks,
        order=np.argsort(logged.times[logged.counted], kind="stable") if forward else np.arange(len(weights)),
        doubts=Doubts.of(checked),
        told=checked.told,
        threshold=switch_threshold(evidence[SHARED]),
    )


def given(world: World, played: Played) -> Case:
    """Return what a log says about the policy `aim` where models of rewards are given, rough ones.

    Intervals are about terms given the models, whoever made these: so whether intervals hold can be seen
    without a fit for each log.
    """
    chances = aim(world, played.tasks, played.contexts)
    weights = np.take_along_axis(chances, played.arms[:, None], axis=1)[:, 0] / played.propensities
    tasks = Groups(played.tasks, world.shape[0])
    names = [str(task) for task in range(world.shape[0])]
    nothing = np.zeros(len(names))
    checked = check_support(AIM, weights, nothing, tasks, names, whole=False, certain=False)
    evidence = {}
    for model, rough in ((SHARED, 0.3), (ALONE, 0.6)):
        off = rough * np.random.default_rng(1).standard_normal(world.theta.shape)
        means = replace(world, theta=world.theta + off).means(played.tasks, played.contexts)
        evidence[model] = Evidence(
            weights=weights,
            rewards=played.rewards,
            expected=np.vecdot(chances, means),
            predicted=np.take_along_axis(means, played.arms[:, None], axis=1)[:, 0],
        )
    return Case(
        evidence={**evidence, "": evidence[SHARED]},
        tasks=tasks,
        order=np.arange(len(weights)),
        doubts=Doubts.of(checked),
        told=checked.told,
        threshold=switch_threshold(evidence[SHARED]),
    )


class Tally:
    """Counts how often intervals held the truth, over logs."""

    def __init__(self) -> None:
        self.found: dict[str, list[Any]] = {}

    def add(self, name: str, held: Any) -> None:
        """Count one log: whether an interval held; or those of tasks, NaN where one does not count."""
        self.found.setdefault(name, []).append(held)

    def take(self, other: Tally) -> None:
        """Count the logs that another one has counted, too."""
        for name, held in other.found.items():
            self.found.setdefault(name, []).extend(held)

    def summary(self) -> dict[str, Any]:
        """Return, for all intervals, how many of 1,000 held: pooled, or of tasks with the worst-off one."""
        found = {name: _of_a_thousand(np.array(held, dtype=np.float64)) for name, held in self.found.items()}
        return {name: one for name, one in found.items() if one != {"counted": 0.0}}


def _of_a_thousand(held: Array) -> Any:
    if held.ndim == 1:
        return round(1000 * float(held.mean()))
    counts = np.sum(np.isfinite(held), axis=0)
    if not counts.any():
        return {"counted": 0.0}
    usual = counts >= counts.max() / 2  # tasks that seldom count would be worst off by chance
    shares = np.nansum(held, axis=0) / np.maximum(counts, 1)
    return {
        "tasks": round(1000 * float(np.nanmean(held))),
        "worst-off task": round(1000 * float(shares[usual].min())),
        "counted": round(float(np.isfinite(held).mean()), 3),
    }


def covers(interval: Interval, truth: Array | float) -> Array:
    """Return whether intervals hold the truth, 1 or 0; NaN where there is none."""
    held = (interval.low <= truth) & (truth <= interval.high)
    return np.where(np.isfinite(interval.low) & np.isfinite(interval.high), held, np.nan)


def count(world: World, cases: Iterable[Case]) -> Tally:
    """Count which intervals hold the truth: pooled and by task, of every kind and estimator."""
    truth, tally = world.values(aim), Tally()
    for case in cases:
        few = case.doubts.tasks | (case.tasks.counts < FEW_ROWS)
        one, each = case.intervals("asymptotic")
        whole = float(np.average(truth, weights=case.tasks.counts))
        for name in ESTIMATORS:
            tally.add(f"asymptotic, {name}", covers(one[name], whole)[0])
            held = np.where(case.told, covers(each[name], truth), np.nan)
            tally.add(f"asymptotic by task, {name}", np.where(few, np.nan, held))
            tally.add(f"Bernstein in its place, {name}", np.where(few, held, np.nan))
        one, each = case.intervals("bernstein")
        tally.add("bernstein, dr", covers(one["dr"], whole)[0])
        tally.add("bernstein by task, dr", covers(each["dr"], truth))
        _follow(case, truth, tally)
    return tally


def _follow(case: Case, truth: Array, tally: Tally) -> None:
    """Count confidence sequences that hold at all times, of all tasks together and of each."""
    shares = np.cumsum(truth[case.tasks.index[case.order]]) / np.arange(1, len(case.order) + 1)
    everyone = Groups.one(len(case.order))
    for name in ("ips", "dr", "dr-alone"):
        made = ESTIMATORS[name]
        terms = made.terms(case.evidence[made.model], everyone, np.inf)[case.order]
        span = span_of(terms)
        tally.add(f"sequence, {name}", _always(terms, shares, span))
        if len(terms) >= FIRST * case.tasks.n_groups:
            ordered = case.tasks.index[case.order]
            held = [_always(terms[ordered == task], truth[task], span) for task in range(case.tasks.n_groups)]
            tally.add(f"sequence by task, {name}", np.array(held))


def _always(terms: Array, truth: Array | float, span: float) -> float:
    low, high = sequence(terms, LEVEL, span)
    return float(np.all((low <= truth) & (truth <= high)))


def cases(world: World, logger: str, n_each: int, seeds: range, *, whole: bool) -> Iterator[Case]:
    """Yield what logs of a logger say, with models of rewards that are given or, on the whole, fitted.

    Tasks of a learner learn from each other on the whole, and else alone: what their logs are like is then
    a matter of the rule, and they are played together.
    """
    if logger in LOGGERS:
        for seed in seeds:
            played = play(world, n_each, seed, logger)
            yield look(world, played, forward=False) if whole else given(world, played)
        return
    # on the whole the rounds of the first window are there to learn from
    rounds = n_each * WINDOWS // (WINDOWS - 1) if whole else n_each
    for played in learning_logs(world, rounds, len(seeds), seeds.start, shared=whole):
        yield look(world, played, forward=True) if whole else given(world, played)


def coverage(logger: str, n_each: int, n_logs: int, *, whole: bool) -> dict[str, Any]:
    """Return how many of 1,000 intervals hold the truth: pooled and by task, of every kind and estimator."""
    return _in_batches(f"{logger}, n = {n_each}", n_logs, _count_some, logger, n_each, whole)


def _count_some(seeds: range, logger: str, n_each: int, whole: bool) -> Tally:
    world = World.draw(0, N_TASKS, N_ARMS, DIM)
    return count(world, cases(world, logger, n_each, seeds, whole=whole))


def _in_batches(name: str, n_logs: int, count_some: Callable[..., Tally], *settings: Any) -> dict[str, Any]:
    """Return how many of 1,000 intervals hold, of logs that are counted a batch at a time in processes."""
    starts = range(0, n_logs, BATCH)
    calls = [(range(start, min(start + BATCH, n_logs)), *settings) for start in starts]
    tally = Tally()
    for some in in_processes(name, count_some, calls):
        tally.take(some)
    return tally.summary()


def prove_intervals(n_logs: int = 1000) -> dict[str, Any]:
    """Return coverage for all loggers and sizes where models are given, and of the bootstrap over tasks."""
    found = _sizes(n_logs)
    for n_each in ROWS:
        for logger in (*LOGGERS, "Thompson"):
            found[f"{logger}, n = {n_each}"] = coverage(logger, n_each, n_logs, whole=False)
    name = "bootstrap, tasks drawn anew, n = 20"
    return {**found, name: _in_batches(name, n_logs, _count_bootstrap)}


def _sizes(n_logs: int) -> dict[str, Any]:
    """Return of how many logs counts are, with the half-width of a 95 % interval around 950 of 1,000."""
    return {"logs": n_logs, "tasks": N_TASKS, "+-": round(1960 * (LEVEL * (1 - LEVEL) / n_logs) ** 0.5, 1)}


def prove_whole(n_logs: int = 200) -> dict[str, Any]:
    """Return coverage of all that `evaluate` does, at 20 and at 200 decisions of a task that count.

    Models are fitted to each log, which takes time: so there are fewer logs than with models that are given.
    One logger is fixed, the other one learns, and its tasks from each other.
    """
    found = {
        f"{logger}, n = {n_each}": coverage(logger, n_each, n_logs, whole=True)
        for n_each in (20, 200)
        for logger in ("softmax", "shared Thompson")
    }
    return {**_sizes(n_logs), **found}


def _count_bootstrap(seeds: range) -> Tally:
    """Count bootstrap intervals that hold the value in the tasks that others are drawn from.

    Tasks are drawn with weights that are symmetric around 0, and `aim` does not know them: its value is 0.
    """
    tally = Tally()
    for seed in seeds:
        world = World.draw(seed, N_TASKS, N_ARMS, DIM)
        one, _ = given(world, play(world, 20, seed)).intervals("bootstrap", seed)
        for name in ("ips", "snips", "dr"):
            tally.add(name, covers(one[name], 0.0)[0])
    return tally


def variances(
    n_logs: int, *, rank: int | None, size: float, n_arms: int = 5, dim: int = 10
) -> dict[str, Any]:
    """Return ratios of squared errors of tasks' estimates, with half-widths of 95 % intervals.

    Errors are around the true values, so that a bias counts, too; ratios are of means over tasks and logs.
    """
    world = World.draw(1, N_TASKS, n_arms, dim, rank, size=size)
    name = f"rank {rank}, effects of size {size:g}"
    found = in_processes(name, _squared_errors, [(world, seed) for seed in range(n_logs)])
    squares = np.array(list(found))  # (logs, estimators, T)
    dr, snips, alone, told = squares.mean(axis=2).T
    apart = squares.mean(axis=0)
    return {
        "dr / snips": _ratio(dr, snips),
        "told the true rewards / snips": _ratio(told, snips),
        "dr / dr-alone": _ratio(dr, alone),
        "dr / dr-alone, worst-off fifth of tasks": _worst(apart[0] / apart[2]),
    }


def _squared_errors(world: World, seed: int) -> Array:
    """Return squared errors (4, T): of dr, snips, dr-alone, and of dr by one who knows the true rewards."""
    played = play(world, 200, seed)
    case = look(world, played, forward=False, parts=5)
    means, given = world.means(played.tasks, played.contexts), case.evidence[SHARED]
    told = Evidence(
        weights=given.weights,
        rewards=given.rewards,
        expected=np.vecdot(aim(world, played.tasks, played.contexts), means),
        predicted=np.take_along_axis(means, played.arms[:, None], axis=1)[:, 0],
    )
    _, each = case.intervals("asymptotic")
    best = case.tasks.means(ESTIMATORS["dr"].terms(told, case.tasks, np.inf))
    values = np.array([each["dr"].value, each["snips"].value, each["dr-alone"].value, best])
    return np.asarray((values - world.values(aim)) ** 2)


def _worst(ratios: Array) -> float:
    return round(float(np.sort(ratios)[-len(ratios) // 5 :].mean()), 3)


def _ratio(above: Array, below: Array) -> dict[str, float]:
    """Return the ratio of means over logs, and the half-width of its 95 % interval by the jackknife."""
    n_logs = len(above)
    left = (above.sum() - above) / (below.sum() - below)
    error = np.sqrt((n_logs - 1) / n_logs * np.sum((left - left.mean()) ** 2))
    return {"ratio": round(float(above.sum() / below.sum()), 3), "+-": round(float(1.96 * error), 3)}


def prove_sharing(n_logs: int = 100) -> dict[str, Any]:
    """Return what the shared model of rewards saves, on related and on unrelated tasks of 200 decisions.

    Rewards have noise of variance 1, and effects of the context and the arm one of about 1, or of 4.
    """
    return {
        "logs": n_logs,
        "tasks": N_TASKS,
        **{
            f"{kind}, effects of variance {size**2:g}": variances(n_logs, rank=rank, size=size)
            for kind, rank in (("related", 2), ("unrelated", None))
            for size in (1.0, 2.0)
        },
    }
