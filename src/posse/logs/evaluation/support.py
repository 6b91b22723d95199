"""Is there an answer in this log? Looked at before any number, for each policy, task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from posse.logs.evaluation.estimators import effective_sample_size
from posse.logs.evaluation.groups import Groups, ratio
from posse.numerics.checks import Array, BoolArray, IntArray

# Mean weights are 1 where propensities are right and nothing lacks support. Off by so many standard errors,
# and by so much, they are not.
SURE, MATTERS = 5.0, 0.05
# Where all propensities are known, a policy may have this share of its probability without support.
NEGLIGIBLE = 0.001


@dataclass(frozen=True, kw_only=True)
class Support:
    """How much a log has to say about a policy: over all tasks, or in one.

    Attributes
    ----------
    policy : str
    task : str or None
        None for all tasks together.
    decisions : int
    ess : float
        The effective sample size: how many decisions of the policy's own would say as much.
    largest_weight : float
    mean_weight : float
        1 but for chance, if propensities are right and the logger could play whatever the policy plays.
    unsupported : float
        The share of the policy's probability on arms that the logger never played in the task, or had no
        propensity for.
    reason : str or None
        Why nothing can be said; None if something can.
    """

    policy: str
    task: str | None
    decisions: int
    ess: float
    largest_weight: float
    mean_weight: float
    unsupported: float
    reason: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """How much a log has to say about a policy.

    Attributes
    ----------
    pooled : Support
    tasks : tuple of T Support
    """

    pooled: Support
    tasks: tuple[Support, ...]

    @property
    def told(self) -> BoolArray:
        """Whether something can be said about each task, (T,)."""
        return np.array([one.reason is None for one in self.tasks], dtype=np.bool_)


def check_support(
    policy: str,
    weights: Array,
    unsupported: Array,
    tasks: Groups,
    names: Sequence[str],
    *,
    whole: bool,
    certain: bool,
    wrong: str = "",
) -> Checked:
    """Say whether a log has an answer about a policy, for all tasks together and for each.

    Parameters
    ----------
    policy : str
    weights : (n,)
    unsupported : (T,)
        By task, the sum of the policy's probabilities of arms that the logger cannot play.
    tasks : Groups
        Of the n decisions.
    names : sequence of str
        Of tasks.
    whole : bool
        Whether the log has the propensities of all arms, so that `unsupported` is known and not guessed.
    certain : bool
        Whether all propensities of the log are 1: that of a policy which never tries anything else.
    wrong : str
        Why nothing can be said about any policy, if that is so.
    """
    everyone = Groups.one(len(weights))
    one = _look(weights, np.array([unsupported.sum()]), everyone, 0.0)
    reasons = _reasons(one, whole=whole, certain=certain)
    pooled = _support(policy, None, one, 0, wrong or reasons[0])
    # a task that had none of the heavy weights by chance would seem too sure of its mean
    each = _look(weights, unsupported, tasks, float(np.var(weights)))
    found = _reasons(each, whole=whole, certain=certain)
    if reasons[0]:  # is it for the tasks that are refused, or are the others no better?
        told = np.array([not reason for reason in found], dtype=np.bool_)
        kept = told[tasks.index]
        rest = _look(weights[kept], np.array([unsupported[told].sum()]), Groups.one(int(kept.sum())), 0.0)
        (other,) = _reasons(rest, whole=whole, certain=certain)
        found = [reason or other for reason in found]
    listed = tuple(
        _support(policy, name, each, place, wrong or found[place]) for place, name in enumerate(names)
    )
    return Checked(pooled=pooled, tasks=listed)


def _look(weights: Array, unsupported: Array, groups: Groups, least: float) -> Mapping[str, Array]:
    """Return what weights (n,) are like in each group; their variance is taken for `least` at the least.

    What is unsupported comes as a sum for each group, (G,).
    """
    largest = np.zeros(groups.n_groups)
    np.maximum.at(largest, groups.index, weights)
    return {
        "decisions": groups.counts,
        "ess": effective_sample_size(weights, groups),
        "largest": largest,
        "mean": groups.means(weights),
        "error": np.sqrt(np.nan_to_num(ratio(np.fmax(groups.variances(weights), least), groups.counts))),
        "unsupported": ratio(unsupported, groups.counts),
    }


def _support(policy: str, task: str | None, found: Mapping[str, Array], place: int, reason: str) -> Support:
    def number(name: str) -> float:
        return float(np.nan_to_num(found[name][place]))

    return Support(
        policy=policy,
        task=task,
        decisions=int(found["decisions"][place]),
        ess=number("ess"),
        largest_weight=number("largest"),
        mean_weight=number("mean"),
        unsupported=number("unsupported"),
        reason=reason or None,
    )


def _reasons(found: Mapping[str, Array], *, whole: bool, certain: bool) -> list[str]:
    reasons = []
    for count, mean, error, bare in zip(
        found["decisions"], found["mean"], found["error"], found["unsupported"], strict=True
    ):
        reasons.append(_reason(count, mean, error, bare, whole=whole, certain=certain))
    return reasons


def _reason(count: float, mean: float, error: float, bare: float, *, whole: bool, certain: bool) -> str:
    """Return why nothing can be said from the decisions of a group; nothing if something can."""
    if count < 2:
        return f"there are {count:.0f} decisions"
    off = abs(mean - 1.0) > max(MATTERS, SURE * error)
    if certain and off:
        return (
            f"all {count:,.0f} propensities are 1: the logged policy tried nothing that this one does "
            f"otherwise, which is {1.0 - mean:.0%} of what it plays"
        )
    if mean == 0.0:
        return f"it plays none of the arms that were played in {count:,.0f} decisions"
    if whole and bare > NEGLIGIBLE:
        return f"{bare:.1%} of its probability is on arms with a propensity of 0"
    if off and mean < 1.0:
        return (
            f"weights have a mean of {mean:.3g} where 1 is expected: the logged policy never tries "
            f"{1.0 - mean:.0%} of what this one plays, or propensities are wrong"
        )
    if off:
        return f"weights have a mean of {mean:.3g} where 1 is expected: propensities are wrong"
    return ""


def disagreements(
    played: IntArray,
    propensities: Array,
    tasks: Groups,
    offers: Array,
    arms: Sequence[str],
    names: Sequence[str],
) -> list[str]:
    """Return where propensities disagree with how often arms were played: a sentence for each arm, and tasks.

    The sum of 1 / p over the decisions in which an arm was played is the number of those in which it was on
    offer, but for chance. Where arms have no names there is nothing to compare.

    Parameters
    ----------
    played : (n,)
        Numbers of arms.
    propensities : (n,)
    tasks : Groups
    offers : (T, A)
        How often each arm was on offer.
    arms, names : sequences of str
        The names of arms and of tasks.
    """
    if not arms:
        return []
    cells = Groups(tasks.index * len(arms) + played, offers.size)
    inverse = 1.0 / propensities
    sums, plays = (part.reshape(offers.shape) for part in (cells.sums(inverse), cells.counts))
    shares, wrong = _off(sums.sum(axis=0), plays.sum(axis=0), offers.sum(axis=0))
    found = [
        f"propensities disagree with frequencies: those of arm {arms[place]} stand for {shares[place]:.0%} "
        f"of the {offers[:, place].sum():,.0f} decisions in which it was on offer"
        for place in np.flatnonzero(wrong).tolist()
    ]
    shares, wrong = _off(sums, plays, offers)
    if not found and wrong.any():
        task, arm = (int(place[0]) for place in np.nonzero(wrong))
        found.append(
            f"propensities disagree with frequencies in {wrong.any(axis=1).sum():,} of {len(names):,} tasks, "
            f"as in {names[task]}: those of arm {arms[arm]} stand for {shares[task, arm]:.0%} of "
            f"{offers[task, arm]:,.0f} decisions"
        )
    return found


def _off(sums: Array, plays: Array, offers: Array) -> tuple[Array, BoolArray]:
    """Return which share of offers the inverse propensities stand for, and where that is not 1 by chance.

    If propensities are right, each offer adds 1 with a variance of 1 / p - 1.
    """
    shares = ratio(sums, offers)
    errors = np.sqrt(ratio(np.maximum(ratio(sums, plays) - 1.0, 0.0), offers))
    # an arm that was never played has no error to go by
    wrong = (plays > 0) & (np.abs(shares - 1.0) > np.maximum(MATTERS, SURE * errors))
    return shares, wrong
