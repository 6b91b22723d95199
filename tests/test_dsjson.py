"""Logs in dsjson say what tables with a row for every arm say."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.decision_logs import Played, World, play

from posse.logs import evaluate, read_dsjson

LOG = play(World.draw(0, n_tasks=4, n_arms=3, dim=2), 50, seed=1)


def events(log: Played) -> list[dict[str, Any]]:
    """Return a log as events: the action that was played comes first in `a` and `p`."""
    found = []
    for row, arm in enumerate(log.arms.tolist()):
        order = [arm, *(other for other in range(3) if other != arm)]
        found.append(
            {
                "_label_cost": -log.rewards[row],
                "_label_probability": log.propensities[row],
                "_label_Action": arm + 1,
                "_labelIndex": arm,
                "EventId": f"d{row}",
                "Timestamp": f"2026-01-01T00:{row // 60:02}:{row % 60:02}Z",
                "a": [other + 1 for other in order],
                "p": log.chances[row, order].tolist(),
                "c": {
                    "Shop": {"id": f"shop {log.tasks[row]:02}", "x": log.contexts[row, 1:].tolist()},
                    "_multi": [{"Offer": [{"is": name}]} for name in ("blue", "green", "red")],
                },
            }
        )
    return found


def write(path: Path, lines: list[Any]) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["log.dsjson", "log.dsjson.gz"])
def test_dsjson_says_what_a_table_says(tmp_path: Path, name: str) -> None:
    late = {"EventId": "d0", "v": 1.0}  # a reward that came late, and a decision that nobody saw
    unseen = {**events(LOG)[0], "EventId": "unseen", "_skipLearn": True}
    path = write(tmp_path / name, [*events(LOG), late, unseen, ""])
    settings: dict[str, Any] = {"reward": "reward", "propensity": "propensity", "n_parts": 2}
    found = evaluate(
        path,
        ["arm:red", "uniform"],
        task="Shop.id",
        arm="Offer.is",
        decision="decision",
        chosen="chosen",
        features=["Shop.x.0", "Shop.x.1"],
        **settings,
    )
    expected = evaluate(
        LOG.long_table(),
        ["arm:red", "uniform"],
        task="shop",
        arm="offer",
        decision="id",
        chosen="was",
        features=["x1", "x2"],
        **{**settings, "reward": "sold", "propensity": "chance"},
    )
    assert len(found.rows) == len(expected.rows)
    for one, other in zip(found.rows, expected.rows, strict=True):
        assert (one.policy, one.estimator, one.task) == (other.policy, other.estimator, other.task)
        assert one.value == pytest.approx(other.value)
        assert one.low == pytest.approx(other.low)


def test_columns_have_the_kinds_of_their_values(tmp_path: Path) -> None:
    first, second = events(LOG)[:2]
    first["c"]["time"], second["c"]["_tag"] = "noon", "left out"
    first["c"]["new"], second["c"]["new"] = True, 3
    table = read_dsjson([write(tmp_path / "a.json", [first]), write(tmp_path / "b.json", [second])])
    assert table.num_rows == 6
    assert {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)} == {
        "decision": "string",
        "time": "string",
        "action": "string",
        "chosen": "bool",
        "propensity": "double",
        "reward": "double",
        "Shop.id": "string",
        "Shop.x.0": "double",
        "Shop.x.1": "double",
        "Offer.is": "string",
        "time (feature)": "string",
        "new": "string",
    }
    np.testing.assert_allclose(
        [reward for reward in table["reward"].to_pylist() if reward is not None], LOG.rewards[:2]
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a": [1, 2]}, r"must be of all 3 actions. Got \[1, 2\] and .* in line 1 of "),
        ({"p": None}, "must have actions in `c._multi`, their numbers in `a` and probabilities in `p`"),
        ({"c": {"Shop": {}}}, r"must have actions in `c._multi`.* Got line 1 of"),
        ({"pdrop": 0.5}, r"decisions must all be in a log in dsjson.* Got `pdrop` = 0.5 in line 1"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_dsjson(write(tmp_path / "log.dsjson", [{**events(LOG)[0], **change}]))


@pytest.mark.parametrize("line", ["{", "[1, 2]"])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"must have a JSON object in every line\. Got line 2 of"):
        read_dsjson(write(tmp_path / "log.dsjson", [events(LOG)[0], line]))
