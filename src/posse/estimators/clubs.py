"""Tasks in clusters that are found as they differ: the graph of CLUB (Gentile, Li and Zappella, 2014)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from posse.core.estimate import Estimate
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.estimators.noise import pooled_variance
from posse.estimators.ridge import Ridge
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, BoolArray, IntArray, check_number
from posse.numerics.linalg import inverse_root


@dataclass(frozen=True, eq=False, kw_only=True)
class ClubEstimate(Estimate):
    """An estimate with the clusters that it was made in.

    Attributes
    ----------
    graph : (T, T)
        Which tasks were never seen to differ.
    clusters : (T,)
        The number of every task's cluster.
    """

    graph: BoolArray
    clusters: IntArray


@dataclass(frozen=True, kw_only=True)
class Clubs:
    """Ridge regression in clusters: tasks are together until their own estimates are too far apart.

    At first all tasks are connected. A pair is disconnected for good once the distance of their own ridge
    estimates is above separation (e_i + e_j), e being what an estimate from so many rounds may be off by.
    The clusters are what is connected, and in each all rows count as one task's.

    Parameters
    ----------
    separation : float
        How many times their expected errors two tasks must be apart, above 0.
    penalty : float
        The ridge of tasks and clusters, above 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = np.repeat([[2.0, 0.0], [0.0, 2.0]], 3, axis=0)
    >>> x = rng.standard_normal((200, 6, 2))
    >>> seen = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((200, 6)))
    >>> Clubs(separation=0.5).fit(seen).clusters
    array([0, 0, 0, 1, 1, 1])

    Notes
    -----
    The paper has e = sqrt((1 + log(1 + n)) / (1 + n)) for features of length 1, and a factor that is tuned.
    Here e is multiplied by s sqrt(d / g), s being the noise's standard deviation and g the mean eigenvalue of
    one round's x x': what least squares is off by, so that one factor serves all problems.
    A task without rewards has no edges until it has some: it would hold all clusters together.
    The covariance is that of the paper's bonus, log(1 + n) (X'X + penalty I)^-1 for a cluster of n rows.

    References
    ----------
    Gentile, Li and Zappella, Online clustering of bandits, ICML 2014.
    """

    separation: float = 0.25
    penalty: float = 1.0

    gives_covariance = True

    def __post_init__(self) -> None:
        check_number("`separation` of Clubs", self.separation, 0.0, open_low=True)
        check_number("`penalty` of Clubs", self.penalty, 0.0, open_low=True)

    def fit(self, statistics: GramStatistics) -> ClubEstimate:
        """Estimate theta of every task in its cluster; one without data gets 0.

        Warns
        -----
        NoDataWarning
            If there is not a single row.
        """
        return self._fit(statistics, np.ones((statistics.n_tasks, statistics.n_tasks), dtype=bool))

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> ClubEstimate:
        """Estimate as `fit` does, but what was disconnected stays so; tasks may be added at the end."""
        graph = np.ones((statistics.n_tasks, statistics.n_tasks), dtype=bool)
        if isinstance(previous, ClubEstimate):
            known = len(previous.graph)
            graph[:known, :known] = previous.graph
        return self._fit(statistics, graph)

    def _fit(self, statistics: GramStatistics, graph: BoolArray) -> ClubEstimate:
        check_statistics(statistics, "Clubs")
        graph = graph & self._alike(statistics)
        told = statistics.count > 0
        linked = graph & told & told[:, None]
        clusters = connected_components(linked, directed=False)[1].astype(np.intp)
        together = _summed(statistics, clusters)
        matrices = together.gram + self.penalty * np.eye(statistics.dim)
        roots = inverse_root(matrices)
        theta = np.matvec(roots, np.vecmat(together.moment, roots))
        widths = np.sqrt(np.log1p(together.count))
        posterior = ClubPosterior(roots[clusters], widths[clusters], self.penalty)
        return ClubEstimate(theta=theta[clusters], posterior=posterior, graph=graph, clusters=clusters)

    def _alike(self, statistics: GramStatistics) -> BoolArray:
        """Return which pairs of tasks (T, T) are no farther apart than their errors allow."""
        count, total = statistics.count, float(statistics.count.sum())
        if total == 0.0:
            return np.ones((len(count), len(count)), dtype=bool)
        own = Ridge(penalty=self.penalty).fit(statistics).theta
        size = float(np.einsum("tii->", statistics.gram)) / total / statistics.dim
        off = np.sqrt(pooled_variance(statistics) * statistics.dim / size) if size > 0.0 else 0.0
        errors = off * np.sqrt((1.0 + np.log1p(count)) / (1.0 + count))
        apart = np.linalg.norm(own[:, None] - own, axis=2)
        return np.asarray(apart <= self.separation * (errors[:, None] + errors))


def _summed(statistics: GramStatistics, clusters: IntArray) -> GramStatistics:
    """Return the statistics of clusters, each as one task."""
    number = int(clusters.max()) + 1
    sums = []
    for part in (statistics.gram, statistics.moment, statistics.square, statistics.count):
        total = np.zeros((number, *part.shape[1:]))
        np.add.at(total, clusters, part)
        sums.append(total)
    return GramStatistics(*sums)


@dataclass(frozen=True, eq=False)
class ClubPosterior:
    """Widths of the bonus sqrt(x'M^-1 x log(1 + n)), M being X'X + penalty I of a task's cluster of n rows.

    Attributes
    ----------
    known : (T, d, d)
        Roots of M^-1.
    widths : (T,)
        sqrt(log(1 + n)).
    penalty : float
    """

    known: Array
    widths: Array
    penalty: float

    def roots(self) -> Array:
        """Return roots (T, d, d) of log(1 + n) M^-1."""
        return np.asarray(self.widths[:, None, None] * self.known)

    def beliefs(self, theta: Array) -> Beliefs:
        """Return theta (T, d) with widths as they stand, to be moved by further rows."""
        return Beliefs.of(theta, self.known, self.widths**2)

    def newcomer(self) -> Beliefs:
        """Return what a task without rows starts from: 0, in a cluster of its own."""
        dim = self.known.shape[1]
        return Beliefs.of(np.zeros((1, dim)), np.eye(dim)[None] / np.sqrt(self.penalty), np.zeros(1))
