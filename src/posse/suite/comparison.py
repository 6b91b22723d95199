"""Policies compared over scenarios: ratios to the best of all, of those that learn alone, and of oracles."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.lab.engines import Workers
from posse.lab.experiment import Experiment
from posse.lab.grid import ALONE, Progress, run_experiments
from posse.lab.registry import family_of, name_policies
from posse.lab.results import final_rounds, mean_and_ends
from posse.lab.store import earlier_results
from posse.numerics.checks import Array
from posse.suite.contestants import SHARED
from posse.suite.league import ORACLES
from posse.suite.scenario import Scenario
from posse.suite.scenarios import SCENARIOS
from posse.suite.sharing import paired_ratio, ratio_of_means, worst_off_regrets

with extra("lab"):
    import polars as pl

REFERENCES = {"independent": "each task alone", "oracle": ORACLES}


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
    from posse.suite.page import write_comparison  # who only asks which scenarios there are draws nothing

    clock = time.perf_counter()
    played, unfit = seated(scenarios, policies)
    studies = [study for scenario in played for study in scenario.studies]
    tables = run_experiments(studies, seeds=seeds, out=out, workers=workers, on_progress=on_progress)
    everyone = {
        scenario.name: scenario for scenario in (*(some.with_policies(policies) for some in known), *played)
    }
    others = (study for some in everyone.values() for study in some.studies if study.name not in tables)
    earlier, left_out = earlier_results(others, out)
    found = together(everyone.values(), tables | earlier)
    shown = [scenario for scenario in everyone.values() if scenario.name in found]
    minutes = (time.perf_counter() - clock) / 60
    data = compare_scenarios(shown, found)
    write_comparison(shown, data, out, commands=commands(shown, data, out), minutes=minutes)
    return Suite(out / "comparison.html", tuple(shown), data, (*unfit, *left_out))


def seated(
    scenarios: Sequence[Scenario], policies: Sequence[Any] | Mapping[str, Any]
) -> tuple[list[Scenario], tuple[str, ...]]:
    """Return scenarios with those of some further policies that can play them, and why others cannot.

    A policy that can play none of them is an error.
    """
    joined, sentences, faults = [], [], dict[str, Exception]()
    playing: set[str] = set()
    for scenario in scenarios:
        with_all = scenario.with_policies(policies)
        fit: list[Experiment] = []
        for study in with_all.newcomers:
            try:
                study.check(study.cells[0])
            except (ValueError, PosseError) as fault:
                faults.setdefault(study.names[0], fault)
                sentences.append(f"{study.names[0]} is left out of {scenario.name}: {fault}")
            else:
                fit.append(study)
        playing.update(name for study in (scenario.experiment, *fit) for name in study.names)
        joined.append(replace(with_all, newcomers=tuple(fit)))
    for name, error in faults.items():
        if name not in playing:
            raise error
    return joined, tuple(sentences)


def together(scenarios: Iterable[Scenario], tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return one table for each scenario that was played, of its standing policies and its newcomers.

    Of newcomers with other seeds those that all have are kept.

    Parameters
    ----------
    scenarios : iterable of Scenario
    tables : mapping
        The long table of each study, under its name.
    """
    found = {}
    for scenario in scenarios:
        if scenario.experiment.name in tables:
            parts = [tables[study.name] for study in scenario.studies if study.name in tables]
            seeds = set.intersection(*(set(part["seed"]) for part in parts))
            found[scenario.name] = pl.concat(part.filter(pl.col("seed").is_in(seeds)) for part in parts)
    return found


def commands(scenarios: Sequence[Scenario], data: pl.DataFrame, out: Path) -> str:
    """Return the commands that make the results of some scenarios again, one for each number of seeds."""
    by_seeds: dict[int, list[str]] = {}
    for name, n_seeds in data.select("scenario", "n_seeds").unique(maintain_order=True).iter_rows():
        by_seeds.setdefault(n_seeds, []).append(name)
    typed, others = _newcomers(scenarios)
    told = [word for name in typed for word in ("--policy", name)]
    lines = []
    for n_seeds, names in by_seeds.items():
        named = [] if len(names) == len(SCENARIOS) else names
        words = ["posse", "compare", *named, *told, "--seeds", str(n_seeds), "--out", str(out)]
        lines.append(shlex.join(words))
    return "\n".join([*lines, *(f"# in a program, which adds the policy {name}" for name in others)])


def _newcomers(scenarios: Sequence[Scenario]) -> tuple[list[str], list[str]]:
    """Return the policies beside those of the scenarios: those that can be typed, and the others."""
    found: dict[str, Any] = {}
    for scenario in scenarios:
        for study in scenario.newcomers:
            found |= name_policies(study.policies)
    typed = [name for name, policy in found.items() if policy == name]
    return typed, [name for name in found if name not in typed]


def compare_scenarios(scenarios: Iterable[Scenario], tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return what is compared in each scenario, under each other.

    The columns are `kind`, `group`, `scenario` and `title`, those of `relative_regrets`, and beside them
    those of `worst_off_regrets`.

    Parameters
    ----------
    scenarios : iterable of Scenario
    tables : mapping
        The long table of each scenario, under its name: as `Experiment` has it, of which the rows of the last
        round are enough.
    """
    return pl.concat(
        _batch(tables[scenario.name], scenario).select(
            pl.lit(scenario.kind).alias("kind"),
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
    """Return the final regret of each policy, and its ratios to the best policies.

    The best one is that of the least mean regret: of those that learn each task alone, of oracles, and of all
    that are no oracles. To the first two a ratio is taken within each seed, where both met the same problem:
    it is the geometric mean over seeds, with Student's t interval of the logarithms. To the best of all it is
    that of the mean regrets, and so at least 1 but for oracles; see `ratio_of_means`.

    Parameters
    ----------
    table : DataFrame
        The long table of one problem.

    Returns
    -------
    DataFrame
        A row per policy, in the order of the table: `policy`, `n_seeds`, `regret_per_task`, `ci_low` and
        `ci_high`; then, for `independent` and `oracle`, the name of the `best_...` one and the ratio
        `to_...` with `to_..._low` and `to_..._high`; the same for `best`, named in `best_of_all`; and the
        mean `seconds` of a run. Null are references that were not played, ratios where a regret is not above
        0, and the ends of intervals from one seed.
    """
    final = final_rounds(table)
    regrets = final.pivot("policy", index="seed", values="regret_per_task").drop("seed")
    samples = {policy: regrets[policy].to_numpy() for policy in regrets.columns}
    best = {kind: _best(samples, {family}) for kind, family in REFERENCES.items()}
    best_of_all = _best(samples, {family_of(name) for name in samples} - {ORACLES})
    seconds = dict(final.group_by("policy").agg(pl.col("seconds").mean()).iter_rows())
    rows = []
    for policy, sample in samples.items():
        mean, low, high = mean_and_ends(sample)
        row: dict[str, Any] = {"policy": policy, "n_seeds": sample.size, "regret_per_task": mean}
        row |= {"ci_low": low, "ci_high": high}
        for kind, name in best.items():
            ratio, low, high = (None, None, None) if name is None else paired_ratio(sample, samples[name])
            row |= {f"best_{kind}": name, f"to_{kind}": ratio, f"to_{kind}_low": low, f"to_{kind}_high": high}
        known = best_of_all is not None
        ratio, low, high = ratio_of_means(sample, samples[best_of_all]) if known else (None, None, None)  # type: ignore[index]
        row |= {"best_of_all": best_of_all, "to_best": ratio, "to_best_low": low, "to_best_high": high}
        rows.append(row | {"seconds": seconds[policy]})
    words = ("policy", "best_independent", "best_oracle", "best_of_all")
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


def _best(samples: Mapping[str, Array], families: Collection[str]) -> str | None:
    members = [name for name in samples if family_of(name) in families]
    return min(members, key=lambda name: float(samples[name].mean()), default=None)
