"""The code and the commands of README and of every page run, and print exactly what the page says."""

from pathlib import Path

import numpy as np
import pytest
from docs.pages import ROOT, Outcome, PageRun, pages

SLOW = {
    "docs/explanation/off-policy.md",
    "docs/howto/evaluate.md",
    "docs/howto/command.md",
    "docs/howto/live.md",
    "docs/howto/logs.md",
    "docs/tutorial.md",
}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if str(page.relative_to(ROOT)) in SLOW else [])
        for page in pages()
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what a page writes is not left behind
    run = PageRun(page)
    for outcome in run.outcomes():
        if not outcome.agrees:
            assert outcome.printed == outcome.expected, f"line {outcome.line}; `make numbers` writes it anew"
    for drawn, shown in run.pictures():
        image = pytest.importorskip("matplotlib.image")
        np.testing.assert_array_equal(
            image.imread(drawn), image.imread(shown), f"`make numbers` copies {shown}"
        )


def test_numbers_are_compared_and_seconds_are_not() -> None:
    row = "│ naive │ 33.5 │ 0.02 │\n"
    assert Outcome(1, row, row.replace("0.02", "9.99"), (0, 0)).agrees
    assert not Outcome(1, row, row.replace("33.5", "33.6"), (0, 0)).agrees
    assert not Outcome(1, "regret 31\n", "regret 32\n", (0, 0)).agrees
