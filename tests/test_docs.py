"""The code of README and of every page runs, top to bottom, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        code, expected = block.groups()
        line = text[: block.start(1)].count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
        if expected is not None:
            assert NUMBER.sub("#", printed.getvalue()) == NUMBER.sub("#", expected)
            found, stated = (
                [float(number) for number in NUMBER.findall(output)]
                for output in (printed.getvalue(), expected)
            )
            # another processor may round sums otherwise, and a policy that learns then takes another path
            np.testing.assert_allclose(found, stated, rtol=0.1, atol=0.02)
