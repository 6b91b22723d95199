"""How uncertain estimates are, as data; and what one more reward makes of it, a task at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array
from posse.numerics.compiled import compiled
from posse.numerics.linalg import chunks, identity_plus_root, triangular_root


class Posterior(Protocol):
    """What the covariances of all tasks' parameters are made from, when somebody asks for them."""

    def roots(self) -> Array:
        """Return a root (T, d, m) of each task's covariance V_t, as wide as it comes."""


@runtime_checkable
class MovingPosterior(Posterior, Protocol):
    """A posterior that says enough to be moved by rewards, one at a time, and what a new task starts from."""

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""

    def newcomer(self) -> Beliefs:
        """Return what is believed of one task that was never seen."""


@dataclass(frozen=True, eq=False)
class KnownPosterior:
    """Roots of covariances that are known as they stand.

    Attributes
    ----------
    known : (T, d, m)
    """

    known: Array

    def roots(self) -> Array:
        """Return the roots."""
        return self.known


@dataclass(frozen=True, eq=False)
class Beliefs:
    """N(theta_t, s_t^2 R_t R_t') for every task, in noise of standard deviation s_t.

    R_t is in units of the noise, so that a reward moves theta_t whatever s_t is believed to be.

    Attributes
    ----------
    theta : (T, d)
    root : (T, d, d)
        R_t, any square root.
    deviation : (T,)
        s_t.
    """

    theta: Array
    root: Array
    deviation: Array

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Theta, root and deviation."""
        return self.theta, self.root, self.deviation

    @classmethod
    def of(cls, theta: Array, roots: Array, noise: Array) -> Beliefs:
        """Return beliefs from means (T, d), roots (T, d, m) in units of noise and noise variances (T,)."""
        return cls(
            np.array(theta, dtype=np.float64), np.array(triangular_root(roots)), np.sqrt(np.asarray(noise))
        )

    def given(self, statistics: GramStatistics) -> Beliefs:
        """Return what is believed after further rounds of all tasks: the conjugate posterior.

        With H = I + R'G R = L L' the new root is R L'^-1, and theta moves by the new R R'(b - G theta).
        """
        theta, root = self.theta.copy(), self.root.copy()
        if statistics.rows is not None:
            condition_on_rows(statistics.rows, statistics.moment, theta, root)
            return Beliefs(theta, root, self.deviation)
        # a reward that was amended has a moment of its own, and no further row
        (played,) = np.nonzero((statistics.count > 0) | statistics.moment.any(axis=1))
        for some in chunks(len(played), statistics.dim):
            tasks = played[some]
            gram, old = statistics.gram[tasks], root[tasks]
            root[tasks] = old @ identity_plus_root(old.mT @ gram @ old)
            left = statistics.moment[tasks] - np.matvec(gram, theta[tasks])
            theta[tasks] += np.matvec(root[tasks], np.vecmat(left, root[tasks]))
        return Beliefs(theta, root, self.deviation)


@compiled
def condition_on_rows(rows: Array, moment: Array, theta: Array, root: Array) -> None:
    """Move the beliefs of all tasks by few rounds, in place: d^2 for each.

    Parameters
    ----------
    rows : (n, T, d)
        X_t, each row times the root of its weight.
    moment : (T, d)
        X_t'y_t.
    theta : (T, d)
    root : (T, d, d)
        In units of the noise. Each row x changes it to R - g (R f) f', where f = R'x, a = 1 / (1 + f'f) and
        g = a / (1 + sqrt(a)) (Potter's square root of the updated covariance).
    """
    n_rounds, n_tasks, dim = rows.shape
    projected, left = np.empty(dim), np.empty(dim)
    for t in range(n_tasks):
        for i in range(dim):
            left[i] = moment[t, i]
        for n in range(n_rounds):
            explained = 0.0
            for i in range(dim):
                explained += rows[n, t, i] * theta[t, i]
            for i in range(dim):
                left[i] -= explained * rows[n, t, i]
        for n in range(n_rounds):
            for j in range(dim):
                projected[j] = 0.0
            for i in range(dim):
                x = rows[n, t, i]
                for j in range(dim):
                    projected[j] += x * root[t, i, j]
            scale = 1.0
            for j in range(dim):
                scale += projected[j] * projected[j]
            gain = 1.0 / (scale * (1.0 + np.sqrt(1.0 / scale)))
            for i in range(dim):
                total = 0.0
                for j in range(dim):
                    total += root[t, i, j] * projected[j]
                total *= gain
                for j in range(dim):
                    root[t, i, j] -= total * projected[j]
        for j in range(dim):
            projected[j] = 0.0
        for i in range(dim):
            for j in range(dim):
                projected[j] += root[t, i, j] * left[i]
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += root[t, i, j] * projected[j]
            theta[t, i] += total
