"""LowRank: how often it finds the best minimum known, and how long it takes beside SciPy's L-BFGS."""

from __future__ import annotations

import resource
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from joblib import Parallel, delayed
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.measure import median_seconds
from benchmarks.reference import (
    best_of_restarts,
    image_pairs,
    instance,
    joint_lbfgs,
    least_squares_weights,
    many_tasks,
    random_play,
)
from posse import Estimate, GramStatistics, LowRank
from posse.core.estimate import Certificate, ConvergenceWarning
from posse.estimators.low_rank.estimator import _own_estimates, _stages
from posse.estimators.low_rank.starts import Starts
from posse.numerics.checks import Array

HARD = ((20, 2, 10, 100), (30, 5, 50, 100), (30, 5, 50, 900), (30, 3, 20, 40))
MANY = (1000, 3000, 10_000, 30_000, 100_000)
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


def spectral_start(statistics: GramStatistics, rank: int, penalty: float = 0.0) -> tuple[Array, Array]:
    """Return the basis and weights from which LowRank begins, for L-BFGS to begin from too."""
    problem = _stages(statistics, rank, penalty)[0]
    basis = np.linalg.qr(problem.transform @ Starts(_own_estimates(problem), rank).spectral)[0]
    return basis, least_squares_weights(statistics, basis, penalty)


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


def scale(repeats: int) -> tuple[Table, Table]:
    """Fit more and more tasks, each time in a process of its own, from one start and from many."""
    rows = {
        n_starts: [in_own_process(measured_fit, n, n_starts, repeats) for n in MANY] for n_starts in (1, 160)
    }
    fits = Table("T", "one start", "per task", "peak memory", "all starts", "per task", "peak memory")
    fits.title = "LowRank, d = 50, k = 5, n = 100, one BLAS thread"
    for n_tasks, *both in zip(MANY, *rows.values(), strict=True):
        cells = (
            (f"{seconds:.2f} s", f"{1e6 * seconds / n_tasks:.0f} µs", f"{gigabytes:.2f} GB")
            for seconds, gigabytes in both
        )
        fits.add_row(str(n_tasks), *(cell for three in cells for cell in three))
    slopes = Table("starts", "time grows as T to the power", title=f"T from {MANY[0]} to {MANY[-1]}")
    for n_starts, measured in rows.items():
        slope, _ = np.polyfit(np.log(MANY), np.log([seconds for seconds, _ in measured]), 1)
        slopes.add_row(str(n_starts), f"{slope:.2f}")
    return fits, slopes


def in_own_process(call: Callable[..., tuple[float, float]], *arguments: int) -> tuple[float, float]:
    """Call in a fresh process, whose peak of memory is the call's own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


def measured_fit(n_tasks: int, n_starts: int, repeats: int) -> tuple[float, float]:
    """Return the time of a fit in seconds, and the process's peak of memory, statistics included, in GB."""
    with threadpool_limits(limits=1):
        seconds, _ = median_seconds(repeats, certificate, many_tasks(n_tasks), 5, n_starts)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def wide(repeats: int, max_iter: int) -> tuple[Table, Table]:
    """Time a fit of real features beside L-BFGS from the same start, and show what fits of images reach.

    L-BFGS runs until it is within 1e-6 of LowRank's objective; both pay for the start, two BLAS threads.
    """
    pairs, source = image_pairs()
    penalty = 1e-3
    fits = Table("rounds", "penalty", "time", "objective", "gradient norm", "converged", "steps", "|theta|")
    fits.title = f"LowRank, d = {pairs.dim}, T = {pairs.n_tasks}, k = 10: {source}"
    with threadpool_limits(limits=2):
        few = random_play(pairs, 100, seed=0)
        add_fit(fits, repeats, few, 100, 0.0)
        statistics = random_play(pairs, 900, seed=0)
        seconds, found = add_fit(fits, repeats, statistics, 900, penalty)
        start, begin = median_seconds(repeats, spectral_start, statistics, 10, penalty)
        goal = (1 + 1e-6) * found.objective
        lbfgs, other = median_seconds(
            1, lambda: joint_lbfgs(statistics, *begin, penalty=penalty, goal=goal, max_iter=max_iter)
        )
        used, statistics_size = (
            peak_megabytes(lambda: fit_quietly(statistics, penalty)),
            statistics.gram.nbytes,
        )
    race = Table("", "", title=f"Beside L-BFGS, 900 rounds, penalty {penalty:g}", show_header=False)
    race.add_row("LowRank", f"{seconds:.1f} s")
    race.add_row("L-BFGS, with the start", f"{lbfgs + start:.1f} s")
    race.add_row(
        "ratio", f"{(lbfgs + start) / seconds:.1f}" + ("" if other.fun <= goal else " when it stopped")
    )
    race.add_row("excess of L-BFGS's objective", f"{other.fun / found.objective - 1:+.1e}")
    race.add_row("iterations and evaluations of L-BFGS", f"{other.nit}, {other.nfev}")
    race.add_row("peak of LowRank's own arrays", f"{used:.0f} MB, statistics {statistics_size / 1e6:.0f} MB")
    return fits, race


def add_fit(
    table: Table, repeats: int, statistics: GramStatistics, n_rounds: int, penalty: float
) -> tuple[float, Certificate]:
    """Fit and write down how it went; return the time and the certificate."""
    seconds, estimate = median_seconds(repeats, fit_quietly, statistics, penalty)
    found = estimate.certificate
    assert found is not None
    table.add_row(
        str(n_rounds),
        f"{penalty:g}",
        f"{seconds:.1f} s",
        f"{found.objective:.6g}",
        f"{found.gradient_norm:.1e}",
        str(found.converged),
        str(found.n_iter),
        f"{np.linalg.norm(estimate.theta):.4g}",
    )
    return seconds, found


def fit_quietly(statistics: GramStatistics, penalty: float) -> Estimate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        return LowRank(rank=10, penalty=penalty).fit(statistics)


def peak_megabytes(call: Callable[[], object]) -> float:
    """Return the most memory that NumPy's arrays took during a call, above what there was before."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6
