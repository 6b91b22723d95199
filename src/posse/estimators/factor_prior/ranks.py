"""Learn a factor prior: from no shared direction to as many as the rewards of all tasks speak for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from posse.core.statistics import GramStatistics
from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.estimators.factor_prior.search import (
    MOST_STEPS,
    STEP_GAIN,
    Found,
    add_directions,
    count_directions,
    maximise_evidence,
)
from posse.numerics.linalg import WIDE

if TYPE_CHECKING:
    from posse.estimators.factor_prior.estimator import FactorPrior

# The search for the rank, from none, ends after this many ranks in a row that are no better.
PATIENCE = 2
# What a parameter of a further direction costs in evidence, if one of the first costs 1.
FURTHER_PRICE = 0.8
# Parameters of directions count as no more than this share of the numbers that tasks tell about themselves.
LARGEST_SHARE = 0.95
# While ranks are compared, climbing ends where a step gains less than this, and after this many steps.
ROUGH_GAIN, ROUGH_STEPS = 1e-3, 80
# Before the data, an entry of F has this many times the variance that a direction has in a model of none
# shared: wide enough not to matter, except along features that hardly ever vary.
STRENGTH = 1.0
# With wide features a step takes long: a refit takes no more than these, and the next goes on from there.
WIDE_STEPS = 12
# From so many tasks on, a step ends the climb if it gains less than this for each task.
MANY, GAIN_PER_TASK = 4096, 1e-8


def spaced_tasks(statistics: GramStatistics, n: int) -> NDArray[np.intp]:
    """Return n tasks, evenly spaced in the order of their y'y among those that were played, if there are n.

    So neither the order of tasks nor the coordinates of features matter.
    """
    played = statistics.count > 0
    order = np.lexsort((statistics.square, played))[-max(n, int(played.sum())) :]
    return np.sort(order[np.linspace(0, len(order) - 1, n).astype(np.intp)])


def largest_rank(n_tasks: int, dim: int) -> int:
    """Return how many shared directions "auto" considers: T - 1, or fewer if features outnumber tasks.

    In d dimensions chance makes T vectors look alike by sqrt(d / T). Where that is above 2, the bound is
    T / sqrt(d / T).

    Examples
    --------
    >>> [largest_rank(n_tasks, dim) for n_tasks, dim in ((1, 20), (10, 20), (10, 784), (1000, 20))]
    [0, 9, 1, 20]
    """
    likeness = np.sqrt(dim / n_tasks)
    return min(dim, n_tasks - 1 if likeness <= 2.0 else int(n_tasks / likeness))


class RankSearch:
    """Fits of several ranks to the same statistics, and which of them to keep."""

    def __init__(self, evidence: FactorEvidence, settings: FactorPrior, known: FactorModel | None) -> None:
        self.evidence, self.settings, self.known = evidence, settings, known
        self.strength = self.told = np.inf
        self.found: dict[int, Found] = {}
        self.scores: dict[int, float] = {}

    def run(self) -> Found:
        """Return the fit of the rank asked for, or of the best one."""
        rank = self.settings.rank if self.evidence.n_tasks > 1 else 0
        self.unshared = self._climb(self._suited(self.evidence.start()), rough=True)
        self.strength = self._expected_strength()
        solved = self.evidence.solve(self.unshared.model)
        self.told = float(self.evidence.freedom(self.unshared.model, solved).sum())
        if isinstance(rank, str):
            return self._climb(self._best().model)
        if self.known is not None and self.known.rank == rank:
            return self._climb(self._suited(self.known))
        return self._climb(self._suited(add_directions(self.evidence, self.unshared.model, rank)))

    def follow(self, start: FactorModel) -> Found:
        """Return where a model leads that some of the tasks have found."""
        self.strength = start.strength
        return self._climb(self._suited(start))

    def _expected_strength(self) -> float:
        """Return how strong shared directions may be, by the strength of a model that has none.

        The signal in a reward may at any rate be about as large as its noise.
        """
        alone = float(np.exp(self.unshared.model.log_ratio))
        return STRENGTH * max(alone, 1.0 / (self.evidence.dim * self.evidence.unit))

    def score(self, found: Found) -> float:
        """Return the evidence minus a price for the free parameters of the directions: equation (14)."""
        return self.evidence.log_evidence(found.model) - self._price(found.model.rank)

    def _price(self, rank: int) -> float:
        """Return what the free parameters of so many directions cost.

        F has d k - k (k - 1) / 2 up to a rotation, and one more per direction makes it earn its place. The
        first direction, which says that tasks are related at all, pays one for each; the others less. All
        cost more where they are many beside the numbers that tasks tell about themselves.
        """
        dim = self.evidence.dim
        free = dim * rank - rank * (rank - 1) // 2 + rank
        first = min(free, dim + 1)
        share = min(free / max(self.told, 1.0), LARGEST_SHARE)
        dearer = np.sqrt(-np.log1p(-share) / share) if share > 0.0 else 1.0
        return float(dearer * (first + FURTHER_PRICE * (free - first)))

    def _best(self) -> Found:
        """Search upwards from no shared direction, or both ways from the rank that is known."""
        most = largest_rank(self.evidence.n_tasks, self.evidence.dim)
        start = 0 if self.known is None else self.known.rank
        self._keep(self.unshared)
        if self.known is not None and start > 0:
            self._consider(self.known)
            self._try(range(start - 1, 0, -1), patience=1)
        self._try(range(start + 1, most + 1), patience=1 if start else PATIENCE)
        if self.known is None:
            self._leap(most)
        return self.found[self._best_rank()]

    def _leap(self, most: int) -> None:
        """Try the rank that the tasks' residuals under no shared direction ask for, and its neighbours.

        Directions may pay together where none of the first few pays alone.
        """
        asked = min(count_directions(self.evidence, self.unshared.model), most)
        if asked == 0 or asked in self.found:
            return
        self._consider(add_directions(self.evidence, self.unshared.model, asked))
        self._try(range(asked - 1, max(self.found.keys() - {asked}, default=0), -1), patience=1)
        self._try(range(asked + 1, most + 1), patience=1)

    def _best_rank(self) -> int:
        return max(self.scores, key=self.scores.__getitem__)

    def _goal(self, rank: int) -> float:
        """Return the deviance of a rank that would be better than all so far, and some more for each task.

        Tasks' scales stand at their best in the deviance, and are integrated out in the evidence.
        """
        if not self.scores:
            return np.inf
        best = self._best_rank()
        cheaper = self._price(best) - self._price(rank)
        return self.found[best].deviance + 2.0 * cheaper + self.evidence.n_tasks

    def _climb(self, start: FactorModel, *, rough: bool = False) -> Found:
        gain, steps = (ROUGH_GAIN, ROUGH_STEPS) if rough else (STEP_GAIN, MOST_STEPS)
        if self.evidence.n_tasks > MANY:
            gain = GAIN_PER_TASK * self.evidence.n_tasks
        if self.known is not None and self.evidence.dim >= WIDE:
            steps = WIDE_STEPS
        learn_mean = self.settings.mean == "learned"
        goal = self._goal(start.rank) if rough else np.inf
        return maximise_evidence(
            self.evidence, start, learn_mean=learn_mean, step_gain=gain, most_steps=steps, goal=goal
        )

    def _consider(self, start: FactorModel) -> None:
        self._keep(self._climb(self._suited(start), rough=True))

    def _keep(self, found: Found) -> None:
        self.found[found.model.rank], self.scores[found.model.rank] = found, self.score(found)

    def _suited(self, model: FactorModel) -> FactorModel:
        """Return a model as the settings want it, with tails as heavy as the number of tasks bears.

        If k directions followed k tasks exactly, the others could be outliers of a prior with no outside:
        k d / 2 against nu (T - k) / 2 in log likelihood for each unit of log tau. Twice that nu forbids it.
        """
        n_tasks, dim = self.evidence.n_tasks, self.evidence.dim
        others = n_tasks - model.rank
        least = 2.0 * model.rank * dim / others if others > 0 else np.inf
        degrees = max(self.settings.degrees, least)
        ratio = model.log_ratio
        if self.settings.hard and model.rank > 0:
            ratio = -np.inf
        elif np.isinf(ratio):
            ratio = self.unshared.model.log_ratio
        return replace(
            model,
            log_ratio=ratio,
            log_scales=model.log_scales if np.isfinite(degrees) else np.zeros(n_tasks),
            mean=model.mean if self.settings.mean == "learned" else np.zeros(dim),
            degrees=degrees,
            strength=self.strength,
        )

    def _try(self, ranks: range, *, patience: int) -> None:
        """Fit one rank after the other, each from its neighbour, until they are no better."""
        misses = 0
        for rank in ranks:
            best = max(self.scores.values())
            neighbour = self.found[rank - ranks.step].model
            start = (
                add_directions(self.evidence, neighbour, 1) if ranks.step > 0 else _without_weakest(neighbour)
            )
            self._consider(start)
            misses = 0 if self.scores[rank] > best else misses + 1
            if misses == patience:
                return


def _without_weakest(model: FactorModel) -> FactorModel:
    basis, strengths, _ = np.linalg.svd(model.factors, full_matrices=False)
    return replace(model, factors=basis[:, :-1] * strengths[:-1])
