"""How regret per task grows with N, T, d and k, measured and as the theorems have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from posse.core.extras import extra
from posse.lab.charts import curves, reference
from posse.lab.entries import SYMBOLS
from posse.lab.experiment import Experiment
from posse.lab.registry import label_of
from posse.lab.results import summarise
from posse.numerics.checks import Array
from posse.paper import theory
from posse.paper.claims import Claim, signed_claim, simultaneous
from posse.paper.exponents import Sweep, exponent_table, range_claim, steps, with_interval
from posse.paper.figure import Figure
from posse.paper.theory import Bound, Setting
from posse.viz.chart import Axis, Chart, Panel

with extra("lab"):
    import polars as pl

HORIZONS = (1000, 3162, 10_000, 31_623, 100_000)
# Between d^2 and (kd)^2 rounds the theorem holds, and after √N of them the tasks are not yet known.
HARD_ROUNDS = Sweep("horizon", HORIZONS, {"n_tasks": 50, "dim": 30, "rank": 10})
EASY_ROUNDS = Sweep("horizon", HORIZONS, {"n_tasks": 50, "dim": 20, "rank": 2})
TASKS = Sweep("n_tasks", (10, 20, 50, 100, 200, 500), {"horizon": 10_000, "dim": 20, "rank": 2})
DIMS = Sweep("dim", (10, 20, 40, 80), {"horizon": 10_000, "n_tasks": 50, "rank": 2})
RANKS = Sweep("rank", (3, 5, 9, 16), {"horizon": 10_000, "n_tasks": 200, "dim": 40})
FINITE = (HARD_ROUNDS, EASY_ROUNDS, TASKS, DIMS, RANKS)

SHARED = (
    Sweep("horizon", (1000, 10_000, 100_000), {"n_tasks": 30, "dim": 20, "rank": 2}),
    Sweep("n_tasks", (10, 30, 100), {"horizon": 10_000, "dim": 20, "rank": 2}),
    Sweep("dim", (10, 20, 30), {"horizon": 10_000, "n_tasks": 30, "rank": 2}),
    Sweep("rank", (1, 2, 4), {"horizon": 10_000, "n_tasks": 30, "dim": 20}),
)

SPHERE = (
    Sweep("horizon", HORIZONS, {"n_tasks": 300, "dim": 10, "rank": 2}),
    Sweep("n_tasks", (10, 30, 100, 300, 1000, 3000), {"horizon": 10_000, "dim": 10, "rank": 2}),
    Sweep("dim", (5, 7, 10, 14, 20), {"horizon": 10_000, "n_tasks": 300, "rank": 2}),
    Sweep("rank", (1, 2, 4, 8), {"horizon": 10_000, "n_tasks": 300, "dim": 10}),
)

CAPTION = (
    "Regret per task after all rounds, both axes logarithmic. Bars are 95 % intervals over seeds; numbers "
    "are slopes by least squares, one per seed, with 95 % intervals. Dashed: the sum of the theorem's two "
    "terms, with one constant for all panels. Neither need be a straight line: a sum of two powers bends, "
    "and so do logarithms. A slope is that of this grid alone."
)


def exponent_of_rounds(table: pl.DataFrame) -> Claim:
    """Decide whether MLinGreedy's regret grows about like √N where d^2 <= N <= (kd)^2."""
    sample = HARD_ROUNDS.exponents(table, "mlingreedy")
    easy = EASY_ROUNDS.exponents(table, "mlingreedy")
    return range_claim(
        {HARD_ROUNDS.title: sample},
        0.35,
        0.65,
        statement="From d^2 to (kd)^2 rounds MLinGreedy's exponent of N is between 0.35 and 0.65.",
        measure="slope of log regret per task against log N",
        reading=(
            f"The exponent is {with_interval(sample)}; the theorem has 0.50. With N mostly above "
            f"(kd)^2 = 1600 it is {with_interval(easy)}: there √N rounds tell tasks apart, and small errors "
            "cost their square."
        ),
    )


def no_growth_with_tasks(table: pl.DataFrame) -> Claim:
    """Decide whether MLinGreedy's regret per task falls at every step of T."""
    evidence = simultaneous(
        steps(TASKS.of(table).filter(pl.col("policy") == "mlingreedy"), "n_tasks", pl.col("regret_per_task"))
    )
    return signed_claim(
        evidence,
        -1,
        statement="The regret per task of MLinGreedy falls at every step of T.",
        source="posse",
        measure="change of the regret per task from one T to the next",
        reading=(
            f"The exponent of T is {with_interval(TASKS.exponents(table, 'mlingreedy'))}; the theorem's sum "
            f"has {TASKS.predicted_exponent(theory.finite_upper):.2f} on this grid."
        ),
    )


def exponent_of_rank(table: pl.DataFrame) -> Claim:
    """Decide whether MLinGreedy's regret grows about like √k where tasks are many and N <= (kd)^2."""
    sample = RANKS.exponents(table, "mlingreedy")
    return range_claim(
        {RANKS.title: sample},
        0.3,
        0.9,
        statement="With many tasks and N at most (kd)^2, MLinGreedy's exponent of k is between 0.3 and 0.9.",
        measure="slope of log regret per task against log k",
        reading=f"The exponent is {with_interval(sample)}; the theorem has 0.50.",
    )


def exponents_on_the_sphere(table: pl.DataFrame) -> Claim:
    """Decide whether E2TC's exponents of N and k are within 0.15 of the theorem's."""
    wanted = {"horizon": 0.5, "rank": 1.0}
    samples = {
        SYMBOLS[sweep.along]: sweep.exponents(table, "e2tc") - wanted[sweep.along]
        for sweep in SPHERE
        if sweep.along in wanted
    }
    said = ", ".join(
        f"{SYMBOLS[sweep.along]} {with_interval(sweep.exponents(table, 'e2tc'))} "
        f"({sweep.predicted_exponent(theory.infinite_upper):.2f})"
        for sweep in SPHERE
    )
    return range_claim(
        samples,
        -0.15,
        0.15,
        statement="E2TC's exponents of N and k are within 0.15 of the theorem's 1/2 and 1.",
        measure="slope of log regret per task, minus the theorem's exponent",
        reading=f"E2TC's exponents, and those of the theorem's sum on the same grid: {said}.",
    )


def spectral_exponents_on_the_sphere(table: pl.DataFrame) -> Claim:
    """Decide whether spectral E2TC's exponents are within 0.15 of those of d sqrt(kNT) + kT sqrt(N)."""
    policy = "e2tc(subspace=spectral)"
    found = {SYMBOLS[sweep.along]: sweep.exponents(table, policy) for sweep in SPHERE}
    wanted = {SYMBOLS[sweep.along]: sweep.predicted_exponent(theory.infinite_lower) for sweep in SPHERE}
    said = ", ".join(f"{size} {with_interval(found[size])} ({wanted[size]:.2f})" for size in found)
    return range_claim(
        {size: sample - wanted[size] for size, sample in found.items()},
        -0.15,
        0.15,
        statement="With spectral estimates E2TC's exponents are within 0.15 of those of d√(kNT) + kT√N, the "
        "rate of Yang et al. (2022), on the same grid.",
        measure="slope of log regret per task, minus that of the rate's two terms, constants being 1",
        reading=f"The exponents, and those of the rate: {said}.",
    )


def falls_on_the_sphere(table: pl.DataFrame) -> Claim:
    """Decide whether E2TC's regret per task falls at every step of T."""
    rows = SPHERE[1].of(table).filter(pl.col("policy") == "e2tc")
    return signed_claim(
        simultaneous(steps(rows, "n_tasks", pl.col("regret_per_task"))),
        -1,
        statement="The regret per task of E2TC falls at every step of T.",
        source="posse",
        measure="change of the regret per task from one T to the next",
        reading=f"The exponent of T is {with_interval(SPHERE[1].exponents(table, 'e2tc'))}.",
    )


def posse_grows_slower(table: pl.DataFrame) -> Claim:
    """Decide whether SharedGreedy's regret has a smaller exponent of N than MLinGreedy's."""
    shared, paper = (SHARED[0].exponents(table, name) for name in ("shared-greedy", "mlingreedy"))
    return signed_claim(
        simultaneous({"SharedGreedy minus MLinGreedy": shared - paper}),
        -1,
        statement="The regret of SharedGreedy grows more slowly with N than that of MLinGreedy.",
        source="posse",
        measure="difference of the slopes of log regret per task against log N",
        reading=(
            f"The exponents of N are {with_interval(shared)} and {with_interval(paper)}: it keeps all "
            "rounds, and does not play √N of them at random."
        ),
    )


def size_chart(
    table: pl.DataFrame,
    title: str,
    *,
    sweeps: Sequence[Sweep],
    policies: Sequence[str],
    bound: Callable[[Setting], Bound],
) -> Chart:
    """Return regret per task against each size, with slopes, and the theorem for the first policy."""
    found = exponent_table(table, sweeps, policies, bound)
    constant = _constant(table, sweeps, policies[0], bound)
    theorem = f"{bound(sweeps[0].settings[0]).theorem}, one constant"
    panels = []
    for place, sweep in enumerate(sweeps):
        letter = SYMBOLS[sweep.along]
        data = summarise(sweep.of(table), by=["policy", sweep.along])
        dashed = reference(theorem, sweep.values, (constant * sweep.predicted(bound)).tolist())
        panels.append(
            Panel(
                title=sweep.title,
                x=Axis(label=letter, scale="log", ticks=sweep.values),
                y=Axis(label="regret per task", scale="log"),
                series=(*curves(data, x=sweep.along), dashed),
                note=_slopes(found.filter(pl.col("sweep") == place), letter),
            )
        )
    return Chart(
        stem="regret-by-size",
        title=title,
        panels=tuple(panels),
        caption=CAPTION,
        columns=3 if len(sweeps) > 4 else 2,
        same_y=False,
    )


def _constant(
    table: pl.DataFrame, sweeps: Sequence[Sweep], policy: str, bound: Callable[[Setting], Bound]
) -> float:
    """Return the factor between regret and bound, by its geometric mean over all points."""
    ratios: list[Array] = []
    for sweep in sweeps:
        own = sweep.of(table).filter(pl.col("policy") == policy)
        means = own.group_by(sweep.along).agg(pl.col("regret_per_task").mean()).sort(sweep.along)
        ratios.append(np.log(means["regret_per_task"].to_numpy() / sweep.predicted(bound)))
    return float(np.exp(np.concatenate(ratios).mean()))


def _slopes(found: pl.DataFrame, symbol: str) -> str:
    """Say the exponents of a panel, a line for each policy and one for the theorem."""
    rows = found.to_dicts()
    width = max(len(label_of(row["policy"])) for row in rows)
    lines = [f"{'exponent of ' + symbol:<{width}}"]
    for row in rows:
        half = "" if row["ci_low"] is None else f" ± {(row['ci_high'] - row['ci_low']) / 2:.2g}"
        lines.append(f"{label_of(row['policy']):<{width}} {row['exponent']:+.2f}{half}")
    terms = ", ".join(f"{term:+.1f}" for term in rows[0]["terms"])
    lines.append(f"{'theorem':<{width}} {rows[0]['theorem']:+.2f} (terms {terms})")
    return "\n".join(lines)


def _figure(
    name: str,
    *,
    title: str,
    problem: str,
    sweeps: tuple[Sweep, ...],
    policies: tuple[str, ...],
    bound: Callable[[Setting], Bound],
    claims: tuple[Callable[[pl.DataFrame], Claim], ...],
    remark: str,
) -> Figure:
    """Return a figure of sweeps; the theorem is about the first policy."""
    cells = tuple({tuple(cell.values()): cell for sweep in sweeps for cell in sweep.cells}.values())
    return Figure(
        title=title,
        study=Experiment(name=name, problem=problem, cells=cells, policies=policies, horizon=10_000),
        claims=claims,
        charts=lambda table: (size_chart(table, title, sweeps=sweeps, policies=policies, bound=bound),),
        columns={size: SYMBOLS[size] for size in theory.SIZES},
        setting={"noise": "N(0, 1)", "lengths of parameters": "1"},
        remark=remark,
        command=("scaling",),
    )


FIGURES = (
    _figure(
        "scaling",
        title="Scaling of regret on Gaussian action sets",
        problem="gaussian",
        sweeps=FINITE,
        policies=("mlingreedy", "naive", "independent-greedy"),
        bound=theory.finite_upper,
        claims=(exponent_of_rounds, no_growth_with_tasks, exponent_of_rank),
        remark=(
            "The theorem speaks of the worst parameters for each N, of which long ones, as here, are not: a "
            "choice goes wrong only where two arms are close, so an error costs its square once it is small "
            "beside the signal. That begins at about N = (kd)^2. Below, and from d^2 on, is where the "
            "theorem's rate can be looked for; the panels of N show both sides. These sizes were chosen "
            "after fourteen pilots, in six of which the exponent of N was below 0.35."
        ),
    ),
    _figure(
        "scaling_shared",
        title="Scaling of regret of posse's own policy",
        problem="gaussian",
        sweeps=SHARED,
        policies=("shared-greedy", "mlingreedy", "oracle-greedy"),
        bound=theory.finite_upper,
        claims=(posse_grows_slower,),
        remark="No theorem covers SharedGreedy; the dashed line is that of MLinGreedy, scaled to it.",
    ),
    _figure(
        "scaling_sphere",
        title="Scaling of regret on the sphere",
        problem="ellipsoid",
        sweeps=SPHERE,
        policies=("e2tc", "e2tc(subspace=spectral)", "pege", "oracle-commit"),
        bound=theory.infinite_upper,
        claims=(exponents_on_the_sphere, spectral_exponents_on_the_sphere, falls_on_the_sphere),
        remark=(
            "E2TC explores for N_1 + N_2 rounds, both proportional to √N, so its exponent of N is the "
            "theorem's by design. What exploring costs does not depend on whether it was needed."
        ),
    ),
)
