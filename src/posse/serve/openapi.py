"""The service in the terms of OpenAPI 3.1, made from the types that requests are read by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from posse.core.extras import extra
from posse.serve import wire

with extra("serve"):
    import msgspec

ERRORS = {
    "400": "The body is no JSON.",
    "401": "No token of this service.",
    "403": "The token lacks the role.",
    "404": "What is named is not there.",
    "413": "The body is too large.",
    "415": "The body is not declared as JSON.",
    "421": "The request is for another host.",
    "422": "A value is not what it must be; the detail names it.",
    "429": "Too many requests.",
    "503": "The store cannot be used; nothing was recorded.",
}


class Described(Protocol):
    """What the description needs to know of an endpoint."""

    method: str
    path: str
    role: str | None
    takes: Any
    returns: Any
    work: Any


def describe(endpoints: Sequence[Described]) -> dict[str, Any]:
    """Return the description of a service by its endpoints."""
    types = [kind for one in endpoints for kind in (one.takes, one.returns) if isinstance(kind, type)]
    named = [kind for kind in dict.fromkeys(types) if issubclass(kind, msgspec.Struct)]
    schemas, components = msgspec.json.schema_components(
        [*named, wire.Problem], ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip([*named, wire.Problem], schemas, strict=True))
    paths: dict[str, Any] = {}
    for one in endpoints:
        path = re.sub(r":path\}", "}", one.path)
        paths.setdefault(path, {})[one.method.lower()] = _operation(one, path, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "posse",
            "version": "1",
            "description": "Decisions for many related problems, each of which learns from all the others.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Described, path: str, by_type: dict[Any, Any]) -> dict[str, Any]:
    doc = (one.work.__doc__ or "").strip()
    kind = "text/plain" if one.returns is str else "application/json"
    content = {kind: {"schema": {"type": "string"} if one.returns is str else by_type[one.returns]}}
    problem = {"application/problem+json": {"schema": by_type[wire.Problem]}}
    found: dict[str, Any] = {
        "summary": doc,
        "operationId": f"{one.method.lower()}{re.sub('[^a-z]+', '_', path).rstrip('_')}",
        "responses": {
            "200": {"description": "Done.", "content": content},
            **{code: {"description": words, "content": problem} for code, words in ERRORS.items()},
        },
    }
    if one.role is not None:
        found["security"] = [{"token": []}]
        found["description"] = f"Needs the role {one.role!r}."
    found["parameters"] = [_parameter(name, "path") for name in re.findall(r"\{(\w+)\}", path)]
    if path.startswith(("/v1/decisions", "/v1/tasks", "/v1/versions", "/v1/traffic")):
        found["parameters"].append(_parameter("space", "query"))
    if path == "/v1/tasks":
        anything = {"name": "find", "in": "query", "required": False, "schema": {"type": "string"}}
        found["parameters"] += [anything, _parameter("most", "query")]
    if one.takes is not None:
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": by_type[one.takes]}},
        }
    return found


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    }
