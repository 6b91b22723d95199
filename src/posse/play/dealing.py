"""Rounds, dealt ahead: while some are played, threads draw the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from posse.core.actions import Actions
from posse.core.protocols import Problem, deal_actions
from posse.numerics.checks import Array
from posse.numerics.compiled import working_seconds
from posse.numerics.linalg import WIDE
from posse.numerics.random import standard_normal
from posse.play.exact import ExactRounds
from posse.problems import GaussianProblem

# Rounds are dealt in chunks of at most this many rounds and of about this many values of T x d.
CHUNK_ROUNDS = 32
CHUNK_VALUES = 2**21
# Wide features are dealt in chunks of d rounds and of about this many values: only then does it cost less to
# add the T x d x d statistics of a chunk than to make them.
WIDE_CHUNK_VALUES = 2**25
# The coordinates of an exact chunk should stay in the processor's cache.
EXACT_CHUNK_VALUES = 2**17


def generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """Return a generator on SFC64, which draws normal numbers faster than NumPy's other bit generators."""
    return np.random.Generator(np.random.SFC64(seed))


def rounds_at_once(problem: Problem, values: int | None = None) -> int:
    """Return how many rounds have about so many values of T x d, or CHUNK_VALUES."""
    return max(1, (CHUNK_VALUES if values is None else values) // (problem.n_tasks * problem.dim))


def chunk_rounds(problem: Problem) -> int:
    """Return how many rounds are dealt at a time."""
    if problem.dim >= WIDE:
        arms: int = getattr(problem, "n_arms", 1)  # of a problem that deals copies of them
        return min(problem.dim, rounds_at_once(problem, WIDE_CHUNK_VALUES // arms))
    return min(CHUNK_ROUNDS, rounds_at_once(problem))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rounds that were dealt: what is on offer, the best mean rewards and the noise to come, (n, T) each."""

    start: int
    actions: Actions
    best: Array
    noise: Array
    seconds: float


def deal_rounds(
    problem: Problem, horizon: int, actions_seed: np.random.SeedSequence, noise_seed: np.random.SeedSequence
) -> Iterator[Chunk]:
    """Yield all rounds in chunks."""
    actions_rng, noise_rng = generator(actions_seed), generator(noise_seed)

    def deal(start: int, n_rounds: int) -> Chunk:
        clock = working_seconds()
        actions = deal_actions(problem, start, n_rounds, actions_rng)
        noise = problem.noise(n_rounds, noise_rng)
        best = problem.best_rewards(actions)
        return Chunk(start, actions, best, noise, working_seconds() - clock)

    for (chunk,) in dealt_ahead([deal], horizon, chunk_rounds(problem)):
        yield chunk


def deal_exact(
    problem: GaussianProblem,
    horizon: int,
    actions_seed: np.random.SeedSequence,
    noise_seed: np.random.SeedSequence,
) -> Iterator[tuple[ExactRounds, float]]:
    """Yield all rounds as chunks of coordinates, and the time it took; each coordinate has its thread."""
    own_rng, other_rng = (generator(seed) for seed in actions_seed.spawn(2))
    noise_rng = generator(noise_seed)

    def coordinates(rng: np.random.Generator, n_rounds: int) -> Array:
        return standard_normal((n_rounds, problem.n_tasks, problem.n_arms), rng)

    def deal_own(start: int, n_rounds: int) -> tuple[Array, float]:
        clock = working_seconds()
        return coordinates(own_rng, n_rounds), working_seconds() - clock

    def deal_other(start: int, n_rounds: int) -> tuple[Array, Array, float]:
        clock = working_seconds()
        noise = problem.noise(n_rounds, noise_rng)
        return coordinates(other_rng, n_rounds), noise, working_seconds() - clock

    size = max(1, EXACT_CHUNK_VALUES // (problem.n_tasks * problem.n_arms))
    for (own, seconds), (other, noise, others) in dealt_ahead([deal_own, deal_other], horizon, size):
        yield ExactRounds(own, other, noise), seconds + others


def dealt_ahead(
    parts: Sequence[Callable[[int, int], Any]], horizon: int, size: int
) -> Iterator[tuple[Any, ...]]:
    """Yield what each part deals of every chunk; while one is played, a thread for each deals the next."""
    spans = [(start, min(size, horizon - start)) for start in range(0, horizon, size)]
    with ThreadPoolExecutor(max_workers=len(parts)) as dealers:
        upcoming = [dealers.submit(part, *spans[0]) for part in parts]
        for span in spans[1:]:
            dealt = tuple(part.result() for part in upcoming)
            upcoming = [dealers.submit(part, *span) for part in parts]
            yield dealt
        yield tuple(part.result() for part in upcoming)
