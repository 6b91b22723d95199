"""LowRank: how often it finds the best minimum known, and how long it takes beside SciPy's L-BFGS."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.measure import median_seconds
from benchmarks.reference import best_of_restarts, instance, joint_lbfgs, least_squares_weights
from posse import GramStatistics, LowRank
from posse.estimators import Certificate
from posse.estimators.low_rank import _whitened
from posse.estimators.subspace_search import Starts
from posse.validation import Array

HARD = ((20, 2, 10, 100), (30, 5, 50, 100), (30, 5, 50, 900), (30, 3, 20, 40))
SPEED = ((30, 5, 100, 100), (30, 5, 1000, 100), (30, 5, 100, 900), (30, 5, 1000, 900))


def certificate(statistics: GramStatistics, rank: int, n_starts: int = 160) -> Certificate:
    found = LowRank(rank=rank, n_starts=n_starts).fit(statistics).certificate
    assert found is not None
    return found


def compare_objectives(shape: tuple[int, int, int, int], seed: int) -> tuple[float, float, bool, float]:
    """Return the gap to the best of 20 restarts, the certificate, and the gap from one start alone."""
    with threadpool_limits(limits=1):
        statistics = instance(*shape, seed)
        found, single = (certificate(statistics, shape[1], n_starts) for n_starts in (160, 1))
        best = best_of_restarts(statistics, shape[1], restarts=20, seed=seed)
    return found.objective / best - 1, found.gradient_norm, found.converged, single.objective / best - 1


def quality(instances: int, jobs: int) -> Table:
    """Compare with the best of 20 random restarts of L-BFGS, on random instances."""
    title = f"LowRank against the best of 20 restarts of L-BFGS, {instances} instances each"
    headings = (
        "d, k, T, n",
        "within 1e-6",
        "better by 1e-6",
        "worst",
        "one start within 1e-6",
        "converged",
        "largest gradient",
    )
    table = Table(*headings, title=title)
    for shape in HARD:
        rows = Parallel(n_jobs=jobs)(delayed(compare_objectives)(shape, seed) for seed in range(instances))
        gap, gradient, converged, single = (np.array(column) for column in zip(*rows, strict=True))
        table.add_row(
            ", ".join(map(str, shape)),
            f"{np.mean(gap <= 1e-6):.1%}",
            f"{np.mean(gap < -1e-6):.1%}",
            f"{gap.max():+.1e}",
            f"{np.mean(single <= 1e-6):.1%}",
            f"{converged.mean():.1%}",
            f"{gradient.max():.1e}",
        )
    return table


def spectral_start(statistics: GramStatistics, rank: int) -> tuple[Array, Array]:
    """Return the basis and weights from which LowRank begins, for L-BFGS to begin from too."""
    problem, estimates = _whitened(statistics, 0.0)
    basis = np.linalg.qr(problem.transform @ Starts(estimates, rank).spectral)[0]
    return basis, least_squares_weights(statistics, basis)


def speed(seeds: int, repeats: int) -> Table:
    """Time one descent beside L-BFGS from the same start; both pay for the start, one BLAS thread."""
    headings = (
        "d, k, T, n",
        "LowRank, one start",
        "L-BFGS",
        "ratio",
        "evaluations",
        "gap",
        "LowRank, all starts",
    )
    table = Table(*headings, title=f"Time to the minimum from the same start, median of {seeds} instances")
    with threadpool_limits(limits=1):
        for shape in SPEED:
            rows = []
            for seed in range(seeds):
                statistics, rank = instance(*shape, seed), shape[1]
                one, found = median_seconds(repeats, certificate, statistics, rank, 1)
                every, _ = median_seconds(repeats, certificate, statistics, rank)
                start, begin = median_seconds(repeats, spectral_start, statistics, rank)
                lbfgs, other = median_seconds(repeats, joint_lbfgs, statistics, *begin)
                rows.append((one, lbfgs + start, other.nfev, other.fun / found.objective - 1, every))
            one, lbfgs, evaluations, gap, every = np.median(rows, axis=0)
            ratio = np.median([row[1] / row[0] for row in rows])
            table.add_row(
                ", ".join(map(str, shape)),
                f"{1e3 * one:.1f} ms",
                f"{1e3 * lbfgs:.1f} ms",
                f"{ratio:.1f}",
                f"{evaluations:.0f}",
                f"{gap:+.0e}",
                f"{1e3 * every:.1f} ms",
            )
    return table


def scaling(repeats: int) -> Table:
    """Time one descent for more and more tasks."""
    table = Table("T", "time", "time per task", title="LowRank, one start, d = 30, k = 5, n = 100")
    with threadpool_limits(limits=1):
        for n_tasks in (100, 300, 1000, 3000, 10_000):
            statistics = instance(30, 5, n_tasks, 100, 0)
            seconds, _ = median_seconds(repeats, certificate, statistics, 5, 1)
            table.add_row(str(n_tasks), f"{1e3 * seconds:.0f} ms", f"{1e6 * seconds / n_tasks:.0f} µs")
    return table
