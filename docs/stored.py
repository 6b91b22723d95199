"""Write tables of the stored results of proofs into the pages, between the marks of each.

    python -m docs.stored

`make numbers` calls it, and `make prove` when it is done. A page keeps what it says of a result that is not
stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proofs.promise import kept_to

from posse.suite.sharing import MEAN_LIMIT, WORST_LIMIT

ROOT = Path(__file__).parent.parent
RESULTS, PAGES = ROOT / "proofs" / "results", ROOT / "docs" / "explanation"
Found = Mapping[str, Any]
RULES = {"greedy": "greedy", "thompson": "Thompson", "ucb": "UCB"}
# What a ratio over all tasks may be at the early round.
EARLY_LIMIT = 1.06
# Greedy / Thompson, where one noise variance, one scale and one likeliest prior had to do for all tasks.
BEFORE = {
    "rank 8, T = 10": "1.10",
    "unequal noise": "0.70 / 0.91; quietest fifth 2.9 / 5.0",
    "unequal noise, unrelated": "1.15 / 1.65; quietest fifth 2.8 / 11.6",
    "intercept, unrelated": "1.06 / 1.14",
    "clicks, unrelated": "1.07 / 1.11",
    "features x 1000, unrelated": "1.43 / 1.34",
    "half unrelated": "unrelated half 1.29",
    "a giant": "the others 1.16",
    "outliers, T = 50": "the outliers 1.25 to 1.43",
    "fixed arms, T = 10": "– / 1.14",
    "fixed arms, unrelated, T = 10": "– / 1.19",
}
LEVEL = "Thompson sampling beside a level, relative to tasks alone"
TO_SAMPLER, ERROR, ELLIPSOIDS = "to the sampler's", "error, to the likeliest's", "ellipsoids"
SMALLER = "Thompson sampling beside a level, draws half as wide"
# What is wanted of SharedThompson on unit balls, told the rank, by the number of tasks: its likeliest prior
# had that in an earlier measurement.
GOALS = {10: 610, 50: 345, 200: 240}


def promise_table(found: Found) -> Iterator[str]:
    """Yield the table of all cases, and in words where the promise holds."""
    rules = " | ".join(RULES.values())
    yield f"| | seeds | before: greedy / Thompson | {rules} | worst-off fifth: {rules} |"
    yield "|---" * 9 + "|"
    for case, one in _cases(found).items():
        late = [_ratio(one[rule]) for rule in RULES]
        worst = [f"{one[rule]['worst-off']:.2f}" for rule in RULES]
        yield f"| {' | '.join([case, str(one['seeds']), BEFORE.get(case, ''), *late, *worst])} |"
    yield ""
    yield from _promise_in_words(found)


def _promise_in_words(found: Found) -> Iterator[str]:
    """Yield in how many pairs of a case and a rule the promise holds, by point estimates and for sure."""
    pairs = {(case, rule): one[rule] for case, one in _cases(found).items() for rule in RULES}
    broken = {
        pair: one for pair, one in pairs.items() if one["late"] > MEAN_LIMIT or one["worst-off"] > WORST_LIMIT
    }
    surely = [kept_to(one) for one in pairs.values()]
    seeds = sorted({one["seeds"] for one in _cases(found).values()})
    n_seeds = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else seeds[0]
    yield (
        f"These are {len(pairs)} pairs of a case and a rule, with {n_seeds} seeds a case. "
        f"By point estimates the promise holds in {len(pairs) - len(broken)} of them. By 95 % intervals, of "
        f"all tasks and of the worst-off fifth, it holds for sure in {surely.count(True)}, surely fails in "
        f"{surely.count(False)}, and in {surely.count(None)} the seeds are too few to tell."
    )
    if broken:
        yield "By point estimates it fails here:"
        yield ""
    for (case, rule), one in broken.items():
        sure = ", for sure" if kept_to(one) is False else ""
        yield f"- {case}, {RULES[rule]}: {_ratio(one)}, worst-off {_ratio(one, 'worst-off')}{sure}"
    yield from _early_in_words(found, {pair: one for pair, one in pairs.items() if "worst-off early" in one})


def _early_in_words(found: Found, early: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    """Yield how ratios were at the early round, of all pairs and of the newcomers."""
    if not early:
        return
    case, rule = max(early, key=lambda pair: float(early[pair]["early"]))
    above = sum(one["early"] > EARLY_LIMIT for one in early.values())
    newcomers = [
        f"{name} {' / '.join(format(one[rule]['worst-off early'], '.2f') for rule in RULES)}"
        for name, one in _cases(found).items()
        if "newcomers" in name and (name, "ucb") in early
    ]
    yield ""
    yield (
        f"300 rounds after the start, or after the first newcomers have come, {above} of {len(early)} ratios "
        f"over all tasks are above {EARLY_LIMIT}; the largest is {early[case, rule]['early']:.2f}, {case}, "
        f"{RULES[rule]}. The newcomers' own ratios are then, of {' / '.join(RULES.values())}: "
        f"{'; '.join(newcomers)}."
    )


def true_priors(found: Found) -> Iterator[str]:
    """Yield what the true prior would bring beside a level, in one sentence."""
    told = [found[f"the true prior, {case}, unrelated"]["thompson"] for case in ("intercept", "clicks")]
    yield (
        f"Who is told the *true* prior, from which the tasks were drawn, has {_ratio(told[0])} with an "
        f"intercept and {_ratio(told[1])} with clicks."
    )


def levels(found: Found) -> Iterator[str]:
    """Yield the table of Thompson sampling with and without levels."""
    one = found[LEVEL]
    yield "| | with levels of 2 ± 1 | all levels 0 |"
    yield "|---|---|---|"
    yield f"| tasks alone | 1 | {_ratio(one['alone, no level'])} |"
    yield f"| told the true prior | {_ratio(one['true prior'])} | {_ratio(one['true prior, no level'])} |"
    yield f"| told it with effects five times too variable | {_ratio(one['five times too bold'])} | |"


def smaller_draws(found: Found) -> Iterator[str]:
    """Yield what half as wide draws do beside a level, in one sentence."""
    one = found[SMALLER]
    yield (
        "With an intercept `SharedThompson(scale=0.5)` has "
        f"{_ratio(one['shared / alone'])} times the regret of `IndependentThompson()`, and "
        f"{_ratio(one['shared / alone with them'])} times that of `IndependentThompson(scale=0.5)`, which "
        f"has {_ratio(one['alone with them / alone'])} times that without ({one['seeds']} seeds)."
    )


def limits(found: Found) -> Iterator[str]:
    """Yield the tables of the learned prior beside the sampler, and of unit balls beside their goals."""
    yield f"Regret per task, {found['rounds']:,} rounds, {found['seeds']} seeds (standard errors)."
    yield ""
    yield "| lists of five arms | the sampler | told the rank | to the sampler's | auto | to the sampler's |"
    yield "|---" * 6 + "|"
    for name, one in found.items():
        if isinstance(one, Mapping) and "sampler" in one:
            told, auto = (f"{_regret(one[who])} | {one[who][TO_SAMPLER]:.2f}" for who in ("told", "auto"))
            yield f"| {name} | {one['sampler']} | {told} | {auto} |"
    yield ""
    yield "| unit balls, d = 10, k = 2, told the rank | goal | averages over priors | the likeliest prior |"
    yield "|---" * 4 + "|"
    for n_tasks, goal in GOALS.items():
        one = found[f"unit balls, d = 10, k = 2, T = {n_tasks}"]
        yield f"| T = {n_tasks} | {goal} | {_regret(one['averaged'])} | {_regret(one['likeliest'])} |"


def coverage(found: Found) -> Iterator[str]:
    """Yield the table of coverage where tasks are Gaussian, and in words what it is in all cells."""
    yield "| rank | T | " + " | ".join(f"n = {n}: covered | error" for n in (5, 20, 100)) + " |"
    yield "|---" * 8 + "|"
    for told in ("told", "auto"):
        for n_tasks in (10, 30, 100):
            cells = [found[f"Gaussian tasks, {told}, T = {n_tasks}, n = {n}"] for n in (5, 20, 100)]
            words = [
                f"{one['covered']:.2f} ({one['covered, likeliest']:.2f}) | {one[ERROR]:.2f}" for one in cells
            ]
            yield f"| {told} | {n_tasks} | {' | '.join(words)} |"
    shared = {name: one for name, one in found.items() if " T = " in name}
    covered = [one["covered"] for one in shared.values()]
    least = sorted(shared, key=lambda name: float(shared[name]["ellipsoids"]))[:2]
    yield ""
    yield (
        f"Over all {len(shared)} cells, Student's tails and fixed arms among them, coverage is from "
        f"{min(covered):.2f} to {max(covered):.2f}, with {found['data sets']} data sets a cell, and a third "
        "of that with 100 tasks. 90 % ellipsoids of θₜ hold the truth least often with "
        f"{' and '.join(f'{name} ({shared[name][ELLIPSOIDS]:.2f})' for name in least)}."
    )


def coverage_alone(found: Found) -> Iterator[str]:
    """Yield the table of coverage of ridge, each task alone."""
    yield "| strength | " + " | ".join(f"n = {n} | likeliest" for n in (5, 20, 100)) + " |"
    yield "|---" * 7 + "|"
    for strength in ("drawn", "0.25", "1.0", "2.0", "4.0"):
        cells = [found[f"alone, strength {strength}, n = {n}"] for n in (5, 20, 100)]
        words = [f"{one['covered']:.2f} | {one['covered, likeliest']:.2f}" for one in cells]
        yield f"| {strength.removesuffix('.0')} | {' | '.join(words)} |"


# Page, mark, proof and what writes it.
BLOCKS: tuple[tuple[str, str, str, Callable[[Found], Iterator[str]]], ...] = (
    ("learned-prior.md", "promise", "promise", promise_table),
    ("learned-prior.md", "true-priors", "promise", true_priors),
    ("learned-prior.md", "levels", "promise", levels),
    ("learned-prior.md", "smaller-draws", "promise", smaller_draws),
    ("learned-prior.md", "limits", "limits", limits),
    ("learned-prior.md", "coverage", "coverage", coverage),
    ("mathematics.md", "coverage-alone", "coverage", coverage_alone),
)


def written(page: str, text: str, results: Path = RESULTS) -> str:
    """Return the text of a page with the lines between its marks written from the results that are stored."""
    for name, mark, proof, write in BLOCKS:
        path = results / f"{proof}.json"
        if name != page or not path.exists():
            continue
        begin, end = f"<!-- stored: {mark} -->\n", "<!-- end -->"
        if text.count(begin) != 1:
            raise SystemExit(f"{page} must have one mark {begin.strip()}. Got {text.count(begin)}.")
        before, rest = text.split(begin)
        lines = write(json.loads(path.read_text(encoding="utf-8")))
        text = before + begin + "".join(f"{line}\n" for line in lines) + end + rest.split(end, 1)[1]
    return text


def _cases(found: Found) -> dict[str, Any]:
    """Return what was found of cases, by all rules."""
    return {name: one for name, one in found.items() if isinstance(one, Mapping) and "worst-off" in str(one)}


def _ratio(one: Found, name: str = "late") -> str:
    """Return a ratio and the half-width of its interval, which is stored as that of its logarithm."""
    half = one["+-" if name == "late" else f"{name} +-"]
    return f"{one[name]:.2f} ± {one[name] * half:.2f}"


def _regret(one: Found) -> str:
    return f"{one['regret']:.0f} ({one['standard error']:.0f})"


def main() -> None:
    """Write all pages that have marks."""
    for page in dict.fromkeys(block[0] for block in BLOCKS):
        path = PAGES / page
        path.write_text(written(page, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
