"""A million decisions: with contexts, without, and the random numbers alone.

Each group is one comparison; pytest-benchmark prints the ratios to its fastest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import posse.problems.gaussian
import posse.problems.noise
from posse import GaussianProblem, simulate
from posse.lab.registry import PolicyOptions, build_policies
from posse.numerics.checks import Array
from posse.play.dealing import CHUNK_ROUNDS, generator

N_TASKS, DIM, RANK, N_ARMS, HORIZON = 100, 30, 5, 5, 10_000
ROUNDS = 5
POLICY_NAMES = ("random", "naive", "mlingreedy", "oracle-greedy", "independent-greedy", "shared-greedy")


@pytest.fixture
def problem() -> GaussianProblem:
    return GaussianProblem.draw(n_tasks=N_TASKS, dim=DIM, rank=RANK, n_arms=N_ARMS, seed=0)


@pytest.fixture
def numpy_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as NumPy does, in one thread of its own: the path with contexts before there were kernels."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)

    for module in (posse.problems.gaussian, posse.problems.noise):
        monkeypatch.setattr(module, "standard_normal", draw)


def play(problem: GaussianProblem, name: str, path: str, horizon: int = HORIZON) -> Callable[[], object]:
    policy = build_policies((name,), problem, PolicyOptions(rank=RANK, prior_rank=RANK))[name]
    return lambda: simulate(problem, policy, horizon=horizon, seed=0, path=path)


def measure(benchmark: BenchmarkFixture, group: str, call: Callable[[], object]) -> None:
    benchmark.group = group
    benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=1)


def test_numbers_alone(benchmark: BenchmarkFixture) -> None:
    rng, chunk = generator(np.random.SeedSequence(0)), np.empty((CHUNK_ROUNDS, N_TASKS, N_ARMS, DIM))

    def draw() -> None:
        for _ in range(HORIZON // CHUNK_ROUNDS):
            rng.standard_normal(out=chunk)

    measure(benchmark, "general path beside NumPy's normal numbers alone", draw)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_general_path(benchmark: BenchmarkFixture, problem: GaussianProblem, name: str) -> None:
    group = "general path beside NumPy's normal numbers alone"
    measure(benchmark, group, play(problem, name, "contexts"))


@pytest.mark.parametrize("name", POLICY_NAMES)
class TestExactPath:
    """Without contexts, with them, and with them as it was before normal numbers had a kernel."""

    def test_exact(self, benchmark: BenchmarkFixture, problem: GaussianProblem, name: str) -> None:
        measure(benchmark, f"paths: {name}", play(problem, name, "exact"))

    def test_contexts(self, benchmark: BenchmarkFixture, problem: GaussianProblem, name: str) -> None:
        measure(benchmark, f"paths: {name}", play(problem, name, "contexts"))

    @pytest.mark.usefixtures("numpy_numbers")
    def test_contexts_before(self, benchmark: BenchmarkFixture, problem: GaussianProblem, name: str) -> None:
        measure(benchmark, f"paths: {name}", play(problem, name, "contexts"))


@pytest.mark.parametrize("horizon", [1000, 10_000, 100_000])
@pytest.mark.parametrize("path", ["exact", "contexts"])
def test_horizon(benchmark: BenchmarkFixture, problem: GaussianProblem, path: str, horizon: int) -> None:
    """Time should grow with the horizon and no faster."""
    benchmark.extra_info["decisions"] = horizon * N_TASKS
    measure(benchmark, f"horizon, {path}", play(problem, "naive", path, horizon))
