"""`posse status` and `posse log export`, on the file of an agent that is open."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from posse import SharedUCB
from posse.cli import app
from posse.live import Agent


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_status_and_log_of_an_agent_that_runs(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "agent.db"
    with Agent.open(path, refits="never", control=0.5, control_arm=0, seed=0) as agent:
        for n in range(40):
            decision = agent.ask(f"shop {n % 10}", np.eye(3))
            if n % 4:
                agent.tell(decision.id, float(decision.arm))
        code, out, _ = run("status", path)
        assert code == 0
        for text in (
            "decisions",
            "40",
            "rewards that count",
            "30",
            "No alarms.",
            "lift over the control group",
        ):
            assert text in out
        code, out, _ = run("status", path, "--json")
        found = json.loads(out)
        assert (found["decisions"], found["rewards"], found["pending"], found["alarms"]) == (40, 30, 10, [])
        code, out, _ = run("log", "export", path, tmp_path / "log.parquet")
        assert (code, "40 decisions in" in out) == (0, True)
    assert parquet.read_table(tmp_path / "log.parquet").column("x2").to_numpy().sum() >= 0


def test_alarms_and_bad_files_have_exit_codes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Agent.open(path, SharedUCB(), floor=0.0, refits="never", seed=0) as agent:
        agent.ask_many(["a"] * 600, [np.random.default_rng(0).standard_normal((3, 2))] * 600)
    code, out, _ = run("status", path)
    assert code == 3
    assert "Alarm: entropy: it has stopped exploring" in out
    code, _, err = run("status", tmp_path / "nowhere.db")
    assert (code, "no such file" in err) == (1, True)
    code, _, err = run("log", "import", path, tmp_path / "x.parquet")
    assert (code, "Known are export" in err) == (2, True)
