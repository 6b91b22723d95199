"""Who may do what, and what a request must be before anything reads it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from serve_world import ARMS, Client, Reply, Served, run, served

pytest.importorskip("uvicorn")
from posse.serve import Service, open_store
from posse.serve.app import make_app
from posse.serve.gate import Gate, Limits

pytestmark = pytest.mark.slow

# What every role may do, as (method, path); an admin may do everything, and everybody what is free.
MAY = {
    "ask": {("POST", "/v1/ask"), ("POST", "/v1/ask/batch")},
    "tell": {("POST", "/v1/tell"), ("POST", "/v1/tell/batch"), ("POST", "/v1/activate")},
    "read": {
        ("GET", "/v1/decisions/{id:path}"),
        ("GET", "/v1/tasks"),
        ("GET", "/v1/tasks/{name:path}"),
        ("GET", "/v1/versions"),
        ("GET", "/v1/spaces"),
        ("GET", "/v1/status"),
        ("GET", "/v1/traffic"),
        ("GET", "/metrics"),
    },
    "admin": {
        ("POST", "/v1/promote"),
        ("POST", "/v1/rollback"),
        ("POST", "/v1/freeze"),
        ("POST", "/v1/spaces"),
    },
}
FREE = {
    ("GET", "/"),
    ("GET", "/static/page.css"),
    ("GET", "/static/page.js"),
    ("GET", "/static/charts.js"),
    ("GET", "/static/calls.js"),
    ("GET", "/static/parts.js"),
    ("GET", "/openapi.json"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
}
# Requests that each endpoint takes, so that whoever may is answered with 200.
BODIES: dict[str, Any] = {
    "/v1/ask": {"task": "a", "arms": ARMS},
    "/v1/ask/batch": {"asks": [{"task": "a", "arms": ARMS}]},
    "/v1/tell": {"id": "first", "reward": 1.0},
    "/v1/tell/batch": {"tells": [{"id": "first", "reward": 1.0}]},
    "/v1/activate": {"id": "first"},
    "/v1/promote": {"version": 0},
    "/v1/rollback": {"version": 0},
    "/v1/freeze": {"on": False},
    "/v1/spaces": {"name": "other", "features": ["x"]},
}
SENDERS = ("nobody", "a stranger", "ask", "tell", "read", "admin")


class Guarded(NamedTuple):
    """A service with a token of each role."""

    server: Served
    tokens: dict[str, str]

    def call(self, sender: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        token = {"nobody": None, "a stranger": "posse_" + "x" * 43}.get(sender, self.tokens.get(sender))
        client = Client(self.server.port, token)
        try:
            return client.call(method, path, body, **headers)
        finally:
            client.close()

    def status(self) -> Any:
        return self.call("admin", "GET", "/v1/status").body


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    store = tmp_path_factory.mktemp("guarded") / "s.db"
    tokens = {
        role: run("serve", "token", "--store", store, "--name", role, "--role", role)[1].strip()
        for role in MAY
    }
    with served(store, "--most-bytes", 20_000) as server:
        found = Guarded(server, tokens)
        found.call("admin", "POST", "/v1/ask", {"task": "a", "arms": ARMS, "id": "first"})
        yield found
        code, said, errors = server.end()
    assert code == 0
    for secret in (*tokens.values(), "x" * 43):
        assert secret not in said + errors + str(store.read_bytes())


def routes(folder: Path) -> set[tuple[str, str]]:
    """Return the methods and paths of all routes that the application has."""
    service = Service(open_store(f"sqlite:{folder / 'routes.db'}"))
    app: Any = make_app(service, open_to_all=True, hosts=frozenset(), limits=Limits())
    service.close()
    assert isinstance(app, Gate)
    inner: Any = app._app
    return {(method, route.path) for route in inner.routes for method in route.methods}


def test_every_endpoint_and_every_role(guarded: Guarded, tmp_path: Path) -> None:
    known = FREE.union(*MAY.values())
    found = routes(tmp_path)
    assert {(method, path) for method, path in found if method != "HEAD"} == known  # none is forgotten
    answers, wrong = 0, []
    for method, path in sorted(found):
        role = next((role for role, own in MAY.items() if (method.replace("HEAD", "GET"), path) in own), None)
        real = path.replace("{id:path}", "first").replace("{name:path}", "a")
        for sender in SENDERS:
            reply = guarded.call(sender, method, real, BODIES[path] if method == "POST" else None)
            if role is None or sender in (role, "admin"):
                wanted = 200
            else:
                wanted = 401 if sender in ("nobody", "a stranger") else 403
            answers += 1
            if reply.status != wanted:
                wrong.append((method, path, sender, reply.status, wanted))
    assert wrong == []
    assert answers == len(found) * len(SENDERS) > 200


def test_a_stolen_token_that_reads_changes_nothing(guarded: Guarded) -> None:
    before = guarded.status(), guarded.call("admin", "GET", "/v1/spaces").body
    for method, path in sorted(MAY["ask"] | MAY["tell"] | MAY["admin"]):
        for how in (
            path,
            f"{path}/",
            f"/{path}",
            path.upper(),
            f"{path}?x=1",
            f"{path}%2f",
            f"/v1/tasks/..{path[3:]}",
        ):
            reply = guarded.call("read", method, how, BODIES[path])
            assert reply.status in (403, 404, 405), (how, reply.status)
    after = guarded.status(), guarded.call("admin", "GET", "/v1/spaces").body
    assert after == before


def test_a_path_that_is_nobodys_opens_nothing(guarded: Guarded) -> None:
    for path in (
        "/v1/status/",
        "/v1//status",
        "/v1/../v1/status",
        "/V1/status",
        "/v1/%73tatus/",
        "/static/../roles.py",
    ):
        for sender in ("nobody", "a stranger", "ask"):
            reply = guarded.call(sender, "GET", path)
            assert reply.status in (401, 403, 404), (path, reply.status)
    # an encoded letter is that letter: the role is that of the path it says
    assert guarded.call("nobody", "GET", "/v1/%73tatus").status == 401
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert guarded.call("read", method, "/v1/status", {}).status == 403
        assert guarded.call("admin", method, "/v1/status", {}).status == 405
        assert guarded.call("nobody", method, "/v1/ask", {}).status == 401


def test_a_page_of_others_gets_nothing_through_a_browser(guarded: Guarded) -> None:
    elsewhere = {"Origin": "http://evil.example"}
    # a simple request of a form: refused by its type, before it is read
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        reply = guarded.call("admin", "POST", "/v1/ask", b"{}", **elsewhere, Content_Type=kind)
        assert (reply.status, "application/json" in reply.detail) == (415, True)
    # any other has to be asked for, and nothing is allowed
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    reply = guarded.call("nobody", "OPTIONS", "/v1/ask", {}, **elsewhere, **ask)
    assert reply.status >= 400
    for answer in (reply, guarded.call("read", "GET", "/v1/status", **elsewhere)):
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_names_that_are_not_the_services_are_refused_on_loopback_too(guarded: Guarded, host: str) -> None:
    for path in ("/", "/v1/status", "/healthz"):
        reply = guarded.call("admin", "GET", path, Host=host)
        assert (reply.status, "must be this service's" in reply.detail) == (421, True)
    assert guarded.call("admin", "GET", "/healthz", Host="localhost:1234").status == 200
    assert guarded.call("admin", "GET", "/healthz", Host="[::1]:80").status == 200


def test_metrics_name_no_task_and_no_token(guarded: Guarded) -> None:
    guarded.call("ask", "POST", "/v1/ask", {"task": "Mrs Robinson", "arms": ARMS, "id": "order of hers"})
    guarded.call("nobody", "GET", "/v1/tasks/Mrs%20Robinson")
    text = guarded.call("read", "GET", "/metrics").body
    assert "Robinson" not in text
    assert "order of hers" not in text
    assert all(token not in text for token in guarded.tokens.values())


def test_too_many_requests_of_one_token_are_refused_and_others_go_on(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    keys = [run("serve", "token", "--store", store, "--name", n, "--role", "admin")[1].strip() for n in "ab"]
    with served(store, "--rate", 5) as server:
        eager, other = (server.client(key) for key in keys)
        replies = [eager.call("GET", "/v1/status") for _ in range(30)]
        refused = [reply for reply in replies if reply.status == 429]
        assert 10 <= sum(reply.status == 200 for reply in replies) < 20  # ten at once, and five a second
        assert (refused[0].headers["retry-after"], "at most 5 a second" in refused[0].detail) == ("1", True)
        assert other.call("GET", "/v1/status").status == 200
        eager.close()
        other.close()


HEAD = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def answer_to(port: int, *parts: bytes, pause: float = 0.0) -> tuple[bytes, float]:
    """Send bytes with pauses; return what came until the other side closed, and how long that took."""
    begun, found = time.monotonic(), b""
    with (
        socket.create_connection(("127.0.0.1", port)) as one,
        suppress(ConnectionResetError, BrokenPipeError),
    ):
        for place, part in enumerate((*parts, b"")):
            one.sendall(part)
            one.settimeout(20 if place == len(parts) else max(pause, 0.001))
            with suppress(TimeoutError):
                while more := one.recv(65_536):
                    found += more
                break
    return found, time.monotonic() - begun


def test_requests_that_are_too_large_are_cut_off(tmp_path: Path) -> None:
    with served(tmp_path / "s.db", "--most-bytes", 20_000) as server:
        declared = answer_to(server.port, HEAD + b"Content-Length: 20001\r\n\r\n")[0]
        assert declared.startswith(b"HTTP/1.1 413")
        assert b"at most 20000 bytes. Got 20001." in declared
        chunks = [b"%x\r\n%s\r\n" % (5_000, b" " * 5_000)] * 6
        streamed = answer_to(server.port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *chunks, pause=0.05)[
            0
        ]
        assert streamed.startswith(b"HTTP/1.1 413")
        assert b"at most 20000 bytes. Got more." in streamed
        endless = answer_to(server.port, HEAD, *[b"X-More: " + b"x" * 10_000 + b"\r\n"] * 20, pause=0.01)[0]
        assert not endless.startswith(b"HTTP/1.1 2")
        for length in (b"-1", b"many", b"9" * 30):
            assert answer_to(server.port, HEAD + b"Content-Length: " + length + b"\r\n\r\n{}")[0][9:12] in (
                b"400",
                b"413",
            )
        client = server.client()
        assert 'posse_refused_total{status="413"} 2' in client.get("/metrics")
        assert client.get("/v1/status")["decisions"] == 0
        client.close()


def test_requests_that_come_too_slowly_are_cut_off_and_quick_ones_served_meanwhile(tmp_path: Path) -> None:
    body = HEAD + b"Content-Length: 200\r\n\r\n" + b'{"task": '
    slow: dict[str, tuple[bytes, ...]] = {
        "nothing": (),
        "head": (HEAD, *[b"X: y\r\n"] * 40),
        "body": (body, *[b" "] * 40),
        "between": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", *[b"\r\n"] * 40),
    }
    found: dict[str, tuple[bytes, float]] = {}
    with served(tmp_path / "s.db", first="import posse.serve.run as r; r.WHOLE_SECONDS = 1.0") as server:

        def send(name: str) -> None:
            found[name] = answer_to(server.port, *slow[name], pause=0.1)

        threads = [threading.Thread(target=send, args=(name,)) for name in slow]
        for thread in threads:
            thread.start()
        client = server.client()
        while any(thread.is_alive() for thread in threads):
            assert client.get("/healthz") == {"ok": True}
            threading.Event().wait(0.05)
        client.close()
    for name, (answer, seconds) in found.items():
        assert seconds < 3.9, name  # and not the four seconds that it would have taken to send
        assert answer.startswith(b"HTTP/1.1 200") == (name == "between"), (name, answer)
