"""The paper's guarantees for its two estimators, measured: errors in sample, and of the representation.

These are estimates from rounds at random, not runs of policies. A cell is a `measure`, a number of tasks and
a number of rounds; its table has a row per estimator, with its `error` and the theorem's `bound`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from posse.core.extras import extra
from posse.core.protocols import Estimator
from posse.core.statistics import GramStatistics
from posse.estimators import LowRank, MethodOfMoments, PairedMoments, Ridge, TaskSpectral
from posse.estimators.moments import MomentStatistics, SubspaceEstimator, largest_sine
from posse.lab.charts import reference, series
from posse.lab.registry import style_of
from posse.lab.results import summarise
from posse.numerics.checks import Array
from posse.numerics.random import unit_vectors
from posse.paper.claims import Claim, signed_claim, simultaneous
from posse.paper.exponents import log_slopes, range_claim, with_interval
from posse.paper.figure import Figure
from posse.paper.theory import Setting, in_sample_error, moment_error
from posse.problems import EllipsoidProblem, GaussianProblem
from posse.viz.chart import Axis, Chart, Panel

with extra("lab"):
    import polars as pl

TITLE = "Guarantees of the paper's estimators"
IN_SAMPLE, SINE = "in-sample-error", "largest-sine"
SUBSPACES: Mapping[str, SubspaceEstimator] = MappingProxyType(
    {"moments": MethodOfMoments(), "pairs": PairedMoments(), "spectral": TaskSpectral()}
)
ESTIMATORS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "low-rank": ("low-rank least squares", "what MLinGreedy learns by, told the rank"),
        "alone": ("least squares, each task alone", "what NaiveGreedy learns by"),
        "moments": ("method of moments", "how the paper's E2TC finds the representation"),
        "pairs": ("pairs of rounds", "the representation from products of different rounds"),
        "spectral": ("tasks' own least squares", "the representation from what tasks estimate alone"),
    }
)
# Estimators have the colour and marker of the policy that uses them.
LOOKS = {
    "low-rank": "mlingreedy",
    "alone": "naive",
    "moments": "e2tc",
    "pairs": "e2tc(exponent=1)",
    "spectral": "e2tc(subspace=spectral)",
}
# Where a sine is above this, its bound is near 1 and says nothing.
SMALL_SINE = 0.5
# Rows of features that are held at a time.
ROWS = 2**17


@dataclass(frozen=True)
class Sizes:
    """Sizes of the problems that are measured, and the numbers of rounds."""

    dim: int
    rank: int
    n_tasks: tuple[int, ...]
    rounds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Guarantees:
    """The study: errors of estimates from rounds at random.

    Parameters
    ----------
    predicted : Sizes
        Of the problems whose in-sample error is measured.
    represented : Sizes
        Of the problems whose representation is estimated.
    """

    predicted: Sizes = Sizes(dim=20, rank=2, n_tasks=(20, 60, 200), rounds=(50, 150, 500, 1500))
    represented: Sizes = Sizes(dim=10, rank=2, n_tasks=(50, 200, 800), rounds=(200, 800, 3200, 12_800))

    name: ClassVar = "guarantees"
    measured: ClassVar = ("estimator", "error", "bound", "seconds")
    images: ClassVar = None

    @property
    def cells(self) -> tuple[Mapping[str, Any], ...]:
        """All numbers of tasks and rounds, of both measures."""
        return tuple(
            {"measure": measure, "n_tasks": n_tasks, "rounds": rounds}
            for measure, sizes in ((IN_SAMPLE, self.predicted), (SINE, self.represented))
            for n_tasks in sizes.n_tasks
            for rounds in sizes.rounds
        )

    def parameters(self) -> dict[str, Any]:
        """Return the sizes, as JSON has them."""
        return {
            name: {size: list(value) if isinstance(value, tuple) else value for size, value in sizes.items()}
            for name, sizes in asdict(self).items()
        }

    def columns(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cell's parameters."""
        return dict(cell)

    def work(self, cell: Mapping[str, Any]) -> int:
        """Return the numbers that its rounds consist of."""
        return int(cell["n_tasks"] * cell["rounds"])

    def check(self, cell: Mapping[str, Any]) -> None:
        """Raise what is wrong with the sizes of a cell: nothing is, once they are made."""

    def play(self, cell: Mapping[str, Any], seed: int) -> pl.DataFrame:
        """Measure the errors of a cell under a seed."""
        measure = _in_sample if cell["measure"] == IN_SAMPLE else _sines
        sizes = self.predicted if cell["measure"] == IN_SAMPLE else self.represented
        clock = time.perf_counter()
        setting = Setting(horizon=cell["rounds"], n_tasks=cell["n_tasks"], dim=sizes.dim, rank=sizes.rank)
        errors, bound = measure(setting, np.random.default_rng([seed, cell["n_tasks"], cell["rounds"]]))
        seconds = (time.perf_counter() - clock) / len(errors)
        rows = [(name, error, bound, seconds) for name, error in errors.items()]
        return pl.DataFrame(rows, schema=list(self.measured), orient="row")


def _in_sample(setting: Setting, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """Return sums of (theta_hat - theta)'G_t(theta_hat - theta) after N rounds at random, and the bound."""
    n_tasks, dim, rank = setting.n_tasks, setting.dim, setting.rank
    theta = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=rng).theta
    x = rng.standard_normal((setting.horizon, n_tasks, dim)) / math.sqrt(dim)
    statistics = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((setting.horizon, n_tasks)))
    estimators: dict[str, Estimator] = {"low-rank": LowRank(rank=rank), "alone": Ridge(penalty=0.0)}
    off = {name: estimator.fit(statistics).theta - theta for name, estimator in estimators.items()}
    errors = {
        name: float(np.einsum("ti,tij,tj->", wrong, statistics.gram, wrong)) for name, wrong in off.items()
    }
    return errors, in_sample_error(setting)


def _sines(setting: Setting, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """Return the largest sines between B and estimates from N rounds on the sphere, and the bound."""
    n_tasks, dim, rank, rounds = setting.n_tasks, setting.dim, setting.rank, setting.horizon
    problem = EllipsoidProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=rng)
    statistics = MomentStatistics.zeros(n_tasks, dim)
    step = max(1, ROWS // n_tasks)
    for start in range(0, rounds, step):
        n = min(step, rounds - start)
        x = unit_vectors(n * n_tasks, dim, rng).reshape(n, n_tasks, dim)
        rewards = np.vecdot(x, problem.theta) + rng.standard_normal((n, n_tasks))
        statistics = statistics + MomentStatistics.of(x, rewards)
    known = problem.assumptions
    errors = {
        name: largest_sine(problem.basis, way.basis(statistics, rank)) for name, way in SUBSPACES.items()
    }
    return errors, moment_error(setting, explore=rounds, inner_radius=known.lambda_0, diversity=known.nu)


def in_sample_claim(table: pl.DataFrame) -> Claim:
    """Decide whether the ratio of in-sample error to bound does not grow with T, nor with n."""
    rows = table.filter(pl.col("measure") == IN_SAMPLE, pl.col("estimator") == "low-rank")
    ratio = pl.col("error") / pl.col("bound")
    samples = {
        f"along {symbol}": np.mean(
            [
                log_slopes(group, along, ratio)
                for _, group in rows.group_by("rounds" if along == "n_tasks" else "n_tasks")
            ],
            axis=0,
        )
        for along, symbol in (("n_tasks", "T"), ("rounds", "n"))
    }
    most = rows.select(ratio.max()).item()
    slopes = ", ".join(f"{name} {with_interval(sample)}" for name, sample in samples.items())
    return signed_claim(
        simultaneous(samples),
        -1,
        statement="The in-sample error of low-rank least squares grows no faster than (dk + kT) log(NTdk).",
        source="paper",
        measure="slope of log(error / bound) in a log-log plot",
        reading=f"The ratio is at most {most:.2f} in all runs, and its exponents are: {slopes}.",
    )


def small_sines(table: pl.DataFrame, estimator: str) -> pl.DataFrame:
    """Return the rows of an estimator in those cells where its mean sine is small, with `samples` = N_1 T."""
    rows = table.filter(pl.col("measure") == SINE, pl.col("estimator") == estimator)
    means = summarise(rows, by=["n_tasks", "rounds"], value="error").filter(pl.col("error") < SMALL_SINE)
    kept = rows.join(means.select("n_tasks", "rounds"), on=["n_tasks", "rounds"], how="semi")
    return kept.with_columns((pl.col("n_tasks") * pl.col("rounds")).alias("samples"))


def sine_exponents(table: pl.DataFrame, estimator: str) -> Array:
    """Return the exponent of N_1 T in the sine, for every seed; cells of equal N_1 T are averaged."""
    kept = small_sines(table, estimator).group_by("samples", "seed").agg(pl.col("error").log().mean().exp())
    return log_slopes(kept, "samples", pl.col("error"))


def sine_claim(table: pl.DataFrame) -> Claim:
    """Decide whether the sine of the method of moments falls like 1/√(N_1 T)."""
    found = {name: sine_exponents(table, name) for name in SUBSPACES}
    rows = small_sines(table, "moments")
    most = rows.select((pl.col("error") / pl.col("bound")).max()).item()
    others = ", ".join(
        f"{with_interval(found[name])} for {words}"
        for name, words in {"pairs": "pairs of rounds", "spectral": "the tasks' own estimates"}.items()
    )
    return range_claim(
        {"method of moments": found["moments"]},
        -0.6,
        -0.4,
        statement="The method of moments finds the representation at the rate 1/√(N_1 T).",
        source="paper",
        measure=f"slope of log sine against log(N_1 T), where the sine is below {SMALL_SINE}",
        reading=(
            f"The exponent is {with_interval(found['moments'])}; {others}. In all runs the sine is at most "
            f"{most:.2f} times d^1.5 k / (lambda_0 nu √(N_1 T))."
        ),
    )


def errors_chart(table: pl.DataFrame) -> Chart:
    """Return in-sample errors relative to their bound, and sines against N_1 T beside theirs."""
    return Chart(
        stem="errors",
        title=TITLE,
        panels=(_in_sample_panel(table), _sine_panel(table)),
        caption="Errors after rounds at random, both axes logarithmic. Left: of predictions at the actions "
        "played, as a share of the paper's bound, (dk + kT) log(nTdk); the stronger the colour, the more "
        "tasks. Right: of the representation B. Bars are 95 % intervals over seeds.",
        same_y=False,
    )


def _in_sample_panel(table: pl.DataFrame) -> Panel:
    ratio = pl.col("error") / pl.col("bound")
    rows = table.filter(pl.col("measure") == IN_SAMPLE).with_columns(ratio)
    tasks = sorted(set(rows["n_tasks"]))
    strength = dict(zip(tasks, np.linspace(0.4, 1.0, len(tasks)).tolist(), strict=True))
    drawn = tuple(
        series(
            summarise(group, by=["rounds"], value="error"),
            x="rounds",
            y="error",
            label=f"{name}, T = {n_tasks}",
            style=style_of(LOOKS[str(name)]),
            opacity=strength[n_tasks],
        )
        for (name, n_tasks), group in rows.group_by(["estimator", "n_tasks"], maintain_order=True)
    )
    return Panel(
        title="predictions",
        x=Axis(label="rounds n at random", scale="log", ticks=tuple(sorted(set(rows["rounds"])))),
        y=Axis(label="in-sample error / bound", scale="log"),
        series=drawn,
    )


def _sine_panel(table: pl.DataFrame) -> Panel:
    samples = (pl.col("rounds") * pl.col("n_tasks")).alias("samples")
    rows = table.filter(pl.col("measure") == SINE).with_columns(samples)
    drawn = [
        series(
            summarise(group, by=["samples"], value="error"),
            x="samples",
            y="error",
            label=ESTIMATORS[str(name)][0],
            style=style_of(LOOKS[str(name)]),
        )
        for (name,), group in rows.group_by(["estimator"], maintain_order=True)
    ]
    bound = summarise(rows, by=["samples"], value="bound")
    drawn.append(reference("bound of the moments", bound["samples"].to_list(), bound["bound"].to_list()))
    return Panel(
        title="representation",
        x=Axis(label="samples N_1 T", scale="log"),
        y=Axis(label="largest sine to B", scale="log"),
        series=tuple(drawn),
    )


STUDY = Guarantees()


def figure(study: Guarantees = STUDY) -> Figure:
    """Return the figure of a study of guarantees."""
    return Figure(
        title=TITLE,
        study=study,
        claims=(in_sample_claim, sine_claim),
        charts=lambda table: (errors_chart(table),),
        setting={"noise": "N(0, 1)", "rounds": "at random"},
        remark=(
            "The paper bounds the errors of its two estimators, up to a constant. Here they are measured on "
            "rounds at random, without a policy, and held beside the bounds with the constant 1."
        ),
        columns={"measure": "measure", "n_tasks": "T", "rounds": "n"},
        command=("guarantees",),
        value="error",
        estimators=ESTIMATORS,
    )
