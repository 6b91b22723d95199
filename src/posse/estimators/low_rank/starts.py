"""Global search over subspaces: many starts until they agree, or one start and a falling penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from posse.estimators.low_rank.newton import (
    Minimum,
    SubspaceProblem,
    descend,
    orthonormal,
    principal_directions,
)
from posse.numerics.checks import Array

SCREEN_TOL, _SCREEN_ITER = 1e-4, 40
_BATCH = 8  # starts that descend together
_FRESH = 2  # of a later batch: independent of what was found
_HITS = 8  # independent starts that must end at the best value
_AGREEMENT = 1e-6  # objectives closer than this, relative to the total, are one minimum
_SPREAD = 2.0  # size of a perturbation relative to the basis
STAGE_TOL, LAST_TOL = 1e-2, 1e-4  # of a stage, relative to the root of its share of the total


class Starts:
    """Spectral and random starts, in whitened coordinates.

    Random numbers are coordinates on the principal directions of the per-task estimates, so that the
    starts follow rotations of the features and do not depend on the order of tasks.
    """

    def __init__(self, estimates: Array, rank: int) -> None:
        self._directions = principal_directions(estimates)
        self._rng = np.random.default_rng(0)
        self.spectral = self._directions[:, :rank]

    def perturbed(self) -> Array:
        """Return the spectral start, moved by twice its size."""
        return self.spectral + _SPREAD * self._random(self.spectral.shape[1])

    def swapped(self, minimum: Minimum) -> Array:
        """Return a minimum with one direction replaced by a random one."""
        rank = self.spectral.shape[1]
        turn = orthonormal(self._rng.standard_normal((rank, rank)))
        return np.hstack([minimum.coordinates @ turn[:, 1:], self._random(1)])

    def crossed(self, minima: list[Minimum]) -> Array:
        """Return a random subspace of the span of two minima."""
        pair = self._rng.permutation(len(minima))[:2]
        both = np.hstack([minima[i].coordinates for i in pair])
        return np.asarray(both @ self._rng.standard_normal((both.shape[1], self.spectral.shape[1])))

    def _random(self, columns: int) -> Array:
        width = self._directions.shape[1]
        return np.asarray(self._directions @ self._rng.normal(0.0, width**-0.5, (width, columns)))


def search(
    problem: SubspaceProblem, estimates: Array, rank: int, *, n_starts: int, tol: float, max_iter: int
) -> Minimum:
    """Screen batches of starts until independent ones agree on the best, then finish it.

    The first batch is the spectral start and perturbations of it. Where they disagree, later batches
    add two more perturbations, three of the best minima with a direction swapped, and three
    subspaces between two of them. The search ends when eight of the perturbations ended at the best value,
    or after `n_starts` descents. `estimates` (T, r) are the tasks' own, in whitened coordinates.
    """
    starts = Starts(estimates, rank)
    if n_starts == 1:
        return descend(problem, starts.spectral[None], tol, max_iter)[0]
    gap = _AGREEMENT * problem.total
    batch = [starts.spectral, *(starts.perturbed() for _ in range(_BATCH - 1))]
    fresh = _BATCH
    found: list[Minimum] = []
    independent: list[Minimum] = []
    while True:
        batch = batch[: n_starts - len(found)]
        ends = descend(problem, np.stack(batch), max(tol, SCREEN_TOL), _SCREEN_ITER)
        found += ends
        independent += ends[:fresh]
        best, *others = distinct(found, gap)
        hits = sum(end.objective <= best.objective + gap for end in independent)
        if hits >= _HITS or len(found) >= n_starts:
            break
        ranking = [best, *others]
        fresh = _FRESH
        batch = [starts.perturbed() for _ in range(fresh)]
        batch += [starts.swapped(ranking[i % len(ranking)]) for i in range(3)]
        batch += [starts.crossed(ranking[:6]) for _ in range(3)]
    (end,) = descend(problem, best.coordinates[None], tol, max_iter)
    return replace(end, n_iter=best.n_iter + end.n_iter)


def follow(stages: Sequence[SubspaceProblem], end: Minimum, *, tol: float, max_iter: int) -> Minimum:
    """Descend from the minimum of the first stage to that of the last, through all between.

    The stages have falling penalties, by about a factor of ten, which lowers the objective by no more.
    """
    n_iter = end.n_iter
    for problem, following in pairwise(stages):
        basis = problem.transform @ end.coordinates
        start = np.asarray(np.linalg.lstsq(following.transform, basis)[0], dtype=np.float64)
        share = float(np.sqrt(0.1 * max(end.objective, 0.0) / (problem.total or 1.0)))
        goal = min(tol, LAST_TOL * share) if following is stages[-1] else STAGE_TOL * share
        (end,) = descend(following, start[None], goal, max_iter)
        n_iter += end.n_iter
    return replace(end, n_iter=n_iter)


def distinct(minima: list[Minimum], gap: float) -> list[Minimum]:
    """Return minima whose objectives differ by more than `gap`, best first."""
    ranking: list[Minimum] = []
    for minimum in sorted(minima, key=lambda end: end.objective):
        if not ranking or minimum.objective > ranking[-1].objective + gap:
            ranking.append(minimum)
    return ranking
