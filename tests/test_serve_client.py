"""Clients of a service, over a line that loses answers, hangs, and says that now is not a good time."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from posse.client import Answer, AsyncClient, Client, ServiceError, UnavailableError
from posse.client import talk as client_talk
from serve_world import ARMS, Served, run, served

pytestmark = pytest.mark.slow

ANSWER = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s"


def canned(status: bytes, body: bytes = b"", kind: bytes = b"text/html", more: bytes = b"") -> bytes:
    return ANSWER % (status, kind, len(body), more, body)


AWAY = canned(b"502 Bad Gateway", b"<h1>nobody is there</h1>")
LATER = canned(b"503 Service Unavailable", more=b"Retry-After: 3600\r\n")
PORTAL = canned(b"200 OK", b"<h1>Welcome to our network</h1>")


class Line:
    """A socket before a service; each next request is treated as the plan says, and let through after it.

    Attributes
    ----------
    plan : list
        "lost": the service gets the request, and its answer is lost; "hangs": nothing is answered; or an
        answer.
    seen : list of bytes
        Requests as they came.
    """

    def __init__(self, port: int) -> None:
        self.target, self.plan, self.seen = port, list[Any](), list[bytes]()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one:
            while request := read_whole(one):
                self.seen.append(request)
                what = self.plan.pop(0) if self.plan else "passes"
                if what == "hangs":
                    self._closed.wait(5)
                    return
                if isinstance(what, bytes):
                    one.sendall(what)
                    return
                with socket.create_connection(("127.0.0.1", self.target)) as other:
                    other.sendall(request)
                    answer = read_whole(other)
                if what == "lost":
                    return
                one.sendall(answer)

    def close(self) -> None:
        self._closed.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # which wakes who waits to accept
        self._listening.close()


def read_whole(one: socket.socket) -> bytes:
    """Return a request or an answer with its body; nothing if the other side has gone."""
    found = b""
    while b"\r\n\r\n" not in found:
        if not (more := one.recv(65_536)):
            return b""
        found += more
    head, _, body = found.partition(b"\r\n\r\n")
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    length = next(int(value) for name, _, value in lines if name == b"content-length")
    while len(body) < length:
        body += one.recv(65_536)
    return head + b"\r\n\r\n" + body


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("called") / "s.db") as one:
        yield one


@pytest.fixture
def line(service: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(client_talk, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(client_talk, "MOST_PAUSE", 0.01)
    one = Line(service.port)
    yield one
    one.close()


Call = Callable[..., Any]


@contextmanager
def waiting(url: str, **settings: Any) -> Iterator[Call]:
    """Yield what calls a method of a client that waits."""
    with Client(url, **settings) as client:
        yield lambda name, *given, **named: getattr(client, name)(*given, **named)


@contextmanager
def going_on(url: str, **settings: Any) -> Iterator[Call]:
    """Yield what calls a method of a client that lets others go on."""
    with asyncio.Runner() as runner:
        client = AsyncClient(url, **settings)
        yield lambda name, *given, **named: runner.run(getattr(client, name)(*given, **named))
        runner.run(client.close())


def told(service: Served) -> tuple[int, int]:
    client = service.client()
    status = client.get("/v1/status")
    client.close()
    return status["decisions"], status["rewards"]


both = pytest.mark.parametrize("kind", [waiting, going_on])


@both
def test_an_answer_that_is_lost_is_asked_for_again_and_counts_once(
    service: Served, line: Line, kind: Any
) -> None:
    before = told(service)
    with kind(line.url) as call:
        line.plan = ["lost", AWAY, PORTAL, "passes", "lost", LATER, "lost"]
        answer = call("ask", "shop", ARMS)
        assert isinstance(answer, Answer)
        assert (answer.arm in ARMS, answer.fallback, answer.version) == (True, False, 0)
        assert answer.propensities[answer.arm] == answer.propensity  # type: ignore[index]
        assert call("tell", answer.id, 1.0) is True
    assert told(service) == (before[0] + 1, before[1] + 1)
    asks, tells = line.seen[:4], line.seen[4:]
    bodies = {request.partition(b"\r\n\r\n")[2] for request in asks}
    assert (len(asks), len(tells), len(bodies)) == (4, 4, 1)  # with one id, made here
    assert str(answer.id).encode() in bodies.pop()


@both
def test_batches_are_sent_again_too_and_fallbacks_are_not_told(
    service: Served, line: Line, kind: Any
) -> None:
    before = told(service)
    with kind(line.url) as call:
        line.plan = ["lost", "passes", "lost", "passes"]
        answers = call("ask_many", [{"task": f"shop {n}", "arms": ARMS} for n in range(5)])
        rows = [{"id": one.id, "reward": 1.0} for one in answers]
        assert call("tell_many", [*rows, {"id": None, "reward": 9.0}]) == 5
        assert call("ask_many", []) == []
        assert call("tell", None, 1.0) is False
    assert told(service) == (before[0] + 5, before[1] + 5)


@both
def test_where_nobody_answers_in_time_the_default_arm_is_played(line: Line, kind: Any) -> None:
    settings: dict[str, Any] = {"timeout": 0.2, "retries": 1, "default": "blue"}
    with kind(line.url, **settings) as call:
        line.plan = ["hangs", "hangs"]
        answer = call("ask", "shop", ARMS)
        assert (answer.arm, answer.fallback, answer.id, answer.propensity) == ("blue", True, None, None)
        line.plan = [LATER] * 4
        assert [one.arm for one in call("ask_many", [{"task": "a", "arms": ARMS}] * 3)] == ["blue"] * 3
        line.plan = [AWAY] * 2
        with pytest.raises(UnavailableError, match=r"Bad Gateway \(502\)"):
            call("ask", "shop", {"red": [1.0]})  # where it is not on offer
        line.plan = ["hangs", "hangs"]
        with pytest.raises(UnavailableError, match="Timeout"):
            call("tell", "x", 1.0)  # a reward has no default
    line.close()
    with kind(line.url, default=1, retries=0) as call:  # nobody listens
        assert call("ask", "shop", [[1.0], [2.0]]).arm == 1


@both
def test_what_is_refused_is_said_and_not_sent_again(line: Line, kind: Any) -> None:
    with kind(line.url, default="red") as call:
        for name, given, words in [
            ("ask", ("shop", {"red": {"price": "dear", "new": 0}}), "'dear'"),
            ("tell", ("nobody", 1.0), "'nobody', which is unknown"),
            ("ask", ("", ARMS), "Got ''"),
        ]:
            before = len(line.seen)
            with pytest.raises(ServiceError, match=words) as caught:
                call(name, *given)
            assert (caught.value.status in (404, 422), len(line.seen)) == (True, before + 1)
    for settings, words in [({"timeout": 0}, "`timeout`"), ({"retries": -1}, "`retries`")]:
        with pytest.raises(ValueError, match=words):
            Client("http://localhost", **settings)


def test_a_token_is_sent_and_one_that_is_not_valid_is_an_error(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = tmp_path_factory.mktemp("tokens") / "s.db"
    token = run("serve", "token", "--store", store, "--name", "a", "--role", "ask", "--role", "tell")[
        1
    ].strip()
    with served(store) as service:
        url = f"http://127.0.0.1:{service.port}"
        with Client(url, token=token) as client:
            answer = client.ask("shop", ARMS, id="order 1", shown=False)
            assert answer.id == "order 1"
            assert client.tell("order 1", 1.0, "sale", at=1e9)
        with Client(url, token="other", default="red") as client, pytest.raises(ServiceError, match="401"):
            client.ask("shop", ARMS)
