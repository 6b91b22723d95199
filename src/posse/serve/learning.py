"""The one process of a service that learns: what others have asked and told, and what they ask it to do."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.live.agent import Agent
from posse.live.journal import JournalError
from posse.serve.database import Account, DatabaseStore, Order
from posse.serve.history import NOTED, WINDOWS
from posse.serve.service import Service
from posse.serve.spaces import Space

with extra("serve"):
    import msgspec

# So many events of an agent are taken at once, before others have their turn.
AT_ONCE = 500
# Seconds without work after which it is looked for again, and between two accounts of all agents.
IDLE, ACCOUNTS = 0.05, 1.0
# What was learned is published so many times as seldom as publishing takes, but for once in so many seconds.
SHARE, OFTEN = 20.0, 1.0
# What the process can be asked to do, by name.
DOES: Mapping[str, Callable[[Service, Any, Any], Any]] = {
    "put": lambda service, data, model: service.put(msgspec.convert(data, Space), model),
    "fix": lambda service, data, model: service.fix(msgspec.convert(data, Space)),
    "promote": lambda service, data, model: service.promote(data["space"], data["version"]),
    "rollback": lambda service, data, model: service.rollback(data["space"], data["version"]),
    "freeze": lambda service, data, model: service.freeze(data["space"], data["on"]),
}


class Publisher:
    """Publishes what an agent has learned, as often as it takes little of the time."""

    def __init__(self) -> None:
        self._at, self._news = -OFTEN, False

    def publish(self, agent: Agent, news: bool) -> None:
        """Publish if there are news, and the last time is long enough ago."""
        self._news = self._news or news
        begun = time.monotonic()
        if self._news and begun >= self._at:
            agent.publish()
            now = time.monotonic()
            self._at, self._news = now + max(OFTEN, SHARE * (now - begun)), False


class Learning:
    """A service that learns from what other processes ask and tell, until it is to stop.

    Parameters
    ----------
    store : DatabaseStore
    """

    def __init__(self, store: DatabaseStore) -> None:
        self._store, self._service = store, Service(store)
        self._publishers: WeakKeyDictionary[Agent, Publisher] = WeakKeyDictionary()
        self._noted = {window.step: -window.step for window in WINDOWS}

    def work(self, stop: threading.Event) -> None:
        """Learn, and do what others ask for."""
        accounts_at = -ACCOUNTS
        while not stop.is_set():
            busy = self._carry_out() + self._learn()
            if time.monotonic() - accounts_at >= ACCOUNTS:
                self._store.read_clock()
                self._give_accounts()
                accounts_at = time.monotonic()
            if not busy:
                stop.wait(IDLE)

    def _learn(self) -> int:
        taken = 0
        for agent in self._service.agents().values():
            assert isinstance(agent, Agent)
            found = agent.learn(AT_ONCE)
            self._publishers.setdefault(agent, Publisher()).publish(agent, found > 0)
            taken += found
        return taken

    def _carry_out(self) -> int:
        orders = self._store.orders()
        for order in orders:
            answer = self._done(order)
            self._give_accounts()
            self._store.answer(order.number, answer)
        return len(orders)

    def _done(self, order: Order) -> Any:
        """Return what an order leads to, or the error that it raises."""
        try:
            return DOES[order.kind](self._service, order.data, order.model)
        except JournalError:
            raise
        except Exception as error:  # whatever a policy may raise: who has asked is told, and others go on
            return error

    def _give_accounts(self) -> None:
        """Say how all agents are doing, and how they did over time."""
        statuses = self._service.statuses()
        for key, agent in self._service.agents().items():
            self._store.save_account(*key, Account(statuses[key], agent.versions()))
        spaces = self._service.summary()["spaces"]
        now = self._store.clock()
        due = [window for window in WINDOWS if now - self._noted[window.step] >= window.step]
        if due and spaces:
            window = due[-1]
            for one in due:
                self._noted[one.step] = now
            totals = {name: {key: space[key] for key in NOTED} for name, space in spaces.items()}
            oldest = {one.step: now - one.step * one.rows for one in WINDOWS}
            self._store.note_traffic(now, window.step, totals, oldest)

    def close(self) -> None:
        """Save what was learned, as far as the database is there."""
        with suppress(PosseError):
            self._service.close()


def learn(address: str, durability: str, stop: threading.Event) -> None:
    """Learn whenever no other process does, until this one is to stop.

    A database that is lost is waited for; what was learned is then read from it anew.
    """
    said = ""
    while not stop.is_set():
        try:
            _learn_once(address, durability, stop)
            said = ""
        except JournalError as error:
            if str(error) != said:
                said = str(error)
                print(f"The process that learns waits: {said}", file=sys.stderr, flush=True)
            stop.wait(1.0)


def _learn_once(address: str, durability: str, stop: threading.Event) -> None:
    store = DatabaseStore(address, durability)
    try:
        with store.elected(stop) as mine:
            if mine:
                learning = Learning(store)
                try:
                    learning.work(stop)
                finally:
                    learning.close()
    finally:
        store.close()
