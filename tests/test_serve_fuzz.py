"""Requests that nobody would write: no error of the service, and every answer is one of its description."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

from serve_world import ARMS, Client, Served, run, served

pytestmark = pytest.mark.slow

MOST_BYTES = 200_000
FEW = settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
# What JSON Schema cannot say is refused, too: rows of one length, ids that are there, no zero in a text.
TOO_STRICT: list[Any] = [positive_data_acceptance]
# What is wrong may also be too long, and is then refused for that.
REFUSALS = ["400", "404", "405", "409", "413", "415", "422"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """Yield a service that has seen a task and a reward, and the token of an admin; it has to live."""
    store = tmp_path_factory.mktemp("fuzzed") / "s.db"
    token = run("serve", "token", "--store", store, "--name", "fuzz", "--role", "admin")[1].strip()
    with served(store, "--most-bytes", MOST_BYTES) as one:
        client = one.client(token)
        client.post("/v1/tell", id=client.post("/v1/ask", task="a", arms=ARMS)["id"], reward=1.0)
        client.close()
        yield one, token
        code, _, errors = one.end()
    assert (code, "Traceback" in errors) == (0, False), errors


def description(service: Served) -> dict[str, object]:
    """Return the description as it is served, without what it says of tokens: one is always sent here."""
    raw = httpx.get(f"http://127.0.0.1:{service.port}/openapi.json").json()
    raw["components"].pop("securitySchemes")
    for path in raw["paths"].values():
        for operation in path.values():
            operation.pop("security", None)
    return dict(raw)


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_every_answer_to_any_request_is_one_of_the_description_and_no_error_of_the_service(
    service: tuple[Served, str], mode: str
) -> None:
    schema = schemathesis.openapi.from_dict(description(service[0]))
    schema.config.update(base_url=f"http://127.0.0.1:{service[0].port}")
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    headers = {"Authorization": f"Bearer {service[1]}"}
    answers: Counter[str] = Counter()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if mode == "NEGATIVE" and not (operation.body or operation.query or operation.path_parameters):
            continue  # nothing in it can be wrong

        @seed(0)
        @FEW
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
        def answered(case: schemathesis.Case[Any]) -> None:
            answer = case.call(headers=headers)
            answers[f"{case.method} {case.path}"] += 1
            case.validate_response(answer, excluded_checks=TOO_STRICT)

        answered()
    assert len(answers) >= (19 if mode == "POSITIVE" else 13)
    assert sum(answers.values()) > 80


valid = json.dumps({"task": "a", "arms": ARMS, "context": None, "id": None}).encode()
deep = st.integers(1, 50_000).map(lambda n: b"[" * n + b"]" * n)
value = st.one_of(
    deep,
    st.integers(1, 100_000).map(lambda n: b"9" * n),
    st.sampled_from([b"1e999", b"-0.0", b'"\\ud800"', b'"\\u0000"', b"NaN", b"true", b"{}", b"\xff"]),
    st.integers(1, MOST_BYTES // 2).map(lambda n: b'"' + b"x" * n + b'"'),
    st.integers(1, MOST_BYTES // 8).map(lambda n: b"{" + b",".join(b'"%d":1' % i for i in range(n)) + b"}"),
    st.integers(1, MOST_BYTES // 4).map(lambda n: b"[" + b"1," * n + b"1]"),
)
WHERE = (b"1.2", b'"a"', b"null", b'{"price": 1.2, "new": 0}', json.dumps(ARMS).encode())


@seed(0)
@settings(FEW, max_examples=80)
@given(
    place=st.sampled_from(WHERE),
    value=value,
    cut=st.integers(0, 400),
    path=st.sampled_from(["ask", "ask/batch"]),
)
def test_bodies_that_are_almost_right_up_to_the_limit_are_answered(
    service: tuple[Served, str], place: bytes, value: bytes, cut: int, path: str
) -> None:
    body = valid.replace(place, value, 1)
    if path == "ask/batch":
        body = b'{"asks": [' + body + b"]}"
    if cut < len(body) and cut % 4 == 0:
        body = body[: len(body) - cut]
    client = Client(service[0].port, service[1])
    reply = client.call("POST", f"/v1/{path}", body)
    client.close()
    assert reply.status in ({413} if len(body) > MOST_BYTES else {200, 400, 404, 422}), reply.body
    if reply.status != 200:
        assert len(reply.detail) < 2_000
