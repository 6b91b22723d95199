"""From a log to an agent and back: a fitted model is a warm start, and an agent's journal is a log again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.live_checks import crash, same_state, statistics_of
from typer.testing import CliRunner

from live_world import Clock, arms, assert_same
from posse import Encoder, Model, SharedThompson, load
from posse.cli import app
from posse.core.columns import NumberColumn
from posse.core.statistics import GramStatistics
from posse.live import Agent
from posse.live.files import export

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
import duckdb

from posse.logs import diagnose, evaluate, replay, summarise

VISIT = {"time": "2026-05-06 18:30:00+02:00", "weather": "rain", "price": 39.5, "stock": 20, "distance": 2.5}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """What `posse fit` makes of what `posse example-log` wrote."""
    folder = tmp_path_factory.mktemp("log")
    run = CliRunner()
    log, columns = (
        str(folder / "sales.csv"),
        "--task shop --reward reward --arm offer --propensity propensity",
    )
    fit = ["fit", log, *columns.split(), "--out", str(folder / "model.posse")]
    for arguments in (["example-log", log], fit):
        assert run.invoke(app, arguments).exit_code == 0
    model = load(folder / "model.posse")
    assert isinstance(model, Model)
    return model


def test_a_fitted_model_is_a_warm_start(tmp_path: Path, fitted: Model) -> None:
    offers = list(fitted.encoder.arms)
    agent = Agent.open(tmp_path / "agent.db", model=fitted, refits="inline", seed=0)
    assert agent.status().tasks == len(fitted.tasks)
    learner = agent._desk.engine.learner
    assert learner is not None
    np.testing.assert_allclose(learner.beliefs.theta, fitted.estimate.theta, atol=1e-12)
    table = {name: [value] * len(offers) for name, value in VISIT.items()}
    predicted = fitted.predict({**table, "shop": ["Voss"] * len(offers), "offer": offers})
    decision = agent.ask("Voss", offers, VISIT)
    # optimistic by a standard deviation, with a floor of 0.01
    best = int(np.argmax(predicted.mean + predicted.deviation))
    assert decision.propensities.tolist() == pytest.approx(
        [0.98 if arm == best else 0.01 for arm in range(3)]
    )
    agent.tell(decision.id, 14.0)
    fresh = agent.ask("Geilo", offers, VISIT)
    new = learner.policy.newcomer(learner.state)
    np.testing.assert_array_equal(learner.beliefs.theta[len(fitted.tasks)], new.theta[0])
    agent.tell(fresh.id, 10.0)
    agent.refit()
    n_tasks = len(fitted.tasks) + 1
    visits = {name: [value] * 2 for name, value in VISIT.items()}
    x = fitted.encoder.encode(visits, [decision.arm, fresh.arm])
    told = GramStatistics.from_rows([fitted.tasks.index("Voss"), n_tasks - 1], x, [14.0, 10.0], n_tasks)
    assert_same(statistics_of(agent), fitted.statistics.padded(n_tasks) + told, 1e-12)
    crash(agent)
    again = Agent.open(tmp_path / "agent.db", refits="inline", seed=0)
    same_state(agent, again)
    again.close()
    with pytest.raises(ValueError, match="must be that which it was made with"):
        Agent.open(tmp_path / "agent.db", model=replace(fitted, task="another"))
    with pytest.raises(ValueError, match=r"must have column 'price'\. Got \['time', 'weather'\]"):
        Agent(model=fitted, refits="never").ask("Voss", offers, dict(list(VISIT.items())[:2]))


def test_an_exported_log_has_what_the_agent_has_learned_from(tmp_path: Path) -> None:
    path, out, clock = tmp_path / "agent.db", tmp_path / "log.parquet", Clock()
    agent = Agent.open(path, reward_wait=50.0, floor=0.05, refits="inline", seed=0, clock=clock)
    rng = np.random.default_rng(0)
    kinds = rng.standard_normal((2, 3))
    taste = {f"shop {number:02d}": rng.standard_normal(2) @ kinds for number in range(20)}
    for number in range(2000):
        clock.now += 1.0
        task, offered = f"shop {number % 20:02d}", arms(rng)
        decision = agent.ask(task, offered)
        if number % 7:
            mean = float(offered[int(decision.arm)] @ taste[task])
            agent.tell(decision.id, mean + 0.3 * float(rng.standard_normal()))
    clock.now += 100.0
    agent.status()
    assert CliRunner().invoke(app, ["log", "export", str(path), str(out)]).exit_code == 0
    columns = tuple(NumberColumn(name=f"x{place}", mean=0.0, scale=1.0) for place in range(3))
    plain = Encoder(columns=columns, intercept=False)
    summary = summarise(out, task="task", reward="reward", propensity="propensity", encoder=plain)
    assert list(summary.tasks) == list(agent._desk.engine.numbers)
    assert_same(summary.statistics, statistics_of(agent), 1e-10)
    assert not [item for item in summary.account.findings if item.column == "propensity"]
    found = diagnose(
        out,
        task="task",
        reward="reward",
        propensity="propensity",
        features=[column.name for column in columns],
    )
    assert found.verdict == "share"
    agent.close()


def test_a_journal_with_all_arms_is_a_log_to_evaluate_and_to_replay(tmp_path: Path) -> None:
    path, out = tmp_path / "agent.db", tmp_path / "log.parquet"
    rng, clock = np.random.default_rng(0), Clock()
    taste = rng.standard_normal((4, 3))
    agent = Agent.open(path, features="all", floor=0.1, refits="inline", seed=0, clock=clock)
    chances, rewards, last = [], [], []
    for number in range(600):
        clock.now += 1.0
        offered = arms(rng)
        decision = agent.ask(f"shop {number % 4}", offered)
        reward = float(offered[int(decision.arm)] @ taste[number % 4] + rng.standard_normal())
        agent.tell(decision.id, reward)
        chances.append(decision.propensity)
        rewards.append(reward)
        last.append(int(decision.arm) == len(offered) - 1)
    agent.close()
    written = CliRunner().invoke(app, ["log", "export", str(path), str(out), "--every-arm"])
    assert written.exit_code == 0, written.stderr
    roles = {"task": "task", "reward": "reward", "propensity": "propensity", "decision": "id"}
    settings: dict[str, Any] = {**roles, "chosen": "chosen", "time": "time", "features": ["x0", "x1", "x2"]}
    table = duckdb.sql(f"select *, (arm = '{len(offered) - 1}')::double as own from '{out}'")
    found = evaluate(table, ["column:own", "uniform"], **settings, n_parts=2)
    later = np.arange(600) >= 300  # those of the first window are there to learn from
    by_hand = np.mean(np.array(last)[later] * np.array(rewards)[later] / np.array(chances)[later])
    assert found.pooled("column:own")["ips"].value == pytest.approx(by_hand)
    again = replay(out, [SharedThompson()], **settings).policies["SharedThompson()"]
    assert again.kept > 20
    assert list(again.tasks) == [f"shop {number}" for number in range(4)]


def test_a_journal_without_all_arms_says_so(tmp_path: Path) -> None:
    with Agent.open(tmp_path / "agent.db", refits="never", seed=0) as agent:
        agent.ask("a", np.eye(2))
    with pytest.raises(ValueError, match=r"must keep the features of all arms .* `features` = 'all'"):
        export(tmp_path / "agent.db", tmp_path / "log.parquet", every_arm=True)
    assert not (tmp_path / "log.parquet").exists()


def test_the_log_of_a_shadow_has_the_arms_that_were_played_and_no_propensities(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "agent.db", tmp_path / "log.parquet"
    price = NumberColumn(name="time", mean=0.0, scale=1.0)  # a feature with the name of another column
    encoder = Encoder(columns=(price,), arms=("red", "blue"))
    with Agent.open(path, mode="shadow", encoder=encoder, refits="never", seed=0) as agent:
        decided = [agent.ask("a", ["red", "blue"], {"time": 3.0}) for _ in range(12)]
        for number, decision in enumerate(decided[:10]):
            agent.tell(decision.id, 1.0, played=["red", "blue"][number % 2])
    assert export(path, out) == 12
    rows = parquet.read_table(out).to_pylist()
    assert [row["arm"] for row in rows] == ["red", "blue"] * 5 + [None, None]
    assert [row["decided"] for row in rows] == [decision.arm for decision in decided]
    assert {row["propensity"] for row in rows} == {None}
    assert [row["red: level"] for row in rows[:10]] == [1.0, 0.0] * 5
    assert all(row["time"] > 1e9 for row in rows)
    assert {row["time (feature)"] for row in rows} == {3.0}
