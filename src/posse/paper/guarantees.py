"""The paper's guarantees for its two estimators, measured: errors in sample, and of the representation.

These are estimates from rounds at random, not runs of policies, so they have a table of their own: a row for
each `measure`, `estimator`, `n_tasks`, `rounds` and `seed`, with the `error` and the theorem's `bound`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from posse.core.protocols import Estimator
from posse.core.statistics import GramStatistics
from posse.estimators import LowRank, MethodOfMoments, PairedMoments, Ridge, TaskSpectral
from posse.estimators.moments import MomentStatistics, SubspaceEstimator, largest_sine
from posse.lab.engines import in_parallel
from posse.lab.results import summarise, write_json, write_table
from posse.numerics.random import unit_vectors
from posse.paper.claims import Claim, signed_claim, simultaneous
from posse.paper.exponents import log_slopes, range_claim, with_interval
from posse.paper.theory import Setting, in_sample_error, moment_error
from posse.paper.theory_plots import draw_guarantees
from posse.problems import EllipsoidProblem, GaussianProblem
from posse.viz.plots import save

GUARANTEES = "guarantees"
TITLE = "Guarantees of the paper's estimators"
IN_SAMPLE, SINE = "in-sample error", "largest sine"
SUBSPACES: Mapping[str, SubspaceEstimator] = MappingProxyType(
    {"moments": MethodOfMoments(), "pairs": PairedMoments(), "spectral": TaskSpectral()}
)
# Where a sine is above this, its bound is near 1 and says nothing.
SMALL_SINE = 0.5
# Rows of features that are held at a time.
ROWS = 2**17


@dataclass(frozen=True)
class Grid:
    """Sizes of the problems that are measured, and the numbers of rounds."""

    dim: int
    rank: int
    n_tasks: tuple[int, ...]
    rounds: tuple[int, ...]

    @property
    def cells(self) -> list[tuple[int, int]]:
        """The pairs of T and n."""
        return [(n_tasks, rounds) for n_tasks in self.n_tasks for rounds in self.rounds]


PREDICTED = Grid(dim=20, rank=2, n_tasks=(20, 60, 200), rounds=(50, 150, 500, 1500))
REPRESENTED = Grid(dim=10, rank=2, n_tasks=(50, 200, 800), rounds=(200, 800, 3200, 12_800))


def measure(seed: int) -> pl.DataFrame:
    """Return all errors of one seed."""
    rows = [
        *(row for n_tasks, rounds in PREDICTED.cells for row in _in_sample(n_tasks, rounds, seed)),
        *(row for n_tasks, rounds in REPRESENTED.cells for row in _sines(n_tasks, rounds, seed)),
    ]
    return pl.DataFrame(rows).with_columns(pl.lit(seed).alias("seed"))


def _in_sample(n_tasks: int, rounds: int, seed: int) -> list[dict[str, Any]]:
    """Return the sum of (theta_hat - theta)'G_t(theta_hat - theta) after some rounds at random."""
    dim, rank = PREDICTED.dim, PREDICTED.rank
    rng = np.random.default_rng([seed, n_tasks, rounds])
    theta = GaussianProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=rng).theta
    x = rng.standard_normal((rounds, n_tasks, dim)) / math.sqrt(dim)
    statistics = GramStatistics.of(x, np.vecdot(x, theta) + rng.standard_normal((rounds, n_tasks)))
    bound = in_sample_error(Setting(rounds=rounds, tasks=n_tasks, dim=dim, rank=rank))
    rows = []
    estimators: dict[str, Estimator] = {"low-rank": LowRank(rank=rank), "alone": Ridge(penalty=0.0)}
    for name, estimator in estimators.items():
        off = estimator.fit(statistics).theta - theta
        error = float(np.einsum("ti,tij,tj->", off, statistics.gram, off))
        rows.append(_row(IN_SAMPLE, name, n_tasks, rounds, error, bound))
    return rows


def _sines(n_tasks: int, rounds: int, seed: int) -> list[dict[str, Any]]:
    """Return the largest sine between B and its estimates after some rounds at random on the sphere."""
    dim, rank = REPRESENTED.dim, REPRESENTED.rank
    rng = np.random.default_rng([seed, n_tasks, rounds])
    problem = EllipsoidProblem.draw(n_tasks=n_tasks, dim=dim, rank=rank, seed=rng)
    statistics = MomentStatistics.zeros(n_tasks, dim)
    step = max(1, ROWS // n_tasks)
    for start in range(0, rounds, step):
        n = min(step, rounds - start)
        x = unit_vectors(n * n_tasks, dim, rng).reshape(n, n_tasks, dim)
        rewards = np.vecdot(x, problem.theta) + rng.standard_normal((n, n_tasks))
        statistics = statistics + MomentStatistics.of(x, rewards)
    setting = Setting(rounds=rounds, tasks=n_tasks, dim=dim, rank=rank)
    known = problem.assumptions
    bound = moment_error(setting, explore=rounds, inner_radius=known.lambda_0, diversity=known.nu)
    return [
        _row(SINE, name, n_tasks, rounds, largest_sine(problem.basis, way.basis(statistics, rank)), bound)
        for name, way in SUBSPACES.items()
    ]


def _row(
    measure: str, estimator: str, n_tasks: int, rounds: int, error: float, bound: float
) -> dict[str, Any]:
    return {
        "measure": measure,
        "estimator": estimator,
        "n_tasks": n_tasks,
        "rounds": rounds,
        "error": error,
        "bound": bound,
    }


def measure_guarantees(*, seeds: int, jobs: int, out: Path) -> pl.DataFrame:
    """Measure the seeds that an earlier call has not, and save all in OUT/guarantees."""
    folder = out / GUARANTEES
    parameters = {"posse": version("posse"), IN_SAMPLE: asdict(PREDICTED), SINE: asdict(REPRESENTED)}
    saved = _saved(folder, parameters)
    done = set() if saved is None else set(saved["seed"])
    calls = [(seed,) for seed in range(seeds) if seed not in done]
    with closing(in_parallel(measure, calls, jobs=jobs)) as results:
        tables = ([] if saved is None else [saved]) + list(results)
    keys = ["measure", "n_tasks", "rounds", "estimator", "seed"]
    table: pl.DataFrame = pl.concat(tables).filter(pl.col("seed") < seeds).sort(keys)
    write_table(folder / "results.parquet", table)
    write_json(folder / "manifest.json", {"parameters": parameters, "seeds": seeds})
    return table


def _saved(folder: Path, parameters: Mapping[str, Any]) -> pl.DataFrame | None:
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        if found["parameters"] == json.loads(json.dumps(parameters)):
            return pl.read_parquet(folder / "results.parquet")
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        pass
    return None


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


def sine_exponents(table: pl.DataFrame, estimator: str) -> np.ndarray[Any, Any]:
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


CLAIMS = (in_sample_claim, sine_claim)


def write_guarantees(table: pl.DataFrame, out: Path) -> tuple[Claim, ...]:
    """Draw the errors, decide the claims, and write both to OUT/guarantees."""
    claims = tuple(decide(table) for decide in CLAIMS)
    picture = draw_guarantees(table, TITLE)
    for ending in ("svg", "png"):
        save(picture, out / GUARANTEES / f"errors.{ending}")
    write_json(out / GUARANTEES / "claims.json", [asdict(claim) for claim in claims])
    return claims
