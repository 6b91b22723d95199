"""What a request passes before anything reads it: host, type, size, rate, and who sends it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from posse.core.errors import PosseError
from posse.serve.roles import EVERYTHING, Token, allowed, digest_of
from posse.serve.wire import Problem, encode

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Tokens are read anew from the store after so many seconds: a dropped one is refused by then.
TOKENS_FOR = 2.0
SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request and one client may take.

    Attributes
    ----------
    body : int
        Bytes of a request's body at most.
    rate : float
        Requests a second of one token or, without tokens, one address; 0 for no limit.
    """

    body: int = 4_000_000
    rate: float = 0.0


class RefusedError(Exception):
    """A request that is answered without being read."""

    def __init__(self, status: int, title: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail
        self.headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]


class Gate:
    """An ASGI application in front of another one.

    Requests that pass carry `scope["state"]["body"]`, their body, and `scope["state"]["roles"]`.

    Parameters
    ----------
    app : ASGI application
    roles : callable
        Returns the role that a method and a path need; None where everybody may pass.
    tokens : callable, optional
        Returns the tokens of the store; None where everybody may do everything.
    hosts : frozenset of str
        Names by which the service may be called; by an address it always may.
    limits : Limits
    refused : callable
        Counts requests that do not pass, by the status of their answers.
    """

    def __init__(
        self,
        app: App,
        *,
        roles: Callable[[str, str], str | None],
        tokens: Callable[[], list[Token]] | None,
        hosts: frozenset[str],
        limits: Limits,
        refused: Callable[[int], None],
    ) -> None:
        self._app, self._roles, self._hosts, self._limits = app, roles, hosts, limits
        self._count = refused
        self._tokens = tokens
        self._known: Mapping[str, frozenset[str]] = {}
        self._read_at = -TOKENS_FOR
        self._allowance: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        try:
            headers = dict(scope["headers"])
            self._check_host(headers)
            state = scope.setdefault("state", {})
            state["roles"] = self._check_sender(scope, headers)
            state["body"] = b"" if scope["method"] in ("GET", "HEAD") else await self._body(headers, receive)
        except RefusedError as refused:
            self._count(refused.status)
            await refuse(send, refused)
            return
        except PosseError as error:
            self._count(503)
            await refuse(send, RefusedError(503, "Service unavailable", str(error)))
            return
        await self._app(scope, receive, send)

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse names that are not this service's: a page elsewhere may have its name point to here."""
        host = headers.get(b"host", b"").decode("latin-1").rsplit("@")[-1]
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name.lower() not in self._hosts and not is_address(name):
            raise RefusedError(
                421,
                "Misdirected request",
                f"the Host of a request must be this service's. Got {name!r:.100}.",
            )

    def _check_sender(self, scope: Scope, headers: Mapping[bytes, bytes]) -> frozenset[str]:
        needed = self._roles(scope["method"], scope["path"])
        if self._tokens is None:
            roles, who = EVERYTHING, str((scope.get("client") or ("",))[0])
        elif needed is None:
            return frozenset()
        else:
            scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
            who = digest_of(token.strip()) if scheme.lower() == "bearer" else ""
            found = self._roles_of(who)
            if found is None:
                raise RefusedError(
                    401,
                    "Unauthorized",
                    "a request must have a header `Authorization: Bearer TOKEN`, of this service.",
                    www_authenticate="Bearer",
                )
            roles = found
        if needed is not None and needed not in roles:
            raise RefusedError(
                403, "Forbidden", f"the token must have the role {needed!r}. Got {sorted(roles)}."
            )
        if needed is not None and self._limits.rate > 0.0:
            self._spend(who)
        return roles

    def _roles_of(self, digest: str) -> frozenset[str] | None:
        now = time.monotonic()
        if now - self._read_at >= TOKENS_FOR and self._tokens is not None:
            self._known = {token.digest: allowed(token.roles) for token in self._tokens()}
            self._read_at = now
        return self._known.get(digest)

    def _spend(self, who: str) -> None:
        """Take one request from a sender's allowance, which is two seconds' worth at most."""
        now, most = time.monotonic(), max(1.0, 2.0 * self._limits.rate)
        if len(self._allowance) > 10_000:
            self._allowance.clear()
        left, then = self._allowance.get(who, (most, now))
        left = min(most, left + (now - then) * self._limits.rate)
        if left < 1.0:
            raise RefusedError(
                429,
                "Too many requests",
                f"requests must be at most {self._limits.rate:g} a second. Got more.",
                retry_after="1",
            )
        self._allowance[who] = (left - 1.0, now)

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Return the body, once all of it has come; browsers cannot send this type from pages of others."""
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if kind != b"application/json":
            raise RefusedError(
                415,
                "Unsupported media type",
                f"the type of a request must be application/json. Got {kind.decode('latin-1')!r:.100}.",
            )
        most = self._limits.body
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            raise RefusedError(
                413, "Content too large", f"a request must have at most {most} bytes. Got {int(length)}."
            )
        parts, size, more = list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":  # it went away, or was too slow
                raise RefusedError(408, "Request timeout", "a request must come whole. Got a part.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise RefusedError(
                    413, "Content too large", f"a request must have at most {most} bytes. Got more."
                )
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def is_address(name: str) -> bool:
    """Return whether a host is an address and not a name: only names can be made to point elsewhere.

    Examples
    --------
    >>> is_address("127.0.0.1"), is_address("[::1]"), is_address("example.org")
    (True, True, False)
    """
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


async def refuse(send: Send, refused: RefusedError) -> None:
    """Answer a request with what is wrong with it."""
    body = encode(Problem(title=refused.title, status=refused.status, detail=refused.detail))
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # what is left of the request is not read
        *SECURITY,
        *refused.headers,
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
