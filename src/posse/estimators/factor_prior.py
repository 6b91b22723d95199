"""The learned prior: tasks that share as much as their rewards say they do."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from posse.estimators.estimate import Certificate, ConvergenceWarning, Estimate
from posse.estimators.factor_evidence import FactorEvidence, FactorModel
from posse.estimators.factor_search import MOST_STEPS, STEP_GAIN, Found, add_directions, maximise_evidence
from posse.estimators.gaussian_prior import GaussianPrior
from posse.statistics import GramStatistics
from posse.validation import Array, check_choice, check_finite, check_integer, check_number

# The search for the rank, from none, ends after this many ranks in a row that are no better.
PATIENCE = 2
# What a parameter of a further direction costs in evidence, if one of the first costs 1.
FURTHER_PRICE = 0.8
# Below this many features more threads than one only get in each other's way.
WIDE = 256
# While ranks are compared, climbing ends where a step gains less than this, and after this many steps.
ROUGH_GAIN, ROUGH_STEPS = 1e-3, 80
# With so many features a step takes long: a refit takes no more than these, and the next goes on from there.
WIDE_STEPS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorEstimate(Estimate):
    """An estimate by `FactorPrior`, with the prior that it learned.

    Attributes
    ----------
    theta, basis, root, covariance, certificate
        As in `Estimate`: posterior means, U, and the posterior's covariance, which counts that U is an
        estimate too. The certificate's objective is minus twice the evidence, up to a constant.
    spectrum : (k,)
        l, the prior variance along the columns of the basis, largest first.
    outside : float
        tau, the prior variance along all other directions.
    mean : (d,)
        mu, the prior mean.
    noise : float
        s2, the noise variance of rewards.
    scales : (T,)
        omega_t: far below 1 for a task that is unlike the others.
    evidence : float
        log p(rewards) under the prior; the scales of heavy tails are integrated out by Laplace's method.
    """

    spectrum: Array
    outside: float
    mean: Array
    noise: float
    scales: Array
    evidence: float
    model: FactorModel | None = field(default=None, repr=False)

    @property
    def rank(self) -> int:
        """The number of shared directions, k."""
        return len(self.spectrum)

    @property
    def prior(self) -> GaussianPrior:
        """What is known of a task that was never seen: N(mu, S), itself an estimator for new tasks."""
        assert self.basis is not None
        covariance = self.outside * np.eye(len(self.mean))
        covariance += (self.basis * (self.spectrum - self.outside)) @ self.basis.T
        return GaussianPrior(mean=self.mean, covariance=covariance, noise=self.noise)


@dataclass(frozen=True, kw_only=True)
class FactorPrior:
    """Learn across tasks a prior theta_t ~ N(mu, S / omega_t), S = U diag(l) U' + tau (I - UU').

    All of it is learned from the rewards of all tasks, by maximal evidence: k shared directions U and the
    variances l along them, tau in all others, and the noise. Each task's estimate is then its posterior.
    tau says how far to trust the representation: at 0 tasks lie in it, as the paper assumes; with no shared
    direction (k = 0) each task is on its own, with a ridge that all tasks learn together.

    Parameters
    ----------
    rank : "auto" or int
        k. "auto" takes the rank with the largest evidence less a price for its parameters, up to T / 2 or
        fewer (see `largest_rank`), and stands back to 0 where tasks have nothing in common. A number is
        taken as it is.
    mean : "zero" or "learned"
        mu. A shared mean is also found as one of the shared directions; a mean of its own pays where
        tasks are much closer to it than it is to 0.
    degrees : float
        nu of Student's t, for tails: omega_t ~ Gamma(nu/2, nu/2), so that a task unlike the others does not
        spoil the prior for them. Infinity makes tails Gaussian and all omega_t 1. With few tasks tails are
        lighter, nu = 2 k d / (T - k) at least: else a prior could follow k tasks and call the rest outliers.
    hard : bool
        Fix tau = 0 where there are shared directions: no task leaves them.

    Examples
    --------
    >>> from posse import GaussianProblem
    >>> problem = GaussianProblem.draw(n_tasks=40, dim=8, rank=2, covariance="unit", seed=0)
    >>> offered = problem.actions(100, np.random.default_rng(0))
    >>> arms = offered.arms[:, :, 0]
    >>> rewards = np.vecdot(arms, problem.theta) + np.random.default_rng(1).standard_normal((100, 40))
    >>> estimate = FactorPrior().fit(GramStatistics.of(arms, rewards))
    >>> estimate.rank
    2
    >>> estimate.prior.covariance.shape, estimate.covariance.shape
    ((8, 8), (40, 8, 8))

    Notes
    -----
    The evidence is closed form in each task's eigenbasis, which is found once; L-BFGS climbs it, with the
    noise variance eliminated, in coordinates of equal curvature. See the page "The learned prior".
    With one task there is nothing to share: k = 0 whatever the rank.
    """

    rank: int | str = "auto"
    mean: str = "zero"
    degrees: float = 3.0
    hard: bool = False

    gives_covariance = True

    def __post_init__(self) -> None:
        if isinstance(self.rank, str):
            check_choice("`rank` of FactorPrior, if not an integer,", self.rank, ["auto"])
        else:
            check_integer("`rank` of FactorPrior", self.rank, 0)
        check_choice("`mean` of FactorPrior", self.mean, ["zero", "learned"])
        if self.degrees != np.inf:
            check_number("`degrees` of FactorPrior", self.degrees, 0.0, open_low=True)

    def fit(self, statistics: GramStatistics) -> FactorEstimate:
        """Learn the prior and estimate theta of every task; without any data the prior is N(0, I)."""
        return self._fit(statistics, None)

    def refit(self, statistics: GramStatistics, previous: Estimate) -> FactorEstimate:
        """Learn from new statistics, starting from what an earlier fit to the same tasks found.

        With 256 features or more it takes a few steps and no more; the certificate says if they were enough.
        """
        known = previous.model if isinstance(previous, FactorEstimate) else None
        if known is not None and (len(known.log_scales), len(known.mean)) != statistics.moment.shape:
            raise ValueError(
                f"a refit must be to the same tasks and features, {statistics.moment.shape}. "
                f"Got an estimate of {(len(known.log_scales), len(known.mean))}."
            )
        return self._fit(statistics, known)

    def _fit(self, statistics: GramStatistics, known: FactorModel | None) -> FactorEstimate:
        n_tasks, dim = statistics.n_tasks, statistics.dim
        if not isinstance(self.rank, str):
            most = f"min(dim={dim}, n_tasks={n_tasks})"
            check_integer("`rank` of FactorPrior", self.rank, 0, min(dim, n_tasks), high_name=most)
        _check_statistics(statistics)
        if not (statistics.square.any() and statistics.gram.any()):
            return _nothing_learned(statistics)
        with threadpool_limits(limits=1 if dim < WIDE else None):
            evidence = FactorEvidence(statistics)
            found = _Search(evidence, self, known).run()
        if not found.converged and (known is None or dim < WIDE):
            warnings.warn(
                f"FactorPrior did not converge: slope {found.slope:.1e} after {found.n_iter} steps.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return _estimate(evidence, found)


def _check_statistics(statistics: GramStatistics) -> None:
    for name in ("gram", "moment", "square", "count"):
        values = getattr(statistics, name)
        if not np.isfinite(values.sum()):
            check_finite(f"`{name}` of GramStatistics", values)
    least = float(statistics.count.min())
    if least < 0 or (statistics.square[statistics.count == 0] != 0).any():
        raise ValueError(f"`count` of GramStatistics must be positive where there are data. Got {least:g}.")


def largest_rank(n_tasks: int, dim: int) -> int:
    """Return how many shared directions "auto" considers: T / 2, or fewer if features outnumber tasks.

    In d dimensions chance makes T vectors look alike by sqrt(d / T). Where that is above 2, the bound is
    T / sqrt(d / T).

    Examples
    --------
    >>> [largest_rank(n_tasks, dim) for n_tasks, dim in ((1, 20), (10, 20), (10, 784), (1000, 20))]
    [0, 5, 1, 20]
    """
    return min(dim, int(n_tasks / max(2.0, np.sqrt(dim / n_tasks))))


class _Search:
    """Fits of several ranks to the same statistics, and which of them to keep."""

    def __init__(self, evidence: FactorEvidence, settings: FactorPrior, known: FactorModel | None) -> None:
        self.evidence, self.settings, self.known = evidence, settings, known
        self.found: dict[int, Found] = {}
        self.scores: dict[int, float] = {}

    def run(self) -> Found:
        """Return the fit of the rank asked for, or of the best one."""
        rank = self.settings.rank if self.evidence.n_tasks > 1 else 0
        self.unshared = self._climb(self._suited(self.evidence.start()), rough=True)
        self.evidence.expect(self.unshared.model)
        if isinstance(rank, str):
            return self._climb(self._best().model)
        if self.known is not None and self.known.rank == rank:
            return self._climb(self._suited(self.known))
        return self._climb(self._suited(add_directions(self.evidence, self.unshared.model, rank)))

    def score(self, found: Found) -> float:
        """Return the evidence minus a price for the free parameters of the shared directions.

        F has d k - k (k - 1) / 2 up to a rotation, and one more per direction makes it earn its place. The
        first direction, which says that tasks are related at all, pays one for each; the others less.
        """
        dim, rank = self.evidence.dim, found.model.rank
        free = dim * rank - rank * (rank - 1) // 2 + rank
        first = min(free, dim + 1)
        return self.evidence.log_evidence(found.model) - first - FURTHER_PRICE * (free - first)

    def _best(self) -> Found:
        """Search upwards from no shared direction, or both ways from the rank that is known."""
        most = largest_rank(self.evidence.n_tasks, self.evidence.dim)
        start = 0 if self.known is None else self.known.rank
        self._keep(self.unshared)
        if self.known is not None and start > 0:
            self._consider(self.known)
            self._try(range(start - 1, 0, -1), patience=1)
        self._try(range(start + 1, most + 1), patience=1 if start else PATIENCE)
        return self.found[max(self.scores, key=self.scores.__getitem__)]

    def _climb(self, start: FactorModel, *, rough: bool = False) -> Found:
        gain, steps = (ROUGH_GAIN, ROUGH_STEPS) if rough else (STEP_GAIN, MOST_STEPS)
        if self.known is not None and self.evidence.dim >= WIDE:
            steps = WIDE_STEPS
        learn_mean = self.settings.mean == "learned"
        return maximise_evidence(
            self.evidence, start, learn_mean=learn_mean, step_gain=gain, most_steps=steps
        )

    def _consider(self, start: FactorModel) -> None:
        self._keep(self._climb(self._suited(start), rough=True))

    def _keep(self, found: Found) -> None:
        self.found[found.model.rank], self.scores[found.model.rank] = found, self.score(found)

    def _suited(self, model: FactorModel) -> FactorModel:
        """Return a model as the settings want it, with tails as heavy as the number of tasks bears.

        If k directions followed k tasks exactly, the others could be outliers of a prior with no outside:
        k d / 2 against nu (T - k) / 2 in log likelihood for each unit of log tau. Twice that nu forbids it.
        """
        n_tasks, dim = self.evidence.n_tasks, self.evidence.dim
        others = n_tasks - model.rank
        least = 2.0 * model.rank * dim / others if others > 0 else np.inf
        degrees = max(self.settings.degrees, least)
        ratio = model.log_ratio
        if self.settings.hard and model.rank > 0:
            ratio = -np.inf
        elif np.isinf(ratio):
            ratio = self.unshared.model.log_ratio
        return replace(
            model,
            log_ratio=ratio,
            log_scales=model.log_scales if np.isfinite(degrees) else np.zeros(n_tasks),
            mean=model.mean if self.settings.mean == "learned" else np.zeros(dim),
            degrees=degrees,
        )

    def _try(self, ranks: range, *, patience: int) -> None:
        """Fit one rank after the other, each from its neighbour, until they are no better."""
        misses = 0
        for rank in ranks:
            best = max(self.scores.values())
            neighbour = self.found[rank - ranks.step].model
            start = (
                add_directions(self.evidence, neighbour, 1) if ranks.step > 0 else _without_weakest(neighbour)
            )
            self._consider(start)
            misses = 0 if self.scores[rank] > best else misses + 1
            if misses == patience:
                return


def _without_weakest(model: FactorModel) -> FactorModel:
    basis, strengths, _ = np.linalg.svd(model.factors, full_matrices=False)
    return replace(model, factors=basis[:, :-1] * strengths[:-1])


def _estimate(evidence: FactorEvidence, found: Found) -> FactorEstimate:
    model = found.model
    solved = evidence.solve(model)
    noise = evidence.noise(solved)
    ratio = float(np.exp(model.log_ratio))
    basis, strengths, _ = np.linalg.svd(model.factors, full_matrices=False)
    return FactorEstimate(
        theta=evidence.means(model, solved),
        basis=basis,
        certificate=Certificate(found.deviance, found.slope, found.n_iter, found.converged),
        find_root=partial(evidence.roots, model),
        spectrum=noise * (strengths**2 + ratio),
        outside=noise * ratio,
        mean=model.mean,
        noise=noise,
        scales=np.exp(-model.log_scales),
        evidence=evidence.log_evidence(model),
        model=model,
    )


def _nothing_learned(statistics: GramStatistics) -> FactorEstimate:
    """Return the posterior under N(0, I): there were no rewards, or they and the features tell nothing."""
    n_tasks, dim = statistics.n_tasks, statistics.dim
    estimate = GaussianPrior(mean=np.zeros(dim), covariance=np.eye(dim), noise=1.0).fit(statistics)
    return FactorEstimate(
        theta=estimate.theta,
        basis=np.zeros((dim, 0)),
        find_root=estimate.find_root,
        spectrum=np.zeros(0),
        outside=1.0,
        mean=np.zeros(dim),
        noise=1.0,
        scales=np.ones(n_tasks),
        evidence=float(-0.5 * statistics.count.sum() * np.log(2 * np.pi)),
    )
