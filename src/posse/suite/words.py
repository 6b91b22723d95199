"""Who wins where, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posse.core.extras import extra
from posse.lab.registry import family_of, label_of, look_of
from posse.suite.league import DEFAULT, MOST, NEAR, ORACLES, SHARE, verdict

with extra("lab"):
    import polars as pl


def winners(data: pl.DataFrame) -> list[dict[str, Any]]:
    """Return who has the least regret where, those who win most often first.

    Parameters
    ----------
    data : DataFrame
        What `compare_scenarios` returns.

    Returns
    -------
    list of dict
        `label` and `summary` of a policy, and `scenarios`, the names of those it wins, with what is to be
        said of each.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for (name,), some in data.group_by("scenario", maintain_order=True):
        rows = some.filter(pl.col("to_best").is_not_null()).sort("to_best").to_dicts()
        if rows:
            found.setdefault(rows[0]["best_of_all"], []).append((str(name), _margin(rows)))
    return [
        {"label": label_of(policy), "summary": look_of(policy).summary, "scenarios": where}
        for policy, where in sorted(found.items(), key=lambda pair: -len(pair[1]))
    ]


def _margin(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return who else is near the best of a scenario, from its rows, the least ratio first."""
    best = rows[0]["best_of_all"]
    others = [row for row in rows if row["policy"] != best and family_of(row["policy"]) != ORACLES]
    near = [f"{label_of(row['policy'])} {row['to_best']:.2f}" for row in others if row["to_best"] <= NEAR]
    if near:
        return f"near it {', '.join(near)}"
    if not others:
        return "nobody else played"
    return f"ahead of {label_of(others[0]['policy'])}, {ratio_in_words(others[0])}"


def ratio_in_words(row: Mapping[str, Any]) -> str:
    """Return the ratio of a row to the best, with its interval.

    Examples
    --------
    >>> ratio_in_words({"to_best": 1.5, "to_best_low": 1.2, "to_best_high": 1.875})
    '1.50 [1.20, 1.88]'
    """
    if row["to_best_low"] is None:
        return f"{row['to_best']:.2f}"
    return f"{row['to_best']:.2f} [{row['to_best_low']:.2f}, {row['to_best_high']:.2f}]"


def verdict_in_words(data: pl.DataFrame) -> str:
    """Return whether the default policy is as near the best as is asked of it, and where it is not.

    Parameters
    ----------
    data : DataFrame
        What `compare_scenarios` returns.
    """
    found = verdict(data)
    if found is None:
        return f"{label_of(DEFAULT)} was not played."
    total = len(found.rows)
    asked = (
        f"{label_of(DEFAULT)}, the policy for those who do not choose, is to be within {NEAR - 1:.0%} of the "
        f"best policy that is no oracle in {SHARE:.0%} of all scenarios, and never above "
        f"{MOST:.2f} times its regret:"
    )
    told = "it is" if found.holds else "it is not"
    said = (
        f"{asked} {told}. It is within {NEAR - 1:.0%} in {found.near} of {total}, {found.near / total:.0%}."
    )
    if not found.far:
        return f"{said} Its largest ratio is {ratio_in_words(found.rows[0])}, in {found.rows[0]['scenario']}."
    where = "; ".join(
        f"{row['scenario']} {ratio_in_words(row)}, behind {label_of(row['best_of_all'])}" for row in found.far
    )
    return f"{said} It is farther in {where}."
