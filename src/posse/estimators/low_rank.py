"""The least-squares problem on line 5 of Algorithm 1: one basis for all tasks, weights for each."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from posse.estimators.estimate import Certificate, Estimate
from posse.estimators.subspace_newton import SubspaceProblem, apply, evaluate
from posse.estimators.subspace_search import search
from posse.linalg import PIVOT_TOLERANCE, graded_qr, whitener
from posse.statistics import GramStatistics
from posse.validation import Array, check_integer, check_number

TOLERANCE = 1e-7
MAX_ITER = 200


class ConvergenceWarning(UserWarning):
    """A solver stopped before its gradient vanished."""


@dataclass(frozen=True, kw_only=True)
class LowRank:
    """Least squares over parameters of rank k: the joint estimate of Algorithm 1.

    Minimises sum_t |y_t - X_t B w_t|^2 over B (d x k, orthonormal columns) and w_1, ..., w_T. Where
    the data leave a task's weights free, those of least norm in the subspace found are returned; a task
    without data gets 0. With fewer rounds than unknowns many subspaces fit exactly, and the one returned
    need not be that of least norm.

    Parameters
    ----------
    rank : int
        k, at most min(d, T).
    penalty : float
        Adds penalty * |W|^2, which for orthonormal B is penalty * |Theta|^2.
    n_starts : int
        The problem is not convex. Descents begin from a spectral start and from random ones, in
        batches, until eight independent ones agree on the best end or this many were tried. With 1, the
        spectral start alone is used.

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
    order of tasks, follows the units of features and rewards, and is the same in every call.

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
        """
        n_tasks, dim = statistics.moment.shape
        most = f"min(dim={dim}, n_tasks={n_tasks})"
        check_integer("`rank` of LowRank", self.rank, 1, min(dim, n_tasks), high_name=most)
        problem, estimates = _whitened(statistics, self.penalty)
        if self.rank < min(estimates.shape):
            end = search(
                problem, estimates, self.rank, n_starts=self.n_starts, tol=TOLERANCE, max_iter=MAX_ITER
            )
            basis, weights, objective = _restore(problem, end.coordinates)
            certificate = Certificate(objective, end.gradient_norm, end.n_iter, end.converged)
        else:
            basis, weights, objective = self._unrestricted(problem)
            certificate = Certificate(objective, 0.0, 0, converged=True)
        if not certificate.converged:
            warnings.warn(
                f"LowRank stopped after {certificate.n_iter} steps with gradient norm "
                f"{certificate.gradient_norm:.1e}, above {TOLERANCE:.0e}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Estimate(weights @ basis.T, basis=basis, weights=weights, certificate=certificate)

    def _unrestricted(self, problem: SubspaceProblem) -> tuple[Array, Array, float]:
        """Solve each task alone, where the rank is no restriction."""
        basis, weights, objective = _restore(problem, np.eye(problem.transform.shape[1]))
        if basis.shape[1] > self.rank:
            basis, mixing = graded_qr(basis @ weights.T)
            weights = mixing.T
        size = basis.shape[1]
        complement = np.linalg.qr(basis, mode="complete")[0][:, size : self.rank]
        return np.hstack([basis, complement]), np.pad(weights, ((0, 0), (0, self.rank - size))), objective


def _whitened(statistics: GramStatistics, penalty: float) -> tuple[SubspaceProblem, Array]:
    """Return the problem, and each task's own estimate, shrunk by the mean Gram matrix, whitened."""
    gram = statistics.gram + penalty * np.eye(statistics.dim) if penalty > 0 else statistics.gram
    mean_gram = gram.mean(axis=0)
    transform, completed = whitener(mean_gram)
    estimates = np.linalg.solve(gram + completed, statistics.moment[:, :, None])[:, :, 0]
    problem = SubspaceProblem(gram, statistics.moment, float(statistics.square.sum()), transform)
    return problem, np.asarray(estimates @ (mean_gram @ transform))


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
