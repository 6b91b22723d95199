"""The bounds against numbers computed by hand, and against second derivations."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize_scalar
from typer.testing import CliRunner

from posse.cli import app
from posse.paper import theory
from posse.paper.theory import Bound, Setting
from posse.policies import E2TC

HAND = Setting(horizon=10_000, n_tasks=100, dim=25, rank=4)


def test_terms_by_hand() -> None:
    """N = 10^4, T = 100, d = 25, k = 4: all roots are whole."""
    assert [term.value for term in theory.finite_upper(HAND).terms] == [20_000.0, 10_000.0]
    assert [term.value for term in theory.finite_lower(HAND).terms] == [20_000.0, 10_000.0]
    assert [term.value for term in theory.infinite_upper(HAND).terms] == [500_000.0, 40_000.0]
    assert [term.value for term in theory.infinite_lower(HAND).terms] == [50_000.0, 40_000.0]
    assert theory.finite_independent(HAND).value == 50_000.0
    assert theory.infinite_independent(HAND).value == 250_000.0
    assert theory.finite_upper(HAND).value == 30_000.0
    assert theory.infinite_upper(HAND).dominant.formula == "d^1.5 k sqrt(TN)"
    assert theory.exploration_rounds(HAND) == (5000.0, 400.0)
    assert_allclose(theory.moment_error(HAND, explore=40_000), 125 * 4 / 2000)
    assert theory.moment_error(HAND, explore=1) == 1.0
    assert_allclose(theory.moment_error(HAND, explore=160_000, inner_radius=0.5, diversity=0.5), 0.5)
    assert_allclose(theory.in_sample_error(HAND), 500 * math.log(1e8))
    logarithms = math.sqrt(math.log(1e8) * math.log(5e6)) * math.log(math.log(1e4))
    assert_allclose(theory.finite_logarithms(HAND), logarithms)
    for rounds in (1, 2, 3):
        few = Setting(horizon=rounds, n_tasks=10, dim=5, rank=2)
        assert_allclose(
            theory.finite_logarithms(few), math.sqrt(math.log(100 * rounds) * math.log(50 * rounds))
        )


SETTINGS = st.builds(
    lambda rounds, tasks, dim, share: Setting(
        horizon=rounds, n_tasks=tasks, dim=dim, rank=1 + int(share * (min(dim, tasks) - 1))
    ),
    st.integers(1, 10**6),
    st.integers(1, 10**4),
    st.integers(1, 200),
    st.floats(0, 1),
)
BOUNDS = (
    theory.finite_upper,
    theory.finite_lower,
    theory.finite_independent,
    theory.infinite_upper,
    theory.infinite_lower,
    theory.infinite_independent,
)


@given(SETTINGS)
def test_exponents_are_those_of_the_formula(setting: Setting) -> None:
    """The formula as people read it, evaluated by Python, is the product of powers."""
    symbols = {
        "N": setting.horizon,
        "T": setting.n_tasks,
        "d": setting.dim,
        "k": setting.rank,
        "sqrt": math.sqrt,
    }
    for bound in BOUNDS:
        for term in bound(setting).terms:
            text = term.formula.replace("^", "**").replace("(dkNT)", "(d*k*N*T)").replace("(kNT)", "(k*N*T)")
            for pair in ("kN", "dN", "TN"):
                text = text.replace(f"({pair})", f"({pair[0]}*{pair[1]})")
            assert_allclose(term.value, eval(text.replace(" ", "*"), symbols), rtol=1e-12)
            powers = math.prod(getattr(setting, name) ** power for name, power in term.exponents.items())
            assert_allclose(term.value, powers, rtol=1e-12)


def test_theorem_1_follows_from_its_lemmas() -> None:
    """The last epoch costs N sqrt(T/d) |Theta_hat - Theta|, with an epoch of N's order to learn from.

    The lemma's |Theta_hat - Theta|^2 = (dk + kT) / (N/d) makes that sqrt(NT (dk + kT)): between the sum of
    the theorem's terms and that over the root of two.
    """
    for n in (HAND, Setting(horizon=40_000, n_tasks=3, dim=60, rank=2)):
        error = math.sqrt((n.dim * n.rank + n.rank * n.n_tasks) / (n.horizon / n.dim))
        epoch = n.horizon * math.sqrt(n.n_tasks / n.dim) * error
        total = theory.finite_upper(n).value
        assert total / math.sqrt(2) - 1e-9 <= epoch <= total


def test_theorem_3_is_the_best_exploration() -> None:
    """T N_1 + N d^3 k^2 / N_1 + T N_2 + T N k^2 / N_2 is least at the paper's N_1, N_2: twice the bound."""

    def regret(explore: float, refine: float) -> float:
        n = HAND
        first = n.n_tasks * explore + n.horizon * n.dim**3 * n.rank**2 / explore
        return first + n.n_tasks * refine + n.n_tasks * n.horizon * n.rank**2 / refine

    explore, refine = theory.exploration_rounds(HAND)
    best = minimize_scalar(lambda log: regret(math.exp(log), refine), bounds=(0, 20), method="bounded")
    assert_allclose(math.exp(best.x), explore, rtol=1e-3)
    best = minimize_scalar(lambda log: regret(explore, math.exp(log)), bounds=(0, 20), method="bounded")
    assert_allclose(math.exp(best.x), refine, rtol=1e-3)
    assert_allclose(regret(explore, refine), 2 * theory.infinite_upper(HAND).value)


def test_theorem_2_is_k_bandits_with_all_rounds_of_their_group() -> None:
    """k groups of T / k tasks, each a bandit of dimension d for NT / k rounds: k sqrt(d NT / k)."""
    terms = theory.finite_lower(HAND).terms
    group = Setting(horizon=HAND.horizon * HAND.n_tasks // HAND.rank, n_tasks=1, dim=HAND.dim, rank=1)
    assert_allclose(terms[1].value, HAND.rank * theory.finite_independent(group).value)
    terms = theory.infinite_lower(HAND).terms
    assert_allclose(terms[0].value, HAND.rank * theory.infinite_independent(group).value)


@pytest.mark.parametrize(("dim", "rank"), [(30, 3), (20, 2), (10, 2), (200, 1), (7, 6)])
def test_break_even_is_where_the_bounds_cross(dim: int, rank: int) -> None:
    """A root in real T, to which the terms at T = 10^6 are scaled by their exponents."""
    setting = Setting(horizon=100, n_tasks=10**6, dim=dim, rank=rank)

    def gap(log_tasks: float, shared: Bound, alone: Bound) -> float:
        share = math.exp(log_tasks) / setting.n_tasks
        one, other = (
            sum(term.value * share ** term.exponents["n_tasks"] for term in bound.terms)
            for bound in (shared, alone)
        )
        return math.log(one / other)

    for shared, alone, formula in (
        (theory.finite_upper, theory.finite_independent, theory.finite_break_even),
        (theory.infinite_upper, theory.infinite_independent, theory.infinite_break_even),
    ):
        crossing = math.exp(brentq(gap, -5, 40, args=(shared(setting), alone(setting))))
        assert_allclose(crossing, formula(dim, rank), rtol=1e-9)


def test_orders_of_break_even_are_the_papers() -> None:
    """k for finite sets and d k^2 for ellipsoids, where k is far below d."""
    assert_allclose(theory.finite_break_even(10**8, 5), 5, rtol=1e-3)
    assert_allclose(theory.infinite_break_even(10**6, 5), 10**6 * 25, rtol=1e-4)
    assert theory.finite_break_even(4, 4) == theory.infinite_break_even(4, 4) == math.inf


def test_e2tc_explores_as_the_theorem_says() -> None:
    explore, refine = theory.exploration_rounds(Setting(horizon=10_000, n_tasks=50, dim=10, rank=2))
    blocks = E2TC(rank=2).blocks(10_000, n_tasks=50, dim=10)
    assert blocks[0] == round(explore)
    assert sum(blocks[1:3]) == refine


def test_bounds_grow_and_lower_is_below_upper() -> None:
    for bounds in (
        (theory.finite_lower, theory.finite_upper),
        (theory.infinite_lower, theory.infinite_upper),
    ):
        lower, upper = (bound(HAND).value for bound in bounds)
        assert lower <= upper
    assert isinstance(theory.finite_upper(HAND), Bound)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rank": 0}, r"`rank` of Setting"),
        ({"rank": 26}, r"min\(dim=25, n_tasks=100\)"),
        ({"n_tasks": 3}, r"min\(dim=25, n_tasks=3\)"),
        ({"horizon": 0}, r"`horizon` of Setting"),
        ({"dim": 2.5}, r"`dim` of Setting .* Got 2.5"),
    ],
)
def test_bad_settings_are_named(wrong: dict[str, float], message: str) -> None:
    sizes = {"horizon": 100, "n_tasks": 100, "dim": 25, "rank": 4, **wrong}
    with pytest.raises(ValueError, match=message):
        Setting(**sizes)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`explore`"):
        theory.moment_error(HAND, explore=0.0)


def test_the_command_prints_and_says_it_in_words() -> None:
    arguments = ["theory", "--dim", "30", "--rank", "3", "--tasks", "100", "--rounds", "10000"]
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0, printed.output
    for text in ("T sqrt(kN)", "d^1.5 k sqrt(TN)", "Sharing should pay", "N_1 = 4930", "d sqrt(kNT)"):
        assert text in printed.output
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert found["setting"] == {"rounds": 10_000, "tasks": 100, "dim": 30, "rank": 3, "arms": 5}
    exponents = found["finite"]["bounds"][0]["terms"][0]["exponents"]
    assert exponents == {"rounds": 0.5, "tasks": 1.0, "dim": 0.0, "rank": 0.5}
    assert found["finite"]["dominant"] == "T sqrt(kN)"
    assert_allclose(
        found["finite"]["bounds"][0]["value"],
        theory.finite_upper(Setting(horizon=10_000, n_tasks=100, dim=30, rank=3)).value,
    )
    assert found["infinite"]["sharing_expected_to_pay"] is False
    assert_allclose(found["infinite"]["break_even_tasks"], 27_000 * 9 / 27**2)
    wrong = CliRunner().invoke(app, ["theory", "--rank", "60"])
    assert wrong.exit_code == 2
    assert "--rank must be an integer in [1, min(dim=20, tasks=50)=20]. Got 60." in wrong.output
    assert np.isfinite(found["finite"]["break_even_tasks"])
