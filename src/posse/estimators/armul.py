"""Tasks pulled towards prototypes that have a structure: ARMUL (Duan and Wang, 2023)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posse.core.estimate import Certificate, ConvergenceWarning, Estimate
from posse.core.statistics import GramStatistics
from posse.estimators.low_rank import LowRank
from posse.estimators.noise import pooled_variance
from posse.estimators.pulled import Pulled
from posse.estimators.scaled import scaled
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, BoolArray, IntArray, check_choice, check_integer, check_number
from posse.numerics.compiled import loading
from posse.numerics.linalg import solve_symmetric

STRUCTURES = ("low-rank", "mean", "clusters")
TOLERANCE = 1e-5
# Steps at the most; a refit goes on from the last estimate, and the next one from it.
MAX_ITER, REFIT_ITER = 2000, 300
# Weights below this share of X_t'y_t are as good as none: noise of this size is rounding.
NO_WEIGHT = 1e-6
# Directions with less than this share of the data are moved as if they had it.
FLAT = 1e-8
# Tasks go from one cluster to another no more often than this.
MOST_MOVES = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmulEstimate(Estimate):
    """An estimate with the prototypes that tasks were pulled towards.

    Attributes
    ----------
    prototypes : (T, d)
        gamma_t.
    """

    prototypes: Array


@dataclass(frozen=True, kw_only=True)
class Armul:
    """Adaptive and robust multi-task learning: parameters near prototypes, and prototypes of a structure.

    Minimises sum_t |y_t - X_t theta_t|^2 / 2 + w_t |theta_t - gamma_t| over all theta_t and over prototypes
    gamma_t that have rank k together, or are all equal, or are k different ones. The distance is not squared:
    a task that fits its prototype takes it as it is, and one that does not moves it by no more than w_t.

    Parameters
    ----------
    rank : int
        k: the rank of the prototypes, or the number of clusters; at most min(d, T).
    structure : {"low-rank", "mean", "clusters"}
        What prototypes have in common. "mean" is one prototype for all, whatever the rank.
    scale : float
        C in w_t = C s sqrt(tr X_t'X_t), not negative, with s the noise's standard deviation. In the paper's
        units, features of variance 1 and loss averaged over n rewards, that is lambda = C s sqrt(d / n).
        At 0 tasks are alone, and the larger it is, the more they are their prototypes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = np.outer(np.ones(9), [1.0, -1.0, 2.0])
    >>> theta[0] = [-3.0, 3.0, 0.0]                                           # one is unlike the others
    >>> x = rng.standard_normal((50, 9, 3))
    >>> seen = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((50, 9)))
    >>> found = Armul(rank=1, structure="mean", scale=2.0).fit(seen).theta
    >>> np.ptp(found[1:], axis=0).round(3) + 0.0, found[0].round(1)
    (array([0., 0., 0.]), array([-2.6,  2.5,  0.4]))

    Notes
    -----
    For given prototypes every theta_t is found exactly (`Pulled`), and what is left is a smooth function of
    the prototypes, whose gradient at gamma_t is X_t'(X_t theta_t - y_t). L-BFGS minimises it: for a common
    mean it is convex; for low rank the factors are moved, from the singular vectors of the tasks' own least
    squares or from `LowRank`, whichever is the better start, or from the last estimate; for clusters
    each task goes to the prototype that suits it best, until none moves, the first ones being medoids.

    The paper chooses C by cross-validation, which needs the rows. Here it is a number; the figure of
    `posse reproduce armul` cross-validates. The noise's standard deviation is that of the residuals of the
    tasks' own least squares. The certificate's `gradient_norm` is the gradient's largest entry as a share of
    the largest w_t.

    References
    ----------
    Duan and Wang, Adaptive and robust multi-task learning, Annals of Statistics 51(5), 2023.
    """

    rank: int
    structure: str = "low-rank"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_integer("`rank` of Armul", self.rank, 1)
        check_choice("`structure` of Armul", self.structure, STRUCTURES)
        check_number("`scale` of Armul", self.scale, 0.0)

    def fit(self, statistics: GramStatistics) -> ArmulEstimate:
        """Estimate theta of every task; one without data gets the mean of all prototypes, without any 0.

        Warns
        -----
        ConvergenceWarning
            If the gradient did not vanish; the certificate then says `converged=False`.
        NoDataWarning
            If there is not a single row.
        """
        return self._fit(statistics, None)

    def refit(
        self, statistics: GramStatistics, previous: Estimate, added: GramStatistics | None = None
    ) -> ArmulEstimate:
        """Estimate as `fit` does, also from earlier prototypes; tasks may be added at the end."""
        return self._fit(statistics, previous.prototypes if isinstance(previous, ArmulEstimate) else None)

    def _fit(self, statistics: GramStatistics, earlier: Array | None) -> ArmulEstimate:
        check_statistics(statistics, "Armul")
        n_tasks, dim = statistics.moment.shape
        limit = f"min(dim={dim}, n_tasks={n_tasks})"
        check_integer("`rank` of Armul", self.rank, 1, min(dim, n_tasks), high_name=limit)
        units = scaled(statistics)
        if units is None:
            nothing = np.zeros_like(statistics.moment)
            return ArmulEstimate(theta=nothing, prototypes=nothing)
        told = statistics.count > 0
        seen = units.statistics.take(told)
        deviation = np.sqrt(pooled_variance(seen))
        weights = self.scale * deviation * np.sqrt(np.einsum("tii->t", seen.gram))
        most = MAX_ITER if earlier is None else REFIT_ITER
        prototypes = _Prototypes(Pulled.of(seen), weights, most)
        start = None
        if earlier is not None:
            start = np.zeros_like(statistics.moment)
            start[: len(earlier)] = earlier / units.size
            start = start[told]
        rank = min(self.rank, len(seen.count))
        points, certificate = prototypes.of_structure(self.structure, rank, start)
        theta, all_points = np.empty((2, n_tasks, dim))
        theta[told], all_points[told] = prototypes.pulled.towards(points, weights), points
        theta[~told] = all_points[~told] = points.mean(axis=0)
        if not certificate.converged and earlier is None:  # a refit is one step of many
            warnings.warn(
                f"Armul stopped after {certificate.n_iter} steps with a gradient of "
                f"{certificate.gradient_norm:.1e}, above {TOLERANCE:.0e}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return ArmulEstimate(
            theta=theta * units.size, certificate=certificate, prototypes=all_points * units.size
        )


@dataclass(frozen=True, eq=False)
class _Prototypes:
    """The function of prototypes that is left once every task has moved."""

    pulled: Pulled
    weights: Array
    most: int = MAX_ITER

    def of_structure(self, structure: str, rank: int, start: Array | None) -> tuple[Array, Certificate]:
        """Return prototypes (T, d) of a structure, also from a start (T, d), and how well they were found."""
        if structure == "mean" or (structure == "clusters" and rank == 1):
            return self.common()
        if structure == "clusters":
            return self.clusters(rank)
        starts = [self.pulled.towards(*_alone(self.pulled))]
        starts += [LowRank(rank=rank).fit(self.pulled.statistics).theta] if start is None else [start]
        best = min(starts, key=lambda some: float(self._values(truncated(some, rank)).sum()))
        return self.low_rank(best, rank)

    def common(self) -> tuple[Array, Certificate]:
        """Return one prototype for all tasks, repeated."""
        seen, n_tasks = self.pulled.statistics, len(self.weights)
        start = solve_symmetric(seen.gram.sum(axis=0), seen.moment.sum(axis=0))
        return self._descend(
            start,
            lambda flat: np.tile(flat, (n_tasks, 1)),
            lambda flat, gradient: gradient.sum(axis=0),
        )

    def low_rank(self, start: Array, rank: int) -> tuple[Array, Certificate]:
        """Return prototypes of some rank, from the leading singular vectors of a matrix (T, d).

        Factors are moved in coordinates in which the mean of all X_t'X_t is the identity.
        """
        gram = self.pulled.statistics.gram.mean(axis=0)
        values, vectors = np.linalg.eigh(gram)
        roots = np.sqrt(np.maximum(values, FLAT * values[-1]))
        inwards, outwards = vectors * roots, vectors / roots
        left, sizes, right = np.linalg.svd(start @ inwards, full_matrices=False)
        n_tasks, dim = start.shape
        root = np.sqrt(np.maximum(sizes[:rank], FLAT * (sizes[0] or 1.0)))
        flat = np.concatenate([(left[:, :rank] * root).ravel(), (right[:rank].T * root).ravel()])

        def factors(flat: Array) -> tuple[Array, Array]:
            return flat[: n_tasks * rank].reshape(n_tasks, rank), flat[n_tasks * rank :].reshape(dim, rank)

        def points(flat: Array) -> Array:
            weights, basis = factors(flat)
            return np.asarray(weights @ (outwards @ basis).T)

        def slopes(flat: Array, gradient: Array) -> Array:
            weights, basis = factors(flat)
            turned = gradient @ outwards
            return np.concatenate([(turned @ basis).ravel(), (turned.T @ weights).ravel()])

        return self._descend(flat, points, slopes)

    def clusters(self, rank: int) -> tuple[Array, Certificate]:
        """Return k different prototypes, each task having the one that suits it best."""
        centres = _medoids(self.pulled.towards(*_alone(self.pulled)), rank)
        labels, certificate = self._nearest(centres), None
        for _ in range(MOST_MOVES):
            for place in range(rank):
                mine = labels == place
                if mine.any():
                    group = self._of(mine)
                    found, certificate = group.common()
                    centres[place] = found[0]
            before, labels = labels, self._nearest(centres)
            if np.array_equal(before, labels):
                break
        assert certificate is not None
        return centres[labels], certificate

    def _of(self, tasks: BoolArray) -> _Prototypes:
        pulled = Pulled.of(self.pulled.statistics.take(tasks))
        return _Prototypes(pulled, self.weights[tasks], self.most)

    def _nearest(self, centres: Array) -> IntArray:
        """Return for every task the centre with the least objective."""
        n_tasks = len(self.weights)
        values = [self._values(np.tile(centre, (n_tasks, 1))) for centre in centres]
        return np.asarray(np.argmin(values, axis=0))

    def _values(self, points: Array) -> Array:
        """Return the objective of every task, (T,), at its prototype (T, d), less |y_t|^2 / 2."""
        theta, seen = self.pulled.towards(points, self.weights), self.pulled.statistics
        squares = 0.5 * np.vecdot(theta, np.matvec(seen.gram, theta)) - np.vecdot(theta, seen.moment)
        return np.asarray(squares + self.weights * np.linalg.norm(theta - points, axis=1))

    def _descend(
        self,
        start: Array,
        points: Callable[[Array], Array],
        slopes: Callable[[Array, Array], Array],
    ) -> tuple[Array, Certificate]:
        """Minimise over what prototypes are made from: `points` makes them, `slopes` carries gradients."""
        with loading():
            from scipy.optimize import minimize

        pulled, weights = self.pulled, self.weights
        seen = pulled.statistics
        size = float(max(weights.max(), NO_WEIGHT * np.abs(seen.moment).max()))

        def value(flat: Array) -> tuple[float, Array]:
            prototypes = points(flat)
            theta = pulled.towards(prototypes, weights)
            gradient = np.matvec(seen.gram, theta) - seen.moment
            return pulled.objective(theta, prototypes, weights) / size, slopes(flat, gradient) / size

        options: dict[str, float] = {"maxiter": self.most, "maxfun": 2 * self.most, "maxcor": 20}
        options |= {"gtol": 0.1 * TOLERANCE, "ftol": 1e-15}
        end = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
        steep = float(np.abs(end.jac).max())
        return points(end.x), Certificate(float(end.fun) * size, steep, int(end.nit), steep <= TOLERANCE)


def _alone(pulled: Pulled) -> tuple[Array, Array]:
    """Return the points and weights at which tasks are pulled nowhere."""
    return np.zeros_like(pulled.statistics.moment), np.zeros(len(pulled.values))


def truncated(matrix: Array, rank: int) -> Array:
    """Return the nearest matrix of some rank.

    Examples
    --------
    >>> truncated(np.diag([3.0, 1.0]), 1)
    array([[3., 0.],
           [0., 0.]])
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray((left[:, :rank] * values[:rank]) @ right[:rank])


def _medoids(points: Array, number: int) -> Array:
    """Return a few of many points (T, d), each the one that then leaves all the nearest to one of them.

    Distances count as they are, so that a few points far from all others are not chosen for being far.
    """
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    nearest, chosen = np.full(len(points), np.inf), []
    for _ in range(number):
        chosen.append(int(np.argmin(np.minimum(apart, nearest).sum(axis=1))))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    return points[chosen].copy()
