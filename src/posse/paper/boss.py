"""The study of BOSS: tasks that come one after the other, diverse or shown by an adversary.

T. Duong, Z. Wang and C. Zhang, Beyond task diversity (NeurIPS 2024), and the results that are stored with its
code. A cell is an order of tasks; its table has a row per policy and number of tasks, with total `regret`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from posse.core.extras import extra
from posse.core.protocols import Policy
from posse.lab.charts import series
from posse.lab.registry import look_of, style_of
from posse.lab.results import summarise
from posse.numerics.checks import Array
from posse.paper.boss_policies import StudiedBARON, StudiedPEGE, StudiedSeqRepL
from posse.paper.claims import Claim, Evidence, Verdict, signed_claim, simultaneous
from posse.paper.figure import Figure
from posse.play import StreamTrace, simulate
from posse.policies import BARON, BRESS, SharedThompson
from posse.problems import StreamProblem
from posse.viz.chart import Axis, Chart, Panel, Series
from posse.viz.style import REFERENCE, Style

with extra("lab"):
    import polars as pl

TITLE = "Streams of tasks: the study of BOSS"
OURS, PEGE, ORACLE, SEQREPL, BARONS = "shared-thompson", "pege-tau", "pege-oracle", "seqrepl", "baron"
FORMULA, BRESSES = "baron, formula", "bress"
# p of the study in each order, and tau_1 and tau_2 in both.
CHANCES = {"diverse": 0.15, "adversary": 5 * 78 / 6000}
TAUS = {"n_explore": 1000, "n_refine": 300}
IN_WORDS = {"diverse": "diverse tasks", "adversary": "tasks of an adversary"}
# Total regret after 6000 tasks, mean and standard deviation of five simulations: one or two stored runs.
PUBLISHED: Mapping[tuple[str, str], tuple[tuple[float, float], ...]] = MappingProxyType(
    {
        ("diverse", PEGE): ((3_121_486.0, 9_568.0), (3_136_591.0, 6_721.0)),
        ("diverse", ORACLE): ((1_014_463.0, 9_354.0), (1_022_550.0, 5_794.0)),
        ("diverse", SEQREPL): ((2_341_478.0, 9_773.0), (2_346_457.0, 13_693.0)),
        ("diverse", BARONS): ((2_352_491.0, 4_101.0),),
        ("adversary", PEGE): ((3_135_746.0, 14_303.0), (3_140_201.0, 16_716.0)),
        ("adversary", ORACLE): ((1_017_104.0, 5_164.0), (1_008_516.0, 8_969.0)),
        ("adversary", SEQREPL): ((6_537_329.0, 1_163_222.0), (6_682_370.0, 422_633.0)),
        ("adversary", BARONS): ((2_043_797.0, 10_221.0),),
    }
)
SIMULATIONS, STUDIED = 5, 6000
# What was asked of our policy before it was played: its mean total and its largest, in millions.
LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"diverse": (0.9, 1.05), "adversary": (1.4, 2.0)}
)
# Two means agree if they differ by at most so many standard errors of their difference.
AGREEMENT = 2.0
MILLION = 1e6


def published(order: str, policy: str) -> tuple[float, float]:
    """Return a published total, the mean of all its simulations, and the standard error of that mean."""
    runs = PUBLISHED[order, policy]
    means = np.array([mean for mean, _ in runs])
    n, centre = SIMULATIONS * len(runs), float(means.mean())
    squares = sum(SIMULATIONS * (deviation**2 + (mean - centre) ** 2) for mean, deviation in runs)
    return centre, math.sqrt(squares / (n - 1) / n)


def contestants(order: str, rank: int, basis: Array) -> dict[str, Policy]:
    """Return the policies of an order, by their names in the table, the published ones as the study has them.

    Its SeqRepL explores the tasks 0, 1, 4, 9, ... against the adversary alone, and at random, as BARON, where
    tasks are diverse.
    """
    baron = StudiedBARON(rank=rank, chance=CHANCES[order], **TAUS)
    return {
        OURS: SharedThompson(),
        BARONS: baron,
        SEQREPL: StudiedSeqRepL(rank=rank, **TAUS) if order == "adversary" else baron,
        FORMULA: BARON(rank=rank),
        BRESSES: BRESS(rank=rank),
        PEGE: StudiedPEGE(n_explore=210),
        ORACLE: StudiedPEGE(n_explore=55, basis=basis),
    }


LABELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        OURS: (look_of(OURS).label, "the prior learned from finished tasks, Thompson sampling; told no rank"),
        ORACLE: (look_of(ORACLE).label, "55 rounds along the columns of B, then commit"),
        FORMULA: ("BARON, formula", "BARON with p, tau_1 and tau_2 of its formulas"),
        BARONS: ("BARON", f"BARON with the study's p, tau_1 = {TAUS['n_explore']}, tau_2 = 300"),
        SEQREPL: ("SeqRepL", "with BARON's lengths; where tasks are diverse it explores at random, as BARON"),
        BRESSES: ("BRESS", "a subspace drawn by online principal components, by its formulas"),
        PEGE: ("PEGE", "each task alone: 210 rounds at random, then commit"),
    }
)


@dataclass(frozen=True, kw_only=True)
class BossStudy:
    """Total regret over a stream of tasks on the unit ball, in two orders.

    Parameters
    ----------
    n_tasks, rounds : int
        Of a stream, and of each task.
    dim, rank : int
        d and k.
    """

    n_tasks: int = STUDIED
    rounds: int = 2000
    dim: int = 10
    rank: int = 3

    name: ClassVar = "boss"
    measured: ClassVar = ("policy", "tasks", "regret", "seconds")
    images: ClassVar = None

    @property
    def cells(self) -> tuple[Mapping[str, Any], ...]:
        """The two orders."""
        return tuple({"order": order} for order in CHANCES)

    def parameters(self) -> dict[str, Any]:
        """Return the sizes, and what the published policies are told."""
        return {**asdict(self), "chances": dict(CHANCES), "taus": dict(TAUS)}

    def columns(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Return the order of tasks."""
        return dict(cell)

    def work(self, cell: Mapping[str, Any]) -> int:
        """Return the numbers that its rounds consist of."""
        return self.n_tasks * self.rounds * self.dim

    def check(self, cell: Mapping[str, Any]) -> None:
        """Raise what is wrong with a cell: nothing is, once the study is made."""

    def play(self, cell: Mapping[str, Any], seed: int) -> pl.DataFrame:
        """Play all policies on the stream of an order and a seed."""
        order = cell["order"]
        stream = StreamProblem.draw(
            n_tasks=self.n_tasks, dim=self.dim, rank=self.rank, order=order, seed=seed
        )
        tables = []
        for name, policy in contestants(order, self.rank, stream.basis).items():
            trace = simulate(stream, policy, horizon=self.rounds, seed=seed, final_state=False)
            assert isinstance(trace, StreamTrace)
            columns = {"policy": name, "tasks": trace.tasks, "regret": trace.total, "seconds": trace.seconds}
            tables.append(pl.DataFrame(columns))
        return pl.concat(tables)


@dataclass(frozen=True, kw_only=True)
class StreamFigure(Figure):
    """A figure of streams: what counts is the total after the last task."""

    @property
    def contestants(self) -> Mapping[str, tuple[str, str]]:
        """Label and summary of all policies, by their names in the table."""
        return LABELS

    def final(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the last number of tasks."""
        return table.filter(pl.col("tasks") == pl.col("tasks").max())


def totals(table: pl.DataFrame, order: str, policy: str) -> Array:
    """Return the total regret of a policy after all tasks of an order, a number per seed."""
    rows = table.filter(pl.col("order") == order, pl.col("policy") == policy)
    return rows.filter(pl.col("tasks") == pl.col("tasks").max()).sort("seed")["regret"].to_numpy()


def published_rows(order: str) -> Callable[[pl.DataFrame], Claim]:
    """Return the claim that the published totals of an order are met within two standard errors."""

    def decide(table: pl.DataFrame) -> Claim:
        evidence, said, offs = [], [], []
        for policy in (PEGE, ORACLE, SEQREPL, BARONS):
            sample = totals(table, order, policy) / MILLION
            told, error = (value / MILLION for value in published(order, policy))
            off = float(sample.mean()) - told
            own = sample.std(ddof=1) / math.sqrt(len(sample)) if len(sample) > 1 else math.inf
            half = AGREEMENT * math.hypot(float(own), error)
            ends = (off - half, off + half) if math.isfinite(half) else (None, None)
            evidence.append(Evidence(LABELS[policy][0], off, *ends))
            offs.append(abs(off) <= half if math.isfinite(half) else None)
            said.append(f"{LABELS[policy][0]} {sample.mean():.3f} ({told:.3f} published)")
        verdict: Verdict = "undecided" if None in offs else "holds" if all(offs) else "fails"
        return Claim(
            statement=f"Four published totals, {IN_WORDS[order]}, are met within two standard errors.",
            source="posse",
            measure="total regret minus the published one, in millions; intervals are of two standard errors",
            verdict=verdict,
            tally=(offs.count(True), offs.count(False)),
            reading=f"In millions: {', '.join(said)}.",
            evidence=tuple(evidence),
        )

    return decide


def below_the_best(order: str) -> Callable[[pl.DataFrame], Claim]:
    """Return the claim that our policy has less regret than every other in an order, the oracle included."""

    def decide(table: pl.DataFrame) -> Claim:
        ours = totals(table, order, OURS) / MILLION
        others = {name: totals(table, order, name) / MILLION for name in LABELS if name != OURS}
        samples = {f"{LABELS[name][0]}": sample - ours for name, sample in others.items()}
        best = min(others, key=lambda name: float(others[name].mean()))
        return signed_claim(
            simultaneous(samples),
            1,
            statement=f"SharedThompson, told no rank, has the least regret of all, {IN_WORDS[order]}.",
            source="posse",
            measure="total regret of another policy minus that of SharedThompson, in millions",
            reading=f"In millions: {ours.mean():.3f} on average over {len(ours)} streams, {ours.max():.3f} "
            f"in the worst; the next is {LABELS[best][0]} with {others[best].mean():.3f}.",
        )

    return decide


def within_limits(order: str) -> Callable[[pl.DataFrame], Claim]:
    """Return the claim that our policy's mean total, and that of every stream, stay within limits."""

    def decide(table: pl.DataFrame) -> Claim:
        ours = totals(table, order, OURS) / MILLION
        typical, most = LIMITS[order]
        (mean,) = simultaneous({"limit of the mean, less the mean": typical - ours})
        spare = most - float(ours.max())
        worst = Evidence("limit of every stream, less the worst", spare, spare, spare)
        side = "within" if ours.mean() <= typical else "above"
        n_above = int((ours > most).sum())
        return signed_claim(
            (mean, worst),
            1,
            statement=f"SharedThompson's total is at most {typical} million on average, and {most} in every "
            f"stream, {IN_WORDS[order]}.",
            source="posse",
            measure="limits that were set before, less what was found, in millions; the worst, no interval",
            reading=f"The mean of {len(ours)} streams is {ours.mean():.3f} million, {side} its limit; the "
            f"worst is {ours.max():.3f}; {n_above} of them {'is' if n_above == 1 else 'are'} above theirs.",
        )

    return decide


def regret_over_tasks(table: pl.DataFrame) -> Chart:
    """Return the total regret against the number of tasks, in both orders, and the published ends."""
    panels = []
    for order in dict.fromkeys(table["order"]):
        own = table.filter(pl.col("order") == order)
        drawn = [
            series(
                summarise(own.filter(pl.col("policy") == name), by=["tasks"], value="regret"),
                x="tasks",
                y="regret",
                label=label,
                style=style_of(name) if name != FORMULA else Style(style_of(BARONS).colour, line="dotted"),
                kind="band",
                factor=1 / MILLION,
            )
            for name, (label, _) in LABELS.items()
        ]
        if max(own["tasks"]) == STUDIED:
            ends = [published(order, name)[0] / MILLION for name in (PEGE, ORACLE, SEQREPL, BARONS)]
            drawn.append(
                Series(
                    label="published, after 6000 tasks",
                    style=Style(REFERENCE, "cross"),
                    x=(float(STUDIED),) * len(ends),
                    y=tuple(ends),
                    kind="points",
                )
            )
        panels.append(
            Panel(
                title=IN_WORDS[order],
                x=Axis(label="tasks that have ended", low=0.0),
                y=Axis(label="total regret (millions)", low=0.0),
                series=tuple(drawn),
            )
        )
    return Chart(
        stem="regret-over-tasks",
        title=TITLE,
        panels=tuple(panels),
        caption="Total regret of all tasks so far against their number. Bands are 95 % intervals over seeds; "
        "crosses are the totals that were published, where there are some.",
        same_y=False,
    )


STUDY = BossStudy()


def figure(study: BossStudy = STUDY) -> Figure:
    """Return the figure of a study of streams."""
    return StreamFigure(
        title=TITLE,
        study=study,
        claims=tuple(
            claim(order) for claim in (within_limits, published_rows, below_the_best) for order in CHANCES
        ),
        charts=lambda table: (regret_over_tasks(table),),
        setting={
            "tasks": f"{study.n_tasks}, one after the other",
            "rounds of each": f"{study.rounds}",
            "dimension d": f"{study.dim}",
            "rank k": f"{study.rank}",
            "actions": "the unit ball",
            "noise": "N(0, 1)",
        },
        remark=(
            "Where tasks are diverse all columns of B are out after three tasks. The adversary shows the "
            "second after 500 and the third after 1000; once the second is out it shows the first to tasks "
            "whose number is a square, which SeqRepL explores, and to no other. The published policies are "
            "told the rank, and were given p, tau_1 and tau_2 by hand; SharedThompson is told nothing. "
            "Published SeqRepL and BARON are one algorithm where tasks are diverse: these rows are one "
            "check, not two."
        ),
        columns={"order": "order of tasks"},
        command=("boss",),
        value="regret",
    )
