"""What is kept of finished tasks: a uniform sample, and the latest, never more than there is room for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posse.core.statistics import GramStatistics
from posse.numerics.checks import check_integer


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Statistics of finished tasks, of which a uniform sample stands for all, and the latest for what is new.

    Attributes
    ----------
    sample : GramStatistics
        Of at most `size` tasks; every task older than the latest has the same chance to be among them.
    latest : GramStatistics
        Of at most `recent` tasks that ended last.
    n_seen : int
        How many tasks have ended.
    size, recent : int

    Examples
    --------
    >>> kept = Reservoir.empty(dim=2, size=3, recent=2)
    >>> one = GramStatistics.of(np.ones((4, 1, 2)), np.ones((4, 1)))
    >>> for _ in range(10):
    ...     kept = kept.added(one, np.random.default_rng(0))
    >>> kept.n_seen, kept.statistics.n_tasks
    (10, 5)
    """

    sample: GramStatistics | None
    latest: GramStatistics | None
    n_seen: int
    dim: int
    size: int = field(default=1000)
    recent: int = field(default=50)

    @classmethod
    def empty(cls, dim: int, size: int = 1000, recent: int = 50) -> Reservoir:
        """Return one that has seen no task, with room for so many sampled and so many latest ones."""
        check_integer("`dim` of Reservoir", dim, 1)
        check_integer("`size` of Reservoir", size, 1)
        check_integer("`recent` of Reservoir", recent, 1)
        return cls(None, None, 0, dim, size, recent)

    @property
    def statistics(self) -> GramStatistics | None:
        """Of all tasks that are kept, the sample first; None before the first."""
        kept = [some for some in (self.sample, self.latest) if some is not None]
        return joined(kept) if kept else None

    def added(self, finished: GramStatistics, rng: np.random.Generator) -> Reservoir:
        """Return the reservoir after further tasks have ended."""
        if finished.dim != self.dim:
            raise ValueError(
                f"a newcomer must have the features of all tasks before it, dim={self.dim}. "
                f"Got a task with {finished.dim}."
            )
        latest = joined([some for some in (self.latest, finished) if some is not None])
        n_old = max(0, latest.n_tasks - self.recent)
        sample = self.sample
        n_sampled = self.n_seen - (0 if self.latest is None else self.latest.n_tasks)
        for place in range(n_old):
            sample = _sampled(sample, latest.take([place]), n_sampled + place, self.size, rng)
        if n_old:
            latest = latest.take(np.arange(n_old, latest.n_tasks))
        return Reservoir(sample, latest, self.n_seen + finished.n_tasks, self.dim, self.size, self.recent)


def _sampled(
    sample: GramStatistics | None, task: GramStatistics, n_before: int, size: int, rng: np.random.Generator
) -> GramStatistics:
    """Return a uniform sample after one more task, of n_before + 1 (Vitter's algorithm R)."""
    if sample is None or sample.n_tasks < size:
        return joined([some for some in (sample, task) if some is not None])
    place = int(rng.integers(n_before + 1))
    if place >= size:
        return sample
    parts = [np.array(part) for part in (sample.gram, sample.moment, sample.square, sample.count)]
    for part, new in zip(parts, (task.gram, task.moment, task.square, task.count), strict=True):
        part[place] = new[0]
    return GramStatistics(*parts)


def joined(parts: list[GramStatistics]) -> GramStatistics:
    """Return the statistics of several lists of tasks, at least one, as those of one, in order."""
    return GramStatistics(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("gram", "moment", "square", "count")
        )
    )
