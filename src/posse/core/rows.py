"""Rows that wait to be learned from, in arrays with room to grow, and the loops over single rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from posse.core.fading import Fading, FadingStatistics, faded
from posse.core.posterior import Beliefs
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, IntArray
from posse.numerics.compiled import compiled

# What is wrong with a row, as `find_wrong` says it.
WRONG = {
    1: "`features` of rows must be numbers of at most 1e75",
    2: "`rewards` of rows must be numbers of at most 1e75",
    3: "`weights` of rows must be numbers from 0 to 1e75",
}
# Larger numbers are refused, because sums of their squares would overflow.
LARGEST = 1e75
# Rows weigh more and more where older ones fade by the clock, up to exp of this; then all are weighed anew.
MOST_GROWTH = 200.0


class Choice(NamedTuple):
    """A decision for each of m rows.

    Attributes
    ----------
    arm : (m,)
        The number of the arm to play.
    probabilities : (m, K)
        With which probability each arm was chosen, given all that came before: exactly.
    """

    arm: IntArray
    probabilities: Array


class PendingRows:
    """The summary of rows since the last update, made row by row, in place.

    Parameters
    ----------
    kind : GramStatistics or Fading
        How rows are summarised.
    n_tasks, dim : int
        T and d.

    Attributes
    ----------
    seen : (T,)
        Rows of each task, in all.
    n_rows, n_seen : int
        Rows in all, and tasks that have been seen.
    waiting : bool
        Whether there are rows since the last update.
    elapsed : float
        Rounds of the clock since then, if older rows fade by it: a row is added at factor^-elapsed.
    """

    def __init__(self, kind: Any, n_tasks: int, dim: int) -> None:
        self.fading = kind if isinstance(kind, Fading) else None
        self.dim, self.room = dim, n_tasks
        self.seen = np.zeros(n_tasks)
        self.n_rows = self.n_seen = 0
        self._clear()

    def _clear(self) -> None:
        room, dim = self.room, self.dim
        self.gram, self.moment = np.zeros((room, dim, dim)), np.zeros((room, dim))
        self.square, self.count, self.fade = np.zeros(room), np.zeros(room), np.ones(room)
        self.elapsed, self.waiting = 0.0, False

    def grow(self, room: int) -> None:
        """Make room for more tasks."""
        missing = room - self.room
        if missing > 0:
            for name in ("gram", "moment", "square", "count", "fade", "seen"):
                part = getattr(self, name)
                fill = np.ones if name == "fade" else np.zeros
                setattr(self, name, np.concatenate([part, fill((missing, *part.shape[1:]))]))
            self.room = room

    def add(self, tasks: IntArray, x: Array, y: Array, weights: Array, beliefs: Beliefs | None) -> None:
        """Add rows, and move the beliefs of their tasks by them; nothing changes if a row is wrong."""
        wrong, row = find_wrong(x, y, weights)
        if wrong:
            found = {1: x[row], 2: y[row], 3: weights[row]}[wrong]
            raise ValueError(f"{WRONG[wrong]}. Got {found} in row {row}.")
        self.n_rows += len(tasks)
        self.waiting = True
        if self.fading is None or self.fading.by == "rounds" or self.fading.factor == 1.0:
            own = 1.0 if self.fading is None else self.fading.factor
            self._absorb(tasks, x, y, weights, own, 1.0, beliefs)
            return
        most = max(1, int(MOST_GROWTH / -math.log(self.fading.factor)))  # a row moves the clock by 1 at most
        for start in range(0, len(tasks), most):
            rows = slice(start, start + most)
            self._absorb(tasks[rows], x[rows], y[rows], weights[rows], 1.0, self.fading.factor, beliefs)
            if self.elapsed > most:
                self._weigh_anew()

    def _absorb(
        self,
        tasks: IntArray,
        x: Array,
        y: Array,
        weights: Array,
        own: float,
        clock: float,
        beliefs: Beliefs | None,
    ) -> None:
        known = NO_BELIEFS if beliefs is None else beliefs
        self.n_seen, self.elapsed = absorb_rows(
            tasks,
            x,
            y,
            weights,
            own,
            clock,
            self.elapsed,
            self.n_seen,
            self.gram,
            self.moment,
            self.square,
            self.count,
            self.fade,
            self.seen,
            known.theta,
            known.root,
        )

    def absorb(self, statistics: GramStatistics) -> None:
        """Add rows of the first tasks by their statistics, each as many rows as it weighs."""
        if self.fading is not None and self.fading.factor < 1.0:
            raise ValueError(
                "statistics to absorb have no order in time, so the policy must forget nothing. "
                f"Got a memory of {self.fading!r}."
            )
        for name in ("gram", "moment", "square", "count"):
            getattr(self, name)[: statistics.n_tasks] += getattr(statistics, name)
        self.seen[: statistics.n_tasks] += statistics.count
        self.waiting = self.waiting or bool(statistics.count.any())
        self.n_rows, self.n_seen = int(self.seen.sum()), int((self.seen > 0).sum())

    def amend(self, task: int, x: Array, old: float, new: float, beliefs: Beliefs | None) -> None:
        """Count a reward as `new` that was counted as `old`, and move the beliefs of its task accordingly."""
        known = NO_BELIEFS if beliefs is None else beliefs
        amend_row(task, x, old, new, self.moment, self.square, known.theta, known.root)
        self.waiting = True

    def erase(self, task: int) -> None:
        """Forget all rows of a task."""
        self.n_rows -= int(self.seen[task])
        self.n_seen -= bool(self.seen[task])
        for part in (self.gram, self.moment, self.square, self.count, self.seen):
            part[task] = 0.0
        self.fade[task] = 1.0

    def _weigh_anew(self) -> None:
        """Let the last row weigh 1, where older ones fade by the clock."""
        assert self.fading is not None
        left = self.fading.factor**self.elapsed
        for part in (self.gram, self.moment, self.square, self.count, self.fade):
            part *= left
        self.elapsed = 0.0

    def summary(self, n_tasks: int) -> GramStatistics:
        """Return the statistics of the rows of the first tasks; later rows do not change them."""
        if self.elapsed > 0.0:
            self._weigh_anew()
        return self.as_they_are(n_tasks)

    def as_they_are(self, n_tasks: int) -> GramStatistics:
        """Return the statistics of the rows of the first tasks, as of the time when `elapsed` was 0."""
        parts = (self.gram, self.moment, self.square, self.count)
        found = GramStatistics(*(part[:n_tasks].copy() for part in parts))
        return found if self.fading is None else faded(found, self.fade[:n_tasks].copy())

    def take(self, n_tasks: int) -> GramStatistics:
        """Return the statistics of the rows of the first tasks, and forget the rows."""
        summary = self.summary(n_tasks)
        self._clear()
        return summary

    def resume(self, summary: GramStatistics, elapsed: float, seen: Array) -> None:
        """Go on from what `as_they_are` gave, `elapsed` and `seen`."""
        self.gram, self.moment = summary.gram.copy(), summary.moment.copy()
        self.square, self.count = summary.square.copy(), summary.count.copy()
        if isinstance(summary, FadingStatistics):
            self.fade = summary.fade.copy()
        waiting = summary.count.any() or summary.moment.any() or summary.square.any()
        self.seen, self.elapsed, self.waiting = seen.copy(), elapsed, bool(waiting)
        self.n_rows, self.n_seen = int(seen.sum()), int((seen > 0).sum())


NO_BELIEFS = Beliefs(np.zeros((0, 0)), np.zeros((0, 0, 0)), np.zeros(0))


@compiled
def draw_arms(chances: Array, uniform: Array, arm: IntArray) -> int:
    """Fill `arm` (m,) with draws by probabilities (m, K) and numbers uniform in [0, 1[, (m,).

    Returns the first row without a probability above 0 or with one that is not a number; -1 for none.
    """
    n_rows, n_arms = chances.shape
    for n in range(n_rows):
        total, chosen = 0.0, -1
        for k in range(n_arms):
            if np.isnan(chances[n, k]):
                return n
            if chances[n, k] > 0.0 and (chosen < 0 or uniform[n] >= total):
                chosen = k
            total += chances[n, k]
        if chosen < 0:
            return n
        arm[n] = chosen
    return -1


@compiled
def find_wrong(features: Array, rewards: Array, weights: Array) -> tuple[int, int]:
    """Return what is wrong with features (m, d), rewards and weights (m,), and in which row.

    1 is for features and 2 for rewards that are not numbers or too large, 3 for such or negative weights, and
    0 if nothing is wrong.
    """
    for n in range(len(features)):
        if not 0.0 <= weights[n] <= LARGEST:  # so that NaN is refused, too
            return 3, n
        if not -LARGEST <= rewards[n] <= LARGEST:
            return 2, n
        for i in range(features.shape[1]):
            if not -LARGEST <= features[n, i] <= LARGEST:
                return 1, n
    return 0, 0


@compiled
def absorb_rows(
    tasks: IntArray,
    features: Array,
    rewards: Array,
    weights: Array,
    own: float,
    clock: float,
    elapsed: float,
    n_seen: int,
    gram: Array,
    moment: Array,
    square: Array,
    count: Array,
    fade: Array,
    seen: Array,
    theta: Array,
    root: Array,
) -> tuple[int, float]:
    """Add rows to the statistics of their tasks, and move what is believed of these by each of them.

    Parameters
    ----------
    tasks : (m,)
    features : (m, d)
    rewards, weights : (m,)
    own, clock : float
        What is left of a task's older rows after a row of its own, and of all older rows after a round of
        the clock; 1 for all.
    elapsed : float
        Rounds of the clock since the statistics were cleared: a row counts clock^-elapsed.
    n_seen : int
        Tasks that have been seen.
    gram, moment, square, count, fade, seen : (T, d, d), (T, d), (T,), (T,), (T,), (T,)
        Are added to.
    theta, root : (T, d), (T, d, d)
        Beliefs, in units of the noise, or empty if they are to stay; see `condition_on_rows`.

    Returns
    -------
    n_seen : int
    elapsed : float
    """
    n_rows, dim = features.shape
    projected = np.empty(dim)
    for n in range(n_rows):
        t, y, weight = tasks[n], rewards[n], weights[n]
        if seen[t] == 0.0:
            n_seen += 1
        seen[t] += 1.0
        if clock < 1.0:
            elapsed += 1.0 / n_seen
        if weight == 0.0:
            continue
        if own < 1.0:
            fade[t] *= own
            square[t] *= own
            count[t] *= own
            for i in range(dim):
                moment[t, i] *= own
                for j in range(dim):
                    gram[t, i, j] *= own
        scale = weight * clock**-elapsed if clock < 1.0 else weight
        square[t] += scale * y * y
        count[t] += scale
        for i in range(dim):
            x = scale * features[n, i]
            moment[t, i] += x * y
            for j in range(dim):
                gram[t, i, j] += x * features[n, j]
        if len(theta) == 0:
            continue
        left = y
        for j in range(dim):
            projected[j] = 0.0
        for i in range(dim):
            x = features[n, i]
            left -= x * theta[t, i]
            for j in range(dim):
                projected[j] += x * root[t, i, j]
        length = 1.0 / weight
        for j in range(dim):
            length += projected[j] * projected[j]
        gain = 1.0 / (length * (1.0 + np.sqrt(1.0 / (weight * length))))
        step = left / length
        for i in range(dim):
            along = 0.0
            for j in range(dim):
                along += root[t, i, j] * projected[j]
            theta[t, i] += step * along
            along *= gain
            for j in range(dim):
                root[t, i, j] -= along * projected[j]
    return n_seen, elapsed


@compiled
def amend_row(
    task: int,
    features: Array,
    old: float,
    new: float,
    moment: Array,
    square: Array,
    theta: Array,
    root: Array,
) -> None:
    """Replace the reward of a row that was absorbed at weight 1: X'X stays, theta moves by V x (new - old).

    Parameters
    ----------
    task : int
    features : (d,)
    old, new : float
    moment, square : (T, d), (T,)
        Are added to; the row itself may have been learned from long ago.
    theta, root : (T, d), (T, d, d)
        Beliefs, in units of the noise, V = R R', or empty if they are to stay.
    """
    dim, change = len(features), new - old
    square[task] += new * new - old * old
    for i in range(dim):
        moment[task, i] += features[i] * change
    if len(theta) == 0:
        return
    projected = np.zeros(dim)
    for i in range(dim):
        x = features[i] * change
        for j in range(dim):
            projected[j] += x * root[task, i, j]
    for i in range(dim):
        for j in range(dim):
            theta[task, i] += root[task, i, j] * projected[j]
