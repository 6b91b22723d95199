"""Tables about evaluation on pages are those of the stored results."""

import json
from typing import Any

import pytest
from proofs.evaluation_pages import PAGE, RESULTS, coverage_table

STORED = RESULTS / "evaluation-intervals.json"


@pytest.mark.skipif(not STORED.exists(), reason="the proof has not been run yet")
def test_the_table_of_coverage_is_that_of_the_stored_proof() -> None:
    found = json.loads(STORED.read_text(encoding="utf-8"))
    assert coverage_table(found) in PAGE.read_text(encoding="utf-8")


def test_a_table_of_coverage_has_a_row_for_each_logger() -> None:
    few: dict[str, Any] = {"asymptotic, ips": 946, "asymptotic, dr": 954, "sequence, dr": 991}
    few |= {f"Bernstein in its place, {name}": {"tasks": 1000} for name in ("ips", "dr")}
    many: dict[str, Any] = {"asymptotic, ips": 953, "asymptotic, dr": 950, "sequence, dr": 990}
    many |= {f"asymptotic by task, {name}": {"tasks": 946, "worst-off task": 903} for name in ("ips", "dr")}
    table = coverage_table({"logs": 1000, "softmax, n = 20": few, "Thompson, n = 200": many})
    assert table.splitlines()[2:] == [
        "| softmax, 20 | 946 | 954 | 1000, Bernstein | 1000, Bernstein | 991 |",
        "| Thompson, 200 | 953 | 950 | 946 (903) | 946 (903) | 990 |",
    ]
