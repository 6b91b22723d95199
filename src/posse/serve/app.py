"""The service over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from posse.core.extras import extra
from posse.serve import answers, wire
from posse.serve.faults import HEADERS, answers_to_errors
from posse.serve.findings import with_found
from posse.serve.gate import SECURITY, App, Gate, Limits, Receive, Scope, Send
from posse.serve.history import History
from posse.serve.learned import narrowed
from posse.serve.metrics import Meter
from posse.serve.openapi import describe
from posse.serve.page import FILES, page
from posse.serve.service import Service
from posse.serve.spaces import DEFAULT, Space

with extra("serve"):
    import msgspec
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

Work = Callable[[Any], Any]
JSON = [(b"content-type", b"application/json"), *SECURITY]


class Endpoint:
    """One method of one path: what it takes and returns, who may call it, and what it does.

    Attributes
    ----------
    method, path : str
    role : str, optional
        That a caller needs; None where everybody may call it.
    takes : type, optional
        Of the body.
    returns : type
        Of the answer.
    work : callable
        Does it, from the body or the parameters of the path.
    """

    def __init__(
        self, method: str, path: str, role: str | None, takes: Any, returns: Any, work: Work, meter: Meter
    ) -> None:
        self.method, self.path, self.role = method, path, role
        self.takes, self.returns, self.work, self.meter = takes, returns, work, meter
        self._decode, self._counts = msgspec.json.Decoder(takes).decode, meter.begin_of(path)
        self.threaded = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; what is wrong with it is said by the handlers of errors."""
        begun = time.perf_counter()
        try:
            given: Any
            if self.takes is not None:
                given = self._read(scope["state"]["body"])
            else:
                roles = ",".join(sorted(scope["state"]["roles"]))
                given = {**QueryParams(scope["query_string"]), **scope["path_params"], "roles": roles}
            found = await run_in_threadpool(self.work, given) if self.threaded else self.work(given)
        finally:
            self.meter.answered(self._counts, time.perf_counter() - begun)
        if isinstance(found, Response):
            await found(scope, receive, send)  # type: ignore[arg-type]
            return
        body = wire.encode(found)
        headers = [*JSON, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _read(self, body: bytes) -> Any:
        """Return a body as what it must be, or say what was found."""
        try:
            return self._decode(body)
        except msgspec.ValidationError as error:
            found = with_found(error, body, self.takes)
            raise ValueError(f"the body must be as described: {found}.") from None


class Handlers:
    """What the endpoints do, by a service."""

    def __init__(self, service: Service, meter: Meter, history: History) -> None:
        self.service, self.meter, self.history = service, meter, history

    def ask(self, body: wire.Ask) -> wire.Answer:
        """Decide."""
        decision = self.service.ask(
            body.space, body.task, body.arms, body.context, body.id, body.unit, body.shown
        )
        return wire.answer_of(body.space, decision, body.arms)  # type: ignore[arg-type]

    def ask_many(self, body: wire.AskMany) -> wire.Answers:
        """Decide for many rows."""
        rows = body.asks
        ids = [row.id for row in rows]
        if any(id is None for id in ids) and not all(id is None for id in ids):
            raise ValueError("`id` of a batch must be given for all rows, or for none. Got some.")
        decisions = self.service.ask_many(
            body.space,
            [row.task for row in rows],
            [row.arms for row in rows],
            [row.context for row in rows],
            None if ids[0] is None else [str(id) for id in ids],
        )
        answers = [
            wire.answer_of(body.space, decision, row.arms)  # type: ignore[arg-type]
            for decision, row in zip(decisions, rows, strict=True)
        ]
        return wire.Answers(decisions=answers)

    def tell(self, body: wire.Tell) -> wire.Done:
        """Count a reward."""
        self.service.tell(body.id, body.reward, body.event, body.at, body.played, body.space)
        return wire.Done()

    def tell_many(self, body: wire.TellMany) -> wire.Done:
        """Count many rewards."""
        rows = body.tells
        self.service.tell_many(
            [row.id for row in rows],
            [row.reward for row in rows],
            [row.event for row in rows],
            [row.at for row in rows],
            body.space,
        )
        return wire.Done()

    def activate(self, body: wire.Shown) -> wire.Done:
        """Take note that a decision was shown."""
        self.service.activate(body.id, body.space)
        return wire.Done()

    def decision(self, given: dict[str, str]) -> wire.Record:
        """Return a decision."""
        name, _, asked = self.service.find(given["id"], given.get("space"))
        return wire.record_of(name, asked)

    def tasks(self, given: dict[str, str]) -> Any:
        """Return the tasks of a space."""
        return narrowed(
            self.service.tasks(given.get("space", DEFAULT))["tasks"], given.get("find", ""), given.get("most")
        )

    def task(self, given: dict[str, str]) -> Any:
        """Return what is known of a task, and from whom."""
        return self.service.task(given.get("space", DEFAULT), given["name"])

    def versions(self, given: dict[str, str]) -> Any:
        """Return the versions of what a space's tasks share."""
        return self.service.versions(given.get("space", DEFAULT))

    def promote(self, body: wire.Turn) -> wire.Done:
        """Decide by a version."""
        self.service.promote(body.space, body.version)
        return wire.Done()

    def rollback(self, body: wire.Turn) -> wire.Done:
        """Decide by an earlier version, and keep to it."""
        self.service.rollback(body.space, body.version)
        return wire.Done()

    def freeze(self, body: wire.Freeze) -> wire.Done:
        """Stop learning, or go on."""
        self.service.freeze(body.space, body.on)
        return wire.Done()

    def spaces(self, given: dict[str, str]) -> Any:
        """Return all spaces."""
        return {
            "spaces": [
                {"version": version.number, "space": version.space}
                for version in self.service.spaces().values()
            ]
        }

    def put_space(self, body: Space) -> Any:
        """Make a space, or change it."""
        if body.model:
            raise ValueError("`model` of a space must be given in the service's file of spaces. Got true.")
        number = self.service.put(body)
        return {"version": number, "space": self.service.spaces()[body.name].space}

    def status(self, given: dict[str, str]) -> Any:
        """Return how the service is doing, and what the caller may do."""
        return {**self.service.summary(), "roles": given["roles"].split(",")}

    def traffic(self, given: dict[str, str]) -> Any:
        """Return what happened in a space over time, since this process began to serve it."""
        name = given.get("space", "default")
        self.service.versions_of(name)
        return self.history.of(name)

    def health(self, given: dict[str, str]) -> Any:
        """Say that the process is there."""
        return wire.Done()

    def ready(self, given: dict[str, str]) -> Any:
        """Say that decisions are made, and whether the database can be reached; 503 if none can be made."""
        return wire.Ready(store="away" if self.service.away() else "here")

    def metrics(self, given: dict[str, str]) -> Response:
        """Return what Prometheus reads."""
        self.meter.queued(self.service.queued())
        text = self.meter.text(self.service.summary())
        return Response(text, 200, HEADERS, "text/plain; version=0.0.4; charset=utf-8")


def endpoints_of(handlers: Handlers) -> list[Endpoint]:
    """Return all that can be called, in the order of the description."""
    h = handlers
    made = partial(Endpoint, meter=handlers.meter)
    return [
        made("POST", "/v1/ask", "ask", wire.Ask, wire.Answer, h.ask),
        made("POST", "/v1/tell", "tell", wire.Tell, wire.Done, h.tell),
        made("POST", "/v1/ask/batch", "ask", wire.AskMany, wire.Answers, h.ask_many),
        made("POST", "/v1/tell/batch", "tell", wire.TellMany, wire.Done, h.tell_many),
        made("POST", "/v1/activate", "tell", wire.Shown, wire.Done, h.activate),
        made("GET", "/v1/decisions/{id:path}", "read", None, wire.Record, h.decision),
        made("GET", "/v1/tasks", "read", None, answers.Tasks, h.tasks),
        made("GET", "/v1/tasks/{name:path}", "read", None, answers.Learned, h.task),
        made("GET", "/v1/versions", "read", None, answers.Versions, h.versions),
        made("POST", "/v1/promote", "admin", wire.Turn, wire.Done, h.promote),
        made("POST", "/v1/rollback", "admin", wire.Turn, wire.Done, h.rollback),
        made("POST", "/v1/freeze", "admin", wire.Freeze, wire.Done, h.freeze),
        made("GET", "/v1/spaces", "read", None, answers.Spaces, h.spaces),
        made("POST", "/v1/spaces", "admin", Space, answers.SpaceVersion, h.put_space),
        made("GET", "/v1/status", "read", None, answers.ServiceStatus, h.status),
        made("GET", "/v1/traffic", "read", None, answers.Traffic, h.traffic),
        made("GET", "/metrics", "read", None, str, h.metrics),
        made("GET", "/healthz", None, None, wire.Done, h.health),
        made("GET", "/readyz", None, None, wire.Ready, h.ready),
    ]


def make_app(
    service: Service,
    *,
    open_to_all: bool,
    hosts: frozenset[str],
    limits: Limits,
    threaded: bool = False,
    history: History | None = None,
    meter: Meter | None = None,
) -> App:
    """Return the service as an ASGI application.

    Parameters
    ----------
    service : Service
    open_to_all : bool
        Whether requests need no token.
    hosts : frozenset of str
        Names by which the service may be called.
    limits : Limits
    threaded : bool
        Whether requests wait for a disk or a database, so that others should go on meanwhile.
    history : History, optional
        What the page shows over time; its owner keeps it up to date.
    meter : Meter, optional
        Counts requests, with those of other processes.
    """
    meter = meter or Meter()
    endpoints = endpoints_of(Handlers(service, meter, history or History()))
    for endpoint in endpoints:
        endpoint.threaded = threaded and endpoint.path != "/healthz"  # which waits for nothing
    roles = {(one.method, one.path): one.role for one in endpoints}
    described = wire.encode(describe(endpoints))

    async def description(request: Request) -> Response:
        return Response(described, 200, HEADERS, "application/json")

    async def front(request: Request) -> Response:
        return page(FILES[request.url.path])

    def needed(method: str, path: str) -> str | None:
        known = roles.get(("GET" if method == "HEAD" else method, path))
        if known is not None or not path.startswith("/v1/"):
            return known
        return "read" if path.startswith(("/v1/decisions/", "/v1/tasks/")) else "admin"

    routes = [Route(one.path, one, methods=[one.method]) for one in endpoints]
    routes += [Route("/openapi.json", description, methods=["GET"])]
    routes += [Route(path, front, methods=["GET"]) for path in FILES]
    app = Starlette(routes=routes, exception_handlers=answers_to_errors(meter))
    app.router.redirect_slashes = False
    tokens = None if open_to_all else service.store.tokens
    return Gate(
        app,  # type: ignore[arg-type]
        roles=needed,
        tokens=tokens,
        hosts=hosts,
        limits=limits,
        refused=meter.refused,
    )
