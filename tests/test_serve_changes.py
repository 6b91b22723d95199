"""Spaces that an operator changes while others ask and tell: nobody sees anything of it but its effect."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from live_world import Clock
from posse import Agent, IndependentGreedy
from serve_world import Served, served, wait_until

pytestmark = pytest.mark.slow
pytest.importorskip("uvicorn")


def traffic(server: Served, seen: Counter[int], made: list[str], stop: threading.Event) -> None:
    """Ask and tell until it is enough; count statuses."""
    client = server.client()
    arms = {"x": {"price": 1.0}, "y": {"price": 2.0}}
    while not stop.is_set():
        asked = client.call("POST", "/v1/ask", {"task": "t", "arms": arms, "space": "m"})
        seen[asked.status] += 1
        if asked.status == 200:
            made.append(asked.body["id"])
            seen[client.call("POST", "/v1/tell", {"id": made[-1], "reward": 1.0}).status] += 1
    client.close()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_space_changes_in_place_and_others_begin_while_many_ask_and_tell(
    tmp_path: Path, durability: str
) -> None:
    with served(tmp_path / "s.db", "--durability", durability) as server:
        admin = server.client()
        admin.post("/v1/spaces", name="m", features=["price"])
        seen: list[Counter[int]] = [Counter() for _ in range(6)]
        made: list[list[str]] = [[] for _ in seen]
        stop = threading.Event()
        threads = [
            threading.Thread(target=traffic, args=(server, *own, stop))
            for own in zip(seen, made, strict=True)
        ]
        for thread in threads:
            thread.start()
        for turn in range(25):
            before = sum(map(len, made))
            admin.post("/v1/spaces", name="m", features=["price"], floor=0.01 + 0.01 * turn)
            admin.post("/v1/spaces", name=f"other-{turn}", vectors=True)
            while sum(map(len, made)) < before + 12 and all(thread.is_alive() for thread in threads):
                threading.Event().wait(0.002)
        stop.set()
        for thread in threads:
            thread.join()
        assert set().union(*seen) == {200}
        found = admin.get("/v1/status")["spaces"]["m"]
        assert found["decisions"] == found["rewards"] == sum(map(len, made))
        answer = admin.post("/v1/ask", task="t", arms={"x": {"price": 1}, "y": {"price": 2}}, space="m")
        assert min(answer["propensities"].values()) >= 0.25
        admin.close()
    assert server.end()[0] == 0
    with served(tmp_path / "s.db") as server:
        admin = server.client()
        spaces = {one["space"]["name"]: one["space"] for one in admin.get("/v1/spaces")["spaces"]}
        assert (spaces["m"]["floor"], len(spaces)) == (0.25, 26)
        admin.close()


def test_the_demonstration_fills_both_of_its_spaces_and_ends_when_it_is_interrupted() -> None:
    server = Served("--demo", "--port", 0)
    client = server.client()

    def alive() -> bool:
        spaces = client.get("/v1/status")["spaces"]
        assert set(spaces) == {"shops", "banners"}
        return all(space["decisions"] and space["rewards"] for space in spaces.values())

    wait_until(alive)
    assert client.get("/v1/tasks?space=shops")["tasks"]
    client.close()
    code, said, errors = server.end(signal.SIGINT)
    assert (code, "Traceback" in errors) == (0, False), errors
    assert "A month of 50 shops is played" in said


def test_an_agent_goes_by_changed_settings_and_so_it_does_when_it_is_opened_again(tmp_path: Path) -> None:
    clock, arms = Clock(), {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    agent = Agent.open(tmp_path / "a.db", refits="inline", floor=0.0, seed=0, clock=clock)
    for _ in range(100):
        decision = agent.ask("t", arms)
        agent.tell(decision.id, float(decision.arm == "a"))
    assert min(agent.ask("t", arms).propensities) < 0.1
    agent.change(floor=0.2, features="all")
    assert min(agent.ask("t", arms).propensities) >= 0.2
    assert agent.find(agent.ask("t", arms).id).offered is not None  # type: ignore[union-attr]
    agent.change(publish="manual")
    assert agent.status().automatic is False
    agent.refit()
    assert agent.status().version == agent.versions()[-2].number
    agent.change(control=1.0, control_arm="b")
    assert agent.ask("t", arms).propensities.tolist() == [0.0, 1.0]
    for wrong, words in [
        ({"rewards": "sum"}, "`rewards` of the agent must be 'first', as it was made"),
        ({"refits": "never"}, "`refits` of change must be 'inline'"),
        ({"floor": 2.0}, "Got 2.0"),
    ]:
        with pytest.raises(ValueError, match=words):
            agent.change(**wrong)  # type: ignore[arg-type]
    agent.close()
    again = Agent.open(tmp_path / "a.db", clock=clock)
    assert again.ask("t", arms).propensities.tolist() == [0.0, 1.0]
    again.change(control=0.0)
    assert min(again.ask("t", arms).propensities) >= 0.2
    assert again.status().automatic is False
    again.close()


def test_an_agent_in_memory_changes_too_and_one_that_forgets_cannot_publish_by_hand() -> None:
    agent = Agent(floor=0.0)
    agent.change(publish="manual", floor=0.1)
    assert agent.status().automatic is False
    forgetful = Agent(IndependentGreedy(memory=0.9))
    with pytest.raises(ValueError, match="must be 'auto' with a policy that forgets"):
        forgetful.change(publish="manual")
