"""Rounds of one problem, dealt once and played by several policies: exactly in law, or with contexts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from posse.core.protocols import Problem, StaticProblem
from posse.core.statistics import GramStatistics
from posse.play.dealing import deal_exact, deal_rounds, generator
from posse.play.player import Player
from posse.problems import GaussianProblem

# How rounds are played; see `simulate_all`.
PATHS = ("auto", "exact", "contexts")


def play_rounds(
    problem: Problem,
    players: Mapping[str, Player],
    horizon: int,
    path: str,
    actions_seed: np.random.SeedSequence,
    noise_seed: np.random.SeedSequence,
) -> tuple[float, str]:
    """Let every player play all rounds; return the time that dealing took, and how they were played.

    Parameters
    ----------
    problem : Problem
    players : mapping of names to Player
        All of this problem, before their first round.
    horizon : int
        N, the number of rounds.
    path : {"auto", "exact", "contexts"}
        How rounds are to be played; "auto" is "exact" where it can.
    actions_seed, noise_seed : SeedSequence
    """
    played = _path_to_play(problem, players, path)
    dealing = 0.0
    if played == "exact" and isinstance(problem, GaussianProblem):
        for exact, seconds in deal_exact(problem, horizon, actions_seed, noise_seed):
            dealing += seconds
            for player in players.values():
                player.play_exact(problem, exact)
    elif isinstance(problem, StaticProblem):
        for player in players.values():
            player.play_alone(problem, generator(actions_seed), generator(noise_seed))
    else:
        for chunk in deal_rounds(problem, horizon, actions_seed, noise_seed):
            dealing += chunk.seconds
            for player in players.values():
                player.play(chunk)
    return dealing, played


def _path_to_play(problem: Problem, players: Mapping[str, Player], path: str) -> str:
    """Return "exact" or "contexts", or say why "exact" cannot be."""
    obstacle = _obstacle_to_exact(problem, players) if path != "contexts" else path
    if path == "exact" and obstacle is not None:
        raise ValueError(
            f'`path` must not be "exact" unless a GaussianProblem is played greedily. Got {obstacle}.'
        )
    return "exact" if obstacle is None else "contexts"


def _obstacle_to_exact(problem: Problem, players: Mapping[str, Player]) -> str | None:
    """Return what keeps these policies from being played without contexts; None if nothing does."""
    if type(problem) is not GaussianProblem:  # what derives from it may deal other arms
        return type(problem).__name__
    for player in players.values():
        if player.theta() is None or player.policy.statistics is not GramStatistics:
            return repr(player.policy)
    return None
