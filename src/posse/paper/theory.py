"""The paper's theorems as functions: what regret to expect, from which part of it, and when sharing pays.

The theorems hold up to constants and logarithms. Here all constants are 1 and logarithms are left out, unless
asked for: the numbers say how regret scales, and which term is the larger, and not how large regret is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from posse.numerics.checks import check_integer, check_number

# Of the lower bound for ellipsoids: the constant that its proof gets, for each term on its own.
ELLIPSOID_LOWER_CONSTANT = 1e-4
MOST = 10**12


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The size of a multi-task bandit.

    Parameters
    ----------
    horizon, n_tasks, dim, rank : int
        N, T, d and k, with k at most min(d, T).
    n_arms : int
        K, which only logarithms depend on.

    Examples
    --------
    >>> setting = Setting(horizon=10_000, n_tasks=100, dim=30, rank=3)
    >>> finite_upper(setting).terms[0].value
    17320.508075688773
    """

    horizon: int
    n_tasks: int
    dim: int
    rank: int
    n_arms: int = 5

    def __post_init__(self) -> None:
        for name in ("horizon", "n_tasks", "dim", "n_arms"):
            check_integer(f"`{name}` of Setting", getattr(self, name), 1, MOST)
        most = min(self.dim, self.n_tasks)
        name = f"min(dim={self.dim}, n_tasks={self.n_tasks})"
        check_integer("`rank` of Setting", self.rank, 1, most, high_name=name)


@dataclass(frozen=True)
class Term:
    """One term of a bound.

    Attributes
    ----------
    formula : str
    value : float
        Of all tasks together.
    meaning : str
        What the regret is paid for.
    exponents : mapping
        Of N, T, d and k in the term, by the names of `Setting`.
    """

    formula: str
    value: float
    meaning: str
    exponents: dict[str, float]


@dataclass(frozen=True)
class Bound:
    """A bound on the regret of all tasks together, term by term.

    Attributes
    ----------
    theorem : str
    statement : str
    terms : tuple of Term
    """

    theorem: str
    statement: str
    terms: tuple[Term, ...]

    @property
    def value(self) -> float:
        """The sum of the terms."""
        return math.fsum(term.value for term in self.terms)

    @property
    def dominant(self) -> Term:
        """The largest term."""
        return max(self.terms, key=lambda term: term.value)


def _term(setting: Setting, formula: str, meaning: str, **exponents: float) -> Term:
    value = math.prod(getattr(setting, name) ** exponent for name, exponent in exponents.items())
    return Term(formula, value, meaning, {name: exponents.get(name, 0.0) for name in SIZES})


SIZES = ("horizon", "n_tasks", "dim", "rank")


def finite_upper(setting: Setting) -> Bound:
    """Return Theorem 1: the regret of MLinGreedy on Gaussian action sets, for N >= d^2."""
    return Bound("Theorem 1", "MLinGreedy pays at most", _finite_terms(setting))


def finite_lower(setting: Setting) -> Bound:
    """Return Theorem 2: what any algorithm pays on the worst instance with Gaussian action sets."""
    return Bound("Theorem 2", "every algorithm pays, on some instance, at least", _finite_terms(setting))


def _finite_terms(setting: Setting) -> tuple[Term, ...]:
    return (
        _term(
            setting,
            "T sqrt(kN)",
            "T bandits of dimension k, were B known",
            n_tasks=1.0,
            rank=0.5,
            horizon=0.5,
        ),
        _term(setting, "sqrt(dkNT)", "learning B", dim=0.5, rank=0.5, horizon=0.5, n_tasks=0.5),
    )


def finite_logarithms(setting: Setting) -> float:
    """Return the factor that Theorem 1 hides: sqrt(log(NTdk) log(NKT)) log log N, from its proof.

    log log N stands for the number of epochs, and counts as one at least.
    """
    n = setting
    inner = math.log(n.horizon * n.n_tasks * n.dim * n.rank) * math.log(n.horizon * n.n_arms * n.n_tasks)
    epochs = max(1.0, math.log(max(math.log(n.horizon), 1.0)))
    return math.sqrt(inner) * epochs


def infinite_upper(setting: Setting) -> Bound:
    """Return Theorem 3: the regret of E2TC on ellipsoids."""
    learning = _term(setting, "d^1.5 k sqrt(TN)", "learning B", dim=1.5, rank=1.0, n_tasks=0.5, horizon=0.5)
    return Bound("Theorem 3", "E2TC pays at most", (learning, _commit_term(setting)))


def infinite_lower(setting: Setting) -> Bound:
    """Return Theorem 4: what any algorithm pays on the worst instance with spheres as action sets.

    Its proof gets a constant of 0.0001 for each term alone.
    """
    learning = _term(setting, "d sqrt(kNT)", "learning B", dim=1.0, rank=0.5, horizon=0.5, n_tasks=0.5)
    statement = "every algorithm pays, on some instance, at least"
    return Bound("Theorem 4", statement, (learning, _commit_term(setting)))


def _commit_term(setting: Setting) -> Term:
    meaning = "T bandits of dimension k, were B known"
    return _term(setting, "k T sqrt(N)", meaning, rank=1.0, n_tasks=1.0, horizon=0.5)


def finite_independent(setting: Setting) -> Bound:
    """Return the regret of T bandits that share nothing, on finite action sets."""
    alone = _term(setting, "T sqrt(dN)", "T bandits of dimension d", n_tasks=1.0, dim=0.5, horizon=0.5)
    return Bound("without sharing", "T tasks on their own pay at most", (alone,))


def infinite_independent(setting: Setting) -> Bound:
    """Return the regret of PEGE on every task alone."""
    alone = _term(setting, "d T sqrt(N)", "T bandits of dimension d", dim=1.0, n_tasks=1.0, horizon=0.5)
    return Bound("without sharing", "PEGE on every task alone pays at most", (alone,))


def finite_break_even(dim: int, rank: int) -> float:
    """Return the T from which Theorem 1 is below T sqrt(dN), constants being 1: d k / (sqrt(d) - sqrt(k))^2.

    With k far below d that is k, the paper's T = Omega(k); with k = d there is none.

    Examples
    --------
    >>> round(finite_break_even(30, 3), 2)
    6.42
    """
    gap = math.sqrt(dim) - math.sqrt(rank)
    return dim * rank / gap**2 if gap > 0 else math.inf


def infinite_break_even(dim: int, rank: int) -> float:
    """Return the T from which Theorem 3 is below d T sqrt(N), constants being 1: d^3 k^2 / (d - k)^2.

    With k far below d that is d k^2, the paper's T = Omega(d k^2).

    Examples
    --------
    >>> round(infinite_break_even(10, 2), 1)
    62.5
    """
    return dim**3 * rank**2 / (dim - rank) ** 2 if dim > rank else math.inf


def exploration_rounds(setting: Setting, *, exponent: float = 1.5) -> tuple[float, float]:
    """Return N_1 = d^c k sqrt(N / T) and N_2 = k sqrt(N) of E2TC, before rounding.

    Examples
    --------
    >>> exploration_rounds(Setting(horizon=10_000, n_tasks=100, dim=10, rank=2))[1]
    200.0
    """
    explore = setting.dim**exponent * setting.rank * math.sqrt(setting.horizon / setting.n_tasks)
    return explore, setting.rank * math.sqrt(setting.horizon)


def moment_error(
    setting: Setting, *, explore: float, inner_radius: float = 1.0, diversity: float = 1.0
) -> float:
    """Return the theorem on the method of moments: the sine of the largest angle between B and its estimate.

    d^1.5 k / (lambda_0 nu sqrt(N_1 T)), after N_1 = `explore` rounds of exploration; at most 1, as a sine is.
    `inner_radius` is lambda_0 and `diversity` is nu.
    """
    for name, value in (("explore", explore), ("inner_radius", inner_radius), ("diversity", diversity)):
        check_number(f"`{name}`", value, 0.0, open_low=True)
    ideal = setting.dim**1.5 * setting.rank / (inner_radius * diversity)
    return float(min(1.0, ideal / math.sqrt(explore * setting.n_tasks)))


def in_sample_error(setting: Setting) -> float:
    """Return the lemma on low-rank least squares: (dk + kT) log(NTdk).

    The sum of squared errors of all predictions at the actions played is at most a constant times that.
    """
    n = setting
    return (n.dim * n.rank + n.rank * n.n_tasks) * math.log(n.horizon * n.n_tasks * n.dim * n.rank)
