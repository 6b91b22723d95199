"""Conformance checks for estimators, policies and problems of your own.

Each check plays with small random data and raises AssertionError with the broken promise. Run them
in your tests:

>>> from posse import Ridge
>>> check_estimator(Ridge())
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from posse.core.actions import Actions, FiniteActions
from posse.core.errors import NoDataWarning
from posse.core.protocols import Estimator, FollowsTheta, Policy, Problem, Refits, deal_actions
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, BoolArray

N_TASKS, DIM, N_ARMS, ROUNDS = 6, 4, 3, 7


def check_estimator(estimator: Estimator, *, n_tasks: int = N_TASKS, dim: int = DIM) -> None:
    """Check that an estimator keeps its promises.

    It returns finite parameters of shape (T, d), for tasks without data too and for features that are
    constant or huge or tiny; it gives the same answer twice; it leaves the statistics as they were;
    and it does not care in which order the tasks come.

    Parameters
    ----------
    estimator : Estimator
    n_tasks, dim : int
        Size of the data to try; choose it to suit an estimator that needs a certain size.

    Examples
    --------
    >>> from posse import LowRank
    >>> check_estimator(LowRank(rank=2))
    """
    _assert_members("estimator", estimator, ("fit",))
    rng = np.random.default_rng(0)
    features = rng.standard_normal((40, n_tasks, dim))
    rewards = features @ rng.standard_normal(dim) + rng.standard_normal((40, n_tasks))
    ordinary, before = GramStatistics.of(features, rewards), GramStatistics.of(features, rewards)
    sat_out = np.ones((40, n_tasks))
    sat_out[:, 0] = 0.0
    constant = features.copy()
    constant[..., -1] = 1.0
    cases = {
        "ordinary data": ordinary,
        "no data": GramStatistics.zeros(n_tasks, dim),
        "one task without data": GramStatistics.of(features, rewards, sat_out),
        "fewer rounds than features": GramStatistics.of(features[: dim - 1], rewards[: dim - 1]),
        "a constant feature": GramStatistics.of(constant, rewards),
        "a feature that is always zero": GramStatistics.of(features * (np.arange(dim) > 0), rewards),
        "features of size 1e-8": GramStatistics.of(1e-8 * features, rewards),
        "features of size 1e8": GramStatistics.of(1e8 * features, rewards),
        "rewards that are all zero": GramStatistics.of(features, 0.0 * rewards),
    }
    for case, statistics in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoDataWarning)
            theta = estimator.fit(statistics).theta
        assert theta.shape == (n_tasks, dim), f"{case}: theta must be {(n_tasks, dim)}, is {theta.shape}"
        assert np.isfinite(theta).all(), f"{case}: theta must be finite, is {theta}"
    theta = estimator.fit(ordinary).theta
    _assert_same(ordinary, before, "fit must not change the statistics")
    assert np.array_equal(theta, estimator.fit(ordinary).theta), "two fits to the same data must be equal"
    if isinstance(estimator, Refits):
        early, added = (
            GramStatistics.of(features[rows], rewards[rows]) for rows in (slice(39), slice(39, 40))
        )
        again = estimator.refit(early + added, estimator.fit(early), added).theta
        assert again.shape == (n_tasks, dim), f"theta of a refit must be {(n_tasks, dim)}, is {again.shape}"
        assert np.isfinite(again).all(), f"theta of a refit must be finite, is {again}"
    order = np.roll(np.arange(n_tasks), 1)
    shuffled = estimator.fit(ordinary.take(order)).theta
    gap = np.abs(shuffled - theta[order]).max() / np.abs(theta).max()
    assert gap < 1e-5, f"the order of tasks must not matter; it moved theta by {gap:.1e} of its size"


def check_policy(
    policy: Policy,
    *,
    n_tasks: int = N_TASKS,
    dim: int = DIM,
    actions: Any = None,
    horizons: tuple[int, ...] = (1, 2, 3, 17, 1000),
) -> None:
    """Check that a policy keeps its promises.

    Its blocks cover every horizon; it chooses only actions on offer, equally for equal random
    numbers; if it says by which theta it plays, it does; and updating leaves the old state usable: the old
    state still plays as it did.

    Parameters
    ----------
    policy : Policy
    n_tasks, dim : int
        Size of the problem to try.
    actions : Actions, optional
        What to offer; by default finite sets of which some arms are not available.
    horizons : tuple of int
        Horizons to try; choose them to suit a policy that needs a certain length.

    Examples
    --------
    >>> from posse import NaiveGreedy
    >>> check_policy(NaiveGreedy())
    """
    _assert_members("policy", policy, ("statistics", "blocks", "init", "select", "update"))
    for horizon in horizons:
        blocks = policy.blocks(horizon, n_tasks, dim)
        assert min(blocks) >= 1, f"blocks must be positive, are {blocks} for horizon {horizon}"
        assert sum(blocks) == horizon, f"blocks must add up to the horizon {horizon}, are {blocks}"
    rng = np.random.default_rng(0)
    offered = _masked_actions(rng, n_tasks, dim) if actions is None else actions
    old = policy.init(n_tasks, dim)
    before = policy.select(old, offered, np.random.default_rng(1))
    again = policy.select(old, offered, np.random.default_rng(1))
    assert np.array_equal(before, again), "equal states, actions and random numbers must give equal choices"
    try:
        played = offered.features(before)
    except ValueError as error:
        raise AssertionError(str(error)) from None
    assert played.shape == (offered.n_rounds, n_tasks, dim), (
        f"a choice must cover every task, is {before.shape}"
    )
    data = policy.statistics.of(played, rng.standard_normal(played.shape[:2]))
    new = policy.update(old, data)
    chosen = policy.select(new, offered, np.random.default_rng(1))
    theta = policy.theta_of(new) if isinstance(policy, FollowsTheta) else None
    if theta is not None:
        best = offered.argmax(theta, np.random.default_rng(1))
        assert np.array_equal(chosen, best), "select must maximise <x, theta> for the theta of theta_of"
    after = policy.select(old, offered, np.random.default_rng(1))
    assert np.array_equal(before, after), "update must return a new state and leave the old one alone"


def check_problem(problem: Problem) -> None:
    """Check that a problem keeps its promises.

    Actions, noise and rewards have the right shapes and are finite, wherever a task does not sit out;
    rounds are drawn one after the other, so that how they are cut into calls does not matter; equal
    random numbers give equal rounds; some rounds taken out of many are worth what they were among
    them; and no action is better than the best. A `TimedProblem` is told which rounds to deal.

    Parameters
    ----------
    problem : Problem

    Examples
    --------
    >>> from posse import GaussianProblem
    >>> check_problem(GaussianProblem.draw(n_tasks=3, dim=4, rank=2, seed=0))
    """
    members = ("n_tasks", "dim", "actions", "noise", "mean_rewards", "best_rewards", "rewards")
    _assert_members("problem", problem, members)
    whole = deal_actions(problem, 0, ROUNDS, np.random.default_rng(0))
    assert whole.n_rounds == ROUNDS, f"asked for {ROUNDS} rounds of actions, got {whole.n_rounds}"
    theta = np.random.default_rng(1).standard_normal((problem.n_tasks, problem.dim))
    _check_rounds(problem, whole, theta)
    actions_rng, noise_rng, tie_rng = (np.random.default_rng(seed) for seed in (0, 3, 2))
    noise = problem.noise(ROUNDS, np.random.default_rng(3))
    features = whole.features(whole.argmax(theta, np.random.default_rng(2)))
    active = _active(whole, problem.n_tasks)
    for start, stop in ((0, 3), (3, ROUNDS)):
        piece = deal_actions(problem, start, stop - start, actions_rng)
        plays = active[start:stop]
        played = piece.features(piece.argmax(theta, tie_rng))
        same = np.array_equal(_active(piece, problem.n_tasks), plays) and np.array_equal(
            played[plays], features[start:stop][plays]
        )
        assert same, "actions must not depend on how rounds are cut"
        same_noise = np.array_equal(problem.noise(stop - start, noise_rng), noise[start:stop])
        assert same_noise, "noise must not depend on how rounds are cut"
        best = problem.best_rewards(whole)[start:stop]
        for some in (piece, whole.rounds(start, stop)):
            same_best = np.allclose(problem.best_rewards(some)[plays], best[plays])
            assert same_best, "best rewards must not depend on how rounds are cut"


def _check_rounds(problem: Problem, actions: Actions, theta: Array) -> None:
    """Check shapes and values of what a choice by theta (T, d) earns in some rounds."""
    shape = (actions.n_rounds, problem.n_tasks)
    choice = actions.argmax(theta, np.random.default_rng(2))
    features = actions.features(choice)
    expected = (*shape, problem.dim)
    assert features.shape == expected, f"features must be {expected}, are {features.shape}"
    active = _active(actions, problem.n_tasks)
    _assert_finite("features", features[active])
    means, best = problem.mean_rewards(actions, choice), problem.best_rewards(actions)
    if len(choice) == 1:  # one action for all rounds
        means = np.broadcast_to(means, shape)
    noise = problem.noise(actions.n_rounds, np.random.default_rng(3))
    found = {"noise": noise, "means": means, "best rewards": best, "rewards": problem.rewards(means, noise)}
    for name, values in found.items():
        assert values.shape == shape, f"{name} must be {shape}, are {values.shape}"
        if name != "noise":
            _assert_finite(name, values[active])
    excess = (means - best)[active].max(initial=0.0)
    assert excess <= 1e-9 * (1 + np.abs(best[active]).max(initial=0.0)), (
        f"a choice beats the best by {excess}"
    )


def _assert_members(kind: str, part: object, names: tuple[str, ...]) -> None:
    for name in names:
        assert hasattr(part, name), f"a {kind} must have a member `{name}`"


def _active(actions: Actions, n_tasks: int) -> BoolArray:
    return np.ones((actions.n_rounds, n_tasks), dtype=bool) if actions.active is None else actions.active


def _masked_actions(rng: np.random.Generator, n_tasks: int, dim: int) -> FiniteActions:
    arms = rng.standard_normal((20, n_tasks, N_ARMS, dim))
    available = rng.random(arms.shape[:3]) < 0.6
    available[..., 0] |= ~available.any(axis=2)
    return FiniteActions(arms, available)


def _assert_finite(name: str, values: Array) -> None:
    assert np.isfinite(values).all(), f"{name} must be finite"


def _assert_same(left: GramStatistics, right: GramStatistics, message: str) -> None:
    for name in ("gram", "moment", "square", "count"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), message
