"""The policies with a name that are made for streams of tasks, or stand beside those that are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from posse.core.protocols import Problem
from posse.lab.entries import NamedPolicy, Parameter
from posse.numerics.checks import Array
from posse.policies import BARON, BRESS, PEGETau, SeqRepL
from posse.viz.style import BLUE, GREEN, RED, SKY, YELLOW, Style

FORMULA = "formula"
RANK = Parameter(help="k, the rank that it is told.", option="rank", symbol="k")
N_EXPLORE = Parameter(help="tau_1, the rounds of an exploration in R^d; or formula.", default=FORMULA)
N_REFINE = Parameter(help="tau_2, the rounds inside the subspace; or formula.", default=FORMULA)
CHANCE = Parameter(help="p, with which a task is explored; or formula.", default=FORMULA)
RIDGE = Parameter(help="The ridge of its estimates.", default=1.0)
LENGTHS = {"n_explore": N_EXPLORE, "n_refine": N_REFINE, "penalty": RIDGE}
TAU = Parameter(help="tau, the rounds that it explores.", default=200)


def true_basis(problem: Any) -> Array:
    """Return the representation (d, k) of a problem, for policies that are told it; raise if it has none."""
    basis: Array | None = getattr(problem, "basis", None)
    if basis is None:
        owner = type(problem).__name__
        raise ValueError(f"oracle policies need a problem with a true representation. Got {owner}.")
    return basis


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those that a formula is to say."""
    return {name: value for name, value in values.items() if value != FORMULA}


def _seqrepl(problem: Problem, **values: Any) -> SeqRepL:
    return SeqRepL(**_told(values))


def _baron(problem: Problem, **values: Any) -> BARON:
    return BARON(**_told(values))


def _bress(problem: Problem, **values: Any) -> BRESS:
    return BRESS(**_told(values))


FOR_STREAMS: Mapping[str, NamedPolicy] = MappingProxyType(
    {
        "seqrepl": NamedPolicy(
            "SeqRepL",
            "streams: tasks 0, 1, 4, 9, ... explored, others in the subspace these show (Qin et al. 2022)",
            "others",
            Style(SKY, "triangle"),
            _seqrepl,
            "streams",
            {"rank": RANK, **LENGTHS},
        ),
        "baron": NamedPolicy(
            "BARON",
            "streams: tasks explored at random, others in the subspace these show (Duong et al. 2024)",
            "others",
            Style(BLUE, "down"),
            _baron,
            "streams",
            {"rank": RANK, "chance": CHANCE, **LENGTHS},
        ),
        "bress": NamedPolicy(
            "BRESS",
            "streams: BARON with a subspace drawn by online principal components",
            "others",
            Style(YELLOW, "down"),
            _bress,
            "streams",
            {"rank": RANK, **LENGTHS},
        ),
        "pege-tau": NamedPolicy(
            "PEGE, one exploration",
            "each task alone on its ellipsoid: tau rounds at random, then the best action of their ridge",
            "each task alone",
            Style(RED, "plus"),
            lambda problem, n_explore, penalty: PEGETau(n_explore=n_explore, penalty=penalty),
            "ellipsoids",
            {"n_explore": TAU, "penalty": RIDGE},
        ),
        "pege-oracle": NamedPolicy(
            "PEGE, told B",
            "PEGE with one exploration, told the true representation",
            "oracles",
            Style(GREEN, "down"),
            lambda problem, n_explore, penalty: PEGETau(
                n_explore=n_explore, basis=true_basis(problem), penalty=penalty
            ),
            "ellipsoids",
            {
                "n_explore": Parameter(help="tau, the rounds that it explores.", default=50),
                "penalty": RIDGE,
            },
        ),
    }
)
