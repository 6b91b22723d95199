"""`posse serve` on SQLite: a real process, asked over a real socket."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pytest

from live_world import Clock
from posse import Agent
from serve_world import ARMS, Client, Served, refused, run, served

pytest.importorskip("uvicorn")
from posse.serve import Service, Space, answers
from posse.serve.stores import FileStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("service") / "shop.db") as one:
        yield one


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    one = server.client()
    yield one
    one.close()


def test_the_first_call_needs_no_configuration_and_rewards_are_told_by_id(
    server: Served, client: Client
) -> None:
    assert "No tokens" in server.greeting + (
        server.process.stdout.readline() if server.process.stdout else ""
    )
    answer = client.post("/v1/ask", task="shop-17", arms=ARMS)
    assert answer["arm"] in ARMS
    assert set(answer["propensities"]) == set(ARMS)
    assert answer["propensity"] == answer["propensities"][answer["arm"]]
    assert sum(answer["propensities"].values()) == pytest.approx(1.0)
    assert client.post("/v1/tell", id=answer["id"], reward=1.0) == {"ok": True}
    kept = client.get(f"/v1/decisions/{answer['id']}")
    assert {name: kept[name] for name in answer} == answer
    assert [(one["event"], one["reward"]) for one in kept["rewards"]] == [(None, 1.0)]
    status = client.get("/v1/status")
    assert (status["decisions"], status["rewards"], status["tasks"]) == (1, 1, 1)
    assert status["spaces"]["default"]["rewards"] == 1


def test_an_id_gets_the_decision_that_was_made_and_a_reward_counts_once(client: Client) -> None:
    before = client.get("/v1/status")["rewards"]
    first = client.post("/v1/ask", task="shop-1", arms=ARMS, id="order-1")
    for _ in range(20):  # other decisions would differ in some of as many tries
        assert client.post("/v1/ask", task="other", arms=ARMS, id="order-1") == first
    for _ in range(3):
        client.post("/v1/tell", id="order-1", reward=2.5)
    assert client.get("/v1/status")["rewards"] == before + 1
    reply = client.call("POST", "/v1/tell", {"id": "order-1", "reward": 3.0})
    assert (reply.status, "must be 2.5, as told before. Got 3.0." in reply.detail) == (422, True)


def test_batches_are_decided_and_told_in_one_call(client: Client) -> None:
    before = client.get("/v1/status")
    rows = [{"task": f"shop-{n % 7}", "arms": ARMS, "id": f"batch-{n}"} for n in range(50)]
    decisions = client.post("/v1/ask/batch", asks=rows)["decisions"]
    assert [one["id"] for one in decisions] == [f"batch-{n}" for n in range(50)]
    assert client.post("/v1/ask/batch", asks=rows)["decisions"] == decisions
    tells = [{"id": one["id"], "reward": 1.0} for one in decisions]
    wrong = client.call("POST", "/v1/tell/batch", {"tells": [*tells, {"id": "nobody", "reward": 1}]})
    assert (wrong.status, "'nobody', which is unknown" in wrong.detail) == (404, True)
    assert client.get("/v1/status")["rewards"] == before["rewards"]
    client.post("/v1/tell/batch", tells=tells)
    after = client.get("/v1/status")
    assert after["decisions"] - before["decisions"] == after["rewards"] - before["rewards"] == 50


def test_a_decision_counts_once_it_is_shown(client: Client) -> None:
    before = client.get("/v1/status")["rewards"]
    answer = client.post("/v1/ask", task="shop-1", arms=ARMS, shown=False)
    client.post("/v1/tell", id=answer["id"], reward=1.0)
    assert client.get("/v1/status")["rewards"] == before
    for _ in range(2):
        client.post("/v1/activate", id=answer["id"])
    assert client.get("/v1/status")["rewards"] == before + 1
    assert client.get(f"/v1/decisions/{answer['id']}")["shown"] is True


def test_what_was_learned_of_a_task_is_shown_with_those_like_it(client: Client) -> None:
    rng = np.random.default_rng(0)
    client.post("/v1/spaces", name="learned", features=["a", "b"])
    for number in range(60):
        sign = 1.0 if number % 2 else -1.0
        arms = {str(arm): dict(zip("ab", rng.standard_normal(2).tolist(), strict=True)) for arm in range(3)}
        answer = client.post("/v1/ask", task=f"task {number % 6}", arms=arms, space="learned")
        client.post("/v1/tell", id=answer["id"], reward=sign * arms[answer["arm"]]["a"])
    assert client.call("POST", "/v1/freeze", {"space": "learned"}).status == 200
    assert client.get("/v1/status")["spaces"]["learned"]["frozen"] is True
    client.post("/v1/freeze", space="learned", on=False)
    tasks = client.get("/v1/tasks?space=learned")["tasks"]
    assert [one["name"] for one in tasks] == [f"task {n}" for n in range(6)]
    assert sum(one["rewards"] for one in tasks) == 60
    found = client.get("/v1/tasks/task%201?space=learned")
    estimates = {one["feature"]: one["estimate"] for one in found["effects"]}
    assert estimates["a"] > 0.5 > abs(estimates["b"])
    assert {one["name"] for one in found["alike"][:2]} == {"task 3", "task 5"}
    reply = client.call("GET", "/v1/tasks/nobody?space=learned")
    assert (reply.status, "Got 'nobody'" in reply.detail) == (404, True)


def test_versions_are_listed_promoted_and_rolled_back_to(client: Client) -> None:
    client.post("/v1/spaces", name="turned", arms=["red", "blue"], publish="manual")
    for number in range(300):
        answer = client.post("/v1/ask", task=f"shop {number % 3}", arms=["red", "blue"], space="turned")
        client.post("/v1/tell", id=answer["id"], reward=float(answer["arm"] == "red"))
    for _ in range(200):
        found = client.get("/v1/versions?space=turned")
        if len(found["versions"]) > 1:
            break
        threading.Event().wait(0.05)
    assert (found["version"], found["automatic"]) == (0, False)
    newest = found["versions"][-1]["number"]
    client.post("/v1/promote", space="turned", version=newest)
    answer = client.post("/v1/ask", task="shop 1", arms=["red", "blue"], space="turned")
    assert answer["version"] == newest
    client.post("/v1/rollback", space="turned", version=0)
    assert client.get("/v1/versions?space=turned")["version"] == 0
    reply = client.call("POST", "/v1/promote", {"space": "turned", "version": 99})
    assert (reply.status, "Got 99." in reply.detail) == (422, True)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "must be JSON"),
        (b"\xff\xfe", 400, "must be JSON"),
        (b"[]", 422, "Expected `object`, got `array`"),
        ({"task": "a"}, 422, "`arms`"),
        ({"task": "", "arms": ARMS}, 422, "at `$.task`. Got ''."),
        ({"task": "a", "arms": {}}, 422, "at `$.arms`. Got {}."),
        ({"task": "a", "arms": ARMS, "colour": 1}, 422, "`colour`"),
        ({"task": "a", "arms": {"red": {"price": 1.0}}}, 422, "Got no ['new']"),
        (
            {"task": "a", "arms": {"red": {"price": 1.0, "new": 0, "size": 3}}},
            422,
            "Got ['size'] beyond these",
        ),
        ({"task": "a", "arms": {"red": {"price": "dear", "new": 0}}}, 422, "'dear'"),
        (
            {"task": "a", "arms": {"red": {"price": 1e76, "new": 0}}},
            422,
            "at most 1e75. Got [1.e+00 1.e+76 0.e+00] for arm 'red'",
        ),
        ({"task": "a", "arms": {"red": {"price": "nan", "new": 0}}}, 422, "'price' must be numbers of at"),
        ({"task": "a", "arms": {"red": {"price": "1.2", "new": 0}}}, 422, "at most 1e75. Got '1.2'."),
        ({"task": "a", "arms": {"red": {"price": "inf", "new": None}}}, 422, "Got 'inf'."),
        ({"task": "a", "arms": {"red": {"price": 1e76, "new": None}}}, 422, "Got 1e+76."),
        ({"task": "a", "arms": [[1.0, 2.0]]}, 422, "(K, d=3, as before). Got (1, 2)."),
        ({"task": "a", "arms": ARMS, "space": "nowhere"}, 404, "Got 'nowhere'."),
        ({"task": "a\x00", "arms": ARMS}, 422, "Got 'a\\x00'."),
        ({"task": "a", "arms": ARMS, "id": "x" * 201}, 422, "$.id"),
        (b'{"task": ' + b"[" * 50_000 + b"]" * 50_000 + b', "arms": {}}', 422, "array` - at `$.task`."),
        (
            {"task": "a", "arms": {"red": {"price": [1.0], "new": 0}}},
            422,
            "got `array` - at `$.arms[...][...]`. Got [1.0].",
        ),
        ({"task": "a", "arms": [[0.0] * 1001]}, 422, "length <= 1000"),
    ],
    ids=range(22),
)
def test_bad_requests_are_told_what_was_found_and_change_nothing(
    client: Client, body: object, status: int, words: str
) -> None:
    client.post("/v1/ask", task="a", arms=ARMS, id="first of all")
    before = client.get("/v1/status")["decisions"]
    reply = client.call("POST", "/v1/ask", body)
    assert reply.status == status
    assert words in reply.detail
    assert client.get("/v1/status")["decisions"] == before
    counts = client.get("/metrics")
    assert f'posse_refused_total{{status="{status}"}}' in counts


def test_a_number_that_is_missing_counts_as_the_mean_of_its_feature(client: Client) -> None:
    client.post("/v1/spaces", name="gaps", features=["price", "new"], log="all", floor=0.0)
    arms = {"red": {"price": None, "new": 1}, "blue": {"price": 0.0, "new": 1}}
    answer = client.post("/v1/ask", task="a", arms=arms, space="gaps")
    assert answer["propensities"] == {"red": 0.5, "blue": 0.5}
    context = {"hour": "9", "weekend": 0}
    client.post("/v1/spaces", name="hours", arms=["a", "b"], context=["hour", "weekend"])
    reply = client.call("POST", "/v1/ask", {"task": "a", "arms": ["a"], "context": context, "space": "hours"})
    assert (reply.status, "'hour' must be numbers of at most 1e75. Got '9'." in reply.detail) == (422, True)


def test_health_readiness_metrics_and_the_description_are_served(client: Client) -> None:
    import msgspec

    client.post("/v1/ask", task="a secret name", arms=ARMS)
    assert client.get("/healthz") == {"ok": True}
    assert client.get("/readyz") == {"ok": True, "store": "here"}
    text = client.get("/metrics")
    assert 'posse_decisions_total{space="default"}' in text
    assert 'posse_request_seconds_count{path="/v1/ask"}' in text
    assert "secret" not in text
    described = client.get("/openapi.json")
    for path, kind in {
        "/v1/tasks": answers.Tasks,
        "/v1/tasks/a%20secret%20name": answers.Learned,
        "/v1/versions": answers.Versions,
        "/v1/spaces": answers.Spaces,
        "/v1/status": answers.ServiceStatus,
        "/v1/traffic": answers.Traffic,
    }.items():
        found = client.get(path)
        assert set(found) == set(kind.__struct_fields__)
        assert json.loads(msgspec.json.encode(msgspec.convert(found, kind))) == found
    for operations in described["paths"].values():
        for one in operations.values():
            (content,) = one["responses"]["200"]["content"].values()
            assert content["schema"] != {"type": "object"}
    for path in ("/v1/ask", "/v1/tell", "/v1/decisions/{id}", "/v1/tasks/{name}", "/v1/rollback", "/metrics"):
        assert path in described["paths"]
    assert client.call("GET", "/v1/nothing").status == 404
    assert client.call("DELETE", "/v1/ask").status in (404, 405, 415)
    assert client.call("GET", "/v1/ask").status == 405


def test_a_space_changes_in_place_or_begins_a_new_version_whose_elders_can_still_be_told(
    client: Client,
) -> None:
    made = client.post("/v1/spaces", name="changed", features=["price"])
    assert (made["version"], made["space"]["features"]) == (1, ["price"])
    old = client.post("/v1/ask", task="a", arms={"x": {"price": 1}, "y": {"price": 2}}, space="changed")
    same = client.post("/v1/spaces", name="changed", features=["price"], floor=0.2)
    assert same["version"] == 1
    again = client.post("/v1/ask", task="a", arms={"x": {"price": 1}, "y": {"price": 2}}, space="changed")
    assert min(again["propensities"].values()) >= 0.2
    wider = client.post("/v1/spaces", name="changed", features=["price", "size"], floor=0.2)
    assert wider["version"] == 2
    arms = {"x": {"price": 1, "size": 1}, "y": {"price": 2, "size": 2}}
    new = client.post("/v1/ask", task="a", arms=arms, space="changed")
    for answer in (old, again, new):
        client.post("/v1/tell", id=answer["id"], reward=1.0)
    found = client.get("/v1/status")["spaces"]["changed"]
    assert (found["decisions"], found["rewards"], found["space_version"]) == (3, 3, 2)
    repeated = client.post(
        "/v1/ask", task="a", arms={"x": {"price": 1}, "y": {"price": 2}}, id=old["id"], space="changed"
    )
    assert repeated == old
    for body, words in [
        ({"name": "../evil"}, "$.name"),
        ({"name": "changed", "policy": "no-such"}, "no-such"),
        ({"name": "changed", "policy": "os:system"}, "posse list"),
        ({"name": "changed", "floor": 2.0}, "Got 2.0"),
        ({"name": "changed", "features": ["a", "a"]}, "'a'"),
        ({"name": "new", "model": True}, "`model`"),
    ]:
        reply = client.call("POST", "/v1/spaces", body)
        assert (reply.status, words in reply.detail) == (422, True), reply.detail


def test_a_repeated_id_of_a_batch_gets_its_decision_in_an_earlier_version_too(client: Client) -> None:
    client.post("/v1/spaces", name="again", features=["price", "new"])
    rows = [{"task": f"t{n}", "arms": ARMS, "id": f"again-{n}"} for n in range(3)]
    first = client.post("/v1/ask/batch", asks=rows, space="again")["decisions"]
    client.post("/v1/spaces", name="again", features=["price"])
    wide = {"red": {"price": 1.0}, "blue": {"price": 2.0}}
    more = [*rows, {"task": "t9", "arms": wide, "id": "again-9"}]
    second = client.post("/v1/ask/batch", asks=more, space="again")["decisions"]
    assert second[:3] == first
    assert client.get("/v1/status")["spaces"]["again"]["decisions"] == 4


def test_a_space_has_no_more_features_than_memory_can_hold(client: Client) -> None:
    for body in (
        {"name": "wide", "features": [f"f{n}" for n in range(1001)]},
        {"name": "wide", "arms": [f"a{n}" for n in range(100)], "context": [f"c{n}" for n in range(10)]},
    ):
        reply = client.call("POST", "/v1/spaces", body)
        assert (reply.status, "at most 1000 features" in reply.detail) == (422, True)
    names = [f"arm {n}" for n in range(2000)]
    client.post("/v1/spaces", name="open")
    reply = client.call("POST", "/v1/ask", {"task": "a", "arms": names, "space": "open"})
    assert (reply.status, "Got 2001." in reply.detail) == (422, True)
    assert client.post("/v1/ask", task="a", arms=names[:3], space="open")["arm"] in names[:3]


def test_a_space_changes_its_features_while_traffic_runs(server: Served, client: Client) -> None:
    client.post("/v1/spaces", name="moving", features=["price"])
    wide, stop = threading.Event(), threading.Event()
    made: list[list[str]] = [[] for _ in range(3)]
    statuses: set[int] = set()

    def traffic(own: list[str]) -> None:
        one = server.client()
        while not stop.is_set():
            names = ("price", "size") if wide.is_set() else ("price",)
            arms = {arm: dict.fromkeys(names, 1.0) for arm in "ab"}
            reply = one.call("POST", "/v1/ask", {"task": "t", "arms": arms, "space": "moving"})
            statuses.add(reply.status)
            if reply.status == 200:
                own.append(reply.body["id"])
                one.post("/v1/tell", id=own[-1], reward=1.0)
        one.close()

    threads = [threading.Thread(target=traffic, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    while min(map(len, made)) < 20:
        threading.Event().wait(0.01)
    assert client.post("/v1/spaces", name="moving", features=["price", "size"])["version"] == 2
    before = sum(map(len, made))
    wide.set()
    while sum(map(len, made)) < before + 60:
        threading.Event().wait(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses <= {200, 422}  # those that were under way with the features of before
    found = client.get("/v1/status")["spaces"]["moving"]
    assert found["decisions"] == found["rewards"] == sum(map(len, made))


def test_spaces_come_from_a_file_and_from_a_model_and_are_there_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "task,arm,price,reward\n"
        + "".join(f"t{n % 4},{'ab'[n % 2]},{n % 5},{(n % 5) * (1 + n % 4)}\n" for n in range(400))
    )
    code, _, errors = run("fit", tmp_path / "log.csv", "--task", "task", "--reward", "reward", "--features",
                          "price", "--out", tmp_path / "model.posse")  # fmt: skip
    assert code == 0, errors
    spaces = tmp_path / "spaces.toml"
    spaces.write_text(
        '[spaces.ads]\nfeatures = ["price", "new"]\nfloor = 0.05\nrewards = "sum"\nreward_wait = 60\n'
        '[spaces.shops]\nmodel = "model.posse"\n'
    )
    store = tmp_path / "s.db"
    with served(store, "--config", spaces, "--model", tmp_path / "model.posse") as server:
        client = server.client()
        known = {one["space"]["name"]: one["space"] for one in client.get("/v1/spaces")["spaces"]}
        assert known["ads"]["floor"] == 0.05
        arms = {"cheap": {"price": 0.0}, "dear": {"price": 4.0}}
        for name in ("shops", "default"):
            assert client.get(f"/v1/tasks?space={name}")["tasks"][0] == {"name": "t0", "rewards": 100}
            answer = client.post("/v1/ask", task="t1", arms=arms, space=name)
            assert answer["propensities"]["dear"] > 0.9
        told = client.post("/v1/ask", task="a", arms=ARMS, space="ads")["id"]
        client.post("/v1/tell", id=told, reward=1.0, event="click")
        client.post("/v1/tell", id=told, reward=2.0, event="sale")
        client.close()
    assert server.end()[0] == 0
    with served(store) as server:
        client = server.client()
        client.post("/v1/tell", id=told, reward=2.0, event="sale")
        kept = client.get(f"/v1/decisions/{told}")
        assert {one["event"]: one["reward"] for one in kept["rewards"]} == {"click": 1.0, "sale": 2.0}
        client.close()
    spaces.write_text("[spaces.ads]\nflor = 1\n")
    code, errors = refused("--store", f"sqlite:{store}", "--config", spaces, "--port", 0)
    assert (code, "flor" in errors) == (2, True)
    code, errors = refused("--store", f"sqlite:{store}", "--model", spaces, "--port", 0)
    assert code == 2


def load(port: int, told: list[tuple[str, float]]) -> None:
    """Ask and tell until the service is gone; keep what was acknowledged."""
    client = Client(port)
    rng = np.random.default_rng(len(told))
    while True:
        try:
            answer = client.post("/v1/ask", task=f"shop {rng.integers(9)}", arms=ARMS)
            reward = float(rng.standard_normal())
            client.post("/v1/tell", id=answer["id"], reward=reward)
        except (OSError, HTTPException, AssertionError):
            break
        told.append((answer["id"], reward))
    client.close()


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_no_reward_that_was_acknowledged_is_lost_when_the_service_ends(
    tmp_path: Path, kind: signal.Signals
) -> None:
    store, told = tmp_path / "s.db", list[tuple[str, float]]()
    for _ in range(2):
        server = Served("--store", f"sqlite:{store}", "--port", 0)
        lists: list[list[tuple[str, float]]] = [[] for _ in range(3)]
        threads = [threading.Thread(target=load, args=(server.port, one)) for one in lists]
        for thread in threads:
            thread.start()
        while min(map(len, lists)) < 30:
            threading.Event().wait(0.01)
        code, _, errors = server.end(kind)
        assert code == (0 if kind == signal.SIGTERM else -9), errors
        for thread in threads:
            thread.join()
        told += [item for one in lists for item in one]
    with served(store) as server:
        client = server.client()
        for id, reward in told:
            kept = client.get(f"/v1/decisions/{id}")
            assert [one["reward"] for one in kept["rewards"]] == [reward]
        client.close()
        found = json.loads(run("status", f"sqlite:{store}", "--json")[1])
    # the last decision of each connection may be told and not acknowledged
    assert len(told) <= found["rewards"] <= len(told) + 6
    assert found["spaces"]["default"]["rewards"] == found["rewards"]


def test_requests_that_have_begun_are_finished_when_the_service_is_asked_to_stop(tmp_path: Path) -> None:
    with served(tmp_path / "s.db") as server:
        body = json.dumps({"task": "a", "arms": ARMS, "id": "slow"}).encode()
        head = (
            "POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port)) as half:
            half.sendall(head.encode() + body[:20])
            client = server.client()
            client.get("/healthz")  # the server has seen what was sent before
            client.close()
            threading.Event().wait(0.2)
            server.process.send_signal(signal.SIGTERM)
            threading.Event().wait(0.2)
            half.sendall(body[20:])
            assert half.recv(1000).startswith(b"HTTP/1.1 200 OK")
        assert server.end()[0] == 0
    with served(tmp_path / "s.db") as server:
        client = server.client()
        assert client.get("/v1/decisions/slow")["task"] == "a"
        client.close()


def test_status_and_log_read_a_service_that_runs_and_a_single_agent(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    store = tmp_path / "s.db"
    with served(store) as server:
        client = server.client()
        for number in range(10):
            id = client.post("/v1/ask", task=f"t{number % 2}", arms=ARMS)["id"]
            if number % 2:
                client.post("/v1/tell", id=id, reward=1.0)
        client.post("/v1/spaces", name="default", features=["price"])
        client.post("/v1/ask", task="t", arms={"a": {"price": 1}})
        for address in (f"sqlite:{store}", str(store)):
            code, out, errors = run("status", address, "--json")
            assert code == 0, errors
            found = json.loads(out)
            assert (found["decisions"], found["rewards"], found["pending"]) == (11, 5, 6)
            assert found["spaces"]["default"]["space_version"] == 2
        code, out, _ = run("status", store)
        assert (code, "Space default" in out, "No alarms." in out) == (0, True, True)
        for wanted, rows in ((), 1), (("--space", "default"), 1), (("--space", "default.1"), 10):
            code, out, _ = run("log", "export", f"sqlite:{store}", tmp_path / "log.parquet", *wanted)
            assert (code, f"{rows} decisions" in out) == (0, True)
        assert parquet.read_table(tmp_path / "log.parquet").column("new").to_numpy().sum() >= 0
        code, _, errors = run("log", "export", store, tmp_path / "log.parquet", "--space", "nowhere")
        assert (code, "Got 'nowhere'" in errors) == (2, True)
        client.close()
    with Agent.open(tmp_path / "agent.db", refits="never") as agent:
        agent.ask("a", np.eye(2))
    code, out, _ = run("status", f"sqlite:{tmp_path / 'agent.db'}", "--json")
    assert (code, json.loads(out)["decisions"]) == (0, 1)
    code, _, errors = run("log", "export", tmp_path / "agent.db", tmp_path / "x.parquet", "--space", "a")
    assert (code, "one agent" in errors) == (2, True)


def test_tokens_are_made_listed_and_dropped_and_only_their_hashes_are_kept(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    address = ("--store", f"sqlite:{store}")
    code, out, _ = run("serve", "token", *address, "--name", "shop", "--role", "ask", "--role", "tell")
    token = out.strip()
    assert (code, token.startswith("posse_")) == (0, True)
    assert token.encode() not in store.read_bytes()
    run("serve", "token", *address, "--name", "page", "--role", "read")
    assert run("serve", "token", *address)[1] == "page: read\nshop: ask, tell\n"
    for arguments, words in [
        (("--name", "shop", "--role", "ask"), "Got 'shop'"),
        (("--name", "x", "--role", "king"), "Got king"),
        (("--name", "x"), "Got none"),
        (("--role", "ask"), "who will have the token"),
        (("--drop", "nobody"), "Got 'nobody'"),
    ]:
        code, _, errors = run("serve", "token", *address, *arguments)
        assert (code, words in errors) == (2, True), errors
    with served(store, "--host", "0.0.0.0") as server:
        assert "No tokens" not in server.greeting
        client = server.client(token)
        client.post("/v1/ask", task="a", arms=ARMS)
        run("serve", "token", *address, "--drop", "shop")
        threading.Event().wait(2.1)
        assert client.call("POST", "/v1/ask", {"task": "a", "arms": ARMS}).status == 401
        client.close()
    _, said, errors = server.end()
    assert token not in said + errors


def test_what_cannot_come_up_says_why(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    with served(tmp_path / "s.db") as server:
        code, errors = refused("--store", store, "--port", 0)
        assert (code, f"Got it open in process {server.process.pid}" in errors) == (1, True)
        other = f"sqlite:{tmp_path / 'other.db'}"
        code, errors = refused("--store", other, "--port", server.port)
        assert (code, f"port {server.port} must be free to listen at" in errors) == (1, True)
    code, errors = refused("--store", store, "--port", 0, "--host", "0.0.0.0")
    assert (code, "while there are no tokens" in errors) == (2, True)
    code, errors = refused("--store", store, "--port", 0, "--workers", 2)
    assert (code, "--workers must be 1 with a store in SQLite" in errors) == (2, True)
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("PRAGMA user_version = 7")
    code, errors = refused("--store", store, "--port", 0)
    assert (code, "Got 7: a later posse made it" in errors) == (1, True)
    (tmp_path / "text.db").write_text("not a database, but long enough to look at" * 10)
    with sqlite3.connect(tmp_path / "foreign.db") as db:
        db.execute("CREATE TABLE t (x)")
    Agent.open(tmp_path / "agent.db", refits="never").close()
    for name in ("text.db", "foreign.db", "agent.db", "nowhere/s.db"):
        code, errors = refused("--store", f"sqlite:{tmp_path / name}", "--port", 0)
        assert (code, name in errors and "must be" in errors) == (1, True), errors


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    store, told = tmp_path / "s.db", []
    with served(store, most_file=2_000_000) as server:
        client = server.client()
        for number in range(5000):
            asked = client.call("POST", "/v1/ask", {"task": f"t{number % 5}", "arms": ARMS})
            if asked.status != 200:
                break
            reply = client.call("POST", "/v1/tell", {"id": asked.body["id"], "reward": number})
            if reply.status != 200:
                asked = reply
                break
            told.append((asked.body["id"], float(number)))
        assert asked.status == 503
        assert "must be a journal that can be read and written" in asked.detail
        assert 'posse_refused_total{status="503"}' in client.get("/metrics")
        client.close()
        server.end(signal.SIGKILL)
    with served(store) as server:
        client = server.client()
        assert len(told) > 50
        for id, reward in told:
            assert [one["reward"] for one in client.get(f"/v1/decisions/{id}")["rewards"]] == [reward]
        client.post("/v1/ask", task="t1", arms=ARMS)
        client.close()


def test_a_clock_that_jumps_is_an_alarm_and_loses_nothing(tmp_path: Path) -> None:
    clock = Clock()
    service = Service(FileStore(tmp_path / "s.db", clock=clock))
    service.put(Space(name="default", features=("price", "new"), reward_wait=60.0, default_reward=0.0))
    first = service.ask("default", "a", ARMS)
    clock.now -= 3_600.0  # an hour back
    second = service.ask("default", "a", ARMS)
    service.tell(second.id, 1.0)
    service.tell(first.id, 1.0)
    assert "clock: it went backwards by 3600" in service.summary()["alarms"][0]
    third = service.ask("default", "a", ARMS)
    clock.now += 7_200.0  # and two forward: nobody waits any more
    found = service.summary()
    assert (found["rewards"], found["expired"], found["defaults"], found["pending"]) == (2, 1, 1, 0)
    service.tell(third.id, 1.0)
    assert service.summary()["late"] == 1
    service.close()
