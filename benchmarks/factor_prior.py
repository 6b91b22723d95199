"""FactorPrior: how long a fit takes, cold and warm, beside expectation maximisation, and for many tasks."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
from rich.table import Table

from benchmarks.measure import median_seconds
from benchmarks.reference import image_pairs, instance, many_tasks, random_play
from posse import FactorPrior, GramStatistics
from posse.estimators import FactorEstimate

SHAPES = ((20, 2, 50), (30, 5, 100))
ROUNDS = (100, 1000, 10_000)
AVERAGED = ((10, 2, 10), (20, 2, 30), (30, 3, 100), (30, 5, 100))
FEW_ROUNDS = (5, 20, 100)
MOST_STEPS = 500  # of expectation maximisation
MANY = (1000, 3000, 10_000, 30_000, 100_000)
MANY_PROBE = "from benchmarks.factor_prior import fit_many; print(*fit_many({n_tasks}, {rank!r}))"


def expectation_maximisation(
    statistics: GramStatistics, rank: int, gap: float, goal: float
) -> tuple[float, int]:
    """Return the evidence that plain EM reaches and its steps, until it is within `gap` of a goal."""
    dim = statistics.dim
    covariance, noise = np.eye(dim), float(statistics.square.sum() / statistics.count.sum())
    evidence, steps = -np.inf, 0
    while steps < MOST_STEPS:
        steps += 1
        precision = np.linalg.inv(covariance)
        spread = np.linalg.inv(statistics.gram / noise + precision)
        means = np.matvec(spread, statistics.moment) / noise
        shapes = np.eye(dim) + statistics.gram @ covariance / noise
        misfit = (statistics.square - np.vecdot(statistics.moment, means)).sum()
        rounds = statistics.count.sum()
        evidence = -0.5 * (
            rounds * np.log(2 * np.pi * noise) + misfit / noise + np.linalg.slogdet(shapes)[1].sum()
        )
        if goal - evidence < gap:
            break
        moments = spread + means[:, :, None] * means[:, None, :]
        values, vectors = np.linalg.eigh(moments.mean(axis=0))
        values[: dim - rank] = values[: dim - rank].mean()
        covariance = (vectors * values) @ vectors.T
        left = statistics.square - 2 * np.vecdot(statistics.moment, means)
        noise = float((left + np.einsum("tij,tij->t", statistics.gram, moments)).sum() / rounds)
    return float(evidence), steps


def speed(repeats: int) -> Table:
    """Time fits to random play, told the rank and not, and refits after a fifth more rounds."""
    headings = (
        "d, k, T",
        "rounds",
        "told: cold",
        "warm",
        "auto: cold",
        "warm",
        "EM to 0.1 nats",
        "EM / cold",
    )
    table = Table(*headings, title=f"FactorPrior, seconds, median of {repeats}")
    for dim, rank, n_tasks in SHAPES:
        for rounds in ROUNDS:
            before = instance(dim, rank, n_tasks, rounds, seed=0)
            after = before + instance(dim, rank, n_tasks, max(1, rounds // 5), seed=0)
            times = []
            for choice in (rank, "auto"):
                prior = FactorPrior(rank=choice)
                cold, found = median_seconds(repeats, prior.fit, before)
                warm, _ = median_seconds(repeats, prior.refit, after, found)
                times += [cold, warm]
            gaussian = FactorPrior(rank=rank, degrees=np.inf)
            cold, goal = median_seconds(repeats, gaussian.fit, before)
            slow, (reached, steps) = median_seconds(
                1, expectation_maximisation, before, rank, 0.1, goal.evidence
            )
            note = f"{slow:.2f} ({steps} steps)"
            if goal.evidence - reached >= 0.1:
                note += f", still {goal.evidence - reached:.1f} short"
            row = (f"{dim}, {rank}, {n_tasks}", str(rounds), *(f"{t:.3f}" for t in times), note)
            table.add_row(*row, f"{slow / cold:.1f}")
    return table


def averages(repeats: int) -> Table:
    """Time fits with averages over priors beside those of the likeliest prior alone, in turns."""
    headings = (
        "d, k, T",
        "rounds",
        "told: likeliest",
        "averaged",
        "ratio",
        "auto: likeliest",
        "averaged",
        "ratio",
    )
    table = Table(*headings, title=f"FactorPrior, averages over priors, CPU seconds, least of {repeats}")
    for dim, rank, n_tasks in AVERAGED:
        for rounds in FEW_ROUNDS:
            statistics, row = instance(dim, rank, n_tasks, rounds, seed=0), []
            for choice in (rank, "auto"):
                priors = FactorPrior(rank=choice, sweeps=0), FactorPrior(rank=choice)
                times = [[_cpu_seconds(prior, statistics) for prior in priors] for _ in range(repeats)]
                plain, averaged = np.min(times, axis=0)
                row += [f"{plain:.3f}", f"{averaged:.3f}", f"{averaged / plain:.1f}"]
            table.add_row(f"{dim}, {rank}, {n_tasks}", str(rounds), *row)
    return table


def _cpu_seconds(prior: FactorPrior, statistics: GramStatistics) -> float:
    clock = time.process_time()
    prior.fit(statistics)
    return time.process_time() - clock


def wide(repeats: int) -> Table:
    """Time fits to random play on the pixels of pairs of digits."""
    problem, images = image_pairs()
    before = random_play(problem, 1000, seed=0)
    after = before + random_play(problem, 200, seed=1)
    title = f"FactorPrior on {images}: d = {before.dim}, T = {before.n_tasks}, 1000 rounds, seconds"
    table = Table("rank", "cold", "warm", "found", "converged", title=title)
    for rank in (0, 5, "auto"):
        prior = FactorPrior(rank=rank)
        cold, found = median_seconds(1, prior.fit, before)
        warm, again = median_seconds(repeats, prior.refit, after, found)
        table.add_row(str(rank), f"{cold:.1f}", f"{warm:.1f}", *_outcome(again))
    return table


def scale(most: int) -> Table:
    """Time fits to more and more tasks, each in a process of its own, and measure its peak memory."""
    title = "FactorPrior for many tasks: d = 50, k = 5, 100 rounds, one thread"
    table = Table("rank", "T", "found", "CPU time", "wall time", "ms per task", "peak memory", title=title)
    for rank in (5, "auto"):
        sizes = [n_tasks for n_tasks in MANY if n_tasks <= most]
        times = []
        for n_tasks in sizes:
            probe = [sys.executable, "-c", MANY_PROBE.format(n_tasks=n_tasks, rank=rank)]
            answer = subprocess.run(probe, check=True, capture_output=True, text=True).stdout.split()
            found, (cpu, wall, peak) = answer[0], map(float, answer[1:])
            times.append(cpu)
            row = (f"{cpu:.1f} s", f"{wall:.1f} s", f"{1e3 * cpu / n_tasks:.2f}", f"{peak / 1e9:.2f} GB")
            table.add_row(str(rank), str(n_tasks), f"k = {found}", *row)
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        table.add_row(str(rank), "slope", "", f"{slope:.2f}", end_section=True)
    return table


def fit_many(n_tasks: int, rank: int | str) -> tuple[int, float, float, float]:
    """Return the rank of one fit, its CPU time, its time and the peak memory of this process in bytes."""
    statistics = many_tasks(n_tasks)
    cpu, wall = time.process_time(), time.perf_counter()
    estimate = FactorPrior(rank=rank).fit(statistics)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return estimate.rank, cpu, wall, 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _outcome(estimate: FactorEstimate) -> tuple[str, str]:
    assert estimate.certificate is not None
    return f"k = {estimate.rank}", "yes" if estimate.certificate.converged else "no"
