"""Average over all priors that the rewards leave likely, by Gibbs sampling from the likeliest one on.

With few rewards per task many priors are likely, and the likeliest is only one of them: estimates that take
it for certain are worse than they could be, and far too sure of themselves. Here what it fixes is drawn in
turns, each part given all others, from a Gaussian or a gamma distribution of the statistics: equation (13) of
the page "The learned prior". With K = Q D/(s + aqD) Q' and p = Q Q'b/(s + aqD) of every task,

    a | F          one of a few around the last, or 0, with w and what lies outside of F integrated out
    w | F          N(M^-1 F'p, M^-1),  M = I/q + F'K F
    F | w          of the precision  sum K kron ww' + I kron diag(1/l),  and the linear term  sum p w'
    l_j | F        half-Cauchy for its root: a column that the data do not ask for vanishes
    q, nu          1/q ~ Gamma(nu/2, nu/2), given w and what lies outside of F;  nu is one of a list
    s              inverse chi-square, given what is left of the task's rewards, and the others' noise

Means and covariances of all theta_t are averaged over the draws, each in closed form given F, a, q and s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln, logit

from posse.estimators.factor_prior.kernels import add_log_likelihoods, draw_weights
from posse.estimators.factor_prior.learning import Learned
from posse.estimators.factor_prior.search import LARGEST_LOG_SCALE
from posse.numerics.checks import Array

if TYPE_CHECKING:
    from posse.estimators.factor_prior.estimator import FactorPrior

# The most multiplications, about, that all turns may take together, and the fewest turns that are of use.
MOST_WORK, FEWEST = 4e8, 24
# Turns before the first that counts, as a share of those that do.
WARMING = 0.25
# So many variances outside of F are drawn from at once, around the last one, this far apart on average on a
# logarithmic scale. The first are around the likeliest one, or this share of the strength of F if it is less.
N_OUTSIDE, OUTSIDE_STEP, LEAST_TRIED = 8, 0.5, 0.01
STEPS = np.arange(float(N_OUTSIDE))
# Where there are shared directions, nothing lies outside of F with this probability before the data.
NOTHING_OUTSIDE = 0.25
# Where the likeliest prior has no direction, so many are averaged over. Where it has some there is one more,
# which is expected to have this share of the strength of these.
MORE_THAN_NONE, FURTHER = 2, 0.01
# Degrees of freedom of the tails that are averaged over, from those of the settings on.
DEGREES = np.array([3.0, 5.0, 10.0, 30.0, 100.0])
# Shares of the expected strength below which a column counts as gone, and of a task's mean square below which
# its noise does not fall.
LEAST_STRENGTH, LEAST_NOISE = 1e-12, 1e-9


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known of every theta_t, if it shares the prior.

    Attributes
    ----------
    means : (T, d)
    covariances : (T, d, d)
    prior : (d, d)
        The covariance of a task that was never seen, if it has the scale 1: the mean of FF' + a I, which
        counts that F is uncertain.
    degrees : float
        nu of its tails, the most frequent.
    """

    means: Array
    covariances: Array
    prior: Array
    degrees: float


def averaged_moments(learned: Learned, settings: FactorPrior) -> Moments | None:
    """Return posterior means and covariances of all tasks, averaged over priors; None where that is idle.

    It is where tasks tell almost all about themselves, and takes too long where there are very many: the
    likeliest prior is then as good. Neither the order of tasks nor the coordinates of features matter, up to
    rounding: random numbers go to tasks by their data, and to directions by the axes of all data together.
    """
    model, evidence = learned.found.model, learned.evidence
    further = 0
    if settings.rank == "auto":
        further = min(1 if model.rank else MORE_THAN_NONE, evidence.dim - model.rank)
    if evidence.n_tasks == 1:
        return None  # a single task has the likeliest ridge, as if it were alone
    n_turns = affordable_turns(
        settings.sweeps, learned.told, evidence.n_tasks, evidence.dim, model.rank + further
    )
    if n_turns == 0:
        return None
    sampler = _Sampler(learned, further, settings)
    try:
        for turn in range(-int(np.ceil(WARMING * n_turns)), n_turns):
            sampler.turn(count=turn >= 0)
    except np.linalg.LinAlgError:  # rewards without noise may leave a covariance of no width
        return None
    return sampler.moments()


def affordable_turns(wanted: int, told: float, n_tasks: int, dim: int, rank: int) -> int:
    """Return how many turns to average over, of those that are wanted: 0 if that is too few to be of use.

    Parameters
    ----------
    wanted : int
    told : float
        The share of their parameters that tasks learn from their own data, from 0 to 1.
    n_tasks, dim, rank : int
        T, d and k, on which it depends how long a turn takes.

    Examples
    --------
    >>> affordable_turns(120, 0.1, 50, 20, 2), affordable_turns(120, 0.1, 100, 30, 5)
    (120, 36)
    >>> affordable_turns(120, 0.99, 50, 20, 2), affordable_turns(120, 0.1, 10_000, 20, 2)
    (0, 0)
    """
    work = n_tasks * dim**2 * (dim + rank**2 + 6 * rank) + (dim * rank) ** 3 / 3
    turns = int(min(wanted * min(1.0, 2.0 * (1.0 - told)), MOST_WORK / ((1.0 + WARMING) * work)))
    return turns if turns >= min(FEWEST, wanted) else 0


class _Sampler:
    """The state of the chain, in absolute units, along the axes of the pooled statistics."""

    def __init__(self, learned: Learned, further: int, settings: FactorPrior) -> None:
        evidence, model = learned.evidence, learned.found.model
        noise = evidence.noise(learned.solved)
        self.order = order = np.lexsort((evidence.statistics.count, evidence.squares))
        members = learned.members[order]
        self.rng = np.random.default_rng(settings.seed)
        lighter = DEGREES[settings.degrees <= DEGREES]
        self.tails = lighter if len(lighter) else np.array([settings.degrees])
        noises = evidence.noises[order]
        self.members, self.everybody = members, bool(members.all())
        self.worth, self.usual = learned.worth, noise
        self.axes = _signed(evidence.pooled[1], evidence.statistics.moment.sum(axis=0))
        self.values = evidence.values[order] * noises[:, None]
        vectors = np.matmul(self.axes.T, evidence.vectors[order])
        mean = np.vecmat(self.axes.T @ model.mean, vectors)
        moment = evidence.moment[order] * noises[:, None]
        self.squares = evidence.squares[order] * noises - np.vecdot(mean, 2.0 * moment - self.values * mean)
        moment = moment - self.values * mean
        signs = np.where(moment < 0.0, -1.0, 1.0)
        self.moment, self.vectors = moment * signs, np.ascontiguousarray(vectors * signs[:, None, :])
        self.turned = np.ascontiguousarray(self.vectors.mT)
        self.grams = (self.vectors * self.values[:, None, :]) @ self.turned
        self.mean = model.mean
        self.counts = evidence.statistics.count[order]
        self.least = LEAST_NOISE * np.maximum(self.squares, 0.0) / np.maximum(self.counts, 1.0)
        self.n_tasks, self.dim = evidence.n_tasks, evidence.dim

        basis, sizes, _ = np.linalg.svd(self.axes.T @ model.factors, full_matrices=False)
        basis = _signed(basis, np.ones(self.dim))
        self.strength = noise * learned.strength
        self.factors = np.sqrt(noise) * basis * sizes
        if further:
            weak = self.rng.standard_normal((self.dim, further))
            weak *= np.sqrt(1e-3 * self.strength / self.dim)
            self.factors = np.concatenate([self.factors, weak], axis=1)
        self.factors = np.ascontiguousarray(self.factors.T)
        self.rank = len(self.factors)
        self.expected = np.full(self.rank, self.strength)
        if model.rank:
            self.expected[model.rank :] *= FURTHER
        self.strengths, self.rates = self.expected.copy(), self.expected.copy()
        self.hard, self.heavy = np.isinf(model.log_ratio), model.heavy
        self.outside = noise * float(np.exp(model.log_ratio))
        self.tried = max(self.outside, LEAST_TRIED * self.strength)
        self.nothing = float(logit(NOTHING_OUTSIDE if model.rank else 0.0))
        self.degrees = model.degrees
        self.scales, self.noises = np.exp(model.log_scales[order]), noise * noises
        self.total = np.zeros((self.n_tasks, self.dim))
        self.square = np.zeros((self.n_tasks, self.dim, self.dim))
        self.left = np.zeros(self.values.shape)
        self.unseen, self.n_counted = np.zeros(self.n_tasks), 0
        self.prior, self.visited = np.zeros((self.dim, self.dim)), np.zeros(len(self.tails))

    def turn(self, *, count: bool = False) -> None:
        """Draw every part anew, and add the moments of this turn to those before, if they count."""
        if not self.hard:
            self._draw_outside()
        spread = self.outside * self.scales
        damping = 1.0 / (self.noises[:, None] + spread[:, None] * self.values)
        self._draw_weights(spread, damping, count=count)
        if self.rank:
            self._draw_factors(damping)
            self._draw_strengths()
        inside = np.vecmat(self.weights @ self.factors, self.vectors)
        residual = self.moment - self.values * inside
        spread = (self.outside * self.scales)[:, None]
        damping = spread / (self.noises[:, None] + spread * self.values)
        own = damping * residual
        own += np.sqrt(self.noises[:, None] * damping) * self.rng.standard_normal(own.shape)
        if self.heavy:
            self._draw_scales(own)
        self._draw_noises(inside + own)

    def moments(self) -> Moments:
        """Return the moments of all turns that counted, along features and in the tasks' own order."""
        means, covariances = np.empty_like(self.total), np.empty_like(self.square)
        within = (self.vectors * (self.left / self.n_counted)[:, None, :]) @ self.vectors.mT
        average = self.total / self.n_counted
        square = np.tril(self.square) + np.tril(self.square, -1).mT
        covariance = square / self.n_counted - average[:, :, None] * average[:, None, :] + within
        covariance += (self.unseen / self.n_counted)[:, None, None] * np.eye(self.dim)
        means[self.order] = self.mean + average @ self.axes.T
        covariances[self.order] = self.axes @ covariance @ self.axes.T
        prior = self.axes @ (self.prior / self.n_counted) @ self.axes.T
        degrees = float(self.tails[np.argmax(self.visited)]) if self.heavy else np.inf
        return Moments(means, covariances, prior, degrees)

    def _draw_weights(self, spread: Array, damping: Array, *, count: bool) -> None:
        """Draw w_t given F; and count E theta_t and Var theta_t given F."""
        normal = self.rng.standard_normal((self.n_tasks, self.rank))
        self.weights = np.empty_like(normal)
        along = self.values, self.moment, damping
        drawn = draw_weights(
            self.vectors,
            self.turned,
            *along,
            spread,
            self.scales,
            self.factors,
            normal,
            self.weights,
            count,
            self.total,
            self.square,
        )
        if not drawn:
            raise np.linalg.LinAlgError("A covariance has no width.")
        if count:
            # a q in all directions, less what is learned along the axes of the task's own data
            self.left += spread[:, None] * (self.noises[:, None] * damping - 1.0)
            self.unseen += spread
            self.prior += self.factors.T @ self.factors + self.outside * np.eye(self.dim)
            self.visited += self.degrees == self.tails
            self.n_counted += 1

    def _draw_factors(self, damping: Array) -> None:
        some = slice(None) if self.everybody else self.members
        vectors, turned, weights = self.vectors[some], self.turned[some], self.weights[some]
        damping, dim, rank = damping[some], self.dim, self.rank
        if self.outside > 0.0:
            pairs, told = weights, (vectors * (self.values[some] * damping)[:, None, :]) @ turned
        else:
            pairs, told = weights / self.noises[some, None], self.grams[some]
        pairs = (pairs[:, :, None] * weights[:, None, :]).reshape(-1, rank * rank)
        precision = (pairs.T @ told.reshape(len(told), -1)).reshape(rank, rank, dim, dim)
        precision = precision.transpose(0, 2, 1, 3).reshape(rank * dim, rank * dim)
        np.einsum("ii->i", precision)[...] += np.repeat(1.0 / self.strengths, dim)
        linear = weights.T @ np.vecmat(damping * self.moment[some], turned)
        root, failed = lapack.dpotrf(precision.T, lower=0, clean=0)  # column by column, the upper triangle
        if failed:
            raise np.linalg.LinAlgError("A covariance has no width.")
        drawn = lapack.dtrtrs(root, linear.ravel(), lower=0, trans=1)[0]
        drawn += self.rng.standard_normal(rank * dim)
        self.factors = lapack.dtrtrs(root, drawn, lower=0)[0].reshape(rank, dim)

    def _draw_strengths(self) -> None:
        lengths = np.vecdot(self.factors, self.factors)
        half = 0.5 * (self.dim + 1.0)
        strengths = (self.rates + 0.5 * lengths) / self.rng.standard_gamma(half, self.rank)
        self.strengths = np.maximum(strengths, LEAST_STRENGTH * self.expected)
        draws = self.rng.standard_gamma(1.0, self.rank)
        self.rates = draws / (1.0 / self.expected + 1.0 / self.strengths)

    def _draw_outside(self) -> None:
        """Draw a given F, with all else about tasks integrated out: from a few around the one that it has.

        Given weights, whatever is well known of a task would hold a where it is, for hundreds of turns. Which
        of the few it has is drawn first, so that every one of them would lead to the others alike. Before the
        data log a has the density r^(1/4) / (1 + r)^(3/4), r its ratio to the expected strength of F; or
        a = 0, and what was tried last moves on as if there were no data.
        """
        some = slice(None) if self.everybody else self.members
        steps = STEPS - self.rng.integers(N_OUTSIDE)
        tried = self.tried * np.exp(OUTSIDE_STEP * steps * (0.5 + self.rng.random()))
        likely = np.zeros(N_OUTSIDE + 1)
        along = self.vectors[some], self.values[some], self.moment[some]
        unlike = self.noises[some], self.scales[some]
        add_log_likelihoods(*along, *unlike, self.factors, np.append(tried, 0.0), likely)
        ratios = tried / self.strength
        before = 0.25 * np.log(ratios) - 0.75 * np.log1p(ratios)
        place = self._draw_place(np.append(before + likely[:-1], before + self.nothing + likely[-1]))
        self.tried = float(tried[place % N_OUTSIDE])
        self.outside = self.tried if place < N_OUTSIDE else 0.0

    def _draw_place(self, log_chances: Array) -> int:
        chances = np.exp(log_chances - log_chances.max()).cumsum()
        return int(chances.searchsorted(self.rng.random() * chances[-1]))

    def _draw_scales(self, own: Array) -> None:
        lengths = np.vecdot(self.weights, self.weights)
        if self.outside > 0.0:
            lengths = lengths + np.vecdot(own, own) / self.outside
        free = self.degrees + self.rank + (own.shape[1] if self.outside > 0.0 else 0)
        scales = (self.degrees + lengths) / self.rng.chisquare(free, self.n_tasks)
        limit = np.exp(LARGEST_LOG_SCALE)
        self.scales = np.clip(scales, 1.0 / limit, limit)
        half = 0.5 * self.tails
        some = self.scales if self.everybody else self.scales[self.members]
        exponents = float(np.sum(np.log(some) + 1.0 / some))
        density = len(some) * (half * np.log(half) - gammaln(half)) - half * exponents
        self.degrees = float(self.tails[self._draw_place(density)])

    def _draw_noises(self, along: Array) -> None:
        left = self.squares - np.vecdot(along, 2.0 * self.moment - self.values * along)
        left = np.maximum(left, 0.0)
        if np.isinf(self.worth):
            every = (left.sum() + self.usual) / self.rng.chisquare(self.counts.sum() + 1.0)
            self.noises = np.full(self.n_tasks, every)
            return
        drawn = (self.worth * self.usual + left) / self.rng.chisquare(self.worth + self.counts)
        self.noises = np.maximum(drawn, self.least)
        rate = 0.5 * self.worth * float(np.sum(1.0 / self.noises))
        self.usual = float(self.rng.standard_gamma(0.5 * self.worth * self.n_tasks)) / rate


def _signed(vectors: Array, towards: Array) -> Array:
    """Return vectors, the columns (d, m), each turned around if it points away from a vector (d,)."""
    return np.where(towards @ vectors < 0.0, -vectors, vectors)
