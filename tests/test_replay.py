"""Replay: a log drives a learner, and what it is given is what it would have met if it had run itself."""

from dataclasses import replace as changed
from typing import Any

import numpy as np
import pytest
from proofs.decision_logs import Played, World, draw, play
from scipy.stats import binomtest, chisquare, norm

from posse import IndependentThompson, Learner, Random, SharedThompson
from posse.core.columns import NumberColumn
from posse.core.encoder import Encoder
from posse.logs import replay

ROLES: dict[str, Any] = {"task": "shop", "reward": "sold", "arm": "offer", "propensity": "chance"}
WORLD = World.draw(3, n_tasks=4, n_arms=3, dim=2, size=2.0)
# of arms by name: a level and two effects each, of contexts as they are
PLAIN = Encoder(
    columns=tuple(NumberColumn(name=name, mean=0.0, scale=1.0) for name in ("x1", "x2")),
    arms=("blue", "green", "red"),
    own=("x1", "x2"),
    intercept=False,
)


def uniform(n_each: int, seed: int) -> Played:
    rng = np.random.default_rng(seed)
    tasks = rng.permutation(np.repeat(np.arange(WORLD.shape[0]), n_each))
    return draw(WORLD, tasks, WORLD.contexts(tasks, rng), np.full((len(tasks), 3), 1 / 3), rng)


def run(log: Any, policies: Any, **settings: Any) -> Any:
    return replay(log, policies, **{**ROLES, "encoder": PLAIN, **settings})


@pytest.mark.parametrize("logger", ["uniform", "softmax"])
def test_replay_is_a_loop_over_a_learner(logger: str) -> None:
    log = uniform(100, 0) if logger == "uniform" else play(WORLD, 150, 0, logger)
    rng = np.random.default_rng(5)
    policy = SharedThompson(draws=8)
    learner = Learner(policy, n_tasks=4, dim=9, seed=rng)
    earned, share = [], log.propensities.min()
    for task, context, arm, reward, chance in zip(
        log.tasks, log.contexts, log.arms, log.rewards, log.propensities, strict=True
    ):
        arms = np.kron(np.eye(3), context)[None]  # arms in the order of their names
        likely = learner.select([task], arms).probabilities[0, arm]
        if rng.random() < share * likely / chance:
            learner.observe([task], arms[:, arm], [reward])
            if learner.due:
                learner.update()
            earned.append(reward)
    found = run(log.table(), {"one": policy}, seed=5).policies["one"]
    assert found.kept == len(earned)
    assert found.reward == pytest.approx(np.mean(earned))
    np.testing.assert_allclose(found.learner.beliefs.theta, learner.beliefs.theta, atol=1e-10)


def test_what_is_kept_of_a_skewed_log_is_as_if_the_policy_had_run() -> None:
    log = play(WORLD, 2000, 1)
    found = run(log.table(), {"random": Random()})
    one = found.policies["random"]
    assert found.share == pytest.approx(log.propensities.min())
    # Random plays all arms alike: its rewards are those of uniform play, and a share `c` of decisions is kept
    assert binomtest(one.kept, len(log.tasks), found.share).pvalue > 0.001
    truth = float(WORLD.values(lambda world, tasks, contexts: np.full((len(tasks), 3), 1 / 3)).mean())
    error = (one.high - one.low) / 2 / norm.ppf(0.975)
    assert abs(one.reward - truth) < 3.3 * error  # one in a thousand by chance
    counts = [count for count, _ in one.tasks.values()]
    assert chisquare(counts).pvalue > 0.001
    logged = abs(found.logged - truth) / error
    assert logged > 1.0  # the log as it stands says something else


def test_a_learner_earns_in_replay_what_it_earns_live() -> None:
    # 60 runs each, of 75 decisions that were kept; both means have normal errors, 3.3 of them in a thousand
    policy = IndependentThompson(draws=8)
    live, replayed = [], []
    for seed in range(60):
        log = uniform(75, 1000 + seed)
        one = run(log.table(), {"one": policy}, seed=seed, n_points=1).policies["one"]
        live.append(_live(policy, log, one.kept, seed))
        replayed.append(one.reward)
    difference = np.mean(replayed) - np.mean(live)
    assert abs(difference) < 3.3 * np.sqrt((np.var(live) + np.var(replayed)) / 60)


def _live(policy: Any, log: Played, rounds: int, seed: int) -> float:
    """Return the mean reward of a policy that meets as many fresh decisions."""
    rng = np.random.default_rng([7, seed])
    learner, earned = Learner(policy, n_tasks=4, dim=9, seed=rng), []
    for _ in range(rounds):
        task = rng.integers(4, size=1)
        context = WORLD.contexts(task, rng)
        arms = np.kron(np.eye(3), context[0])[None]
        choice = learner.select(task, arms)
        reward = WORLD.means(task, context)[0, choice.arm] + rng.standard_normal(1)
        learner.observe(task, arms[:, choice.arm[0]], reward)
        if learner.due:
            learner.update()
        earned.append(float(reward[0]))
    return float(np.mean(earned))


def test_decisions_come_by_their_times_and_in_either_form() -> None:
    log = uniform(60, 2)
    table = log.table()
    mixed = table.take(np.random.default_rng(0).permutation(table.num_rows))
    settings = {"time": "time", "n_points": 4}
    found = [run(one, [SharedThompson()], **settings) for one in (table, mixed)]
    found.append(run(log.long_table(), [SharedThompson()], decision="id", chosen="was", **settings))
    curves = [one.policies["SharedThompson()"].curve for one in found]
    assert curves[0] == curves[1] == curves[2]
    assert len(curves[0]) == 4
    assert curves[0][-1].decision == found[0].policies["SharedThompson()"].kept


def test_a_log_that_leaves_nothing_is_refused() -> None:
    rare = uniform(30, 3)
    chances = rare.chances.copy()
    chances[0] = 0.01
    table = changed(rare, chances=chances).table()
    with pytest.raises(ValueError, match=r"Got 120 with a least propensity of 0\.01, which leaves 1;"):
        run(table, [SharedThompson()])
    with pytest.raises(ValueError, match="must be one that learns, as SharedThompson"):
        run(table, ["uniform"])
