"""The service of a process that asks: it has the spaces of a database, and another process learns."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.core.model import Model
from posse.live.database import STATES, connect
from posse.live.journal import JournalError
from posse.serve.agents import SpaceAgent
from posse.serve.database import SPACES, DatabaseStore, schema_of
from posse.serve.remote import Remote
from posse.serve.roles import Token
from posse.serve.service import Service, Version
from posse.serve.spaces import Space, check_space

with extra("postgres"):
    import psycopg

# Seconds after which tokens are read anew, and after which all is, whether or not anything was said.
TOKENS_FOR, ALL_FOR = 1.0, 5.0


class AskingStore(DatabaseStore):
    """The store of a process that asks. Tokens are those that were read last, by `read_tokens`.

    So nobody waits for a database that is away to be known.

    Attributes
    ----------
    away : bool
        Whether the database could not be reached when a `Listener` needed it last.
    """

    def __init__(self, address: str, durability: str = "process") -> None:
        super().__init__(address, durability)
        self._tokens, self.away = super().tokens(), False

    def read_tokens(self) -> None:
        """Read all tokens anew."""
        self._tokens, self.away = super().tokens(), False

    def tokens(self) -> list[Token]:
        """Return all tokens, as they were read last."""
        return self._tokens

    def open(self, space: Space, version: int, model: Model | None = None) -> SpaceAgent:
        """Return what decides for a version of a space that a process which learns has opened."""

        def order(kind: str, **what: Any) -> None:
            self.order(kind, {"space": space.name, **what})

        return Remote(
            self.journal(space.name, version),
            partial(self.account, space.name, version),
            order,
            self._durability,
            self.clock,
        )


class AskingService(Service):
    """The service of a process that asks.

    Parameters
    ----------
    store : AskingStore
    """

    store: AskingStore

    def put(self, space: Space, model: Model | None = None) -> int:
        """Let the process that learns make a space, or change one; return the number of its version."""
        number = int(self.store.order("put", check_space(space), model))
        self.reload()
        return number

    def fix(self, space: Space) -> None:
        """Let a space be as its first request fixes it, unless another one was first."""
        self.store.order("fix", space)
        self.reload()

    def reload(self) -> None:
        """Have the spaces that the database has; agents that are known stay."""
        with self._lock:
            known = self.agents()
            found: dict[str, list[Version]] = {}
            for number, space in self.store.spaces():
                agent = known.get((space.name, number))
                if agent is None and space.fixed:
                    agent = self.store.open(space, number)
                found.setdefault(space.name, []).append(Version(number, space, agent))
            self._spaces = found

    def away(self) -> bool:
        """Return whether the database is away; raise if decisions cannot go on without it."""
        if any(remote.full for remote in self.remotes().values()):
            raise JournalError(
                "the database must be reached to decide. Got it away, and no room in the queue."
            )
        return self.store.away

    def queued(self) -> int:
        """Return how many decisions this process keeps until its database is back."""
        return sum(remote.queued for remote in self.remotes().values())

    def remotes(self) -> dict[str, Remote]:
        """Return all agents by their schemas."""
        found = {schema_of(*key): agent for key, agent in self.agents().items()}
        return {schema: agent for schema, agent in found.items() if isinstance(agent, Remote)}


class Listener:
    """A thread that hears of new states and spaces, and brings them to a service while that answers.

    A database that is away is looked for every second.

    Parameters
    ----------
    service : AskingService
    """

    def __init__(self, service: AskingService) -> None:
        self._service, self._stop = service, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(PosseError, psycopg.Error), connect(self._service.store.address) as db:
                for channel in (STATES, SPACES):
                    db.execute(f"LISTEN {channel}")
                self._listen(db)
            self._service.store.away = not self._stop.is_set()
            self._stop.wait(1.0)

    def _listen(self, db: psycopg.Connection[Any]) -> None:
        service, all_at = self._service, -ALL_FOR
        while not self._stop.is_set():
            if time.monotonic() - all_at >= ALL_FOR:
                service.store.read_clock()
                self._hear(db, SPACES, "")
                all_at = time.monotonic()
            service.store.read_tokens()
            # all of them first: the connection is not free while it is asked for more
            said = {(one.channel, one.payload) for one in db.notifies(timeout=TOKENS_FOR, stop_after=1)}
            for channel, schema in sorted(said):
                self._hear(db, channel, schema)

    def _hear(self, db: psycopg.Connection[Any], channel: str, schema: str) -> None:
        """Take in what was said: that there is a new state in a schema, or that spaces have changed."""
        if channel == SPACES:
            self._service.reload()
        remotes = self._service.remotes()
        for one in remotes if channel == SPACES else {schema} & set(remotes):
            db.execute("SELECT set_config('search_path', %s, false)", (one,))
            remotes[one].refresh(db)

    def close(self) -> None:
        """Stop, and wait until that is done."""
        self._stop.set()
        self._thread.join()
