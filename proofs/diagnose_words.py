"""What the proofs of the diagnosis say, for the page: `python -m proofs.diagnose_words` writes it there."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "howto" / "logs.md"
MEAN, OWN, NEAR = "interval holds the mean gain", "interval holds the log's gain", "within a quarter"
BEGIN, END = "How often is it right? ", "\n\n## Fit\n"


def stored(name: str) -> dict[str, Any]:
    """Return the stored result of a proof."""
    found: dict[str, Any] = json.loads((ROOT / "proofs" / "results" / f"{name}.json").read_text("utf-8"))
    return found


def words(plain: Mapping[str, Any], ugly: Mapping[str, Any]) -> str:
    """Return the paragraph of the page, from the results of `diagnose` and `diagnose-ugly`."""
    shared = [found for cell, found in plain.items() if cell.startswith("low rank")]
    apart = [found for cell, found in plain.items() if cell.startswith("unrelated")]
    plain_all = [*shared, *apart]
    arms = [ugly["related, --arm offer"], ugly["unrelated, --arm offer"]]
    category = ugly["related, no arm"], ugly["unrelated, no arm"]
    off = [found["difference, mean"] for found in apart]
    text = f"""{BEGIN}`python -m proofs diagnose` and `diagnose-ugly` ask on simulated logs. Of logs of 40
        tasks with 20 to 400 rows in 15 dimensions, logged at random or greedily, with and without levels, it
        said “share” in {_shares(shared)} where tasks share three directions, and in {_shares(apart)} where
        they share none, in each of {len(plain_all)} cases{_older(plain)}. Of logs such as this one, with
        {ugly["shops"]} shops and {ugly["rows"]:,} rows and `--arm offer`, it was “share” for
        {_shares(arms[:1])} whose shops have something in common, and for {_shares(arms[1:])} whose shops have
        nothing; with offers as a mere category, for {_shares(category[:1])} and {_shares(category[1:])}. Read
        the interval of the gain as one of about 95 %: {_percent(plain_all, MEAN)} of such intervals held the
        mean gain of such logs on fresh rows, and {_percent(plain_all, OWN)} that of the very log; with `--arm
        offer` {_counts(arms, MEAN)} and {_counts(arms, OWN)}. Where tasks share, the predicted gain was
        within a quarter of that on fresh rows in {_percent(shared, NEAR)} of logs, with `--arm offer` in
        {_counts(arms[:1], NEAR)}. Where they share nothing, it was off by {_range(off, "+.3f")} on average,
        of a gain that is small itself, with `--arm offer` by {arms[1]["difference, mean"]:+.3f}."""
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False, break_long_words=False)


def _older(found: Mapping[str, Any]) -> str:
    """Return what a stored result says of having been measured before a change, if it does."""
    return f" (measured {found['note']})" if "note" in found else ""


def _shares(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return how often the verdict was "share", in cells of equally many logs."""
    (n_logs,) = {sum(found["verdicts"].values()) for found in cells}
    return f"{_range([found['verdicts'].get('share', 0) for found in cells])} of {n_logs}"


def _counts(cells: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return in how many logs of cells something was so, of how many."""
    sizes = [sum(found["verdicts"].values()) for found in cells]
    logs = sum(round(found[name] * size) for found, size in zip(cells, sizes, strict=True))
    return f"{logs} of {sum(sizes)}"


def _percent(cells: Sequence[Mapping[str, Any]], name: str) -> str:
    return f"{_range([round(100 * found[name]) for found in cells])} %"


def _range(values: Sequence[float], form: str = "g") -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def main() -> None:
    """Write the paragraph into the page."""
    page = PAGE.read_text("utf-8")
    said = words(stored("diagnose"), stored("diagnose-ugly"))
    PAGE.write_text(re.sub(f"{re.escape(BEGIN)}.*?(?={END})", lambda _: said, page, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    main()
