"""Every task on its own: ridge regression in all of R^d, or inside a basis that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.noise import noise_variance
from posse.estimators.ridge_average import averaged_roots
from posse.estimators.ridge_evidence import NO_DATA, likeliest_penalty
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_array, check_choice, check_number, check_orthonormal
from posse.numerics.compiled import compiled
from posse.numerics.linalg import REGULAR, inverse_root, regular_root, solve_symmetric, triangular_root

# An inverse is updated for no more rounds than this before it is computed afresh.
MOST_UPDATES = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeEstimate(Estimate):
    """An estimate with a fixed penalty that can be brought up to date.

    Attributes
    ----------
    inverse : (T, d, d)
        (G_t + lambda I)^-1.
    penalty : float
        Lambda.
    age : int
        Rounds for which the inverse was updated since it was last computed from G_t.
    """

    inverse: Array
    penalty: float
    age: int

    def can_take(self, rows: Array, penalty: float) -> bool:
        """Return whether the inverse may be updated by rows (n, T, d), with this penalty."""
        fits = self.theta.shape == rows.shape[1:] and self.penalty == penalty
        return fits and self.age + len(rows) <= MOST_UPDATES


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """Ridge regression, each task alone: theta_t minimises |y_t - X_t theta|^2 + lambda_t |theta|^2.

    Parameters
    ----------
    penalty : float or "evidence"
        Lambda. At 0 it is least squares, and where X_t'X_t is singular the minimum-norm solution.
        "evidence", the default, lets every task choose its own: the lambda under which its rewards
        are most likely when theta_t ~ N(0, s2/lambda I) and the noise variance s2 is free. It
        follows the scale of features and rewards by itself.

    Examples
    --------
    >>> x, y = np.array([[[1.0]], [[1.0]]]), np.array([[2.0], [4.0]])
    >>> Ridge(penalty=0).fit(GramStatistics.of(x, y)).theta
    array([[3.]])
    >>> Ridge(penalty=1).fit(GramStatistics.of(x, y)).theta
    array([[2.]])

    Notes
    -----
    With a fixed penalty the covariance is s2_t (G_t + lambda I)^-1, the noise variance s2_t from the task's
    misfit. With a learned one it is averaged over penalties and noise variances, each as likely as the
    task's rewards make it: with few rewards they are far from known, and one of each would be too sure.

    With r(lambda) = y'y - b'(G + lambda I)^-1 b, minus twice the log likelihood is, up to a constant,
    n log r(lambda) + log det(I + G/lambda): cheap for any lambda once G is tridiagonal. It is minimised
    over a fixed grid of 33 values from 1e-3 to 1e5 times the mean eigenvalue of x x', four to a
    decade; the likelihood is flat on that scale.
    """

    penalty: float | str = "evidence"

    def __post_init__(self) -> None:
        if isinstance(self.penalty, str):
            check_choice("`penalty` of Ridge, if not a number,", self.penalty, ["evidence"])
        else:
            check_number("`penalty` of Ridge", self.penalty, 0.0)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is zero.

        Warns
        -----
        NoDataWarning
            If there is not a single row.
        """
        check_statistics(statistics, "Ridge")
        if not isinstance(self.penalty, str):
            penalty = float(self.penalty)
            return _estimate(statistics, np.full(statistics.n_tasks, penalty), penalty, RidgePosterior)
        return _estimate(statistics, likeliest_penalty(statistics), NO_DATA, AveragedRidgePosterior)

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> Estimate:
        """Estimate theta as `fit` does; by an update, if the penalty is fixed and few rounds are new.

        An update costs d^2 for each new round, not d^3. Now and then it is a fit, lest rounding adds up.
        """
        penalty, rows = self.penalty, None if added is None else added.rows
        if isinstance(penalty, str) or rows is None or not _is_regular(statistics.gram, penalty):
            return self.fit(statistics)
        penalties = np.full(statistics.n_tasks, float(penalty))
        if isinstance(previous, RidgeEstimate) and previous.can_take(rows, penalty):
            inverse, theta = np.empty_like(previous.inverse), np.empty_like(statistics.moment)
            update_inverses(previous.inverse, rows, statistics.moment, inverse, theta)
            age = previous.age + len(rows)
        else:
            root = inverse_root(_shifted(statistics, penalties))
            inverse = np.asarray(root @ root.mT)  # symmetric, as updates need it; `inv` is not
            theta, age = np.asarray((inverse @ statistics.moment[:, :, None])[:, :, 0]), 0
        posterior = RidgePosterior(statistics, theta, penalties, penalty)
        return RidgeEstimate(theta=theta, posterior=posterior, inverse=inverse, penalty=penalty, age=age)

    @property
    def gives_covariance(self) -> bool:
        """Whether estimates have a covariance: least squares knows nothing where a task has no data."""
        return self.penalty != 0


def _estimate(
    statistics: GramStatistics, penalties: Array, without_data: float, kind: type[RidgePosterior]
) -> Estimate:
    """Return the solutions for given penalties, and posteriors of some kind where there is a penalty."""
    theta = solve_symmetric(_shifted(statistics, penalties), statistics.moment)
    posterior = kind(statistics, theta, penalties, without_data) if penalties.all() else None
    return Estimate(theta, posterior=posterior)


def _shifted(statistics: GramStatistics, penalties: Array) -> Array:
    return np.asarray(statistics.gram + penalties[:, None, None] * np.eye(statistics.dim))


def _is_regular(gram: Array, penalty: float) -> bool:
    """Return whether a penalty is large enough for G + lambda I to be inverted as it stands."""
    largest = float(np.einsum("tii->ti", gram).max()) + penalty
    return bool(penalty > REGULAR * gram.shape[1] * largest)


@dataclass(frozen=True, eq=False)
class RidgePosterior:
    """V_t = s2_t (G_t + lambda_t I)^-1, with s2_t from the task's own misfit.

    A task without data has the identity.

    Attributes
    ----------
    statistics : GramStatistics
    theta : (T, d)
        The estimate.
    penalties : (T,)
        lambda_t, above 0.
    without_data : float
        The penalty of a task without data.
    """

    statistics: GramStatistics
    theta: Array
    penalties: Array
    without_data: float

    @cached_property
    def noise(self) -> Array:
        """s2_t, the noise variances (T,); where there is no data that for which V_t is the identity."""
        seen = self.statistics
        misfit = seen.square - np.vecdot(seen.moment, self.theta)
        return np.where(seen.count > 0, noise_variance(misfit, seen.square, seen.count), self.penalties)

    def roots(self) -> Array:
        """Return roots (T, d, d) of V_t."""
        return self._roots(self.noise)

    def _roots(self, noise: Array) -> Array:
        """Return roots of the covariances in noise of some variances (T,)."""
        matrices = _shifted(self.statistics, self.penalties)
        backwards = regular_root(matrices[:, ::-1, ::-1])
        if backwards is not None:  # J (M M')^-1 J = (J M^-T J)(J M^-T J)', and J M^-T J is lower triangular
            inverse = np.linalg.inv(backwards).mT[:, ::-1, ::-1]
            return np.asarray(np.sqrt(noise)[:, None, None] * np.tril(inverse))
        values, vectors = np.linalg.eigh(self.statistics.gram)
        shrunk = noise[:, None] / (np.maximum(values, 0.0) + self.penalties[:, None])
        return np.asarray(vectors * np.sqrt(shrunk)[:, None, :])

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        matrices = _shifted(self.statistics, self.penalties)
        try:
            return Beliefs(theta.copy(), inverse_root(matrices), np.sqrt(self.noise))
        except np.linalg.LinAlgError:  # so large that the penalties are lost in rounding
            return Beliefs.of(theta, self._roots(np.ones(len(theta))), self.noise)

    def newcomer(self) -> Beliefs:
        """Return N(0, I): each task learns alone, so nothing is known of another but the penalty."""
        dim, penalty = self.statistics.dim, np.full(1, self.without_data)
        return Beliefs.of(np.zeros((1, dim)), np.eye(dim)[None] / np.sqrt(penalty), penalty)


@dataclass(frozen=True, eq=False)
class AveragedRidgePosterior(RidgePosterior):
    """V_t = E[(theta - theta_t)(theta - theta_t)'], averaged over all penalties and noises that are likely.

    A task without data has the identity.

    Attributes
    ----------
    statistics : GramStatistics
    theta : (T, d)
        The estimate, with the likeliest penalty. It is not the average, so that V_t counts its distance.
    penalties : (T,)
        The likeliest lambda_t, above 0.
    without_data : float
        The penalty of a task without data.
    """

    def roots(self) -> Array:
        """Return roots (T, d, d) of V_t."""
        seen = self.statistics
        roots = np.sqrt(seen.square)[:, None, None] * averaged_roots(seen, self.theta)
        return np.where((seen.count > 0)[:, None, None], roots, np.eye(seen.dim))

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known.

        Rewards move them by the likeliest penalty, as they would in a fit with that. s_t is such that widths
        are those of V_t on average: s_t^2 = tr V_t (G_t + lambda_t I) / d.
        """
        seen, moved = self.statistics, super().beliefs(theta)
        roots = averaged_roots(seen, self.theta)
        ratios = np.einsum("tij,tij->t", roots, _shifted(seen, self.penalties) @ roots) / seen.dim
        return replace(
            moved, deviation=np.where(seen.count > 0, np.sqrt(seen.square * ratios), moved.deviation)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class OracleBasis:
    """Ridge regression inside a basis that is given: what a learner could do if it knew B.

    Parameters
    ----------
    basis : (d, k)
        Orthonormal columns.
    penalty : float or "evidence"
        The ridge of the k weights of each task. At 0 it is least squares; "evidence", the default, lets
        every task choose the one under which its rewards are most likely.

    Examples
    --------
    >>> x, y = np.array([[[1.0, 5.0]], [[1.0, 7.0]]]), np.array([[2.0], [4.0]])
    >>> OracleBasis(basis=np.array([[1.0], [0.0]]), penalty=0).fit(GramStatistics.of(x, y)).theta
    array([[3., 0.]])
    """

    basis: Array
    penalty: float | str = "evidence"

    def __post_init__(self) -> None:
        basis = check_array("`basis` of OracleBasis", self.basis, ("d", "k"))
        check_orthonormal("`basis` of OracleBasis", basis)
        object.__setattr__(self, "basis", basis)
        Ridge(penalty=self.penalty)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate the weights of every task, and theta = B w from them."""
        B = self.basis
        if len(B) != statistics.dim:
            raise ValueError(f"`basis` of OracleBasis must have dim={statistics.dim} rows. Got {len(B)}.")
        inside = GramStatistics(
            B.T @ statistics.gram @ B, statistics.moment @ B, statistics.square, statistics.count
        )
        found = Ridge(penalty=self.penalty).fit(inside)
        inner = found.posterior
        posterior = InBasis(B, found.theta, inner) if isinstance(inner, RidgePosterior) else None
        return Estimate(found.theta @ B.T, basis=B, weights=found.theta, posterior=posterior)

    @property
    def gives_covariance(self) -> bool:
        """Whether estimates have a covariance: not without a penalty, as least squares knows no prior."""
        return Ridge(penalty=self.penalty).gives_covariance


@dataclass(frozen=True, eq=False)
class InBasis:
    """The posterior of weights w_t, seen in theta_t = B w_t.

    Attributes
    ----------
    basis : (d, k)
        B.
    weights : (T, k)
    inner : RidgePosterior
        Of the weights.
    """

    basis: Array
    weights: Array
    inner: RidgePosterior

    def roots(self) -> Array:
        """Return roots (T, d, k) of the covariances of theta_t."""
        return np.asarray(self.basis @ triangular_root(self.inner.roots()))

    def beliefs(self, theta: Array) -> Beliefs:
        """Return the posteriors of all tasks, whose means theta (T, d) are known."""
        _, root, deviation = self.inner.beliefs(self.weights).parts
        return Beliefs.of(theta, self.basis @ root, deviation**2)

    def newcomer(self) -> Beliefs:
        """Return N(0, B B')."""
        _, root, deviation = self.inner.newcomer().parts
        return Beliefs.of(np.zeros((1, len(self.basis))), self.basis @ root, deviation**2)


@compiled
def update_inverses(inverse: Array, rows: Array, moment: Array, updated: Array, solution: Array) -> None:
    """Solve (A_t + X_t'X_t) x = b_t, given the inverses (T, d, d) of A_t and the rows (n, T, d) of X_t.

    `updated` is filled with the new inverses, one rank-one update after the other by the formula of Sherman
    and Morrison, and `solution` (T, d) with what they make of `moment` (T, d).
    """
    n_rounds, n_tasks, dim = rows.shape
    product = np.empty(dim)
    for t in range(n_tasks):
        for i in range(dim):
            for j in range(dim):
                updated[t, i, j] = inverse[t, i, j]
        for n in range(n_rounds):
            scale = 1.0
            for i in range(dim):
                product[i] = 0.0
            for i in range(dim):
                x = rows[n, t, i]
                for j in range(dim):  # rows serve as columns: the matrix is symmetric
                    product[j] += x * updated[t, i, j]
            for i in range(dim):
                scale += rows[n, t, i] * product[i]
            for i in range(dim):
                share = product[i] / scale
                for j in range(dim):
                    updated[t, i, j] -= share * product[j]
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += updated[t, i, j] * moment[t, j]
            solution[t, i] = total
