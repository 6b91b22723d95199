"""Errors as answers: what must be, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.serve import wire
from posse.serve.gate import SECURITY
from posse.serve.metrics import Meter
from posse.serve.spaces import UnknownError

with extra("serve"):
    import msgspec
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

HEADERS = {name.decode(): value.decode() for name, value in SECURITY}
# What was found may be as long as a request.
LONGEST = 1000
# Status, title and the detail, in which {} is the error's own words.
ANSWERS: Mapping[type[Exception], tuple[int, str, str]] = {
    msgspec.DecodeError: (400, "Bad request", "the body must be JSON: {}."),
    UnicodeDecodeError: (400, "Bad request", "the body must be JSON: {}."),
    ValueError: (422, "Unprocessable content", "{}"),
    UnknownError: (404, "Not found", "{}"),
    PosseError: (503, "Service unavailable", "{}"),
    Exception: (500, "Internal error", "the service has a fault; its log says more."),
}


def answers_to_errors(meter: Meter) -> dict[Any, Any]:
    """Return what answers a request by the error that it led to, each counted by the meter."""

    def answer(status: int, title: str, detail: str) -> Response:
        meter.refused(status)
        detail = detail if len(detail) <= LONGEST else f"{detail[:LONGEST]}…"
        content = wire.encode(wire.Problem(title=title, status=status, detail=detail))
        return Response(content, status, HEADERS, "application/problem+json")

    def handler(kind: type[Exception]) -> Any:
        status, title, words = ANSWERS[kind]

        async def handle(request: Request, error: Exception) -> Response:
            return answer(status, title, words.format(error))

        return handle

    async def by_framework(request: Request, error: HTTPException) -> Response:
        found = f"{request.method} {request.url.path:.200}"
        detail = f"the method and path must be ones of /openapi.json. Got {found}."
        return answer(error.status_code, error.detail, detail)

    return {kind: handler(kind) for kind in ANSWERS} | {HTTPException: by_framework}
