"""The page of the league, drawn from what `compare_scenarios` returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.lab.registry import family_of, in_order, label_of, look_of
from posse.suite.comparison import headlines
from posse.suite.league import LEVEL, MOST, NEAR, ORACLES, SHARE, Table, league_tables, verdict
from posse.suite.scenario import Scenario
from posse.suite.sharing import MEAN_LIMIT, WORST_LIMIT, promise, worse_off
from posse.suite.words import verdict_in_words, winners
from posse.viz.chart import HeatMap, Ranking
from posse.viz.heat import draw_heat
from posse.viz.pages import save_picture, write_page
from posse.viz.ranks import draw_ranks

with extra("lab"):
    import polars as pl

FAMILIES = ("posse", "the paper", "each task alone", "rivals", "others", ORACLES)


def write_comparison(
    scenarios: Sequence[Scenario], data: pl.DataFrame, out: Path, *, commands: str, minutes: float | None
) -> None:
    """Write the page of a comparison, its pictures, and its numbers.

    Writes OUT/comparison.html and OUT/comparison.csv; the heat map as OUT/comparison.png and .svg; and the
    ranks of each kind of scenarios as OUT/comparison-ranks-1.png and .svg, and so on.

    Parameters
    ----------
    scenarios : sequence of Scenario
        Those that are shown.
    data : DataFrame
        What `compare_scenarios` returns of them.
    out : Path
        The folder to write to.
    commands : str
        What makes the results again.
    minutes : float, optional
        How long the last call took; None if nothing was played.
    """
    write_atomically(out / "comparison.csv", data.write_csv)
    tables = league_tables(data)
    write_page(
        out / "comparison.html",
        "comparison.html.j2",
        scenarios=scenarios,
        summaries={scenario.name: headlines(scenario, data) for scenario in scenarios},
        policies={name: (look_of(name).label, look_of(name).summary) for name in in_order(data["policy"])},
        rows=data.partition_by("scenario", as_dict=True, maintain_order=True),
        shared=[name for name in in_order(data["policy"]) if family_of(name) == "posse"],
        verdict=verdict(data),
        judged=verdict_in_words(data),
        asked={"near": NEAR, "most": MOST, "share": SHARE, "level": LEVEL},
        winners=winners(data),
        tables=[
            (table, save_picture(draw_ranks(ranking(table)), out / f"comparison-ranks-{number}"))
            for number, table in enumerate(tables, 1)
        ],
        promise=promise(data),
        broken=worse_off(data),
        limits={"mean": MEAN_LIMIT, "worst": WORST_LIMIT},
        image=save_picture(draw_heat(heat_map(data)), out / "comparison"),
        command=commands,
        minutes=minutes,
    )


def heat_map(data: pl.DataFrame) -> HeatMap:
    """Return the ratios of a comparison to the best policy of each scenario, oracles at the end."""
    order = sorted(in_order(data["policy"]), key=lambda name: FAMILIES.index(family_of(name)))
    scenarios = data.select("group", "scenario").unique(maintain_order=True).rows()
    found = {(scenario, name): ratio for scenario, name, ratio in _ratios(data).iter_rows()}
    return HeatMap(
        title=f"Regret relative to the best policy that is no oracle, {seeds_in_words(data)}",
        rows=tuple(scenarios),
        columns=tuple((family_of(name), label_of(name)) for name in order),
        values=tuple(tuple(found.get((name, policy)) for policy in order) for _, name in scenarios),
    )


def seeds_in_words(data: pl.DataFrame) -> str:
    """Return how many seeds the scenarios of a comparison have."""
    least, most = min(data["n_seeds"]), max(data["n_seeds"])
    return f"{least} to {most} seeds" if least < most else f"{most} seed{'s' if most > 1 else ''}"


def _ratios(data: pl.DataFrame) -> pl.DataFrame:
    return data.select("scenario", "policy", "to_best")


def ranking(table: Table) -> Ranking:
    """Return the picture of a table's mean ranks."""
    n_policies, n_scenarios = len(table.standings), len(table.scenarios)
    return Ranking(
        title=f"Mean ranks of {n_policies} policies on {n_scenarios} scenarios, {table.kind}",
        names=tuple(label_of(some.policy) for some in table.standings),
        ranks=tuple(some.rank for some in table.standings),
        groups=table.groups,
        critical=table.critical,
    )
