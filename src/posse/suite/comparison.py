"""Policies compared over scenarios, by ratios to the best that learns each task alone and the best oracle."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.lab.engines import Workers
from posse.lab.grid import ALONE, Progress, run_experiments
from posse.lab.registry import family_of, in_order, label_of, look_of, name_policies, style_of
from posse.lab.results import final_rounds, mean_and_ends
from posse.lab.store import earlier_results
from posse.numerics.checks import Array
from posse.suite.scenarios import SCENARIOS, SHARED, Scenario
from posse.suite.sharing import MEAN_LIMIT, WORST_LIMIT, paired_ratio, promise, worse_off, worst_off_regrets
from posse.viz.chart import Lane, LaneRow

with extra("lab"):
    import polars as pl

REFERENCES = {"independent": "each task alone", "oracle": "oracles"}
FAMILIES = ("posse", "the paper", "each task alone", "rivals", "oracles", "others")
XLABEL = "regret relative to the best policy that learns each task alone, 95 % intervals"


@dataclass(frozen=True)
class Suite:
    """Scenarios that were played and compared.

    Attributes
    ----------
    path : Path
        The page.
    scenarios : tuple of Scenario
        All that the page shows.
    data : DataFrame
        What it shows, as `compare_scenarios` returns it.
    left_out : tuple of str
        Why scenarios whose results lie in the folder are not on the page, a sentence each.
    """

    path: Path
    scenarios: tuple[Scenario, ...]
    data: pl.DataFrame
    left_out: tuple[str, ...] = ()


def compare(
    scenarios: Sequence[Scenario],
    *,
    seeds: int,
    out: Path,
    policies: Sequence[Any] | Mapping[str, Any] = (),
    workers: Workers = ALONE,
    known: Iterable[Scenario] = tuple(SCENARIOS.values()),
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Suite:
    """Run what is not yet run of some scenarios, and write a page that shows who wins where, by how much.

    Every finished run is saved at once, and the same call goes on where an interrupted one stopped. Writes
    OUT/comparison.html, OUT/comparison.csv, OUT/comparison.png, OUT/comparison.svg and a folder of results
    for each scenario.

    Parameters
    ----------
    scenarios : sequence of Scenario
    seeds : int
        Seeds 0, ..., seeds - 1 of each scenario.
    out : Path
        The folder of results.
    policies : sequence, or mapping of names
        Further policies for all scenarios, as `Experiment` takes them.
    workers : Workers
        Who plays: by default this process.
    known : iterable of Scenario
        The page also shows those of them that earlier calls left in `out`.
    on_progress : callable, optional
        Told after every run.
    """
    import posse.viz.lanes  # noqa: F401 - a missing extra is said before anything is played

    clock = time.perf_counter()
    played = [scenario.with_policies(policies) for scenario in scenarios]
    for scenario in played if policies else ():
        scenario.experiment.check(scenario.experiment.cells[0])
    experiments = [scenario.experiment for scenario in played]
    tables = run_experiments(experiments, seeds=seeds, out=out, workers=workers, on_progress=on_progress)
    everyone = (*(scenario.with_policies(policies) for scenario in known), *played)
    everything = {scenario.name: scenario for scenario in everyone}
    others = (some.experiment for some in everything.values() if some.experiment.name not in tables)
    earlier, left_out = earlier_results(others, out)
    tables |= earlier
    shown = [scenario for scenario in everything.values() if scenario.experiment.name in tables]
    minutes = (time.perf_counter() - clock) / 60
    data = write_comparison(shown, tables, out, minutes=minutes)
    return Suite(out / "comparison.html", tuple(shown), data, left_out)


def write_comparison(
    scenarios: Sequence[Scenario], tables: Mapping[str, pl.DataFrame], out: Path, *, minutes: float
) -> pl.DataFrame:
    """Compare policies over scenarios, write the page, and return the table that it shows.

    Writes OUT/comparison.html, OUT/comparison.csv, OUT/comparison.png and OUT/comparison.svg.

    Parameters
    ----------
    scenarios : sequence of Scenario
    tables : mapping
        The long table of each scenario, under the name of its experiment.
    out : Path
        The folder to write to.
    minutes : float
        How long the last call took.
    """
    from posse.viz.lanes import draw_lanes  # who only asks which scenarios there are needs no drawing
    from posse.viz.pages import save_picture, write_page

    data = compare_scenarios(scenarios, tables)
    write_atomically(out / "comparison.csv", data.write_csv)
    seeds = sorted(set(data["n_seeds"]))
    counted = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    title = f"Policies compared over scenarios, {counted} seed{'s' if seeds[-1] > 1 else ''} each"
    picture = draw_lanes(lane_rows(data), title, XLABEL)
    write_page(
        out / "comparison.html",
        "comparison.html.j2",
        scenarios=scenarios,
        summaries={scenario.name: headlines(scenario, data) for scenario in scenarios},
        policies={name: (look_of(name).label, look_of(name).summary) for name in in_order(data["policy"])},
        rows=data.partition_by("scenario", as_dict=True, maintain_order=True),
        shared=[name for name in in_order(data["policy"]) if family_of(name) == "posse"],
        promise=promise(data),
        broken=worse_off(data),
        limits={"mean": MEAN_LIMIT, "worst": WORST_LIMIT},
        image=save_picture(picture, out / "comparison"),
        command=commands(scenarios, tables, out),
        minutes=minutes,
    )
    return data


def commands(scenarios: Sequence[Scenario], tables: Mapping[str, pl.DataFrame], out: Path) -> str:
    """Return the commands that make the results of some scenarios again, one for each number of seeds."""
    by_seeds: dict[int, list[str]] = {}
    for scenario in scenarios:
        by_seeds.setdefault(tables[scenario.experiment.name]["seed"].n_unique(), []).append(scenario.name)
    policies = name_policies(scenarios[0].experiment.policies)
    typed = [name for name in scenarios[0].further if policies[name] == name]
    told = [word for name in typed for word in ("--policy", name)]
    lines = [
        shlex.join(["posse", "compare", *names, *told, "--seeds", str(n_seeds), "--out", str(out)])
        for n_seeds, names in by_seeds.items()
    ]
    others = [name for name in scenarios[0].further if name not in typed]
    return "\n".join([*lines, *(f"# in a program, which adds the policy {name}" for name in others)])


def compare_scenarios(scenarios: Iterable[Scenario], tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return what is compared in each scenario, under each other, with `group`, `scenario` and `title`.

    The other columns are those of `relative_regrets`, and beside them those of `worst_off_regrets`.

    Parameters
    ----------
    scenarios : iterable of Scenario
    tables : mapping
        The long table of each scenario, under the name of its experiment.
    """
    return pl.concat(
        _batch(tables[scenario.experiment.name], scenario).select(
            pl.lit(scenario.group).alias("group"),
            pl.lit(scenario.name).alias("scenario"),
            pl.lit(scenario.title).alias("title"),
            pl.all(),
        )
        for scenario in scenarios
    )


def _batch(table: pl.DataFrame, scenario: Scenario) -> pl.DataFrame:
    worst = worst_off_regrets(table, scenario.experiment)
    return relative_regrets(table).join(worst, on="policy", how="left", maintain_order="left")


def relative_regrets(table: pl.DataFrame) -> pl.DataFrame:
    """Return the final regret of each policy, and its ratio to the best independent policy and oracle.

    The best one is that of the least mean regret. A ratio is taken within each seed, where both met the
    same problem: it is the geometric mean over seeds, with Student's t interval of the logarithms.

    Parameters
    ----------
    table : DataFrame
        The long table of one problem.

    Returns
    -------
    DataFrame
        A row per policy, in the order of the table: `policy`, `n_seeds`, `regret_per_task`, `ci_low` and
        `ci_high`; then, for `independent` and `oracle`, the name of the `best_...` one and the ratio
        `to_...` with `to_..._low` and `to_..._high`. Null are references that were not played, ratios
        where a regret is not above 0, and the ends of intervals from one seed.
    """
    regrets = final_rounds(table).pivot("policy", index="seed", values="regret_per_task").drop("seed")
    samples = {policy: regrets[policy].to_numpy() for policy in regrets.columns}
    best = {kind: _best(samples, family) for kind, family in REFERENCES.items()}
    rows = []
    for policy, sample in samples.items():
        mean, low, high = mean_and_ends(sample)
        row: dict[str, Any] = {"policy": policy, "n_seeds": sample.size, "regret_per_task": mean}
        row |= {"ci_low": low, "ci_high": high}
        for kind, name in best.items():
            ratio, low, high = (None, None, None) if name is None else paired_ratio(sample, samples[name])
            row |= {f"best_{kind}": name, f"to_{kind}": ratio, f"to_{kind}_low": low, f"to_{kind}_high": high}
        rows.append(row)
    words = ("policy", "best_independent", "best_oracle")
    kinds = {"n_seeds": pl.Int64, **dict.fromkeys(words, pl.String)}
    return pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in rows[0]})


def headlines(scenario: Scenario, data: pl.DataFrame) -> dict[str, dict[str, Any] | None]:
    """Return the rows of `compare_scenarios` that sum a scenario up, by what they stand for."""
    rows = {row["policy"]: row for row in data.filter(scenario=scenario.name).to_dicts()}
    first = next(iter(rows.values()))
    chosen = {
        "best independent": first["best_independent"],
        **{name: name for name in SHARED},
        "the paper's": scenario.paper,
        "oracle": first["best_oracle"],
        **{name: name for name in scenario.further},
    }
    return {heading: rows.get(policy) for heading, policy in chosen.items()}


def lane_rows(data: pl.DataFrame) -> list[LaneRow]:
    """Return what `compare_scenarios` found as rows of a picture, policies in order of their families."""
    order = sorted(in_order(data["policy"]), key=lambda name: FAMILIES.index(family_of(name)))
    return [
        LaneRow(
            group=group,
            name=scenario,
            title=title,
            lanes=tuple(
                _lane(row) for row in sorted(some.to_dicts(), key=lambda row: order.index(row["policy"]))
            ),
        )
        for (group, scenario, title), some in data.group_by(
            ["group", "scenario", "title"], maintain_order=True
        )
    ]


def _lane(row: Mapping[str, Any]) -> Lane:
    return Lane(
        label=label_of(row["policy"]),
        family=family_of(row["policy"]),
        style=style_of(row["policy"]),
        middle=row["to_independent"],
        low=row["to_independent_low"],
        high=row["to_independent_high"],
    )


def _best(samples: Mapping[str, Array], family: str) -> str | None:
    members = [name for name in samples if family_of(name) == family]
    return min(members, key=lambda name: float(samples[name].mean()), default=None)
