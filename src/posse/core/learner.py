"""Rows over an episode: decisions for a few tasks at a time, and rewards that count at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posse.core.episode import Episode, Job, JobResult
from posse.core.learner_state import LearnerState
from posse.core.posterior import Beliefs
from posse.core.protocols import DecidesRows, Policy, keeps_pace
from posse.core.rows import Choice, PendingRows, draw_arms
from posse.core.statistics import GramStatistics
from posse.core.tasks import TaskNames, as_numbers
from posse.numerics.checks import Array, IntArray, check_integer, make_generator

# Arrays have room for this many tasks at least.
LEAST_ROOM = 16
ALL_ON_OFFER = np.zeros((0, 0), dtype=np.bool_)


class Learner:
    """A policy that decides for any of its tasks, one or many at a time, and learns from single rewards.

    Two speeds: a reward moves the posterior of its own task at once, at a cost that does not depend on the
    number of tasks, unless the policy says `prompt=False`. What tasks share is learned anew by `update`,
    when that is `due`, here or elsewhere (`begin`, `adopt`). The clock is rows / tasks seen. A policy that
    forgets does so by its updates; between them nothing is forgotten.

    It is for policies whose estimates have a posterior for each task, and for `Random`; and for one thread at
    a time: what may run elsewhere is `Job.run` alone.

    Parameters
    ----------
    policy : Policy
    n_tasks, dim : int
        T and d.
    names : sequence of str, optional
        A name for each task; they can then be asked for by it.
    seed : int or numpy Generator, optional
        For ties and exploration; fresh by default.

    Examples
    --------
    >>> from posse import Learner, SharedThompson
    >>> learner = Learner(SharedThompson(), n_tasks=2000, dim=3, seed=0)
    >>> arms = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> choice = learner.select([17], arms)
    >>> choice.arm.shape, choice.probabilities
    ((1,), array([[0.421875, 0.578125]]))
    >>> learner.observe([17], arms[0][choice.arm], [1.0])
    """

    def __init__(
        self,
        policy: Policy,
        *,
        n_tasks: int,
        dim: int,
        names: Sequence[str] | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        check_integer("`n_tasks` of Learner", n_tasks, 1)
        check_integer("`dim` of Learner", dim, 1)
        decides = deciding(policy)
        episode = Episode(policy, n_tasks=n_tasks, dim=dim)
        pending = PendingRows(policy.statistics, n_tasks, dim)
        self._begin_from(
            episode, decides, TaskNames(n_tasks, names), pending, decides.beliefs(episode.state), seed
        )

    def _begin_from(
        self,
        episode: Episode,
        policy: DecidesRows,
        tasks: TaskNames,
        pending: PendingRows,
        beliefs: Beliefs,
        seed: int | np.random.Generator | None,
    ) -> None:
        self.policy, self.dim = policy, beliefs.theta.shape[1]
        self.prompt = policy.prompt is not False
        self._episode, self._tasks, self._pending, self._beliefs = episode, tasks, pending, beliefs
        self._retired, self._any_retired = np.zeros(self.n_tasks, dtype=np.bool_), False
        self._rng = np.random.default_rng() if seed is None else make_generator("`seed` of Learner", seed)

    def __repr__(self) -> str:
        return f"<Learner of {self.n_tasks} tasks, {self._pending.n_rows} rows: {self.policy!r}>"

    @property
    def names(self) -> tuple[str, ...] | None:
        """The tasks' names, in order; None if they have none."""
        return self._tasks.names

    @property
    def n_tasks(self) -> int:
        """The number of tasks, retired ones among them."""
        return self._tasks.n_tasks

    @property
    def state(self) -> Any:
        """What the policy learned at its last update."""
        return self._episode.state

    @property
    def clock(self) -> float:
        """Rows for each task that has been seen."""
        return self._pending.n_rows / max(1, self._pending.n_seen)

    @property
    def n_rows(self) -> int:
        """The number of rows that were observed."""
        return self._pending.n_rows

    @property
    def rows(self) -> Array:
        """The number of rows of each task, (T,): a copy."""
        return self._pending.seen[: self.n_tasks].copy()

    @property
    def waiting(self) -> bool:
        """Whether there are rows, or rewards that were amended, since the last update."""
        return self._pending.waiting or bool(self._episode.unlearned)

    @property
    def due(self) -> bool:
        """Whether it is time to `update`, and no update is under way."""
        self._episode.read(self.clock)
        return self._episode.due

    @property
    def beliefs(self) -> Beliefs:
        """What is believed of every task now: a copy."""
        return Beliefs(*(part[: self.n_tasks].copy() for part in self._beliefs.parts))

    def select(self, tasks: ArrayLike, arms: ArrayLike, available: ArrayLike | None = None) -> Choice:
        """Choose an arm for each of m rows, and say with which probabilities.

        Parameters
        ----------
        tasks : (m,)
            Numbers or names of tasks; one may come several times.
        arms : (m, K, d)
            What is on offer in each row.
        available : (m, K), optional
            False marks an arm that is not on offer.
        """
        index = self._tasks.numbers(tasks)
        if self._any_retired and self._retired[index].any():
            gone = np.asarray(tasks)[self._retired[index]][0]
            raise ValueError(f"tasks to decide for must not be retired. Got {gone!s}.")
        offered = as_numbers("arms", arms, ": fill up with any numbers, and mask them by `available`")
        if offered.ndim != 3 or len(offered) != len(index) or offered.shape[2] != self.dim:
            raise ValueError(
                f"`arms` must have shape (m={len(index)}, K, d={self.dim}). Got {offered.shape}."
            )
        mask = ALL_ON_OFFER if available is None else np.ascontiguousarray(available)
        if available is not None and (mask.shape != offered.shape[:2] or mask.dtype != np.bool_):
            raise ValueError(
                f"`available` must be True or False, of shape {offered.shape[:2]}. "
                f"Got {mask.dtype} of shape {mask.shape}."
            )
        chances = self.policy.chances(self._beliefs, index, offered, mask, self._rng)
        arm = np.empty(len(index), dtype=np.intp)
        wrong = draw_arms(chances, self._rng.random(len(index)), arm)
        if wrong >= 0:
            broken = np.isnan(chances[wrong]).any()
            found = "features or parameters that are not numbers" if broken else "none"
            raise ValueError(f"every row must have an arm on offer with a score. Got {found} in row {wrong}.")
        return Choice(arm, chances)

    def observe(
        self, tasks: ArrayLike, features: ArrayLike, rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn from m rows: what was played, and what came back.

        Nothing is learned from any of them if one is wrong.

        Parameters
        ----------
        tasks : (m,)
            Numbers or names of tasks.
        features : (m, d)
            The features of the arms that were played.
        rewards : (m,)
        weights : (m,), optional
            How much each row counts, not negative; 1 by default.
        """
        index = self._tasks.numbers(tasks)
        x, y = as_numbers("features", features), as_numbers("rewards", rewards)
        w = np.ones(len(index)) if weights is None else as_numbers("weights", weights)
        n_rows = len(index)
        if x.shape != (n_rows, self.dim) or y.shape != (n_rows,) or w.shape != (n_rows,):
            raise ValueError(
                f"rows must have features of shape ({n_rows}, {self.dim}), rewards and weights of shape "
                f"({n_rows},), for so many tasks. Got {x.shape}, {y.shape} and {w.shape}."
            )
        self._pending.add(index, x, y, w, self._beliefs if self.prompt else None)

    def absorb(self, statistics: GramStatistics) -> None:
        """Learn from rows of all tasks by their statistics, as those of a log or of a `Model`.

        What is believed afterwards is what `observe` of the rows would have led to. It is for policies that
        forget nothing, since statistics do not say which rows are older.

        Parameters
        ----------
        statistics : GramStatistics
            Of the learner's tasks and features, in their order.
        """
        expected = self.n_tasks, self.dim
        if statistics.moment.shape != expected:
            raise ValueError(
                f"`statistics` of absorb must be of {expected[0]} tasks and {expected[1]} features. "
                f"Got {statistics.moment.shape}."
            )
        self._pending.absorb(statistics)
        if self.prompt:
            self._move(statistics)

    def hold(self, moving: bool) -> None:
        """Let rewards, those that wait too, move their tasks at once; or wait for the next update."""
        self.prompt = moving
        if moving:
            self._decide_anew()

    def begin(self) -> Job:
        """Return the update from all rows so far, to be run anywhere; later rows are kept for the next.

        Decisions go on meanwhile, by what is known. Hand what `Job.run` returns to `adopt`.
        """
        self._hand_over()
        return self._episode.begin()

    def adopt(self, result: JobResult, beliefs: Beliefs | None = None) -> None:
        """Decide by what the update under way has led to, and by the rows that came meanwhile.

        Parameters
        ----------
        result : JobResult
            What `Job.run` returned.
        beliefs : Beliefs, optional
            What `policy.beliefs` makes of the result's state, if somebody has worked that out already.
        """
        self._episode.read(self.clock)
        self._episode.adopt(result)
        self._decide_anew(beliefs)

    def _hand_over(self) -> None:
        """Let the episode have all rows that wait."""
        episode = self._episode
        episode.check_idle()
        if episode.pending is not None:
            episode.pending = episode.pending.padded(self.n_tasks)
        if self._pending.waiting:
            episode.absorb(self._pending.take(self.n_tasks), self.clock)

    def _decide_anew(self, beliefs: Beliefs | None = None) -> None:
        """Believe what the policy has learned, and what rows that wait make of it."""
        known = self.policy.beliefs(self.state) if beliefs is None else beliefs
        self._keep(known, self.policy.newcomer(self.state), self.n_tasks)
        if self.prompt and self._pending.waiting:
            self._move(self._pending.summary(self.n_tasks))

    def _move(self, statistics: GramStatistics) -> None:
        """Condition what is believed of all tasks on further rows of their own."""
        moved = self.beliefs.given(statistics)
        for own, part in zip(self._beliefs.parts, moved.parts, strict=True):
            own[: self.n_tasks] = part

    def cancel(self) -> None:
        """Give up the update under way; its rows wait for the next."""
        self._episode.cancel()
        earlier, pending = self._episode.pending, self._pending
        if earlier is not None:  # all rows that wait are in one place, so that a snapshot can go on from them
            self._episode.pending = None
            pending.resume(earlier.padded(pending.room) + pending.summary(pending.room), 0.0, pending.seen)

    def update(self) -> None:
        """Learn what all tasks share from all rows so far, now; if that fails, no row is lost."""
        self._hand_over()
        self._episode.update()
        self._decide_anew()

    def add(self, tasks: int | Sequence[str]) -> IntArray:
        """Add tasks that start from what is known of a task never seen, and return their numbers.

        Parameters
        ----------
        tasks : int or sequence of str
            How many; or their names, where tasks have names.
        """
        n_tasks = self.n_tasks + self._tasks.check_new(tasks)
        if n_tasks > len(self._retired):  # else there are newcomers in the arrays already
            self._keep(self._first(self.n_tasks), self.policy.newcomer(self.state), n_tasks)
        return self._tasks.add(tasks)

    def rename(self, task: int, name: str) -> None:
        """Call a task, given by its number, by another name."""
        self._tasks.rename(task, name)

    def retire(self, tasks: ArrayLike) -> None:
        """Stop deciding for tasks. What they taught stays, and their late rewards still count."""
        self._retired[self._tasks.numbers(tasks)] = True
        self._any_retired = True

    @property
    def retired(self) -> IntArray:
        """The numbers of the tasks that are retired."""
        return np.flatnonzero(self._retired[: self.n_tasks])

    def snapshot(self) -> LearnerState:
        """Return all that the learner is, but for its random numbers, as data; `restore` goes on from it.

        An update under way is not part of it: its rows are pending again.
        """
        n_tasks, episode = self.n_tasks, self._episode
        if episode.unlearned:
            self._pending.summary(n_tasks)
        pending = self._pending.as_they_are(n_tasks)
        for earlier in episode.unlearned:
            pending = earlier.padded(n_tasks) + pending
        return LearnerState(
            self.policy,
            self.state,
            *self.beliefs.parts,
            pending,
            self._pending.elapsed,
            self._pending.seen[:n_tasks].copy(),
            self._retired[:n_tasks].copy(),
            self.names,
            episode.updated_at,
            episode.due_at,
        )

    @classmethod
    def restore(cls, saved: LearnerState, *, seed: int | np.random.Generator | None = None) -> Learner:
        """Return a learner that goes on where another was when `snapshot` was taken, to the last bit.

        Its random numbers are fresh, unless a seed or the other's generator is given.
        """
        if not isinstance(saved, LearnerState):
            raise ValueError(
                f"`saved` of restore must be what `snapshot` returned. Got {type(saved).__name__}; "
                "`posse.load` reads a file."
            )
        policy = deciding(saved.policy)
        n_tasks, dim = saved.theta.shape
        episode = Episode(policy, n_tasks=n_tasks, dim=dim, state=saved.state)
        episode.updated_at, episode.due_at = saved.updated_at, saved.due_at
        pending = PendingRows(policy.statistics, n_tasks, dim)
        pending.resume(saved.pending, saved.elapsed, saved.seen)
        beliefs = Beliefs(saved.theta.copy(), saved.root.copy(), saved.deviation.copy())
        learner = cls.__new__(cls)
        learner._begin_from(episode, policy, TaskNames(n_tasks, saved.names), pending, beliefs, seed)
        learner._retired, learner._any_retired = saved.retired.copy(), bool(saved.retired.any())
        return learner

    def _first(self, n_tasks: int) -> Beliefs:
        """Return what is believed of the first tasks: a view."""
        return Beliefs(*(part[:n_tasks] for part in self._beliefs.parts))

    def _keep(self, known: Beliefs, newcomer: Beliefs, n_tasks: int) -> None:
        """Put the beliefs of the first tasks into arrays with room for n tasks; all others are newcomers."""
        room, held = len(self._retired), len(self._retired)
        if room < n_tasks:
            room = max(LEAST_ROOM, 2 * room, n_tasks)
        arrays = [np.empty((room, *part.shape[1:])) for part in known.parts]
        for array, part, new in zip(arrays, known.parts, newcomer.parts, strict=True):
            array[: len(part)] = part
            array[len(part) :] = new
        if room > held:
            self._pending.grow(room)
            self._retired = np.concatenate([self._retired, np.zeros(room - held, dtype=np.bool_)])
        self._beliefs = Beliefs(*arrays)


def deciding(policy: Policy) -> DecidesRows:
    """Return a policy that can decide for single tasks, or say that it cannot."""
    if not isinstance(policy, DecidesRows) or not keeps_pace(policy, "chances", "select"):
        raise ValueError(
            "a Learner must have a policy that decides for single tasks: a LearningPolicy, one with a name "
            f"such as SharedThompson(), or Random(). Got {policy!r}."
        )
    return policy
