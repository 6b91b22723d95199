"""Our figure beside 3 and 4: what an estimate on images is worth, by the rounds that it was made from."""

from __future__ import annotations

from functools import partial

from posse.core.extras import extra
from posse.lab.charts import curves
from posse.lab.experiment import Experiment
from posse.lab.results import final_rounds, summarise
from posse.numerics.checks import Array
from posse.paper.claims import Claim, signed_claim, simultaneous
from posse.paper.figure import Figure
from posse.paper.figures_3_4 import images_setting, variant
from posse.problems.images import IMAGE_SETS
from posse.viz.chart import Axis, Chart, Panel

with extra("lab"):
    import polars as pl

# Estimates from random rounds, without a ridge and with one; from own rounds; from both; from own, shared.
EXACT, RANDOM, OWN = "commit(penalty=0)", "commit", "relearn"
BOTH, SHARED = "relearn(memory=all)", "relearn(estimator=low-rank)"
# Rounds from which estimates are made, as shares of the number of features.
SHARES = (1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 1, 9 / 8, 3 / 2, 2, 4)


def errors_by_rounds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the share of wrong choices after the round `explore`, of every policy and seed, as `error`.

    Rewards must be 0 or 1, so that regret counts wrong choices.
    """
    keys = ["policy", "explore", "seed"]
    before = table.filter(pl.col("round") == pl.col("explore")).select(
        *keys, pl.col("regret_per_task").alias("before")
    )
    played = pl.col("horizon") - pl.col("explore")
    wrong = (pl.col("regret_per_task") - pl.col("before")) / played
    return final_rounds(table).join(before, on=keys).with_columns(wrong.alias("error"))


def interpolation_peak(table: pl.DataFrame, *, dim: int) -> Claim:
    """Decide whether least squares without a ridge gets worse with more data, up to about n = d."""
    curve = _errors(table, EXACT)
    few, *others = curve
    evidence = simultaneous({f"n = {few} to {n}": 100 * (curve[n] - curve[few]) for n in others})
    signs = [item.sign for item in evidence]
    worst = max(others, key=lambda n: float(curve[n].mean()))
    ridge = _errors(table, RANDOM)[worst].mean()
    return Claim(
        statement="With more random rounds to learn from, least squares without a ridge at first gets worse: "
        "it has a peak of interpolation.",
        source="posse",
        measure="rise of the share of wrong choices, in percentage points; one rise is enough",
        verdict="holds" if 1 in signs else "fails" if signs.count(-1) == len(signs) else "undecided",
        tally=(signs.count(1), signs.count(-1)),
        reading=f"It chooses wrongly in {curve[few].mean():.1%} after {few} rounds and in "
        f"{curve[worst].mean():.1%} after {worst}, with {dim} features. A small ridge makes it {ridge:.1%}.",
        evidence=evidence,
    )


def one_sided_rounds(table: pl.DataFrame, *, dim: int) -> Claim:
    """Decide whether the baseline fails by learning from its own choices alone."""
    random, own, both, shared = (_errors(table, name) for name in (RANDOM, OWN, BOTH, SHARED))
    near = min(own, key=lambda n: abs(n - 1.15 * dim))
    evidence = simultaneous({f"own minus random rounds, n = {near}": 100 * (own[near] - random[near])})
    return signed_claim(
        evidence,
        1,
        statement="The naive algorithm fails because it learns from its own greedy choices alone: the same "
        "least squares, from about as many random rounds, does not.",
        source="posse",
        measure="share of wrong choices after learning from its own greedy rounds minus that after random "
        "rounds, in percentage points",
        reading=f"After {near} rounds it chooses wrongly in {own[near].mean():.1%} having learned from its "
        f"own greedy rounds, whose rewards are nearly all 1, but in {random[near].mean():.1%} from random "
        f"ones, and in {both[near].mean():.1%} if the {dim // 8} random rounds before are not forgotten. "
        f"Low-rank least squares, which shares, has {shared[near].mean():.1%} from its own greedy rounds.",
    )


def _errors(table: pl.DataFrame, policy: str) -> dict[int, Array]:
    """Return the share of wrong choices by round of the last estimate, in order of seeds."""
    rows = errors_by_rounds(table).filter(pl.col("policy") == policy).sort("explore", "seed")
    return {n: group["error"].to_numpy() for (n,), group in rows.group_by("explore", maintain_order=True)}


def error_by_rounds(table: pl.DataFrame, title: str, *, dim: int) -> Chart:
    """Return the error of each estimate against the round at which it is made; a line marks n = d."""
    data = summarise(errors_by_rounds(table), by=["policy", "explore"], value="error")
    ticks = tuple(sorted(data["explore"].unique().to_list()))
    percent = Axis(
        label="wrong choices afterwards (%)",
        scale="symlog",
        linear_below=0.1,
        ticks=(0, 0.1, 1, 10, 100),
        low=0.0,
        high=100.0,
    )
    panel = Panel(
        x=Axis(label="round n after which the estimate is made", scale="log", ticks=ticks),
        y=percent,
        series=curves(data, x="explore", y="error", factor=100.0),
        line=(dim, f"n = d = {dim}"),
    )
    return Chart(
        stem="error-by-rounds",
        title=title,
        panels=(panel,),
        caption="Share of wrong choices of greedy play by an estimate that is made after n rounds, in those "
        f"from there to N = {max(table['horizon'])}. Bars are 95 % intervals over seeds. Below 0.1 % the "
        "axis is linear.",
    )


def figure(name: str, *, images: str) -> Figure:
    """Return the figure on an image set."""
    chosen = IMAGE_SETS[images]
    dim, title = chosen.n_pixels, f"{chosen.title}: what the margin is made of, T = 10"
    return Figure(
        title=title,
        study=Experiment(
            name=variant(name, images),
            problem=images,
            cells=tuple(
                {"n_classes": 5, "scaling": "norm", "explore": round(dim * share)} for share in SHARES
            ),
            policies=(EXACT, RANDOM, OWN, SHARED, BOTH),
            horizon=5 * dim,
        ),
        claims=(partial(interpolation_peak, dim=dim), partial(one_sided_rounds, dim=dim)),
        charts=lambda table: (error_by_rounds(table, title, dim=dim),),
        columns={"explore": "n"},
        setting={**images_setting(images), "rank of low-rank least squares": "5"},
        remark=(
            "Two things may spoil least squares on images. With about as many rounds as features it fits its "
            "rounds exactly and at any price: the peak of interpolation. And an epoch of greedy play holds "
            "almost nothing but images that paid 1, so an estimate from that epoch alone has seen no wrong "
            "class to tell from the right one. The curves separate the two."
        ),
        command=(name, "--data", images),
    )
