"""What an operator does with a running agent: looks at it, turns it, frees it of what is old."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from posse.core.learner import Learner
from posse.core.posterior import Beliefs
from posse.live import events as happened
from posse.live.desk import LATEST, Desk
from posse.live.engine import Version
from posse.live.files import archive, forget_in_model, in_model
from posse.live.ids import check_text
from posse.live.records import Asked
from posse.live.status import Status, status_of, versions_of
from posse.numerics.checks import check_number


class Controls:
    """The part of an `Agent` that neither asks nor tells."""

    _desk: Desk

    def _begin_at(self, desk: Desk) -> None:
        self._desk, self._engine, self._lock = desk, desk.engine, desk.lock

    def __repr__(self) -> str:
        engine = self._engine
        return f"<Agent of {len(engine.numbers)} tasks, {engine.counts['decisions']} decisions>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def forbid(self, task: str, arms: Sequence[str | int]) -> None:
        """Never play these arms for a task, given by names or rows; they replace those forbidden before."""
        check_text("`task` of forbid", task)
        if isinstance(arms, str):
            raise ValueError(f"`arms` of forbid must be a list of names or rows. Got {arms!r}.")
        names = tuple(check_text("an arm to forbid", str(arm)) for arm in arms)
        with self._lock:
            self._desk.record(happened.Forbade(self._desk.now(), task, names))
            self._desk.publish()
        self._desk.acknowledge()

    def erase(self, task: str) -> None:
        """Forget a task: its decisions, its rewards, its name, and what was learned of it alone.

        What all tasks share forgets it at the next refit. Earlier versions are forgotten with it. Files that
        were exported or archived are the caller's.
        """
        desk, engine = self._desk, self._engine
        journal = desk.journal
        with self._lock:
            number, learner = engine.numbers.get(task), engine.learner
            # what has no number may be what a process has left that was killed in the middle of this
            if learner is None or not (number is not None or journal.knows(task) or in_model(journal, task)):
                raise ValueError(f"`task` of erase must be one that was seen. Got {task!r}.")
            desk.give_up_refit()
            if number is not None:
                desk.record(happened.Erased(desk.now(), number))
            for version in engine.versions:
                journal.drop_version(version)
            journal.save_version(engine.live, learner.state)
            desk.acknowledge()
            desk.snapshot_alone()
            journal.erase(task, -1 if number is None else number)
            forget_in_model(journal, task)
        desk.acknowledge()

    def learn(self, most: int = 1000) -> int:
        """Learn from what other processes asked and told, up to so many events; return how many there were.

        For a journal in PostgreSQL: the process that learns calls it in a loop. What it has learned is
        published to those that ask by every snapshot, and by `publish`.
        """
        with self._lock:
            return self._desk.learn(most)

    def publish(self) -> None:
        """Save the state now, unless a refit is under way: with PostgreSQL, those that ask decide by it."""
        with self._lock:
            self._desk.snapshot(wait=True)

    def refit(self) -> None:
        """Learn anew what all tasks share, now, whether or not it is time for that."""
        with self._lock:
            if self._engine.job is None:
                self._desk.refit()

    def find(self, id: str) -> Asked | None:
        """Return the record of a decision with its rewards so far; None if the id is unknown."""
        with self._lock:
            return self._desk.known(id)

    def features(self) -> tuple[str, ...] | None:
        """Return the names of the features, in the order of parameters; None where they have no names."""
        encoder = self._desk.settings.encoder
        return None if encoder is None else encoder.features

    def tasks(self) -> dict[str, int]:
        """Return the names of all tasks that were seen, with the rewards that each has learned from."""
        with self._lock:
            return rows_by_name(self._engine.learner, self._engine.numbers)

    def beliefs(self) -> dict[str, Beliefs]:
        """Return what is believed of every task by name, and under "" what of a task that was never seen."""
        with self._lock:
            return beliefs_by_name(self._engine.learner, self._engine.numbers)

    def versions(self) -> tuple[Version, ...]:
        """Return all versions of what tasks share, the oldest first."""
        with self._lock:
            return versions_of(self._desk)

    def promote(self, version: int) -> None:
        """Decide by a version from now on; refits are adopted as `publish` says.

        Rewards that it was not learned from count for their own tasks, as always.
        """
        self._turn(version, self._desk.settings.publish == "auto")

    def rollback(self, version: int) -> None:
        """Decide by an earlier version, and keep to it until another one is promoted."""
        self._turn(version, False)

    def _turn(self, version: int, automatic: bool) -> None:
        desk = self._desk
        with self._lock:
            known = {item.number for item in versions_of(desk)}
            if version not in known or desk.journal.load_version(version) is None:
                kept = [number for number in sorted(known) if desk.journal.load_version(number) is not None]
                raise ValueError(f"a version must be one that is kept, of {kept}. Got {version!r}.")
            if not desk.settings.amends:
                raise ValueError(
                    "a policy must remember all rewards to go back to a version. "
                    f"Got {desk.settings.policy!r}."
                )
            desk.give_up_refit()
            desk.record(happened.Turned(desk.now(), version, automatic))
            desk.publish()
        desk.acknowledge()

    def freeze(self, on: bool = True) -> None:
        """Stop learning: decisions go on, rewards are kept. `freeze(False)` learns from them and goes on."""
        desk = self._desk
        with self._lock:
            if self._engine.frozen != on:
                desk.give_up_refit()
                desk.record(happened.Frozen(desk.now(), bool(on)))
                desk.publish()
        desk.acknowledge()

    def status(self) -> Status:
        """Return how the agent is doing, after letting all decisions expire that should have."""
        desk = self._desk
        with self._lock:
            now = desk.now()
            while not desk.broken and self._engine.queue and self._engine.queue[0][0] < now:
                desk.expire(now)
            return status_of(desk)

    def archive(self, path: str | os.PathLike[str], before: float) -> int:
        """Move decisions made before a time, and their rewards, to a Parquet file; return how many.

        Only those that wait for nothing any more. Rewards told for them later are those of unknown ids. Other
        calls wait meanwhile, some 50 seconds for a million decisions: move few at a time.

        Parameters
        ----------
        path : path
            Of the new file.
        before : float
            Seconds since 1970.
        """
        check_number("`before` of archive", before, -LATEST, LATEST)
        with self._lock:
            return archive(self._desk, path, before)

    def close(self) -> None:
        """Save the state and give up the file; the agent cannot be used any more, but for its status."""
        desk = self._desk
        desk.fitter.close()
        with self._lock:
            if desk.broken:
                desk.journal.close()
                return
            try:
                desk.snapshot(wait=True)
            finally:
                desk.journal.close()
                desk.broken = "the agent must be open. Got one that was closed."


def rows_by_name(learner: Learner | None, numbers: Mapping[str, int]) -> dict[str, int]:
    """Return tasks by name, with the rewards that each has learned from."""
    return {} if learner is None else {name: int(learner.rows[number]) for name, number in numbers.items()}


def beliefs_by_name(learner: Learner | None, numbers: Mapping[str, int]) -> dict[str, Beliefs]:
    """Return what is believed of tasks by name, and under "" what of a task that was never seen."""
    if learner is None:
        return {}
    every, new = learner.beliefs, learner.policy.newcomer(learner.state)
    found = {
        name: Beliefs(*(part[number : number + 1] for part in every.parts))
        for name, number in numbers.items()
    }
    return {**found, "": new}
