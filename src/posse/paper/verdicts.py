"""Claims decided, counted, and held beside what the stored run of many seeds decided."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from posse.core.extras import extra
from posse.paper.claims import Claim
from posse.paper.figure import Comparison, Figure

with extra("lab"):
    import polars as pl

SOURCES = {"paper": "claims of the paper", "posse": "questions of ours"}
STORED = "stored_verdicts.json"


def decide(
    figures: Sequence[Figure], tables: Mapping[str, pl.DataFrame], comparisons: Sequence[Comparison] = ()
) -> dict[str, tuple[Claim, ...]]:
    """Decide the claims of each figure, and of each comparison whose figures are all there, by their names.

    Parameters
    ----------
    figures : sequence of Figure
    tables : mapping
        The long table of each figure, under its name.
    comparisons : sequence of Comparison
    """
    claims = {figure.name: tuple(claim(tables[figure.name]) for claim in figure.claims) for figure in figures}
    for comparison in possible(figures, comparisons):
        claims[comparison.name] = tuple(claim(tables) for claim in comparison.claims)
    return claims


def possible(figures: Sequence[Figure], comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons whose figures are all there."""
    names = {figure.name for figure in figures}
    return [comparison for comparison in comparisons if names >= set(comparison.figures)]


def totals(claims: Iterable[Claim]) -> dict[str, dict[str, int]]:
    """Return how many claims hold, fail and are undecided: of the paper's, and of our questions.

    Examples
    --------
    >>> totals([])
    {'paper': {'holds': 0, 'fails': 0, 'undecided': 0}, 'posse': {'holds': 0, 'fails': 0, 'undecided': 0}}
    """
    counts = {source: {"holds": 0, "fails": 0, "undecided": 0} for source in SOURCES}
    for claim in claims:
        counts[claim.source][claim.verdict] += 1
    return counts


def totals_in_words(claims: Iterable[Claim]) -> list[str]:
    """Say how many claims hold, fail and are undecided, a sentence for each source that has some.

    Examples
    --------
    >>> from posse.paper.claims import Claim
    >>> totals_in_words([Claim("Water is wet.", "paper", "", "holds", (1, 0), "", ())])
    ['Of 1 claim of the paper 1 holds, 0 fail, 0 are undecided.']
    """
    said = []
    for source, counts in totals(claims).items():
        number = sum(counts.values())
        if number:
            what = SOURCES[source] if number > 1 else SOURCES[source].replace("s of", " of", 1)
            verbs = {"holds": ("hold", "holds"), "fails": ("fail", "fails")}
            verbs["undecided"] = ("are undecided", "is undecided")
            parts = (f"{count} {verbs[verdict][count == 1]}" for verdict, count in counts.items())
            said.append(f"Of {number} {what} {', '.join(parts)}.")
    return said


def stored_verdict(name: str, claim: Claim) -> str | None:
    """Return what the stored run decided of a claim, or None if it has none.

    The stored run is that of the gallery. For images other than the paper's there is none.

    Parameters
    ----------
    name : str
        The name of the claim's figure or comparison.
    claim : Claim
    """
    verdict: str | None = _stored()["verdicts"].get(name, {}).get(claim.statement)
    return verdict


def stored_seeds(name: str) -> int:
    """Return the number of seeds of a figure's stored run."""
    return int(_stored()["seeds"][name])


def beside_the_stored(name: str, claim: Claim) -> str:
    """Say what the stored run decided of a claim that is undecided here; nothing of other claims.

    Parameters
    ----------
    name : str
        The name of the claim's figure or comparison.
    claim : Claim
    """
    found = stored_verdict(name, claim)
    if claim.verdict != "undecided" or found is None:
        return ""
    return f"in the stored run of {stored_seeds(name)} seeds: {found}"


def to_store(
    figures: Sequence[Figure], tables: Mapping[str, pl.DataFrame], comparisons: Sequence[Comparison]
) -> Any:
    """Return what is kept of the verdicts of a run: seeds and verdicts by figure."""
    claims = decide(figures, tables, comparisons)
    first = {name: name.partition("+")[0] for name in claims}
    return {
        "seeds": {name: tables[first[name]]["seed"].n_unique() for name in claims},
        "verdicts": {
            name: {claim.statement: claim.verdict for claim in some} for name, some in claims.items()
        },
    }


@cache
def _stored() -> dict[str, Any]:
    text = files("posse.paper").joinpath(STORED).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
