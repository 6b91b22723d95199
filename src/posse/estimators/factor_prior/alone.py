"""Tasks that may stand alone: the prior of each is a mixture of the shared one and one of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel, Solved
from posse.estimators.factor_prior.information import prices
from posse.estimators.noise import Moderated, moderated_variances
from posse.numerics.checks import Array, BoolArray

# Own strengths that are averaged over, as multiples of the strength of a model without shared directions,
# and their weights: those of a logarithm with Cauchy's distribution of this width.
STRENGTHS = np.logspace(-4, 4, 33)
WIDTH = 1.5
BEFORE = 1.0 / (1.0 + (np.log(STRENGTHS) / WIDTH) ** 2)
BEFORE /= BEFORE.sum()
# Before the data so many tasks were seen to share, and so many to stand alone.
SHARED_BEFORE, ALONE_BEFORE = 1.0, 3.0
# The share of tasks that stand alone is found by so many steps.
SHARE_STEPS = 30
# Noise has at least this share of the mean square of a task's rewards.
LEAST_NOISE = 1e-6
# A task has no part in what the others share if it stands alone with this probability.
APART = 0.99


@dataclass(frozen=True, eq=False)
class OwnPriors:
    """Every task under a prior of its own, N(mu, s2 c_t I), in noise of variance s2 v_t.

    Attributes
    ----------
    log_evidences : (T,)
        log p(y_t), averaged over c_t.
    strengths : (T,)
        c_t: its root is the mean of roots, given the rewards, so that widths are right on average.
    means : (T, d)
        Posterior means.
    """

    log_evidences: Array
    strengths: Array
    means: Array

    @classmethod
    def of(cls, evidence: FactorEvidence, mean: Array, noise: float, usual: float) -> OwnPriors:
        """Average over strengths around a usual one, each in units of the noise s2; mu is `mean` (d,)."""
        along = np.vecmat(mean, evidence.vectors)
        moment = evidence.moment - evidence.values * along
        squares = evidence.squares - np.vecdot(along, evidence.moment + moment)
        offsets = np.log(STRENGTHS)
        weights = np.log(BEFORE)
        values = np.empty((evidence.n_tasks, len(offsets)))
        for place, offset in enumerate(offsets):
            gain = usual * np.exp(offset) * evidence.values
            explained = usual * np.exp(offset) * np.sum(moment**2 / (1.0 + gain), axis=1)
            values[:, place] = (squares - explained) / noise + np.log1p(gain).sum(axis=1)
        constants = evidence.statistics.count * np.log(2 * np.pi * noise * evidence.noises)
        likely = weights - 0.5 * (constants[:, None] + values)
        log_evidences = logsumexp(likely, axis=1)
        chances = np.exp(likely - log_evidences[:, None])
        strengths = usual * (chances @ np.sqrt(STRENGTHS)) ** 2
        damped = strengths[:, None] * moment / (1.0 + strengths[:, None] * evidence.values)
        return cls(np.asarray(log_evidences), strengths, mean + np.matvec(evidence.vectors, damped))


@dataclass(frozen=True, eq=False)
class Standing:
    """Which tasks share a prior and which stand alone, and what each is then estimated to be.

    Attributes
    ----------
    alone : (T,)
        The probability that a task stands alone.
    strengths : (T,)
        c_t of its own prior, N(mu, s2 c_t I).
    shift : (T, d)
        How far the mean under the own prior is from that under the shared one.
    share : float
        The share of tasks that stand alone.
    usual : float
        The strength of such a task before the data.
    """

    alone: Array
    strengths: Array
    shift: Array
    share: float
    usual: float

    @classmethod
    def of(
        cls,
        evidence: FactorEvidence,
        model: FactorModel,
        solved: Solved,
        members: BoolArray,
        usual: float,
    ) -> Standing:
        """Weigh the evidence of every task under a shared model and under its own prior.

        The evidence under the model pays for the task's share in learning it, if it is a member: one of those
        that it was learned from, (T,). `usual` is the strength of a model without shared directions.
        """
        noise = evidence.noise(solved)
        shared = evidence.log_evidences(model, solved)
        if model.rank > 0:
            shared = shared - np.where(members, prices(evidence, model, solved), 0.0)
        own = OwnPriors.of(evidence, model.mean, noise, usual)
        alone, share = stand_alone(own.log_evidences - shared)
        return cls(alone, own.strengths, own.means - evidence.means(model, solved), share, usual)

    @classmethod
    def together(cls, n_tasks: int, dim: int) -> Standing:
        """Let no task stand alone."""
        return cls(np.zeros(n_tasks), np.ones(n_tasks), np.zeros((n_tasks, dim)), 0.0, 1.0)

    def variances(self, evidence: FactorEvidence, model: FactorModel, solved: Solved) -> Moderated:
        """Return the noise variances of all tasks, from what both priors leave over of their rewards."""
        moment = evidence.statistics.moment / evidence.noises[:, None]
        parts, shared = [], evidence.means(model, solved)
        for weight, mean in ((1.0 - self.alone, shared), (self.alone, shared + self.shift)):
            along = np.vecmat(mean, evidence.vectors)
            explained = np.vecdot(along, evidence.values * along)
            parts.append(weight * (evidence.squares - 2.0 * np.vecdot(mean, moment) + explained))
        gain = self.strengths[:, None] * evidence.values
        fitted = (1.0 - self.alone) * evidence.freedom(model, solved)
        fitted += self.alone * np.sum(gain / (1.0 + gain), axis=1)
        free = np.maximum(evidence.statistics.count - fitted, 0.0)
        least = LEAST_NOISE * evidence.squares * free / np.maximum(evidence.statistics.count, 1.0)
        return moderated_variances(np.maximum(parts[0] + parts[1], least) * evidence.noises, free)


def stand_alone(log_odds: Array) -> tuple[Array, float]:
    """Return the probability that each task stands alone, (T,), and the share of tasks that do.

    Parameters
    ----------
    log_odds : (T,)
        How much likelier a task's rewards are if it stands alone.

    Examples
    --------
    >>> alone, share = stand_alone(np.array([-9.0, -9.0, -9.0, 9.0]))
    >>> alone.round(2), round(share, 2)
    (array([0., 0., 0., 1.]), 0.5)
    """
    before = ALONE_BEFORE + SHARED_BEFORE
    share = ALONE_BEFORE / before
    for _ in range(SHARE_STEPS):
        alone = expit(log_odds + np.log(share) - np.log1p(-share))
        share = float((alone.sum() + ALONE_BEFORE) / (len(log_odds) + before))
    return np.asarray(alone), share
