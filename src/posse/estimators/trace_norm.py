"""Parameters of low rank by the trace norm: a convex problem, and a certificate that it is solved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from posse.core.estimate import Certificate, ConvergenceWarning, Estimate
from posse.core.statistics import GramStatistics
from posse.estimators.noise import pooled_variance
from posse.estimators.scaled import scaled
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, check_number

# The duality gap at which a solution counts as found, as a share of the rewards' sum of squares.
TOLERANCE = 1e-7
MAX_ITER = 5000
# The gap is looked at after every so many steps.
LOOK = 10


@dataclass(frozen=True, kw_only=True)
class TraceNorm:
    """Least squares of all tasks with a penalty on the trace norm of their parameters, which need no rank.

    Minimises sum_t |y_t - X_t theta_t|^2 / 2 + lambda |Theta|_*, where |Theta|_* is the sum of the singular
    values of the matrix Theta (T x d) of all parameters.

    Parameters
    ----------
    scale : float
        c in lambda = c s sqrt((d + T) max_t |X_t'X_t|), above 0, with s the noise's standard deviation and
        the largest eigenvalue of any task's X_t'X_t. At c about 1 noise alone would give Theta = 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.standard_normal((30, 1)) @ rng.standard_normal((1, 8))     # 30 tasks, rank 1
    >>> x = rng.standard_normal((40, 30, 8))
    >>> seen = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((40, 30)))
    >>> estimate = TraceNorm().fit(seen)
    >>> np.linalg.svd(estimate.theta)[1].round(1)
    array([5.2, 0. , 0. , 0. , 0. , 0. , 0. , 0. ])
    >>> estimate.certificate.converged
    True

    Notes
    -----
    Accelerated proximal gradient steps (FISTA) with restarts wherever momentum points uphill. The
    certificate's `gradient_norm` is the duality gap as a share of the rewards' sum of squares: the residuals
    y_t - X_t theta_t, scaled until the matrix of X_t'(y_t - X_t theta_t) has no singular value above lambda,
    are feasible for the dual problem, and all its values follow from the statistics.

    The noise's standard deviation, which the paper takes as known, is that of the residuals of the tasks' own
    least squares. The penalty depends on the units of features, as the trace norm does.

    References
    ----------
    Cella, Lounici, Pacreau and Pontil, Multi-task representation learning with stochastic linear bandits,
    AISTATS 2023.
    """

    scale: float = 0.7

    def __post_init__(self) -> None:
        check_number("`scale` of TraceNorm", self.scale, 0.0, open_low=True)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate theta of every task; with no data it is zero.

        Warns
        -----
        ConvergenceWarning
            If the duality gap did not close; the certificate then says `converged=False`.
        NoDataWarning
            If there is not a single row.
        """
        return self._fit(statistics, np.zeros_like(statistics.moment))

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> Estimate:
        """Estimate theta as `fit` does, starting from an earlier estimate; tasks may be added at the end."""
        start = np.zeros_like(statistics.moment)
        start[: len(previous.theta)] = previous.theta
        return self._fit(statistics, start)

    def _fit(self, statistics: GramStatistics, start: Array) -> Estimate:
        check_statistics(statistics, "TraceNorm")
        units = scaled(statistics)
        if units is None:
            return Estimate(np.zeros_like(statistics.moment))
        seen, size = units
        n_tasks, dim = seen.moment.shape
        largest = float(np.linalg.eigvalsh(seen.gram)[:, -1].max())
        penalty = self.scale * np.sqrt(pooled_variance(seen) * (dim + n_tasks) * largest)
        theta, certificate = minimise(seen, penalty, largest, start / size)
        if not certificate.converged:
            warnings.warn(
                f"TraceNorm stopped after {certificate.n_iter} steps with a duality gap of "
                f"{certificate.gradient_norm:.1e}, above {TOLERANCE:.0e}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return Estimate(theta * size, certificate=certificate)


def minimise(
    statistics: GramStatistics, penalty: float, largest: float, start: Array
) -> tuple[Array, Certificate]:
    """Return theta (T, d) that minimises squares and trace norm, and how far its value is from the least.

    Parameters
    ----------
    statistics : GramStatistics
    penalty : float
        lambda, above 0.
    largest : float
        The largest eigenvalue of any X_t'X_t: steps have the length of its inverse.
    start : (T, d)
    """
    gram, moment = statistics.gram, statistics.moment
    total = float(statistics.square.sum())
    theta = ahead = start
    momentum, gap, objective = 1.0, np.inf, np.inf
    for step in range(MAX_ITER + 1):
        if step % LOOK == 0:
            gap, objective = duality_gap(statistics, penalty, theta)
            if gap <= TOLERANCE * total:
                break
        downhill = moment - np.matvec(gram, ahead)
        moved = shrink_singular_values(ahead + downhill / largest, penalty / largest)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        if np.vdot(ahead - moved, moved - theta) > 0.0:  # momentum points uphill: begin anew
            following, ahead = 1.0, moved
        else:
            ahead = moved + (momentum - 1.0) / following * (moved - theta)
        theta, momentum = moved, following
    return theta, Certificate(objective, gap / total, step, bool(gap <= TOLERANCE * total))


def duality_gap(statistics: GramStatistics, penalty: float, theta: Array) -> tuple[float, float]:
    """Return how far the objective at theta (T, d) is from the least at the most, and the objective."""
    fitted = np.matvec(statistics.gram, theta)
    explained, own = float(np.vdot(theta, statistics.moment)), float(np.vdot(theta, fitted))
    square = float(statistics.square.sum())
    left = max(square - 2.0 * explained + own, 0.0)
    objective = 0.5 * left + penalty * float(np.linalg.norm(theta, "nuc"))
    along = square - explained  # the rewards times the residuals
    most = float(np.linalg.norm(statistics.moment - fitted, 2))
    share = penalty / most if most > penalty else 1.0
    best = min(share, max(along / left, 0.0)) if left > 0.0 else share
    return objective - (best * along - 0.5 * best**2 * left), objective


def shrink_singular_values(matrix: Array, by: float) -> Array:
    """Return a matrix with its singular values lowered by a number, those below it to 0.

    Examples
    --------
    >>> shrink_singular_values(np.diag([3.0, 1.0]), 2.0)
    array([[1., 0.],
           [0., 0.]])
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray((left * np.maximum(values - by, 0.0)) @ right)
