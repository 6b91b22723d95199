"""The process of a service: its socket, its signals, and connections that say nothing."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any

import numpy as np

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.live.agent import Agent
from posse.serve.gate import App

with extra("serve"):
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Seconds in which the head of a request must have come, and in which the last ones are finished.
HEAD_SECONDS, LAST_SECONDS = 10.0, 10
# Bytes that it may have.
MOST_HEAD = 65_536


class PatientProtocol(HttpToolsProtocol):
    """Connections whose next request has to have a small head, which comes within some seconds."""

    _timer: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Read on, unless what should be the head of a request does not end."""
        super().data_received(data)
        if self._timer is not None:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.transport.close()

    def on_headers_complete(self) -> None:
        """Stop waiting: the body has a limit of its own."""
        self._stop()
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        """Wait for the head of a request that has begun."""
        super().on_message_begin()
        self._stop()
        self._head = 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Stopped(uvicorn.Server):
    """A server that a signal stops, and not its process: there are agents to close after it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, while it runs."""
        before = {kind: signal.signal(kind, self.handle_exit) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, or say that somebody else does.

    Parameters
    ----------
    host : str
    port : int
        0 for any that is free.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise PosseError(
            f"host {host} and port {port} must be free to listen at: {error.strerror}."
        ) from None
    listening.listen(2048)
    listening.set_inheritable(True)
    return listening


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warm_up() -> None:
    """Decide once, in memory: the first decision of a process waits for compiled code to be loaded."""
    agent = Agent(refits="never", seed=0)
    agent.tell(agent.ask("first", np.eye(2)).id, 0.0)


async def repeat(work: Callable[[], None], seconds: float) -> None:
    """Do a piece of work again and again, beside requests; one that cannot be done now is done later."""
    while True:
        with suppress(PosseError):
            await asyncio.to_thread(work)
        await asyncio.sleep(seconds)


def serve(
    app: App,
    listening: socket.socket,
    ready: Callable[[], None],
    beat: Callable[[], None] = lambda: None,
    seconds: float = 1.0,
) -> None:
    """Answer requests until a signal comes; then finish those that have begun.

    Parameters
    ----------
    app : ASGI application
    listening : socket
    ready : callable
        Called when requests are answered.
    beat : callable
        Called in a thread, again and again, so many seconds after it was done.
    seconds : float
    """
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        loop="uvloop",
        lifespan="off",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
    server = Stopped(config)

    async def run() -> None:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready()
        beating = asyncio.create_task(repeat(beat, seconds))
        try:
            await task
        finally:
            beating.cancel()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
