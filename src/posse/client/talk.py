"""What is said to a service, and how its answers are read: retries, problems, and a way out."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import uuid4

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.numerics.checks import check_integer, check_number

with extra("serve"):
    import httpx

# Seconds before the first retry, which double with each further one, up to the most.
FIRST_PAUSE, MOST_PAUSE = 0.05, 2.0
# Answers that say "not now": what was asked for may be asked for again.
AGAIN = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}

Arms = Mapping[str, Any] | Sequence[Any]


class ServiceError(PosseError):
    """A service has refused a request.

    Attributes
    ----------
    status : int
        Of HTTP; 0 where no answer came.
    title, detail : str
        What was wrong, and what was found.
    """

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(f"{title} ({status}): {detail}" if status else f"{title}: {detail}")
        self.status, self.title, self.detail = status, title, detail


class UnavailableError(ServiceError):
    """A service did not answer, or said that it cannot now, as often as it was tried."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A decision of a service, or what stands in for one.

    Attributes
    ----------
    id : str, optional
        To tell the reward by; None for a fallback.
    arm : str or int
        The name of the arm, or its row.
    propensity : float, optional
        The probability that it was chosen with; None for a fallback.
    propensities : dict of str to float, or list of float, optional
        Of all arms, by name or in their order.
    version : int, optional
        That it was decided by.
    fallback : bool
        Whether the service could not be reached, and this is the default arm.
    """

    id: str | None
    arm: str | int
    propensity: float | None = None
    propensities: dict[str, float] | list[float] | None = None
    version: int | None = None
    fallback: bool = False


class Sending(NamedTuple):
    """A request to be sent: where, and its body as JSON."""

    path: str
    content: bytes


# Requests to send and seconds to wait, each answered by a response, an error, or nothing.
Heard = httpx.Response | httpx.TransportError | None
Talk = Generator[Sending | float, Heard, Any]


class Talker:
    """What is said to a service and how its answers are read, without the sending, by a client's settings."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 1.0,
        retries: int = 3,
        default: str | int | None = None,
        space: str = "default",
    ) -> None:
        check_number("`timeout` of Client", timeout, 0.0, open_low=True)
        self.retries = check_integer("`retries` of Client", retries, 0)
        self.default, self.space = default, space
        self._settings: dict[str, Any] = {
            "base_url": url,
            "timeout": timeout,
            "headers": {
                "content-type": "application/json",
                **({} if token is None else {"authorization": f"Bearer {token}"}),
            },
        }

    def _ask(
        self,
        id: str | None,
        task: str,
        arms: Arms,
        context: Mapping[str, Any] | None,
        unit: str | None,
        shown: bool | None,
    ) -> Talk:
        row = given(id=id or uuid4().hex, task=task, arms=arms, context=context, unit=unit, shown=shown)
        try:
            found = yield from self._tried("/v1/ask", {"space": self.space, **row})
        except UnavailableError as error:
            return self._fallbacks([row], error)
        return [answer_of(found)]

    def _ask_many(self, rows: Sequence[Mapping[str, Any]]) -> Talk:
        named = [{"id": uuid4().hex, **row} for row in rows]
        if not named:
            return []
        try:
            found = yield from self._tried("/v1/ask/batch", {"space": self.space, "asks": named})
        except UnavailableError as error:
            return self._fallbacks(named, error)
        return [answer_of(one) for one in found["decisions"]]

    def _fallbacks(self, rows: Sequence[Mapping[str, Any]], error: UnavailableError) -> list[Answer]:
        if self.default is None or not all(offers(row["arms"], self.default) for row in rows):
            raise error
        return [Answer(id=None, arm=self.default, fallback=True) for _ in rows]

    def _tell(
        self, id: str | None, reward: float, event: str | None, at: float | None, played: str | int | None
    ) -> Talk:
        if id is None:
            return False
        yield from self._tried("/v1/tell", given(id=id, reward=reward, event=event, at=at, played=played))
        return True

    def _tell_many(self, rows: Sequence[Mapping[str, Any]]) -> Talk:
        told = [dict(row) for row in rows if row["id"] is not None]
        if told:
            yield from self._tried("/v1/tell/batch", {"tells": told})
        return len(told)

    def _tried(self, path: str, body: dict[str, Any]) -> Talk:
        """Send a request until it is answered, as often as is allowed."""
        sending, wait = Sending(path, json.dumps(body, allow_nan=False).encode()), 0.0
        last = UnavailableError(0, "No answer", "")
        for attempt in range(self.retries + 1):
            if attempt:
                longest = min(MOST_PAUSE, FIRST_PAUSE * 2**attempt)
                yield wait + random.uniform(0.0, longest)
            answer = yield sending
            if not isinstance(answer, httpx.Response):
                last = UnavailableError(0, "No answer", f"{type(answer).__name__} {answer}".strip())
            elif answer.is_success:
                try:
                    return answer.json()
                except ValueError:  # something before the service has answered
                    last = UnavailableError(answer.status_code, "No JSON", answer.text[:200])
            else:
                problem = problem_of(answer)
                if answer.status_code not in AGAIN:
                    raise ServiceError(*problem)
                last = UnavailableError(*problem)
                after = answer.headers.get("retry-after", "")
                wait = min(MOST_PAUSE, float(after)) if after.isdecimal() else 0.0
        raise last


def offers(arms: Arms, default: str | int | None) -> bool:
    """Return whether an arm is among those on offer, by name or by row.

    Examples
    --------
    >>> offers({"red": [1.0]}, "red"), offers([[1.0], [2.0]], 2), offers(["red"], None)
    (True, False, False)
    """
    if isinstance(default, int):
        return not isinstance(arms, Mapping) and 0 <= default < len(arms)
    return default is not None and default in arms


def problem_of(answer: httpx.Response) -> tuple[int, str, str]:
    """Return status, title and detail of an error, from a service or something before it."""
    try:
        found = answer.json()
        return answer.status_code, str(found["title"]), str(found["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.status_code, answer.reason_phrase, answer.text[:200]


def given(**fields: Any) -> dict[str, Any]:
    """Return of fields those that are given.

    Examples
    --------
    >>> given(id="a", event=None)
    {'id': 'a'}
    """
    return {name: value for name, value in fields.items() if value is not None}


def answer_of(found: Mapping[str, Any]) -> Answer:
    """Return a decision as it came over the wire."""
    names = ("id", "arm", "propensity", "propensities", "version")
    return Answer(**{name: found[name] for name in names})
