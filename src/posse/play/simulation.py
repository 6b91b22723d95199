"""One run: a problem deals rounds, policies play them, regret is counted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from posse.core.protocols import Policy, Problem
from posse.core.streams import CarriesOver, Stream
from posse.numerics.checks import IntArray, check_choice, check_integer
from posse.play.dealing import generator
from posse.play.player import Player, Trace
from posse.play.rounds import PATHS, play_rounds
from posse.play.stream import course_of, play_stream


def simulate(
    problem: Problem | Stream,
    policy: Policy,
    *,
    horizon: int,
    seed: int,
    checkpoints: ArrayLike | None = None,
    path: str = "auto",
    final_state: bool = True,
) -> Trace:
    """Play one policy for `horizon` rounds.

    Parameters
    ----------
    problem : Problem or Stream
    policy : Policy
    horizon : int
        N, the number of rounds; on a stream those of each task.
    seed : int
    checkpoints : (m,) integers, optional
        Rounds after which to record regret; the horizon is always among them. By default about 30,
        evenly spaced on a logarithmic scale.
    path : {"auto", "exact", "contexts"}
        "contexts" draws the features of every arm, "exact" only what greedy play on a `GaussianProblem`
        depends on; "auto" is exact where it can.
    final_state : bool
        Whether the trace can be asked for the state after the last round.

    Examples
    --------
    >>> from posse import GaussianProblem, MLinGreedy
    >>> problem = GaussianProblem.draw(n_tasks=10, dim=8, rank=2, seed=0)
    >>> trace = simulate(problem, MLinGreedy(rank=2), horizon=500, seed=0)
    >>> trace.regret.shape[1], int(trace.rounds[-1])
    (10, 500)
    """
    if isinstance(policy, type):
        raise ValueError(f"`policy` must be a policy, not a class of policies. Got {policy.__name__}.")
    (trace,) = simulate_all(
        problem,
        {"": policy},
        horizon=horizon,
        seed=seed,
        checkpoints=checkpoints,
        path=path,
        final_state=final_state,
    ).values()
    return trace


def simulate_all(
    problem: Problem | Stream,
    policies: Mapping[str, Policy],
    *,
    horizon: int,
    seed: int,
    checkpoints: ArrayLike | None = None,
    path: str = "auto",
    final_state: bool = True,
) -> dict[str, Trace]:
    """Play several policies on the same rounds: the same actions on offer, the same noise.

    The seed is split into three streams, for actions, noise and the policies' own draws. Rounds are
    dealt once, in chunks, and every policy plays each chunk before the next but one is dealt, so memory
    does not grow with the horizon. On the same path, what a policy does depends neither on its company
    nor on the machine's number of cores: to the last bit.

    Where action sets never change (`StaticProblem`) nothing is dealt. A policy that plays one action
    through a block gets the block's noise as a total, drawn from the same stream, so policies share
    noise only as far as their blocks agree.

    Parameters
    ----------
    problem : Problem or Stream
    policies : mapping of names to policies
    horizon : int
        N, the number of rounds; on a stream those of each task.
    seed : int
    checkpoints : (m,) integers, optional
        Rounds after which to record regret; the horizon is always among them. By default about 30,
        evenly spaced on a logarithmic scale.
    path : {"auto", "exact", "contexts"}
        "contexts" draws the features of every arm. "exact" draws two numbers for each instead, and then the
        statistics of whole blocks: the same in law, many times faster, for `GaussianProblem` and policies
        that are greedy throughout. Policies then meet the same mean rewards and the same noise; how wrong
        an estimate is about an arm is drawn once for all of them, along the direction in which each errs.
        "auto" is exact where all policies allow it.
    final_state : bool
        Whether the traces can be asked for the state after the last round. If regret is all that matters, the
        statistics of the last block, which no later round is played by, need not be made.

    Returns
    -------
    dict of Trace
        One per policy, under its name.
    """
    check_integer("`horizon`", horizon, 1, 10**12)
    check_integer("`seed`", seed, 0)
    if not isinstance(policies, Mapping) or any(isinstance(policy, type) for policy in policies.values()):
        raise ValueError(f"`policies` must be a mapping of names to policies. Got {policies!r}.")
    marks = default_checkpoints(horizon) if checkpoints is None else check_checkpoints(checkpoints, horizon)
    check_choice("`path`", path, PATHS)
    *dealers, policy_seed = np.random.SeedSequence(seed).spawn(3)
    with threadpool_limits(limits=1):
        if isinstance(problem, Stream):
            return {
                name: play_stream(problem, policy, horizon, seed, marks, path)
                for name, policy in policies.items()
            }
        players = {
            name: Player(problem, policy, horizon, marks, generator(policy_seed), final_state)
            for name, policy in policies.items()
        }
        dealing, played = play_rounds(problem, players, horizon, path, *dealers)
    return {name: player.trace(dealing, played) for name, player in players.items()}


def default_checkpoints(horizon: int) -> IntArray:
    """Return about 30 rounds from 1 to the horizon, evenly spaced on a logarithmic scale."""
    return np.unique(np.round(np.geomspace(1, horizon, 30)).astype(np.intp))


def check_checkpoints(checkpoints: ArrayLike, horizon: int) -> IntArray:
    """Return the checkpoints sorted, the horizon among them, or say which lies outside the run."""
    marks = np.unique(np.append(np.asarray(checkpoints), horizon))
    if marks.dtype.kind not in "iu" or marks[0] < 1 or marks[-1] > horizon:
        raise ValueError(
            f"`checkpoints` must be whole rounds in [1, horizon={horizon}]. Got {checkpoints!r}."
        )
    return marks.astype(np.intp)


def check_start(problem: Problem | Stream, policy: Policy, horizon: int) -> None:
    """Raise what is wrong with a policy on a problem before the first round, without playing it.

    Parameters
    ----------
    problem : Problem or Stream
    policy : Policy
    horizon : int
        N, the rounds of the problem, or of each task of a stream.
    """
    if isinstance(problem, Stream):
        course = course_of(problem, horizon)
        if isinstance(policy, CarriesOver):
            memory = policy.begin(course)
            policy = policy.next_policy(memory, 0, np.random.default_rng(0))
        problem = problem.group(0)
    policy.blocks(horizon, problem.n_tasks, problem.dim)
    policy.init(problem.n_tasks, problem.dim)
