"""The representation from what tasks find alone, each free to leave it: Tian, Gu and Feng (2025)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.core.estimate import Estimate
from posse.core.statistics import GramStatistics
from posse.estimators.noise import pooled_variance
from posse.estimators.pulled import Pulled
from posse.estimators.ridge import OracleBasis
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, BoolArray, check_choice, check_integer, check_number
from posse.numerics.linalg import solve_symmetric

# How far singular values must stand out of noise, and of outliers, to be counted as rank: the paper's code.
NOISE_FACTOR, OUTLIER_FACTOR = 0.5, 0.25


@dataclass(frozen=True, kw_only=True)
class SpectralShrinkage:
    """The spectral method for similar representations: singular vectors, then tasks pulled towards them.

    The leading k singular vectors of the tasks' own least squares are the representation B. Inside it every
    task regresses, and then has theta_t that minimises |y_t - X_t theta|^2 / 2 + w_t |theta - B v_t|, where
    the distance is not squared: a task that fits B stays in it, one that does not is on its own.

    Parameters
    ----------
    rank : int or "auto"
        k, at most min(d, T). "auto" counts singular values that stand out of the noise.
    scale : float
        C in w_t = C s sqrt((d + log T) tr X_t'X_t / d), not negative, s being the noise's standard deviation.
    outliers : float
        The share of tasks, in [0, 0.5], that may have nothing to do with the others: before singular vectors
        are taken, the longest estimates of that share are shortened to the length of the rest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.standard_normal((20, 1)) @ rng.standard_normal((1, 6))
    >>> x = rng.standard_normal((60, 20, 6))
    >>> seen = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((60, 20)))
    >>> SpectralShrinkage(rank="auto").fit(seen).basis.shape
    (6, 1)

    Notes
    -----
    The paper's units are features of variance 1 and noise of variance 1, where w_t = C sqrt(n (d + log T)).
    Where features are longer or shorter the mean eigenvalue of X_t'X_t takes the place of n, and noise is
    that of the residuals. The authors' code shortens all estimates to one length where there may be outliers;
    here only the longest are, as their text has it. It has C = 1/2; 1 did better in bandits.

    References
    ----------
    Tian, Gu and Feng, Learning from similar linear representations: adaptivity, minimaxity, and robustness,
    JMLR 26(187), 2025.
    """

    rank: int | str = "auto"
    scale: float = 1.0
    outliers: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.rank, str):
            check_choice("`rank` of SpectralShrinkage, if not an integer,", self.rank, ["auto"])
        else:
            check_integer("`rank` of SpectralShrinkage", self.rank, 1)
        check_number("`scale` of SpectralShrinkage", self.scale, 0.0)
        check_number("`outliers` of SpectralShrinkage", self.outliers, 0.0, 0.5)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate the representation, and theta of every task; one without data gets 0.

        Warns
        -----
        NoDataWarning
            If there is not a single row.
        """
        check_statistics(statistics, "SpectralShrinkage")
        n_tasks, dim = statistics.moment.shape
        if not isinstance(self.rank, str):
            most = f"min(dim={dim}, n_tasks={n_tasks})"
            check_integer("`rank` of SpectralShrinkage", self.rank, 1, min(dim, n_tasks), high_name=most)
        alone = solve_symmetric(statistics.gram, statistics.moment)
        if not alone.any():
            return Estimate(np.zeros_like(alone))
        told = statistics.count > 0
        clipped = shortened(alone, self.outliers, told)
        _, values, right = np.linalg.svd(clipped, full_matrices=False)
        deviation = np.sqrt(pooled_variance(statistics))
        mean_eigenvalue = np.einsum("tii->t", statistics.gram) / dim
        rank = self.rank
        if isinstance(rank, str):
            rank = self._rank(values, clipped[told], deviation, mean_eigenvalue[told])
        inside = OracleBasis(basis=right[:rank].T, penalty=0.0).fit(statistics)
        weights = self.scale * deviation * np.sqrt((dim + np.log(n_tasks)) * mean_eigenvalue)
        theta = Pulled.of(statistics).towards(inside.theta, weights)
        return Estimate(theta, basis=inside.basis, weights=inside.weights)

    def _rank(self, values: Array, clipped: Array, deviation: float, mean_eigenvalue: Array) -> int:
        """Return how many singular values of Theta / sqrt(T) are above what noise and outliers make."""
        n_tasks, dim = clipped.shape
        noise = deviation * np.sqrt((dim + np.log(n_tasks)) / np.median(mean_eigenvalue))
        longest = float(np.linalg.norm(clipped, axis=1).max())
        limit = NOISE_FACTOR * noise + OUTLIER_FACTOR * longest * np.sqrt(self.outliers)
        return max(1, int(np.sum(values / np.sqrt(n_tasks) > limit)))


def shortened(theta: Array, share: float, told: BoolArray) -> Array:
    """Return vectors (T, d), of which the longest of a share are shortened to the length of the others.

    Examples
    --------
    >>> shortened(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]), 0.34, np.ones(3, dtype=bool)).round(2)
    array([[1. , 0. ],
           [0. , 2. ],
           [1.2, 1.6]])
    """
    lengths = np.linalg.norm(theta, axis=1)
    longest = np.sort(lengths[told])[max(0, int(np.ceil((1.0 - share) * told.sum())) - 1)]
    factors = np.divide(longest, lengths, out=np.ones_like(lengths), where=lengths > longest)
    return np.asarray(theta * factors[:, None])
