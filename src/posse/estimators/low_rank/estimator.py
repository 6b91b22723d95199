"""The least-squares problem on line 5 of Algorithm 1: one basis for all tasks, weights for each."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from posse.core.estimate import Certificate, ConvergenceWarning, Estimate
from posse.core.statistics import GramStatistics
from posse.estimators.low_rank.coordinates import graded_qr, low_rank_factors, packed_triangles, whitener
from posse.estimators.low_rank.newton import Minimum, SubspaceProblem, apply, descend, evaluate
from posse.estimators.low_rank.starts import SCREEN_TOL, STAGE_TOL, follow, search
from posse.estimators.ridge import Ridge
from posse.estimators.statistics_checks import check_statistics
from posse.numerics.checks import Array, IntArray, check_integer, check_number
from posse.numerics.linalg import PIVOT_TOLERANCE, RANK_TOLERANCE, WIDE, chunks

TOLERANCE = 1e-7
MAX_ITER = 200
# With more tasks than this, starts are compared on so many of them.
SCREENED = 4000
# A ridge this small, relative to the mean eigenvalue of X_t'X_t, stands for the minimum norm.
VANISHING, VANISHING_WIDE = 1e-6, 1e-4
# Between these, entries of the Gram matrices have room in single precision.
SINGLE_LEAST, SINGLE_MOST = 1e-25, 1e25


@dataclass(frozen=True, kw_only=True)
class LowRank:
    """Least squares over parameters of rank k: the joint estimate of Algorithm 1.

    Minimises sum_t |y_t - X_t B w_t|^2 over B (d x k, orthonormal columns) and w_1, ..., w_T. Where
    the data leave a choice, theta of least norm is meant; a task without data gets 0.

    Parameters
    ----------
    rank : int
        k, at most min(d, T).
    penalty : float
        Adds penalty * |W|^2, which for orthonormal B is penalty * |Theta|^2.
    n_starts : int
        The problem is not convex. Descents begin from a spectral start and from random ones, in
        batches, until eight independent ones agree on the best end or this many were tried. With 1, the
        spectral start alone is used. Wide data have that one start in any case; see the notes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.standard_normal((8, 1)) @ rng.standard_normal((1, 5))     # 8 tasks, rank 1
    >>> x = rng.standard_normal((4, 8, 5))                                    # fewer rounds than features
    >>> estimate = LowRank(rank=1).fit(GramStatistics.of(x, np.vecdot(x, theta)))
    >>> bool(np.allclose(estimate.theta, theta))
    True
    >>> estimate.certificate.converged
    True

    Notes
    -----
    The weights are eliminated (variable projection) and the function of the subspace that is left is
    minimised by a trust-region Newton method with exact Hessian products, in coordinates where the
    mean Gram matrix is the identity. The answer is equivariant to rotations of the features and to the
    order of tasks, follows the units of features and rewards, and is the same in every call. With more
    than 4000 tasks the starts are compared on 4000 of them, chosen by how much they predict, and one
    descent for all tasks follows.

    Data are short if the ranks of the X_t'X_t add up to no more than the k (r + T - k) unknowns, r being
    the rank of their mean: many subspaces then fit exactly, and the least norm decides. Data are wide if
    more than 256 features are not always zero: a descent then takes seconds, and the many directions that
    real features hardly use make least squares ill-posed. For both, the penalty is lowered from the mean
    eigenvalue of X_t'X_t, or a tenth of it, by factors of ten, each minimum being the start of the next
    descent, down to `penalty`. With short data a millionth of that eigenvalue, or a ten-thousandth where
    they are also wide, stands for the minimum norm: the norm of theta is then within a fraction of a per
    cent of the least. Wide data that are not short, with nearly unseen directions and no penalty, may take
    minutes.

    Theorem 1 asks for the global minimum. No method is known to find it always; "no lower value found
    from many starts" is what this one offers.

    References
    ----------
    Yang, Hu, Lee and Du, Impact of Representation Learning in Linear Bandits, ICLR 2021.
    Golub and Pereyra, Separable nonlinear least squares: the variable projection method, 2003.
    """

    rank: int
    penalty: float = 0.0
    n_starts: int = 160

    def __post_init__(self) -> None:
        check_integer("`rank` of LowRank", self.rank, 1)
        check_number("`penalty` of LowRank", self.penalty, 0.0)
        check_integer("`n_starts` of LowRank", self.n_starts, 1)

    def fit(self, statistics: GramStatistics) -> Estimate:
        """Estimate a basis for all tasks and the weights of each.

        Warns
        -----
        ConvergenceWarning
            If the gradient did not vanish; the certificate then says `converged=False`.
        NoDataWarning
            If there is not a single row.
        """
        check_statistics(statistics, "LowRank")
        n_tasks, dim = statistics.moment.shape
        most = f"min(dim={dim}, n_tasks={n_tasks})"
        check_integer("`rank` of LowRank", self.rank, 1, min(dim, n_tasks), high_name=most)
        seen = _seen_features(statistics, self.rank)
        reduced = _restrict(statistics, seen)
        stages = _stages(reduced, self.rank, self.penalty)
        if self.rank < min(stages[0].transform.shape[1], n_tasks):
            problem, end = stages[-1], self._search(reduced, stages)
            inner, weights, objective = _restore(problem, end.coordinates)
            certificate = Certificate(objective, end.gradient_norm, end.n_iter, end.converged)
        else:
            inner, weights, objective = self._unrestricted(reduced)
            certificate = Certificate(objective, 0.0, 0, converged=True)
        basis = np.zeros((dim, self.rank))
        basis[seen] = inner
        if not certificate.converged:
            warnings.warn(
                f"LowRank stopped after {certificate.n_iter} steps with gradient norm "
                f"{certificate.gradient_norm:.1e}, above {TOLERANCE:.0e}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Estimate(weights @ basis.T, basis=basis, weights=weights, certificate=certificate)

    def _search(self, statistics: GramStatistics, stages: list[SubspaceProblem]) -> Minimum:
        """Return the minimum of the last stage."""
        first = stages[0]
        n_starts = 1 if statistics.dim > WIDE else self.n_starts
        tol = TOLERANCE if len(stages) == 1 else STAGE_TOL if n_starts == 1 else SCREEN_TOL
        if n_starts == 1 or statistics.n_tasks <= SCREENED:
            end = self._begin(first, n_starts, tol)
        else:
            screened = self._begin(_screening_problem(statistics, first), n_starts, SCREEN_TOL)
            (end,) = descend(first, screened.coordinates[None], tol, MAX_ITER)
            end = replace(end, n_iter=screened.n_iter + end.n_iter)
        return follow(stages, end, tol=TOLERANCE, max_iter=MAX_ITER)

    def _begin(self, problem: SubspaceProblem, n_starts: int, tol: float) -> Minimum:
        estimates = _own_estimates(problem)
        return search(problem, estimates, self.rank, n_starts=n_starts, tol=tol, max_iter=MAX_ITER)

    def _unrestricted(self, statistics: GramStatistics) -> tuple[Array, Array, float]:
        """Solve each task alone, where the rank is no restriction."""
        if statistics.dim > WIDE:  # inverting each matrix by sweeps would take minutes
            theta = Ridge(penalty=self.penalty).fit(statistics).theta
            objective = max(float(statistics.square.sum() - np.vdot(theta, statistics.moment)), 0.0)
            basis, mixing = graded_qr(theta.T)
            basis, weights = basis[:, : self.rank], mixing[: self.rank].T
        else:
            problem = _whitened(statistics, self.penalty)
            basis, weights, objective = _restore(problem, np.eye(problem.transform.shape[1]))
            if basis.shape[1] > self.rank:
                basis, mixing = graded_qr(basis @ weights.T)
                weights = mixing.T
        size = basis.shape[1]
        complement = np.linalg.qr(basis, mode="complete")[0][:, size : self.rank]
        return np.hstack([basis, complement]), np.pad(weights, ((0, 0), (0, self.rank - size))), objective


def _seen_features(statistics: GramStatistics, least: int) -> IntArray:
    """Return the features that are not always zero, if there are many features, and at least so many."""
    if statistics.dim <= WIDE:
        return np.arange(statistics.dim)
    unseen = np.einsum("tii->i", statistics.gram) == 0.0
    seen_first = np.argsort(unseen, kind="stable")
    return np.sort(seen_first[: max(least, np.count_nonzero(~unseen))])


def _restrict(statistics: GramStatistics, features: IntArray) -> GramStatistics:
    """Return the statistics of some features."""
    if len(features) == statistics.dim:
        return statistics
    block = np.ix_(features, features)
    gram = np.stack([matrix[block] for matrix in statistics.gram])
    return GramStatistics(gram, statistics.moment[:, features], statistics.square, statistics.count)


def _stages(statistics: GramStatistics, rank: int, penalty: float) -> list[SubspaceProblem]:
    """Return the problem; before it, where data are wide or short, problems with larger penalties."""
    penalties = _falling_penalties(statistics, rank, penalty)
    if len(penalties) == 1:
        return [_whitened(statistics, penalty)]
    factor = low_rank_factors(statistics.gram)
    largest = float(np.einsum("tii->ti", statistics.gram).max())
    rough = None
    if statistics.dim > WIDE and SINGLE_LEAST < largest < SINGLE_MOST:
        rough = packed_triangles(statistics.gram) if factor is None else factor.astype(np.float32)
    return [_whitened(statistics, value, factor, rough) for value in penalties]


def _falling_penalties(statistics: GramStatistics, rank: int, penalty: float) -> list[float]:
    """Return the penalties through which to descend: one, unless data are wide or short."""
    n_tasks, dim = statistics.moment.shape
    size = float(np.einsum("tii->", statistics.gram)) / (n_tasks * dim)
    wide = dim > WIDE
    first = size if wide else 0.1 * size
    vanishing = (VANISHING_WIDE if wide else VANISHING) * size
    short = penalty < first and (penalty < vanishing or not wide) and _is_short(statistics.gram, rank)
    last = vanishing if short and penalty < vanishing else penalty
    if last >= first or not (short or wide):
        return [penalty]
    least = max(last, vanishing)
    penalties = np.geomspace(first, least, 1 + int(np.ceil(np.log10(first / least)))).tolist()
    return [*penalties, last] if last < vanishing else penalties


def _is_short(gram: Array, rank: int) -> bool:
    """Return whether the ranks of the G_t add up to no more than the unknowns, in any units of features."""
    mean_gram = gram.mean(axis=0)
    diagonal = np.diag(mean_gram)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    units = scale * scale[:, None]
    unknowns = rank * (int(_rank(mean_gram / units)) + len(gram) - rank)
    for count in (_rank_at_least, _rank):
        totals = accumulate(float(count(gram[tasks] / units).sum()) for tasks in chunks(*gram.shape[:2]))
        if any(total > unknowns for total in totals):
            return False
    return True


def _rank_at_least(matrices: Array) -> Array:
    """Return (sum of eigenvalues)^2 / (sum of their squares), which is at most the rank, and cheap."""
    trace, square = np.einsum("tii->t", matrices), np.einsum("tij,tij->t", matrices, matrices)
    return np.asarray(np.divide(trace**2, square, out=np.zeros_like(trace), where=square > 0.0))


def _rank(matrices: Array) -> IntArray:
    """Return the ranks of positive semi-definite matrices, up to rounding."""
    values = np.linalg.eigvalsh(matrices)
    return np.asarray((values > RANK_TOLERANCE * values[..., -1:]).sum(axis=-1))


def _whitened(
    statistics: GramStatistics,
    penalty: float,
    factor: Array | None = None,
    rough: NDArray[np.float32] | None = None,
) -> SubspaceProblem:
    """Return the problem in coordinates that whiten its mean Gram matrix."""
    transform, _ = whitener(_mean_gram(statistics.gram, penalty))
    total = float(statistics.square.sum())
    return SubspaceProblem(statistics.gram, statistics.moment, total, transform, penalty, factor, rough)


def _screening_problem(statistics: GramStatistics, problem: SubspaceProblem) -> SubspaceProblem:
    """Return the problem of a selection of the tasks, as many as starts are compared on.

    Half are those that predict most, by b_t'(mean of G_t)^-1 b_t; half are evenly spaced in the order of
    the others. Neither the order of tasks nor the coordinates of features matter.
    """
    order = np.argsort(-((statistics.moment @ problem.transform) ** 2).sum(axis=1), kind="stable")
    half = SCREENED // 2
    spaced = np.linspace(half, len(order) - 1, SCREENED - half).astype(np.intp)
    tasks = order[np.concatenate([np.arange(half), spaced])]
    some = statistics.take(tasks)
    return replace(
        problem,
        gram=some.gram,
        moment=some.moment,
        total=float(some.square.sum()),
        factor=None if problem.factor is None else problem.factor[tasks],
    )


def _own_estimates(problem: SubspaceProblem) -> Array:
    """Return each task's own estimate, shrunk by the mean Gram matrix, in whitened coordinates."""
    mean_gram = _mean_gram(problem.gram, problem.penalty)
    _, completed = whitener(mean_gram)
    completed[np.diag_indices_from(completed)] += problem.penalty
    estimates = np.empty_like(problem.moment)
    for tasks in chunks(*problem.gram.shape[:2]):
        own = np.linalg.solve(problem.gram[tasks] + completed, problem.moment[tasks, :, None])
        estimates[tasks] = own[:, :, 0]
    return np.asarray(estimates @ (mean_gram @ problem.transform))


def _mean_gram(gram: Array, penalty: float) -> Array:
    return np.asarray(gram.mean(axis=0) + penalty * np.eye(gram.shape[1]))


def _restore(problem: SubspaceProblem, coordinates: Array) -> tuple[Array, Array, float]:
    """Return an orthonormal basis and minimum-norm weights for it, and f there."""
    point = evaluate(problem, coordinates[None])
    basis, weights, inverse = point.basis[0], point.weights[0], point.inverse[0]
    matrices, moment = point.gram_basis[0] @ basis, problem.moment @ basis
    inflation = np.einsum("tii,tii->ti", inverse, matrices)
    blind = ((inflation < 0.5) | (inflation > 1e8)).any(axis=1)
    values, vectors = np.linalg.eigh(matrices[blind])
    null = values <= PIVOT_TOLERANCE * values[:, -1:]
    inverse = (vectors * np.where(null, 0.0, 1.0 / np.where(null, 1.0, values))[:, None, :]) @ vectors.mT
    weights[blind] = apply(inverse, moment[blind])
    objective = max(problem.total - float(np.vdot(weights, moment)), 0.0)
    original, mixing = graded_qr(basis)
    weights = weights @ mixing.T
    unseen = mixing @ (vectors * null[:, None, :]) @ vectors.mT
    weights[blind] -= apply(unseen @ np.linalg.pinv(unseen, rcond=1e-8), weights[blind])
    return original, weights, objective
