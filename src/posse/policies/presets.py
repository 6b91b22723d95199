"""The named algorithms: learning policies whose parts are decided, as far as a name decides them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np

from posse.core.fading import Fading
from posse.core.protocols import Schedule
from posse.estimators import FactorPrior, LowRank, OracleBasis, Ridge
from posse.numerics.checks import Array
from posse.policies.carrying import CarriesPrior
from posse.policies.learning import Learning
from posse.policies.rules import UCB, ByActions, Greedy, Thompson
from posse.policies.schedules import DoublyExponential, Geometric


@dataclass(frozen=True, repr=False)
class MLinGreedy(Learning):
    """Algorithm 1 of the paper: low-rank least squares, greedy, doubly exponential epochs.

    Each epoch is played by the estimate from the epoch before it alone. In the first, theta is zero
    and arms are chosen at random.

    Parameters
    ----------
    rank : int
        k, the rank of the parameters: the paper's algorithm has to be told.
    penalty : float
        A ridge. The paper has none; where an epoch is short for the number of features, a small one keeps
        the estimate stable.
    """

    rank: int
    _: KW_ONLY
    penalty: float = 0.0

    rule = Greedy()
    schedule = DoublyExponential()
    memory = "epoch"

    @cached_property
    def estimator(self) -> LowRank:
        """Low-rank least squares."""
        return LowRank(rank=self.rank, penalty=self.penalty)


@dataclass(frozen=True, kw_only=True, repr=False)
class NaiveGreedy(Learning):
    """The paper's baseline: MLinGreedy with ordinary least squares, each task alone.

    The paper does not state the baseline's epochs; these are MLinGreedy's, and so is the rule that
    an epoch learns from the one before it alone.

    Parameters
    ----------
    penalty : float
        A ridge; the paper has none.
    """

    penalty: float = 0.0

    rule = Greedy()
    schedule = DoublyExponential()
    memory = "epoch"

    @cached_property
    def estimator(self) -> Ridge:
        """Ridge regression with the penalty."""
        return Ridge(penalty=self.penalty)


@dataclass(frozen=True, kw_only=True, repr=False)
class _Alone(Learning):
    """What policies that learn each task alone have in common."""

    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float | Fading = "all"
    prompt: bool | None = None

    estimator = Ridge()


@dataclass(frozen=True, kw_only=True, repr=False)
class IndependentGreedy(_Alone):
    """The baseline strengthened: ridge with a learned penalty, all data, frequent updates, greedy.

    Parameters
    ----------
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    rule = Greedy()


@dataclass(frozen=True, kw_only=True, repr=False)
class IndependentThompson(_Alone):
    """Thompson sampling with each task alone: ridge with a learned penalty, all data.

    Parameters
    ----------
    scale : float
        How many times the posterior's standard deviation the draws have.
    draws : int
        How many draws a decision is made from where its probabilities are asked for.
    floor : float
        The least probability of every arm on offer.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    scale: float = 1.0
    draws: int = 64
    floor: float = 0.0

    @cached_property
    def rule(self) -> Thompson:
        """Thompson sampling at the scale."""
        return Thompson(scale=self.scale, draws=self.draws, floor=self.floor)


@dataclass(frozen=True, kw_only=True, repr=False)
class IndependentUCB(_Alone):
    """Optimistic play with each task alone: ridge with a learned penalty, all data.

    Parameters
    ----------
    scale : float
        How many standard deviations to be optimistic by.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    scale: float = 1.0

    @cached_property
    def rule(self) -> UCB:
        """Upper confidence bounds at the scale."""
        return UCB(scale=self.scale)


@dataclass(frozen=True, eq=False, repr=False)
class OracleGreedy(Learning):
    """IndependentGreedy inside the true representation: what is left to gain.

    Parameters
    ----------
    basis : (d, k)
        B, with orthonormal columns.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    basis: Array
    _: KW_ONLY
    prompt: bool | None = None

    rule = Greedy()
    schedule = Geometric()
    memory = "all"

    @cached_property
    def estimator(self) -> OracleBasis:
        """Ridge regression inside the basis."""
        return OracleBasis(basis=np.asarray(self.basis, dtype=np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class OracleThompson(Learning):
    """Thompson sampling inside the true representation, on finite sets and ellipsoids alike.

    Parameters
    ----------
    basis : (d, k)
        B, with orthonormal columns.
    scale : float
        How many times the posterior's standard deviation the draws have.
    draws : int
        How many draws a decision is made from where its probabilities are asked for.
    floor : float
        The least probability of every arm on offer.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    basis: Array
    _: KW_ONLY
    scale: float = 1.0
    draws: int = 64
    floor: float = 0.0
    prompt: bool | None = None

    schedule = Geometric()
    memory = "all"

    @cached_property
    def estimator(self) -> OracleBasis:
        """Ridge regression inside the basis."""
        return OracleBasis(basis=np.asarray(self.basis, dtype=np.float64))

    @cached_property
    def rule(self) -> Thompson:
        """Thompson sampling at the scale."""
        return Thompson(scale=self.scale, draws=self.draws, floor=self.floor)


@dataclass(frozen=True, repr=False)
class _Shared(CarriesPrior):
    """What the shared policies have in common: the learned prior, and when and from what it is learned."""

    rank: int | str = "auto"
    _: KW_ONLY
    schedule: Schedule = field(default_factory=Geometric)
    memory: str | float | Fading = "all"
    prompt: bool | None = None

    @cached_property
    def estimator(self) -> FactorPrior:
        """The learned prior."""
        return FactorPrior(rank=self.rank)


@dataclass(frozen=True, repr=False)
class SharedGreedy(_Shared):
    """Greedy play by the learned prior: every task learns from all others, as far as that helps.

    Enough where contexts are diverse. `SharedThompson` explores too.

    Parameters
    ----------
    rank : "auto" or int
        How many directions tasks share; "auto" finds out.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    rule = Greedy()


@dataclass(frozen=True, repr=False)
class SharedThompson(_Shared):
    """Thompson sampling from the learned prior's posterior, on finite sets and ellipsoids alike.

    Parameters
    ----------
    rank : "auto" or int
        How many directions tasks share; "auto" finds out.
    scale : float
        How many times the posterior's standard deviation the draws have.
    draws : int
        How many draws a decision is made from where its probabilities are asked for.
    floor : float
        The least probability of every arm on offer.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    scale: float = field(default=1.0, kw_only=True)
    draws: int = field(default=64, kw_only=True)
    floor: float = field(default=0.0, kw_only=True)

    @cached_property
    def rule(self) -> Thompson:
        """Thompson sampling at the scale."""
        return Thompson(scale=self.scale, draws=self.draws, floor=self.floor)


@dataclass(frozen=True, repr=False)
class SharedUCB(_Shared):
    """Optimistic play by the learned prior's posterior, on finite action sets.

    Parameters
    ----------
    rank : "auto" or int
        How many directions tasks share; "auto" finds out.
    scale : float
        How many standard deviations to be optimistic by.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.
    """

    scale: float = field(default=1.0, kw_only=True)

    @cached_property
    def rule(self) -> UCB:
        """Upper confidence bounds at the scale."""
        return UCB(scale=self.scale)


@dataclass(frozen=True, repr=False)
class Shared(_Shared):
    """The policy for those who do not choose: optimistic on finite action sets, Thompson sampling on others.

    It shares by the learned prior, as far as that helps, explores, and plays any action set: `SharedUCB` on
    lists of arms, `SharedThompson` elsewhere.

    Parameters
    ----------
    rank : "auto" or int
        How many directions tasks share; "auto" finds out.
    scale : float
        How many standard deviations to be optimistic by, on finite action sets.
    schedule : Schedule
        When to re-estimate.
    memory : "all", "epoch", float or Fading
        What the estimate is made from: all rounds so far, the last block alone, or all with older
        rounds discounted by this factor for each round.
    prompt : bool, optional
        Whether every reward moves the posterior of its own task at once; None leaves it to the driver.

    Examples
    --------
    >>> Shared(), Shared(rank=2).rule
    (Shared(), ByActions(finite=UCB(scale=1.0), other=Thompson(scale=1.0, draws=64, floor=0.0)))
    """

    scale: float = field(default=1.0, kw_only=True)

    @cached_property
    def rule(self) -> ByActions:
        """Upper confidence bounds at the scale on finite sets, Thompson sampling on others."""
        return ByActions(finite=UCB(scale=self.scale))
