"""Everything public passes the public checks, and the checks notice what they are there to notice."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posse import (
    E2TC,
    PEGE,
    At,
    DoublyExponential,
    Estimate,
    Every,
    FactorPrior,
    FiniteActions,
    GaussianPrior,
    GaussianProblem,
    GramStatistics,
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    LearningPolicy,
    LowRank,
    MLinGreedy,
    NaiveGreedy,
    OracleBasis,
    OracleCommit,
    OracleGreedy,
    PairedMoments,
    Random,
    Ridge,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    TaskSpectral,
)
from posse.core.errors import NoDataWarning
from posse.core.protocols import Estimator, Problem
from posse.core.streams import Stream
from posse.lab.registry import POLICIES, PROBLEMS, PolicyOptions, build_policies, draw_problem
from posse.numerics.checks import Array, IntArray
from posse.policies import Learning
from posse.testing import DIM, N_TASKS, check_estimator, check_policy, check_problem

ESTIMATORS: list[Estimator] = [
    Ridge(),
    Ridge(penalty=0.0),
    Ridge(penalty=2.0),
    OracleBasis(basis=np.eye(DIM)[:, :2]),
    LowRank(rank=1),
    LowRank(rank=2),
    LowRank(rank=DIM),
    LowRank(rank=2, penalty=0.5),
    FactorPrior(),
    FactorPrior(rank=0),
    FactorPrior(rank=2, mean="learned"),
    FactorPrior(rank=1, hard=True, degrees=np.inf),
    GaussianPrior(mean=np.ones(DIM), covariance=np.diag([1.0, 0.5, 0.1, 0.0]), noise=0.5),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimators(estimator: Estimator) -> None:
    check_estimator(estimator)


@pytest.mark.parametrize("name", PROBLEMS["gaussian"].policies)
@pytest.mark.parametrize("memory", ["all", "epoch", 0.9])
def test_policies(name: str, memory: str | float) -> None:
    problem = GaussianProblem.draw(n_tasks=N_TASKS, dim=DIM, rank=2, seed=0)
    (policy,) = build_policies((name,), problem, PolicyOptions(rank=2)).values()
    check_policy(policy)
    if isinstance(policy, Learning):
        check_policy(LearningPolicy(estimator=policy.estimator, memory=memory))


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].images in (None, "digits")])
def test_problems(name: str) -> None:
    small = {"n_tasks": 3, "dim": 4, "n_classes": 3}
    kind = PROBLEMS[name]
    drawn: Any = kind.draw(**{key: small.get(key, value) for key, value in kind.parameters.items()}, seed=0)
    check_problem(drawn.group(1) if isinstance(drawn, Stream) else drawn)


def test_problems_with_other_laws() -> None:
    kinds = [("random", "rademacher"), ("unit", "uniform")]
    for covariance, noise in kinds:
        check_problem(
            GaussianProblem.draw(n_tasks=3, dim=4, rank=2, seed=0, covariance=covariance, noise_kind=noise)
        )


@dataclass
class Flawed:
    """Ridge with one promise broken."""

    flaw: str
    calls: int = 0

    def fit(self, statistics: GramStatistics) -> Estimate:
        self.calls += 1
        theta = Ridge(penalty=1.0).fit(statistics).theta.copy()
        match self.flaw:
            case "shape":
                theta = theta.T
            case "nan":
                theta[statistics.count == 0] = np.nan
            case "moody":
                theta += self.calls
            case "order":
                theta[0] += 1.0
            case "mutates":
                statistics.gram.base[:] = 0.0  # type: ignore[index]
        return Estimate(theta)


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("shape", "theta must be"),
        ("nan", "must be finite"),
        ("moody", "two fits"),
        ("order", "order of tasks"),
        ("mutates", "must not change"),
    ],
)
def test_flawed_estimators_are_caught(flaw: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_estimator(Flawed(flaw))


@dataclass(frozen=True)
class FlawedPolicy(Random):
    flaw: str = ""

    def blocks(self, horizon: int, n_tasks: int, dim: int) -> tuple[int, ...]:
        return (horizon, 1) if self.flaw == "blocks" else (horizon,)

    def select(self, state: Array, actions: FiniteActions, rng: np.random.Generator) -> IntArray:  # type: ignore[override]
        if self.flaw == "moody":
            rng = np.random.default_rng()
        if self.flaw == "blind":
            return np.zeros(actions.arms.shape[:2], dtype=np.intp)
        return actions.argmax(state, rng)

    def theta_of(self, state: Array) -> Array:
        return state + 1.0 if self.flaw == "boasts" else state

    def update(self, state: Array, statistics: GramStatistics) -> Array:
        if self.flaw == "mutates":
            state += statistics.moment
        return state


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("blocks", "add up"),
        ("moody", "equal choices"),
        ("blind", "must be an arm on offer"),
        ("mutates", "new state"),
        ("boasts", "theta of theta_of"),
    ],
)
def test_flawed_policies_are_caught(flaw: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_policy(FlawedPolicy(flaw=flaw))


def flawed_problem(flaw: str) -> Problem:
    class FlawedProblem(GaussianProblem):
        def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
            if flaw == "order":
                arms = rng.standard_normal((self.n_tasks, n_rounds, self.n_arms, self.dim))
                return FiniteActions(arms.transpose(1, 0, 2, 3))
            return super().actions(n_rounds, rng)

        def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
            return (
                rng.standard_normal((self.n_tasks, n_rounds)).T
                if flaw == "noise"
                else super().noise(n_rounds, rng)
            )

        def best_rewards(self, actions: FiniteActions) -> Array:
            return super().best_rewards(actions) - (10.0 if flaw == "best" else 0.0)

        def rewards(self, means: Array, noise: Array) -> Array:
            return (
                means[0]
                if flaw == "shape"
                else np.full_like(means, np.nan)
                if flaw == "nan"
                else means + noise
            )

    return FlawedProblem(theta=np.eye(3))


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("order", "actions must not depend"),
        ("noise", "noise must not depend"),
        ("best", "beats the best"),
        ("shape", "rewards must be"),
        ("nan", "rewards must be finite"),
    ],
)
def test_flawed_problems_are_caught(flaw: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_problem(flawed_problem(flaw))


def test_names_build_what_they_say() -> None:
    finite = GaussianProblem.draw(n_tasks=N_TASKS, dim=DIM, rank=2, seed=0)
    options = PolicyOptions(rank=2, exponent=0.7, penalty=0.25, explore=30)
    ranks, exponents = (1, 2, 5, 10), (0.5, 1, 2)
    parametrised = (
        *(f"mlingreedy(rank={k})" for k in ranks),
        *(f"e2tc(exponent={c})" for c in exponents),
        *("e2tc(subspace=spectral)", "e2tc(subspace=pairs)", "e2tc(rank=1, exponent=1)"),
        *("independent-greedy(schedule=epochs)", "independent-greedy(schedule=100, memory=0.9995)"),
        *("shared-greedy(schedule=100, memory=0.9995)", "shared-thompson(scale=0.5)", "shared-ucb(rank=1)"),
        *("independent-ucb(prompt=True)", "independent-thompson(floor=0.1)"),
        *("commit(penalty=0)", "commit(explore=7)", "relearn(estimator=low-rank)", "relearn(memory=all)"),
    )
    built = build_policies((*POLICIES, *parametrised), finite, options)
    assert built["mlingreedy"] == MLinGreedy(rank=2, penalty=0.25)
    for k in ranks:
        assert built[f"mlingreedy(rank={k})"] == MLinGreedy(rank=k, penalty=0.25)
    assert built["naive"] == NaiveGreedy(penalty=0.25)
    assert built["independent-greedy(schedule=epochs)"] == IndependentGreedy(schedule=DoublyExponential())
    forgetful = IndependentGreedy(schedule=Every(100), memory=1 - 1 / 2000)
    assert built["independent-greedy(schedule=100, memory=0.9995)"] == forgetful
    shared = SharedGreedy(schedule=Every(100), memory=1 - 1 / 2000)
    assert built["shared-greedy(schedule=100, memory=0.9995)"] == shared
    assert built["shared-thompson(scale=0.5)"] == SharedThompson(scale=0.5)
    assert built["shared-ucb(rank=1)"] == SharedUCB(rank=1)
    assert built["independent-ucb(prompt=True)"] == IndependentUCB(prompt=True)
    assert built["independent-thompson(floor=0.1)"] == IndependentThompson(floor=0.1)
    assert built["commit(penalty=0)"] == LearningPolicy(estimator=Ridge(penalty=0.0), schedule=At((30,)))
    assert built["commit"] == LearningPolicy(estimator=Ridge(penalty=0.25), schedule=At((30,)))
    assert built["commit(explore=7)"] == LearningPolicy(estimator=Ridge(penalty=0.25), schedule=At((7,)))
    twice = At((max(1, DIM // 8), 30))
    naive, low_rank = Ridge(penalty=0.25), LowRank(rank=2, penalty=0.25)
    assert built["relearn"] == LearningPolicy(estimator=naive, schedule=twice, memory="epoch")
    assert built["relearn(estimator=low-rank)"] == LearningPolicy(
        estimator=low_rank, schedule=twice, memory="epoch"
    )
    assert built["relearn(memory=all)"] == LearningPolicy(estimator=naive, schedule=twice, memory="all")
    assert built["independent-greedy"] == IndependentGreedy()
    oracle = built["oracle-greedy"]
    assert isinstance(oracle, OracleGreedy)
    assert isinstance(oracle.estimator, OracleBasis)
    assert built["random"] == Random()
    assert built["e2tc"] == E2TC(rank=2, exponent=0.7)
    for c in exponents:
        assert built[f"e2tc(exponent={c})"] == E2TC(rank=2, exponent=c)
    assert built["e2tc(rank=1, exponent=1)"] == E2TC(rank=1, exponent=1)
    assert built["e2tc(subspace=spectral)"] == E2TC(rank=2, exponent=0.7, subspace=TaskSpectral())
    assert built["e2tc(subspace=pairs)"] == E2TC(rank=2, exponent=0.7, subspace=PairedMoments())
    assert built["pege"] == PEGE()
    assert isinstance(built["oracle-commit"], OracleCommit)


def test_oracles_need_a_true_representation() -> None:
    problem = draw_problem("digits", n_classes=3, scaling="unit", seed=0)
    for name in ("oracle-greedy", "oracle-commit"):
        with pytest.raises(ValueError, match="with a true representation"):
            build_policies((name,), problem, PolicyOptions(rank=1))


LEARNERS = [Ridge(), Ridge(penalty=1.0), LowRank(rank=1), FactorPrior(), OracleBasis(basis=np.eye(3)[:, :1])]
KNOWN = GaussianPrior(mean=np.zeros(3), covariance=np.eye(3), noise=1.0)


@pytest.mark.parametrize("estimator", [*LEARNERS, KNOWN], ids=repr)
def test_statistics_of_no_possible_rows_are_refused(estimator: Estimator) -> None:
    rng = np.random.default_rng(0)
    good = GramStatistics.of(rng.standard_normal((9, 4, 3)), rng.standard_normal((9, 4)))
    for name in ("gram", "moment", "square", "count"):
        for value in (np.nan, np.inf):
            part = np.array(getattr(good, name))
            part[(1,) + (0,) * (part.ndim - 1)] = value
            with pytest.raises(ValueError, match=rf"must be finite\. Got {value} at index"):
                estimator.fit(replace(good, **{name: part}))
    with pytest.raises(ValueError, match=r"no negative entry on its diagonal\. Got -"):
        estimator.fit(replace(good, gram=-good.gram))
    with pytest.raises(ValueError, match=r"`square` of GramStatistics must not be negative\. Got -"):
        estimator.fit(replace(good, square=-good.square))
    with pytest.raises(ValueError, match=r"`count` of GramStatistics must not be negative\. Got -9"):
        estimator.fit(replace(good, count=-good.count))
    with pytest.raises(ValueError, match=r"`count` of GramStatistics must be positive where there are data"):
        estimator.fit(replace(good, count=np.array([0.0, 9.0, 9.0, 9.0])))


def test_an_indefinite_gram_matrix_is_refused_by_the_learned_prior() -> None:
    gram = np.full((4, 3, 3), -0.9)
    gram[:, range(3), range(3)] = 1.0
    with pytest.raises(ValueError, match=r"no negative eigenvalue\. Got -0.8"):
        FactorPrior().fit(GramStatistics(gram, np.ones((4, 3)), np.full(4, 9.0), np.full(4, 9.0)))


@pytest.mark.parametrize("estimator", LEARNERS, ids=repr)
def test_statistics_without_a_row_are_warned_of(estimator: Estimator) -> None:
    with pytest.warns(NoDataWarning, match=r"Got none of 4 tasks: the estimate is what is best without data"):
        estimate = estimator.fit(GramStatistics.zeros(4, 3))
    assert_array_equal(estimate.theta, 0.0)


def test_a_prior_that_is_known_needs_no_rows() -> None:
    assert_array_equal(KNOWN.fit(GramStatistics.zeros(4, 3)).theta, 0.0)
