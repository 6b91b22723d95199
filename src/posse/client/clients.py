"""Clients of a service, one that waits and one that lets others go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from posse.client.talk import Answer, Arms, Heard, Talk, Talker
from posse.core.extras import extra

with extra("serve"):
    import httpx


class Client(Talker):
    """Asks a service for decisions, and tells it rewards.

    Every request has an id that is made here. A try that got no answer is repeated with that id, so that it
    is decided once and counted once, however often it arrives.

    Parameters
    ----------
    url : str
        Of the service, such as "http://127.0.0.1:8000".
    token : str, optional
        With the roles ask and tell.
    timeout : float
        Seconds that one try may wait for a connection, and for an answer.
    retries : int
        Tries after the first, with pauses that grow, drawn at random.
    default : str or int, optional
        The arm to fall back to if the service cannot be reached; `Answer.fallback` says so. Without one, or
        where it is not on offer, that is an `UnavailableError`.
    space : str
        Where decisions are asked for.
    """

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._http = httpx.Client(**self._settings)

    def _run(self, talk: Talk) -> Any:
        found: Heard = None
        while True:
            try:
                step = talk.send(found)
            except StopIteration as done:
                return done.value
            try:
                if isinstance(step, float):
                    time.sleep(step)
                    found = None
                else:
                    found = self._http.post(step.path, content=step.content)
            except httpx.TransportError as error:
                found = error

    def ask(
        self,
        task: str,
        arms: Arms,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        unit: str | None = None,
        shown: bool | None = None,
    ) -> Answer:
        """Ask for a decision; the arguments are those of `Agent.ask`, arms as JSON can write them."""
        found: list[Answer] = self._run(self._ask(id, task, arms, context, unit, shown))
        return found[0]

    def ask_many(self, rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Ask for many decisions at once, all or none.

        Parameters
        ----------
        rows : sequence of mappings
            With `task`, `arms` and, if need be, `context` and `id`.
        """
        found: list[Answer] = self._run(self._ask_many(rows))
        return found

    def tell(
        self,
        id: str | None,
        reward: float,
        event: str | None = None,
        *,
        at: float | None = None,
        played: str | int | None = None,
    ) -> bool:
        """Tell a reward of a decision, and return whether it was told: that of a fallback belongs to none.

        Parameters
        ----------
        id : str, optional
            `Answer.id`.
        reward : float
        event : str, optional
            Which of several rewards of the decision this is.
        at : float, optional
            When it came about, in seconds since 1970; when it arrives by default.
        played : str or int, optional
            In shadow mode: the arm that was played.
        """
        return bool(self._run(self._tell(id, reward, event, at, played)))

    def tell_many(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Tell many rewards at once, and return how many were told: those of fallbacks are left out.

        Parameters
        ----------
        rows : sequence of mappings
            With `id`, `reward` and, if need be, `event` and `at`.
        """
        return int(self._run(self._tell_many(rows)))

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Talker):
    """Asks a service for decisions, and tells it rewards, from a program that does other things meanwhile.

    Every request has an id that is made here. A try that got no answer is repeated with that id, so that it
    is decided once and counted once, however often it arrives.

    Parameters
    ----------
    url, token, timeout, retries, default, space
        As of `Client`.
    """

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._http = httpx.AsyncClient(**self._settings)

    async def _run(self, talk: Talk) -> Any:
        found: Heard = None
        while True:
            try:
                step = talk.send(found)
            except StopIteration as done:
                return done.value
            try:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    found = None
                else:
                    found = await self._http.post(step.path, content=step.content)
            except httpx.TransportError as error:
                found = error

    async def ask(
        self,
        task: str,
        arms: Arms,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        unit: str | None = None,
        shown: bool | None = None,
    ) -> Answer:
        """Ask for a decision; the arguments are those of `Agent.ask`, arms as JSON can write them."""
        found: list[Answer] = await self._run(self._ask(id, task, arms, context, unit, shown))
        return found[0]

    async def ask_many(self, rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Ask for many decisions at once, all or none; rows are those of `Client.ask_many`."""
        found: list[Answer] = await self._run(self._ask_many(rows))
        return found

    async def tell(
        self,
        id: str | None,
        reward: float,
        event: str | None = None,
        *,
        at: float | None = None,
        played: str | int | None = None,
    ) -> bool:
        """Tell a reward of a decision, and return whether it was told; the arguments are `Client.tell`'s."""
        return bool(await self._run(self._tell(id, reward, event, at, played)))

    async def tell_many(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Tell many rewards at once, and return how many were told; rows are those of `Client.tell_many`."""
        return int(await self._run(self._tell_many(rows)))

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
