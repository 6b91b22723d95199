"""Draw the league from its stored results, which come from a folder of `posse compare` if one is named.

    python docs/gallery/league.py [OUT]            # docs/league.md, its pictures, tables of other pages
    python docs/gallery/league.py --page FOLDER    # the whole page that `posse compare` writes

`make league` calls it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from posse.core.files import write_json
from posse.lab.registry import label_of
from posse.lab.results import final_rounds
from posse.suite import SCENARIOS, compare_scenarios, league_tables, promise, verdict
from posse.suite.comparison import commands
from posse.suite.contestants import WITH_ALL_DATA
from posse.suite.league import LEVEL, NEAR, Table
from posse.suite.page import heat_map, ranking, seeds_in_words, write_comparison
from posse.suite.words import verdict_in_words, winners
from posse.viz.heat import draw_heat
from posse.viz.pages import in_words
from posse.viz.ranks import draw_ranks
from posse.viz.still import save

FOLDER = Path(__file__).parent
SHARING = FOLDER.parent / "explanation" / "sharing.md"
RIVALS = FOLDER.parent / "explanation" / "rivals.md"
KEPT = ("seed", "policy", "round", "horizon", "regret_per_task", "regret_by_task", "seconds")
# What `sharing.md` quotes: a policy for each column, a scenario for each row.
QUOTED = (
    "shared",
    "shared-greedy",
    "independent-greedy",
    "mlingreedy",
    "trace-norm",
    "ebm-ucb",
    "oracle-greedy",
)
QUOTED_ROWS = (
    *("many-tasks", "few-tasks", "high-rank-many", "outliers", "approximate", "common-mean", "clusters"),
    *("unrelated", "unrelated-few", "fixed-arms", "narrow", "trap"),
)
# The policies of which each section of `rivals.md` says what was measured.
MEASURED = {
    "trace-norm": ("trace-norm",),
    "armul": ("armul", f"armul({WITH_ALL_DATA})"),
    "tian-spectral": ("tian-spectral", f"tian-spectral({WITH_ALL_DATA})"),
    "hier-thompson": ("hier-thompson",),
    "ebm": ("ebm-thompson", "ebm-ucb", "ebm-ucb(scale=1)"),
    "club": ("club",),
    "spectral-e2tc": ("e2tc(subspace=spectral)",),
    "seqrepl": ("seqrepl",),
    "baron": ("baron",),
    "bress": ("bress",),
    "pege-tau": ("pege-tau",),
}


@dataclass(frozen=True)
class League:
    """Stored results of a league.

    Attributes
    ----------
    results : Path
        The folder of league.parquet, the last rounds of all runs, and league.json, what made them.
    """

    results: Path = FOLDER / "results"

    def store(self, out: Path) -> None:
        """Keep the last rounds of the scenarios in a folder of `posse compare`, and what made them."""
        parts, made = [], {}
        for name, scenario in SCENARIOS.items():
            path = out / scenario.experiment.name
            if not (path / "results.parquet").exists():
                continue
            final = final_rounds(pl.read_parquet(path / "results.parquet")).select(KEPT)
            parts.append(final.select(pl.lit(name).alias("scenario"), pl.all()))
            made = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        if not parts:
            raise SystemExit(f"{out} holds no results of `posse compare`.")
        table = pl.concat(parts).with_columns(pl.col("seconds").cast(pl.Float32))
        self.results.mkdir(exist_ok=True)
        table.write_parquet(self.results / "league.parquet", compression="zstd", compression_level=19)
        versions = {"posse": made["parameters"]["posse"], **made["versions"]}
        write_json(
            self.results / "league.json",
            {
                "commit": _commit(),
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "versions": versions,
                "outdated": "",  # what is to be said once a policy plays otherwise than it did here
            },
        )

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the stored results of each scenario, under its name."""
        stored = pl.read_parquet(self.results / "league.parquet")
        return {name: stored.filter(scenario=name) for name in stored["scenario"].unique(maintain_order=True)}

    def data(self) -> pl.DataFrame:
        """Return what is compared."""
        tables = self.tables()
        return compare_scenarios([SCENARIOS[name] for name in tables], tables)

    def page(self, data: pl.DataFrame) -> str:
        """Return the text of docs/league.md."""
        environment = Environment(
            loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        made = json.loads((self.results / "league.json").read_text(encoding="utf-8"))
        tables = self.tables()
        seconds = sum(float(table["seconds"].sum()) for table in tables.values())
        text: str = environment.get_template("league.md.j2").render(
            judged=verdict_in_words(data),
            verdict=verdict(data),
            tables=league_tables(data),
            label=label_of,
            winners=winners(data),
            scenarios=[SCENARIOS[name] for name in tables],
            best={row["scenario"]: row for row in data.to_dicts() if row["policy"] == row["best_of_all"]},
            mine={row["scenario"]: row for row in data.to_dicts() if row["policy"] == "shared"},
            oracles=_best_oracles(data),
            promise=promise(data),
            command=commands([SCENARIOS[name] for name in tables], data, Path("results")),
            all=len(SCENARIOS),
            seeds=seeds_in_words(data),
            one_seed=data.filter(n_seeds=1)["scenario"].n_unique(),
            asked={"near": NEAR, "level": LEVEL},
            made=made,
            time=in_words(seconds),
            one_seed_time=in_words(sum(_seconds_of_a_seed(table) for table in tables.values())),
            runs=sum(table.height for table in tables.values()),
        )
        return text + "\n"


def _seconds_of_a_seed(table: pl.DataFrame) -> float:
    """Return how long the runs of one seed of a scenario took, on average."""
    return float(table["seconds"].sum()) / table["seed"].n_unique()


def _commit() -> str:
    """Return the commit that is checked out: what a league is played by should be committed."""
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, check=True).stdout.strip()


def _best_oracles(data: pl.DataFrame) -> dict[str, Mapping[str, Any]]:
    """Return the row of the best oracle of each scenario that has one."""
    rows = [row for row in data.to_dicts() if row["policy"] == row["best_oracle"]]
    return {row["scenario"]: row for row in rows}


def sharing_page(data: pl.DataFrame) -> str:
    """Return the page about sharing with its tables written from the stored results."""
    found = {(row["scenario"], row["policy"]): row for row in data.to_dicts()}
    numbers = [
        "| scenario | " + " | ".join(f"`{name}`" for name in QUOTED) + " |",
        "|---" * (len(QUOTED) + 1) + "|",
    ]
    for name in filter(set(data["scenario"]).__contains__, QUOTED_ROWS):
        rows = [found.get((name, policy)) for policy in QUOTED]
        cells = [_cell(row) for row in rows]
        numbers.append(f"| `{name}`, {SCENARIOS[name].title} | " + " | ".join(cells) + " |")
    return _with_blocks(SHARING, {"verdict": [verdict_in_words(data)], "numbers": numbers})


def rivals_page(data: pl.DataFrame) -> str:
    """Return the page about rivals with what was measured of each written from the stored results."""
    tables = league_tables(data)
    blocks = {
        name: ["**What we measured**, in [the league](../league.md):", ""]
        + [f"- {line}" for table in tables for line in _places(table, policies)]
        for name, policies in MEASURED.items()
    }
    return _with_blocks(RIVALS, blocks)


def _places(table: Table, policies: Sequence[str]) -> list[str]:
    """Return where policies stand among those who play all scenarios of a kind, a sentence each."""
    among = f"mean rank {{:.1f}} of {len(table.standings)} on {table.kind}"
    n_scenarios = len(table.scenarios)
    return [
        f"{label_of(some.policy)}: {among.format(some.rank)}; within {NEAR - 1:.0%} of the best in "
        f"{round(some.near * n_scenarios)} of {n_scenarios} scenarios; at worst {some.largest:.2f} times its "
        f"regret, in `{some.where}`."
        for some in table.standings
        if some.policy in policies
    ]


def _with_blocks(page: Path, blocks: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a page with lines written between the marks that name them."""
    text = page.read_text(encoding="utf-8")
    for name, lines in blocks.items():
        block = f"<!-- stored: {name} -->\n" + "\n".join(lines) + "\n<!-- end -->"
        before, rest = text.split(f"<!-- stored: {name} -->", 1)
        text = before + block + rest.split("<!-- end -->", 1)[1]
    return text


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    number = f"{row['regret_per_task']:.0f}"
    return f"**{number}**" if row["policy"] == row["best_of_all"] else number


def pictures(data: pl.DataFrame) -> dict[str, Any]:
    """Return the pictures of the page by the stem of their files."""
    ranks = {f"league-ranks-{i}": draw_ranks(ranking(one)) for i, one in enumerate(league_tables(data), 1)}
    return {"league": draw_heat(heat_map(data)), **ranks}


def main() -> None:
    """Take what the command line names, and draw."""
    league, words = League(), sys.argv[1:]
    if words[:1] == ["--page"]:
        tables = league.tables()
        shown = [SCENARIOS[name] for name in tables]
        data, out = league.data(), Path(words[1])
        out.mkdir(parents=True, exist_ok=True)
        write_comparison(shown, data, out, commands=commands(shown, data, Path("results")), minutes=None)
        return
    if words:
        league.store(Path(words[0]))
    data = league.data()
    for stem, picture in pictures(data).items():
        save(picture, FOLDER / f"{stem}.png")
    (FOLDER.parent / "league.md").write_text(league.page(data), encoding="utf-8")
    SHARING.write_text(sharing_page(data), encoding="utf-8")
    RIVALS.write_text(rivals_page(data), encoding="utf-8")


if __name__ == "__main__":
    main()
