"""`posse evaluate`: what policies would have earned on the traffic of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from posse.cli.console import plain_errors
from posse.cli.log_options import Features, Log, Reward, Task, listed, load_model, showing_rows, typed
from posse.logs import Evaluation, evaluate
from posse.logs.evaluation.answers import USUAL, WITHOUT_MODEL
from posse.logs.evaluation.evaluate import PARTS
from posse.logs.evaluation.result import Gain, Row
from posse.logs.evaluation.targets import ARM, COLUMN, LOGGED, UNIFORM

MODEL = "model:"
# Estimators that the table shows beside the usual one; --json and --html have them all.
BESIDE = ("snips", "ips", "dm")
# How many tasks are named; and tables may be so wide, lest intervals are broken into lines.
MOST_TASKS, WIDE = 20, 240

Arm = Annotated[str | None, typer.Option(help="The column that names the arm that was played.")]
Propensity = Annotated[
    str | None,
    typer.Option(help="The column with the probability of the choice (default: estimated, and said so)."),
]
Decision = Annotated[
    str | None, typer.Option(help="The column that names the decision, where arms on offer have rows.")
]
Chosen = Annotated[str | None, typer.Option(help="The column that says which row of a decision was played.")]
Offered = Annotated[
    str | None, typer.Option(help="The column with a list of the arms on offer, if not all were.")
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A name of `posse list`, as shared-thompson(floor=0.05); uniform; arm:NAME; model:FILE; "
        "column:NAME; MODULE:NAME. Repeat it for several.",
    ),
]


def command(
    context: typer.Context,
    log: Log,
    task: Task,
    reward: Reward,
    policies: Policies,
    arm: Arm = None,
    propensity: Propensity = None,
    decision: Decision = None,
    chosen: Chosen = None,
    offered: Offered = None,
    time: Annotated[
        str | None,
        typer.Option(help="The column with the time: policies then learn from the past alone."),
    ] = None,
    features: Features = None,
    interval: Annotated[
        str, typer.Option(help="The kind of intervals: asymptotic, bootstrap, bernstein or sequence.")
    ] = "asymptotic",
    level: Annotated[float, typer.Option(help="Their confidence.")] = 0.95,
    choose: Annotated[
        bool, typer.Option("--choose", help="Choose a policy by the lower end of its gain.")
    ] = False,
    by_task: Annotated[bool, typer.Option("--by-task", help="Show every task, and choose for each.")] = False,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="Where a log cannot answer, give the direct method's number."),
    ] = False,
    parts: Annotated[int, typer.Option(help="How many parts, or windows, of the log.")] = PARTS,
    seed: Annotated[int, typer.Option(help="Of the deal, of policies that draw, of the bootstrap.")] = 0,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with all of it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON, and nothing else.")] = False,
) -> None:
    """Say what policies would have earned on the traffic of a log, beside the one that wrote it.

    A log has a row for each decision: its task, context, the arm that was played, the probability of that
    choice, and the reward. Or, with --decision and --chosen, a row for every arm on offer. Policies are
    trained on other parts of the log than they are evaluated on.

    For example: posse evaluate sales.parquet --task shop --arm offer --reward sold --propensity chance
    --policy shared-thompson --policy arm:none

    Before any number the log is asked whether it has an answer: where it has none, the reason is said.
    """
    with plain_errors(context):
        with showing_rows(f"Reading {log}") as show:
            found = evaluate(
                log,
                {name: target_of(name) for name in policies},
                task=task,
                reward=reward,
                arm=arm,
                propensity=propensity,
                decision=decision,
                chosen=chosen,
                offered=offered,
                time=time,
                features=None if features is None else listed(features),
                interval=interval,
                level=level,
                direct=direct,
                choosing=("tasks" if by_task else "pooled") if choose else None,
                n_parts=parts,
                seed=seed,
                on_rows=show,
            )
        if html is not None:
            from posse.logs.evaluation.page import write_evaluation

            write_evaluation(found, html, typed(context, "evaluate"))
        if json:
            print(found.to_json())
            return
        show_evaluation(found, by_task=by_task)
        if html is not None:
            print(html)


def target_of(text: str) -> Any:
    """Return the policy that a text stands for: a value of the library, or a text that it knows itself."""
    if text == UNIFORM or text.startswith((ARM, COLUMN)):
        return text
    if text.startswith(MODEL):
        return load_model(text.removeprefix(MODEL))
    from posse.lab.registry import make_named_policy

    return make_named_policy(text)


def show_evaluation(found: Evaluation, *, by_task: bool) -> None:
    """Print what a reader should know first, the policies pooled, every task if asked, and the choice."""
    console = Console(width=WIDE, soft_wrap=True, highlight=False)
    for note in found.notes:
        console.print(f"[yellow]Note:[/] {escape(note)}.")
    if found.notes:
        console.print()
    console.print(pooled_table(found))
    if by_task:
        console.print()
        console.print(task_table(found))
    if found.choices:
        console.print()
    for choice in found.choices[:MOST_TASKS]:
        where = "" if choice.task is None else f"{choice.task}: "
        console.print(
            escape(
                f"{where}keep the logged policy: the lower end of nobody's gain is above 0."
                if choice.policy == LOGGED
                else f"{where}choose {choice.policy}: it gains {choice.low:.4g} at least, and the chance of "
                f"being worse than the logged policy is {chance_in_words(choice.chance_worse)}."
            )
        )


def pooled_table(found: Evaluation) -> Table:
    """Return the table of all tasks together, a row for each policy."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy")
    flag = ", propensities estimated" if found.estimated else ""
    table.add_column(f"value, {found.level:.0%} interval{flag}", justify="right")
    table.add_column("gain", justify="right")
    for name in BESIDE:
        table.add_column(name, justify="right")
    table.add_column("ess", justify="right")
    gains = {gain.policy: gain for gain in found.gains if gain.task is None}
    for policy in found.policies:
        rows = found.pooled(policy)
        usual = usual_row(rows)
        beside = [number(rows[name].value) if name in rows else "" for name in BESIDE]
        table.add_row(
            escape(policy), with_ends(usual), gain_in_words(gains.get(policy)), *beside, f"{usual.ess:,.0f}"
        )
    return table


def task_table(found: Evaluation) -> Table:
    """Return the table of every task, a column for each policy."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("task, propensities estimated" if found.estimated else "task")
    for policy in found.policies:
        table.add_column(escape(policy), justify="right")
    rows: dict[tuple[str | None, str], dict[str, Row]] = {}
    for row in found.rows:
        rows.setdefault((row.task, row.policy), {})[row.estimator] = row
    for task in found.tasks:
        table.add_row(escape(task), *(with_ends(usual_row(rows[task, policy])) for policy in found.policies))
    return table


def usual_row(rows: dict[str, Row]) -> Row:
    """Return the estimate of a policy that stands for it: the doubly robust one, or the next best."""
    known = (name for name in (USUAL, WITHOUT_MODEL, "mean") if name in rows)
    found = rows[next(known)]
    return rows["dm"] if found.value is None and rows.get("dm", found).value is not None else found


def number(value: float | None) -> str:
    """Return a number in four digits; a dash where there is none.

    Examples
    --------
    >>> number(12.34567), number(None)
    ('12.35', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def with_ends(row: Row) -> str:
    """Return a value with the ends of its interval."""
    if row.low is None or row.high is None:
        why = "by the model alone" if row.estimator == "dm" else "without an interval"
        return "nothing can be said" if row.value is None else f"{number(row.value)} {why}"
    return f"{number(row.value)} [{number(row.low)}, {number(row.high)}]"


def gain_in_words(gain: Gain | None) -> str:
    """Return a gain with the ends of its interval; nothing if there is none."""
    return "" if gain is None else f"{gain.gain:+.3g} [{gain.low:+.3g}, {gain.high:+.3g}]"


def chance_in_words(chance: float) -> str:
    """Return a chance that is known from above.

    Examples
    --------
    >>> chance_in_words(0.0234), chance_in_words(1e-9)
    ('0.023 at most', 'below 0.001')
    """
    return "below 0.001" if chance < 0.001 else f"{chance:.2g} at most"
