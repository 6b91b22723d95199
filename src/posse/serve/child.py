"""A process of a service on PostgreSQL: one that answers requests, or one that learns.

It is started as `python -m posse.serve.child KIND`, reads what it is in a line of JSON, and ends when its
input does, so that it does not outlive the process that has started it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Literal, TypeVar

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.serve.app import make_app
from posse.serve.asking import AskingService, AskingStore, Listener
from posse.serve.gate import Limits
from posse.serve.history import STEP, History
from posse.serve.learning import learn
from posse.serve.metrics import Meter
from posse.serve.run import serve, warm_up

with extra("serve"):
    import msgspec

READY = "ready"
Made = TypeVar("Made")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do.

    Attributes
    ----------
    kind : "asks" or "learns"
    address : str
        Of the database.
    durability : "process" or "power"
    listening, counts : int
        The numbers of the socket's file, and of that which a `Meter` counts in, of a process that asks.
    place : int
        Of the process, among those that count.
    hosts : tuple of str
        Names by which the service may be called.
    open_to_all : bool
    limits : Limits
    """

    kind: Literal["asks", "learns"]
    address: str
    durability: str
    listening: int
    counts: int = -1
    place: int = 0
    hosts: tuple[str, ...]
    open_to_all: bool
    limits: Limits


def be(part: Part) -> None:
    """Answer requests, or learn, until a signal comes."""
    if part.kind == "learns":
        stop = threading.Event()
        for kind in (signal.SIGINT, signal.SIGTERM):
            signal.signal(kind, lambda *_: stop.set())
        warm_up()
        learn(part.address, part.durability, stop)
        return
    store = waited_for(lambda: AskingStore(part.address, part.durability))
    with closing(waited_for(lambda: AskingService(store))) as service:
        history, meter = History(), Meter.of_file(part.counts, part.place)
        for at, _, spaces in store.traffic():
            history.note(spaces, at)
        app = make_app(
            service,
            open_to_all=part.open_to_all,
            hosts=frozenset(part.hosts),
            limits=part.limits,
            threaded=True,
            history=history,
            meter=meter,
        )
        warm_up()

        def beat() -> None:
            meter.queued(service.queued())
            history.note(service.summary()["spaces"])

        with closing(Listener(service)):
            serve(
                app,
                socket.socket(fileno=part.listening),
                lambda: print(READY, flush=True),
                beat,
                STEP,
            )


def waited_for(make: Callable[[], Made]) -> Made:
    """Return what can be made once the database is there."""
    said = ""
    while True:
        try:
            return make()
        except PosseError as error:
            if str(error) != said:
                said = str(error)
                print(f"A process that asks waits: {said}", file=sys.stderr, flush=True)
            time.sleep(1.0)


def end_with_input() -> None:
    """Ask this process to end when its input does."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.readline(), type=Part)
    threading.Thread(target=end_with_input, daemon=True).start()
    be(given)
