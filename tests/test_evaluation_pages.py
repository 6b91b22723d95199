"""Tables about evaluation on pages are those of the stored results."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from proofs.evaluation_pages import PAGE, RESULTS, coverage_table, sharing_table


@pytest.mark.parametrize(("name", "table"), [("intervals", coverage_table), ("sharing", sharing_table)])
def test_tables_are_those_of_the_stored_proofs(name: str, table: Callable[[Any], str]) -> None:
    found = json.loads((RESULTS / f"evaluation-{name}.json").read_text(encoding="utf-8"))
    assert table(found) in PAGE.read_text(encoding="utf-8")


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
