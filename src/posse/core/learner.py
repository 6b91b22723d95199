"""Rows over an episode: decisions for a few tasks at a time, and rewards that count at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from posse.core.episode import Episode, Job
from posse.core.posterior import Beliefs
from posse.core.protocols import DecidesRows, Policy
from posse.core.rows import PendingRows, draw_arms, find_unknown
from posse.numerics.checks import Array, BoolArray, IntArray, check_integer, make_generator

# Arrays have room for this many tasks at least.
LEAST_ROOM = 16
ALL_ON_OFFER = np.zeros((0, 0), dtype=np.bool_)


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


@dataclass(frozen=True, eq=False)
class LearnerState:
    """All that a `Learner` is, but for its random numbers: what is saved, and what it goes on from.

    Attributes
    ----------
    policy : Policy
    state : object
        What the policy learned at its last update.
    theta, root, deviation : (T, d), (T, d, d), (T,)
        What is believed of every task now; see `Beliefs`.
    pending : Summary
        Rows that the policy has not learned from yet.
    elapsed : float
        Rounds of the clock by which these have yet to fade.
    seen : (T,)
        Rows of each task so far.
    retired : (T,)
        Tasks that are not served any more.
    names : tuple of str, optional
        The tasks' names.
    due_at : float
        The reading of the clock at which the next update is due.
    """

    policy: Policy
    state: Any
    theta: Array
    root: Array
    deviation: Array
    pending: Any
    elapsed: float
    seen: Array
    retired: BoolArray
    names: tuple[str, ...] | None
    due_at: float


class Learner:
    """A policy that decides for any of its tasks, one or many at a time, and learns from single rewards.

    Two speeds: a reward moves the posterior of its own task at once, at a cost that does not depend on the
    number of tasks, unless the policy says `prompt=False`. What tasks share is learned anew by `update`,
    when that is `due`, here or elsewhere (`begin`, `adopt`). The clock is rows / tasks seen.

    It is for policies whose estimates have a posterior for each task, and for `Random`.

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
        decides = _deciding(policy)
        episode = Episode(policy, n_tasks=n_tasks, dim=dim)
        pending = PendingRows(policy.statistics, n_tasks, dim)
        self._begin_from(episode, decides, pending, decides.beliefs(episode.state), seed)
        if names is not None:
            if isinstance(names, str) or len(names) != n_tasks:
                raise ValueError(
                    f"`names` of Learner must be one for each of {n_tasks} tasks. Got {names!r}."
                )
            self._name(names)

    def _begin_from(
        self,
        episode: Episode,
        policy: DecidesRows,
        pending: PendingRows,
        beliefs: Beliefs,
        seed: int | np.random.Generator | None,
    ) -> None:
        self.policy, self.n_tasks, self.dim = policy, len(beliefs.theta), beliefs.theta.shape[1]
        self.prompt = policy.prompt is not False
        self._episode, self._pending, self._beliefs = episode, pending, beliefs
        self._retired = np.zeros(self.n_tasks, dtype=np.bool_)
        self._numbers: dict[str, int] | None = None
        self._rng = np.random.default_rng() if seed is None else make_generator("`seed` of Learner", seed)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The tasks' names, in order; None if they have none."""
        return None if self._numbers is None else tuple(self._numbers)

    @property
    def state(self) -> Any:
        """What the policy learned at its last update."""
        return self._episode.state

    @property
    def clock(self) -> float:
        """Rows for each task that has been seen."""
        return self._pending.n_rows / max(1, self._pending.n_seen)

    @property
    def due(self) -> bool:
        """Whether it is time to `update`, and no update is under way."""
        self._episode.clock = self.clock
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
        index = self._index(tasks)
        offered = np.ascontiguousarray(arms, dtype=np.float64)
        if offered.ndim != 3 or len(offered) != len(index) or offered.shape[2] != self.dim:
            raise ValueError(
                f"`arms` must have shape (m={len(index)}, K, d={self.dim}). Got {offered.shape}."
            )
        mask = ALL_ON_OFFER if available is None else np.ascontiguousarray(available, dtype=np.bool_)
        if available is not None and mask.shape != offered.shape[:2]:
            raise ValueError(f"`available` must have shape {offered.shape[:2]}. Got {mask.shape}.")
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
        index = self._index(tasks)
        x = np.ascontiguousarray(features, dtype=np.float64)
        y = np.ascontiguousarray(rewards, dtype=np.float64)
        w = np.ones(len(index)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        n_rows = len(index)
        if x.shape != (n_rows, self.dim) or y.shape != (n_rows,) or w.shape != (n_rows,):
            raise ValueError(
                f"rows of {n_rows} tasks must have features ({n_rows}, {self.dim}), rewards and weights "
                f"({n_rows},). Got {x.shape}, {y.shape} and {w.shape}."
            )
        self._pending.add(index, x, y, w, self._beliefs if self.prompt else None)

    def begin(self) -> Job:
        """Return the update from all rows so far, to be run anywhere; later rows are kept for the next.

        Decisions go on meanwhile, by what is known. Hand what `Job.run` returns to `adopt`.
        """
        episode = self._episode
        episode.check_idle()
        if episode.pending is not None:
            episode.pending = episode.pending.padded(self.n_tasks)
        if self._pending.waiting:
            episode.absorb(self._pending.take(self.n_tasks), self.clock)
        return episode.begin()

    def adopt(self, state: Any) -> None:
        """Decide by the state that the update under way has led to, and by the rows that came meanwhile."""
        self._episode.clock = self.clock
        self._episode.adopt(state)
        found = self.policy.beliefs(state)
        self._keep(found, self.policy.newcomer(state))
        if self.prompt and self._pending.waiting:
            moved = self.beliefs.given(self._pending.summary(self.n_tasks))
            for own, part in zip(self._beliefs.parts, moved.parts, strict=True):
                own[: self.n_tasks] = part

    def cancel(self) -> None:
        """Give up the update under way; its rows wait for the next."""
        self._episode.cancel()

    def update(self) -> None:
        """Learn what all tasks share from all rows so far, now."""
        self.adopt(self.begin().run())

    def add(self, tasks: int | Sequence[str]) -> IntArray:
        """Add tasks that start from what is known of a task never seen, and return their numbers.

        Parameters
        ----------
        tasks : int or sequence of str
            How many; or their names, where tasks have names.
        """
        named = not isinstance(tasks, (int, np.integer))
        if named != (self._numbers is not None) or isinstance(tasks, str):
            kind = "numbers: how many" if self._numbers is None else "a list of names"
            raise ValueError(f"tasks to add must be given as the others, by {kind}. Got {tasks!r}.")
        first = self.n_tasks
        if isinstance(tasks, Sequence):
            self._name(tasks)
            self.n_tasks += len(tasks)
        else:
            self.n_tasks += check_integer("`tasks` of add", tasks, 1)
        if self.n_tasks > len(self._retired):  # else there are newcomers in the arrays already
            self._keep(self._first(first), self.policy.newcomer(self.state))
        return np.arange(first, self.n_tasks)

    def retire(self, tasks: ArrayLike) -> None:
        """Stop serving tasks. What they taught stays in what tasks share."""
        self._retired[self._index(tasks)] = True

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
            episode.due_at,
        )

    @classmethod
    def restore(cls, saved: LearnerState, *, seed: int | np.random.Generator | None = None) -> Learner:
        """Return a learner that goes on where another was when `snapshot` was taken, to the last bit.

        Its random numbers are fresh, unless a seed or the other's generator is given.
        """
        policy = _deciding(saved.policy)
        n_tasks, dim = saved.theta.shape
        episode = Episode(policy, n_tasks=n_tasks, dim=dim, state=saved.state)
        episode.due_at = saved.due_at
        pending = PendingRows(policy.statistics, n_tasks, dim)
        pending.resume(saved.pending, saved.elapsed, saved.seen)
        beliefs = Beliefs(saved.theta.copy(), saved.root.copy(), saved.deviation.copy())
        learner = cls.__new__(cls)
        learner._begin_from(episode, policy, pending, beliefs, seed)
        learner._retired = saved.retired.copy()
        if saved.names is not None:
            learner._name(saved.names)
        return learner

    def _first(self, n_tasks: int) -> Beliefs:
        """Return what is believed of the first tasks: a view."""
        return Beliefs(*(part[:n_tasks] for part in self._beliefs.parts))

    def _keep(self, known: Beliefs, newcomer: Beliefs) -> None:
        """Put the beliefs of the first tasks into arrays with room to grow; all others are newcomers."""
        room = len(self._retired)
        if room < self.n_tasks:
            room = max(LEAST_ROOM, 2 * room, self.n_tasks)
            self._retired = np.concatenate(
                [self._retired, np.zeros(room - len(self._retired), dtype=np.bool_)]
            )
            self._pending.grow(room)
        arrays = [np.empty((room, *part.shape[1:])) for part in known.parts]
        for array, part, new in zip(arrays, known.parts, newcomer.parts, strict=True):
            array[: len(part)] = part
            array[len(part) :] = new
        self._beliefs = Beliefs(*arrays)

    def _name(self, names: Sequence[str]) -> None:
        """Give names to as many tasks, after those that have one."""
        known = self._numbers or {}
        new = {name: len(known) + place for place, name in enumerate(names)}
        if (
            not new
            or len(new) < len(names)
            or new.keys() & known
            or not all(isinstance(n, str) for n in names)
        ):
            raise ValueError(
                f"names of tasks must be strings, each of one task alone. Got {list(names)[:10]!r}."
            )
        if self._numbers is None:
            self._numbers = {}
        self._numbers.update(new)

    def _index(self, tasks: ArrayLike) -> IntArray:
        """Return the numbers of tasks, given by number or by name, if they are served."""
        index = np.asarray(tasks)
        if index.dtype.kind in "UO" and self._numbers is not None:
            index = _numbers_of(index, self._numbers)
        if index.ndim != 1 or index.dtype.kind not in "iu" or not index.size:
            kind = "numbers" if self._numbers is None else "names or numbers"
            raise ValueError(f"`tasks` must be a list of {kind} of tasks. Got {tasks!r}.")
        if index.dtype != np.intp:
            index = index.astype(np.intp)
        wrong = find_unknown(index, self._retired, self.n_tasks)
        if wrong >= 0:
            task = int(index[wrong])
            what = "a retired task" if 0 <= task < self.n_tasks else "task"
            raise ValueError(
                f"tasks must be served: numbers from 0 to {self.n_tasks - 1}, not retired. Got {what} {task}."
            )
        return index


def _numbers_of(names: Any, numbers: Mapping[str, int]) -> IntArray:
    """Return the numbers of named tasks, in the shape of `names`."""
    unknown = [name for name in names.ravel().tolist() if name not in numbers]
    if unknown:
        raise ValueError(f"a task must be known, or be added first. Got {unknown[0]!r}.")
    return np.array([numbers[name] for name in names.ravel().tolist()], dtype=np.intp).reshape(names.shape)


def _deciding(policy: Policy) -> DecidesRows:
    """Return a policy that can decide for single tasks, or say that it cannot."""
    if isinstance(policy, type) or not isinstance(policy, DecidesRows):
        raise ValueError(
            "a Learner must have a policy that decides for single tasks: a LearningPolicy, one with a name "
            f"such as SharedThompson(), or Random(). Got {policy!r}."
        )
    return policy
