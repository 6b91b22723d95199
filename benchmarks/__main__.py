"""Measure: `python -m benchmarks`, or one of its parts by name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from benchmarks import agent, evaluation, factor_prior, learner, log_sums, low_rank, service, simulation

console = Console(width=140)
app = typer.Typer(help=__doc__, invoke_without_command=True)


@app.callback()
def everything(context: typer.Context) -> None:
    """Measure everything, if no part is named."""
    if context.invoked_subcommand is None:
        low_rank_speed()
        low_rank_scale()
        low_rank_wide()
        factor_prior_speed()
        factor_prior_averages()
        factor_prior_scale()
        decisions()
        live()
        serve()
        memory()
        logs()
        evaluate()
        low_rank_quality()


@app.command()
def decisions(repeats: Annotated[int, typer.Option(help="Times each is measured.")] = 5) -> None:
    """Time single decisions and rewards of a Learner, for few tasks and for many."""
    console.print(learner.decisions(repeats))


@app.command()
def live(
    repeats: Annotated[int, typer.Option(help="Times each is measured.")] = 5,
    decisions: Annotated[int, typer.Option(help="Until an agent has made so many.")] = 1_000_000,
) -> None:
    """Time decisions and rewards of an Agent: in memory, in a file, beside a refit, at first, as it grows."""
    console.print(agent.decisions(repeats))
    console.print(agent.beside_fit(repeats))
    console.print(agent.first_decision(repeats))
    console.print(agent.growth(decisions))


@app.command()
def serve(
    repeats: Annotated[int, typer.Option(help="Times each is measured.")] = 10,
    keep: Annotated[bool, typer.Option("--keep", help="Store it, and write it into the page.")] = False,
) -> None:
    """Time requests to `posse serve` beside a random arm by the server it has, and by another."""
    found = service.measure(repeats)
    console.print(service.table(found))
    if keep:
        service.keep(found)


@app.command()
def low_rank_quality(
    instances: Annotated[int, typer.Option(help="Random instances of each kind.")] = 200,
    jobs: Annotated[int, typer.Option(help="Processes to use.")] = 2,
) -> None:
    """Compare LowRank's minima with the best of many restarts of another optimiser."""
    console.print(low_rank.quality(instances, jobs))


@app.command()
def low_rank_speed(
    seeds: Annotated[int, typer.Option(help="Instances.")] = 5,
    repeats: Annotated[int, typer.Option(help="Times each is solved.")] = 3,
) -> None:
    """Time LowRank beside SciPy's L-BFGS, and for more and more tasks."""
    console.print(low_rank.speed(seeds, repeats))
    console.print(low_rank.scaling(repeats))


@app.command()
def low_rank_scale(repeats: Annotated[int, typer.Option(help="Times each is fitted.")] = 3) -> None:
    """Time LowRank for a thousand to a hundred thousand tasks, and measure memory."""
    for table in low_rank.scale(repeats):
        console.print(table)


@app.command()
def low_rank_wide(
    repeats: Annotated[int, typer.Option(help="Times LowRank is fitted.")] = 1,
    max_iter: Annotated[int, typer.Option(help="Iterations that L-BFGS may take.")] = 5000,
) -> None:
    """Time LowRank on the pixels of pairs of digits, beside SciPy's L-BFGS."""
    for table in low_rank.wide(repeats, max_iter):
        console.print(table)


@app.command()
def factor_prior_speed(
    repeats: Annotated[int, typer.Option(help="Times each is fitted.")] = 5,
    wide: Annotated[bool, typer.Option(help="Time it on the pixels of images, too.")] = True,
) -> None:
    """Time FactorPrior, cold and warm, beside expectation maximisation."""
    console.print(factor_prior.speed(repeats))
    if wide:
        console.print(factor_prior.wide(1))


@app.command()
def factor_prior_averages(
    repeats: Annotated[int, typer.Option(help="Times each is fitted.")] = 5,
) -> None:
    """Time FactorPrior with averages over priors, beside the likeliest prior alone."""
    console.print(factor_prior.averages(repeats))


@app.command()
def factor_prior_scale(
    most: Annotated[int, typer.Option(help="The largest number of tasks.")] = 100_000,
) -> None:
    """Time FactorPrior for more and more tasks, and measure memory."""
    console.print(factor_prior.scale(most))


@app.command()
def memory() -> None:
    """Measure the memory of a run of the simulator."""
    console.print(simulation.memory())


@app.command()
def logs(
    repeats: Annotated[int, typer.Option(help="Times each is measured.")] = 3,
    large: Annotated[bool, typer.Option(help="Measure ten million rows and a million tasks, too.")] = True,
    keep: Annotated[bool, typer.Option("--keep", help="Store it in benchmarks/results.")] = False,
) -> None:
    """Time sums of a log by task beside DuckDB and polars, and measure memory."""
    found = log_sums.measure(repeats, large)
    print("\n".join(log_sums.markdown(found)))
    if large:
        print(f"Time grows like the number of tasks to the power {log_sums.slope(found):.2f}.")
    if keep:
        log_sums.keep(found)


@app.command()
def evaluate(
    rows: Annotated[int, typer.Option(help="Decisions of the log.")] = evaluation.N_ROWS,
) -> None:
    """Time the evaluation of deterministic policies on ten million decisions, and measure memory."""
    console.print(evaluation.large(rows))


app()
