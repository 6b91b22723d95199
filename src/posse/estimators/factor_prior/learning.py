"""Learn a factor prior, the noise of each task and which tasks stand alone, in turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.alone import APART, Standing
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel, Solved
from posse.estimators.factor_prior.ranks import MANY, RankSearch, spaced_tasks
from posse.estimators.factor_prior.search import Found
from posse.numerics.checks import Array, BoolArray

if TYPE_CHECKING:
    from posse.estimators.factor_prior.estimator import FactorPrior

# Turns end after so many, or where logarithms of noises move by less than this on average and nobody moves.
MOST_TURNS, LATER_TURNS, STILL = 4, 1, 0.02
# Noise variances of tasks differ by no more than this from that of most.
MOST_UNLIKE = 1e12
# From so many tasks on they tell how heavy their tails are. Degrees of freedom that are then tried.
TELLING, LIGHTER = 2000, (10.0, np.inf)
# Scales that a task outside of the prior is tried with, as logarithms.
SCALES = np.linspace(-3.0, 9.0, 25)


@dataclass(frozen=True, eq=False)
class Known:
    """What an earlier fit found, to start from.

    Attributes
    ----------
    model : FactorModel
    noises : (T,)
        v_t, the noise variance of each task in units of that of most.
    alone : (T,)
        The probability that a task stands alone.
    """

    model: FactorModel
    noises: Array
    alone: Array

    def take(self, tasks: BoolArray) -> Known:
        """Return what is known of some tasks."""
        model = replace(self.model, log_scales=self.model.log_scales[tasks])
        return Known(model, self.noises[tasks], self.alone[tasks])


@dataclass(frozen=True, eq=False)
class Learned:
    """A prior and how tasks stand to it.

    Attributes
    ----------
    evidence : FactorEvidence
        Of all tasks, in their noises.
    found : Found
        The model of all tasks, and how it was reached.
    solved : Solved
        All tasks under it.
    standing : Standing
    members : (T,)
        The tasks that the model was learned from.
    worth : float
        How many rewards of its own the others' noise is worth to a task; infinite if all are alike.
    strength : float
        The variance that entries of F have before the data, in units of the noise.
    told : float
        The share of their parameters that tasks learn from their own data, on average.
    units : (T,)
        What the rewards of each task are counted in.
    """

    evidence: FactorEvidence
    found: Found
    solved: Solved
    standing: Standing
    members: BoolArray
    worth: float
    strength: float
    told: float
    units: Array


def learn_prior(statistics: GramStatistics, settings: FactorPrior, known: Known | None) -> Learned:
    """Return the likeliest prior, starting from one that is known if there is one.

    Of very many tasks some choose the rank and where to climb, and then all of them climb together: what
    some thousand tasks cannot tell apart hardly changes what any of them is estimated to be.
    """
    turns = Turns(settings)
    if statistics.n_tasks <= MANY:
        return turns.run(FactorEvidence(statistics), known)
    some = np.zeros(statistics.n_tasks, dtype=np.bool_)
    some[spaced_tasks(statistics, MANY)] = True
    first = turns.run(FactorEvidence(statistics.take(some)), None if known is None else known.take(some))
    scales = np.zeros(statistics.n_tasks) if known is None else known.model.log_scales.copy()
    scales[some] = first.found.model.log_scales
    return turns.follow(FactorEvidence(statistics), first, replace(first.found.model, log_scales=scales))


class Turns:
    """Turns of learning: the prior given noises and who shares it, then noises and who shares it."""

    def __init__(self, settings: FactorPrior) -> None:
        self.settings = settings
        self.usual = self.strength = 1.0
        self.worth, self.told = np.inf, 0.0
        self.own_units, self.units = False, np.ones(0)
        self.judged = False  # how heavy tails are

    def run(self, evidence: FactorEvidence, known: Known | None) -> Learned:
        """Return what turns lead to from what is known, or from nothing."""
        members, model = np.ones(evidence.n_tasks, dtype=np.bool_), None
        self.units = np.ones(evidence.n_tasks)
        if known is None:
            evidence = self._in_best_units(self._first_noises(evidence))
        else:
            model = known.model
            if evidence.n_tasks >= TELLING and model.degrees in LIGHTER:
                self.settings = replace(self.settings, degrees=max(model.degrees, self.settings.degrees))
            if self.settings.noise == "own":
                evidence = self._in_best_units(evidence.with_noises(known.noises))
            members = self._members(evidence, known.alone)
        for turn in range(MOST_TURNS if known is None else LATER_TURNS):
            learned = self._turn(evidence, members, model)
            moved = float(np.abs(np.log(learned.evidence.noises / evidence.noises)).mean())
            still = moved < STILL and bool((self._members(evidence, learned.standing.alone) == members).all())
            if still or turn == MOST_TURNS - 1:
                break
            evidence, model = learned.evidence, learned.found.model
            members = self._members(evidence, learned.standing.alone)
        return learned

    def follow(self, evidence: FactorEvidence, first: Learned, model: FactorModel) -> Learned:
        """Return what all tasks make of the model that some of them have found."""
        members = np.ones(evidence.n_tasks, dtype=np.bool_)
        self.units = np.ones(evidence.n_tasks)
        if self.own_units:
            evidence = self._in_own_units(self._first_noises(evidence))
        evidence = self._weighed(evidence, model, members)[0]
        found = RankSearch(evidence, self.settings, model).follow(model)
        return self._settled(evidence, replace(found, n_iter=first.found.n_iter + found.n_iter), members)

    def _first_noises(self, evidence: FactorEvidence) -> FactorEvidence:
        """Return the evidence in the noises that tasks have if they share no direction."""
        if self.settings.noise == "shared":
            return evidence
        everybody = np.ones(evidence.n_tasks, dtype=np.bool_)
        for _ in range(MOST_TURNS):
            model = RankSearch(evidence, replace(self.settings, rank=0), None).run().model
            self.usual = float(np.exp(model.log_ratio))
            before, evidence = evidence, self._weighed(evidence, model, everybody)[0]
            if float(np.abs(np.log(evidence.noises / before.noises)).mean()) < STILL:
                break
        return evidence

    def _in_best_units(self, evidence: FactorEvidence) -> FactorEvidence:
        """Return the evidence with rewards in units of each task's noise, if that makes them likelier.

        It does where tasks have units of their own: who has loud noise has large parameters, too.
        """
        if np.ptp(evidence.noises) == 0.0:
            return evidence
        units = np.sqrt(evidence.noises)
        plain, own = (self._unshared_evidence(some) for some in (evidence, evidence.in_units(units)))
        self.own_units = own - float(evidence.statistics.count @ np.log(units)) > plain
        return self._in_own_units(evidence) if self.own_units else evidence

    def _in_own_units(self, evidence: FactorEvidence) -> FactorEvidence:
        self.units = np.sqrt(evidence.noises)
        return evidence.in_units(self.units)

    def _unshared_evidence(self, evidence: FactorEvidence) -> float:
        """Return how likely rewards are if tasks share no direction."""
        model = RankSearch(evidence, replace(self.settings, rank=0), None).run().model
        return evidence.log_evidence(model)

    def _turn(self, evidence: FactorEvidence, members: BoolArray, known: FactorModel | None) -> Learned:
        """Learn the prior of the members, then noises and who shares it of all tasks."""
        own = None if known is None else replace(known, log_scales=known.log_scales[members])
        search = RankSearch(evidence.take(members), self.settings, own)
        found = search.run()
        if evidence.n_tasks >= TELLING and not self.judged:
            search, found = self._with_likeliest_tails(search, found)
        self.usual, self.strength = float(np.exp(search.unshared.model.log_ratio)), search.strength
        self.told = search.told / (evidence.dim * max(1, int(members.sum())))
        scales = np.zeros(evidence.n_tasks)
        scales[members] = found.model.log_scales
        if found.model.heavy and not members.all():
            noise = evidence.noise(evidence.solve(replace(found.model, log_scales=scales)))
            scales[~members] = likeliest_scales(evidence.take(~members), found.model, noise)
        found = replace(found, model=replace(found.model, log_scales=scales))
        return self._settled(evidence, found, members)

    def _with_likeliest_tails(self, search: RankSearch, found: Found) -> tuple[RankSearch, Found]:
        """Search again with lighter tails, if rewards are likelier with them at the rank that was found.

        What heavy tails do not explain of tasks that have none looks like further directions.
        """
        self.judged = True
        evidence, heavier = search.evidence, self.settings.degrees
        best, most, start = heavier, evidence.log_evidence(found.model), found.model
        for degrees in LIGHTER:
            if degrees > heavier:
                tried = replace(self.settings, degrees=degrees, rank=found.model.rank)
                model = RankSearch(evidence, tried, found.model).run().model
                if (likely := evidence.log_evidence(model)) > most:
                    best, most, start = degrees, likely, model
        if best == heavier:
            return search, found
        self.settings = replace(self.settings, degrees=best)
        search = RankSearch(evidence, self.settings, start)
        return search, search.run()

    def _settled(self, evidence: FactorEvidence, found: Found, members: BoolArray) -> Learned:
        evidence, standing = self._weighed(evidence, found.model, members)
        solved = evidence.solve(found.model)
        return Learned(
            evidence, found, solved, standing, members, self.worth, self.strength, self.told, self.units
        )

    def _weighed(
        self, evidence: FactorEvidence, model: FactorModel, members: BoolArray
    ) -> tuple[FactorEvidence, Standing]:
        """Return the evidence in noises that a model of some members leaves, and who stands alone."""
        solved = evidence.solve(model)
        if self.settings.may_stand_alone:
            standing = Standing.of(evidence, model, solved, members, self.usual)
        else:
            standing = Standing.together(evidence.n_tasks, evidence.dim)
        if self.settings.noise == "shared":
            return evidence, standing
        found = standing.variances(evidence, model, solved)
        self.worth = found.worth
        noises = np.clip(found.variances / found.usual, 1.0 / MOST_UNLIKE, MOST_UNLIKE)
        return evidence.with_noises(noises), standing

    def _members(self, evidence: FactorEvidence, alone: Array) -> BoolArray:
        """Return whose prior is learned together, (T,): all, if fewer than two with data would be left."""
        members = np.asarray(alone < APART)
        played = members & (evidence.statistics.square > 0)
        return members if played.sum() > 1 else np.ones_like(members)


def likeliest_scales(evidence: FactorEvidence, model: FactorModel, noise: float) -> Array:
    """Return log q_t of tasks that a model was not learned from, (T,), each the likeliest of a list.

    The noise variance of most tasks is known.
    """
    values = []
    for scale in SCALES:
        tried = replace(model, log_scales=np.full(evidence.n_tasks, scale))
        solved = evidence.solve(tried)
        values.append(evidence.log_likelihoods(solved, noise) + evidence.log_scale_densities(tried))
    return np.asarray(SCALES[np.argmax(values, axis=0)])
