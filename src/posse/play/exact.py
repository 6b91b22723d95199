"""Gaussian contexts without drawing them: the regret and the statistics of a block, exactly in law.

A greedy choice by theta_hat among arms x = L z, z ~ N(0, I), and its mean reward depend on two coordinates
of z alone: along q1, the direction of L'theta, and along q2, what is left of the direction of L'theta_hat.
Only these two are drawn for every arm. All other coordinates E (n, d) of the arms that were played are
independent of everything that happened, so that with S = (own, other, noise), n x 3,

    S'E = R'Z,    E'E = Z'Z + W,    S = QR,    Z 3 x d standard normal,    W ~ Wishart(n - 3),

independent of each other and of S. A block of any length thus has the statistics of 3 + d rounds: the rows
of R beside Z, and those of a triangular root of W (Bartlett). E is drawn in all of R^d, and what it has
along q1 and q2 is taken out. Blocks too short for W to be regular get their E drawn row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, check_array
from posse.numerics.compiled import compiled
from posse.problems import GaussianProblem

# A direction this much shorter than the vector it is left from is rounding.
PARALLEL = 1e-12


@dataclass(frozen=True, eq=False)
class ExactRounds:
    """Rounds, as far as greedy policies can tell them apart: two coordinates of every arm, and the noise.

    All policies of a run meet the same ones: the same mean rewards and noise, and coordinates that mislead
    them in the same way, each along a direction of its own.

    Attributes
    ----------
    own : (n, T, K)
        Coordinates of the arms along L'theta.
    other : (n, T, K)
        Coordinates of the arms along what else a policy goes by.
    noise : (n, T)
    """

    own: Array
    other: Array
    noise: Array

    def rounds(self, start: int, stop: int) -> ExactRounds:
        """Return the rounds start, ..., stop - 1."""
        return ExactRounds(self.own[start:stop], self.other[start:stop], self.noise[start:stop])


class ExactBlock:
    """Rounds played greedily by one theta_hat: regret as they come, statistics when they are over.

    Parameters
    ----------
    problem : GaussianProblem
    theta : (T, d)
        theta_hat.
    n_rounds : int
        The length of the block.
    """

    def __init__(self, problem: GaussianProblem, theta: Array, n_rounds: int) -> None:
        self.problem, self.n_rounds, self.n_played = problem, n_rounds, 0
        theta = check_array("the theta that a policy plays by", theta, (problem.n_tasks, problem.dim))
        largest = np.abs(theta).max(axis=1, keepdims=True)
        believed = problem.whiten(theta / np.where(largest > 0.0, largest, 1.0))
        self.size, own = _directions(problem.whiten(problem.theta))
        self.along = np.vecdot(believed, own)
        left = believed - self.along[:, None] * own
        left -= np.vecdot(left, own)[:, None] * own  # once more: what is left may be short
        self.across, other = _directions(left, np.linalg.norm(believed, axis=1))
        self.plane = np.stack([own, other], axis=1)
        self.products = np.zeros((problem.n_tasks, 3, 3))
        self.played: list[Array] = []

    @property
    def short(self) -> bool:
        """Whether rounds are kept one by one, because the Wishart matrix of so few is singular."""
        return self.n_rounds < self.problem.dim + 3

    def play(self, rounds: ExactRounds) -> Array:
        """Play some of the block's rounds; return their regret, (n, T)."""
        chosen, regret = np.empty((*rounds.noise.shape, 2)), np.empty(rounds.noise.shape)
        play_coordinates(
            rounds.own,
            rounds.other,
            rounds.noise,
            self.along,
            self.across,
            chosen,
            regret,
            self.products,
        )
        if self.short:
            self.played.append(np.concatenate([chosen, rounds.noise[..., None]], axis=2))
        regret *= self.size
        self.n_played += len(regret)
        return regret

    def statistics(self, rng: np.random.Generator) -> GramStatistics:
        """Draw the statistics of the whole block, given what was played."""
        n_tasks, dim = self.problem.n_tasks, self.problem.dim
        if self.short:
            known = np.concatenate(self.played).transpose(1, 0, 2)
            rows = rng.standard_normal((n_tasks, self.n_rounds, dim))
        else:
            known = np.asarray(np.linalg.cholesky(self.products).mT, dtype=np.float64)
            rows = np.concatenate(
                [
                    rng.standard_normal((n_tasks, 3, dim)),
                    wishart_roots(n_tasks, dim, self.n_rounds - 3, rng),
                ],
                axis=1,
            )
        rows -= (rows @ self.plane.mT) @ self.plane
        rewards = np.zeros(rows.shape[:2])
        first = slice(0, known.shape[1])
        rows[:, first] += known[:, :, :2] @ self.plane
        rewards[:, first] = self.size[:, None] * known[:, :, 0] + known[:, :, 2]
        features = self.problem.colour(rows)
        condensed = GramStatistics.of(features.transpose(1, 0, 2), rewards.T)
        if self.short:
            return condensed
        count = np.full(n_tasks, float(self.n_rounds))
        return GramStatistics(condensed.gram, condensed.moment, condensed.square, count)


def wishart_roots(n: int, dim: int, degrees: int, rng: np.random.Generator) -> Array:
    """Draw upper triangular roots R, (n, d, d), of matrices R'R ~ Wishart(I, degrees), degrees >= d."""
    roots = np.zeros((n, dim, dim))
    above = np.triu_indices(dim, 1)
    roots[:, *above] = rng.standard_normal((n, len(above[0])))
    diagonal = np.arange(dim)
    roots[:, diagonal, diagonal] = np.sqrt(rng.chisquare(degrees - diagonal, (n, dim)))
    return roots


def _directions(vectors: Array, whole: Array | None = None) -> tuple[Array, Array]:
    """Return lengths (T,) and directions (T, d); zeros where a vector is rounding beside `whole`."""
    lengths = np.linalg.norm(vectors, axis=1)
    if whole is not None:
        lengths[lengths <= PARALLEL * whole] = 0.0
    directions = np.divide(
        vectors, lengths[:, None], out=np.zeros_like(vectors), where=lengths[:, None] > 0.0
    )
    return lengths, directions


@compiled
def play_coordinates(
    own: Array,
    other: Array,
    noise: Array,
    along: Array,
    across: Array,
    chosen: Array,
    regret: Array,
    products: Array,
) -> None:
    """Choose in every round and task the arm of the largest along_t own + across_t other.

    Parameters
    ----------
    own, other : (n, T, K)
        Coordinates of the arms on offer; the first is the arm's mean reward.
    noise : (n, T)
    along, across : (T,)
    chosen : (n, T, 2)
        Is filled with the coordinates of the chosen arms; of equal arms the first is chosen.
    regret : (n, T)
        Is filled with the largest `own` on offer less the chosen one.
    products : (T, 3, 3)
        The lower triangle of S'S is added to, where S has the rows (own, other, noise) of what is chosen.
    """
    n_rounds, n_tasks, n_arms = own.shape
    for i in range(n_rounds):
        for t in range(n_tasks):
            x, z, e = own[i, t, 0], other[i, t, 0], noise[i, t]
            most, top = x, along[t] * x + across[t] * z
            for j in range(1, n_arms):
                u, v = own[i, t, j], other[i, t, j]
                score = along[t] * u + across[t] * v
                better = score > top  # selections, not branches: nobody can predict which arm is best
                top = score if better else top
                x = u if better else x
                z = v if better else z
                most = u if u > most else most
            chosen[i, t, 0] = x
            chosen[i, t, 1] = z
            regret[i, t] = most - x
            products[t, 0, 0] += x * x
            products[t, 1, 0] += z * x
            products[t, 1, 1] += z * z
            products[t, 2, 0] += e * x
            products[t, 2, 1] += e * z
            products[t, 2, 2] += e * e
