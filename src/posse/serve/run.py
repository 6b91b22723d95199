"""The process of a service: its socket, its signals, and connections that say nothing."""

from __future__ import annotations

import asyncio
import gc
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

# Seconds in which a request must have come whole, and in which the last ones are finished.
WHOLE_SECONDS, LAST_SECONDS = 10.0, 10
# Bytes that the head of a request may have.
MOST_HEAD = 65_536


class Corked:
    """A transport that sends what is written twice in a row at once: the head of an answer and its body.

    Parameters
    ----------
    transport : Transport
    loop : AbstractEventLoop
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._held = transport, loop, b""
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send what is held together with this, or hold this until the next turn of the loop."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held + data)
        else:
            self._held = data
            self._loop.call_soon(self._send)

    def close(self) -> None:
        """Send what is held, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)


class PatientProtocol(HttpToolsProtocol):
    """Connections on which a request has a small head, and comes whole within some seconds."""

    _timer: asyncio.TimerHandle | None = None
    _head = -1  # bytes of a head that has begun
    _whole = _news = False  # whether all of the last request has come; whether one began or ended just now

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(Corked(transport, self.loop))  # type: ignore[arg-type]
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head of a request does not end; wait while something is missing."""
        self._news = False
        super().data_received(data)
        if self._head >= 0:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.transport.close()
        if self._timer is None:
            if not self._whole or (not self._news and self.cycle.response_complete):
                self._wait()  # for the rest of a request, or between two of them for what is none
        elif self._whole and self._news:
            self._stop()

    def on_message_begin(self) -> None:
        """Take note that a request begins."""
        super().on_message_begin()
        self._whole, self._news, self._head = False, True, 0

    def on_headers_complete(self) -> None:
        """Count bytes no more: the size of the body is looked at by who reads it."""
        self._head = -1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Take note that a request is whole."""
        self._whole = self._news = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(WHOLE_SECONDS, self.transport.close)

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
    """Decide once, in memory, as the first decision of a process waits for compiled code to be loaded.

    Then let the collector of garbage leave alone what is there, and look less often at what requests bring:
    their numbers and names are in no cycles.
    """
    agent = Agent(refits="never", seed=0)
    agent.tell(agent.ask("first", np.eye(2)).id, 0.0)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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
