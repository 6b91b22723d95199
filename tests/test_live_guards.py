"""What stands between a policy and a choice, and what is watched: by second roads to the same numbers."""

from __future__ import annotations

import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proofs.live_checks import crash, same_state, statistics_of
from scipy.stats import t

from live_world import TASKS, Clock, Story, arms, assert_same, naive
from posse import (
    Encoder,
    FactorPrior,
    Fading,
    IndependentUCB,
    Learner,
    Random,
    Shared,
    SharedThompson,
)
from posse.live import Agent
from posse.live.engine import LEAST_QUEUE
from posse.live.guards import bucket_of
from posse.live.journal import JournalError
from posse.live.monitor import EDGES, ODDS, PAID, SLOTS, Monitor, lift
from posse.live.records import DECIDED, Asked
from posse.live.status import LEAST_CHANCE
from posse.numerics.checks import Array


def test_arms_of_batches_and_floors_come_up_as_often_as_is_said() -> None:
    # 6,000 decisions of 4 arms: each count within 4.5 standard deviations, which fails once in 30,000 seeds
    fixed = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [-1.0, 0.0]])
    for agent in (
        Agent(SharedThompson(), floor=0.07, refits="never", seed=1),
        Agent(SharedThompson(), floor=0.0, refits="never", seed=2),
        Agent(Random(), floor={"1": 0.5}, refits="never", seed=3),
    ):
        named = isinstance(agent._desk.settings.floor, dict)
        offered = dict(zip("0123", fixed, strict=True)) if named else fixed
        chosen, expected, variance = np.zeros(4), np.zeros(4), np.zeros(4)
        for _ in range(20):
            for decision in agent.ask_many(["t"] * 300, [offered] * 300):
                chosen[int(decision.arm)] += 1
                expected += decision.propensities
                variance += decision.propensities * (1 - decision.propensities)
        assert np.abs(chosen - expected).max() < 4.5 * np.sqrt(variance.max())
        assert expected.sum() == pytest.approx(6000)


def test_propensities_are_the_floor_and_a_share_of_the_policys_own() -> None:
    # the policy alone draws the same numbers, so that what the floor does can be worked out by hand
    features = {"a": [1.0, 0.2], "b": [0.3, 1.0], "c": [0.5, 0.5]}
    plain = Agent(SharedThompson(), floor=0.0, refits="never", seed=5)
    floored = Agent(SharedThompson(), floor={"a": 0.2, "c": 0.05, "z": 0.4}, refits="never", seed=5)
    own, mixed = plain.ask("t", features), floored.ask("t", features)
    floors = np.array([0.2, 0.0, 0.05])
    np.testing.assert_allclose(mixed.propensities, floors + (1 - floors.sum()) * own.propensities)
    assert mixed.propensity == mixed.propensities[list(features).index(str(mixed.arm))]
    for agent in (plain, floored):
        agent.forbid("t", ["a"])
    own, mixed = plain.ask("t", features), floored.ask("t", features)
    assert own.propensities[0] == mixed.propensities[0] == 0.0
    floors[0] = 0.0
    np.testing.assert_allclose(mixed.propensities, floors + (1 - floors.sum()) * own.propensities)
    assert mixed.propensities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("floor", [0, 0.0, np.float32(0.0), 1, {}])
def test_a_floor_may_be_any_number_or_of_no_arm(floor: Any) -> None:
    chances = Agent(Random(), floor=floor, refits="never", seed=0).ask("t", np.eye(3)).propensities
    assert chances == pytest.approx(1 / 3)


def test_a_control_group_without_its_arm_plays_any_that_is_allowed() -> None:
    agent = Agent(control=1.0, control_arm="old", refits="never", seed=0)
    agent.forbid("t", ["b"])
    decision = agent.ask("t", {"a": [1.0], "b": [2.0], "c": [3.0]})
    assert decision.propensities.tolist() == [0.5, 0.0, 0.5]
    decision = agent.ask("t", {"a": [1.0], "old": [2.0]})
    assert decision.propensities.tolist() == [0.0, 1.0]
    for _ in range(600):
        agent.ask("t", {"a": [1.0], "old": [2.0]})
    assert agent.status().entropy is None  # nothing was left to the policy, so it has not stopped exploring
    assert agent.status().alarms == ()


def test_an_arm_of_the_control_group_that_is_not_on_offer_is_an_alarm_until_it_is() -> None:
    agent = Agent(control=1.0, control_arm=9, refits="never", seed=0)
    for _ in range(20):
        agent.ask("t", np.eye(3))
    assert agent.status().alarms == ()  # arms come and go, and these are few decisions
    agent.ask("t", np.eye(3))
    (alarm,) = agent.status().alarms
    assert alarm == "control: its arm 9 could not be played in 100% of late decisions"
    for _ in range(30):
        agent.ask("t", np.eye(10, 3))
    assert agent.status().alarms == ()
    anything = Agent(control=1.0, refits="never", seed=0)  # plays all arms alike, as it was told to
    for _ in range(40):
        anything.ask("t", np.eye(3))
    assert anything.status().alarms == ()


def test_the_interval_of_the_lift_covers_the_truth_as_often_as_it_says() -> None:
    # 500 worlds of 300 units that differ: 95 % of intervals, within four standard deviations of a count
    covered = 0
    for seed in range(500):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 30, size=300)
        control = rng.random(300) < 0.2
        means = rng.standard_normal(300) + 0.3 * ~control
        totals = sizes * means + np.sqrt(sizes) * rng.standard_normal(300)
        counts = np.where([~control, control], sizes, 0)
        found = lift(counts.astype(float), np.where([~control, control], totals, 0.0))
        assert found is not None
        covered += found[1] <= 0.3 <= found[2]
    assert abs(covered / 500 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 500)


def test_what_is_watched_of_a_shadow_is_worked_out_from_what_was_told() -> None:
    agent = Agent(Random(), mode="shadow", rewards="last", refits="never", seed=0)
    rng = np.random.default_rng(0)
    same, every = [], []
    for _ in range(400):
        decision, played = agent.ask("a", np.eye(3)), int(rng.integers(3))
        agent.tell(decision.id, 99.0, "early", at=0.0, played=played)
        reward = float(played + rng.standard_normal())
        agent.tell(decision.id, reward, "late", played=played)  # which replaces the other
        every.append(reward)
        same += [reward] if played == decision.arm else []
    status = agent.status()
    assert status.match_rate == len(same) / 400
    assert status.reward_played == pytest.approx(np.mean(every))
    assert status.reward_matched == pytest.approx(np.mean(same))
    assert status.matched_low is not None
    assert status.matched_high is not None
    half = 1.98 * np.std(same, ddof=1) / np.sqrt(len(same))
    assert (status.matched_high - status.matched_low) / 2 == pytest.approx(half, rel=0.01)


def test_every_reward_three_times_in_any_order_leads_where_once_in_order_does() -> None:
    clock = Clock()
    once, thrice = (
        Agent(Shared(memory="all"), rewards="sum", refits=refits, seed=0, clock=clock)
        for refits in ("never", "inline")
    )
    rng, story = np.random.default_rng(0), Story()
    for number in range(120):
        clock.now += 1.0
        task, x = TASKS[number % 3], arms(rng)[:1]  # one arm: both agents learn from the same rows
        for agent in (once, thrice):
            agent.ask(task, x, id=str(number))
        story.asked[str(number)] = (clock.now, task, x[0])
        for event in "ab":
            reward = float(x[0].sum() + rng.standard_normal())
            story.rewards.append((str(number), event, clock.now, reward))
    for id, event, at, value in story.rewards:
        once.tell(id, value, event, at)
    sent = [reward for reward in story.rewards for _ in range(3)]
    for place in rng.permutation(len(sent)):
        id, event, at, value = sent[place]
        thrice.tell(id, value, event, at)
    assert thrice.status().version > 2
    total = statistics_of(thrice)
    assert_same(total, statistics_of(once), 1e-12)
    assert_same(total, naive(story, list(TASKS), rewards="sum"), 1e-12)
    cold, other = (FactorPrior().fit(statistics_of(agent)) for agent in (once, thrice))
    np.testing.assert_allclose(cold.theta, other.theta, atol=1e-6)
    np.testing.assert_allclose(cold.covariance, other.covariance, atol=1e-6)


@pytest.mark.parametrize("at", [float("nan"), float("inf"), "yesterday", 1e300])
def test_a_reward_at_no_time_is_refused_and_one_of_the_future_does_not_move_the_clock(at: object) -> None:
    clock = Clock()
    agent = Agent(reward_wait=10.0, refits="never", seed=0, clock=clock)
    decision, other = agent.ask("a", np.eye(2)), agent.ask("a", np.eye(2))
    with pytest.raises(ValueError, match="`at` of tell must be a finite number"):
        agent.tell(decision.id, 1.0, at=at)  # type: ignore[arg-type]
    agent.tell(decision.id, 1.0, at=1e12)  # milliseconds instead of seconds
    clock.now += 1.0
    agent.tell(other.id, 1.0)
    status = agent.status()
    assert (status.late, status.rewards, status.expired, status.alarms) == (1, 1, 0, ())


def test_an_encoder_says_how_many_features_there_are_from_the_begin() -> None:
    agent = Agent(encoder=Encoder(arms=("red", "blue")), refits="never", seed=0)
    with pytest.raises(ValueError, match=r"shape \(K, d=3, as before\)\. Got \(2, 2\)"):
        agent.ask("a", np.eye(2))
    agent.ask("a", np.eye(3))
    agent.ask("a", ["red"])


def test_memory_does_not_grow_with_decisions_that_are_settled(tmp_path: Path) -> None:
    clock = Clock()
    agent = Agent.open(
        tmp_path / "agent.db", reward_wait=1e9, refits="never", seed=0, clock=clock, snapshot_every=10**9
    )
    offered = np.eye(5)

    def play(n: int) -> None:
        for start in range(0, n, 500):
            clock.now += 1.0
            names = [{f"arm {start}-{clock.now}-{k}": offered[k] for k in range(5)} for _ in range(500)]
            made = agent.ask_many(["a"] * 500, names)  # arms that come and go
            agent.tell_many([decision.id for decision in made], [1.0] * 500)

    tracemalloc.start()
    play(3000)
    before, _ = tracemalloc.get_traced_memory()
    play(6000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 6000 * 20  # far below an id for each decision
    engine = agent._desk.engine
    assert len(engine.queue) <= LEAST_QUEUE + 2
    assert len(engine.monitor.slots) == SLOTS
    agent.close()


def test_watches_are_the_same_after_a_restart_with_more_arms_than_slots(tmp_path: Path) -> None:
    path, clock = tmp_path / "agent.db", Clock()
    one = Agent.open(path, refits="never", seed=0, clock=clock, snapshot_every=20)
    other = Agent(refits="never", seed=0, clock=clock)
    rng = np.random.default_rng(0)
    for number in range(150):
        names = {f"arm {k}": arms(rng)[0] for k in rng.choice(100, size=5, replace=False)}
        for agent in (one, other):
            agent.ask("a", names, id=str(number))
        if number % 40 == 39:
            one.close()
            one = Agent.open(path, seed=0, clock=clock, snapshot_every=20)
    same_state(one, other)
    one.close()


def test_units_in_many_buckets_are_held_back_in_the_share_that_was_asked_for() -> None:
    # 20,000 units: the share of 0.1 within four standard deviations and the rounding of buckets
    held = np.mean([bucket_of(f"user {number}") < round(0.1 * 1024) for number in range(20_000)])
    assert abs(held - 0.1) < 4 * np.sqrt(0.09 / 20_000) + 1 / 2048


def test_a_control_policy_decides_and_learns_as_it_would_alone() -> None:
    # a second road: a learner of that policy alone, which is told the rewards of the control group
    policy = IndependentUCB()
    agent = Agent(control=0.5, control_policy=policy, refits="inline", salt="", seed=0)
    names = [f"shop {number}" for number in range(6)]
    alone = Learner(policy, n_tasks=6, dim=3, names=names, seed=0)
    rng, refits, played = np.random.default_rng(0), 0, {True: 0, False: 0}
    for number in range(300):
        task, offered = names[number % 6], arms(rng)
        held = bucket_of(task) < 512
        decision = agent.ask(task, offered)
        played[held] += 1
        if held:
            expected = alone.select([task], offered[None]).probabilities[0]
            np.testing.assert_allclose(decision.propensities, expected, atol=1e-9)
            assert decision.propensities.min() == 0.0  # no floor is put under it
        x, reward = offered[int(decision.arm)], float(rng.standard_normal())
        agent.tell(decision.id, reward)
        if held:
            alone.observe([task], x[None], [reward])
            if alone.due:
                alone.update()
                refits += 1
    assert min(played.values()) >= 50
    assert refits > 3
    task = next(name for name in names if bucket_of(name) < 512)
    agent.forbid(task, [0, 2])
    chances = agent.ask(task, np.eye(3)).propensities
    assert chances.tolist() == [0.0, 1.0, 0.0]


def test_a_control_policy_is_frozen_erased_and_reported_with_the_agent() -> None:
    agent = Agent(control=1.0, control_policy=IndependentUCB(), rewards="sum", refits="never", seed=0)
    for number in range(40):
        decision = agent.ask("ab"[number % 2], np.eye(3))
        agent.tell(decision.id, float(number), "one")
        agent.tell(decision.id, 1.0, "two")
    holdback = agent._desk.engine.holdback
    assert holdback is not None
    agent.freeze()
    before = holdback.state()
    assert before is not None
    total = before.state.statistics + before.pending
    assert_same(total, statistics_of(agent), 1e-9)  # all decisions are of the control group
    assert total.square.sum() == pytest.approx(sum((number + 1.0) ** 2 for number in range(40)))
    agent.tell(agent.ask("a", np.eye(3)).id, 500.0)
    after = holdback.state()
    assert after is not None
    np.testing.assert_array_equal(before.theta, after.theta)
    agent.freeze(False)
    moved = holdback.state()
    assert moved is not None
    assert np.abs(moved.theta - before.theta).max() > 1.0
    agent.erase("b")
    erased = holdback.state()
    assert erased is not None
    assert "b" not in (erased.names or ())
    assert erased.state.statistics.count[1] + erased.pending.count[1] == 0.0
    agent.ask("b", np.eye(3))
    assert agent.status().alarms == ()
    holdback.failure = "it broke"
    assert agent.status().alarms == ("control: the last refit of its policy failed: it broke",)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"control_policy": Random}, r"`control_policy` of Agent must be a policy"),
        ({"control_policy": SharedThompson(memory=Fading(0.9))}, "must remember all rows"),
        ({"control_policy": Random(), "control_arm": 0}, "`control_arm` of Agent must be None beside"),
    ],
)
def test_control_policies_that_are_wrong_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Agent(control=0.1, **wrong)


@pytest.mark.parametrize("named", [True, False])
def test_bets_are_the_likelihood_ratios_that_a_plain_loop_finds(named: bool) -> None:
    monitor, rng = Monitor(), np.random.default_rng(0)
    n_rows = SLOTS + len(EDGES) + 1
    won, stake = np.full((n_rows, len(ODDS)), 0.5 / (n_rows * len(ODDS))), 0.5
    entropy = weight = 0.0
    known: dict[str, int] = {}
    for _ in range(300):
        n_arms = int(rng.integers(1, 80))
        p = rng.dirichlet(np.full(n_arms, 0.5)) if n_arms > 1 else np.ones(1)
        p[rng.random(n_arms) < 0.1] *= 0.0
        p = p / p.sum() if p.sum() else np.full(n_arms, 1 / n_arms)
        arm, control = int(rng.choice(n_arms, p=p)), bool(rng.random() < 0.2)
        names = tuple(f"arm {k}" for k in rng.permutation(200)[:n_arms]) if named else None
        monitor.decided(decision(p, arm, names, control))
        slots = []
        for k in range(n_arms):
            if names is None:
                slots.append(k % SLOTS)
                continue
            if names[k] not in known and len(known) < SLOTS:
                known[names[k]] = len(known)
            slots.append(known.get(names[k], bucket_of(names[k]) % SLOTS))
        bands = SLOTS + np.searchsorted(EDGES, p, side="right")
        paid = PAID * stake
        for places in (np.array(slots), bands):
            for row in set(places[p > 0.0].tolist()):
                stake -= paid * len(ODDS)
                for tilt, odds in enumerate(ODDS):
                    other = np.where(places == row, odds * p, p)  # what the bet says of all arms
                    won[row, tilt] = (won[row, tilt] + paid) * (other / other.sum())[arm] / p[arm]
        if not control and n_arms > 1:
            own = -sum(one * np.log(one) for one in p if one > 0.0) / np.log(n_arms)
            entropy, weight = entropy + (own - entropy) / 500, weight + (1 - weight) / 500
    np.testing.assert_allclose(monitor.won, won, rtol=1e-9)
    assert monitor.stake[0] == pytest.approx(stake, rel=1e-12)
    assert monitor.entropy == pytest.approx(entropy / weight)


def decision(p: Array, arm: int, names: tuple[str, ...] | None = None, control: bool = False) -> Asked:
    """A decision by these probabilities."""
    return Asked("1", 0.0, "t", arm, names, p, np.ones(1), None, 0, True, -1, control, DECIDED)


def test_right_probabilities_win_nothing_in_the_mean_and_so_seldom_ever_raise_an_alarm() -> None:
    # over all ways that four choices can come out the mean is 1, exactly: Ville's inequality needs no more
    chances = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    chances[1] = [0.0, 0.4, 0.6]
    mean = 0.0
    for arms_chosen in product(range(3), repeat=4):
        monitor, likelihood = Monitor(), 1.0
        for p, arm in zip(chances, arms_chosen, strict=True):
            likelihood *= p[arm]
            monitor.decided(decision(p, arm))
        mean += likelihood * float(monitor.stake[0] + monitor.won.sum())
    assert mean == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("error", ["one arm", "the best arm", "the best arm, late", "never"])
def test_wrong_probabilities_are_noticed_wherever_the_error_is_and_soon_where_it_begins_late(
    error: str,
) -> None:
    # over 100 seeds it took at most 15,390, 472 and 538 decisions with wrong probabilities
    rng, monitor = np.random.default_rng(1), Monitor()
    begin = 20_000 if error in ("the best arm, late", "never") else 0
    for number in range(begin + {"one arm": 20_000, "never": 0}.get(error, 2000)):
        p = (
            rng.dirichlet(np.ones(5))
            if error == "one arm"
            else rng.permutation([0.8, 0.05, 0.05, 0.05, 0.05])
        )
        arm, logged = int(rng.choice(5, p=p)), p
        if number >= begin:
            factor = 1.0 + 0.2 * (np.arange(5) == 0) if error == "one arm" else 1.0
            logged = np.where(p == 0.8, 0.64, 0.09) if error != "one arm" else p * factor
        monitor.decided(decision(logged / logged.sum(), arm))
    assert (monitor.ratio_chance < LEAST_CHANCE) == (error != "never")


def test_batches_heed_forbidden_arms_control_groups_and_the_end_of_waiting(tmp_path: Path) -> None:
    path, clock = tmp_path / "agent.db", Clock()

    def opened() -> Agent:
        return Agent.open(
            path,
            SharedThompson(),
            salt="a",
            control=0.4,
            control_arm=2,
            reward_wait=5.0,
            refits="never",
            seed=1,
            clock=clock,
        )

    agent, rng = opened(), np.random.default_rng(0)
    names = [f"shop {number}" for number in range(40)]
    agent.forbid(names[0], [0, 1])
    whole = Agent(
        SharedThompson(),
        salt="a",
        control=0.4,
        control_arm=2,
        reward_wait=5.0,
        refits="never",
        seed=1,
        clock=clock,
    )
    whole.forbid(names[0], [0, 1])
    expired = 0
    for _ in range(3):
        offered = rng.standard_normal((40, 4, 3))
        made, same = agent.ask_many(names, offered), whole.ask_many(names, offered)
        for name, decision, other in zip(names, made, same, strict=True):
            if bucket_of(name, "a") < round(0.4 * 1024):
                assert (decision.arm, decision.propensity) == (2, 1.0)
            else:
                assert 0.0 < decision.propensity < 1.0
            assert decision.arm == other.arm  # random numbers do not depend on how often it was opened
        assert made[0].propensities[:2].tolist() == [0.0, 0.0]
        assert agent._engine.counts["expired"] == expired
        crash(agent)
        agent = opened()
        clock.now += 6.0
        agent.ask_many(names[:1], offered[:1])
        whole.ask_many(names[:1], offered[:1])
        expired += 40
        assert agent._engine.counts["expired"] == expired
        clock.now += 6.0
        expired += 1
    crash(agent)


def test_a_reward_at_the_last_moment_counts_and_the_next_one_is_late() -> None:
    clock = Clock()
    agent = Agent(reward_wait=10.0, refits="never", seed=0, clock=clock)
    first, second = agent.ask("a", np.eye(2)), agent.ask("a", np.eye(2))
    agent.tell(first.id, 1.0, at=clock.now + 10.0)
    agent.tell(second.id, 1.0, at=np.nextafter(clock.now + 10.0, np.inf))
    status = agent.status()
    assert (status.rewards, status.late, status.pending) == (1, 1, 1)


def test_the_lift_is_that_of_a_few_units_worked_out_by_hand() -> None:
    counts, totals = np.zeros((2, 10)), np.zeros((2, 10))
    counts[0, :3], totals[0, :3] = [2, 1, 1], [4.0, 3.0, 1.0]  # mean 2, residuals 0, 1, -1
    counts[1, 3:5], totals[1, 3:5] = [1, 3], [2.0, 2.0]  # mean 1, residuals 1, -1
    found = lift(counts, totals)
    assert found is not None
    variances = [3 / 2 * 2 / 16, 2 / 1 * 2 / 16]
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 2 + variances[1] ** 2 / 1)
    half = t.ppf(0.975, freedom) * np.sqrt(sum(variances))
    assert found == pytest.approx((1.0, 1.0 - half, 1.0 + half))
    assert lift(counts[:, :4], totals[:, :4]) is None  # one unit alone says nothing of how units differ


def test_alarms_are_raised_by_what_they_are_about_and_by_nothing_less() -> None:
    clock = Clock()
    agent = Agent(Random(), refits="never", seed=0, clock=clock)
    for _ in range(200):
        agent.ask("a", np.eye(4))
    clock.now -= 0.5
    agent.ask("a", np.eye(4))
    assert agent.status().alarms == ()
    assert agent._desk.backwards == 0.5
    clock.now += 0.4
    agent.ask("a", np.eye(4))
    assert agent._desk.backwards == 0.5  # the most that it ever was
    agent._engine.monitor.won[0, 0] = 1001.0
    (alarm,) = agent.status().alarms
    assert alarm.startswith("sample ratio: choices do not agree with their probabilities")


RED_OR_BLUE = {"encoder": Encoder(arms=("red", "blue"))}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"contrl": 0.1}, "an option of Agent must be a known name. Got 'contrl'. Did you mean 'control'"),
        ({"control": 0.0004}, r"`control` of Agent must be 0 or round to 1/1024 at least.* Got 0.0004"),
        ({"control_arm": -1}, "`control_arm` of Agent must be a name or a row from 0 on. Got -1"),
        ({"control_arm": True}, "`control_arm` of Agent must be a name or a row"),
        ({"floor": {0: 0.1}}, "`floor` of Agent must be a number, or by names of arms. Got 0"),
        ({"floor": {"rde": 0.1}, **RED_OR_BLUE}, "an arm in `floor` of .* Got 'rde'. Did you mean 'red'"),
        ({"control_arm": "rde", **RED_OR_BLUE}, "`control_arm` of Agent .* 'rde'. Did you mean 'red'"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        Agent(**wrong)
    with pytest.raises(ValueError, match=message):
        Agent.open(tmp_path / "agent.db", **wrong)
    Agent.open(tmp_path / "agent.db").close()
    if "encoder" not in wrong:
        with pytest.raises(ValueError, match=message):
            Agent.open(tmp_path / "agent.db", **wrong)


@pytest.mark.parametrize(
    ("settings", "right", "wrong", "message"),
    [
        ({"floor": {"a": 0.1}}, {"a": [1.0, 0.0]}, np.eye(2), "`arms` must have names, as those in `floor`"),
        ({"control_arm": "a"}, {"b": [1.0, 0.0]}, np.eye(2), "`arms` must have names, as `control_arm`"),
        ({"control_arm": 1}, np.eye(2), {"a": [1.0, 0.0]}, "`arms` must be rows, as `control_arm`"),
    ],
)
def test_arms_of_the_other_kind_than_settings_speak_of_are_refused_and_nothing_has_happened(
    settings: dict[str, Any], right: Any, wrong: Any, message: str
) -> None:
    agent = Agent(control=0.5, refits="never", seed=0, **settings)
    with pytest.raises(ValueError, match=message):
        agent.ask("t", wrong)
    with pytest.raises(ValueError, match=message):
        agent.ask_many(["t"], [wrong])
    with pytest.raises(ValueError, match=message):
        agent.ask_many(["t"], wrong[None]) if isinstance(wrong, np.ndarray) else agent.ask("t", wrong)
    assert (agent.status().tasks, agent.status().decisions) == (0, 0)
    agent.ask("t", right)


@pytest.mark.parametrize("path", [".", "", "folder"])
def test_a_folder_is_no_file_for_an_agent(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(JournalError, match=f"{path!r} must be a file. Got a folder"):
        Agent.open(path)
