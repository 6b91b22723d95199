"""One fit of each estimator at the sizes that users have."""

from __future__ import annotations

import warnings
from functools import cache

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from threadpoolctl import threadpool_limits

from benchmarks.reference import image_pairs, instance, random_play
from posse import FactorPrior, GramStatistics, LowRank, Ridge
from posse.core.estimate import ConvergenceWarning
from posse.core.protocols import Estimator

SIZES = ((30, 5, 100), (30, 5, 10_000), (784, 10, 45))
N_ROUNDS = 100


@cache
def statistics(dim: int, rank: int, n_tasks: int) -> GramStatistics:
    """Return random play on a random problem, or on pairs of images."""
    if dim == 784:
        return random_play(image_pairs()[0], 900, seed=0)
    return instance(dim, rank, n_tasks, N_ROUNDS, seed=0)


def estimators(rank: int, dim: int) -> dict[str, Estimator]:
    """Return what is timed; pixels need a small ridge."""
    return {
        "ridge, fixed penalty": Ridge(penalty=1.0),
        "ridge, learned penalty": Ridge(),
        "low rank": LowRank(rank=rank, penalty=0.001 if dim == 784 else 0.0),
        "factor prior, rank told": FactorPrior(rank=rank),
        "factor prior, rank found": FactorPrior(),
    }


@pytest.mark.parametrize("name", list(estimators(1, 1)))
@pytest.mark.parametrize(("dim", "rank", "n_tasks"), SIZES)
def test_fit(benchmark: BenchmarkFixture, dim: int, rank: int, n_tasks: int, name: str) -> None:
    benchmark.group = f"fit, d = {dim}, k = {rank}, T = {n_tasks}"
    seen, estimator = statistics(dim, rank, n_tasks), estimators(rank, dim)[name]
    small = dim == 30 and n_tasks == 100
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the time is what counts here
        benchmark.pedantic(estimator.fit, (seen,), rounds=5 if small else 1, warmup_rounds=int(small))
