"""Rivals for streams: each by a second road, and what is wrong with what they are told."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm, logm
from scipy.optimize import minimize

from posse import EllipsoidProblem, GaussianProblem, GramStatistics, simulate, simulate_all
from posse.core.codec import decode, encode
from posse.core.protocols import Policy
from posse.core.streams import Course
from posse.lab.registry import PolicyOptions, build_policies
from posse.numerics.checks import Array
from posse.numerics.random import haar_basis
from posse.paper.boss_policies import StudiedBARON, StudiedPEGE, StudiedSeqRepL
from posse.play import StreamTrace
from posse.policies import BARON, BRESS, PEGETau, SeqRepL
from posse.policies.lifelong import LifelongMemory
from posse.policies.online_pca import capped, capped_shares, exponentiated, sampled_basis
from posse.problems import StreamProblem
from posse.testing import check_policy

COURSE = Course(n_tasks=50, group_size=1, dim=5, rounds=60, finite=False)


def stream_of(n_tasks: int = 50, seed: int = 1, **settings: Any) -> StreamProblem:
    return StreamProblem.draw(n_tasks=n_tasks, dim=5, rank=2, seed=seed, **settings)


# PEGE with one exploration


def test_pege_keeps_its_promises() -> None:
    offered = EllipsoidProblem(theta=np.eye(4)).actions(6, np.random.default_rng(0))
    for policy in (PEGETau(n_explore=4), PEGETau(n_explore=4, basis=np.eye(4)[:, :3])):
        check_policy(policy, n_tasks=4, dim=4, actions=offered, horizons=(4, 5, 100))


@pytest.mark.parametrize("told", [False, True])
def test_pege_explores_estimates_by_ridge_and_commits(told: bool) -> None:
    """Regret by the closed form: once explored it is N - tau times that of one action."""
    rng = np.random.default_rng(0)
    basis = haar_basis(5, 2, rng) if told else None
    policy = PEGETau(n_explore=31, basis=basis, penalty=2.0)
    problem = EllipsoidProblem(theta=rng.standard_normal((4, 5)))
    trace = simulate(problem, policy, horizon=200, seed=3, checkpoints=[31, 200])
    seen = trace.state.explored
    assert_allclose(seen.count, 31)
    coordinates = np.eye(5) if basis is None else basis
    for task in range(4):
        gram = coordinates.T @ seen.gram[task] @ coordinates
        inside = np.linalg.solve(gram + 2.0 * np.eye(len(gram)), coordinates.T @ seen.moment[task])
        theta = coordinates @ inside
        assert_allclose(trace.state.theta[task], theta, atol=1e-12)
        truth = problem.theta[task]
        lost = np.linalg.norm(truth) - truth @ theta / np.linalg.norm(theta)
        assert_allclose(trace.regret[1, task] - trace.regret[0, task], 169 * lost)
    if basis is None:
        assert_allclose(np.einsum("tii->t", seen.gram), 31)  # on the sphere
    else:
        assert_allclose(
            seen.gram, [16 * np.outer(*2 * [basis[:, 0]]) + 15 * np.outer(*2 * [basis[:, 1]])] * 4
        )


def test_the_studys_pege_explores_a_round_that_it_does_not_learn_from() -> None:
    for basis in (None, haar_basis(5, 2, np.random.default_rng(0))):
        policy = StudiedPEGE(n_explore=31, basis=basis)
        assert policy.blocks(200, 1, 5)[-2:] == (1, 168)
        problem = EllipsoidProblem(theta=np.random.default_rng(1).standard_normal((400, 5)))
        trace = simulate(problem, policy, horizon=200, seed=3, checkpoints=[31, 32, 33, 200])
        assert_allclose(trace.state.explored.count, 31)
        rounds = np.diff(trace.regret, axis=0)
        assert_allclose(rounds[1] * 167, rounds[2])
        length = np.linalg.norm(problem.theta, axis=1).mean()
        assert abs(rounds[0].mean() / length - 1.0) < 0.15  # a round at random earns nothing on average


# The protocol


def naive_protocol(
    stream: StreamProblem, explored: set[int], tau_1: int, tau_2: int, rounds: int, rng: np.random.Generator
) -> Array:
    """Regret of every task, played one round after the other, one task after the other."""
    found, regrets = np.zeros((5, 5)), []
    for number in range(stream.n_tasks):
        theta = stream.group(number).theta[0]  # type: ignore[attr-defined]
        explores = number in explored
        basis = np.linalg.svd(found)[0][:, :2] if not explores else np.eye(5)
        gram, moment, regret = np.eye(basis.shape[1]), np.zeros(basis.shape[1]), 0.0
        for n in range(rounds):
            if n < (tau_1 if explores else tau_2):
                column = np.eye(2)[n % 2] if not explores else rng.standard_normal(5)
                inside = column / np.linalg.norm(column)
            else:
                inside = np.linalg.solve(gram, moment)
                inside /= np.linalg.norm(inside)
            mean = theta @ basis @ inside
            if n < (tau_1 if explores else tau_2):
                gram += np.outer(inside, inside)
                moment += (mean + rng.standard_normal()) * inside
            regret += np.linalg.norm(theta) - mean
        if explores:
            theta_hat = np.linalg.solve(gram, moment)
            found += np.outer(theta_hat, theta_hat)
        regrets.append(regret)
    return np.array(regrets)


def test_seqrepl_by_loops() -> None:
    """30 streams of 20 tasks either way, explored and not: 4 errors apart in 1 of 16,000 cases."""
    policy = SeqRepL(rank=2, n_explore=25, n_refine=10)
    mine, naive = np.zeros((2, 30, 20))
    for seed in range(30):
        stream = stream_of(20, seed=seed)
        mine[seed] = simulate(stream, policy, horizon=40, seed=seed).regret[-1]
        rng = np.random.default_rng(1000 + seed)
        naive[seed] = naive_protocol(stream, {0, 1, 4, 9, 16}, 25, 10, 40, rng)
    explores = np.isin(np.arange(20), [0, 1, 4, 9, 16])
    for tasks in (explores, ~explores & (np.arange(20) > 4)):
        apart = (mine - naive)[:, tasks].mean(axis=1)
        assert abs(apart.mean()) < 4 * apart.std(ddof=1) / math.sqrt(30)
    assert mine[:, explores].mean() > 1.2 * mine[:, ~explores].mean()


class Watched(BARON):
    """BARON that writes down the exploration or refinement of every task, and the memory when it starts."""

    def next_policy(self, memory: LifelongMemory, number: int, rng: np.random.Generator) -> PEGETau:
        policy = super().next_policy(memory, number, rng)
        SEEN.append((policy, memory))
        return policy

    def finish(self, memory: LifelongMemory, policy: Any, state: Any, rng: Any) -> LifelongMemory:
        if policy.basis is None:
            ESTIMATES.append(state.theta[0])
        return super().finish(memory, policy, state, rng)


SEEN: list[tuple[PEGETau, LifelongMemory]] = []
ESTIMATES: list[Array] = []


def test_baron_plays_the_leading_singular_vectors_of_what_it_explored() -> None:
    SEEN.clear()
    ESTIMATES.clear()
    simulate(stream_of(), Watched(rank=2, chance=0.3), horizon=60, seed=0)
    explored = 0
    for policy, _ in SEEN:
        if policy.basis is None:
            explored += 1
            assert policy.n_explore == 33  # 5^(4/3) 60^(1/3)
            continue
        assert policy.n_explore == 15  # 2 sqrt(60)
        if explored == 1:  # the second vector is any
            continue
        left = np.linalg.svd(np.stack(ESTIMATES[:explored], axis=1))[0][:, :2]
        assert_allclose(policy.basis @ policy.basis.T, left @ left.T, atol=1e-9)
    assert explored == len(ESTIMATES)
    assert 6 <= explored <= 26  # of 50, at 0.3, the first always: outside in less than 1 of 1000


def test_baron_that_explores_every_task_is_pege() -> None:
    stream = stream_of(30)
    policies: dict[str, Policy] = {
        "always": BARON(rank=2, chance=1.0, n_explore=20),
        "alone": PEGETau(n_explore=20),
    }
    traces = simulate_all(stream, policies, horizon=60, seed=0)
    assert_array_equal(traces["always"].regret, traces["alone"].regret)


def test_tasks_explored_are_those_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    memory = SeqRepL(rank=2).begin(COURSE)
    explored = [n for n in range(50) if SeqRepL(rank=2).next_policy(memory, n, rng).basis is None]
    assert explored == [0, 1, 4, 9, 16, 25, 36, 49]
    baron, n = BARON(rank=2, chance=0.2), 4000
    counted = sum(baron.next_policy(memory, 1, rng).basis is None for _ in range(n))
    assert abs(counted / n - 0.2) < 4 * math.sqrt(0.16 / n)
    assert all(baron.next_policy(memory, 0, rng).basis is None for _ in range(20))


def test_formulas_are_those_of_the_papers() -> None:
    course = Course(n_tasks=4000, group_size=1, dim=8, rounds=1000, finite=False)
    cost = 8 ** (4 / 3) * 1000 ** (1 / 3) + 8 ** (2 / 3) * 1000 ** (2 / 3)
    assert cost == pytest.approx(16 * 10 + 4 * 100)
    assert BARON(rank=2).probability(course) == pytest.approx(math.sqrt(1000 * 8 * 2 / (4000 * cost)))
    assert BARON(rank=2).lengths(course) == (160, 63)
    assert SeqRepL(rank=2).lengths(course) == (506, 63)
    share = 9 * 1000 * 4 * math.log(4) ** 2 / (2.5 * 4000**2 * 64)
    assert BRESS(rank=2).probability(course) == pytest.approx(1.5 * share ** (1 / 3))
    explored = int(1.5 * share ** (1 / 3) * 4000)
    assert BRESS(rank=2).rate(course) == pytest.approx(math.sqrt(2 * math.log(8) / explored))
    assert BRESS(rank=2).lengths(course) == (1000, 63)  # d sqrt(2.5 N / p) is above N
    few = Course(n_tasks=2, group_size=1, dim=8, rounds=1000, finite=False)
    assert BARON(rank=2).probability(few) == 1.0


def test_the_studys_rivals_differ_in_one_round_alone() -> None:
    stream = stream_of(20)
    ours = simulate(stream, SeqRepL(rank=2, n_explore=20, n_refine=8), horizon=60, seed=0)
    study = simulate(stream, StudiedSeqRepL(rank=2, n_explore=20, n_refine=8), horizon=60, seed=0)
    assert_array_equal(study.regret[ours.rounds <= 8], ours.regret[ours.rounds <= 8])
    memory = StudiedBARON(rank=2, chance=0.0).begin(COURSE)
    for number, basis in ((0, False), (1, True)):
        policy = StudiedBARON(rank=2, chance=0.0).next_policy(memory, number, np.random.default_rng(0))
        assert type(policy) is StudiedPEGE
        assert (policy.basis is not None) is basis


# BRESS: online principal components


def density(seed: int, dim: int) -> Array:
    root = np.random.default_rng(seed).standard_normal((dim, dim))
    return np.asarray(root @ root.T / np.trace(root @ root.T))


def test_the_exponentiated_step_by_matrix_functions() -> None:
    matrix, x = density(0, 4), np.array([1.0, -2.0, 0.5, 3.0])
    unit = x / np.linalg.norm(x)
    raw = expm(logm(matrix) - 0.7 * np.outer(unit, unit))
    assert_allclose(exponentiated(matrix, x, 0.7), raw / np.trace(raw), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_capped_shares_are_nearest_in_relative_entropy(seed: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.full(6, 0.3))
    cap = 0.22
    found = capped_shares(shares, cap)
    assert found.sum() == pytest.approx(1.0)
    assert found.max() <= cap + 1e-12

    def entropy(v: Array) -> float:
        return float(np.sum(v * np.log(np.maximum(v, 1e-300) / shares)))

    best = minimize(
        entropy,
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(1e-12, cap)] * 6,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert entropy(found) <= best.fun + 1e-6


def test_each_direction_is_left_out_with_its_probability() -> None:
    """d - k times its eigenvalue: 4 errors apart in 1 of 16,000 draws of 4000."""
    matrix, n = capped(density(1, 6), 1 / 4), 4000
    values, vectors = np.linalg.eigh(matrix)
    assert values.max() <= 0.25 + 1e-9
    rng, kept = np.random.default_rng(2), np.zeros((6, 6))
    for _ in range(n):
        basis = sampled_basis(matrix, 2, rng)
        assert_allclose(basis.T @ basis, np.eye(2), atol=1e-9)
        kept += basis @ basis.T / n
    chances = np.diag(vectors.T @ kept @ vectors)
    assert_allclose(chances.sum(), 2.0)
    assert (
        abs(chances - (1 - 4 * values)) <= 4 * np.sqrt(values * 4 * (1 - 4 * values).clip(0) / n) + 1e-9
    ).all()


def test_bress_comes_to_keep_what_it_explores() -> None:
    policy = BRESS(rank=2)
    memory = policy.begin(COURSE)
    assert_allclose(memory.matrix, np.eye(5) / 5)
    basis, rng = haar_basis(5, 2, np.random.default_rng(3)), np.random.default_rng(4)
    explores = PEGETau(n_explore=20)
    for _ in range(150):
        theta = (basis @ rng.standard_normal(2))[None]
        state = simulate(EllipsoidProblem(theta=theta), explores, horizon=20, seed=0).state
        exact = type(state)(state.block, state.explored, theta)
        memory = policy.finish(memory, explores, exact, rng)
    inside = PEGETau(n_explore=3, basis=basis)
    assert policy.finish(memory, inside, exact, rng) is memory  # tasks inside the subspace teach nothing
    counts = Counter[bool]()
    for _ in range(100):
        drawn = policy.next_policy(memory, 7, rng).basis
        if drawn is not None:
            counts[bool(np.linalg.norm(drawn.T @ basis) > 1.4)] += 1
    assert counts[True] > 0.95 * counts.total() > 50


# Where they stand


def test_on_a_stream_that_is_diverse_they_beat_tasks_alone_and_an_adversary_beats_seqrepl() -> None:
    lengths = {"n_explore": 150, "n_refine": 40}
    policies: dict[str, Policy] = {
        "seqrepl": SeqRepL(rank=2, **lengths),
        "baron": BARON(rank=2, chance=0.1, **lengths),
        "alone": PEGETau(n_explore=80),
    }
    totals: dict[tuple[str, str], float] = {}
    for order in ("diverse", "adversary"):
        stream = StreamProblem.draw(n_tasks=300, dim=10, rank=2, seed=0, order=order)
        for name, trace in simulate_all(stream, policies, horizon=400, seed=0).items():
            assert isinstance(trace, StreamTrace)
            totals[order, name] = float(trace.total[-1])
    assert totals["diverse", "seqrepl"] < totals["diverse", "alone"]
    assert totals["diverse", "baron"] < totals["diverse", "alone"]
    assert totals["adversary", "seqrepl"] > 1.2 * totals["adversary", "baron"]


# Names, files and bad input


def test_names_build_what_they_say() -> None:
    stream = stream_of()
    built = build_policies(
        ("seqrepl", "baron", "baron(chance=0.2, n_explore=30)", "bress", "pege-tau", "pege-oracle"),
        stream,  # type: ignore[arg-type]
        PolicyOptions(rank=2),
    )
    assert built["seqrepl"] == SeqRepL(rank=2)
    assert built["baron"] == BARON(rank=2)
    assert built["baron(chance=0.2, n_explore=30)"] == BARON(rank=2, chance=0.2, n_explore=30)
    assert built["bress"] == BRESS(rank=2)
    assert repr(built["pege-tau"]) == repr(PEGETau(n_explore=200))
    assert_array_equal(built["pege-oracle"].basis, stream.basis)  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", [SeqRepL(rank=2), BARON(rank=2, chance=0.1), BRESS(rank=3)], ids=repr)
def test_they_can_be_saved_to_files(policy: Policy) -> None:
    document, arrays = encode(policy)
    assert decode(document, arrays) == policy


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (lambda: SeqRepL(rank=0), r"`rank` of SeqRepL must be an integer of at least 1. Got 0."),
        (lambda: BARON(rank=2, chance=1.5), r"`chance` of BARON must be a finite number .* at most 1. Got"),
        (lambda: BARON(rank=2, penalty=-1.0), r"`penalty` of BARON must be .* of at least 0. Got -1.0."),
        (lambda: BRESS(rank=2, n_explore=0), r"`n_explore` of BRESS must be an integer of at least 1. Got"),
        (lambda: PEGETau(n_explore=0), r"`n_explore` of PEGETau must be an integer of at least 1. Got 0."),
        (lambda: PEGETau(n_explore=2, penalty=-1.0), r"`penalty` of PEGETau must be .* of at least 0."),
        (lambda: BARON(rank=6).begin(COURSE), r"`rank` of BARON must be an integer in \[1, dim=5\]. Got 6."),
        (lambda: BRESS(rank=5).begin(COURSE), r"`rank` of BRESS must be .* \[1, dim - 1=4\]. Got 5."),
        (
            lambda: SeqRepL(rank=2, n_explore=61).begin(COURSE),
            r"`n_explore` of SeqRepL must be an integer in \[1, rounds=60\]. Got 61.",
        ),
        (
            lambda: simulate(stream_of(offer="arms"), BARON(rank=2), horizon=60, seed=0),
            r"BARON plays ellipsoids, infinite action sets. Got lists of arms.",
        ),
        (
            lambda: simulate(
                GaussianProblem.draw(n_tasks=3, dim=5, rank=2, seed=0), BRESS(rank=2), horizon=9, seed=0
            ),
            r"BRESS plays streams of tasks, such as a StreamProblem. Got a problem of 3 tasks side by side.",
        ),
        (
            lambda: simulate(stream_of(), PEGETau(n_explore=61), horizon=60, seed=0),
            r"`n_explore` of PEGETau must be an integer in \[1, rounds=60\]. Got 61.",
        ),
        (
            lambda: PEGETau(n_explore=4, basis=np.eye(4)[:, :2]).init(1, 5),
            r"`basis` of PEGETau must have shape",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(play: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play()


def test_what_was_explored_counts_once() -> None:
    """The state that a group ends in is its exploration's, whose sum of squares is not of later rounds."""
    trace = simulate(EllipsoidProblem(theta=np.eye(3)), PEGETau(n_explore=5), horizon=50, seed=0)
    assert isinstance(trace.state.explored, GramStatistics)
    assert trace.state.explored.count.tolist() == [5.0, 5.0, 5.0]
