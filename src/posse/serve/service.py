"""The service without HTTP: requests find their space, and the agent of that decides."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from posse.core.extras import extra
from posse.core.model import Model
from posse.live.agent import Agent
from posse.live.ids import check_text
from posse.live.records import Asked, Decision
from posse.live.status import Status
from posse.serve.agents import SpaceAgent
from posse.serve.learned import learned, tasks_of
from posse.serve.spaces import DEFAULT, Space, UnknownError, agent_options, check_space, first_seen
from posse.serve.stores import Store
from posse.serve.summary import summary_of

with extra("serve"):
    import msgspec


class Version(NamedTuple):
    """A version of a space at work.

    Attributes
    ----------
    number : int
    space : Space
    agent : SpaceAgent, optional
        None until the first request fixes what arms look like.
    """

    number: int
    space: Space
    agent: SpaceAgent | None


class Service:
    """Spaces with their agents, from a store.

    Decisions of an earlier version of a space can still be told.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.RLock()
        # The newest version last. It is replaced and never changed: other threads go through it.
        self._spaces: Mapping[str, Sequence[Version]] = {}
        try:
            for number, space in store.spaces():
                agent = store.open(space, number) if space.fixed else None
                self._take(Version(number, space, agent))
        except BaseException:
            self.close()
            raise

    def put(self, space: Space, model: Model | None = None) -> int:
        """Make a space, or change one, and return the number of its version.

        Floors, control groups and the like change in place. Where other features, another policy or other
        rules of rewards are asked for, a new version begins, with an agent of its own.

        Parameters
        ----------
        space : Space
        model : Model, optional
            What its agent begins with.
        """
        check_space(space)
        with self._lock:
            known = self._spaces.get(space.name)
            if known is None:
                return self._begin(space, 1, model)
            newest = known[-1]
            if not space.fixed:  # what arms look like stays as it is
                same = {
                    name: getattr(newest.space, name)
                    for name in ("features", "arms", "context", "vectors", "model")
                }
                space = msgspec.structs.replace(space, **same)
            if space == newest.space:
                return newest.number
            if not space.same_agent(newest.space):
                return self._begin(space, newest.number + 1, model)
            return self._change(newest, space)

    def _change(self, newest: Version, space: Space) -> int:
        """Let the agent of a version go by other settings, while others ask it, and return its number."""
        if isinstance(newest.agent, Agent):
            newest.agent.change(**agent_options(space))
            try:
                self.store.save(space, newest.number)
            except BaseException:
                newest.agent.change(**agent_options(newest.space))
                raise
            self._take(newest._replace(space=space))
        else:
            self._take(self._opened(space, newest.number, None))
        return newest.number

    def _begin(self, space: Space, number: int, model: Model | None) -> int:
        self._take(self._opened(space, number, model))
        return number

    def _take(self, version: Version) -> None:
        """Have a version of a space, in the place of one with its number."""
        name = version.space.name
        elders = [known for known in self._spaces.get(name, ()) if known.number != version.number]
        self._spaces = {**self._spaces, name: (*elders, version)}

    def _opened(self, space: Space, number: int, model: Model | None) -> Version:
        agent = self.store.open(space, number, model) if space.fixed else None
        self.store.save(space, number)
        return Version(number, space, agent)

    def spaces(self) -> dict[str, Version]:
        """Return the newest version of every space, by its name."""
        return {name: versions[-1] for name, versions in self._spaces.items()}

    def versions_of(self, name: str) -> Sequence[Version]:
        """Return all versions of a space, the oldest first."""
        try:
            return self._spaces[name]
        except KeyError:
            raise UnknownError(f"`space` must be one of {sorted(self._spaces)}. Got {name!r:.200}.") from None

    def agent_of(self, name: str) -> SpaceAgent:
        """Return the agent of the newest version of a space."""
        agent = self.versions_of(name)[-1].agent
        if agent is None:
            raise UnknownError(f"space {name!r} must have been asked at least once. Got no request yet.")
        return agent

    def _agent_for(self, name: str, arms: Any, context: Mapping[str, Any] | None) -> SpaceAgent:
        """Return the agent that decides in a space; the first request of all fixes what arms look like."""
        found = self._spaces.get(name)
        if found is not None and found[-1].agent is not None:
            return found[-1].agent
        first = found is None and name == DEFAULT
        known = Space(name=DEFAULT) if first else self.versions_of(name)[-1].space
        self.fix(check_space(first_seen(known, arms, context)))
        return self.agent_of(name)

    def fix(self, space: Space) -> None:
        """Let a space be as its first request fixes it, unless another one was first."""
        with self._lock:
            known = self._spaces.get(space.name)
            if known is None:
                self._begin(space, 1, None)
            elif known[-1].agent is None:
                self._take(self._opened(space, known[-1].number, None))

    def ask(
        self,
        space: str,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None = None,
        id: str | None = None,
        unit: str | None = None,
        shown: bool = True,
    ) -> Decision:
        """Decide for a task of a space; the other arguments are those of `Agent.ask`."""
        agent = self._agent_for(space, arms, context)
        if id is not None:
            known = _found_in(self._spaces[space][:-1], id)  # the newest version looks for itself
            if known is not None:
                return known[1].decision
        self._check_names(space, arms, context)
        return agent.ask(task, arms, context, id, unit=unit, shown=shown)

    def ask_many(
        self,
        space: str,
        tasks: Sequence[str],
        arms: Sequence[Any],
        contexts: Sequence[Mapping[str, Any] | None],
        ids: Sequence[str] | None,
    ) -> list[Decision]:
        """Decide for many rows of one space at once, all or none, as `Agent.ask_many` does."""
        agent = self._agent_for(space, arms[0], contexts[0])
        if ids is None:
            return self._ask_new(agent, space, tasks, arms, contexts, None)
        elders = self._spaces[space][:-1]  # the newest version looks for itself
        known = {id: found[1].decision for id in ids if (found := _found_in(elders, id)) is not None}
        new = [row for row, id in enumerate(ids) if id not in known]
        if new:
            parts: Any = ([given[row] for row in new] for given in (tasks, arms, contexts, ids))
            known |= {decision.id: decision for decision in self._ask_new(agent, space, *parts)}
        return [known[id] for id in ids]

    def _ask_new(
        self,
        agent: SpaceAgent,
        space: str,
        tasks: Sequence[str],
        arms: Sequence[Any],
        contexts: Sequence[Mapping[str, Any] | None],
        ids: Sequence[str] | None,
    ) -> list[Decision]:
        for row, context in zip(arms, contexts, strict=True):
            self._check_names(space, row, context)
        return agent.ask_many(tasks, arms, None if all(c is None for c in contexts) else contexts, ids)

    def _check_names(self, name: str, arms: Any, context: Mapping[str, Any] | None) -> None:
        """Refuse features that the space does not have; those that are missing the agent finds itself."""
        space = self._spaces[name][-1].space
        if not space.features or not isinstance(arms, dict):
            return
        wanted = len(space.features) + len(space.context)
        n_context = 0 if context is None else len(context)
        if set(map(len, arms.values())) == {wanted - n_context}:
            return
        for arm, row in arms.items():
            if isinstance(row, dict) and len(row) + n_context != wanted:
                found = [*row, *(context or {})]
                known = {*space.features, *space.context}
                extra = [one for one in found if one not in known]
                missing = sorted(known.difference(found))
                what = f"{extra!r:.200} beyond these" if extra else f"no {missing!r:.200}"
                raise ValueError(
                    f"arm {arm!r:.200} of space {name!r} must have the features {sorted(known)!r:.500}. "
                    f"Got {what}."
                )

    def find(self, id: str, space: str | None = None) -> tuple[str, SpaceAgent, Asked]:
        """Return the space, the agent and the record of a decision, of any space by default."""
        id = check_text("`id` of a decision", id)
        spaces = self._spaces if space is None else {space: self.versions_of(space)}
        found = [(name, *known) for name, versions in spaces.items() if (known := _found_in(versions, id))]
        if not found:
            where = "" if space is None else f" in space {space!r}"
            raise UnknownError(f"`id` must be that of a decision{where}. Got {id!r:.200}, which is unknown.")
        if len(found) > 1:
            raise ValueError(
                f"`space` must say which decision is meant, as {[name for name, *_ in found]} "
                f"have one of that id. Got {id!r}."
            )
        return found[0]

    def tell(
        self,
        id: str,
        reward: float,
        event: str | None = None,
        at: float | None = None,
        played: int | str | None = None,
        space: str | None = None,
    ) -> None:
        """Tell a reward of a decision; the arguments are those of `Agent.tell`, and its space, if need be."""
        _, agent, _ = self.find(id, space)
        agent.tell(id, reward, event, at, played=played)

    def tell_many(
        self,
        ids: Sequence[str],
        rewards: Sequence[float],
        events: Sequence[str | None],
        ats: Sequence[float | None],
        space: str | None = None,
    ) -> None:
        """Tell many rewards at once: all that belong to one agent, or none of them if one is wrong.

        All ids are looked up before any reward is told.
        """
        groups: dict[SpaceAgent, list[int]] = {}
        for place, id in enumerate(ids):
            _, agent, _ = self.find(id, space)
            groups.setdefault(agent, []).append(place)
        for agent, places in groups.items():
            agent.tell_many(
                [ids[i] for i in places],
                [rewards[i] for i in places],
                [events[i] for i in places],
                [ats[i] for i in places],
            )

    def activate(self, id: str, space: str | None = None) -> None:
        """Say that a decision was shown which was asked for with `shown` false."""
        _, agent, _ = self.find(id, space)
        agent.activate(id)

    def tasks(self, space: str) -> dict[str, Any]:
        """Return the tasks of a space with the rewards that each has learned from."""
        return {"tasks": tasks_of(self.agent_of(space))}

    def task(self, space: str, name: str) -> dict[str, Any]:
        """Return what was learned of a task of a space, and from whom."""
        return learned(self.agent_of(space), name)

    def versions(self, space: str) -> dict[str, Any]:
        """Return all versions of what the tasks of a space share, and which one decides."""
        agent = self.agent_of(space)
        status = agent.status()
        return {"version": status.version, "automatic": status.automatic, "versions": agent.versions()}

    def promote(self, space: str, version: int) -> None:
        """Decide by a version of what the tasks of a space share."""
        self.agent_of(space).promote(version)

    def rollback(self, space: str, version: int) -> None:
        """Decide by an earlier version of what the tasks of a space share, and keep to it."""
        self.agent_of(space).rollback(version)

    def freeze(self, space: str, on: bool) -> None:
        """Let a space stop learning, or go on."""
        self.agent_of(space).freeze(on)

    def summary(self) -> dict[str, Any]:
        """Return totals over all spaces, and `spaces`: how each one's agents are doing."""
        return summary_of(self.statuses())

    def statuses(self) -> dict[tuple[str, int], Status]:
        """Return how all agents are doing, by the names and versions of their spaces, the oldest first."""
        return {key: agent.status() for key, agent in self.agents().items()}

    def agents(self) -> dict[tuple[str, int], SpaceAgent]:
        """Return all agents by the names and versions of their spaces, the oldest first."""
        return {
            (name, version.number): version.agent
            for name, versions in self._spaces.items()
            for version in versions
            if version.agent is not None
        }

    def away(self) -> bool:
        """Return whether the store is a database that is away; raise if it is a file that cannot be used."""
        self.store.tokens()
        return False

    def queued(self) -> int:
        """Return how many decisions this process keeps until its database is back."""
        return 0

    def close(self) -> None:
        """Save the state of all agents, and give up the store."""
        with self._lock:
            agents, self._spaces = self.agents(), {}
            try:
                for agent in agents.values():
                    agent.close()
            finally:
                self.store.close()


def _found_in(versions: Sequence[Version], id: str) -> tuple[SpaceAgent, Asked] | None:
    """Return a decision of some versions of a space, and the agent that made it; newer ones come first."""
    for version in reversed(versions):
        asked = None if version.agent is None else version.agent.find(id)
        if asked is not None and version.agent is not None:
            return version.agent, asked
    return None
