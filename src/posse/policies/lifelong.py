"""Rivals for streams: some tasks are explored at length to find a subspace, others are played inside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np

from posse.core.statistics import GramStatistics
from posse.core.streams import Course
from posse.numerics.checks import Array, check_integer, check_number
from posse.policies.online_pca import capped, exponentiated, sampled_basis
from posse.policies.pege_tau import PEGEState, PEGETau


@dataclass(frozen=True, eq=False)
class LifelongMemory:
    """What a rival for streams knows.

    Attributes
    ----------
    course : Course
    matrix : (d, d)
        The sum of the estimates' outer products, or for `BRESS` the density matrix of what to leave out.
    """

    course: Course
    matrix: Array


class _Lifelong:
    """Explore a task in R^d, or refine inside the subspace that was found; then commit.

    A child says which groups explore, how long both take, and how the subspace follows from explorations.
    """

    rank: int
    n_explore: int | None
    n_refine: int | None
    penalty: float
    statistics: ClassVar = GramStatistics

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_integer(f"`rank` of {owner}", self.rank, 1)
        check_number(f"`penalty` of {owner}", self.penalty, 0.0)
        for name in ("n_explore", "n_refine"):
            if getattr(self, name) is not None:
                check_integer(f"`{name}` of {owner}", getattr(self, name), 1)

    def begin(self, course: Course) -> LifelongMemory:
        """Return what is known before the first task: nothing."""
        owner = type(self).__name__
        check_integer(f"`rank` of {owner}", self.rank, 1, course.dim, high_name="dim")
        if course.finite:
            raise ValueError(f"{owner} plays ellipsoids, infinite action sets. Got lists of arms.")
        for name, length in zip(("n_explore", "n_refine"), self.lengths(course), strict=True):
            check_integer(f"`{name}` of {owner}", length, 1, course.rounds, high_name="rounds")
        return LifelongMemory(course, np.zeros((course.dim, course.dim)))

    def lengths(self, course: Course) -> tuple[int, int]:
        """Return tau_1, the rounds of an exploration in R^d, and tau_2, those inside the subspace."""
        first, second = (
            max(1, min(round(length), course.rounds))
            for length in (self._tau_1(course), self.rank * math.sqrt(course.rounds))
        )
        return self.n_explore or first, self.n_refine or second

    def next_policy(self, memory: LifelongMemory, number: int, rng: np.random.Generator) -> PEGETau:
        """Return the exploration of a group's tasks, or their play inside the subspace that is known."""
        explore, refine = self.lengths(memory.course)
        if number == 0 or self._explores(memory.course, number, rng):
            return PEGETau(n_explore=explore, penalty=self.penalty)
        return PEGETau(n_explore=refine, basis=self._basis(memory, rng), penalty=self.penalty)

    def finish(
        self, memory: LifelongMemory, policy: PEGETau, state: PEGEState, rng: np.random.Generator
    ) -> LifelongMemory:
        """Learn from the estimates of a group that explored in R^d; from no other."""
        if policy.basis is not None or state.theta is None:
            return memory
        return replace(memory, matrix=self._learned(memory, state.theta))

    def _tau_1(self, course: Course) -> float:
        raise NotImplementedError

    def _explores(self, course: Course, number: int, rng: np.random.Generator) -> bool:
        raise NotImplementedError

    def _learned(self, memory: LifelongMemory, theta: Array) -> Array:
        return np.asarray(memory.matrix + theta.T @ theta)

    def _basis(self, memory: LifelongMemory, rng: np.random.Generator) -> Array:
        """Return the leading eigenvectors of the sum of outer products, (d, k)."""
        return np.ascontiguousarray(np.linalg.eigh(memory.matrix)[1][:, ::-1][:, : self.rank])

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> NoReturn:
        """Refuse a problem that is no stream."""
        raise ValueError(
            f"{type(self).__name__} plays streams of tasks, such as a StreamProblem. "
            f"Got a problem of {n_tasks} tasks side by side."
        )

    def init(self, n_tasks: int, dim: int) -> Any:
        """Refuse a problem that is no stream."""
        self.blocks(1, n_tasks, dim)

    def select(self, state: Any, actions: Any, rng: np.random.Generator) -> Any:
        """Refuse a problem that is no stream."""
        self.blocks(1, 1, 1)

    def update(self, state: Any, statistics: Any) -> Any:
        """Refuse a problem that is no stream."""
        self.blocks(1, 1, 1)


@dataclass(frozen=True, kw_only=True)
class SeqRepL(_Lifelong):
    """Explore the tasks 0, 1, 4, 9, ..., play all others in the subspace that these have shown.

    Exploring, a task plays tau_1 rounds at random in R^d, estimates by ridge and commits. All others play the
    k leading eigenvectors of the sum of these estimates' outer products for tau_2 rounds, and commit inside.

    Parameters
    ----------
    rank : int
        k: it has to be told.
    n_explore, n_refine : int, optional
        tau_1 and tau_2; by default d k sqrt(N) and k sqrt(N), N at the most.
    penalty : float
        Of the ridge.

    Examples
    --------
    >>> from posse.core.streams import Course
    >>> SeqRepL(rank=3).lengths(Course(n_tasks=6000, group_size=1, dim=10, rounds=2000, finite=False))
    (1342, 134)

    Notes
    -----
    Y. Qin, T. Menara, S. Oymak, S. Ching and F. Pasqualetti (2022), as the study of BOSS plays it. That tasks
    are explored at known times is its weakness: an adversary can show them one direction and all others
    another.
    """

    rank: int
    n_explore: int | None = None
    n_refine: int | None = None
    penalty: float = 1.0

    def _tau_1(self, course: Course) -> float:
        return course.dim * self.rank * math.sqrt(course.rounds)

    def _explores(self, course: Course, number: int, rng: np.random.Generator) -> bool:
        return math.isqrt(number) ** 2 == number


@dataclass(frozen=True, kw_only=True)
class BARON(_Lifelong):
    """SeqRepL that explores tasks at random, so that no adversary knows which.

    Parameters
    ----------
    rank : int
        k: it has to be told.
    chance : float, optional
        p, with which a group of tasks is explored. By default that of BOSS, whose protocol it shares,
        sqrt(N d k / (T (d^(4/3) N^(1/3) + d^(2/3) N^(2/3)))), 1 at the most, for T tasks of N rounds.
    n_explore, n_refine : int, optional
        tau_1 and tau_2; by default d^(4/3) N^(1/3) and k sqrt(N), N at the most.
    penalty : float
        Of the ridge.

    Examples
    --------
    >>> from posse.core.streams import Course
    >>> course = Course(n_tasks=6000, group_size=1, dim=10, rounds=2000, finite=False)
    >>> BARON(rank=3).lengths(course), round(BARON(rank=3).probability(course), 3)
    ((271, 134), 0.1)

    Notes
    -----
    T. Duong, Z. Wang and C. Zhang, in the code beside Beyond task diversity (NeurIPS 2024). That code sets p,
    tau_1 and tau_2 by hand; the formulas are those of the paper's own algorithm, BOSS.
    """

    rank: int
    chance: float | None = None
    n_explore: int | None = None
    n_refine: int | None = None
    penalty: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chance is not None:
            check_number("`chance` of BARON", self.chance, 0.0, 1.0)

    def probability(self, course: Course) -> float:
        """Return p, the probability with which a group of tasks is explored."""
        if self.chance is not None:
            return self.chance
        d, rounds = float(course.dim), float(course.rounds)
        cost = d ** (4 / 3) * rounds ** (1 / 3) + d ** (2 / 3) * rounds ** (2 / 3)
        return min(1.0, math.sqrt(rounds * d * self.rank / (course.n_tasks * cost)))

    def _tau_1(self, course: Course) -> float:
        return float(course.dim ** (4 / 3) * course.rounds ** (1 / 3))

    def _explores(self, course: Course, number: int, rng: np.random.Generator) -> bool:
        return bool(rng.random() < self.probability(course))


@dataclass(frozen=True, kw_only=True)
class BRESS(_Lifelong):
    """BARON whose subspace is drawn, by online principal components, and not the one that looks best.

    A density matrix says which d - k directions to leave out. After an exploration it is multiplied by
    exp(-eta x x') for the direction x of the estimate, its eigenvalues are capped at 1 / (d - k), and every
    other task is played in a subspace that is drawn by it.

    Parameters
    ----------
    rank : int
        k: it has to be told, and below d.
    n_explore, n_refine : int, optional
        tau_1 and tau_2; by default d sqrt(2.5 N / p) and k sqrt(N), N at the most.
    penalty : float
        Of the ridge.

    Examples
    --------
    >>> from posse.core.streams import Course
    >>> course = Course(n_tasks=6000, group_size=1, dim=10, rounds=2000, finite=False)
    >>> BRESS(rank=3).lengths(course), round(BRESS(rank=3).probability(course), 4)
    ((2000, 134), 0.0445)

    Notes
    -----
    T. Duong and co-authors, Efficient algorithms for lifelong learning linear bandits, by their code, with
    the online principal components of M. Warmuth and D. Kuzmin (2008). The directions to leave out are drawn
    by systematic sampling: each with the probability that theirs has, not each set of them.
    """

    rank: int
    n_explore: int | None = None
    n_refine: int | None = None
    penalty: float = 1.0

    def begin(self, course: Course) -> LifelongMemory:
        """Return what is known before the first task: all directions are alike."""
        memory = super().begin(course)
        check_integer("`rank` of BRESS", self.rank, 1, course.dim - 1, high_name="dim - 1")
        return replace(memory, matrix=np.eye(course.dim) / course.dim)

    def probability(self, course: Course) -> float:
        """Return p = 1.5 (9 N k^2 log(d/k)^2 / (2.5 T^2 d^2))^(1/3), 1 at the most."""
        numerator = 9.0 * course.rounds * self.rank**2 * math.log(course.dim / self.rank) ** 2
        share = numerator / (2.5 * course.n_tasks**2 * course.dim**2)
        return float(min(1.0, 1.5 * share ** (1 / 3)))

    def rate(self, course: Course) -> float:
        """Return eta = sqrt(2 log d / E), E being the explorations that are expected."""
        expected = max(1, int(self.probability(course) * course.n_tasks))
        return math.sqrt(2.0 * math.log(course.dim) / expected)

    def _tau_1(self, course: Course) -> float:
        return course.dim * math.sqrt(2.5 * course.rounds / max(self.probability(course), 1e-6))

    def _explores(self, course: Course, number: int, rng: np.random.Generator) -> bool:
        return bool(rng.random() < self.probability(course))

    def _learned(self, memory: LifelongMemory, theta: Array) -> Array:
        matrix, cap = memory.matrix, 1.0 / (memory.course.dim - self.rank)
        for row in theta[theta.any(axis=1)]:
            matrix = capped(exponentiated(matrix, row, self.rate(memory.course)), cap)
        return matrix

    def _basis(self, memory: LifelongMemory, rng: np.random.Generator) -> Array:
        return sampled_basis(memory.matrix, self.rank, rng)
