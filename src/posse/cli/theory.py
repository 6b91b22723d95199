"""`posse theory`: what the paper's theorems say of a problem's size."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from posse.cli.shared import plain_errors
from posse.paper import theory as bounds
from posse.paper.theory import Bound, Setting


def theory(
    dim: Annotated[int, typer.Option(help="d, the number of features.")] = 20,
    rank: Annotated[int, typer.Option(help="k, the dimension of the shared representation.")] = 2,
    tasks: Annotated[int, typer.Option(help="T, the number of tasks.")] = 50,
    rounds: Annotated[int, typer.Option(help="N, the number of rounds.")] = 10_000,
    arms: Annotated[int, typer.Option(help="K, the arms on offer in each round.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Say what regret the paper's theorems expect, term by term, and whether sharing should pay.

    Constants are 1 and logarithms are left out: compare terms with each other, not with a measured regret.

    For example: posse theory --dim 30 --rank 3 --tasks 100 --rounds 10000
    """
    with plain_errors():
        setting = Setting(rounds=rounds, tasks=tasks, dim=dim, rank=rank, arms=arms)
        report = {name: expectations(setting, name) for name in ("finite", "infinite")}
        if as_json:
            print(json.dumps({"setting": asdict(setting), **report}, indent=2))
            return
        console = Console()
        titles = {"finite": "Finite action sets", "infinite": "Ellipsoids"}
        for name, found in report.items():
            table = Table("", "term", title=titles[name], title_justify="left", caption_justify="left")
            for heading in ("all tasks", "per task"):
                table.add_column(heading, justify="right")
            table.add_column("paid for")
            for bound in found["bounds"]:
                for term in bound["terms"]:
                    value = term["value"]
                    row = (f"{value:,.0f}", f"{value / tasks:,.1f}", term["meaning"])
                    table.add_row(bound["theorem"], term["formula"], *row)
            console.print(table)
            for sentence in found["in_words"]:
                console.print(sentence, highlight=False)
            console.print()


def expectations(setting: Setting, actions: str) -> dict[str, Any]:
    """Return the bounds for one kind of action sets, and what follows from them, in words."""
    finite = actions == "finite"
    shared = bounds.finite_upper(setting) if finite else bounds.infinite_upper(setting)
    lower = bounds.finite_lower(setting) if finite else bounds.infinite_lower(setting)
    alone = bounds.finite_independent(setting) if finite else bounds.infinite_independent(setting)
    even = (bounds.finite_break_even if finite else bounds.infinite_break_even)(setting.dim, setting.rank)
    found: dict[str, Any] = {
        "bounds": [{**asdict(bound), "value": bound.value} for bound in (shared, lower, alone)],
        "dominant": shared.dominant.formula,
        "break_even_tasks": even if even < math.inf else None,
        "sharing_expected_to_pay": shared.value < alone.value,
        "in_words": [*in_words(setting, shared, alone, even)],
    }
    if finite:
        found["in_words"].append(
            f"Theorem 1 hides a factor of {bounds.finite_logarithms(setting):.0f} in logarithms"
            + ("." if setting.rounds >= setting.dim**2 else f", and asks for N >= d^2 = {setting.dim**2}.")
        )
    else:
        explore, refine = bounds.exploration_rounds(setting)
        found["explore"], found["refine"] = explore, refine
        fits = "" if explore + refine <= setting.rounds else ", more than there are rounds"
        found["in_words"].append(
            f"E2TC should explore for N_1 = {explore:.0f} and N_2 = {refine:.0f} rounds{fits}."
        )
    return found


def in_words(setting: Setting, shared: Bound, alone: Bound, even: float) -> list[str]:
    """Return sentences about the larger term and about sharing."""
    share = shared.dominant.value / shared.value
    ratio = shared.value / alone.value
    verdict = "should pay" if ratio < 1 else "is not expected to pay"
    when = f"from T = {math.floor(even) + 1:,} on" if even < math.inf else "at no T, because k = d"
    return [
        f"{share:.0%} of {shared.theorem} is {shared.dominant.formula}: {shared.dominant.meaning}.",
        f"Sharing {verdict}: the bound is {ratio:.2f} of that without sharing, {alone.terms[0].formula}. "
        f"It is below it {when}; here T = {setting.tasks}.",
    ]
