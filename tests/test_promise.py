"""The promise of the learned prior: choices whatever the units, its proof, and what the pages say of it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs import stored
from proofs import kept, limits, promise

from posse import (
    GaussianProblem,
    IndependentGreedy,
    IndependentUCB,
    LearningPolicy,
    Ridge,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    simulate,
)
from posse.core.actions import FiniteActions
from posse.core.files import write_json
from posse.core.protocols import Policy
from posse.numerics.checks import Array, IntArray
from posse.problems import LateTasks

POLICIES = {"greedy": SharedGreedy(), "thompson": SharedThompson(), "ucb": SharedUCB()}
PROBLEM = GaussianProblem.draw(n_tasks=6, dim=5, rank=2, seed=0)
N_ROUNDS = 60
SHORT = ("unrelated newcomers among related tasks", "intercept, unrelated", "clicks, unrelated")


@dataclass
class OtherUnits:
    """A problem whose features, all together, or rewards are counted in other units; it keeps the choices."""

    features: float = 1.0
    reward: float = 1.0
    n_tasks: int = PROBLEM.n_tasks
    dim: int = PROBLEM.dim

    def __post_init__(self) -> None:
        self.choices: list[IntArray] = []

    def actions(self, n_rounds: int, rng: np.random.Generator) -> FiniteActions:
        offered = PROBLEM.actions(n_rounds, rng)
        return replace(offered, arms=self.features * offered.arms)

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        return self.reward * PROBLEM.noise(n_rounds, rng)

    def plain(self, actions: FiniteActions) -> FiniteActions:
        return replace(actions, arms=actions.arms / self.features)

    def mean_rewards(self, actions: FiniteActions, choice: IntArray) -> Array:
        self.choices.append(choice)
        return self.reward * PROBLEM.mean_rewards(self.plain(actions), choice)

    def best_rewards(self, actions: FiniteActions) -> Array:
        return self.reward * PROBLEM.best_rewards(self.plain(actions))

    def rewards(self, means: Array, noise: Array) -> Array:
        return means + noise


def choices(policy: Policy, problem: OtherUnits) -> IntArray:
    """Return what a policy chooses in all rounds, (n, T)."""
    simulate(problem, policy, horizon=N_ROUNDS, seed=1, final_state=False)
    return np.concatenate(problem.choices)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_choices_do_not_depend_on_units(name: str) -> None:
    policy = POLICIES[name]
    plain = choices(policy, OtherUnits())
    assert plain.shape == (N_ROUNDS, PROBLEM.n_tasks)
    for scale in (1e-6, 1e6):
        assert np.array_equal(choices(policy, OtherUnits(features=scale)), plain), scale
        assert np.array_equal(choices(policy, OtherUnits(reward=scale)), plain), scale


def test_units_would_be_seen_in_choices() -> None:
    policy = LearningPolicy(estimator=Ridge(penalty=1.0))
    plain = choices(policy, OtherUnits())
    assert np.array_equal(choices(policy, OtherUnits(reward=1e6)), plain)
    assert not np.array_equal(choices(policy, OtherUnits(features=1e-6)), plain)


def test_the_proof_goes_on_from_what_it_has_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBS", "1")  # in this process, which knows what is put in place of other things here
    monkeypatch.setattr(promise, "CASES", {name: promise.CASES[name] for name in SHORT})
    monkeypatch.setattr(
        promise, "RULES", dict.fromkeys(promise.RULES, (IndependentUCB(), IndependentGreedy()))
    )
    some = {name: one for name, one in promise.EXPLAINED.items() if one[0] is promise.true_prior_ratios}
    monkeypatch.setattr(promise, "EXPLAINED", some)
    monkeypatch.setattr(promise, "FEW_SEEDS", 2)
    monkeypatch.setattr(promise, "MOST_SEEDS", 4)
    folder = tmp_path / "kept"
    with pytest.raises(SystemExit, match=r"Fewer than 2 seeds of: unrelated newcomers .*; the true prior"):
        promise.prove(0.0, folder, late=40)
    assert not folder.exists()
    promise.play_for(600.0, folder, SHORT[:1], late=40)
    # two seeds, and two more: a promise is not decided by forty rounds, or known to 1 %
    first = sorted(folder.iterdir())
    assert len(first) == 4
    written = {path: path.stat().st_mtime_ns for path in first}
    found = promise.prove(600.0, folder, late=40)
    assert {path: path.stat().st_mtime_ns for path in first} == written
    assert set(found) == {*SHORT, *promise.EXPLAINED}
    assert {one["seeds"] for name, one in found.items() if name in SHORT} == {4}
    logs = np.array([promise.log_ratios(SHORT[0], seed, late=40) for seed in range(4)])
    assert found[SHORT[0]] == {"seeds": 4, **promise.summary(logs)}
    # all is there, and it is there for this code alone
    assert promise.prove(0.0, folder, late=40) == found
    here = kept.folder_of(Path(promise.__file__))
    assert here.parent == kept.ROOT / "results" / "promise"
    assert here.name != kept.folder_of(Path(kept.__file__)).name


def test_every_case_has_files_of_its_own(tmp_path: Path) -> None:
    def nothing(case: str, seed: int, late: int | None) -> Array:
        return np.array([float(seed)])

    for case in promise.CASES:
        for seed in range(12):
            kept.play(nothing, case, seed, None, tmp_path, np.inf)
    assert len(list(tmp_path.iterdir())) == 12 * len(promise.CASES)
    kept.play(nothing, "low rank", 12, None, tmp_path, 0.0)  # too late
    assert kept.known(nothing, "low rank", tmp_path)[:, 0].tolist() == list(range(12))


def test_unrelated_newcomers_join_related_tasks_and_are_watched() -> None:
    problem = promise.problem_of("unrelated newcomers among related tasks", 0)
    assert isinstance(problem, LateTasks)
    assert problem.worst_off is not None
    assert problem.joins[problem.worst_off].tolist() == [800] * 15
    assert isinstance(problem.problem, GaussianProblem)
    first, late = np.split(problem.problem.theta, [15])
    assert np.linalg.matrix_rank(first) == 2
    assert np.linalg.matrix_rank(late) == 15
    assert not problem.joins[:15].any()


def test_the_promise_is_kept_or_broken_for_sure_or_undecided() -> None:
    sure = {"late": 1.0, "+-": 0.01, "worst-off": 1.0, "worst-off +-": 0.05}
    assert promise.kept_to(sure) is True
    assert promise.kept_to({**sure, "+-": 0.05}) is None
    assert promise.kept_to({**sure, "worst-off": 1.2}) is False
    assert promise.kept_to({**sure, "late": 1.05}) is False


@pytest.mark.parametrize("page", dict.fromkeys(block[0] for block in stored.BLOCKS))
def test_the_tables_of_the_pages_are_those_of_the_stored_proofs(page: str) -> None:
    text = (stored.PAGES / page).read_text(encoding="utf-8")
    assert stored.written(page, text) == text, "run `make numbers`"


def keep_chance(folder: Path, n_seeds: int) -> None:
    """Keep logarithms of ratios near 1 as if all had been played."""
    rng = np.random.default_rng(0)
    calls: list[tuple[Any, str, tuple[int, ...]]]
    calls = [(promise.log_ratios, case, (3, 2, 2)) for case in promise.CASES]
    for function, case in promise.EXPLAINED.values():
        calls.append((function, case, (len(promise.EXPLANATIONS[function]),)))
    for function, case, shape in calls:
        for seed in range(n_seeds):
            path = kept.path_of(function, case, seed, folder)
            write_json(path, (0.01 * rng.standard_normal(shape)).tolist())


def test_a_new_result_is_put_on_the_page(tmp_path: Path) -> None:
    text = (stored.PAGES / "learned-prior.md").read_text(encoding="utf-8")
    assert stored.written("learned-prior.md", text, tmp_path) == text  # nothing is stored there
    keep_chance(tmp_path / "kept", 7)
    found = promise.prove(0.0, tmp_path / "kept")
    found["low rank"]["ucb"]["worst-off"] = 1.3
    write_json(tmp_path / "promise.json", found)
    after = stored.written("learned-prior.md", text, tmp_path)
    n_cases = len(promise.CASES)
    assert after.count(" | 7 | ") == n_cases
    assert f"These are {3 * n_cases} pairs of a case and a rule, with 7 seeds a case." in after
    assert f"the promise holds in {3 * n_cases - 1} of them" in after
    assert f"holds for sure in {3 * n_cases - 1}, surely fails in 1, and in 0 the seeds" in after
    assert "\n- low rank, UCB: 1.0" in after
    assert f"0 of {3 * n_cases} ratios over all tasks are above 1.06" in after
    assert stored.written("learned-prior.md", after) == text
    with pytest.raises(SystemExit, match="must have one mark <!-- stored: promise -->"):
        stored.written("learned-prior.md", "no marks", tmp_path)


def test_the_sampler_and_the_goals_stand_beside_what_limits_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBS", "1")
    monkeypatch.setattr(limits, "cell", lambda *_: {"told": 40.0, "auto": 42.0})
    monkeypatch.setattr(limits, "sphere", lambda n_tasks, *_: {"averaged": 2.0 * n_tasks, "likeliest": 300.0})
    lines = list(stored.limits(limits.prove(n_seeds=2)))
    assert "10,000 rounds, 2 seeds" in lines[0]
    assert "| d = 20, k = 2, T = 50 | 38.8 | 40 (0) | 1.03 | 42 (0) | 1.08 |" in lines
    assert "| T = 50 | 345 | 100 (0) | 300 (0) |" in lines
