"""What the theorems expect of a problem's size, term by term and in words."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from posse.paper import theory
from posse.paper.theory import Bound, Setting


def expectations(setting: Setting, actions: str) -> dict[str, Any]:
    """Return the bounds for one kind of action sets, and whether sharing should pay, in numbers and in words.

    Parameters
    ----------
    setting : Setting
    actions : "finite" or "infinite"
        Finite action sets, or ellipsoids.

    Returns
    -------
    dict
        `bounds`, term by term: of the paper's algorithm, of any algorithm, and of tasks alone; the formula of
        the `dominant` term; the number of tasks from which sharing pays, `break_even_tasks`, None for never;
        `sharing_expected_to_pay`; sentences `in_words`; and for ellipsoids the rounds to `explore` and to
        `refine`.
    """
    finite = actions == "finite"
    shared = theory.finite_upper(setting) if finite else theory.infinite_upper(setting)
    lower = theory.finite_lower(setting) if finite else theory.infinite_lower(setting)
    alone = theory.finite_independent(setting) if finite else theory.infinite_independent(setting)
    even = (theory.finite_break_even if finite else theory.infinite_break_even)(setting.dim, setting.rank)
    found: dict[str, Any] = {
        "bounds": [{**asdict(bound), "value": bound.value} for bound in (shared, lower, alone)],
        "dominant": shared.dominant.formula,
        "break_even_tasks": even if even < math.inf else None,
        "sharing_expected_to_pay": shared.value < alone.value,
        "in_words": [*_sentences(setting, shared, alone, even)],
    }
    if finite:
        found["in_words"].append(
            f"Theorem 1 hides a factor of {theory.finite_logarithms(setting):.0f} in logarithms"
            + ("." if setting.horizon >= setting.dim**2 else f", and asks for N >= d^2 = {setting.dim**2}.")
        )
    else:
        explore, refine = theory.exploration_rounds(setting)
        found["explore"], found["refine"] = explore, refine
        fits = "" if explore + refine <= setting.horizon else ", more than there are rounds"
        found["in_words"].append(
            f"E2TC should explore for N_1 = {explore:.0f} and N_2 = {refine:.0f} rounds{fits}."
        )
    return found


def _sentences(setting: Setting, shared: Bound, alone: Bound, even: float) -> list[str]:
    """Return sentences about the larger term and about sharing."""
    share = shared.dominant.value / shared.value
    ratio = shared.value / alone.value
    verdict = "should pay" if ratio < 1 else "is not expected to pay"
    when = f"from T = {math.floor(even) + 1:,} on" if even < math.inf else "at no T, because k = d"
    return [
        f"{share:.0%} of {shared.theorem} is {shared.dominant.formula}: {shared.dominant.meaning}.",
        f"Sharing {verdict}: the bound is {ratio:.2f} of that without sharing, {alone.terms[0].formula}. "
        f"It is below it {when}; here T = {setting.n_tasks}.",
    ]
